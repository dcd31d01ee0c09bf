/* Derivatives of elementwise primitives other than those that are text (stdlib/jvp.jaxpr): arithmetic, powers, choices.
   Formulas, and the order in which they are evaluated, as in jax/_src/lax/lax.py of JAX 0.10.2. */
#include "../transform/transform.h"

/* `v` as a tangent of result 0. */
static Val stretched(Jvp *d, Val v) {
    const ArrayType *t = b_type(d->b, jvp_result(d, 0));
    return b_stretch(d->b, v, t->rank, t->dims);
}
/* Adds to the cotangent of an operand what was computed for the stretched one. */
static void add_unstretched(Transpose *t, uint32_t i, Val v) {
    const ArrayType *x = ct_type(t, i);
    ct_add(t, i, b_sum_to(t->b, v, x->rank, x->dims, NULL));
}
/* The operand is known: a value that rules may use. */
static bool known(const Transpose *t, uint32_t i) { return !t->linear[i]; }
/* `v` with `with` in the places where it is 0. */
static Val without_zeros(Builder *b, Val v, double with) {
    return b_select(b, b_eq(b, v, b_zeros_like(b, v)), v, b_full_like(b, v, with));
}

/* ---- sums */
bool jvp_add(Jvp *d) {
    jvp_result(d, 0);
    if (d->t[0] && d->t[1])
        d->dt[0] = jvp_apply(d, d->t).at[0];
    else
        d->dt[0] = stretched(d, d->t[0] ? d->t[0] : d->t[1]);
    return !d->b->failed;
}
bool jvp_sub(Jvp *d) {
    jvp_result(d, 0);
    if (d->t[0]) return jvp_add(d);
    d->dt[0] = stretched(d, b_neg(d->b, d->t[1]));
    return !d->b->failed;
}
bool transpose_add(Transpose *t) {
    for (uint32_t i = 0; i < 2; i++)
        if (t->linear[i]) add_unstretched(t, i, t->ct[0]);
    return !t->b->failed;
}
bool transpose_sub(Transpose *t) {
    if (t->linear[0]) add_unstretched(t, 0, t->ct[0]);
    if (t->linear[1]) add_unstretched(t, 1, b_neg(t->b, t->ct[0]));
    return !t->b->failed;
}
bool transpose_neg(Transpose *t) {
    ct_add(t, 0, b_neg(t->b, t->ct[0]));
    return !t->b->failed;
}

/* ---- products */
bool jvp_mul(Jvp *d) {
    Val x = d->e->in.at[0], y = d->e->in.at[1], sum = 0;
    if (!has_tangent(d->b->cx, val_type(d->b->cx, jvp_result(d, 0)))) return true; /* out_dtype */
    if (d->t[0]) sum = jvp_apply(d, (Val[]){d->t[0], y}).at[0];
    if (d->t[1]) sum = tx_sum(d->b, sum, jvp_apply(d, (Val[]){x, d->t[1]}).at[0]);
    d->dt[0] = sum;
    return !d->b->failed;
}
/* With out_dtype, the cotangent has another element type than the operand. */
bool transpose_mul(Transpose *t) {
    uint32_t i = t->linear[0] ? 0 : 1;
    if (!known(t, 1 - i)) return transpose_none(t);
    Val in[2] = {t->e->in.at[0], t->e->in.at[1]};
    in[i] = t->ct[0];
    Param to = p_dtype(K_out_dtype, ct_type(t, i)->dtype);
    add_unstretched(t, i, build(t->b, P_mul, 2, in, param_has(t->e, K_out_dtype), &to));
    return !t->b->failed;
}
bool transpose_div(Transpose *t) {
    if (!known(t, 1)) return transpose_none(t);
    add_unstretched(t, 0, b_div(t->b, t->ct[0], t->e->in.at[1]));
    return !t->b->failed;
}
/* The divisor's part is JAX's -(g x) y^-2 of complex numbers, whose infinities and NaN differ, and of floats with few
   bits of exponent, for which x / y overflows often. */
