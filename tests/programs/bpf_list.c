/* bpf_list.c - programs, maps and links in the kernel whose name begins as said: bpf_list PREFIX. One a line; links are those
 * of such programs. Status 1 when they cannot be listed.
 */
/* links: -lbpf */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  const char *prefix = argc > 1 ? argv[1] : "m6_";
  size_t n = strlen(prefix);
  __u32 id = 0;
  int fd;
  while (bpf_prog_get_next_id(id, &id) == 0) {
    struct bpf_prog_info info = {0};
    __u32 size = sizeof info;
    if ((fd = bpf_prog_get_fd_by_id(id)) < 0) continue;
    if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && strncmp(info.name, prefix, n) == 0)
      printf("program %u %s\n", id, info.name);
    close(fd);
  }
  if (errno != ENOENT) return perror("bpf_list"), 1;
  id = 0;
  while (bpf_map_get_next_id(id, &id) == 0) {
    struct bpf_map_info info = {0};
    __u32 size = sizeof info;
    if ((fd = bpf_map_get_fd_by_id(id)) < 0) continue;
    if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && strncmp(info.name, prefix, n) == 0)
      printf("map %u %s\n", id, info.name);
    close(fd);
  }
  id = 0;
  while (bpf_link_get_next_id(id, &id) == 0) {
    struct bpf_link_info info = {0};
    struct bpf_prog_info program = {0};
    __u32 size = sizeof info, program_size = sizeof program;
    if ((fd = bpf_link_get_fd_by_id(id)) < 0) continue;
    if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0) {
      int p = bpf_prog_get_fd_by_id(info.prog_id);
      if (p >= 0 && bpf_obj_get_info_by_fd(p, &program, &program_size) == 0 && strncmp(program.name, prefix, n) == 0)
        printf("link %u of %s\n", id, program.name);
      if (p >= 0) close(p);
    }
    close(fd);
  }
  return 0;
}
