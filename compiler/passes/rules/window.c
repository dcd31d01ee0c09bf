/* Reductions over windows: the windows become axes, which are reduced. Padding is the neutral value of the
   reduction. */
#include "window.h"
#include "pairs.h"
#include "../../typecheck/rule.h"
#include <math.h>

/* ---- windows */
void read_extents(const Eqn *e, ParamKey k, uint32_t n, Dim otherwise, Dim *out) {
    const Param *p = param_find(e, k);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = otherwise;
        if (p && p->value.kind == V_DIMS && i < p->value.dims.n) out[i] = p->value.dims.at[i];
        if (p && p->value.kind == V_INTS && i < p->value.ints.n) out[i] = p->value.ints.at[i];
    }
}
/* Empty results, for which nothing else matters. */
static bool nothing(Builder *b, const Eqn *e, Val *out) {
    if (!b_empty(b, e->out.at[0])) return false;
    for (uint32_t i = 0; i < e->out.n; i++) out[i] = b_full_like(b, e->out.at[i], 0);
    return true;
}
static bool read_windows(Builder *b, const Eqn *e, uint32_t rank, Windows *w) {
    Dim padding[2 * MAX_RANK];
    if (2 * rank > MAX_RANK)
        return diag(b->cx->diags, e->span, "%s of %u axes is not supported yet", prim_name[e->prim], rank);
    w->rank = rank;
    read_extents(e, K_window_dimensions, rank, 1, w->window);
    read_extents(e, K_window_strides, rank, 1, w->stride);
    read_extents(e, K_window_dilation, rank, 1, w->dilation);
    read_extents(e, K_base_dilation, rank, 1, w->base);
    read_extents(e, K_padding, 2 * rank, 0, padding);
    for (uint32_t i = 0; i < rank; i++) w->low[i] = padding[2 * i], w->high[i] = padding[2 * i + 1];
    return true;
}
Val b_spread_out(Builder *b, Val x, const Windows *w, Val value) {
    Dim config[3 * MAX_RANK];
    for (uint32_t i = 0; i < w->rank; i++) {
        Dim *c = &config[3 * i];
        c[0] = w->low[i], c[1] = w->high[i], c[2] = dim_sub(b_types(b), w->base[i], 1);
    }
    return b_pad(b, x, value, config);
}
Val b_windows(Builder *b, Val x, const Windows *w, uint32_t n, const int64_t *axes) {
    Dim window[MAX_RANK], dilation[MAX_RANK];
    int64_t stride[MAX_RANK];
    if (b->failed || !n) return x;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t a = (uint32_t)axes[i];
        window[i] = w->window[a], dilation[i] = w->dilation[a], stride[i] = w->stride[a];
    }
    Param p[4] = {p_ints(b, K_axes, n, axes), p_dims(b, K_window_dilation, n, dilation),
                  p_dims(b, K_window_dimensions, n, window), p_ints(b, K_window_strides, n, stride)};
    return build(b, P_windows, 1, &x, 4, p);
}
/* The axes along which windows are more than one element at every place. */
static uint32_t moving(const Windows *w, int64_t *axes) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->rank; i++)
        if (w->window[i] != 1 || w->stride[i] != 1) axes[n++] = i;
    return n;
}
static bool spread_out(const Windows *w) {
    bool any = false;
    for (uint32_t i = 0; i < w->rank; i++) any |= w->low[i] != 0 || w->high[i] != 0 || w->base[i] != 1;
    return any;
}

/* ---- reductions with a primitive of their own */
static Val reduce_at_once(Builder *b, Prim reduce, Val x, const Windows *w, uint32_t n, const int64_t *axes) {
    int64_t last[MAX_RANK];
    for (uint32_t i = 0; i < n; i++) last[i] = w->rank + i;
    return b_reduce(b, reduce, b_windows(b, x, w, n, axes), n, last);
}
/* Along one axis a long window is a window over the results of shorter ones, `part` elements each, and a remainder. The
   number of operations is the sum of the factors of its length, not their product. */
