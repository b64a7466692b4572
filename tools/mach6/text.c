/* text.c - see text.h. Calls libc, and collector/utf8.h. */
#include <ctype.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "../../collector/utf8.h"
#include "text.h"

static int utf8;

void text_init(void)
{
  /* Only LC_CTYPE: numbers keep their point. A UTF-8 locale that is named but not installed still says what the
   * terminal does. */
  if (!setlocale(LC_CTYPE, "")) {
    const char *v = getenv("LC_ALL");
    if (!v || !*v) v = getenv("LC_CTYPE");
    if (!v || !*v) v = getenv("LANG");
    if (v && (strcasestr(v, "utf-8") || strcasestr(v, "utf8"))) setlocale(LC_CTYPE, "C.UTF-8");
  }
  utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
}

struct page page_on(FILE *to, int fd)
{
  const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
  struct winsize w;
  struct page p = {to, isatty(fd) && !(none && *none) && !(term && !strcmp(term, "dumb")), utf8, 100};
  if (isatty(fd) && !ioctl(fd, TIOCGWINSZ, &w) && w.ws_col >= 60 && w.ws_col < 100) p.width = w.ws_col;
  return p;
}

const char *ink(const struct page *p, enum ink i)
{
  static const char *const codes[INK_COUNT] = {"\033[0m",    "\033[1m",  "\033[2m",  "\033[32m",
                                               "\033[1;31m", "\033[33m", "\033[36m", "\033[35m"};
  return p->colour ? codes[i] : "";
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static char *slot(void)
{
  static char slots[16][48];
  static unsigned next;
  return slots[next++ % 16];
}

/* Three digits that matter, without an exponent: 0.0123, 1.23, 12.3, 123. */
static int digits_after(double v)
{
  v = fabs(v);
  return v == 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : v >= 0.1 ? 2 : 3;
}

const char *t_time(const struct page *p, double s)
{
  char *o = slot();
  const char *micro = p->utf8 ? "µs" : "us";
  if (!isfinite(s)) return "-";
  double a = fabs(s);
  if (a == 0) return "0";
  if (a < 999.5e-9) snprintf(o, 48, "%.0f ns", s * 1e9);
  else if (a < 999.5e-6)
    snprintf(o, 48, "%.*f %s", digits_after(s * 1e6) > 1 ? 1 : digits_after(s * 1e6), s * 1e6, micro);
  else if (a < 0.9995) snprintf(o, 48, "%.*f ms", digits_after(s * 1e3), s * 1e3);
  else if (a < 600) snprintf(o, 48, "%.*f s", digits_after(s), s);
  else snprintf(o, 48, "%.1f min", s / 60);
  return o;
}

static const char *bytes(double b, int sign)
{
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  char *o = slot();
  unsigned u = 0;
  if (!isfinite(b)) return "-";
  while (fabs(b) >= 1023.95 && u < 6) b /= 1024, u++;
  int after = u ? 1 : b == floor(b) ? 0 : digits_after(b) > 1 ? 1 : digits_after(b);
  /* What rounds to nothing has no sign. */
  if (sign && fabs(b) < (after ? 0.05 : 0.5)) snprintf(o, 48, "0 %s", units[u]);
  else snprintf(o, 48, sign ? "%+.*f %s" : "%.*f %s", after, b, units[u]);
  return o;
}
const char *t_bytes(double b) { return bytes(b, 0); }
const char *t_bytes_signed(double b) { return bytes(b, 1); }

const char *t_count(uint64_t n)
{
  char plain[32], *o = slot(), *to = o;
  int len = snprintf(plain, sizeof plain, "%llu", (unsigned long long)n);
  for (int i = 0; i < len; i++) {
    if (i && (len - i) % 3 == 0) *to++ = ',';
    *to++ = plain[i];
  }
  *to = 0;
  return o;
}

const char *t_ratio(double r)
{
  char *o = slot();
  if (!isfinite(r)) return "-";
  double v = r * 100;
  snprintf(o, 48, "%.*f %%", v == 0 || fabs(v) >= 9.95 ? 0 : fabs(v) >= 0.95 ? 1 : 2, v);
  return o;
}

const char *t_number(double v)
{
  char *o = slot();
  if (!isfinite(v)) return "-";
  if (fabs(v) >= 1000)
    return v < 0 ? (snprintf(o, 48, "-%s", t_count((uint64_t)(-v + 0.5))), o) : t_count((uint64_t)(v + 0.5));
  if (v > 0 && v < 0.005) return "<0.01";
  snprintf(o, 48, "%.*f", v == floor(v) ? 0 : digits_after(v) > 2 ? 2 : digits_after(v), v);
  return o;
}

const char *t_short(double v)
{
  static const char *const units[] = {"k", "M", "G", "T", "P", "E"};
  if (!isfinite(v) || fabs(v) < 99999.5) return t_number(v);
  char *o = slot();
  int u = 0;
  for (v /= 1000; fabs(v) >= 999.5 && u < 5; u++) v /= 1000;
  snprintf(o, 48, "%.*f%s", digits_after(v) > 1 ? 1 : digits_after(v), v, units[u]);
  return o;
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

#define NO_CHARACTER 0xfffdu

/* Decodes one character of UTF-8 that has been checked, but may have been cut; its length in *n. What is no character
 * is one byte. */
static uint32_t decode(const unsigned char *s, int *n)
{
  int more = s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 1 : s[0] < 0xf0 ? 2 : 3;
  uint32_t c = more ? s[0] & (0x3fu >> more) : s[0];
  *n = 1;
  if (s[0] >= 0x80 && s[0] < 0xc0) return NO_CHARACTER;
  for (int i = 1; i <= more; i++) {
    if ((s[i] & 0xc0) != 0x80) return NO_CHARACTER; /* the text's end, at the latest */
    c = c << 6 | (s[i] & 0x3f);
  }
  *n = 1 + more;
  return c;
}

/* Characters that steer a terminal or turn its text around are shown as what they are. */
static int steers(uint32_t c)
{
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

/* One character as it is printed: its bytes in out (at least 16), its columns as the result. */
static int glyph(const struct page *p, const unsigned char *s, int *used, char *out)
{
  uint32_t c = decode(s, used);
  if (c == '\n' || c == '\t') return snprintf(out, 16, c == '\n' ? "\\n" : "\\t");
  if (steers(c)) return snprintf(out, 16, c < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)c);
  if (c < 0x80) return out[0] = (char)c, out[1] = 0, 1;
  int columns = p->utf8 && !(c == NO_CHARACTER && *used == 1) ? wcwidth((wchar_t)c) : -1;
  if (columns < 0) return snprintf(out, 16, p->utf8 ? "\xef\xbf\xbd" : "?"), 1;
  memcpy(out, s, (size_t)*used);
  out[*used] = 0;
  return columns;
}

int t_columns(const struct page *p, const char *label)
{
  int columns = 0, used;
  char out[16];
  for (const unsigned char *s = (const unsigned char *)label; *s; s += used) columns += glyph(p, s, &used, out);
  return columns;
}

void t_label(const struct page *p, const char *label, int columns)
{
  int used, at = 0, cut = columns > 0 && t_columns(p, label) > columns;
  int room = cut ? columns - (p->utf8 ? 1 : 2) : columns;
  char out[16];
  for (const unsigned char *s = (const unsigned char *)label; *s; s += used) {
    int w = glyph(p, s, &used, out);
    if (columns > 0 && at + w > room) break;
    fputs(out, p->to);
    at += w;
  }
  if (cut) {
    fputs(p->utf8 ? "…" : "..", p->to);
    at += p->utf8 ? 1 : 2;
  }
  if (columns > at) fprintf(p->to, "%*s", columns - at, "");
}

void t_text(const struct page *p, const char *text, size_t bytes)
{
  char clean[3 * 512 + 1], out[16];
  for (size_t at = 0; at < bytes;) {
    /* Up to a newline or a few hundred bytes, but not into a character. */
    const char *end = memchr(text + at, '\n', bytes - at);
    size_t n = end ? (size_t)(end - text) - at + 1 : bytes - at;
    if (n > 512) n = m6_utf8_whole(text + at, 512);
    int replaced = 0, used;
    clean[m6_utf8_clean(text + at, n, clean, sizeof clean - 1, &replaced)] = 0;
    at += n;
    for (const unsigned char *s = (const unsigned char *)clean; *s; s += used) {
      glyph(p, s, &used, out);
      if (*s == '\n' || *s == '\t') fputc(*s, p->to);
      else fputs(out, p->to);
    }
  }
}

void t_wrap(const struct page *p, int indent, const char *text)
{
  int at = indent, space = 0;
  fprintf(p->to, "%*s", indent, "");
  while (*text) {
    char word[512];
    int n = (int)strcspn(text, " ");
    while (n && isdigit((unsigned char)text[n - 1]) && text[n] == ' ')
      n += 1 + (int)strcspn(text + n + 1, " "); /* 12 ms */
    int cut = n > (int)sizeof word - 1;         /* what goes on behind it is no word of its own */
    if (cut) n = (int)m6_utf8_whole(text, sizeof word - 1);
    memcpy(word, text, (size_t)n);
    word[n] = 0;
    int w = t_columns(p, word);
    if (space && at + 1 + w > p->width) {
      fprintf(p->to, "\n%*s", indent + 2, "");
      at = indent + 2;
      space = 0;
    }
    if (space) fputc(' ', p->to), at++;
    fputs(word, p->to);
    at += w;
    space = !cut;
    text += n;
    while (*text == ' ') text++;
  }
  fputc('\n', p->to);
}

/* One line up to its newline or the text's end. It breaks behind a comma, semicolon or colon when there is one in the
 * second half, else at a space, but not between a number and its unit. */
static void fold_line(const struct page *p, const char *line, const char *end)
{
  int indent = (int)strspn(line, " ") + 2;
  for (int first = 1, lead = 0;; first = 0, lead = indent) {
    const char *at = line, *pause = NULL, *space = NULL;
    int used, columns = lead;
    char out[16];
    while (at < end && columns <= p->width) {
      if (*at == '\033') { /* a colour takes no room */
        while (at < end && *at != 'm') at++;
        at += at < end;
        continue;
      }
      int unit = at > line && isdigit((unsigned char)at[-1]) && !strchr(" [(<+-", at[1]);
      if (*at == ' ' && at > line && columns > indent && at[-1] != ' ' && !unit) {
        space = at;
        if (columns > p->width / 2 && strchr(",;:", at[-1])) pause = at;
      }
      columns += glyph(p, (const unsigned char *)at, &used, out);
      at += used;
    }
    if (!first) fprintf(p->to, "%*s", indent, "");
    const char *cut = columns <= p->width ? NULL : pause ? pause : space;
    if (cut == NULL) { /* it fits, or cannot be helped */
      fwrite(line, 1, (size_t)(end - line), p->to);
      return;
    }
    fwrite(line, 1, (size_t)(cut - line), p->to);
    fputc('\n', p->to);
    line = cut + strspn(cut, " ");
  }
}

void t_fold(const struct page *p, const char *lines)
{
  while (*lines) {
    const char *end = lines + strcspn(lines, "\n");
    fold_line(p, lines, end);
    if (*end) fputc('\n', p->to), end++;
    lines = end;
  }
}
