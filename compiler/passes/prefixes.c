/* On a CPU prefixes along a short innermost axis are computed column by column:

     y = cumsum[axis=1] x      becomes      y = stack[axis=1] a (add a b) (add (add a b) c)

   where a, b and c are the columns of x. Vectors run along the rows, of which one step reads and writes all elements,
   instead of having few lanes of each row. Sums of floats are added as a tree, as vectors of prefixes are: the error is
   that of log2(n) additions. Products are in order, as part of them alone may overflow. */
#include "../options.h"
#include "simplify.h"

/* The longest axis, of sums of exponentials too; bytes of the vectors that prefixes along it are left to if it has a
   multiple of them. In a program with more columns in all prefixes stay as they are: each takes a millisecond to
   compile, one of exponentials as long as so many others. Rows that are few and longer than a vector stay as well: 6
   rows of 15 in a loop in 56 ns a turn, not 125. */
enum { MOST_SHORT = 16, MOST_SHORT_LOGS = 8, WHOLE_BYTES = 64, MOST_COLUMNS = 256, LOG_COLUMNS = 8 };
enum { FEW_ROWS = 64, LONG_ROW = 8 };

/* The extent of the innermost axis if prefixes go along it and it is short; else 0. */
static uint32_t short_axis(Ctx *cx, const Eqn *e) {
    if (prim_lower[e->prim] != LOWER_CUM) return 0;
    const ArrayType *t = val_array(cx, e->in.at[0]);
    DtypeKind kind = dtype_info[t->dtype].kind;
    bool number = kind == DK_FLOAT || kind == DK_SINT || kind == DK_UINT;
    if (t->rank < 2 || param_number(e, K_axis) + 1 != t->rank || !number || dtype_is_narrow(t->dtype)) return 0;
    Dim k = t->dims[t->rank - 1];
    uint32_t bytes = dtype_bytes(t->dtype);
    uint32_t most = e->prim == P_cumlogsumexp ? MOST_SHORT_LOGS : MOST_SHORT;
    if (!dim_is_const(k) || k < 2 || k > most || k * (bytes < 4 ? 4 : bytes) % WHOLE_BYTES == 0) return 0;
    Dim n = type_size(cx->types, val_type(cx, e->in.at[0]));
    return dim_is_const(n) && k > LONG_ROW && n < FEW_ROWS * k ? 0 : (uint32_t)k;
}
static bool is_float(Dtype d) { return dtype_info[d].kind == DK_FLOAT; }
/* Floats of 16 bits are added and multiplied in f32, and each prefix is rounded once. */
static Dtype combined_as(Prim combiner, Dtype d) {
    bool half = is_float(d) && dtype_info[d].bits < 32, exact = combiner == P_max || combiner == P_min;
    return half && !exact ? DT_f32 : d;
}
/* log(e^x + e^y) as JAX has it. */
static Val logaddexp(Builder *b, Val x, Val y) {
    Val d = b_sub(b, x, y), sum = b_add(b, b_max(b, x, y), b_log1p(b, b_exp(b, b_neg(b, b_abs(b, d)))));
    return b_select(b, b_ne(b, d, d), sum, b_add(b, x, y)); /* infinities of one sign, NaN */
}
/* P_none: cumlogsumexp. */
static Val combined(Builder *b, Prim p, Val x, Val y) { return p == P_none ? logaddexp(b, x, y) : b2(b, p, x, y); }
/* After step s of a tree y[i] has what is from i's multiple of 2s to i; the last one before a multiple of s and odd
   times s takes what is before. */
static void combine_as_tree(Builder *b, Prim p, Val *y, uint32_t n) {
    for (uint32_t s = 1; s < n; s *= 2)
        for (uint32_t i = s; i < n; i++)
            if (i & s) y[i] = combined(b, p, y[i / s * s - 1], y[i]);
}
static void combine_in_order(Builder *b, Prim p, Val *y, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) y[i] = combined(b, p, y[i - 1], y[i]);
}
static Val rewrite(const Defs *d, Builder *b, const Eqn *e) {
    uint32_t n = short_axis(d->cx, e);
    if (!n) return 0;
    Val x = e->in.at[0], y[MOST_SHORT], stacked[MOST_SHORT];
    const ArrayType *t = val_array(d->cx, x);
    Prim p = prim_combiner[e->prim];
    int64_t axis = (int64_t)t->rank - 1;
    Dtype as = combined_as(p, t->dtype);
    bool reverse = param_bool(e, K_reverse), sum = p == P_add || p == P_none;
    for (uint32_t i = 0; i < n; i++) {
        Dim at = reverse ? n - 1 - i : i;
        y[i] = b_convert(b, b_squeeze(b, b_slice_axis(b, x, axis, at, at + 1), 1, &axis), as);
    }
    (sum && is_float(as) ? combine_as_tree : combine_in_order)(b, p, y, n);
    for (uint32_t i = 0; i < n; i++) stacked[reverse ? n - 1 - i : i] = b_convert(b, y[i], t->dtype);
    return build(b, P_stack, n, stacked, 1, (Param[]){p_int(K_axis, axis)});
}
static uint32_t columns_of(Ctx *cx, const Jaxpr *j) {
    uint32_t n = 0;
    Jaxprs all = jaxprs_within(cx->arena, j);
    each(Jaxpr *, k, all)
        each(const Eqn, e, (*k)->eqns) n += short_axis(cx, e) * (e->prim == P_cumlogsumexp ? LOG_COLUMNS : 1);
    return n;
}
Jaxpr *pass_prefixes(Ctx *cx, const Jaxpr *j) {
    uint32_t n = options_for_device(cx->options) ? 0 : columns_of(cx, j);
    return n && n <= MOST_COLUMNS ? fold_with(cx, j, rewrite) : jaxpr_with(cx, j, j->eqns, j->out);
}
