/* exec.c - the exec functions: a note in the segment of what this process is about to become.
 *
 * Promise: an exec is done as it was asked for, by the next function in line, and one that fails leaves no trace. The
 * note tells a collector, however short the next program is, at which exec the shim was lost; whether it was is not
 * judged here but by what came after: a shim in the next program makes a segment of its own.
 * A forked child says nothing, the segment is its parent's; nor does a child of vfork, which shares its parent's memory
 * and so the gate, but has a number of its own. The list forms become the array forms, as in libc. Async-signal-safe:
 * the next functions are looked up at the start, since here it may be a child of a process with threads, where a lookup
 * may hang. May call: system calls, and libc's plain string functions. errno is kept.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

extern char **environ;

/* ---- the next in line ---------------------------------------------------------------------------------------------
 * */
typedef int (*exec_function)(const char *, char *const *);
typedef int (*exec_function_env)(const char *, char *const *, char *const *);

enum which { EXECV, EXECVP, EXECVE, EXECVPE, WHICH };
static const char *const names[WHICH] = {"execv", "execvp", "execve", "execvpe"};
static void *next[WHICH];

void m6_next_execs(void)
{
  for (int w = 0; w < WHICH; w++) m6_poke(&next[w], m6_next(names[w]));
}

/* ---- the note -----------------------------------------------------------------------------------------------------
 * */

static const char *value(char *const *env, const char *name, size_t n)
{
  for (; env && *env; env++)
    if (strncmp(*env, name, n) == 0 && (*env)[n] == '=') return *env + n + 1;
  return NULL;
}
#define VALUE(env, name) value(env, name, sizeof name - 1)

static int note(const char *path, char *const *env)
{
  struct m6_header *h = m6_seg;
  if (!h || !path || !m6_peek(&m6_gate.alive) || (uint32_t)syscall(SYS_getpid) != h->pid) return 0;
  size_t n = strlen(path), most = sizeof h->exec_path - 1;
  if (n > most) path += n - most, n = most; /* the end of it says more */
  memcpy(h->exec_path, path, n + 1);
  const char *preload = VALUE(env, "LD_PRELOAD");
  uint32_t how = M6_EXEC_UNDER_WAY;
  if (preload && strstr(preload, "libmach6")) how |= M6_EXEC_PRELOAD;
  if (VALUE(env, "MACH6_RUN")) how |= M6_EXEC_TOKEN;
  m6_publish(&h->exec, how);
  return 1;
}

static int carry_out(enum which w, const char *path, char *const *argv, char *const *env)
{
  void *f = m6_peek(&next[w]);
  if (m6_unlikely(!f) && !(f = m6_next(names[w]))) {
    errno = ENOSYS;
    return -1;
  }
  int with_env = w == EXECVE || w == EXECVPE, noted = note(path, with_env ? env : environ);
  int result = with_env ? ((exec_function_env)f)(path, argv, env) : ((exec_function)f)(path, argv);
  if (noted) m6_publish(&m6_seg->exec, 0); /* it came back */
  return result;
}

/* ---- the hooks: by names of our own, since libc's header calls what they look at never null -------------------------
 * */
#define HOOK(name, ...)                                                                                                \
  M6_EXPORT int m6_hook_##name(__VA_ARGS__) __asm__(#name);                                                            \
  int m6_hook_##name(__VA_ARGS__)

HOOK(execv, const char *path, char *const *argv) { return carry_out(EXECV, path, argv, NULL); }
HOOK(execvp, const char *file, char *const *argv) { return carry_out(EXECVP, file, argv, NULL); }
HOOK(execve, const char *path, char *const *argv, char *const *env) { return carry_out(EXECVE, path, argv, env); }
HOOK(execvpe, const char *file, char *const *argv, char *const *env) { return carry_out(EXECVPE, file, argv, env); }

/* What the list forms are called with, as an array on the stack; an environment stands behind the null that ends them.
 * */
#define LIST_FORM(name, array_form, env)                                                                               \
  HOOK(name, const char *path, const char *first, ...)                                                                 \
  {                                                                                                                    \
    va_list list;                                                                                                      \
    size_t n = 0;                                                                                                      \
    va_start(list, first);                                                                                             \
    for (const char *a = first; a; a = va_arg(list, const char *)) n++;                                                \
    va_end(list);                                                                                                      \
    char *argv[n + 1];                                                                                                 \
    argv[0] = (char *)(uintptr_t)first;                                                                                \
    va_start(list, first);                                                                                             \
    for (size_t i = 1; i <= n; i++) argv[i] = va_arg(list, char *);                                                    \
    int result = carry_out(array_form, path, argv, env);                                                               \
    va_end(list);                                                                                                      \
    return result;                                                                                                     \
  }
LIST_FORM(execl, EXECV, NULL)
LIST_FORM(execlp, EXECVP, NULL)
LIST_FORM(execle, EXECVE, va_arg(list, char *const *))
