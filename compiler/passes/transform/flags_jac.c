/* --jacfwd, --jacrev, --hessian: derivatives along all directions at once, which are a batch. */
#include "flags.h"

/* [n, shape...]: the n arrays of this shape in which one element is 1 and the others are 0. */
static Val basis(Builder *b, const ArrayType *t, Dim n) {
    const Dim square[2] = {n, n};
    Dim dims[MAX_RANK + 1] = {n};
    if (t->rank) memcpy(dims + 1, t->dims, t->rank * sizeof *dims);
    Val one = b_eq(b, b_iota(b, DT_i32, 2, square, 0), b_iota(b, DT_i32, 2, square, 1));
    return b_reshape(b, b_convert(b, one, t->dtype), t->rank + 1, dims);
}
/* The program for a batch along its last input, a basis of n arrays of type `t`: its results, all batched. The other
   inputs are these. */
static bool along_basis(Flag *f, const Jaxpr *j, Vals others, const ArrayType *t, Dim n, Val *out) {
    Ctx *cx = f->b.cx;
    Flag g = flag_of(cx, j, f->of);
    Val *in = flag_values(f, j->in.n);
    bool *batched = arena_new(cx->arena, bool, j->in.n + j->out.n + 1), *out_batched = batched + j->in.n;
    assert(j->in.n == others.n + 1);
    if (others.n) memcpy(in, others.at, others.n * sizeof *in);
    in[others.n] = basis(&f->b, t, n);
    batched[others.n] = true;
    g.tx.batch.size = n;
    if (f->b.failed || !vmap_into(&g.tx, &f->b, j, in, (Bits){batched, j->in.n}, out, out_batched)) return false;
    if (!vmap_extents_agree(&g.tx, j->out, NULL, f->b.span)) return false;
    for (uint32_t k = 0; k < j->out.n; k++)
        if (!out_batched[k]) out[k] = vmap_broadcast(&g.tx, &f->b, out[k]);
    return !f->b.failed;
}
static const ArrayType *written(const Flag *f, Val read) {
    return type_at(f->b.cx->types, type_rewrite(&f->tx.map, val_type(f->b.cx, read)));
}
/* The extents of a result, then those of an input. */
static uint32_t jacobian_dims(const Flag *f, uint32_t result, uint32_t input, Dim *dims) {
    const ArrayType *y = written(f, f->read->out.at[result]), *x = written(f, f->read->in.at[input]);
    if (y->rank) memcpy(dims, y->dims, y->rank * sizeof *dims);
    if (x->rank) memcpy(dims + y->rank, x->dims, x->rank * sizeof *dims);
    return y->rank + x->rank;
}
static void add_jacobian(Flag *f, Val v, uint32_t k, uint32_t input) {
    const Jaxpr *j = f->read;
    Str name = val_name(f->b.cx, j->in.at[input]), of = j->out_is ? j->out_is[k] : S("");
    Str what = of.n ? of : str_format(f->b.cx->arena, "output %u", k);
    flag_output(f, v, flag_result_place(f, k),
                str_format(f->b.cx->arena, "the derivative of %.*s with respect to %.*s", SF(what), SF(name)));
}

/* ---- does the flag fit the program? */
static bool is_real(const Flag *f, Val v) { return dtype_info[val_array(f->b.cx, v)->dtype].kind == DK_FLOAT; }
static bool fits_jacobian(Flag *f, bool real_inputs, bool real_results) {
    Ctx *cx = f->b.cx;
    const Jaxpr *j = f->read;
    const char *option = f->of->text;
    bool fits = true;
    each(const int64_t, arg, f->of->args) fits &= flag_fits_arg(f, *arg);
    if (!fits) return false;
    each(const int64_t, arg, f->of->args) {
        Val v = j->in.at[*arg];
        if (real_inputs && !is_real(f, v))
            tx_error(&f->tx, flag_input_place(f, (uint32_t)*arg), "%s wants real inputs, but '%.*s' is %.*s", option,
                     SF(val_name(cx, v)), SF(ctx_type_text(cx, val_type(cx, v))));
    }
    for (uint32_t k = 0; k < j->out.n; k++) {
        Val v = j->out.at[k];
        if (real_results ? !is_real(f, v) : !flag_differentiable(f, v))
            tx_error(&f->tx, flag_result_place(f, k), "%s wants %s results, but result %u is %.*s", option,
                     real_results ? "real" : "float", k, SF(ctx_type_text(cx, val_type(cx, v))));
    }
    return !f->tx.failed;
}

