/* hostile_names - scopes and threads whose names are what no report should stumble over (S01): quotes, newlines, controls, formats, markup,
 * formulas, invalid UTF-8, nothing at all, 64 KB. Prints how many scopes it made. */
/* flags: -O1 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void (*mark)(const char *), (*done)(void), (*frame)(void);
static const char *const names[] = {"say \"hi\"",    "a,b;c",     "two\nlines", "\x01\x1b[31m",
                                    "%s%n",          "</script>", "=1+1",       "\xff\xc0",
                                    "\xed\xa0\x80x", "",          "\\u0000",    "{{}}"};
enum { N = sizeof names / sizeof names[0] };
static char big[65537];

static void scope(const char *name)
{
  mark(name);
  done();
}
static void *thread(void *name)
{
  char comm[16];
  strncpy(comm, name, sizeof comm - 1);
  comm[sizeof comm - 1] = 0;
  pthread_setname_np(pthread_self(), comm);
  for (int i = 0; i < 10; i++) scope(name);
  struct timespec t = {0, 60000000}; /* so that its name can be read */
  nanosleep(&t, NULL);
  return NULL;
}

int main(void)
{
  *(void **)&mark = dlsym(RTLD_DEFAULT, "mach6_mark");
  *(void **)&done = dlsym(RTLD_DEFAULT, "mach6_done");
  *(void **)&frame = dlsym(RTLD_DEFAULT, "mach6_frame");
  if (!mark || !done || !frame) return 1;
  memset(big, 'z', sizeof big - 1);
  for (int f = 0; f < 5; f++) {
    for (int i = 0; i < N; i++) scope(names[i]);
    scope(big);
    frame();
  }
  for (int i = 0; i < N; i++) {
    pthread_t t;
    pthread_create(&t, NULL, thread, (void *)names[i]);
    pthread_join(t, NULL);
  }
  frame();
  printf("scopes %d\n", 5 * (N + 1) + 10 * N);
  return 0;
}
