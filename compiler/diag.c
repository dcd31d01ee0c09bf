#include "diag.h"
#include "intern.h"
#include <stdarg.h>
#include <stdlib.h>

typedef enum { SAYS_ERROR, SAYS_WARNING, SAYS_NOTE } Says;
typedef struct {
    Says says;
    bool placed;
    Span span;
    Str text;
    Warning warning;     /* for "[-Wname]"; NWARNINGS: none */
    const char *context; /* of diag_context */
} Message;

typedef struct {
    const char *path;
    Str text;
    uint32_t *lines; /* where each line starts; NULL until needed */
    uint32_t nlines;
} Source;

typedef struct {
    const char *name;
    bool on;
} WarningInfo;
static const WarningInfo warning_info[NWARNINGS] = {
#define WARNING(id, name, on, help) [W_##id] = {name, on},
#include "warnings.def"
};

enum {
    MOST_ERRORS = 20, /* shown, out of */
    MOST_KEPT = 10000,
    MOST_WARNINGS = 100,
    SOURCE_SHOWN = 120
};

struct Diags {
    Arena *arena;
    struct {
        Source *at;
        uint32_t n, cap;
    } sources;
    struct {
        Message *at;
        uint32_t n, cap;
    } messages;
    Intern said; /* messages reported so far */
    const char *context;
    uint32_t errors, warnings;
    bool dropped; /* the last message was dropped, as one too many or a repetition, and so are its notes */
    bool on[NWARNINGS], is_error[NWARNINGS];
};

Diags *diags_new(Arena *arena) {
    Diags *d = arena_new(arena, Diags, 1);
    d->arena = d->said.arena = arena;
    for (unsigned w = 0; w < NWARNINGS; w++) d->on[w] = warning_info[w].on;
    return d;
}

Diags *diags_aside(const Diags *from) {
    Diags *d = diags_new(from->arena);
    d->sources = from->sources;
    return d;
}

uint32_t diags_source(Diags *d, const char *path, Str text) {
    Source s = {str_c(d->arena, str(path)), text, NULL, 0};
    push(d->arena, &d->sources, s);
    return d->sources.n - 1;
}

Str diags_text(const Diags *d, uint32_t file) { return d->sources.at[file].text; }
const char *diag_path(const Diags *d, uint32_t file) { return d->sources.at[file].path; }
void diag_context(Diags *d, const char *why) { d->context = why; }
uint32_t diag_errors(const Diags *d) { return d->errors; }

/* Has it been reported already? */
static bool again(Diags *d, const Message *m) {
    Str key = str_format(d->arena, "%d %d %u %u %u %.*s", m->says, m->placed, m->span.file, m->span.at, m->span.n,
                         SF(m->text));
    bool fresh;
    intern(&d->said, key.at, key.n, &fresh);
    return !fresh;
}

__attribute__((format(printf, 6, 0))) static void add(Diags *d, Says says, bool placed, Span span, Warning w,
                                                      const char *fmt, va_list args) {
    if (says == SAYS_ERROR) d->dropped = d->errors++ >= MOST_KEPT;
    if (says == SAYS_WARNING) d->dropped = d->warnings++ >= MOST_KEPT;
    if (d->dropped) return;
    va_list twice;
    va_copy(twice, args);
    int n = vsnprintf(NULL, 0, fmt, twice);
    va_end(twice);
    char *text = arena_new(d->arena, char, (size_t)(n < 0 ? 0 : n) + 1);
    if (n > 0) vsnprintf(text, (size_t)n + 1, fmt, args);
    Message m = {says, placed, span, str(text), w, says == SAYS_NOTE ? NULL : d->context};
    d->dropped = says != SAYS_NOTE && again(d, &m);
    if (!d->dropped) push(d->arena, &d->messages, m);
}

void diag_error(Diags *d, Span span, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    add(d, SAYS_ERROR, true, span, NWARNINGS, fmt, args);
    va_end(args);
}

void diag_plain_error(Diags *d, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    add(d, SAYS_ERROR, false, (Span){0}, NWARNINGS, fmt, args);
    va_end(args);
}

