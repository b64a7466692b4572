/* libdeep.c - a plugin that exchanges memory with whoever loads it. */
#include <stdlib.h>
#include <string.h>

void *plugin_malloc(size_t n);
void plugin_free(void *p);
void *plugin_realloc(void *p, size_t n);
long plugin_own_work(int rounds);

void *plugin_malloc(size_t n) { return memset(malloc(n), 0x5a, n); }
void plugin_free(void *p) { free(p); }
void *plugin_realloc(void *p, size_t n) { return realloc(p, n); }
long plugin_own_work(int rounds)
{
  long sum = 0;
  for (int i = 0; i < rounds; i++) {
    char *volatile p = calloc(1, 1000);
    sum += p[i % 1000] + 1;
    free(p);
  }
  return sum;
}
