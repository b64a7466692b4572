/* libtls - 4 KB of thread-local storage; tests load many copies of it. */
#include <stdlib.h>
#include <string.h>

static _Thread_local char storage[4096];
int tls_touch(int n)
{
  char *p = malloc(100);
  memset(storage, n, sizeof storage);
  p[0] = storage[4095];
  int got = p[0];
  free(p);
  return got;
}
