/* Rewrites cases: the leading dimension of every input becomes a symbol, as far as typing allows.

       symbolic [--prims FILE] [--dtypes 'A B'] [--filter REGEX] [--least R] [--most N] DIR TO

   writes the cases of DIR (of these primitives and element types alone) that get a symbol under TO,
   with links to their arrays and tolerances, for tests/runner, or of about N cases, evenly. Less
   than the part R of them: status 1.

   Every extent of the program, in types and in parameters, becomes an unknown whose value is known;
   only constants and the trailing axes of inputs keep their numbers. infer() then says, equation by
   equation, what must agree. An unknown becomes what such a demand makes it: first where nothing
   else is possible, then where a bound is met (a slice that ends where its operand does), then
   where elements are counted (a reshape). What nothing determines is its value; so is a leading
   dimension in a demand that nothing solves. All is repeated until nothing changes. */
#include "cases.h"
#include "program.h"
#include "typecheck/rule.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* An extent; the symbol n<number>. */
typedef struct {
    Dim value; /* in the recorded program; at least 0 */
    Dim is;    /* in terms of others; itself while it is open */
    bool leading;
} Unknown;

typedef struct {
    Ctx *cx;
    struct {
        Unknown *at;
        uint32_t n, cap;
    } unknowns;
    struct {
        Jaxpr **at;
        uint32_t n, cap;
    } programs; /* nested ones too */
    Intern seen;
    struct {
        const Eqn **at;
        uint32_t n, cap;
    } refused; /* by infer() */
    DimChecks demands;
    bool changed;
} Rewrite;

/* ---- unknowns */

static Dim unknown_new(Rewrite *r, Dim value, bool leading) {
    Dim d = dim_symbol(r->cx->types, str_format(r->cx->arena, "n%u", r->unknowns.n));
    Unknown u = {value, d, leading};
    push(r->cx->arena, &r->unknowns, u);
    return d;
}

static bool is_unknown(const Rewrite *r, Dim d) {
    return !dim_is_const(d) && dim_at(r->cx->types, d)->kind == DIM_SYMBOL;
}

static Unknown *unknown_of(const Rewrite *r, Dim symbol) {
    Str name = dim_at(r->cx->types, symbol)->name;
    uint32_t i = 0;
    for (uint32_t k = 1; k < name.n; k++) i = i * 10 + (uint32_t)(name.at[k] - '0');
    return &r->unknowns.at[i];
}

static Dim resolve_atom(void *user, Dim atom) {
    Rewrite *r = user;
    Unknown *u = unknown_of(r, atom);
    if (u->is != atom) u->is = dim_substitute(r->cx->types, u->is, resolve_atom, r);
    return u->is;
}

/* In terms of open unknowns. */
static Dim resolve(Rewrite *r, Dim d) { return dim_substitute(r->cx->types, d, resolve_atom, r); }

static Dim value_atom(void *user, Dim atom) { return unknown_of(user, atom)->value; }
static Dim next_atom(void *user, Dim atom) { return unknown_of(user, atom)->value + 1; }

static Dim value(Rewrite *r, Dim d) { return dim_substitute(r->cx->types, d, value_atom, r); }
/* Where every unknown is one more than its value. */
static Dim next_value(Rewrite *r, Dim d) { return dim_substitute(r->cx->types, d, next_atom, r); }

static void set(Rewrite *r, Dim symbol, Dim is) {
    unknown_of(r, symbol)->is = is;
    r->changed = true;
}

/* One unknown is replaced by `with`; those that are not leading by their values, if `others`. */
typedef struct {
    Rewrite *r;
    Dim symbol, with;
    bool others;
} Put;

static Dim put_atom(void *user, Dim atom) {
    Put *p = user;
    const Unknown *u = unknown_of(p->r, atom);
    return atom == p->symbol ? p->with : p->others && !u->leading ? u->value : atom;
}

static Dim put(Rewrite *r, Dim d, Dim symbol, Dim with) {
    return dim_substitute(r->cx->types, d, put_atom, &(Put){r, symbol, with, false});
}

/* The open unknowns of a dimension. */
typedef struct {
    Rewrite *r;
    struct {
        Dim *at;
        uint32_t n, cap;
    } found;
} Atoms;

