#include "diag.h"
#include <stdarg.h>

typedef enum { SAYS_ERROR, SAYS_WARNING, SAYS_NOTE } Says;
typedef struct {
    Says says;
    bool placed;
    Span span;
    Str text;
    Warning warning; /* for "[-Wname]"; NWARNINGS: none */
} Message;

typedef struct {
    const char *path;
    Str text;
    uint32_t *lines; /* where each line starts; NULL until asked for */
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

enum { MOST_ERRORS = 20, MOST_WARNINGS = 100, SOURCE_SHOWN = 120 };

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
    uint32_t errors, warnings;
    bool dropped; /* the message before was one too many, or said already, so its notes are too */
    bool on[NWARNINGS], is_error[NWARNINGS];
};

Diags *diags_new(Arena *arena) {
    Diags *d = arena_new(arena, Diags, 1);
    d->arena = arena;
    for (unsigned w = 0; w < NWARNINGS; w++)
        d->on[w] = warning_info[w].on;
    return d;
}

uint32_t diags_source(Diags *d, const char *path, Str text) {
    Source s = {str_c(d->arena, str(path)), text, NULL, 0};
    push(d->arena, &d->sources, s);
    return d->sources.n - 1;
}

Str diags_text(const Diags *d, uint32_t file) { return d->sources.at[file].text; }
const char *diag_path(const Diags *d, uint32_t file) { return d->sources.at[file].path; }
uint32_t diag_errors(const Diags *d) { return d->errors; }

__attribute__((format(printf, 6, 0))) static void add(Diags *d, Says says, bool placed, Span span,
                                                      Warning w, const char *fmt, va_list args) {
    if (says == SAYS_ERROR) d->dropped = d->errors++ >= MOST_ERRORS;
    if (says == SAYS_WARNING) d->dropped = d->warnings++ >= MOST_WARNINGS;
    if (d->dropped) return;
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *text = arena_new(d->arena, char, (size_t)(n < 0 ? 0 : n) + 1);
    if (n > 0) vsnprintf(text, (size_t)n + 1, fmt, args);
    for (uint32_t i = 0; i < d->messages.n && says != SAYS_NOTE && !d->dropped; i++) {
        const Message *m = &d->messages.at[i];
        d->dropped = m->says == says && m->placed == placed && m->span.file == span.file && m->span.at == span.at &&
                     m->span.n == span.n && str_eq(m->text, str(text));
    }
    if (d->dropped) return;
    push(d->arena, &d->messages, ((Message){says, placed, span, str(text), w}));
}

bool diag(Diags *d, Span span, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    add(d, SAYS_ERROR, true, span, NWARNINGS, fmt, args);
    va_end(args);
    return false;
}

bool diag_plain(Diags *d, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    add(d, SAYS_ERROR, false, (Span){0}, NWARNINGS, fmt, args);
    va_end(args);
    return false;
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
    Str name = option;
    const char *best = NULL;
    starts(name, "no-", &name);
    starts(name, "error=", &name);
    uint32_t distance = name.n / 3 + 1;
    for (unsigned w = 0; w < NWARNINGS; w++) {
        uint32_t d = str_distance(name, str(warning_info[w].name));
        if (d < distance) best = warning_info[w].name, distance = d;
    }
    return best;
}

/* The starts of the lines are found once, so that a place costs a binary search. */
static const Source *source_lines(const Diags *d, uint32_t file) {
    Source *s = &d->sources.at[file];
    if (s->lines) return s;
    uint32_t n = 1;
    for (uint32_t i = 0; i < s->text.n; i++)
        n += s->text.at[i] == '\n';
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

/* The source line with a caret under the place; of a long line what surrounds the place. */
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

static void show(const Diags *d, FILE *out, const Message *m, bool colour) {
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
    fprintf(out, "%s%s:%s%s %.*s", colour ? tint[m->says] : "", word[m->says], plain,
            m->says == SAYS_NOTE ? "" : bold, SF(m->text));
    if (m->warning != NWARNINGS)
        fprintf(out, " [-W%s%s]", m->says == SAYS_ERROR ? "error," : "",
                warning_info[m->warning].name);
    fprintf(out, "%s\n", plain);
    if (m->placed) show_source(d, out, m->span);
}

void diag_flush(Diags *d, FILE *out, bool colour) {
    each (const Message, m, d->messages)
        show(d, out, m, colour);
    if (d->errors > MOST_ERRORS)
        fprintf(out, "jaxcc: note: %u more errors are not shown\n", d->errors - MOST_ERRORS);
    d->messages.n = d->errors = d->warnings = 0;
}
