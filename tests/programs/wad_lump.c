/* wad_lump FILE NAME - writes a Doom WAD's lump to stdout: dsda-doom plays a demo from a file only. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t word(const unsigned char *p) { return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24; }

int main(int argc, char **argv)
{
  unsigned char head[12], entry[16];
  FILE *f = argc == 3 ? fopen(argv[1], "rb") : NULL;
  if (!f || fread(head, sizeof head, 1, f) != 1 || memcmp(head + 1, "WAD", 3) || fseek(f, word(head + 8), SEEK_SET))
    return 1;
  for (uint32_t i = 0; i < word(head + 4) && fread(entry, sizeof entry, 1, f) == 1; i++) {
    if (strncmp((char *)entry + 8, argv[2], 8)) continue;
    size_t n = word(entry + 4);
    char *lump = malloc(n ? n : 1);
    if (!lump || fseek(f, word(entry), SEEK_SET) || fread(lump, 1, n, f) != n || fwrite(lump, 1, n, stdout) != n)
      return 1;
    free(lump);
    return 0;
  }
  return 1;
}