static Dim find_atom(void *user, Dim atom) {
    Atoms *a = user;
    for (uint32_t i = 0; i < a->found.n; i++)
        if (a->found.at[i] == atom) return atom;
    push(a->r->cx->arena, &a->found, atom);
    return atom;
}

static Atoms atoms_of(Rewrite *r, Dim d) {
    Atoms a = {.r = r};
    dim_substitute(r->cx->types, resolve(r, d), find_atom, &a);
    return a;
}

typedef enum { FREE, ONES, ALL } Which; /* not leading; of value 1; all */

/* Unknowns of `d` become their values. */
static void fix(Rewrite *r, Dim d, Which which) {
    Atoms a = atoms_of(r, d);
    each(Dim, x, a.found) {
        const Unknown *u = unknown_of(r, *x);
        if (which == FREE ? !u->leading : which == ONES ? u->value == 1 : true) set(r, *x, u->value);
    }
}

static void fix_type(Rewrite *r, Type t, Which which) {
    const ArrayType *a = type_at(r->cx->types, t);
    for (uint32_t i = 0; i < a->rank; i++) fix(r, a->dims[i], which);
}

/* ---- the program */

static bool is_extent(const Param *p, uint32_t i) {
    bool interior = param_kind[p->key] == PK_PADDING && i % 3 == 2;
    return !interior && p->key != K_base_dilation && p->key != K_window_dilation;
}

static Dim opened(Rewrite *r, Dim d, Dim least) {
    return dim_is_const(d) && d >= least && d < INT32_MAX ? unknown_new(r, d, false) : d;
}

static void open_param(Rewrite *r, Param *p) {
    Value *v = &p->value;
    if (p->key == K_other || !is_extent(p, 0)) return;
    /* No symbol is a place 0 or no padding. */
    Dim least = p->key == K_start_indices || param_kind[p->key] != PK_DIMS;
    if (v->kind == V_DIM) v->dim = opened(r, v->dim, least);
    for (uint32_t i = 0; v->kind == V_DIMS && i < v->dims.n; i++)
        if (is_extent(p, i)) v->dims.at[i] = opened(r, v->dims.at[i], least);
}

static void resolve_param(Rewrite *r, Param *p) {
    Value *v = &p->value;
    if (v->kind == V_DIM) v->dim = resolve(r, v->dim);
    for (uint32_t i = 0; v->kind == V_DIMS && i < v->dims.n; i++) v->dims.at[i] = resolve(r, v->dims.at[i]);
}

static void find_programs(Rewrite *r, Jaxpr *j) {
    bool fresh;
    intern(&r->seen, &j, sizeof j, &fresh);
    if (!fresh) return;
    push(r->cx->arena, &r->programs, j);
    each(Eqn, e, j->eqns) {
        Jaxprs inner = eqn_jaxprs(r->cx->arena, e);
        for (uint32_t i = 0; i < inner.n; i++) find_programs(r, inner.at[i]);
    }
}

/* The type with its first `n` extents open. */
static Type open_type(Rewrite *r, Type t, uint32_t n, bool leading) {
    const ArrayType a = *type_at(r->cx->types, t);
    const TypeExtra *extra = a.extra ? type_extra(r->cx->types, t) : NULL;
    Dim *dims = arena_new(r->cx->arena, Dim, a.rank);
    for (uint32_t i = 0; i < a.rank; i++) {
        dims[i] = i < n ? opened(r, a.dims[i], 0) : a.dims[i];
        if (is_unknown(r, dims[i])) unknown_of(r, dims[i])->leading = leading;
    }
    Type plain = type_of(r->cx->types, a.dtype, a.rank, dims);
    return extra ? type_with_extra(r->cx->types, plain, extra) : plain;
}

static bool all_numbers(const Dim *dims, uint32_t n) {
    bool all = true;
    for (uint32_t i = 0; i < n; i++) all &= dim_is_const(dims[i]);
    return all;
}

/* Has a type or a parameter an extent that is no number? */
static bool is_dynamic(const Rewrite *r) {
    bool all = true;
    for (Val v = 1; v < r->cx->nvals; v++) all &= all_numbers(val_array(r->cx, v)->dims, val_array(r->cx, v)->rank);
    each(Jaxpr *, p, r->programs)
        each(Eqn, e, (*p)->eqns)
            each(Param, q, e->params) {
                if (q->value.kind == V_DIM) all &= dim_is_const(q->value.dim);
                if (q->value.kind == V_DIMS) all &= all_numbers(q->value.dims.at, q->value.dims.n);
            }
    return !all;
}

