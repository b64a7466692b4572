/* wire.h - writing the protocol buffers' wire format (its "Encoding" page): varints and what is as long as it says,
 * nothing else.
 *
 * By hand, because a profile has eight kinds of messages of whole numbers and texts: the sixty lines here are less than
 * a schema, a generator in the build and its library. A message goes into a buffer of its own and from there, by
 * wire_message, into the one that holds it. Numbers that are 0 are left out, as the format's default is 0.
 * Running out of memory is remembered in `failed`, and asked for once at the end.
 */
#ifndef M6_WIRE_H
#define M6_WIRE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct wire {
  unsigned char *bytes;
  size_t n, room;
  int failed;
};

static inline void wire_raw(struct wire *w, const void *from, size_t n)
{
  if (w->failed || n == 0) return;
  if (w->n + n > w->room) {
    size_t room = (w->n + n) * 2 + 64;
    unsigned char *more = realloc(w->bytes, room);
    if (!more) {
      w->failed = 1;
      return;
    }
    w->bytes = more;
    w->room = room;
  }
  memcpy(w->bytes + w->n, from, n);
  w->n += n;
}

static inline void wire_varint(struct wire *w, uint64_t v)
{
  unsigned char out[10];
  size_t n = 0;
  for (; v >= 0x80; v >>= 7) out[n++] = (unsigned char)(v | 0x80);
  out[n++] = (unsigned char)v;
  wire_raw(w, out, n);
}

static inline void wire_number(struct wire *w, unsigned field, uint64_t v)
{
  if (v == 0) return;
  wire_varint(w, field << 3);
  wire_varint(w, v);
}

static inline void wire_bytes(struct wire *w, unsigned field, const void *from, size_t n)
{
  wire_varint(w, field << 3 | 2);
  wire_varint(w, n);
  wire_raw(w, from, n);
}

/* `part` is empty again afterwards, and keeps its memory for the next one. */
static inline void wire_message(struct wire *w, unsigned field, struct wire *part)
{
  if (part->failed) w->failed = 1;
  else wire_bytes(w, field, part->bytes, part->n);
  part->n = 0;
}

static inline void wire_free(struct wire *w)
{
  free(w->bytes);
  memset(w, 0, sizeof *w);
}

#endif
