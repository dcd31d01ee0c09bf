/* --debug-nans, --check-bounds: adds a check after each equation with floating-point results that none is NaN, and
   before each indexing equation a check that no index is out of bounds. Always: before an equation that asks of an
   extent that the program computes not to exceed another one, a check that it does not.

   A check is a call of the runtime that may end the call of the library: it is an effect, so that it stays, in the
   order of the program, whatever is fused. Composite primitives are not expanded yet, so that their intermediate values
   may be NaN.

   Indices are checked before they are clamped or their elements are dropped or filled, as in jax.experimental.checkify.
 */
#include "build.h"
#include "../control.h"
#include "../options.h"
#include "../typecheck/check.h"
#include "../typecheck/rule.h"
#include <math.h>

/* A place to which a NaN of the text is moved from a value; `next`: 1 + the value's next one. */
typedef struct {
    Val to;
    uint32_t next;
} Way;
typedef struct {
    Ctx *cx;
    const Jaxpr *read;   /* the program */
    bool extents;        /* those that it computes are checked */
    bool computed;       /* note_computed found one */
    ValMap map;          /* of nothing */
    unsigned char *data; /* by value: whether its data contains a NaN, if known */
    bool *written;       /* by value: it may contain a NaN of the text that was only moved */
    uint32_t *first;     /* by value: 1 + the first place it is moved to, 0: none */
    struct {
        Way *at;
        uint32_t n, cap;
    } ways;
    Intern seen; /* programs whose ways are known */
    Memo memo;
    bool failed;
} Checks;

/* ---- NaN */
static Val any_nan(Builder *b, Val x) {
    int64_t axes[MAX_RANK];
    uint32_t rank = b_type(b, x)->rank;
    for (uint32_t i = 0; i < rank; i++) axes[i] = i;
    return b_reduce(b, P_reduce_or, b_ne(b, x, x), rank, axes);
}
/* The data of --consts is not aligned. */
static double element(Dtype d, const char *data, int64_t i) {
    double f64;
    float f32;
    uint16_t half;
    if (d == DT_f64) return memcpy(&f64, data + 8 * i, 8), f64;
    if (d == DT_f32) return (double)(memcpy(&f32, data + 4 * i, 4), f32);
    if (dtype_info[d].bits == 8) return float_decode(&float_format[d], (uint8_t)data[i]);
    return float_decode(&float_format[d], (memcpy(&half, data + 2 * i, 2), half));
}
enum { UNREAD, NUMBERS, SOME_NAN };

/* Does the text or --consts contain a NaN here? Data is read once. */
static bool holds_nan(Checks *c, Val v) {
    const Ctx *cx = c->cx;
    const ValInfo *info = val_info(cx, v);
    Dtype d = val_array(cx, v)->dtype, part = dtype_real(d);
    if (dtype_info[part].kind != DK_FLOAT) return false;
    if (info->lit && info->lit->kind != LIT_ARRAY) return isnan(info->lit->re) || isnan(info->lit->im);
    Dim n = type_size(cx->types, info->type);
    bool nan = false;
    if (!info->data || !dim_is_const(n)) return false;
    if (c->data[v] != UNREAD) return c->data[v] == SOME_NAN;
    for (int64_t i = 0; i < (part == d ? n : 2 * n) && !nan; i++) nan = isnan(element(part, info->data, i));
    c->data[v] = nan ? SOME_NAN : NUMBERS;
    return nan;
}
static bool is_written(Checks *c, Val v) { return c->written[v] || holds_nan(c, v); }
/* Marks `v` as written, and every value that it is moved to. */
static void mark_written(Checks *c, Val v) {
    struct {
        Val *at;
        uint32_t n, cap;
    } todo = {0};
    push(c->cx->arena, &todo, v);
    while (todo.n) {
        v = todo.at[--todo.n];
        if (c->written[v]) continue;
        c->written[v] = true;
        for (uint32_t w = c->first[v]; w; w = c->ways.at[w - 1].next) push(c->cx->arena, &todo, c->ways.at[w - 1].to);
    }
}
static void add_way(Checks *c, Val from, Val to) {
    push(c->cx->arena, &c->ways, ((Way){to, c->first[from]}));
    c->first[from] = c->ways.n;
    if (is_written(c, from)) mark_written(c, to);
}
static void add_ways(Checks *c, Vals from, Vals to) {
    for (uint32_t i = 0; i < from.n; i++) add_way(c, from.at[i], to.at[i]);
}