bool jvp_div(Jvp *d) {
    Builder *b = d->b;
    Val x = d->e->in.at[0], y = d->e->in.at[1], sum = 0;
    Dtype type = b_type(b, y)->dtype;
    if (type == DT_f32 || type == DT_f64 || type == DT_bf16) return jvp_text(d);
    jvp_result(d, 0);
    if (d->t[0]) sum = stretched(d, b_div(b, d->t[0], y));
    if (d->t[1]) sum = tx_sum(b, sum, stretched(d, b_mul(b, b_mul(b, b_neg(b, d->t[1]), x), b_integer_pow(b, y, -2))));
    d->dt[0] = sum;
    return !b->failed;
}

/* ---- powers */
bool jvp_integer_pow(Jvp *d) {
    Builder *b = d->b;
    Val x = d->e->in.at[0], g = d->t[0];
    int64_t n = param_int(d->e, K_y, 0);
    jvp_result(d, 0);
    if (n == 0) return true;
    if (n == 1) return d->dt[0] = g, true;
    Val power = n == 2 ? x : b_integer_pow(b, x, n - 1);
    d->dt[0] = b_mul(b, g, b_mul(b, b_number(b, b_type(b, x)->dtype, (double)n), power));
    return !b->failed;
}
/* y x^(y - 1); of an integer y, 0 where y is 0. */
static Val pow_by_base(Builder *b, Val x, Val y) {
    Dtype d = b_type(b, x)->dtype;
    bool integer = dtype_info[b_type(b, y)->dtype].kind != dtype_info[d].kind;
    y = b_convert(b, y, d);
    Val power = b_pow(b, x, b_sub(b, y, b_number(b, d, 1)));
    if (!integer) return b_mul(b, y, power);
    Val slope = b_mul(b, without_zeros(b, y, 1), power);
    if (b->failed) return VAL_FAILED;
    const ArrayType *t = b_type(b, slope);
    Val none = b_stretch(b, b_eq(b, y, b_number(b, d, 0)), t->rank, t->dims);
    return b_select(b, none, slope, b_zeros_like(b, slope));
}
bool jvp_pow(Jvp *d) {
    Builder *b = d->b;
    Val x = d->e->in.at[0], y = d->e->in.at[1], r = jvp_result(d, 0), sum = 0;
    if (d->t[0]) sum = stretched(d, b_mul(b, d->t[0], pow_by_base(b, x, y)));
    if (d->t[1]) sum = tx_sum(b, sum, b_mul(b, d->t[1], b_mul(b, b_log(b, without_zeros(b, x, 1)), r)));
    d->dt[0] = sum;
    return !b->failed;
}

/* ---- |x| */
/* Of a complex number: the real part of g conj(x) / r, and 0 at 0. */
bool jvp_abs(Jvp *d) {
    Builder *b = d->b;
    Val x = d->e->in.at[0], r = jvp_result(d, 0);
    Dtype type = b_type(b, x)->dtype;
    if (dtype_info[type].kind != DK_COMPLEX) return jvp_text(d);
    Val size = without_zeros(b, b_convert(b, r, type), 1);
    d->dt[0] = b_real(b, b_mul(b, d->t[0], b_div(b, b_conj(b, x), size)));
    return !b->failed;
}

/* ---- choices */
/* The cotangent where this case is chosen. */
bool transpose_select_n(Transpose *t) {
    Builder *b = t->b;
    Val which = t->e->in.at[0], c = t->ct[0];
    uint32_t cases = t->e->in.n - 1;
    Val zeros = cases > 1 ? b_zeros_like(b, c) : 0;
    if (b->failed) return false;
    Dtype type = b_type(b, which)->dtype;
    for (uint32_t i = 0; i < cases; i++) {
        if (!t->linear[1 + i]) continue;
        if (cases == 1)
            ct_add(t, 1, c);
        else if (type == DT_bool)
            ct_add(t, 1 + i, i ? b_select(b, which, zeros, c) : b_select(b, which, c, zeros));
        else
            ct_add(t, 1 + i, b_select(b, b_eq(b, which, b_int(b, type, i)), zeros, c));
    }
    return !b->failed;
}

