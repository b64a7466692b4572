/* label.h - label texts to small numbers, shared by many writers without a lock.
 *
 * Promise: the same text gets the same number (1..M6_LABELS-1) for the life of the segment, another text another one; a
 * full table gives 0, "(other)". Bounded in memory and in time (M6_LABEL_PROBES). Never waits: an entry whose text is
 * still being written is already valid by its hash. Identity is a 64-bit hash over the whole text, however long; at
 * most M6_LABEL_BYTES_MAX bytes of it are kept. Thread-safe, async-signal-safe, and safe against a writer that dies
 * half-way (its text stays missing, the number holds).
 */
#ifndef M6_LABEL_H
#define M6_LABEL_H

#include <string.h>

#include "layout.h"
#include "order.h"

#define M6_LABEL_PROBES 64u

/* Mixes eight bytes at a time with a 64x64->128 bit multiply (the mum construction of wyhash). Never 0. */
static inline uint64_t m6_label_mum(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
  unsigned __int128 r = (unsigned __int128)a * b;
  return (uint64_t)r ^ (uint64_t)(r >> 64);
#else
  uint64_t lo = (a & 0xffffffffu) * (b & 0xffffffffu), hi = (a >> 32) * (b >> 32);
  uint64_t m1 = (a >> 32) * (b & 0xffffffffu), m2 = (a & 0xffffffffu) * (b >> 32);
  uint64_t mid = (lo >> 32) + (m1 & 0xffffffffu) + (m2 & 0xffffffffu);
  lo = (mid << 32) | (lo & 0xffffffffu);
  hi += (m1 >> 32) + (m2 >> 32) + (mid >> 32);
  return lo ^ hi;
#endif
}
static inline uint64_t m6_label_hash(const char *text, size_t n)
{
  uint64_t h = 0x9e3779b97f4a7c15ull ^ n, v;
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    memcpy(&v, text + i, 8);
    h = m6_label_mum(h ^ v, 0xa0761d6478bd642full);
  }
  v = 0;
  memcpy(&v, text + i, n - i);
  h = m6_label_mum(h ^ v ^ 0xe7037ed1a0b428dbull, 0x8ebc6af09c88c6e3ull);
  return h ? h : 1;
}

/* Views of one segment's label region. */
struct m6_labels {
  struct m6_labels_head *head;
  struct m6_label *table; /* M6_LABELS entries */
  char *text;             /* M6_LABEL_TEXT_BYTES */
};
static inline struct m6_labels m6_labels_at(void *segment)
{
  char *base = (char *)segment;
  struct m6_labels l = {(struct m6_labels_head *)(base + M6_OFF_LABELS), (struct m6_label *)(base + M6_OFF_LABEL_TABLE),
                        base + M6_OFF_LABEL_TEXT};
  return l;
}

/* The number of a text, made when new. *refused is set to 1 when there was no room. */
static inline uint32_t m6_label_intern(struct m6_labels l, const char *text, size_t n, int *refused)
{
  uint64_t hash = m6_label_hash(text, n);
  uint32_t at = (uint32_t)(hash >> 32) & (M6_LABELS - 1);
  for (unsigned probe = 0; probe < M6_LABEL_PROBES; probe++, at = (at + 1) & (M6_LABELS - 1)) {
    if (at == 0) continue;
    struct m6_label *e = &l.table[at];
    uint64_t have = m6_observe(&e->hash);
    if (m6_likely(have == hash)) return at;
    if (have != 0) continue;
    if (m6_peek(&l.head->used) >= M6_LABELS_MAX) break;
    uint64_t nothing = 0;
    if (!m6_claim(&e->hash, &nothing, hash)) {
      if (nothing == hash) return at;
      continue;
    }
    m6_shared_add(&l.head->used, 1);
    uint32_t keep = n > M6_LABEL_BYTES_MAX ? M6_LABEL_BYTES_MAX : (uint32_t)n;
    uint32_t off = m6_shared_add(&l.head->text_used, keep);
    if (off > M6_LABEL_TEXT_BYTES - keep) { /* the number stays distinct, its text is cut to nothing */
      m6_poke(&l.head->text_used, M6_LABEL_TEXT_BYTES);
      m6_publish(&e->text, 1ull << 16 | 1ull << 17);
      return at;
    }
    memcpy(l.text + off, text, keep);
    m6_publish(&e->text, (uint64_t)off << 32 | 1ull << 17 | (keep < n ? 1ull << 16 : 0) | keep);
    return at;
  }
  *refused = 1;
  return 0;
}

/* For readers that trust nothing: copies the text of `id` into out (M6_LABEL_BYTES_MAX + 1 bytes, NUL-terminated),
 * gives its length, or -1 when there is none. *cut says that the text was longer. */
static inline int m6_label_copy(struct m6_labels l, uint32_t id, char *out, int *cut)
{
  out[0] = 0;
  *cut = 0;
  if (id == 0 || id >= M6_LABELS) return -1;
  uint64_t t = m6_observe(&l.table[id].text);
  uint32_t off = (uint32_t)(t >> 32), n = (uint32_t)t & 0xffff;
  if (!(t & 1ull << 17) || n > M6_LABEL_BYTES_MAX || off > M6_LABEL_TEXT_BYTES - n) return -1;
  memcpy(out, l.text + off, n);
  out[n] = 0;
  *cut = !!(t & 1ull << 16);
  return (int)n;
}

#endif
