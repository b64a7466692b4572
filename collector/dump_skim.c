/* dump_skim.c - the length of one msgpack object, without building it (the msgpack specification, 2013).
 *
 * Promise: reads only p[0..n), allocates nothing, does not recurse, ends in O(n). What it calls whole, a decoder may
 * decode: each count has at least as many bytes behind it, and the depth is bounded. Calls nothing.
 */
#include "dump.h"

/* Bytes of the head; payload bytes and members that follow. 0: no such type. */
struct head {
  size_t bytes;
  uint64_t payload, members;
};

static uint64_t big_endian(const unsigned char *p, unsigned n)
{
  uint64_t v = 0;
  while (n--) v = v << 8 | *p++;
  return v;
}

/* n: bytes at p, at least 1. A head that is cut has more bytes than n. */
static struct head head_of(const unsigned char *p, size_t n)
{
  unsigned c = *p;
  if (c <= 0x7f || c >= 0xe0) return (struct head){1, 0, 0};              /* fixint */
  if (c <= 0x8f) return (struct head){1, 0, 2 * (uint64_t)(c & 15)};      /* fixmap */
  if (c <= 0x9f) return (struct head){1, 0, c & 15};                      /* fixarray */
  if (c <= 0xbf) return (struct head){1, c & 31, 0};                      /* fixstr */
  if (c == 0xc0 || c == 0xc2 || c == 0xc3) return (struct head){1, 0, 0}; /* nil, false, true */
  if (c == 0xc1) return (struct head){0, 0, 0};
  /* From here on: a length of 1, 2 or 4 bytes, or a number of 1 to 8. */
  static const struct {
    unsigned char length;                  /* bytes of the length or count; 0: `payload` is fixed */
    unsigned char payload, extra, members; /* extra: bytes of payload beyond the length; members: for each count */
  } kinds[] = {
    {1, 0, 0, 0}, {2, 0, 0, 0}, {4, 0, 0, 0},                              /* c4 bin */
    {1, 0, 1, 0}, {2, 0, 1, 0}, {4, 0, 1, 0},                              /* c7 ext */
    {0, 4, 0, 0}, {0, 8, 0, 0},                                            /* ca float */
    {0, 1, 0, 0}, {0, 2, 0, 0}, {0, 4, 0, 0}, {0, 8, 0, 0},                /* cc uint */
    {0, 1, 0, 0}, {0, 2, 0, 0}, {0, 4, 0, 0}, {0, 8, 0, 0},                /* d0 int */
    {0, 2, 0, 0}, {0, 3, 0, 0}, {0, 5, 0, 0}, {0, 9, 0, 0}, {0, 17, 0, 0}, /* d4 fixext */
    {1, 0, 0, 0}, {2, 0, 0, 0}, {4, 0, 0, 0},                              /* d9 str */
    {2, 0, 0, 1}, {4, 0, 0, 1},                                            /* dc array */
    {2, 0, 0, 2}, {4, 0, 0, 2},                                            /* de map */
  };
  _Static_assert(sizeof kinds / sizeof *kinds == 0xe0 - 0xc4, "one for each");
  unsigned length = kinds[c - 0xc4].length;
  if (!length) return (struct head){1, kinds[c - 0xc4].payload, 0};
  if (n < 1 + length) return (struct head){1 + length, 0, 0};
  uint64_t value = big_endian(p + 1, length);
  if (kinds[c - 0xc4].members) return (struct head){1 + length, 0, value * kinds[c - 0xc4].members};
  return (struct head){1 + length, value + kinds[c - 0xc4].extra, 0};
}

ssize_t m6_dump_skim(const void *bytes, size_t n, size_t most, unsigned depth_max)
{
  const unsigned char *p = bytes;
  uint64_t left[M6_DUMP_DEPTH_MAX + 1] = {1}; /* members still to come, at each level */
  unsigned depth = 0;
  size_t at = 0, end = n < most ? n : most;
  ssize_t cut = n < most ? M6_SKIM_CUT : M6_SKIM_LARGE; /* what it means to run out of bytes */
  if (depth_max > M6_DUMP_DEPTH_MAX) depth_max = M6_DUMP_DEPTH_MAX;
  for (;;) {
    while (left[depth] == 0) {
      if (depth == 0) return (ssize_t)at;
      depth--;
    }
    left[depth]--;
    if (at >= end) return cut;
    struct head h = head_of(p + at, end - at);
    if (h.bytes == 0) return M6_SKIM_BAD;
    if (h.bytes > end - at || h.payload > end - at - h.bytes) return h.payload > most ? M6_SKIM_LARGE : cut;
    at += h.bytes + h.payload;
    if (h.members == 0) continue;
    if (h.members > end - at) return h.members > most ? M6_SKIM_LARGE : cut; /* a member is a byte at least */
    if (depth == depth_max) return M6_SKIM_DEEP;
    left[++depth] = h.members;
  }
}