/* Everything becomes unknown, the inputs first. False where the program is dynamic as it is. */
static bool open_program(Rewrite *r, Jaxpr *j) {
    Ctx *cx = r->cx;
    find_programs(r, j);
    if (is_dynamic(r)) return false;
    bool *given = arena_new(cx->arena, bool, cx->nvals);
    each(Val, v, j->in) {
        given[*v] = true;
        val_info(cx, *v)->type = open_type(r, val_type(cx, *v), 1, true);
    }
    each(Val, v, j->consts) given[*v] = true;
    for (Val v = 1; v < cx->nvals; v++)
        if (!given[v] && val_type(cx, v) && !val_info(cx, v)->lit)
            val_info(cx, v)->type = open_type(r, val_type(cx, v), UINT32_MAX, false);
    each(Jaxpr *, p, r->programs)
        each(Eqn, e, (*p)->eqns)
            each(Param, q, e->params) open_param(r, q);
    return true;
}

static void resolve_program(Rewrite *r) {
    Ctx *cx = r->cx;
    for (Val v = 1; v < cx->nvals; v++) {
        ValInfo *i = val_info(cx, v);
        if (i->type) i->type = type_substitute(cx->types, i->type, resolve_atom, r);
    }
    each(Jaxpr *, p, r->programs)
        each(Eqn, e, (*p)->eqns)
            each(Param, q, e->params) resolve_param(r, q);
}

/* ---- demands */

static void demand(Rewrite *r, Dim a, Dim b) {
    DimCheck check = {a, b, false, {0}};
    if (a != b) push(r->cx->arena, &r->demands, check);
}

/* What infer() demands of an equation, and that its results are what they are declared as. */
static void gather_eqn(Rewrite *r, const Eqn *e) {
    Ctx *cx = r->cx;
    Type *in = arena_new(cx->arena, Type, e->in.n + e->out.n + 1), *out = in + e->in.n;
    bool known = true;
    for (uint32_t i = 0; i < e->in.n; i++) known = (in[i] = val_type(cx, e->in.at[i])) && known;
    for (uint32_t i = 0; i < e->out.n; i++) known = (out[i] = val_type(cx, e->out.at[i])) && known;
    if (!known) return;
    if (!infer(cx, e, in, out)) push(cx->arena, &r->refused, e);
    for (uint32_t i = 0; i < e->out.n; i++) {
        const ArrayType *x = val_array(cx, e->out.at[i]), *y = type_at(cx->types, out[i]);
        for (uint32_t k = 0; k < x->rank && x->rank == y->rank; k++) demand(r, x->dims[k], y->dims[k]);
    }
}

static void gather(Rewrite *r) {
    r->demands = (DimChecks){0};
    r->cx->dim_checks = &r->demands;
    r->refused.n = 0;
    each(Jaxpr *, p, r->programs)
        each(Eqn, e, (*p)->eqns) gather_eqn(r, e);
}

/* ---- solving: a demand is a dimension that must be 0 */

/* The only x with d = 0, where that is a dimension. */
static bool solve_for(Rewrite *r, Dim d, Dim x, Dim *is) {
    Types *ts = r->cx->types;
    Dim at0 = put(r, d, x, 0), slope = dim_sub(ts, put(r, d, x, 1), at0);
    if (slope == 0 || slope == DIM_TOO_LARGE || at0 == DIM_TOO_LARGE) return false;
    Dim q = dim_floordiv(ts, dim_sub(ts, 0, at0), slope);
    if (put(r, q, x, 0) != put(r, q, x, 1) || put(r, d, x, q) != 0) return false;
    if (value(r, q) != unknown_of(r, x)->value) return false;
    *is = q;
    return true;
}

/* Is x rather to be expressed by the others than y? What is made later is made of what was there.
 */
static bool rather(const Rewrite *r, Dim x, Dim y) {
    const Unknown *a = unknown_of(r, x), *b = unknown_of(r, y);
    return a->leading != b->leading ? b->leading : a > b;
}