/* ---- other types of elements */
bool jvp_convert_element_type(Jvp *d) {
    Ctx *cx = d->b->cx;
    if (has_tangent(cx, val_type(cx, jvp_result(d, 0)))) d->dt[0] = jvp_apply(d, d->t).at[0];
    return !d->b->failed;
}
/* A complex cotangent of a real operand loses its imaginary part. */
bool transpose_convert_element_type(Transpose *t) {
    ct_add(t, 0, b_convert(t->b, t->ct[0], ct_type(t, 0)->dtype));
    return !t->b->failed;
}
bool transpose_reduce_precision(Transpose *t) {
    Eqn e = *t->e;
    e.in = (Vals){(Val *)t->ct, 1};
    ct_add(t, 0, b_eqn(t->b, &e, 1, NULL).at[0]);
    return !t->b->failed;
}

/* ---- complex numbers: cotangents are not conjugated */
bool transpose_real(Transpose *t) {
    Builder *b = t->b;
    ct_add(t, 0, b_complex(b, t->ct[0], b_zeros_like(b, t->ct[0])));
    return !b->failed;
}
bool transpose_imag(Transpose *t) {
    Builder *b = t->b;
    ct_add(t, 0, b_complex(b, b_zeros_like(b, t->ct[0]), b_neg(b, t->ct[0])));
    return !b->failed;
}
bool transpose_complex(Transpose *t) {
    Builder *b = t->b;
    if (t->linear[0]) add_unstretched(t, 0, b_real(b, t->ct[0]));
    if (t->linear[1]) add_unstretched(t, 1, b_imag(b, b_neg(b, t->ct[0])));
    return !b->failed;
}
bool transpose_conj(Transpose *t) {
    bool complex = dtype_info[ct_type(t, 0)->dtype].kind == DK_COMPLEX;
    ct_add(t, 0, complex ? b_conj(t->b, t->ct[0]) : b_real(t->b, t->ct[0]));
    return !t->b->failed;
}

/* ---- identities: each result is its operand */
/* Tangents pass, without the name, the place or the order that the values get. */
bool jvp_pass(Jvp *d) {
    for (uint32_t i = 0; i < d->e->out.n; i++) d->dt[i] = d->t[i];
    return true;
}
/* One array, placed: its tangent is placed as it is. */
bool jvp_placed(Jvp *d) { return d->e->in.n == 1 ? jvp_linear(d) : jvp_pass(d); }
bool transpose_pass(Transpose *t) {
    for (uint32_t i = 0; i < t->e->out.n; i++)
        if (t->linear[i]) ct_add(t, i, t->ct[i]);
    return !t->b->failed;
}
/* A tangent that only seems to be used (vmap_shielded). */
bool transpose_stop_gradient(Transpose *t) { return true; }
/* Several operands: a barrier for the tangents that there are. */
bool jvp_optimization_barrier(Jvp *d) {
    const Eqn *e = d->e;
    Val *in = arena_new(d->b->cx->arena, Val, e->in.n + 1);
    uint32_t n = 0;
    jvp_result(d, 0);
    for (uint32_t i = 0; i < e->in.n; i++)
        if (d->t[i]) in[n++] = d->t[i];
    Vals out = build_many(d->b, e->prim, n, in, 0, NULL, n, NULL);
    n = 0;
    for (uint32_t i = 0; i < e->in.n; i++)
        if (d->t[i]) d->dt[i] = out.at[n++];
    return !d->b->failed;
}
bool transpose_optimization_barrier(Transpose *t) {
    const Eqn *e = t->e;
    Val *in = arena_new(t->b->cx->arena, Val, e->in.n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->in.n; i++)
        if (t->linear[i] && t->ct[i]) in[n++] = t->ct[i];
    Vals out = build_many(t->b, e->prim, n, in, 0, NULL, n, NULL);
    n = 0;
    for (uint32_t i = 0; i < e->in.n; i++)
        if (t->linear[i] && t->ct[i]) ct_add(t, i, out.at[n++]);
    return !t->b->failed;
}
/* The second operand, ordered after the first. */
bool jvp_tie(Jvp *d) {
    d->dt[0] = d->t[1];
    return true;
}
bool transpose_tie(Transpose *t) {
    if (t->linear[1]) ct_add(t, 1, t->ct[0]);
    return !t->b->failed;
}