/* ---- forward: the tangents along a basis of the input */
static bool column(Flag *f, const Val *primals, uint32_t input, Val *to) {
    const Jaxpr *j = f->read;
    Transform one = *f->of;
    Flag d = flag_of(f->b.cx, j, &one);
    int64_t arg = input;
    one.args = (Ints){&arg, 1};
    const Jaxpr *both = flag_tangents(&d, &one);
    const ArrayType *x = val_array(f->b.cx, primals[input]);
    if (!both) return false;
    Val *out = flag_values(f, both->out.n);
    Dim n = type_size(f->b.cx->types, val_type(f->b.cx, primals[input])), dims[2 * MAX_RANK];
    if (!along_basis(f, both, (Vals){(Val *)primals, j->in.n}, x, n, out)) return false;
    for (uint32_t k = 0; k < j->out.n; k++) {
        Val v = out[j->out.n + k]; /* [n, result...] */
        int64_t order[MAX_RANK + 1];
        uint32_t rank = b_type(&f->b, v)->rank;
        for (uint32_t axis = 0; axis < rank; axis++) order[axis] = axis + 1 < rank ? axis + 1 : 0;
        v = b_transpose(&f->b, v, order);
        to[k] = b_reshape(&f->b, v, jacobian_dims(f, k, input, dims), dims);
    }
    return !f->b.failed;
}
Jaxpr *transform_jacfwd(Ctx *cx, const Jaxpr *j, const Transform *t) {
    Flag f = flag_of(cx, j, t);
    if (!fits_jacobian(&f, true, false)) return NULL;
    Val *primals = flag_primals(&f), **columns = arena_new(cx->arena, Val *, t->args.n);
    for (uint32_t a = 0; a < t->args.n; a++) {
        columns[a] = flag_values(&f, j->out.n);
        if (!column(&f, primals, (uint32_t)t->args.at[a], columns[a])) return NULL;
    }
    for (uint32_t k = 0; k < j->out.n; k++)
        for (uint32_t a = 0; a < t->args.n; a++) add_jacobian(&f, columns[a][k], k, (uint32_t)t->args.at[a]);
    return flag_end(&f);
}

/* ---- reverse: the cotangents along a basis of the result */
/* The program from a cotangent of result k to those of the inputs listed, 0: zero. */
static bool backwards(Flag *f, const Inner *lin, uint32_t k, Val result, Inner *to) {
    Ctx *cx = f->b.cx;
    uint32_t ncaptured = lin->captured.n, n = lin->j->in.n;
    Val *in = flag_values(f, n), *ct = flag_values(f, lin->j->out.n), *ct_in = flag_values(f, n);
    *to = b_inner(&f->b, 1, (Type[]){type_plain(cx->types, val_type(cx, result))});
    if (ncaptured) memcpy(in, lin->captured.at, ncaptured * sizeof *in);
    ct[k] = to->in.at[0];
    if (!transpose_into(&f->tx, &f->b, lin->j, in, ct, ct_in)) return false;
    for (uint32_t i = ncaptured; i < n; i++)
        if (!ct_in[i]) ct_in[i] = b_zeros_like(&f->b, tx_vals(&f->tx, lin->j->in).at[i]);
    b_inner_end(&f->b, to, n - ncaptured, ct_in + ncaptured);
    return !f->b.failed;
}
static bool row(Flag *f, const Inner *lin, uint32_t k, Val result, Val *to) {
    Ctx *cx = f->b.cx;
    Inner back;
    if (!backwards(f, lin, k, result, &back)) return false;
    Dim n = type_size(cx->types, val_type(cx, result));
    return along_basis(f, back.j, back.captured, val_array(cx, result), n, to);
}
static Jaxpr *jacrev(Flag *f) {
    Ctx *cx = f->b.cx;
    const Jaxpr *j = f->read;
    const Ints args = f->of->args;
    Flag d = flag_of(cx, j, f->of);
    Inner lin;
    d.tx.reverse = true;
    const Jaxpr *both = flag_needed_tangents(&d, f->of);
    if (!both) return NULL;
    Val *primals = flag_primals(f), *out = flag_values(f, both->out.n), *cts = flag_values(f, j->in.n);
    if (!flag_split(f, both, primals, out, &lin)) return NULL;
    for (uint32_t k = 0; k < j->out.n; k++) {
        if (!row(f, &lin, k, out[k], cts)) return NULL;
        for (uint32_t a = 0; a < args.n; a++) {
            Dim dims[2 * MAX_RANK];
            uint32_t at = 0, rank = jacobian_dims(f, k, (uint32_t)args.at[a], dims);
            for (uint32_t o = 0; o < args.n; o++) at += args.at[o] < args.at[a]; /* tangents are in the inputs' order */
            add_jacobian(f, b_reshape(&f->b, cts[at], rank, dims), k, (uint32_t)args.at[a]);
        }
    }
    return flag_end(f);
}
Jaxpr *transform_jacrev(Ctx *cx, const Jaxpr *j, const Transform *t) {
    Flag f = flag_of(cx, j, t);
    return fits_jacobian(&f, false, true) ? jacrev(&f) : NULL;
}
Jaxpr *transform_hessian(Ctx *cx, const Jaxpr *j, const Transform *t) {
    Flag f = flag_of(cx, j, t);
    if (!fits_jacobian(&f, true, true)) return NULL;
    Jaxpr *rows = jacrev(&f);
    if (rows) rows = pass_tidy(cx, rows);
    return rows ? transform_jacfwd(cx, rows, t) : NULL;
}
