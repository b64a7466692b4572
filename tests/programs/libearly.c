/* libearly - a library whose constructor allocates a lot before main, and whose destructor frees after most others. */
#include <stdlib.h>
#include <string.h>

#define BLOCKS 100000
static char **blocks;
static char *grown;
size_t grown_bytes;

char **early_blocks(void) { return blocks; }
char *early_grown(void) { return grown; }

__attribute__((constructor)) static void make(void)
{
  blocks = calloc(BLOCKS, sizeof *blocks);
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = malloc(640); /* 64 MB in all */
    memset(blocks[i], i & 0xff, 640);
  }
  grown = calloc(1, 16);
  memcpy(grown, "early", 6);
  for (grown_bytes = 32; grown_bytes <= 1 << 20; grown_bytes *= 2) grown = realloc(grown, grown_bytes);
}

__attribute__((destructor)) static void release(void)
{
  for (int i = 1; i < BLOCKS; i += 2) free(blocks[i]);
  free(blocks);
  free(grown);
}
