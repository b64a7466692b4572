/* utf8.c - see utf8.h. */
#include "utf8.h"

#include <stdint.h>
#include <string.h>

/* Length of the valid character at s (n bytes left), 0 when there is none. */
static size_t character(const unsigned char *s, size_t n)
{
  static const struct {
    unsigned char lead_min, lead_max, second_min, second_max, length;
  } rows[] = {
    {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (s[0] < rows[i].lead_min || s[0] > rows[i].lead_max) continue;
    if (rows[i].length > n) return 0;
    if (rows[i].length > 1 && (s[1] < rows[i].second_min || s[1] > rows[i].second_max)) return 0;
    for (size_t k = 2; k < rows[i].length; k++)
      if ((s[k] & 0xc0) != 0x80) return 0;
    return rows[i].length;
  }
  return 0;
}

size_t m6_utf8_clean(const char *text, size_t n, char *out, size_t room, int *replaced)
{
  size_t at = 0, length = 0;
  while (at < n) {
    size_t c = character((const unsigned char *)text + at, n - at);
    size_t need = c ? c : 3;
    if (length + need > room) break;
    if (c) memcpy(out + length, text + at, c);
    else {
      out[length] = (char)0xef, out[length + 1] = (char)0xbf, out[length + 2] = (char)0xbd; /* U+FFFD */
      *replaced = 1;
    }
    length += need;
    at += c ? c : 1;
  }
  return length;
}

size_t m6_utf8_whole(const char *text, size_t n)
{
  for (size_t back = 1; back <= 3 && back <= n; back++) {
    /* Does it become a character, when bytes that can only go on are put behind it? Some leads want a second byte of
     * their own. */
    unsigned char lead = (unsigned char)text[n - back];
    if ((lead & 0xc0) == 0x80) continue;
    if (lead < 0xc0) return n;
    static const unsigned char more[] = {0x80, 0x90, 0xa0};
    for (size_t i = 0; i < sizeof more; i++) {
      unsigned char whole[4] = {more[i], more[i], more[i], more[i]};
      memcpy(whole, text + n - back, back);
      if (character(whole, 4) > back) return n - back;
    }
    return n;
  }
  return n;
}
