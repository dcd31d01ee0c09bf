/* Linear algebra with small matrices, as equations on their scalars: what calls of runtime/ would compute, in its
   order. */
#include "elements.h"
#include <math.h>

/* A call of the runtime on matrices that follow each other in the scalars of an element. */
typedef struct {
    Split *s;
    Builder *b;
    Dims sizes;     /* the batch first */
    uint32_t count; /* of matrices in an element */
    Val *x, *y, *z; /* scalars of one of them: of operand 0; of result 0, which begins as an operand; of result 1 */
} Call;

static Val both(Call *c, Val v, Prim p, Val w) {
    c->s->written++;
    return b2(c->b, p, v, w);
}
static Val choose(Call *c, Val condition, Val no, Val yes) {
    c->s->written++;
    return b_select(c->b, condition, no, yes);
}
/* x - f·y */
static Val less(Call *c, Val x, Val f, Val y) {
    Val product = b_mul(c->b, f, y);
    c->s->written += 2;
    return b_sub(c->b, x, product);
}

/* ---- lu: P A = L U of an m × n matrix, in its place; the row that each row was exchanged with */
/* The row from j on with the largest number in column j; *best: that number. */
static Val pivot(Call *c, int64_t j, int64_t m, int64_t n, Val *best) {
    Val at = b_int(c->b, DT_i32, j);
    *best = b_abs(c->b, c->y[j * n + j]);
    for (int64_t i = j + 1; i < m; i++) {
        Val size = b_abs(c->b, c->y[i * n + j]), more = both(c, size, P_gt, *best);
        *best = choose(c, more, *best, size);
        at = choose(c, more, at, b_int(c->b, DT_i32, i));
    }
    return at;
}
/* Exchanges row j of the matrix with row `at` below it. */
static void exchange(Call *c, Val *a, int64_t j, int64_t m, int64_t n, Val at) {
    for (int64_t i = j + 1; i < m; i++) {
        Val here = both(c, at, P_eq, b_int(c->b, DT_i32, i));
        for (int64_t k = 0; k < n; k++) {
            Val x = a[j * n + k], y = a[i * n + k];
            a[j * n + k] = choose(c, here, x, y);
            a[i * n + k] = choose(c, here, y, x);
        }
    }
}
static void call_lu(Call *c) {
    int64_t m = c->sizes.at[1], n = c->sizes.at[2];
    for (int64_t j = 0; j < m && j < n; j++) {
        Val best;
        c->z[j] = pivot(c, j, m, n, &best);
        exchange(c, c->y, j, m, n, c->z[j]);
        Val none = both(c, best, P_eq, b_number(c->b, b_type(c->b, best)->dtype, 0)); /* LAPACK goes on */
        for (int64_t i = j + 1; i < m; i++) {
            Val f = both(c, c->y[i * n + j], P_div, c->y[j * n + j]);
            c->y[i * n + j] = f = choose(c, none, f, c->y[i * n + j]);
            for (int64_t k = j + 1; k < n; k++) c->y[i * n + k] = less(c, c->y[i * n + k], f, c->y[j * n + k]);
        }
    }
}
static void call_permutation(Call *c) {
    int64_t k = c->sizes.at[1], size = c->sizes.at[2];
    for (int64_t i = 0; i < size; i++) c->y[i] = b_int(c->b, DT_i32, i);
    for (int64_t j = 0; j < k; j++) exchange(c, c->y, j, size, 1, c->x[j]);
}

/* ---- op(A) X = B, X in the place of B (n × r) */
static void call_triangular(Call *c) {
    int64_t n = c->sizes.at[1], r = c->sizes.at[2];
    bool lower = c->sizes.at[3], turned = c->sizes.at[4], unit = c->sizes.at[5], down = lower != turned;
    for (int64_t step = 0; step < n; step++) {
        int64_t i = down ? step : n - 1 - step, from = down ? 0 : i + 1, to = down ? i : n;
        for (int64_t l = 0; l < r; l++) {
            Val *x = &c->y[i * r + l];
            for (int64_t k = from; k < to; k++) *x = less(c, *x, c->x[turned ? k * n + i : i * n + k], c->y[k * r + l]);
            if (!unit) *x = both(c, *x, P_div, c->x[i * n + i]);
        }
    }
}

