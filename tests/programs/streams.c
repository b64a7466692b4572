/* streams - prints the present streams of the segments that one run left behind: `streams TOKEN [remove]`.
 *
 * One line a target: `target PID NAME`, then one a stream in order: presents, failed, symbol, route, kind, display, drawable, tid.
 * The words are separated by single spaces; exit 1 when no segment carries the token.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../shm/layout.h"
#include "../../shm/present.h"

static int show(const char *path, uint64_t token, int remove_it)
{
  static struct m6_header h;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  int found = read(fd, &h, sizeof h) == (ssize_t)sizeof h && h.magic == M6_SEGMENT_MAGIC && h.run_token == token;
  close(fd);
  if (!found) return 0;
  printf("target %u %.64s unseen %u refused %" PRIu64 "\n", h.pid, h.name, h.unseen, h.streams_refused);
  for (int i = 0; i < M6_STREAMS; i++) {
    const struct m6_stream *s = &h.streams[i];
    if (s->kind == 0) continue;
    printf("%" PRIu64 " %" PRIu64 " %s %s %u %" PRIx64 " %" PRIx64 " %u\n", s->presents, s->failed,
           m6_symbol_name(s->symbol), m6_route_name(s->route), s->kind, s->display, s->drawable, s->tid);
  }
  if (remove_it) unlink(path);
  return 1;
}

int main(int argc, char **argv)
{
  int found = 0;
  DIR *d = argc > 1 ? opendir(M6_SEGMENT_DIR) : NULL;
  if (!d) return 2;
  for (struct dirent *e; (e = readdir(d));) {
    char path[sizeof M6_SEGMENT_DIR + sizeof e->d_name];
    if (strncmp(e->d_name, M6_SEGMENT_PREFIX, sizeof M6_SEGMENT_PREFIX - 1) != 0) continue;
    snprintf(path, sizeof path, M6_SEGMENT_DIR "/%s", e->d_name);
    found += show(path, strtoull(argv[1], NULL, 16), argc > 2 && !strcmp(argv[2], "remove"));
  }
  closedir(d);
  return found ? 0 : 1;
}
