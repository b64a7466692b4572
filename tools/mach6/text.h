/* text.h - numbers, labels and colours for people.
 *
 * A page collects one output, so that a redraw is one write. Numbers come back in small ring buffers: hold a result no
 * longer than one printf. Nothing here prints a control character that came from outside.
 */
#ifndef M6_TEXT_H
#define M6_TEXT_H

#include <stdint.h>
#include <stdio.h>

struct page {
  FILE *to;
  int colour, utf8;
  int width; /* columns that may be used, 60..100 */
};
enum ink { INK_PLAIN, INK_BOLD, INK_DIM, INK_GOOD, INK_BAD, INK_WARN, INK_BAR, INK_PEAK, INK_COUNT };

/* Settles the locale's character set once. */
void text_init(void);
/* A page on `to` for a reader on file descriptor `fd`: colour only on a terminal and without NO_COLOR. */
struct page page_on(FILE *to, int fd);

const char *ink(const struct page *p, enum ink i); /* the escape sequence that switches it on, or "" */
#define NO_INK(p) ink((p), INK_PLAIN)

const char *t_time(const struct page *p, double seconds); /* "16.6 ms"; "-" for NaN */
const char *t_bytes(double bytes);                        /* "2.1 KiB" */
const char *t_bytes_signed(double bytes);                 /* "+2.1 KiB", "0 B" */
const char *t_count(uint64_t n);                          /* "1,571" */
const char *t_ratio(double r);                            /* "0.29 %", "14 %" */
const char *t_short(double v);                            /* the same in six columns: "103k", "5.2M" */
const char *t_number(double v);                           /* "4.0", "413", "0.02": three digits that matter */

/* A label or path in exactly `columns` columns when positive (cut with an ellipsis, padded), at its own width when
 * 0. */
void t_label(const struct page *p, const char *label, int columns);
int t_columns(const struct page *p, const char *label);
/* A foreign text of many lines: printable characters, newlines and tabs as they are, all else as what it is; what is no
 * UTF-8 is replaced. */
void t_text(const struct page *p, const char *text, size_t bytes);
/* A text of our own, wrapped to the page, lines after the first indented. */
void t_wrap(const struct page *p, int indent, const char *text);
/* Lines that are made already, colours and all, onto the page: what is too wide goes on in the next line. */
void t_fold(const struct page *p, const char *lines);

#endif
