/* early - uses and frees what libearly's constructor made; looks for frame functions that nobody has. */
/* needs: libearly.so */
/* links: -Lbuild/tests/programs -learly -Wl,-rpath,'$ORIGIN' */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **early_blocks(void);
extern char *early_grown(void);

int main(void)
{
  char **b = early_blocks(), *g = early_grown();
  int bad = 0;
  for (int i = 0; i < 100000; i++)
    for (int k = 0; k < 640; k += 639) bad += b[i][k] != (char)(i & 0xff);
  for (int i = 0; i < 100000; i += 2) free(b[i]);
  for (int i = 6; i < 16; i++) bad += g[i] != 0; /* calloc's zeros have come along */
  printf("bad %d\ngrown %s\n", bad, g);
  for (int i = 0; i < 100; i++) {
    void *p = dlsym(RTLD_DEFAULT, "glXSwapBuffers"), *q = dlsym(RTLD_NEXT, "vkQueuePresentKHR");
    if (i == 0) printf("frame functions %s\n", q ? "found" : "missing");
    if (i == 0 && !dlsym(RTLD_DEFAULT, "no_such_function")) printf("error %s\n", strstr(dlerror(), "no_such_function") ? "named" : "?");
    (void)p;
  }
  return 0;
}