enum { LONG_WINDOW = 12, MOST_PART = 8 };
static Val reduce_along(Builder *b, Prim reduce, Val x, const Windows *w, int64_t axis) {
    Types *ts = b_types(b);
    Dim n = w->window[axis], stride = w->stride[axis];
    if (b->failed || !dim_is_const(n) || n <= LONG_WINDOW * stride) return reduce_at_once(b, reduce, x, w, 1, &axis);
    Dim part = MOST_PART;
    for (Dim k = part; k >= MOST_PART / 2; k--)
        if (n % k < n % part) part = k;
    Windows first = *w, rest = *w;
    first.window[axis] = part, first.stride[axis] = 1;
    rest.window[axis] = n / part, rest.dilation[axis] = dim_mul(ts, w->dilation[axis], part);
    Val y = reduce_along(b, reduce, reduce_at_once(b, reduce, x, &first, 1, &axis), &rest, axis);
    if (n % part == 0 || b->failed) return y;
    Dim done = dim_mul(ts, w->dilation[axis], n - n % part);
    rest = *w, rest.window[axis] = n % part;
    Val left = reduce_at_once(b, reduce, b_slice_axis(b, x, axis, done, b_type(b, x)->dims[axis]), &rest, 1, &axis);
    if (b->failed) return VAL_FAILED;
    return b2(b, prim_combiner[reduce], b_slice_axis(b, y, axis, 0, b_type(b, left)->dims[axis]), left);
}
/* Axis by axis if that is less work than all at once: counts elements of the windows, and some for each intermediate
   array. */
enum { PASS_COST = 4 };
static bool one_by_one(const ArrayType *x, const Windows *w, uint32_t n, const int64_t *axes) {
    double all = 1, passes = 0, results = 1;
    for (uint32_t i = 0; i < n; i++) {
        if (!dim_is_const(w->window[axes[i]])) return true;
        all *= (double)w->window[axes[i]];
    }
    for (uint32_t i = n; i-- > 0;) { /* results of the pass, as multiples of those of the last one */
        uint32_t a = (uint32_t)axes[i];
        double window = (double)w->window[a], stride = (double)w->stride[a], extent = (double)x->dims[a];
        passes += results * ((window > LONG_WINDOW ? LONG_WINDOW : window) + PASS_COST);
        double made = dim_is_const(x->dims[a]) ? (extent - (window - 1) * (double)w->dilation[a] - 1) / stride + 1 : 0;
        results *= made >= 1 ? extent / made : stride;
    }
    return passes < all;
}
static Val reduce_windows(Builder *b, Prim reduce, Val x, const Windows *w) {
    int64_t axes[MAX_RANK];
    uint32_t n = moving(w, axes);
    x = b_spread_out(b, x, w, b_neutral(b, reduce, b_type(b, x)->dtype));
    if (b->failed || (n > 1 && !one_by_one(b_type(b, x), w, n, axes))) return reduce_at_once(b, reduce, x, w, n, axes);
    for (uint32_t i = 0; i < n; i++) x = reduce_along(b, reduce, x, w, axes[i]);
    return x;
}
static bool expand_reduction(Builder *b, const Eqn *e, Prim reduce, Val *out) {
    Windows w = {0};
    if (nothing(b, e, out)) return true;
    if (!read_windows(b, e, b_type(b, e->in.at[0])->rank, &w)) return false;
    out[0] = reduce_windows(b, reduce, e->in.at[0], &w);
    return true;
}
bool expand_reduce_window_sum(Builder *b, const Eqn *e, Val *out) { return expand_reduction(b, e, P_reduce_sum, out); }
bool expand_reduce_window_max(Builder *b, const Eqn *e, Val *out) { return expand_reduction(b, e, P_reduce_max, out); }
bool expand_reduce_window_min(Builder *b, const Eqn *e, Val *out) { return expand_reduction(b, e, P_reduce_min, out); }

/* ---- any combination: position by position for all windows at once, in row-major order. XLA skips elements that are
   not in the array. */
enum { WRITTEN_OUT = 32 };
/* acc[nacc] with the next element x[n] of each window, which is at `position`, becomes out[nacc]. */
typedef void Combine(Builder *, void *user, Val position, const Val *acc, const Val *x, Val *out);
typedef struct {
    uint32_t n, nacc, naxes;
    Val x[MAX_RANK]; /* what the windows move over */
    Val there;       /* true where that has an element; 0: everywhere */
    const Windows *w;
    int64_t axes[MAX_RANK];
    Dim window[MAX_RANK], positions; /* of each axis; of all */
    Combine *combine;
    void *user;
} Fold;

