/* Diagnostics: collected while a stage works, printed with the source line and a caret. */
#ifndef JAXCC_DIAG_H
#define JAXCC_DIAG_H
#include "str.h"
#include <stdio.h>

/* A place in a source text: bytes [at, at + n) of file number `file`. */
typedef struct {
    uint32_t file, at, n;
} Span;
enum { INPUT_FILE }; /* the text that is compiled; others: --in-type, stdlib/ */

typedef enum {
#define WARNING(id, name, on, help) W_##id,
#include "warnings.def"
    NWARNINGS
} Warning;

typedef struct Diags Diags;

Diags *diags_new(Arena *);
/* What is reported here is forgotten: to try what may fail. The texts are those of `from`. */
Diags *diags_aside(const Diags *from);
/* Registers a source text; returns its file number. */
uint32_t diags_source(Diags *, const char *path, Str text);
Str diags_text(const Diags *, uint32_t file);

/* An error at `span`; its value is false, so that a rule can `return diag(...)`: a macro, so that callers are compiled
   and analysed with that known. */
#define diag(...) (diag_error(__VA_ARGS__), diag_false())
__attribute__((format(printf, 3, 4))) void diag_error(Diags *, Span, const char *fmt, ...);
static inline bool diag_false(void) { return false; }
/* A note on the previous error or warning. */
__attribute__((format(printf, 3, 4))) void diag_note(Diags *, Span, const char *fmt, ...);
/* What is reported from now on has the note `why`, as "for --grad", printed where it differs from that of the error or
   warning before, unless the message begins with that flag; NULL: none. */
void diag_context(Diags *, const char *why);
/* A warning, if it is enabled; with -Werror an error. */
__attribute__((format(printf, 4, 5))) void diag_warn(Diags *, Warning, Span, const char *fmt, ...);
/* An error without a place in the text: about a file, a tool, the command line; false. */
#define diag_plain(...) (diag_plain_error(__VA_ARGS__), diag_false())
__attribute__((format(printf, 2, 3))) void diag_plain_error(Diags *, const char *fmt, ...);

uint32_t diag_errors(const Diags *);
/* Sets a warning or group by its option text after "-W" ("all", "no-x", "error", "error=x"); false if unknown. */
bool diag_option(Diags *, Str);
/* The name of a warning or group that this misspelt option text may mean; NULL when none is close. */
const char *diag_option_similar(Str);
/* Prints the collected diagnostics in the order of the text, 20 errors and 100 warnings at most, in colour if `colour`,
   and forgets them. */
void diag_flush(Diags *, FILE *, bool colour);

/* Words that depend on a number of things: "s" unless it is one; "is" or "are"; irregular plurals. */
static inline const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }
static inline const char *is_are(uint64_t n) { return n == 1 ? "is" : "are"; }
static inline const char *entries(uint64_t n) { return n == 1 ? "entry" : "entries"; }
static inline const char *axes_word(uint64_t n) { return n == 1 ? "axis" : "axes"; }

/* 1-based line and byte column of a place. */
typedef struct {
    uint32_t line, col;
} LineCol;
LineCol diag_where(const Diags *, Span);
const char *diag_path(const Diags *, uint32_t file);

#endif