/* ---- the lower factor in the place of the lower triangle; NaN everywhere if the matrix is not positive definite */
static void call_cholesky(Call *c) {
    int64_t n = c->sizes.at[1];
    Val good = 0, zero = b_number(c->b, b_type(c->b, c->y[0])->dtype, 0);
    for (int64_t j = 0; j < n; j++) {
        Val d = c->y[j * n + j];
        for (int64_t k = 0; k < j; k++) d = less(c, d, c->y[j * n + k], c->y[j * n + k]);
        Val positive = both(c, d, P_gt, zero);
        good = good ? both(c, good, P_and, positive) : positive;
        c->y[j * n + j] = d = b_sqrt(c->b, d);
        for (int64_t i = j + 1; i < n; i++) {
            Val *x = &c->y[i * n + j];
            for (int64_t k = 0; k < j; k++) *x = less(c, *x, c->y[i * n + k], c->y[j * n + k]);
            *x = both(c, *x, P_div, d);
        }
    }
    for (int64_t i = 0; i < n * n; i++)
        c->y[i] = choose(c, good, b_float(c->b, b_type(c->b, c->y[i])->dtype, (double)NAN), c->y[i]);
}

/* By the name of the call, which may end in _f32 or _f64; `into`: the operand that the first result begins as. */
static const struct {
    const char *name;
    void (*write)(Call *);
    uint32_t into;
} calls[] = {{"lu_", call_lu, 0},
             {"cholesky_", call_cholesky, 0},
             {"triangular_", call_triangular, 1},
             {"pivots_to_permutation", call_permutation, UINT32_MAX}};
enum { NCALLS = sizeof calls / sizeof *calls };
/* The row of a call; NCALLS: it has none. */
static uint32_t row_of(const Eqn *e) {
    Str name = e->prim == P_runtime_call ? param_word(e, K_name) : S("");
    uint32_t i = 0;
    for (; i < NCALLS; i++) {
        Str begins = str(calls[i].name), rest = {name.at + begins.n, name.n - begins.n};
        if (name.n < begins.n || memcmp(name.at, begins.at, begins.n)) continue;
        if (begins.at[begins.n - 1] == '_' ? str_is(rest, "f32") || str_is(rest, "f64") : !rest.n) break;
    }
    return i;
}
bool is_small_linalg(const Eqn *e) { return row_of(e) < NCALLS; }
uint32_t linalg_batch(const Ctx *cx, const Eqn *e) {
    return val_array(cx, e->out.at[0])->rank - (calls[row_of(e)].write == call_permutation ? 1 : 2);
}
bool split_linalg(Split *s, const Eqn *e) {
    uint32_t row = row_of(e);
    Parts in[2], out[2];
    Room r;
    if (row == NCALLS) return split_none(s);
    uint32_t lead = linalg_batch(s->cx, e), into = calls[row].into;
    if (s->rank > lead) return false; /* the elements would be parts of a matrix */
    assert(e->in.n && e->in.n <= 2 && e->out.n && e->out.n <= 2);
    for (uint32_t i = 0; i < e->in.n; i++) {
        const Parts *x = parts_of(s, e->in.at[i]);
        in[i] = x ? *x : (Parts){0};
        if (!x || !spread_parts(s, val_array(s->cx, e->in.at[i]), &(Parts){.along = true}, &in[i])) return false;
    }
    for (uint32_t i = 0; i < e->out.n; i++) {
        out[i] = (Parts){.along = true};
        if (!room_of(s, val_array(s->cx, e->out.at[i]), &out[i], &r)) return false;
        out[i] = room_for(s, out[i], &r);
    }
    Call c = {.s = s, .b = &s->b, .sizes = param_dims(e, K_sizes), .count = 1};
    for (uint32_t i = s->rank; i < lead; i++) c.count *= (uint32_t)val_array(s->cx, e->out.at[0])->dims[i];
    if (into < e->in.n) memcpy(out[0].at, in[into].at, out[0].n * sizeof *out[0].at);
    for (uint32_t i = 0; i < c.count; i++) {
        c.x = in[0].at + i * (in[0].n / c.count), c.y = out[0].at + i * (out[0].n / c.count);
        if (e->out.n > 1) c.z = out[1].at + i * (out[1].n / c.count);
        calls[row].write(&c);
    }
    for (uint32_t i = 0; i < e->out.n; i++) set_parts(s, e->out.at[i], out[i]);
    return !s->b.failed && s->written <= MOST_EQUATIONS;
}
