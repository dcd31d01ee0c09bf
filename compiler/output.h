/* What a compilation writes: files under temporary names, which get their own all together at the end. Whatever ends
   the compilation before that, a signal too, leaves what was there as it was, and nothing else. */
#ifndef JAXCC_OUTPUT_H
#define JAXCC_OUTPUT_H
#include "diag.h"
#include <sys/types.h>

typedef struct {
    const char *path; /* as the user calls it: for messages */
    const char *to;   /* what is written: a temporary file beside it, or, of what is no regular file, itself */
} Output;

/* Before the first output: a file that is read ("-": standard input), which no output may overwrite. */
void output_input(const char *path);
/* A new file at `path`; NULL after an error. Standard output ("-"), devices and pipes are written themselves, unless a
   `file` is needed: then it is copied there at the end. */
const Output *output_open(Arena *, Diags *, const char *path, bool file);
/* Writes all of it; false after an error. */
bool output_write(Diags *, const Output *, Str text);
/* A new empty file beside the output `beside`, or in $TMPDIR or /tmp (NULL), that is removed at the end; NULL after an
   error. */
const char *output_scratch(Arena *, Diags *, const Output *beside);
/* Where large files that nobody sees belong: beside the file `path`, or in $TMPDIR or /tmp. */
const char *output_folder(Arena *, const char *path);
/* The end: files get their names if all is good, and all of them do or none; else they are removed. */
bool output_close(Arena *, Diags *, bool good);

/* Before anything is opened: signals end the compilation without a trace, and a limit of sizes (ulimit -f) is an error
   of who writes. */
void output_guard(void);
/* Removes what is not closed; may be called by a signal handler. */
void output_remove(void);

/* A tool in a process group of its own, which is ended with the compilation: `start` starts it, and what it returns, 0
   or an errno, is returned. */
int output_run(int (*start)(void *user, pid_t *child), void *user, pid_t *child);
/* Waits for it; the status of waitpid, or -1 with errno. */
int output_wait(pid_t child);

#endif