/* A NaN in the text that is only moved, such as an operand of where(…, nan), is not produced by an equation. */
static bool moves(const Eqn *e) { return prim_lower[e->prim] == LOWER_INDEX || prim_is(e->prim, NO_NAN); }
static bool moves_written(Checks *c, const Eqn *e) {
    bool written = false;
    for (uint32_t i = 0; i < e->in.n && moves(e) && !written; i++) written = is_written(c, e->in.at[i]);
    return written;
}
/* From operands into nested programs, and through calls. */
static void enter_programs(Checks *c, const Eqn *e) {
    Cond cond = cond_of(e);
    each(Jaxpr *, j, cond.branches) add_ways(c, cond.in, (*j)->in);
    Scan s = scan_of(e);
    if (s.body) {
        Scan turn = scan_turn(&s, s.body);
        add_ways(c, s.consts, turn.consts);
        add_ways(c, s.xs, turn.xs);
    }
    While w = while_of(e);
    if (w.body) {
        While turn = while_turn(&w, w.cond, w.body);
        add_ways(c, w.cond_consts, turn.cond_consts);
        add_ways(c, w.body_consts, turn.body_consts);
    }
    Vals in;
    const Jaxpr *called = eqn_body(c->cx->arena, e, &in);
    if (called) add_ways(c, in, called->in), add_ways(c, called->out, e->out);
}
static void find_ways(Checks *c, const Jaxpr *j) {
    bool fresh;
    intern(&c->seen, &j, sizeof j, &fresh);
    if (!fresh) return;
    each(const Eqn, e, j->eqns) {
        for (uint32_t i = 0; i < e->in.n && moves(e); i++)
            each(const Val, v, e->out) add_way(c, e->in.at[i], *v);
        enter_programs(c, e);
        Jaxprs within = e->params.n ? eqn_jaxprs(c->cx->arena, e) : (Jaxprs){0};
        each(Jaxpr *, k, within) find_ways(c, *k);
    }
}
static void check_nans(Builder *b, const Eqn *e) {
    Val found = 0;
    each(const Val, v, e->out) {
        DtypeKind kind = dtype_info[b_type(b, *v)->dtype].kind;
        if (kind != DK_FLOAT && kind != DK_COMPLEX) continue;
        Val nan = any_nan(b, *v);
        found = found ? b_or(b, found, nan) : nan;
    }
    if (found) b_stop_if(b, found, e, "makes a NaN");
}

/* ---- bounds: is an index negative, or above the extent of its axis less that of the slice? For scalars, and along the
   last axis of an array of indices. */
static Val outside(Builder *b, Val index, Val most) {
    const ArrayType *t = b_type(b, index);
    most = b_full(b, most, t->rank, t->dims);
    Val wrong = b_or(b, b_lt(b, index, b_full_like(b, index, 0)), b_gt(b, index, most));
    int64_t axes[MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++) axes[i] = i;
    return b_reduce(b, P_reduce_or, wrong, t->rank, axes);
}
static Val add_outside(Builder *b, Val found, Val index, Dim extent, Dim size) {
    Val wrong = outside(b, b_convert(b, index, DT_i64), b_dim(b, DT_i64, dim_sub(b_types(b), extent, size)));
    return found ? b_or(b, found, wrong) : wrong;
}
/* Scalar indices from operand `first` on; the slice has these extents. */
static Val starts_outside(Builder *b, const Eqn *e, uint32_t first, const Dim *sizes) {
    const ArrayType *x = b_type(b, e->in.at[0]);
    Val found = 0;
    for (uint32_t i = 0; i < x->rank; i++) found = add_outside(b, found, e->in.at[first + i], x->dims[i], sizes[i]);
    return found;
}
static Val slice_outside(Builder *b, const Eqn *e) {
    return starts_outside(b, e, 1, val_array(b->cx, e->out.at[0])->dims);
}
static Val update_outside(Builder *b, const Eqn *e) { return starts_outside(b, e, 2, b_type(b, e->in.at[1])->dims); }

