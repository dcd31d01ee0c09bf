#include "options.h"
#include "cname.h"
#include "file.h"
#include "intern.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

/* The command line being read. */
typedef struct {
    Arena *arena;
    Diags *diags;
    Options *o;
    const char *emit, *header;
    bool no_header, no_warnings, deps, version, help;
    uint32_t dims_cap, ffi_cap;
    const char *apart;   /* what the input seems to mean, "--grad=0" for `--grad 0`; or NULL */
    LibraryEntry *entry; /* whose flags are read; NULL: none */
    const char *dim;     /* --vmap-dim, for the next --vmap; NULL: none */
    const char *axis;    /* --vmap-axis, the same */
} Reader;

static const struct {
    const char *name, *suffix;
    EmitKind kind;
    bool text; /* text, which goes to standard output without -o */
} kinds[] = {
    {"so", ".so", EMIT_so, false},       {"a", ".a", EMIT_a, false},
    {"obj", ".o", EMIT_obj, false},      {"asm", ".s", EMIT_asm, true},
    {"llvm", ".ll", EMIT_llvm, true},    {"mlir", ".mlir", EMIT_mlir, true},
    {"ptx", ".ptx", EMIT_ptx, true},     {"jaxpr", ".jaxpr", EMIT_jaxpr, true},
    {"types", NULL, EMIT_types, true},   {"types=all", NULL, EMIT_types, true},
    {"header", ".h", EMIT_header, true},
};
#define NKINDS (sizeof kinds / sizeof *kinds)