/* A leading dimension can be no more than a number, or another one. */
static bool may_be(const Rewrite *r, Dim x, Dim is) {
    return !unknown_of(r, x)->leading || dim_is_const(is) || is_unknown(r, is);
}

/* d = 0 leaves one choice for some unknown. */
static void solve_alone(Rewrite *r, Dim d) {
    Atoms a = atoms_of(r, d);
    Dim best = 0, is = 0, q;
    each(Dim, x, a.found)
        if ((!best || rather(r, *x, best)) && solve_for(r, d, *x, &q) && may_be(r, *x, q)) best = *x, is = q;
    if (best) set(r, best, is);
}

/* d = 0 leaves one choice for some unknown if the others have their values: in
   n0·4 = n1·n2 with n0 = n1 = 8, n1 is n0. */
static void solve_counted(Rewrite *r, Dim d) {
    Atoms a = atoms_of(r, d);
    Dim best = 0, is = 0;
    each(Dim, x, a.found) {
        Dim q, others = dim_substitute(r->cx->types, d, put_atom, &(Put){r, *x, *x, true});
        if (unknown_of(r, *x)->leading || !solve_for(r, others, *x, &q) || dim_is_const(q)) continue;
        if (!best || (is_unknown(r, q) && !is_unknown(r, is))) best = *x, is = q;
    }
    if (best) set(r, best, is);
}

/* a ≤ b where they are equal, and nothing says what a is: it is b. */
static void solve_met(Rewrite *r, Dim a, Dim b) {
    if (is_unknown(r, a) && !unknown_of(r, a)->leading && value(r, a) == value(r, b) &&
        put(r, b, a, 0) == put(r, b, a, 1))
        set(r, a, b);
}

static void fix_free(Rewrite *r, Dim d) { fix(r, d, FREE); }
static void fix_all(Rewrite *r, Dim d) { fix(r, d, ALL); }

/* A demand that the values do not meet comes of an extent of 1 that was stretched. */
static void solve_equal(Rewrite *r, void (*how)(Rewrite *, Dim)) {
    each(DimCheck, c, r->demands) {
        Dim d = c->at_most ? 0 : resolve(r, dim_sub(r->cx->types, c->a, c->b));
        if (d != 0 && value(r, d) != 0 && how != fix_all)
            fix(r, d, ONES);
        else if (d != 0)
            how(r, d);
    }
}

static void solve_at_most(Rewrite *r) {
    each(DimCheck, c, r->demands)
        if (c->at_most) solve_met(r, resolve(r, c->a), resolve(r, c->b));
}

static void fix_param(Rewrite *r, const Param *p, Which which) {
    const Value *v = &p->value;
    if (v->kind == V_DIM) fix(r, v->dim, which);
    for (uint32_t i = 0; v->kind == V_DIMS && i < v->dims.n; i++) fix(r, v->dims.at[i], which);
}

static void fix_refused(Rewrite *r, Which which) {
    each(const Eqn *, p, r->refused) {
        const Eqn *e = *p;
        each(Param, q, e->params) fix_param(r, q, which);
        each(Val, v, e->in) fix_type(r, val_type(r->cx, *v), which);
        each(Val, v, e->out) fix_type(r, val_type(r->cx, *v), which);
    }
}

/* What holds by chance for the recorded sizes, but not for the next ones. */
static void fix_tight(Rewrite *r) {
    each(DimCheck, c, r->demands) {
        Dim a = resolve(r, c->a), b = resolve(r, c->b);
        if (c->at_most && next_value(r, a) > next_value(r, b)) fix(r, a, ALL), fix(r, b, ALL);
    }
    for (Val v = 1; v < r->cx->nvals; v++) {
        const ArrayType *a = val_array(r->cx, v);
        for (uint32_t i = 0; i < a->rank; i++)
            if (next_value(r, resolve(r, a->dims[i])) < 0) fix(r, a->dims[i], ALL);
    }
}

static void fix_open(Rewrite *r) {
    each(Unknown, u, r->unknowns)
        if (!u->leading) fix(r, u->is, FREE);
}

/* One step; false when there is none left. */
static bool step(Rewrite *r) {
    r->changed = false;
    gather(r);
    solve_equal(r, solve_alone);
    if (!r->changed) solve_at_most(r);
    if (!r->changed) solve_equal(r, solve_counted);
    if (!r->changed) solve_equal(r, fix_free);
    if (!r->changed) fix_refused(r, FREE);
    if (!r->changed) fix_open(r);
    if (!r->changed) solve_equal(r, fix_all);
    if (!r->changed) fix_refused(r, ALL);
    if (!r->changed) fix_tight(r);
    resolve_program(r);
    return r->changed;
}