/* Indices [..., n] in operand 1: component k indexes axis axes[k] of operand 0; `sizes` are the extents of the
   slice. */
static Val indices_outside(Builder *b, const Eqn *e, Ints axes, const Dim *sizes) {
    const ArrayType *x = b_type(b, e->in.at[0]), *t = b_type(b, e->in.at[1]);
    Val found = 0;
    for (uint32_t k = 0; k < axes.n; k++) {
        int64_t axis = axes.at[k];
        Val part = b_slice_axis(b, e->in.at[1], t->rank - 1, k, k + 1);
        found = add_outside(b, found, part, x->dims[axis], sizes[axis]);
    }
    return found;
}
static Val gather_outside(Builder *b, const Eqn *e) {
    Ints map;
    if (!want_field(b->cx, e, K_dimension_numbers, "start_index_map", &map)) return 0;
    return indices_outside(b, e, map, param_dims(e, K_slice_sizes).at);
}
static Val scatter_outside(Builder *b, const Eqn *e) {
    Ints map, inserted, batching, window;
    if (!want_field(b->cx, e, K_dimension_numbers, "scatter_dims_to_operand_dims", &map) ||
        !want_field(b->cx, e, K_dimension_numbers, "inserted_window_dims", &inserted) ||
        !want_field(b->cx, e, K_dimension_numbers, "operand_batching_dims", &batching) ||
        !want_field(b->cx, e, K_dimension_numbers, "update_window_dims", &window))
        return 0;
    const ArrayType *x = b_type(b, e->in.at[0]), *u = b_type(b, e->in.at[2]);
    Dim sizes[MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++) sizes[i] = 0;
    for (uint32_t i = 0; i < inserted.n; i++) sizes[inserted.at[i]] = 1;
    for (uint32_t i = 0; i < batching.n; i++) sizes[batching.at[i]] = 1;
    for (uint32_t i = 0, k = 0; i < x->rank; i++)
        if (sizes[i] == 0) sizes[i] = u->dims[window.at[k++]];
    return indices_outside(b, e, map, sizes);
}
typedef Val Outside(Builder *, const Eqn *);
static Outside *const outside_of[NPRIMS] = {
    [P_dynamic_slice] = slice_outside, [P_dynamic_update_slice] = update_outside, [P_gather] = gather_outside,
    [P_scatter] = scatter_outside,     [P_scatter_add] = scatter_outside,         [P_scatter_mul] = scatter_outside,
    [P_scatter_min] = scatter_outside, [P_scatter_max] = scatter_outside,         [P_scatter_sub] = scatter_outside,
};

/* ---- extents: what types ask of those that are inputs is asked when a call begins, of those that the program computes
   before the equation */
