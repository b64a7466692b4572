/* becomes - a program that becomes another one by one of libc's exec functions, after it failed to become one that is not there.
 *
 *   becomes FORM          execv, execvp, execve, execvpe, execl, execlp, execle: prints FORM and the errno of the failure, then
 *                         becomes itself as `becomes says FORM "a b"`, which prints its arguments and the variable LEFT
 *   becomes fails         the failure alone, then _exit: no destructor runs
 *   becomes fork | vfork  a child becomes true, with an empty environment; then _exit
 */
/* flags: -O1 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *const nothing[] = {NULL};
static char *const with[] = {(char *)"LEFT=given", NULL};

static void become(const char *form, const char *file)
{
  char *argv[] = {(char *)"becomes", (char *)"says", (char *)form, (char *)"a b", NULL};
  if (!strcmp(form, "execv")) execv(file, argv);
  if (!strcmp(form, "execvp")) execvp(file, argv);
  if (!strcmp(form, "execve")) execve(file, argv, with);
  if (!strcmp(form, "execvpe")) execvpe(file, argv, with);
  if (!strcmp(form, "execl")) execl(file, argv[0], argv[1], argv[2], argv[3], NULL);
  if (!strcmp(form, "execlp")) execlp(file, argv[0], argv[1], argv[2], argv[3], NULL);
  if (!strcmp(form, "execle")) execle(file, argv[0], argv[1], argv[2], argv[3], NULL, with);
}

static void child(int shares)
{
  char *argv[] = {(char *)"true", NULL};
  pid_t pid = shares ? vfork() : fork();
  if (pid == 0) {
    execve("/bin/true", argv, nothing);
    _exit(1);
  }
  int status;
  _exit(pid < 0 || waitpid(pid, &status, 0) != pid || status != 0);
}

int main(int argc, char **argv)
{
  const char *form = argc > 1 ? argv[1] : "";
  if (!strcmp(form, "says")) {
    for (int i = 0; i < argc; i++) printf("%s|", argv[i]);
    puts(getenv("LEFT") ? getenv("LEFT") : "-");
    return 3;
  }
  if (!strcmp(form, "fork") || !strcmp(form, "vfork")) child(form[0] == 'v');
  become(strcmp(form, "fails") ? form : "execv", "/nonexistent/file");
  if (!strcmp(form, "fails")) _exit(errno != ENOENT);
  printf("%s failed with %d\n", form, errno);
  fflush(stdout);
  become(form, "/proc/self/exe");
  return 1;
}
