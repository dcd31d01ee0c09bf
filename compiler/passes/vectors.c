/* Products of a matrix and a vector become sums:

     y = dot_general(m, x)      becomes      y = reduce_sum(m * x)

   with x stretched to the matrix. On a GPU warps and blocks divide them among each other, whereas tensor cores and
   tiles would wait for memory. On a CPU only sums of few terms do, where vectors along the results take the rows apart
   as they read them, and what computes the operands or takes the results is in the same loop; and few long sums of two
   vectors, which threads add up in parts. */
#include "build.h"
#include "../options.h"

/* On a CPU. 25000 rows of 8 f32 terms: 27 us instead of 41; of 3, one for each of a batch: 70 instead of 270. Products
   of a batch whose terms are words of WORD_BYTES are better read as such: 57 us, not 100. Of a million f64 terms two
   threads take 268 us, not 331. */
enum { MOST_TERMS = 12, WORD_BYTES = 16, LONG_TERMS = 1 << 18, FEW_SUMS = 4 };
typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo;
    bool device;
} Vectors;

static const Value *axis_lists(const Eqn *dot) { return param_find(dot, K_dimension_numbers)->value.list.at; }
static bool is_free(const Eqn *e, uint32_t side, uint32_t axis) {
    return !ints_have(axis_lists(e)[side].ints, axis) && !ints_have(axis_lists(e)[2 + side].ints, axis);
}
/* Is this operand a vector, or one for each index of the batch? */
static bool is_vector(Ctx *cx, const Eqn *e, uint32_t side) {
    const ArrayType *t = val_array(cx, e->in.at[side]);
    for (uint32_t a = 0; a < t->rank; a++)
        if (is_free(e, side, a) && t->dims[a] != 1) return false;
    return axis_lists(e)[side].ints.n > 0;
}
/* The type that terms are added in, if a sum in it is what the product is: floats of 16 bits are added in f32. */
static Dtype summed(Ctx *cx, const Eqn *e) {
    Dtype a = val_array(cx, e->in.at[0])->dtype, b = val_array(cx, e->in.at[1])->dtype;
    Dtype y = val_array(cx, e->out.at[0])->dtype;
    DtypeKind kind = dtype_info[y].kind;
    bool number = kind == DK_FLOAT || kind == DK_SINT || kind == DK_UINT;
    bool exact = (a == y || dtype_is_exact(a, y)) && (b == y || dtype_is_exact(b, y));
    if (!number || !exact || dtype_is_narrow(y)) return DT_none;
    return y == DT_bf16 || y == DT_f16 ? DT_f32 : y;
}
/* The axis of the matrix that is axis `a` of the vector. */
static int64_t shared_axis(const Eqn *e, uint32_t vector, uint32_t a) {
    const Value *lists = axis_lists(e);
    int64_t term = ints_find(lists[vector].ints, a), batch = ints_find(lists[2 + vector].ints, a);
    return term >= 0 ? lists[1 - vector].ints.at[term] : lists[3 - vector].ints.at[batch];
}
static Val stretched(Builder *b, const Eqn *e, uint32_t vector, Val x, Val matrix) {
    const ArrayType *t = b_type(b, x), *m = b_type(b, matrix);
    int64_t *to = arena_new(b->cx->arena, int64_t, t->rank + 1), *ones = arena_new(b->cx->arena, int64_t, t->rank + 1);
    uint32_t n = 0, nones = 0;
    for (uint32_t a = 0; a < t->rank; a++)
        if (is_free(e, vector, a))
            ones[nones++] = a;
        else
            to[n++] = shared_axis(e, vector, a);
    return b_place(b, nones ? b_squeeze(b, x, nones, ones) : x, m->rank, m->dims, to);
}
/* The axes that are left of the matrix in the result's order: those of the batch first. */
static Val ordered(Builder *b, const Eqn *e, uint32_t side, uint32_t rank, Val sums) {
    Ints terms = axis_lists(e)[side].ints, batch = axis_lists(e)[2 + side].ints;
    int64_t *order = arena_new(b->cx->arena, int64_t, rank + 1), *left = arena_new(b->cx->arena, int64_t, rank + 1);
    uint32_t n = 0;
    for (uint32_t a = 0, at = 0; a < rank; a++) left[a] = ints_have(terms, a) ? -1 : (int64_t)at++;
    for (uint32_t i = 0; i < batch.n; i++) order[n++] = left[batch.at[i]];
    for (uint32_t a = 0; a < rank; a++)
        if (is_free(e, side, a)) order[n++] = left[a];
    bool same = true;
    for (uint32_t i = 0; i < n; i++) same &= order[i] == i;
    return same ? sums : b_transpose(b, sums, order);
}
static Val sum_of(Vectors *v, Builder *b, const Eqn *e, uint32_t vector, Dtype acc) {
    const ArrayType *y = val_array(v->cx, e->out.at[0]);
    Val matrix = valmap_get(&v->map, e->in.at[1 - vector]), x = valmap_get(&v->map, e->in.at[vector]);
    Ints terms = axis_lists(e)[1 - vector].ints;
    Val far = stretched(b, e, vector, b_convert(b, x, acc), matrix);
    Val sums = b_reduce(b, P_reduce_sum, b_mul(b, b_convert(b, matrix, acc), far), terms.n, terms.at);
    sums = ordered(b, e, 1 - vector, b_type(b, matrix)->rank, sums);
    return b_convert(b, b_reshape(b, sums, y->rank, y->dims), y->dtype);
}
static Dim terms_of(Ctx *cx, const Eqn *e) {
    const ArrayType *t = val_array(cx, e->in.at[0]);
    Dim n = 1;
    each(const int64_t, a, axis_lists(e)[0].ints) n = dim_mul(cx->types, n, t->dims[*a]);
    return n;
}
static bool suits_cpu(Ctx *cx, const Eqn *e) {
    Dim n = terms_of(cx, e), sums = type_size(cx->types, val_type(cx, e->out.at[0]));
    uint32_t bytes = dtype_bytes(val_array(cx, e->in.at[0])->dtype);
    if (!dim_is_const(n)) return false;
    if (n <= MOST_TERMS) return !axis_lists(e)[2].ints.n || n != WORD_BYTES / bytes;
    return n >= LONG_TERMS && dim_is_const(sums) && sums <= FEW_SUMS && is_vector(cx, e, 0) && is_vector(cx, e, 1);
}
static bool write_sum(Vectors *v, const Eqn *e, Eqns *to) {
    if (e->prim != P_dot_general || (!v->device && !suits_cpu(v->cx, e))) return false;
    Dtype acc = summed(v->cx, e);
    uint32_t vector = is_vector(v->cx, e, 1) ? 1 : 0;
    if (acc == DT_none || !is_vector(v->cx, e, vector)) return false;
    Builder b = {.cx = v->cx, .span = e->span};
    valmap_put(&v->map, e->out.at[0], sum_of(v, &b, e, vector, acc));
    assert(!b.failed);
    each(const Eqn, made, b.eqns) push(v->cx->arena, to, *made);
    return true;
}
static Jaxpr *vectors_jaxpr(void *user, const Jaxpr *j) {
    Vectors *v = user;
    if (*memo_slot(&v->memo, j)) return *memo_slot(&v->memo, j);
    Eqns eqns = eqns_for(v->cx, j);
    each(const Eqn, e, j->eqns)
        if (!write_sum(v, e, &eqns)) push(v->cx->arena, &eqns, eqn_rewrite(&v->map, e, vectors_jaxpr, v));
    Jaxpr *new = jaxpr_with(v->cx, j, eqns, vals_rewrite(&v->map, j->out));
    return *memo_slot(&v->memo, j) = new;
}
Jaxpr *pass_vectors(Ctx *cx, const Jaxpr *j) {
    Vectors v = {.cx = cx, .map.cx = cx, .memo.arena = cx->arena, .device = options_for_device(cx->options)};
    bool any = jaxpr_uses(cx->arena, j, P_dot_general);
    return any ? vectors_jaxpr(&v, j) : jaxpr_with(cx, j, j->eqns, j->out);
}