static Dim note_computed(void *user, Dim atom) {
    Checks *c = user;
    const DimExpr *d = dim_at(c->cx->types, atom);
    bool given = d->kind != DIM_BOUND;
    each(const Val, v, c->read->in) given |= d->val == *v;
    each(const Val, v, c->read->consts) given |= d->val == *v;
    c->computed |= !given;
    return atom;
}
static bool is_computed(Checks *c, const DimCheck *asked) {
    c->computed = false;
    if (!dim_is_const(asked->a)) dim_substitute(c->cx->types, asked->a, note_computed, c);
    if (!dim_is_const(asked->b)) dim_substitute(c->cx->types, asked->b, note_computed, c);
    return c->computed;
}
static bool has_bound(const Ctx *cx, Vals vals) {
    bool found = false;
    each(const Val, v, vals) found |= type_has_bound(cx, val_type(cx, *v));
    return found;
}
static void check_extents(Checks *c, Builder *b, const Eqn *e) {
    Ctx *cx = c->cx;
    if (!has_bound(cx, e->in) && !has_bound(cx, e->out)) return;
    DimChecks asked = {0}, *outer = cx->dim_checks;
    Type *in = arena_new(cx->arena, Type, e->in.n + 1), *out = arena_new(cx->arena, Type, e->out.n + 1);
    for (uint32_t i = 0; i < e->in.n; i++) in[i] = val_type(cx, e->in.at[i]);
    for (uint32_t i = 0; i < e->out.n; i++) out[i] = val_type(cx, e->out.at[i]);
    cx->dim_checks = &asked;
    bool good = infer(cx, e, in, out);
    cx->dim_checks = outer;
    assert(good);
    each(const DimCheck, k, asked) {
        if (!is_computed(c, k)) continue;
        Val n[2] = {b_dim(b, DT_i64, k->a), b_dim(b, DT_i64, k->b)};
        Val wrong = k->at_most ? b_gt(b, n[0], n[1]) : b_ne(b, n[0], n[1]);
        Str needs = k->at_most ? S("needs {0} <= {1}") : S("needs {0} = {1}");
        b_stop_with(b, wrong, e->span, b_stop_text(b, e, needs), 2, n);
    }
}
static bool asks_computed(Checks *c) {
    bool asked = false;
    each(const DimCheck, k, *c->cx->dim_checks) asked |= is_computed(c, k);
    return asked;
}

static Jaxpr *checks_jaxpr(void *user, const Jaxpr *j) {
    Checks *c = user;
    const Options *o = c->cx->options;
    if (*memo_slot(&c->memo, j)) return *memo_slot(&c->memo, j);
    Builder b = {.cx = c->cx};
    add_consts(c->cx->arena, &b.consts, j->consts);
    each(const Eqn, e, j->eqns) {
        bool inside = runs_programs(e->prim); /* its programs have the checks */
        b.span = e->span;
        if (c->extents && !inside) check_extents(c, &b, e);
        if (o->check_bounds && outside_of[e->prim]) {
            Val found = outside_of[e->prim](&b, e);
            if (found) b_stop_if(&b, found, e, "indexes out of bounds");
        }
        push(c->cx->arena, &b.eqns, eqn_rewrite(&c->map, e, inside ? checks_jaxpr : NULL, c));
        if (o->debug_nans && !inside && !moves_written(c, e)) check_nans(&b, e);
    }
    c->failed |= b.failed;
    Jaxpr *new = jaxpr_with(c->cx, j, b.eqns, j->out);
    new->consts = (Vals){b.consts.at, b.consts.n};
    return *memo_slot(&c->memo, j) = new;
}
Jaxpr *pass_checks(Ctx *cx, const Jaxpr *j) {
    bool stdlib = j->span.file != INPUT_FILE;
    if (stdlib) return (Jaxpr *)j;
    Checks c = {.cx = cx, .read = j, .map.cx = cx, .memo.arena = cx->arena, .seen.arena = cx->arena};
    c.extents = asks_computed(&c);
    if (!(cx->options->debug_nans || cx->options->check_bounds || c.extents)) return (Jaxpr *)j;
    c.data = arena_new(cx->arena, unsigned char, cx->nvals);
    c.written = arena_new(cx->arena, bool, cx->nvals);
    c.first = arena_new(cx->arena, uint32_t, cx->nvals);
    if (cx->options->debug_nans) find_ways(&c, j);
    Jaxpr *new = checks_jaxpr(&c, j);
    return c.failed ? NULL : new;
}