/* The elements at one position of all windows; `at` has the positions along the axes of the windows. */
static Val element(Builder *b, const Fold *f, Val v, const Val *at) {
    v = b_windows(b, v, f->w, f->naxes, f->axes);
    if (b_failed(b, v)) return VAL_FAILED;
    const ArrayType *t = b_type(b, v);
    uint32_t rank = t->rank - f->naxes;
    Val starts[MAX_RANK];
    Dim sizes[MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++) {
        starts[i] = i < rank ? b_int(b, DT_i32, 0) : at[i - rank];
        sizes[i] = i < rank ? t->dims[i] : 1;
    }
    return b_reshape(b, b_dynamic_slice(b, v, starts, sizes), rank, t->dims);
}
static void step(Builder *b, const Fold *f, Val position, const Val *at, const Val *acc, Val *out) {
    Val x[MAX_RANK];
    for (uint32_t i = 0; i < f->n; i++) x[i] = element(b, f, f->x[i], at);
    f->combine(b, f->user, position, acc, x, out);
    if (!f->there) return;
    Val there = element(b, f, f->there, at);
    for (uint32_t i = 0; i < f->nacc; i++) out[i] = b_select(b, there, acc[i], out[i]);
}
/* The digits of a position, the last axis fastest. */
static void digits(Builder *b, const Fold *f, Val position, Val *at) {
    for (uint32_t i = f->naxes; i-- > 0;) {
        Val n = b_dim(b, DT_i32, f->window[i]);
        at[i] = b_rem(b, position, n);
        position = b_div(b, position, n);
    }
}
static void fold_in_loop(Builder *b, const Fold *f, Val *acc) {
    Val carry[MAX_RANK + 1] = {b_int(b, DT_i32, 0)}, next[MAX_RANK + 1], at[MAX_RANK];
    uint32_t n = 1 + f->nacc;
    memcpy(carry + 1, acc, f->nacc * sizeof *acc);
    Inner turn = b_inner_like(b, n, carry);
    Val position = turn.in.at[0];
    digits(b, f, position, at);
    step(b, f, position, at, turn.in.at + 1, next + 1);
    next[0] = b_add(b, position, b_int(b, DT_i32, 1));
    b_inner_end(b, &turn, n, next);
    Vals y = b_scan(b, &turn, (Loop){.length = f->positions, .carries = n}, n, carry);
    memcpy(acc, y.at + 1, f->nacc * sizeof *acc);
}
/* acc: the scalars to begin with, then the results. */
static void fold(Builder *b, uint32_t n, const Val *x, const Windows *w, Val *acc, uint32_t nacc, Combine *combine,
                 void *user) {
    Fold f = {.n = n, .nacc = nacc, .w = w, .combine = combine, .user = user, .positions = 1};
    f.naxes = moving(w, f.axes);
    for (uint32_t i = 0; i < f.naxes; i++) {
        f.window[i] = w->window[f.axes[i]];
        f.positions = dim_mul(b_types(b), f.positions, f.window[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        Val none = b_number(b, b_type(b, x[i])->dtype, 0);
        f.x[i] = b_spread_out(b, x[i], w, none);
    }
    if (spread_out(w)) {
        const ArrayType *t = b_type(b, x[0]);
        Val all = b_full(b, b_number(b, DT_bool, 1), t->rank, t->dims);
        f.there = b_spread_out(b, all, w, b_number(b, DT_bool, 0));
    }
    if (b->failed) return;
    const ArrayType *t = b_type(b, b_windows(b, f.x[0], w, f.naxes, f.axes));
    for (uint32_t i = 0; i < nacc; i++) acc[i] = b_full(b, acc[i], t->rank - f.naxes, t->dims);
    if (!dim_is_const(f.positions) || f.positions > WRITTEN_OUT) {
        fold_in_loop(b, &f, acc);
        return;
    }
    for (Dim k = 0; k < f.positions; k++) {
        Val at[MAX_RANK], next[MAX_RANK];
        Dim rest = k;
        for (uint32_t i = f.naxes; i-- > 0;) at[i] = b_int(b, DT_i32, rest % f.window[i]), rest /= f.window[i];
        step(b, &f, b_int(b, DT_i32, k), at, acc, next);
        memcpy(acc, next, nacc * sizeof *acc);
    }
}

/* ---- reduce_window with a program */
/* The reduction that a program of two scalars is the step of; P_none if there is none. */
static Prim reduction_of(const Jaxpr *j) {
    if (j->in.n != 2 || j->out.n != 1 || j->eqns.n != 1) return P_none;
    const Eqn *e = &j->eqns.at[0];
    if (e->in.n != 2 || e->out.at[0] != j->out.at[0]) return P_none;
    bool same = e->in.at[0] == j->in.at[0] && e->in.at[1] == j->in.at[1];
    bool swapped = e->in.at[0] == j->in.at[1] && e->in.at[1] == j->in.at[0];
    return same || swapped ? b_reduction(e->prim) : P_none;
}
static void combine_program(Builder *b, void *user, Val position, const Val *acc, const Val *x, Val *out) {
    const Jaxpr *j = user;
    Val in[2 * MAX_RANK];
    memcpy(in, acc, j->out.n * sizeof *in);
    memcpy(in + j->out.n, x, j->out.n * sizeof *in);
    Vals y = b_map(b, j, j->in.n, in);
    memcpy(out, y.at, j->out.n * sizeof *out);
}
bool expand_reduce_window(Builder *b, const Eqn *e, Val *out) {
    Windows w = {0};
    Jaxpr *j = param_jaxpr(e, K_jaxpr);
    uint32_t n = e->in.n / 2;
    if (nothing(b, e, out)) return true;
    if (!read_windows(b, e, b_type(b, e->in.at[0])->rank, &w)) return false;
    if (n > MAX_RANK / 2) return diag(b->cx->diags, e->span, "reduce_window of %u arrays is not supported yet", n);
    if (w.rank == 0) { /* XLA leaves out the initial value */
        memcpy(out, e->in.at, n * sizeof *out);
        return true;
    }
    Prim reduce = reduction_of(j);
    if (reduce) {
        Val y = reduce_windows(b, reduce, e->in.at[0], &w);
        out[0] = b2(b, j->eqns.at[0].prim, e->in.at[1], y);
        return true;
    }
    memcpy(out, e->in.at + n, n * sizeof *out);
    fold(b, n, e->in.at, &w, out, n, combine_program, j);
    return true;
}

/* ---- the chosen place of each window: the first one that no later one displaces */
static Prim select_prim(const Eqn *e) {
    Str s = param_find(e, K_select_prim)->value.s;
    return s.at[s.n - 2] == 'g' ? P_ge : P_le;
}
static void combine_chosen(Builder *b, void *user, Val position, const Val *acc, const Val *x, Val *out) {
    Val keeps = b2(b, *(Prim *)user, acc[0], x[0]);
    for (uint32_t i = 0; i < 2; i++) out[i] = b_select(b, keeps, x[i], acc[i]);
}
/* Tangents, operand. */
bool expand_select_and_gather_add(Builder *b, const Eqn *e, Val *out) {
    Windows w = {0};
    Prim prim = select_prim(e);
    Dtype d = b_type(b, e->in.at[1])->dtype;
    if (nothing(b, e, out)) return true;
    if (!read_windows(b, e, b_type(b, e->in.at[1])->rank, &w)) return false;
    Val worst = b_float(b, d, dtype_float_limit(d, prim != P_ge));
    Val x[2] = {e->in.at[1], e->in.at[0]}, acc[2] = {worst, b_number(b, d, 0)};
    fold(b, 2, x, &w, acc, 2, combine_chosen, &prim);
    out[0] = acc[1];
    return true;
}
/* The place that a window chooses, as the position within it; all positions of the windows count. */
static void combine_place(Builder *b, void *user, Val position, const Val *acc, const Val *x, Val *out) {
    if (b_failed(b, acc[1])) return;
    const ArrayType *t = b_type(b, acc[1]);
    Val keeps = b2(b, *(Prim *)user, acc[0], x[0]);
    out[0] = b_select(b, keeps, x[0], acc[0]);
    out[1] = b_select(b, keeps, b_full(b, position, t->rank, t->dims), acc[1]);
}
/* The windows that contain an element of t form a window too: over the results s of the windows w, with gaps between
   them, backwards. */
static void windows_back(Builder *b, const Windows *w, const ArrayType *t, const ArrayType *s, Windows *back) {
    Types *ts = b_types(b);
    back->rank = w->rank;
    for (uint32_t i = 0; i < w->rank; i++) {
        Dim last = dim_sub(ts, w->window[i], 1), from = dim_sub(ts, last, w->low[i]);
        Dim spread = dim_dilated(ts, s->dims[i], w->stride[i]);
        back->window[i] = w->window[i], back->stride[i] = back->dilation[i] = 1, back->base[i] = w->stride[i];
        back->low[i] = from;
        back->high[i] = dim_sub(ts, dim_sub(ts, dim_add(ts, t->dims[i], last), from), spread);
    }
}
/* Source, operand. JAX first pads the operand, with a value that is selected only in windows of nothing else. */
bool expand_select_and_scatter_add(Builder *b, const Eqn *e, Val *out) {
    Windows w = {0}, back = {0};
    Types *ts = b_types(b);
    Prim prim = select_prim(e);
    Val source = e->in.at[0], x = e->in.at[1];
    const ArrayType *t = b_type(b, x), *s = b_type(b, source);
    if (nothing(b, e, out)) return true;
    if (!read_windows(b, e, t->rank, &w)) return false;
    Val worst = b_neutral(b, prim == P_ge ? P_reduce_max : P_reduce_min, t->dtype);
    Val acc[2] = {worst, b_int(b, DT_i32, 0)};
    x = b_spread_out(b, x, &w, worst);
    windows_back(b, &w, t, s, &back);
    memset(w.low, 0, sizeof w.low), memset(w.high, 0, sizeof w.high);
    fold(b, 1, &x, &w, acc, 2, combine_place, &prim);
    /* position by position: the last one of the window is the first of those that hold the element */
    int64_t axes[MAX_RANK], last[MAX_RANK], to[MAX_RANK];
    uint32_t n = moving(&back, axes);
    Dim window[MAX_RANK], positions = 1;
    for (uint32_t i = 0; i < n; i++) {
        window[i] = back.window[axes[i]];
        positions = dim_mul(ts, positions, window[i]);
        last[i] = to[i] = w.rank + i;
    }
    Val places = b_windows(b, b_spread_out(b, acc[1], &back, b_int(b, DT_i32, -1)), &back, n, axes);
    Val terms = b_windows(b, b_spread_out(b, source, &back, b_number(b, t->dtype, 0)), &back, n, axes);
    Val place = b_rev(b, b_iota(b, DT_i32, 1, &positions, 0), 1, (int64_t[]){0});
    if (b->failed) return false;
    const ArrayType *all = b_type(b, terms);
    place = b_broadcast(b, b_reshape(b, place, n, window), all->rank, all->dims, to);
    terms = b_select(b, b_eq(b, places, place), b_full_like(b, terms, 0), terms);
    out[0] = b_reduce(b, P_reduce_sum, terms, n, last);
    return true;
}

/* ---- places chosen by a program, combined by another one */
/* acc: the element chosen so far and its position in the window, -1 before the first one. */
static void combine_selected(Builder *b, void *user, Val position, const Val *acc, const Val *x, Val *out) {
    if (b_failed(b, acc[1])) return;
    const ArrayType *t = b_type(b, acc[1]);
    Val before = b_map(b, user, 2, (Val[]){acc[0], x[0]}).at[0];
    Val keeps = b_and(b, b_ge(b, acc[1], b_full_like(b, acc[1], 0)), before);
    out[0] = b_select(b, keeps, x[0], acc[0]);
    out[1] = b_select(b, keeps, b_full(b, position, t->rank, t->dims), acc[1]);
}
/* x: the positions that windows have chosen, and what they give. */
typedef struct {
    const Jaxpr *program;
    Dim positions;
} Scattered;
static void combine_scattered(Builder *b, void *user, Val position, const Val *acc, const Val *x, Val *out) {
    const Scattered *s = user;
    if (b_failed(b, x[0])) return;
    const ArrayType *t = b_type(b, x[0]);
    Val place = b_sub(b, b_dim(b, DT_i32, dim_sub(b_types(b), s->positions, 1)), position); /* backwards */
    Val here = b_eq(b, x[0], b_full(b, place, t->rank, t->dims));
    out[0] = b_select(b, here, acc[0], b_map(b, s->program, 2, (Val[]){acc[0], x[1]}).at[0]);
}
/* Operand, source, scalar. Windows choose among what is in the array; what several give to one place comes in the order
   of the windows. */
bool expand_select_and_scatter(Builder *b, const Eqn *e, Val *out) {
    Windows w = {0}, back = {0};
    Val x = e->in.at[0], source = e->in.at[1];
    const ArrayType *t = b_type(b, x), *s = b_type(b, source);
    if (nothing(b, e, out)) return true;
    if (!read_windows(b, e, t->rank, &w)) return false;
    out[0] = e->in.at[2];
    if (b_empty(b, source)) {
        out[0] = b_full(b, out[0], t->rank, t->dims);
        return true;
    }
    windows_back(b, &w, t, s, &back);
    Val chosen[2] = {b_number(b, t->dtype, 0), b_int(b, DT_i32, -1)};
    fold(b, 1, &x, &w, chosen, 2, combine_selected, param_jaxpr(e, K_select_jaxpr));
    Scattered scattered = {param_jaxpr(e, K_scatter_jaxpr), 1};
    for (uint32_t i = 0; i < w.rank; i++) scattered.positions = dim_mul(b_types(b), scattered.positions, w.window[i]);
    fold(b, 2, (Val[]){chosen[1], source}, &back, out, 1, combine_scattered, &scattered);
    return true;
}

/* ---- derivatives */
/* The parameters of such an equation; `dilations`: with those that scatters do not take. */
static uint32_t window_params(Builder *b, const Windows *w, bool dilations, Param *p) {
    Dim padding[2 * MAX_RANK];
    for (uint32_t i = 0; i < w->rank; i++) padding[2 * i] = w->low[i], padding[2 * i + 1] = w->high[i];
    uint32_t n = 0;
    if (dilations) p[n++] = p_dims(b, K_base_dilation, w->rank, w->base);
    p[n++] = p_dims(b, K_padding, 2 * w->rank, padding);
    if (dilations) p[n++] = p_dims(b, K_window_dilation, w->rank, w->dilation);
    p[n++] = p_dims(b, K_window_dimensions, w->rank, w->window);
    p[n++] = p_ints(b, K_window_strides, w->rank, w->stride);
    return n;
}
enum { MOST_PARAMS = 8 };

/* The sum of what the windows that contain an element give: windows over the cotangents, backwards. */
bool transpose_reduce_window_sum(Transpose *t) {
    Builder *b = t->b;
    Types *ts = b_types(b);
    const ArrayType *x = ct_type(t, 0), *c = b_type(b, t->ct[0]);
    Windows w = {0}, spread = {.rank = x->rank}, sum = {.rank = x->rank};
    if (!read_windows(b, t->e, x->rank, &w)) return false;
    for (uint32_t i = 0; i < w.rank; i++) {
        Dim far = dim_dilated(ts, w.window[i], w.dilation[i]), given = dim_dilated(ts, x->dims[i], w.base[i]);
        if (!dim_is_const(w.base[i])) return transpose_none(t);
        spread.base[i] = w.stride[i];
        spread.low[i] = dim_sub(ts, dim_sub(ts, far, 1), w.low[i]);
        Dim all = dim_sub(ts, dim_add(ts, given, far), 1), used = dim_dilated(ts, c->dims[i], w.stride[i]);
        spread.high[i] = dim_sub(ts, dim_sub(ts, all, used), spread.low[i]);
        sum.base[i] = 1, sum.window[i] = w.window[i], sum.dilation[i] = w.dilation[i], sum.stride[i] = w.base[i];
    }
    Param p[MOST_PARAMS];
    Val y = b_spread_out(b, t->ct[0], &spread, b_number(b, c->dtype, 0));
    if (!b_empty(b, t->e->in.at[0]))
        ct_add(t, 0, build(b, P_reduce_window_sum, 1, &y, window_params(b, &sum, true, p), p));
    return true;
}

/* Of each window the tangent at the place of the result. */
static bool chosen(Jvp *d, const char *select) {
    Builder *b = d->b;
    Windows w = {0};
    Param p[MOST_PARAMS];
    if (!read_windows(b, d->e, b_type(b, d->t[0])->rank, &w)) return false;
    uint32_t n = window_params(b, &w, true, p);
    p[n++] = p_word(K_select_prim, select);
    d->dt[0] = build(b, P_select_and_gather_add, 2, (Val[]){d->t[0], d->e->in.at[0]}, n, p);
    return !b->failed;
}
bool jvp_reduce_window_max(Jvp *d) { return chosen(d, "ge"); }
bool jvp_reduce_window_min(Jvp *d) { return chosen(d, "le"); }

/* Linear in operand 0; operand 1 only says which places are chosen. */
bool jvp_selected(Jvp *d) {
    if (d->t[0]) d->dt[0] = jvp_apply(d, (Val[]){d->t[0], d->e->in.at[1]}).at[0];
    return !d->b->failed;
}
bool transpose_select_and_gather_add(Transpose *t) {
    Builder *b = t->b;
    Val x = t->e->in.at[1], zero;
    const ArrayType *type = b_type(b, x);
    Windows w = {0}, gaps = {.rank = type->rank};
    Dim start[MAX_RANK] = {0};
    int64_t stride[MAX_RANK];
    bool spread = false;
    if (!read_windows(b, t->e, type->rank, &w)) return false;
    for (uint32_t i = 0; i < w.rank; i++) {
        if (w.dilation[i] != 1)
            return tx_error(t->tx, t->e->span, "%s with window dilation has no transpose", prim_name[t->e->prim]);
        gaps.base[i] = stride[i] = w.base[i];
        spread |= w.base[i] != 1;
    }
    bool most = select_prim(t->e) == P_ge;
    zero = b_neutral(b, most ? P_reduce_max : P_reduce_min, type->dtype);
    if (spread) x = b_spread_out(b, x, &gaps, zero);
    Param p[MOST_PARAMS];
    uint32_t n = window_params(b, &w, false, p);
    p[n++] = *param_find(t->e, K_select_prim);
    Val y = build(b, P_select_and_scatter_add, 2, (Val[]){t->ct[0], x}, n, p);
    if (spread && !b->failed) y = b_slice(b, y, start, b_type(b, y)->dims, stride);
    ct_add(t, 0, y);
    return true;
}
bool transpose_select_and_scatter_add(Transpose *t) {
    Builder *b = t->b;
    Windows w = {0};
    Param p[MOST_PARAMS];
    if (!read_windows(b, t->e, ct_type(t, 1)->rank, &w)) return false;
    uint32_t n = window_params(b, &w, true, p);
    p[n++] = *param_find(t->e, K_select_prim);
    ct_add(t, 0, build(b, P_select_and_gather_add, 2, (Val[]){t->ct[0], t->e->in.at[1]}, n, p));
    return true;
}

/* The same windows of values and tangents, combined by the derivative of the program. */
bool jvp_reduce_window(Jvp *d) {
    Builder *b = d->b;
    Ctx *cx = b->cx;
    const Eqn *e = d->e;
    uint32_t n = e->out.n, m = n;
    for (uint32_t i = n; i < 2 * n; i++)
        if (d->t[i])
            return tx_error(d->tx, operand_span(d->read, i), "reduce_window has no derivative in its initial values");
    Jaxpr *j = jvp_of_pairs(d, param_jaxpr(e, K_jaxpr));
    if (!j) return false;
    Val *in = arena_new(cx->arena, Val, 2 * (size_t)j->out.n + 1);
    Param *params = arena_new(cx->arena, Param, e->params.n + 1);
    pair_operands(d, in, in + j->out.n);
    for (uint32_t i = 0; i < e->params.n; i++)
        params[i] = e->params.at[i].key == K_jaxpr ? p_jaxpr(K_jaxpr, j) : e->params.at[i];
    Vals out = build_many(b, P_reduce_window, 2 * j->out.n, in, e->params.n, params, j->out.n, NULL);
    if (b->failed) return false;
    memcpy(d->out, out.at, n * sizeof *out.at);
    for (uint32_t i = 0; i < n; i++)
        if (has_tangent(cx, val_type(cx, e->in.at[i]))) d->dt[i] = out.at[m++];
    return true;
}

/* ---- for a batch of examples */
/* Operand, source, initial value. */
bool vmap_select_and_scatter(Vmap *v) {
    if (v->batched[2]) return vmap_expand(v);
    Val in[3] = {vmap_operand(v, 0), vmap_operand(v, 1), v->e->in.at[2]};
    Eqn e = vmap_axes(v, v->e);
    return vmap_apply(v, &e, in);
}
