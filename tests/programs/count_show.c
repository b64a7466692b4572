/* count_show FILE... - prints what libcountpreload.so counted, as one JSON object, summed over the files. */
#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
  static const char *const names[] = {"malloc",  "malloc_bytes",  "calloc",    "calloc_bytes",
                                      "realloc", "realloc_bytes", "aligned",   "aligned_bytes",
                                      "frees",   "freed_bytes",   "old_bytes", "failed"};
  enum { WORDS = sizeof names / sizeof *names };
  uint64_t sum[WORDS] = {0}, file[WORDS];
  for (int i = 1; i < argc; i++) {
    FILE *f = fopen(argv[i], "rb");
    if (!f || fread(file, sizeof file, 1, f) != 1) {
      fprintf(stderr, "count_show: %s: cannot read it\n", argv[i]);
      return 1;
    }
    fclose(f);
    for (int w = 0; w < WORDS; w++) sum[w] += file[w];
  }
  for (int w = 0; w < WORDS; w++) printf("%s\"%s\": %" PRIu64, w ? ", " : "{", names[w], sum[w]);
  puts("}");
  return argc < 2;
}
