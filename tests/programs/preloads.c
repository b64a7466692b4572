/* preloads.c - prints the libraries that it has, one a line, in the loader's order, its own file first. */
#include <link.h>
#include <stdio.h>

static int show(struct dl_phdr_info *i, size_t n, void *p)
{
  printf("%s\n", *i->dlpi_name ? i->dlpi_name : "(program)");
  return 0;
}

int main(void)
{
  dl_iterate_phdr(show, NULL);
  return 0;
}