/* ---- cases */

typedef struct {
    const char *from, *to;
    uint32_t ranked, symbolic;
} Tool;

static bool has_ranked(const Ctx *cx, const Jaxpr *j) {
    each(Val, v, j->in)
        if (val_array(cx, *v)->rank) return true;
    return false;
}

static bool has_symbol(const Ctx *cx, const Jaxpr *j) {
    each(Val, v, j->in) {
        const ArrayType *a = val_array(cx, *v);
        if (a->rank && !dim_is_const(a->dims[0])) return true;
    }
    return false;
}

static bool write_case(Ctx *cx, const Tool *t, const Case *c, const Jaxpr *j) {
    Text text = {.arena = cx->arena};
    jaxpr_print(cx, j, &text);
    return case_write(c, t->from, t->to, text.at, text.n);
}

static bool rewrite_case(Tool *t, const Case *c) {
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Options o = {.input = c->path};
    cx->options = &o;
    bool ok = true;
    Jaxpr *j = read_program(cx, c->path);
    Rewrite r = {.cx = cx, .seen = {.arena = arena}};
    if (j && has_ranked(cx, j)) {
        bool fixed = open_program(&r, j);
        while (fixed && step(&r)) {
        }
        t->ranked += fixed;
        if (fixed && has_symbol(cx, j)) {
            t->symbolic++;
            ok = write_case(cx, t, c, j);
        }
    }
    arena_close(arena);
    return ok;
}

typedef struct {
    const char *prims, *dtypes, *filter, *least, *most;
} Words;

/* Reads the options; the number of the word after them, 0 for a wrong one. */
static int read_options(int argc, char **argv, Words *w) {
    int i = 1;
    for (; i + 3 < argc && argv[i][0] == '-'; i += 2) {
        const char **option = strcmp(argv[i], "--prims") == 0    ? &w->prims
                              : strcmp(argv[i], "--dtypes") == 0 ? &w->dtypes
                              : strcmp(argv[i], "--filter") == 0 ? &w->filter
                              : strcmp(argv[i], "--least") == 0  ? &w->least
                              : strcmp(argv[i], "--most") == 0   ? &w->most
                                                                 : NULL;
        if (!option) return 0;
        *option = argv[i + 1];
    }
    return i + 2 == argc ? i : 0;
}

/* Does the case say that it fails when it runs, at a place of its text, or has it a rule, for its sizes alone? */
static bool of_its_text(const Case *c) {
    char args[4096] = "";
    FILE *f = fopen(case_file(c, ".args"), "r");
    if (f) args[fread(args, 1, sizeof args - 1, f)] = 0, fclose(f);
    return access(case_file(c, ".expect"), R_OK) == 0 || strstr(args, "--rule");
}

int main(int argc, char **argv) {
    Words w = {.least = "0", .most = "1000000000"};
    int first = read_options(argc, argv, &w);
    if (!first) return fputs("usage: see tests/symbolic.c\n", stderr), 2;
    Tool t = {argv[first], argv[first + 1], 0, 0};
    Cases cases = {0};
    cases_find(&cases, t.from, false);
    if (w.filter) cases_keep(&cases, w.filter, true);
    if (w.prims) cases_list(&cases, w.prims, w.dtypes, true);
    cases_link_manifest(t.from, t.to);
    bool ok = true;
    uint64_t most = strtoul(w.most, NULL, 10);
    for (uint32_t k = 0; k < cases.n; k++)
        if ((cases.n <= most || k * most / cases.n != (k + 1) * most / cases.n) && !of_its_text(&cases.at[k]))
            ok = rewrite_case(&t, &cases.at[k]) && ok;
    printf("%u of %u programs with an input of rank 1 or more have a symbol (%.1f %%)\n", t.symbolic, t.ranked,
           t.ranked ? 100.0 * t.symbolic / t.ranked : 100.0);
    fflush(NULL);
    _exit(ok && t.symbolic >= atof(w.least) * t.ranked ? 0 : 1); /* paths go with it */
}
