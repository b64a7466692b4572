/* dump_options.h - what the command lines of report, export, diff, gate and analyze have in common: their files, wrong
 * use, long help.
 *
 * Each has a struct of options whose parser ends with `default: return dump_option(...)`. All exit with EXIT_USAGE for
 * wrong use.
 */
#ifndef M6_DUMP_OPTIONS_H
#define M6_DUMP_OPTIONS_H

#include <argp.h>
#include <stdio.h>

/* The keys of arguments: takes up to `most` files (1 or 2) into file[], and at the end insists on them all. */
error_t dump_option(int key, char *arg, struct argp_state *state, const char **file, int most);
/* argp_parse for a command that is called NAME. */
void dump_parse(const struct argp *argp, const char *name, int argc, char **argv, void *options);
/* A help filter: what `put` writes stands after the options; argp's doc string must end with "\v". */
char *dump_help(int key, const char *text, void (*put)(FILE *to));

#endif
