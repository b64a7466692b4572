/* libexchange - a plugin with its own view of malloc (the test loads it RTLD_DEEPBIND, or into a namespace of its own). */
/* flags: -fno-builtin */
#include <stdlib.h>
#include <string.h>
void *exchange_make(size_t n) { return memset(malloc(n), 7, n); }
void exchange_free(void *p) { free(p); }