/* Reports a wrong command line; returns false. */
__attribute__((format(printf, 1, 2))) static bool wrong(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fputs("jaxcc: error: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

/* ---- one function per row of options.def: takes the value, false after a message */
#define TAKES(id) static bool opt_##id(Reader *r, const char *v)
#define SETS(id, field, value)                                                                                         \
    TAKES(id) {                                                                                                        \
        r->field = value;                                                                                              \
        return true;                                                                                                   \
    }
SETS(o, o->output, v)
SETS(emit, emit, v)
SETS(header, header, v)
SETS(no_header, no_header, true)
SETS(in_type, o->in_type, v)
SETS(consts, o->consts, v)
SETS(target, o->target, v)
SETS(march, o->march, strcmp(v, "native") ? v : NULL)
SETS(mcpu, o->mcpu, strcmp(v, "native") ? v : NULL)
SETS(device_pointers, o->device_pointers, true)
SETS(dlpack, o->dlpack, true)
SETS(g, o->debug, true)
SETS(ffast_math, o->fast_math, true)
SETS(fno_fast_math, o->fast_math, false)
SETS(debug_nans, o->debug_nans, true)
SETS(check_bounds, o->check_bounds, true)
SETS(check, o->check_only, true)
SETS(no_check, o->no_check, true)
SETS(passes, o->passes, true)
SETS(verify, o->verify, true)
SETS(MD, deps, true)
SETS(MP, o->phony_deps, true)
SETS(MF, o->dep_file, v)
SETS(w, no_warnings, true)
SETS(v, o->verbose, true)
SETS(ftime_report, o->time_report, true)
SETS(report, o->report, v)
SETS(save_temps, o->save_temps, true)
SETS(version, version, true)
SETS(help, help, true)

TAKES(ffp_contract) {
    r->o->no_contraction = !strcmp(v, "off");
    return r->o->no_contraction || !strcmp(v, "on") || wrong("-ffp-contract=%s: it is on or off", v);
}
TAKES(threefry_partitionable) {
    bool yes = !strcasecmp(v, "true") || !strcmp(v, "1"), no = !strcasecmp(v, "false") || !strcmp(v, "0");
    r->o->threefry_original = no;
    r->o->threefry_given = true;
    return yes || no || wrong("--threefry-partitionable=%s: it is true or false", v);
}
TAKES(name) {
    if (!cname_valid(str(v))) return wrong("--name: '%s' is not a name that C and C++ can use", v);
    r->o->name = v;
    return true;
}

TAKES(D) {
    const char *equals = strchr(v, '=');
    char *end = NULL;
    errno = 0;
    long long n = equals ? strtoll(equals + 1, &end, 10) : -1;
    if (!equals || equals == v || end == equals + 1 || *end || errno || n < 0)
        return wrong("-D: '%s' is not NAME=N with a number N of at least 0", v);
    Options *o = r->o;
    if (o->ndims == r->dims_cap) o->dims = arena_grow(r->arena, o->dims, o->ndims, &r->dims_cap, sizeof *o->dims);
    o->dims[o->ndims].name = (Str){v, (uint32_t)(equals - v)};
    o->dims[o->ndims++].value = n;
    return true;
}

TAKES(ffi) {
    const char *equals = strchr(v, '='), *colon = strrchr(v, ':');
    if (!equals || equals == v || !colon || colon < equals + 2 || !colon[1])
        return wrong("--ffi: '%s' is not NAME=LIBRARY:SYMBOL", v);
    Options *o = r->o;
    if (o->nffi == r->ffi_cap) o->ffi = arena_grow(r->arena, o->ffi, o->nffi, &r->ffi_cap, sizeof *o->ffi);
    o->ffi[o->nffi++] =
        (FfiBinding){{v, (uint32_t)(equals - v)}, {equals + 1, (uint32_t)(colon - equals - 1)}, str(colon + 1)};
    return true;
}

/* Numbers between commas. */
static bool numbers(Reader *r, const char *option, const char *v, Ints *to) {
    *to = (Ints){arena_new(r->arena, int64_t, strlen(v) + 1), 0};
    for (const char *c = v;; c++) {
        char *end;
        errno = 0;
        to->at[to->n] = strtoll(c, &end, 10);
        if (*c < '0' || *c > '9' || errno || (*end && *end != ','))
            return wrong("%s=%s: it takes numbers of inputs, as in %s=0,2", option, v, option);
        to->n++, c = end;
        if (!*c) return true;
    }
}
static bool add_transform(Reader *r, Transform t) {
    Transforms *all = r->entry ? &r->entry->transforms : &r->o->transforms;
    if (all->n && all->at[all->n - 1].kind == TRANSFORM_LINEARIZE)
        return t.kind == TRANSFORM_LINEARIZE
                   ? wrong("--linearize must be the last transformation, but is given twice")
                   : wrong("--linearize must be the last transformation; %s comes after it", t.text);
    if (all->n) t.before = all->at[all->n - 1].text;
    each(Transform, before, *all) {
        t.nth += before->kind == TRANSFORM_VMAP;
        before->differentiated |= t.kind != TRANSFORM_VMAP;
    }
    t.differentiated = t.kind == TRANSFORM_HESSIAN; /* which differentiates twice */
    push(r->arena, all, t);
    return true;
}
static bool transform(Reader *r, TransformKind kind, const char *option, const char *v) {
    Transform t = {.kind = kind, .text = v ? str_format(r->arena, "%s=%s", option, v).at : option};
    bool listing = kind != TRANSFORM_JVP && kind != TRANSFORM_VJP && kind != TRANSFORM_LINEARIZE;
    if (listing && !numbers(r, option, v ? v : "0", &t.args)) return false;
    for (uint32_t i = 0; i < t.args.n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (t.args.at[k] == t.args.at[i])
                return wrong("%s=%s: input %lld is listed twice", option, v, (long long)t.args.at[i]);
    return add_transform(r, t);
}
/* Axes between commas, or _; from `from` to `end` in the value of --vmap. */
static bool axes(Reader *r, const char *v, const char *from, const char *end, Ints *to) {
    *to = (Ints){arena_new(r->arena, int64_t, (size_t)(end - from) + 1), 0};
    for (const char *c = from;; c++) {
        char *after = (char *)c + 1;
        if (c[0] == '-' && c[1] >= '0' && c[1] <= '9')
            return wrong("--vmap=%s: a negative axis is not allowed: axes count from the first, which is 0", v);
        errno = 0;
        to->at[to->n++] = *c == '_' ? UNBATCHED : strtoll(c, &after, 10);
        if ((*c != '_' && (*c < '0' || *c > '9')) || errno || after > end || (after < end && *after != ','))
            return from == v ? wrong("--vmap=%s: it takes an axis for each input, or _, as in --vmap=0,_,1", v)
                             : wrong("--vmap=%s: it takes an axis for each output, or _, as in --vmap=0:0,_,1", v);
        c = after;
        if (c == end) return true;
    }
}
TAKES(vmap) {
    Transform t = {.kind = TRANSFORM_VMAP, .text = str_format(r->arena, "--vmap=%s", v).at};
    static int64_t first = 0;
    const char *colon = strchr(v, ':');
    bool some = false;
    if (colon && strchr(colon + 1, ':')) return wrong("--vmap=%s: it takes AXES or AXES:OUTAXES", v);
    if (!axes(r, v, v, colon ? colon : v + strlen(v), &t.axes)) return false;
    t.out_axes = (Ints){&first, 1};
    if (colon && !axes(r, v, colon + 1, v + strlen(v), &t.out_axes)) return false;
    each(const int64_t, axis, t.axes) some |= *axis != UNBATCHED;
    t.dim = r->dim, t.axis = r->axis;
    r->dim = r->axis = NULL;
    return some ? add_transform(r, t) : wrong("--vmap=%s: no input is batched: all are _", v);
}
/* Every --vmap-dim names a dimension. */
static bool names_vmap(const Reader *r) {
    if (r->dim) return wrong("--vmap-dim=%s: no --vmap comes after it", r->dim);
    return !r->axis || wrong("--vmap-axis=%s: no --vmap comes after it", r->axis);
}
TAKES(vmap_dim) {
    if (r->dim) return wrong("--vmap-dim is given twice for one --vmap: %s and %s", r->dim, v);
    if (!cname_valid(str(v))) return wrong("--vmap-dim: '%s' is not a name that C and C++ can use", v);
    r->dim = v;
    return true;
}
TAKES(vmap_axis) {
    if (r->axis) return wrong("--vmap-axis is given twice for one --vmap: %s and %s", r->axis, v);
    if (!*v) return wrong("--vmap-axis: it takes a name");
    r->axis = v;
    return true;
}
TAKES(vmap_cond) {
    static const char *const ways[] = {
        [BRANCHES_SKIP] = "skip", [BRANCHES_EACH] = "branch", [BRANCHES_SELECT] = "select"};
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        r->o->branches = (Branches)i;
        if (!strcmp(v, ways[i])) return true;
    }
    return wrong("--vmap-cond=%s: it is skip, branch or select", v);
}
enum { MOST_RULES = 500 }; /* output.c remembers the files */
TAKES(rule) {
    const char *equals = strchr(v, '='), *comma = strchr(v, ',');
    if (!equals || equals == v || (comma && comma < equals))
        return wrong("--rule: '%s' is not NAME=FILE or NAME=FWD,BWD", v);
    if (!equals[1] || comma == equals + 1 || (comma && !comma[1]))
        return wrong("--rule: '%s' names no file for the rule", v);
    if (comma && strchr(comma + 1, ','))
        return wrong("--rule: '%s' has more than two files: a rule is one program, or fwd and bwd", v);
    if (r->o->rules.n == MOST_RULES) return wrong("--rule: more than %d rules", MOST_RULES);
    RuleFiles rule = {.name = {v, (uint32_t)(equals - v)}};
    each(const RuleFiles, other, r->o->rules)
        if (str_eq(other->name, rule.name)) return wrong("--rule: '%.*s' is given two rules", SF(rule.name));
    rule.file[0] = comma ? str_c(r->arena, (Str){equals + 1, (uint32_t)(comma - equals - 1)}) : equals + 1;
    rule.file[1] = comma ? comma + 1 : NULL;
    push(r->arena, &r->o->rules, rule);
    return true;
}
TAKES(jvp) { return transform(r, TRANSFORM_JVP, "--jvp", v); }
TAKES(vjp) { return transform(r, TRANSFORM_VJP, "--vjp", v); }
TAKES(grad) { return transform(r, TRANSFORM_GRAD, "--grad", v); }
TAKES(value_and_grad) { return transform(r, TRANSFORM_VALUE_AND_GRAD, "--value-and-grad", v); }
TAKES(jacfwd) { return transform(r, TRANSFORM_JACFWD, "--jacfwd", v); }
TAKES(jacrev) { return transform(r, TRANSFORM_JACREV, "--jacrev", v); }
TAKES(hessian) { return transform(r, TRANSFORM_HESSIAN, "--hessian", v); }
TAKES(linearize) { return transform(r, TRANSFORM_LINEARIZE, "--linearize", v); }
TAKES(tape) {
    static const char bound[] = "bound:";
    char *end = NULL;
    errno = 0;
    r->o->tape = 0;
    if (!strcmp(v, "count")) return true;
    if (!strncmp(v, bound, sizeof bound - 1)) r->o->tape = strtoll(v + sizeof bound - 1, &end, 10);
    bool good = end && !*end && !errno && r->o->tape > 0 && r->o->tape <= INT32_MAX;
    return good || wrong("--tape=%s: it is count, or bound:N with a number N from 1 to 2147483647", v);
}
TAKES(remat) {
    static const struct {
        const char *name;
        Keep keep;
        int64_t levels;
    } ways[] = {{"none", KEEP_LEAST, 0}, {"all", KEEP_CARRY, 0}, {"dots", KEEP_DOTS, 0}, {"sqrt", KEEP_SEGMENTS, 2}};
    static const char levels[] = "levels:";
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        r->o->keep = ways[i].keep, r->o->levels = ways[i].levels;
        if (!strcmp(v, ways[i].name)) return true;
    }
    const char *digit = v + sizeof levels - 1;
    bool good = !strncmp(v, levels, sizeof levels - 1) && digit[0] >= '1' && digit[0] <= '0' + MOST_LEVELS && !digit[1];
    r->o->levels = good ? digit[0] - '0' : 0;
    return good ||
           wrong("--remat=%s: it is none, all, dots, sqrt, or levels:L with a number L from 1 to %d", v, MOST_LEVELS);
}
static bool entry_flag(Reader *r, const char *flag);
TAKES(entry) {
    const char *colon = strchr(v, ':');
    Str name = {v, colon ? (uint32_t)(colon - v) : 0};
    if (!colon || !name.n) return wrong("--entry: '%s' is not NAME:FLAGS, as in 'g:--grad=0'", v);
    if (!cname_valid(name)) return wrong("--entry: '%.*s' is not a name that C and C++ can use", SF(name));
    LibraryEntry e = {.name = str_c(r->arena, name)};
    if (!names_vmap(r)) return false;
    r->entry = &e;
    bool good = true;
    for (const char *c = colon + 1; good && *(c += strspn(c, " \t\n"));) {
        Str flag = {c, (uint32_t)strcspn(c, " \t\n")};
        good = entry_flag(r, str_c(r->arena, flag));
        c += flag.n;
    }
    good = good && names_vmap(r);
    r->entry = NULL;
    if (good) push(r->arena, &r->o->entries, e);
    return good;
}

TAKES(O) {
    if (strlen(v) != 1 || v[0] < '0' || v[0] > '3')
        return wrong("unknown option '-O%s'; the levels are 0, 1, 2 and 3", v);
    r->o->opt = v[0] - '0';
    return true;
}

TAKES(W) {
    const char *near = diag_option_similar(str(v));
    if (diag_option(r->diags, str(v))) return true;
    return near ? wrong("unknown warning option '-W%s'; the warning is called '%s'", v, near)
                : wrong("unknown warning option '-W%s'", v);
}

/* ---- the table */
typedef enum { FLAG, OPTIONAL, EQUALS, JOINED, EITHER } Shape;
typedef struct {
    const char *spelling;
    Shape shape;
    const char *meta, *help;
    bool (*take)(Reader *, const char *);
} Option;
static const Option options[] = {
#define OPTION(id, spelling, shape, meta, help) {spelling, shape, meta, help, opt_##id},
#include "options.def"
};
#define NOPTIONS (sizeof options / sizeof *options)

/* What follows `beginning` in `arg`; NULL: it does not begin so. */
static const char *text_after(const char *arg, const char *beginning) {
    while (*beginning && *arg == *beginning) arg++, beginning++;
    return *beginning ? NULL : arg;
}
/* The longest option that `arg` begins with; *value is the text joined to it, or NULL. */
static const Option *option_find(const char *arg, const char **value) {
    const Option *best = NULL;
    size_t length = 0;
    for (const Option *x = options; x < options + NOPTIONS; x++) {
        size_t n = strlen(x->spelling);
        const char *rest = text_after(arg, x->spelling);
        if (!rest || (best && n <= length)) continue;
        bool whole = *rest == 0;
        bool equals = x->shape == EQUALS || x->shape == OPTIONAL;
        if (!whole && (x->shape == FLAG || (equals && *rest != '='))) continue;
        best = x;
        length = n;
        *value = whole ? NULL : rest + equals;
    }
    return best;
}

static bool transforms(const Option *x) {
    static bool (*const all[])(Reader *, const char *) = {opt_jvp,    opt_vjp,      opt_grad,      opt_value_and_grad,
                                                          opt_vmap,   opt_vmap_dim, opt_vmap_axis, opt_jacfwd,
                                                          opt_jacrev, opt_hessian,  opt_linearize};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (x->take == all[i]) return true;
    return false;
}
/* Is it an option without a value, given one? */
static bool valued_flag(const char *arg) {
    Str given = {arg, (uint32_t)strcspn(arg, "=")};
    for (const Option *x = options; x < options + NOPTIONS; x++)
        if (x->shape == FLAG && given.n < strlen(arg) && str_is(given, x->spelling))
            return !wrong("'%s' takes no value, but is given one by '%s'", x->spelling, arg);
    return false;
}
/* The option that is meant, of the transformations or of all; NULL: none is like it. Options of one letter are close to
   everything. */
static const Option *option_meant(const char *arg, bool of_transformations) {
    enum { LETTERS = 4 };
    Str given = {arg, (uint32_t)strcspn(arg, "=")};
    const Option *near = NULL, *begin = NULL;
    Similar similar = similar_to(given, edits_of(given, LETTERS));
    for (const Option *x = options; x < options + NOPTIONS; x++) {
        size_t n = strlen(x->spelling);
        if (n <= 3 || (of_transformations && !transforms(x))) continue;
        if (similar_offer(&similar, (Str){x->spelling, (uint32_t)strcspn(x->spelling, "=")})) near = x;
        if (!strncmp(arg, x->spelling, n) && (!begin || n > strlen(begin->spelling))) begin = x;
    }
    return near ? near : begin;
}
static bool unknown_option(const char *arg) {
    if (valued_flag(arg)) return false;
    const Option *meant = option_meant(arg, false);
    return meant ? wrong("unknown option '%s'; did you mean '%s'?", arg, meant->spelling)
                 : wrong("unknown option '%s'; try 'jaxcc --help'", arg);
}

/* A transformation of --entry. */
static bool entry_flag(Reader *r, const char *flag) {
    const char *value = NULL, *name = r->entry->name;
    const Option *x = option_find(flag, &value), *meant = x ? NULL : option_meant(flag, true);
    if (x && transforms(x)) return x->take(r, value);
    if (x)
        return wrong("--entry %s: '%s' is no transformation; such options are given outside --entry, for all functions",
                     name, flag);
    if (valued_flag(flag)) return false;
    return meant ? wrong("--entry %s: '%s' is no transformation; did you mean '%s'?", name, flag, meant->spelling)
                 : wrong("--entry %s: '%s' is no transformation", name, flag);
}

/* The input argv[i]; numbers after an option with an optional value may be that value. */
static bool input(Reader *r, char **argv, uint32_t i) {
    const char *before = i ? argv[i - 1] : "", *value = NULL, *arg = argv[i];
    const Option *x = option_find(before, &value);
    bool apart = x && x->shape == OPTIONAL && !value && strspn(arg, "0123456789,") == strlen(arg);
    if (apart) r->apart = str_format(r->arena, "%s=%s", before, arg).at;
    if (r->o->input && r->apart)
        return wrong("more than one input: '%s' and '%s'; did you mean '%s'?", r->o->input, arg, r->apart);
    if (r->o->input) return wrong("more than one input: '%s' and '%s'", r->o->input, arg);
    r->o->input = arg;
    return true;
}

/* One argument at argv[*i]; the value may be the next one. */
static bool argument(Reader *r, char **argv, uint32_t n, uint32_t *i) {
    const char *arg = argv[*i], *value = NULL;
    if (arg[0] != '-' || arg[1] == 0) return input(r, argv, *i);
    const Option *x = option_find(arg, &value);
    if (!x) return unknown_option(arg);
    if (x->shape == FLAG) return x->take(r, NULL);
    if (x->shape == OPTIONAL) return x->take(r, value);
    const char *ignored, *next = x->shape != JOINED && *i + 1 < n ? argv[*i + 1] : NULL;
    bool forgotten = next && x->shape == EQUALS && option_find(next, &ignored);
    if (!value && next && !forgotten) value = argv[++*i];
    if (!value || !*value) return wrong("'%s' wants %s", x->spelling, x->meta);
    return x->take(r, value);
}

/* An option and what it does, which goes to the next line where the option is longer than its column. */
static void help_line(const char *option, const char *what) {
    enum { COLUMN = 20 };
    bool fits = strlen(option) <= COLUMN;
    printf("  %-*s%s", COLUMN, option, fits ? " " : "\n");
    printf("%*s%s\n", fits ? 0 : COLUMN + 3, "", what);
}

static void help(Arena *arena) {
    static const char *const around[][2] = {
        [FLAG] = {"", ""}, [OPTIONAL] = {"[=", "]"}, [EQUALS] = {"=", ""}, [JOINED] = {"", ""}, [EITHER] = {" ", ""}};
    puts("usage: jaxcc [options] FILE.jaxpr [-o OUT]\n\n"
         "Compiles a printed jaxpr ('-' reads it from standard input) to a shared library and its "
         "C header.\n");
    for (const Option *x = options; x < options + NOPTIONS; x++) {
        const char *const *with = around[x->shape];
        help_line(str_format(arena, "%s%s%s%s", x->spelling, with[0], x->meta ? x->meta : "", with[1]).at, x->help);
    }
    help_line("@FILE", "read more options from FILE");
}

/* ---- @file: words separated by blanks; quotes and backslashes as in the shell */
typedef struct {
    char **at;
    uint32_t n, cap;
} Words;

static char *word_read(Arena *arena, const char **at, const char *end) {
    char *word = arena_new(arena, char, (size_t)(end - *at) + 1), *w = word, quote = 0;
    const char *c = *at;
    for (; c < end && (quote || !strchr(" \t\r\n", *c)); c++) {
        if (*c == quote)
            quote = 0;
        else if (!quote && (*c == '\'' || *c == '"'))
            quote = *c;
        else
            *w++ = *c == '\\' && quote != '\'' && c + 1 < end ? *++c : *c;
    }
    *at = c;
    return word;
}

static bool words_add(Reader *r, Words *words, char *arg, int depth) {
    if (arg[0] != '@' || arg[1] == 0) {
        push(r->arena, words, arg);
        return true;
    }
    if (depth == 8) return wrong("'%s': files of options are nested too deep", arg);
    Str text;
    if (!file_read(r->arena, r->diags, arg + 1, ALL_OF_IT, &text)) {
        diag_flush(r->diags, stderr, false);
        return false;
    }
    for (const char *c = text.at, *end = c + text.n; c < end;) {
        if (strchr(" \t\r\n", *c)) {
            c++;
            continue;
        }
        if (!words_add(r, words, word_read(r->arena, &c, end), depth + 1)) return false;
    }
    return true;
}

/* ---- combinations of options */
static Str kind_names(Reader *r) {
    Text all = {.arena = r->arena};
    for (size_t k = 0; k < NKINDS; k++) text_add(&all, k ? ", %s" : "%s", kinds[k].name);
    return (Str){all.at, all.n};
}
static bool settle_emit(Reader *r, bool *text) {
    Options *o = r->o;
    const char *dot = o->output ? strrchr(o->output, '.') : NULL;
    size_t k = 0; /* so */
    if (r->emit) {
        while (k < NKINDS && strcmp(kinds[k].name, r->emit) != 0) k++;
        if (k == NKINDS) return wrong("--emit: unknown kind '%s'; the kinds are %.*s", r->emit, SF(kind_names(r)));
    } else if (dot) {
        while (k < NKINDS && (!kinds[k].suffix || strcmp(kinds[k].suffix, dot) != 0)) k++;
        if (k == NKINDS) k = 0;
    }
    o->emit = kinds[k].kind;
    o->nested_types = strcmp(kinds[k].name, "types=all") == 0;
    *text = kinds[k].text;
    if (o->output) return true;
    Str stem = path_base(path_stem(str(strcmp(o->input, "-") ? o->input : "model.jaxpr")));
    o->output = kinds[k].text ? "-" : str_format(r->arena, "%.*s%s", SF(stem), kinds[k].suffix).at;
    return true;
}

/* A function with the name of one of libc or libm would hide that one from the program it is linked to. */
static void warn_name(Reader *r, const char *name, const char *remedy) {
    void *libm = dlopen("libm.so.6", RTLD_LAZY), *libc = dlopen("libc.so.6", RTLD_LAZY);
    if ((libm && dlsym(libm, name)) || (libc && dlsym(libc, name)) || strcmp(name, "main") == 0)
        diag_warn(r->diags, W_name, (Span){0, 0, 0}, "the function's name '%s' is a symbol of libc or libm; %s", name,
                  remedy);
    if (libm) dlclose(libm);
    if (libc) dlclose(libc);
}

/* Names of jaxcc's own code and of what its headers declare, and names with a meaning to linkers. */
static bool reserved(const char *name) {
    static const char *const names[] = {"_init", "_fini", "_DYNAMIC", "_GLOBAL_OFFSET_TABLE_"};
    static const char *const beginnings[] = {"jaxcc_", "JAXCC_"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (text_after(name, beginnings[i])) return true;
    return false;
}

static bool settle_deps(Reader *r, Str stem, bool to_file) {
    Options *o = r->o;
    if (!r->deps && (o->dep_file || o->phony_deps)) return wrong("%s needs -MD", o->dep_file ? "-MF" : "-MP");
    if (!r->deps || o->dep_file) return true;
    if (!to_file) return wrong("-MD needs -MF where OUT is no file");
    o->dep_file = str_format(r->arena, "%.*s.d", SF(stem)).at;
    return true;
}

/* What the library exports for a function has no other meaning. */
static bool settle_name(Reader *r, const char *name, bool library, bool entry, Intern *exported) {
    const char *remedy = entry ? "write another one in --entry" : "--name gives another";
    const struct {
        const char *suffix;
        bool exported;
    } symbols[] = {{"", true},
                   {"_error", true},
                   {"_program", true},
                   {"_stream", r->o->device_pointers},
                   {"_dlpack", r->o->dlpack}};
    if ((library || r->o->emit == EMIT_header) && reserved(name))
        return wrong("no library can export the name '%s'; %s", name, remedy);
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        bool fresh;
        if (!symbols[i].exported) continue;
        Str symbol = str_format(r->arena, "%s%s", name, symbols[i].suffix);
        intern(exported, symbol.at, symbol.n, &fresh);
        if (!fresh) return wrong("two functions of the library would export the name '%.*s'", SF(symbol));
    }
    if (library) warn_name(r, name, remedy);
    return true;
}
static bool settle_names(Reader *r, bool library) {
    static const char *const halves[] = {"fwd", "lin"};
    const Options *o = r->o;
    Intern exported = {.arena = r->arena};
    for (uint32_t i = 0; i <= o->entries.n; i++) {
        const char *name = i ? o->entries.at[i - 1].name : o->name;
        const Transforms *all = i ? &o->entries.at[i - 1].transforms : &o->transforms;
        bool two = all->n && all->at[all->n - 1].kind == TRANSFORM_LINEARIZE;
        if (!two && cname_keyword(str(name)))
            return wrong("%s: '%s' is not a name that C and C++ can use", i ? "--entry" : "--name", name);
        for (int k = 0; k < 1 + two; k++)
            if (!settle_name(r, two ? str_format(r->arena, "%s_%s", name, halves[k]).at : name, library, i, &exported))
                return false;
    }
    return true;
}

static bool in_reverse(const Transforms *all) {
    bool found = false;
    each(const Transform, t, *all) found |= t->kind != TRANSFORM_JVP;
    return found;
}
bool options_for_device(const Options *o) {
    static const char gpu[] = "nvptx64";
    return o->target && !strncmp(o->target, gpu, strlen(gpu));
}
Str options_less_memory(Arena *arena, const Options *o) {
    bool reverse = in_reverse(&o->transforms);
    each(const LibraryEntry, e, o->entries) reverse |= in_reverse(&e->transforms);
    if (!reverse || o->levels == MOST_LEVELS) return S("");
    return o->levels < 2 ? S("; see --remat=sqrt")
                         : str_format(arena, "; see --remat=levels:%lld", (long long)o->levels + 1);
}

static bool ends(const char *path, const char *suffix) {
    size_t n = strlen(path), k = strlen(suffix);
    return n > k && !strcmp(path + n - k, suffix);
}
bool options_report_page(const Options *o) { return o->report && ends(o->report, ".html"); }
static bool settle_report(const Options *o) {
    bool code = o->emit != EMIT_jaxpr && o->emit != EMIT_types && o->emit != EMIT_header && !o->check_only;
    if (o->report && !code)
        return wrong("--report goes with what is compiled, which %s ends before", o->check_only ? "--check" : "--emit");
    if (!o->report || options_report_page(o) || ends(o->report, ".json")) return true;
    return wrong("--report=%s: the file is called FILE.html or FILE.json", o->report);
}
static bool settle(Reader *r) {
    Options *o = r->o;
    bool text;
    if (!o->input) return wrong("no input file; try 'jaxcc --help'");
    if (!settle_emit(r, &text)) return false;
    if ((o->no_check || o->passes) && o->emit != EMIT_jaxpr)
        return wrong("%s goes with --emit=jaxpr only", o->no_check ? "--no-check" : "--passes");
    if (o->debug_nans && o->fast_math) return wrong("--debug-nans finds no NaN under -ffast-math");
    if (o->device_pointers && !(o->target && strncmp(o->target, "nvptx64", strlen("nvptx64")) == 0))
        return wrong("--device-pointers goes with --target=nvptx64");
    if (o->no_check && o->passes) return wrong("--passes needs a checked program");
    if (o->no_check && o->transforms.n) return wrong("%s needs a checked program", o->transforms.at[0].text);
    if (o->no_check && o->entries.n) return wrong("--entry needs a checked program");
    bool library = o->emit == EMIT_so || o->emit == EMIT_a || o->emit == EMIT_obj, to_file = file_is_regular(o->output);
    Str stem = path_stem(str(o->output));
    if (!settle_report(o)) return false;
    if (library && !r->no_header && (r->header || to_file))
        o->header = r->header ? r->header : str_format(r->arena, "%.*s.h", SF(stem)).at;
    if (!settle_deps(r, stem, to_file)) return false;
    if (!o->name) {
        Str file = strcmp(o->input, "-") ? path_stem(str(o->input)) : to_file ? stem : S("model");
        o->name = str_c(r->arena, cname_from(r->arena, path_base(file)));
    }
    return settle_names(r, library);
}

Str batch_name(Arena *arena, const Transform *t, uint32_t nth) {
    return t->dim ? str(t->dim) : nth > 1 ? str_format(arena, "batch%u", nth) : S("batch");
}
int options_read(Arena *arena, Diags *diags, int argc, char **argv, Options *o) {
    *o = (Options){.opt = 2};
    Reader r = {.arena = arena, .diags = diags, .o = o};
    Words words = {0};
    for (int i = 1; i < argc; i++)
        if (!words_add(&r, &words, argv[i], 0)) return 2;
    for (uint32_t i = 0; i < words.n; i++)
        if (!argument(&r, words.at, words.n, &i)) return 2;
    if (r.no_warnings) diag_option(diags, S("no-everything"));
    if (r.help) help(arena);
    if (r.version || (o->verbose && !o->input)) puts("jaxcc " JAXCC_VERSION);
    if (r.help || r.version || (o->verbose && !o->input)) return 0;
    return names_vmap(&r) && settle(&r) ? OPTIONS_GO : 2;
}