void diag_note(Diags *d, Span span, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    add(d, SAYS_NOTE, true, span, NWARNINGS, fmt, args);
    va_end(args);
}

void diag_warn(Diags *d, Warning w, Span span, const char *fmt, ...) {
    d->dropped = !d->on[w];
    if (d->dropped) return;
    va_list args;
    va_start(args, fmt);
    add(d, d->is_error[w] ? SAYS_ERROR : SAYS_WARNING, true, span, w, fmt, args);
    va_end(args);
}

static bool starts(Str s, const char *with, Str *rest) {
    uint32_t n = (uint32_t)strlen(with);
    if (s.n < n || memcmp(s.at, with, n) != 0) return false;
    *rest = (Str){s.at + n, s.n - n};
    return true;
}

bool diag_option(Diags *d, Str option) {
    Str name = option, all = S("all");
    bool no = starts(option, "no-", &name), error = false;
    if (str_is(name, "error"))
        name = all, error = true;
    else
        error = starts(name, "error=", &name);
    bool known = str_is(name, "all") || str_is(name, "extra") || str_is(name, "everything");
    bool every = known;
    for (unsigned w = 0; w < NWARNINGS; w++) {
        if (!every && !str_is(name, warning_info[w].name)) continue;
        known = true;
        if (error) d->is_error[w] = !no;
        if (error ? !no && !every : true) d->on[w] = !no;
    }
    return known;
}

const char *diag_option_similar(Str option) {
    enum { LETTERS = 3 };
    Str name = option;
    const char *best = NULL;
    starts(name, "no-", &name);
    starts(name, "error=", &name);
    Similar near = similar_to(name, edits_of(name, LETTERS));
    for (unsigned w = 0; w < NWARNINGS; w++)
        if (similar_offer(&near, str(warning_info[w].name))) best = warning_info[w].name;
    return best;
}

/* The starts of the lines are found once, so that a place costs a binary search. */
static const Source *source_lines(const Diags *d, uint32_t file) {
    Source *s = &d->sources.at[file];
    if (s->lines) return s;
    uint32_t n = 1;
    for (uint32_t i = 0; i < s->text.n; i++) n += s->text.at[i] == '\n';
    s->lines = arena_new(d->arena, uint32_t, n);
    for (uint32_t i = 0; i < s->text.n; i++)
        if (s->text.at[i] == '\n') s->lines[++s->nlines] = i + 1;
    s->nlines = n;
    return s;
}

LineCol diag_where(const Diags *d, Span span) {
    const Source *s = source_lines(d, span.file);
    uint32_t lo = 0, hi = s->nlines;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (s->lines[mid] <= span.at)
            lo = mid;
        else
            hi = mid;
    }
    return (LineCol){lo + 1, span.at - s->lines[lo] + 1};
}

/* The source line with a caret under the place; of a long line the part around the place. */
static void show_source(const Diags *d, FILE *out, Span span) {
    const Source *s = source_lines(d, span.file);
    LineCol where = diag_where(d, span);
    uint32_t start = s->lines[where.line - 1];
    uint32_t end = where.line < s->nlines ? s->lines[where.line] - 1 : s->text.n;
    if (end > start && s->text.at[end - 1] == '\r') end--;
    bool cut_left = span.at - start > SOURCE_SHOWN, cut_right;
    if (cut_left) start = span.at - SOURCE_SHOWN / 2;
    cut_right = end > start + 2 * SOURCE_SHOWN;
    if (cut_right) end = start + 2 * SOURCE_SHOWN;
    if (cut_left) fputs("...", out);
    for (uint32_t i = start; i < end; i++) {
        unsigned char c = (unsigned char)s->text.at[i];
        fputc((c < ' ' && c != '\t') || c == 127 ? '?' : c, out);
    }
    fputs(cut_right ? "...\n" : "\n", out);
    if (cut_left) fputs("   ", out);
    for (uint32_t i = start; i < span.at && i < end; i++) {
        unsigned char c = (unsigned char)s->text.at[i];
        if (c < 0x80 || c >= 0xC0) fputc(c == '\t' ? '\t' : ' ', out);
    }
    fputc('^', out);
    for (uint32_t i = 1; i < span.n && span.at + i < end; i++) {
        unsigned char c = (unsigned char)s->text.at[span.at + i];
        if (c < 0x80 || c >= 0xC0) fputc('~', out);
    }
    fputc('\n', out);
}

