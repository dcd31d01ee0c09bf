/* --debug-nans, --check-bounds: behind each equation with floating-point results a check that none of them is NaN,
   before each that indexes a check that nothing is out of bounds. A check is a call of the runtime that ends the call
   of the library: it is an effect, so that it stays, in the order of the program, whatever is fused. Primitives that
   are written with others are still themselves here: what they compute on the way may be NaN.

   What is out of bounds is what is before indices are clamped, or what they select is dropped or filled, as in
   jax.experimental.checkify. */
#include "build.h"
#include "../options.h"
#include "../typecheck/rule.h"
#include <math.h>

typedef struct {
    Ctx *cx;
    ValMap map;          /* of nothing */
    ValMap written;      /* values with a NaN of the text that was only moved: → where it came from */
    unsigned char *data; /* by value: what its data is known to hold */
    Val nvals;           /* values when the pass began: constants are among them */
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
/* Data of --consts is not aligned. */
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

/* Does the text, or --consts, write a NaN here? Data is read once. */
static bool holds_nan(Checks *c, Val v) {
    const Ctx *cx = c->cx;
    const ValInfo *info = val_info(cx, v);
    Dtype d = val_array(cx, v)->dtype, part = dtype_real(d);
    if (dtype_info[part].kind != DK_FLOAT) return false;
    if (info->lit && info->lit->kind != LIT_ARRAY) return isnan(info->lit->re) || isnan(info->lit->im);
    Dim n = type_size(cx->types, info->type);
    bool nan = false;
    if (!info->data || !dim_is_const(n)) return false;
    if (v < c->nvals && c->data[v] != UNREAD) return c->data[v] == SOME_NAN;
    for (int64_t i = 0; i < (part == d ? n : 2 * n) && !nan; i++) nan = isnan(element(part, info->data, i));
    if (v < c->nvals) c->data[v] = nan ? SOME_NAN : NUMBERS;
    return nan;
}
static bool is_written(Checks *c, Val v) { return valmap_get(&c->written, v) != v || holds_nan(c, v); }
static void mark_written(Checks *c, Val from, Val to) {
    if (is_written(c, from)) valmap_put(&c->written, to, from);
}
/* A NaN that the text writes and that is only moved, such as what where(…, nan) selects from, is made by no equation.
   */
static bool moves_written(Checks *c, const Eqn *e) {
    bool moves = prim_lower[e->prim] == LOWER_INDEX || prim_is(e->prim, NO_NAN);
    bool written = false;
    each(const Val, v, e->in) {
        if (!moves || !is_written(c, *v)) continue;
        for (uint32_t i = 0; i < e->out.n; i++) mark_written(c, *v, e->out.at[i]);
        written = true;
    }
    return written;
}
/* The same of `n` operands from the one that becomes input `to` of a program that only reads them. */
static void enter_written(Checks *c, const Eqn *e, int64_t from, const Jaxpr *j, int64_t to, int64_t n) {
    for (int64_t i = 0; j && i < n; i++) mark_written(c, e->in.at[from + i], j->in.at[to + i]);
}
static void enter_programs(Checks *c, const Eqn *e) {
    Lower how = prim_lower[e->prim];
    if (how == LOWER_COND) {
        Jaxprs branches = param_jaxprs(e, K_branches);
        each(Jaxpr *, j, branches) enter_written(c, e, 1, *j, 0, e->in.n - 1);
    } else if (how == LOWER_SCAN) {
        int64_t consts = param_int(e, K_num_consts, 0), rows = consts + param_int(e, K_num_carry, 0);
        enter_written(c, e, 0, param_jaxpr(e, K_jaxpr), 0, consts);
        enter_written(c, e, rows, param_jaxpr(e, K_jaxpr), rows, e->in.n - rows);
    } else if (how == LOWER_WHILE) {
        int64_t test = param_int(e, K_cond_nconsts, 0), body = param_int(e, K_body_nconsts, 0);
        enter_written(c, e, 0, param_jaxpr(e, K_cond_jaxpr), 0, test);
        enter_written(c, e, test, param_jaxpr(e, K_body_jaxpr), 0, body);
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

/* ---- bounds: is an index negative, or above its axis' extent less that of the slice? As scalars, or along the last
   axis of an array of indices. */
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
static Val slice_outside(Builder *b, const Eqn *e) { return starts_outside(b, e, 1, param_dims(e, K_slice_sizes).at); }
static Val update_outside(Builder *b, const Eqn *e) { return starts_outside(b, e, 2, b_type(b, e->in.at[1])->dims); }

/* Indices [..., n] in operand 1: component k is for axis axes[k] of operand 0, of which `sizes` is taken. */
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

static Jaxpr *checks_jaxpr(void *user, const Jaxpr *j) {
    Checks *c = user;
    const Options *o = c->cx->options;
    if (*memo_slot(&c->memo, j)) return *memo_slot(&c->memo, j);
    Builder b = {.cx = c->cx};
    each(const Eqn, e, j->eqns) {
        Lower how = prim_lower[e->prim];
        bool inside = how == LOWER_COND || how == LOWER_WHILE || how == LOWER_SCAN || e->prim == P_shard_map ||
                      e->prim == P_xla_pmap; /* its programs have the checks */
        b.span = e->span;
        if (o->check_bounds && outside_of[e->prim]) {
            Val found = outside_of[e->prim](&b, e);
            if (found) b_stop_if(&b, found, e, "indexes out of bounds");
        }
        if (inside) enter_programs(c, e);
        push(c->cx->arena, &b.eqns, eqn_rewrite(&c->map, e, inside ? checks_jaxpr : NULL, c));
        if (o->debug_nans && !inside && !moves_written(c, e)) check_nans(&b, e);
    }
    c->failed |= b.failed;
    return *memo_slot(&c->memo, j) = jaxpr_with(c->cx, j, b.eqns, j->out);
}
Jaxpr *pass_checks(Ctx *cx, const Jaxpr *j) {
    bool stdlib = j->span.file != 0;
    if (stdlib || !(cx->options->debug_nans || cx->options->check_bounds)) return (Jaxpr *)j;
    Checks c = {.cx = cx, .map.cx = cx, .written.cx = cx, .memo.arena = cx->arena, .nvals = cx->nvals};
    c.data = arena_new(cx->arena, unsigned char, cx->nvals);
    Jaxpr *new = checks_jaxpr(&c, j);
    return c.failed ? NULL : new;
}
