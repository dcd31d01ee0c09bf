/* Derivatives of solves with triangular and tridiagonal matrices: linear in the right-hand side, and op(A) X = B gives
   op(A) Ẋ = Ḃ - op(Ȧ) X. */
#include "matrix.h"
#include "../transform/transform.h"

/* ---- triangular_solve */
static unsigned how_solved(const Eqn *e) {
    return (param_bool(e, K_left_side) ? SOLVE_LEFT : 0) | (param_bool(e, K_lower) ? SOLVE_LOWER : 0) |
           (param_bool(e, K_transpose_a) ? SOLVE_TURNED : 0) | (param_bool(e, K_conjugate_a) ? SOLVE_CONJUGATE : 0) |
           (param_bool(e, K_unit_diagonal) ? SOLVE_UNIT : 0);
}
/* The tangent of the result from that of A alone: the product comes first where it has fewer columns (rows) than A. */
static Val triangular_by_matrix(Jvp *d, unsigned how, Val g, Val x) {
    Builder *b = d->b;
    if (b_failed(b, x)) return VAL_FAILED;
    Matrices s = matrices(b, x);
    bool left = how & SOLVE_LEFT;
    Val a = d->e->in.at[0];
    Form form = (how & SOLVE_TURNED ? TURNED : PLAIN) | (how & SOLVE_CONJUGATE ? CONJUGATE : PLAIN);
    bool many = left ? dim_at_most(b_types(b), s.m, s.n, true) == 1 : dim_at_most(b_types(b), s.n, s.m, true) == 1;
    if (d->t[1] || !many) {
        Val product = left ? mat_product(b, g, form, x, PLAIN) : mat_product(b, x, PLAIN, g, form);
        Val rhs = d->t[1] ? b_sub(b, b_as_declared(b, d->t[1], product), product) : b_neg(b, product);
        return mat_solve_triangular(b, a, rhs, how);
    }
    g = b_neg(b, form & CONJUGATE ? mat_conj(b, g) : g);
    g = mat_solve_triangular(b, a, form & TURNED ? mat_turned(b, g) : g, how);
    return left ? mat_product(b, g, PLAIN, x, PLAIN) : mat_product(b, x, PLAIN, g, PLAIN);
}
bool jvp_triangular_solve(Jvp *d) {
    Builder *b = d->b;
    unsigned how = how_solved(d->e);
    Val x = jvp_result(d, 0);
    if (!d->t[0]) {
        d->dt[0] = jvp_apply(d, (Val[]){d->e->in.at[0], d->t[1]}).at[0];
        return !b->failed;
    }
    int64_t k = how & SOLVE_UNIT ? 1 : 0;
    Val g = how & SOLVE_LOWER ? mat_lower(b, d->t[0], k) : mat_upper(b, d->t[0], k);
    d->dt[0] = b_as_declared(b, triangular_by_matrix(d, how, g, x), x);
    return !b->failed;
}
bool transpose_triangular_solve(Transpose *t) {
    if (t->linear[0]) return transpose_none(t);
    Val c = mat_solve_triangular(t->b, t->e->in.at[0], t->ct[0], how_solved(t->e) ^ SOLVE_TURNED);
    ct_add(t, 1, b_as_declared(t->b, c, t->e->in.at[1]));
    return !t->b->failed;
}

/* ---- tridiagonal_solve: du, d, dl and B in rows; dl[0] and du[n - 1] are not read */
/* v[i - 1] (by 1) or v[i + 1] (by -1) along an axis, 0 at the end. */
static Val shifted(Builder *b, Val v, uint32_t axis, int64_t by) {
    Dim config[3 * MAX_RANK] = {0};
    if (b_failed(b, v)) return VAL_FAILED;
    config[3 * axis] = by, config[3 * axis + 1] = -by;
    return b_pad(b, v, b_number(b, b_type(b, v)->dtype, 0), config);
}
/* The tridiagonal matrix of these diagonals (0: zeros) times X. */
static Val tridiagonal_product(Builder *b, const Val *diagonals, Val x) {
    Val sum = 0;
    if (b_failed(b, x)) return VAL_FAILED;
    Matrices s = matrices(b, x);
    for (int64_t i = 0; i < 3; i++) {
        if (!diagonals[i]) continue;
        Val rows = i == 1 ? x : shifted(b, x, s.lead, 1 - i);
        sum = tx_sum(b, sum, b_mul(b, mat_of_column(b, diagonals[i], s.n), rows));
    }
    return sum;
}
bool jvp_tridiagonal_solve(Jvp *d) {
    Builder *b = d->b;
    const Val *in = d->e->in.at;
    Val x = jvp_result(d, 0), product = tridiagonal_product(b, d->t, x), rhs = d->t[3];
    if (product) rhs = rhs ? b_sub(b, rhs, b_as_declared(b, product, rhs)) : b_neg(b, product);
    d->dt[0] = jvp_apply(d, (Val[]){in[0], in[1], in[2], rhs}).at[0];
    return !b->failed;
}
bool transpose_tridiagonal_solve(Transpose *t) {
    Builder *b = t->b;
    const Val *in = t->e->in.at;
    if (t->linear[0] || t->linear[1] || t->linear[2]) return transpose_none(t);
    uint32_t axis = ct_type(t, 0)->rank - 1;
    Eqn e = *t->e;
    Val lower = shifted(b, in[2], axis, 1), upper = shifted(b, in[0], axis, -1);
    e.in = (Vals){(Val[]){lower, in[1], upper, t->ct[0]}, 4};
    e.in = vals_joined(b->cx->arena, 1, &e.in);
    ct_add(t, 3, b_eqn(b, &e, 1, (Type[]){val_type(b->cx, in[3])}).at[0]);
    return !b->failed;
}

/* ---- for a batch of examples: right-hand sides of one matrix stand side by side in one of its axes */
static bool vmap_solve(Vmap *v, uint32_t nmatrix, bool left) {
    const Eqn *e = v->e;
    const ArrayType *one = vmap_type(v, nmatrix);
    uint32_t axis = one->rank - (left ? 1 : 2);
    for (uint32_t i = 0; i < nmatrix; i++)
        if (v->batched[i]) return vmap_front(v);
    Val *in = arena_new(v->b->cx->arena, Val, nmatrix + 1);
    memcpy(in, e->in.at, nmatrix * sizeof *in);
    in[nmatrix] = vmap_folded(v, e->in.at[nmatrix], one, axis);
    Eqn new = *e;
    new.in = (Vals){in, nmatrix + 1};
    v->out[0] = vmap_unfolded(v, b_eqn(v->b, &new, 1, NULL).at[0], one, axis);
    return !v->b->failed;
}
bool vmap_triangular_solve(Vmap *v) { return vmap_solve(v, 1, param_bool(v->e, K_left_side)); }
bool vmap_tridiagonal_solve(Vmap *v) { return vmap_solve(v, 3, true); }
