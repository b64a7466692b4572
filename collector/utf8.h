/* utf8.h - foreign text to valid UTF-8.
 *
 * m6_utf8_clean copies n bytes into out, each byte that is no part of valid UTF-8 (RFC 3629: shortest form, no
 * surrogates, at most U+10FFFF) replaced by U+FFFD, and NUL likewise, because texts travel as C strings too. Never
 * writes more than 3 * n bytes, nor more than `room`; what does not fit is cut at a character. Gives the length;
 * *replaced is set to 1 when something was.
 * m6_utf8_whole gives how much of n bytes is left when a character that is cut off at their end goes; bytes that begin
 * none stay.
 */
#ifndef M6_UTF8_H
#define M6_UTF8_H

#include <stddef.h>

size_t m6_utf8_clean(const char *text, size_t n, char *out, size_t room, int *replaced);
size_t m6_utf8_whole(const char *text, size_t n);

#endif
