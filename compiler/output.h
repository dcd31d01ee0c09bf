/* The files that a compilation writes: under temporary names, and renamed all together at the end. If the compilation
   ends before that, even by a signal, existing files stay unchanged and no new ones are left. */
#ifndef JAXCC_OUTPUT_H
#define JAXCC_OUTPUT_H
#include "diag.h"
#include <sys/types.h>

/* --emit */
typedef enum {
    EMIT_so,
    EMIT_a,
    EMIT_obj,
    EMIT_asm,
    EMIT_llvm,
    EMIT_mlir,
    EMIT_ptx,
    EMIT_jaxpr,
    EMIT_types,
    EMIT_header
} EmitKind;

typedef struct {
    const char *path; /* as the user wrote it: for messages */
    const char *to;   /* what is written: a temporary file beside it, or `path` itself if it is not a regular file */
} Output;

/* Called before the first output for each file that is read ("-": standard input): no output may overwrite it. */
void output_input(const char *path);
/* A new output at `path`; NULL after an error. Standard output ("-"), devices and pipes are written directly, unless
   `file` asks for a regular file, which is then copied there at the end. */
const Output *output_open(Arena *, Diags *, const char *path, bool file);
/* Writes the whole text; false after an error. */
bool output_write(Diags *, const Output *, Str text);
/* A new empty temporary file beside the output `beside`, or for NULL in $TMPDIR or /tmp, removed at the end; NULL after
   an error. */
const char *output_scratch(Arena *, Diags *, const Output *beside);
/* The folder for large temporary files: that of the file `path`, or $TMPDIR or /tmp. */
const char *output_folder(Arena *, const char *path);
/* The end: if `good`, all files get their names or none does; otherwise they are removed. */
bool output_close(Arena *, Diags *, bool good);

/* Called before anything is opened: signals then remove unfinished files, and exceeding a file size limit (ulimit -f)
   is an error of the write. */
void output_guard(void);
/* Removes unfinished files; async-signal-safe. */
void output_remove(void);

/* Runs a tool in a process group of its own, which is killed if the compilation ends: `start` starts it and returns 0
   or an errno, which is passed on. */
int output_run(int (*start)(void *user, pid_t *child), void *user, pid_t *child);
/* Waits for the tool; its status from waitpid, or -1 with errno. */
int output_wait(pid_t child);

#endif