/* `source`: with its line of the source. */
static void show(const Diags *d, FILE *out, const Message *m, bool source, bool colour) {
    static const char *const word[] = {"error", "warning", "note"};
    static const char *const tint[] = {"\033[1;31m", "\033[1;35m", "\033[1;36m"};
    const char *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";
    fputs(bold, out);
    if (m->placed) {
        LineCol at = diag_where(d, m->span);
        fprintf(out, "%s:%u:%u: ", diag_path(d, m->span.file), at.line, at.col);
    } else {
        fputs("jaxcc: ", out);
    }
    fprintf(out, "%s%s:%s%s %.*s", colour ? tint[m->says] : "", word[m->says], plain, m->says == SAYS_NOTE ? "" : bold,
            SF(m->text));
    if (m->warning != NWARNINGS)
        fprintf(out, " [-W%s%s]", m->says == SAYS_ERROR ? "error," : "", warning_info[m->warning].name);
    fprintf(out, "%s\n", plain);
    if (m->placed && source) show_source(d, out, m->span);
}

/* Does the message begin with the only flag that its context names, as `--grad wants` for --grad? */
static bool says_why(const Message *m) {
    Str flag;
    if (!starts(str(m->context), "for ", &flag) || strstr(m->context, " of ") || strstr(m->context, ", after "))
        return false;
    size_t n = strcspn(flag.at, "=");
    return m->text.n >= n && memcmp(m->text.at, flag.at, n) == 0;
}
/* Why it was examined at all: the place is that of the message itself. */
static void show_context(const Diags *d, FILE *out, const Message *m, bool colour) {
    Message note = {SAYS_NOTE, m->placed, m->span, str(m->context), NWARNINGS, NULL};
    show(d, out, &note, false, colour);
}

/* ---- in the order of the text: each error or warning is followed by its notes */

typedef struct {
    const Message *m;
    uint32_t n; /* with its notes */
} Said;

/* Messages without a place come last, in the order of their reports. */
static int said_before(const void *a, const void *b) {
    const Message *x = ((const Said *)a)->m, *y = ((const Said *)b)->m;
    if (x->placed != y->placed) return x->placed ? -1 : 1;
    if (x->placed && x->span.file != y->span.file) return x->span.file < y->span.file ? -1 : 1;
    if (x->placed && x->span.at != y->span.at) return x->span.at < y->span.at ? -1 : 1;
    return x < y ? -1 : x > y;
}

void diag_flush(Diags *d, FILE *out, bool colour) {
    Said *said = arena_new(d->arena, Said, d->messages.n);
    uint32_t n = 0, shown[SAYS_NOTE] = {0}, hidden = d->errors > MOST_KEPT ? d->errors - MOST_KEPT : 0;
    static const uint32_t most[SAYS_NOTE] = {[SAYS_ERROR] = MOST_ERRORS, [SAYS_WARNING] = MOST_WARNINGS};
    const char *context = NULL;
    Says says = SAYS_NOTE; /* the message that has had it */
    each(const Message, m, d->messages) {
        if (m->says != SAYS_NOTE) said[n++].m = m;
        if (n) said[n - 1].n++;
    }
    if (n) qsort(said, n, sizeof *said, said_before);
    for (Said *s = said; s < said + n; s++) {
        if (shown[s->m->says]++ >= most[s->m->says]) continue;
        for (uint32_t i = 0; i < s->n; i++) show(d, out, s->m + i, true, colour);
        const char *why = s->m->context && !says_why(s->m) ? s->m->context : NULL;
        if (why && (why != context || s->m->says != says)) show_context(d, out, s->m, colour);
        context = why, says = s->m->says;
    }
    if (shown[SAYS_ERROR] > MOST_ERRORS) hidden += shown[SAYS_ERROR] - MOST_ERRORS;
    if (hidden) fprintf(out, "jaxcc: note: %u more error%s not shown\n", hidden, hidden == 1 ? " is" : "s are");
    d->messages.n = d->errors = d->warnings = 0;
}
