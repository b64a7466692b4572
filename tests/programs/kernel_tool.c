/* kernel_tool.c - mach6's kernel commands by themselves: kernel_tool probe ... */
/* links: tools/mach6/probe.c build/libmach6kernel.a -lbpf -ldw -lelf -liberty */
#include <stdio.h>
#include <string.h>

#include "tools/mach6/probe.h"

int main(int argc, char **argv)
{
  if (argc > 1 && strcmp(argv[1], "probe") == 0) return mach6_probe_main(argc - 1, argv + 1);
  fprintf(stderr, "usage: kernel_tool probe ...\n");
  return 2;
}
