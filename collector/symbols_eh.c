/* symbols_eh.c - where functions begin in a stripped file: by .eh_frame_hdr, the table that exceptions need and that
 * strip leaves.
 *
 * Layout: LSB Core 5.0, "Exception Frames"; the search table's entries are pairs of signed 32-bit distances from its
 * header, sorted. Other encodings than the one that all linkers write are not read. Foreign bytes: every access is
 * checked against the file. Caller: symbols_elf.c. May call libelf.
 */
#include <gelf.h>
#include <string.h>

#include "symbols_elf.h"

#define HDR_ENCODINGS                                                                                                  \
  0x3b031b01u /* version 1; pointer pcrel sdata4, count udata4, table datarel sdata4; little-endian */
#define HDR_BYTES 12u

/* `bytes` bytes of the file at vaddr, or NULL. */
static const unsigned char *at(Elf *elf, uint64_t vaddr, uint64_t bytes)
{
  size_t n, size;
  const char *file = elf_rawfile(elf, &size);
  if (!file || elf_getphdrnum(elf, &n)) return NULL;
  for (size_t i = 0; i < n; i++) {
    GElf_Phdr p;
    if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || p.p_offset > size || p.p_filesz > size - p.p_offset)
      continue;
    if (vaddr < p.p_vaddr || vaddr - p.p_vaddr > p.p_filesz || bytes > p.p_filesz - (vaddr - p.p_vaddr)) continue;
    return (const unsigned char *)file + p.p_offset + (vaddr - p.p_vaddr);
  }
  return NULL;
}

static uint32_t word(const unsigned char *p)
{
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
static uint64_t distance(uint64_t from, const unsigned char *p) { return from + (uint64_t)(int64_t)(int32_t)word(p); }

int m6_eh_function(Elf *elf, uint64_t vaddr, uint64_t *start)
{
  size_t n;
  uint64_t header = 0;
  if (elf_getphdrnum(elf, &n)) return 0;
  for (size_t i = 0; i < n; i++) {
    GElf_Phdr p;
    if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_GNU_EH_FRAME) header = p.p_vaddr;
  }
  const unsigned char *h = header ? at(elf, header, HDR_BYTES) : NULL;
  if (!h || word(h) != HDR_ENCODINGS) return 0;
  uint32_t count = word(h + 8), low = 0, high = count;
  const unsigned char *table = at(elf, header + HDR_BYTES, 8ull * count);
  if (!table) return 0;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (distance(header, table + 8ull * middle) <= vaddr) low = middle + 1;
    else high = middle;
  }
  if (!low) return 0;
  const unsigned char *entry = table + 8ull * (low - 1);
  *start = distance(header, entry);
  /* The description itself: length, distance to its common part, begin (pcrel sdata4), bytes. */
  uint64_t place = distance(header, entry + 4);
  const unsigned char *fde = at(elf, place, 16);
  if (!fde || word(fde) == ~0u || distance(place + 8, fde + 8) != *start) return 0;
  return vaddr - *start < word(fde + 12);
}
