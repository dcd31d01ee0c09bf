/* Files, read and written whole. */
#ifndef JAXCC_FILE_H
#define JAXCC_FILE_H
#include "diag.h"

/* The bytes of a file ("-": standard input); false after an error. A file of more than `most` bytes is refused without
   reading all of it. */
bool file_read(Arena *, Diags *, const char *path, uint32_t most, Str *text);
#define ALL_OF_IT (UINT32_MAX - 1) /* the largest `most`: what a Str can hold */
/* Writes a file ("-": standard output); messages call it `shown`. */
bool file_write(Diags *, const char *path, const char *shown, Str text);
/* Writes all bytes; on failure returns false and sets errno. */
bool file_put(int fd, Str text);
/* Is there a regular file at this path, or can one be created? False for standard output, devices and pipes. */
bool file_is_regular(const char *path);
/* The path without its last suffix: "a/b.c" → "a/b"; and its last component. */
Str path_stem(Str path);
Str path_base(Str path);

#endif
