/* Files, read and written whole. */
#ifndef JAXCC_FILE_H
#define JAXCC_FILE_H
#include "diag.h"

/* The bytes of a file ("-": standard input); false after an error. No more than `most` of them are
   read, a file that has more is refused. */
bool file_read(Arena *, Diags *, const char *path, uint32_t most, Str *text);
#define ALL_OF_IT (UINT32_MAX - 1) /* `most` that a Str can hold */
/* Writes a file ("-": standard output), which messages call `shown`. */
bool file_write(Diags *, const char *path, const char *shown, Str text);
/* Writes all of it; false with errno. */
bool file_put(int fd, Str text);
/* A path where a regular file is or may be made; false for standard output, devices and pipes. */
bool file_is_regular(const char *path);
/* The path without its last suffix: "a/b.c" → "a/b"; and its last component. */
Str path_stem(Str path);
Str path_base(Str path);

#endif
