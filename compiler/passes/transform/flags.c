/* The transformations of the command line. */
#include "tx.h"
#include "../../cname.h"

/* A program being written whose inputs correspond to those of the one read. */
typedef struct {
    Tx tx;
    Builder b;
    const Jaxpr *read;
    struct {
        Val *at;
        uint32_t n, cap;
    } in, out;
} Flag;

static Flag flag_of(Ctx *cx, const Jaxpr *j, const char *name) {
    Flag f = {.tx = {.cx = cx, .flag = name}, .b = {.cx = cx, .span = j->span}, .read = j};
    f.tx.map.cx = f.tx.tangent.cx = cx;
    return f;
}
/* The type of value `v`, a number, after those before it: the extents of its type are inputs. */
static Val add_input(Flag *f, Val like, Str name) {
    Val v = tx_placeholder(&f->tx, like);
    val_info(f->b.cx, v)->name = name;
    push(f->b.cx->arena, &f->in, v);
    return v;
}
static void add_output(Flag *f, Val v) { push(f->b.cx->arena, &f->out, v); }
static Val *values(const Flag *f, uint32_t n) { return arena_new(f->b.cx->arena, Val, n + 1); }

/* Inputs named as those of the program read. */
static Val *add_primals(Flag *f) {
    Val *in = values(f, f->read->in.n), *to = in;
    each(const Val, v, f->read->in) {
        *to = add_input(f, *v, val_info(f->b.cx, *v)->name);
        valmap_put(&f->tx.map, *v, *to++);
    }
    return in;
}
static Jaxpr *finish(Flag *f) {
    Jaxpr *j = arena_new(f->b.cx->arena, Jaxpr, 1);
    *j = *f->read;
    j->in = (Vals){f->in.at, f->in.n};
    j->out = (Vals){f->out.at, f->out.n};
    j->eqns = f->b.eqns;
    j->consts = (Vals){f->b.consts.at, f->b.consts.n};
    j->out_at = NULL, j->checked = false;
    return f->tx.failed || f->b.failed ? NULL : j;
}

static Str tangent_name(Flag *f, Val primal) {
    Str name = val_info(f->b.cx, primal)->name;
    return name.n ? str_format(f->b.cx->arena, "%.*s_t", SF(name)) : name;
}
static bool differentiable(const Flag *f, Val v) { return has_tangent(f->b.cx, val_type(f->b.cx, v)); }

/* The program of the values and the tangents along all inputs: in f->in, f->b; its results are added. */
static void differentiate(Flag *f) {
    const Jaxpr *j = f->read;
    Val *in = add_primals(f), *t = values(f, j->in.n), *out = values(f, j->out.n), *dt = values(f, j->out.n);
    for (uint32_t i = 0; i < j->in.n; i++)
        if (differentiable(f, j->in.at[i])) t[i] = add_input(f, j->in.at[i], tangent_name(f, j->in.at[i]));
    jvp_into(&f->tx, &f->b, j, in, t, out, dt);
    for (uint32_t i = 0; i < j->out.n; i++) add_output(f, out[i]);
    for (uint32_t i = 0; i < j->out.n && !f->tx.failed; i++)
        if (differentiable(f, j->out.at[i])) add_output(f, dt[i] ? dt[i] : b_zeros_like(&f->b, out[i]));
}
static Jaxpr *transform_jvp(Ctx *cx, const Jaxpr *j, const Transform *t) {
    Flag f = flag_of(cx, j, t->text);
    differentiate(&f);
    return finish(&f);
}

/* The cotangents of the results: inputs, or 1 for the only one. */
static Val *seeds(Flag *f, const Transform *t) {
    const Jaxpr *j = f->read;
    Val *ct = values(f, j->out.n);
    for (uint32_t i = 0; i < j->out.n; i++) {
        if (!differentiable(f, j->out.at[i])) continue;
        bool given = t->kind == TRANSFORM_VJP;
        ct[i] = given ? add_input(f, j->out.at[i], str_format(f->b.cx->arena, "ct%u", i))
                      : b_number(&f->b, val_array(f->b.cx, j->out.at[i])->dtype, 1);
    }
    return ct;
}
static bool gives(const Transform *t, uint32_t input) {
    bool listed = t->kind == TRANSFORM_VJP;
    each(const int64_t, arg, t->args) listed |= *arg == input;
    return listed;
}
/* jvp, split at the tangents, transpose. */
static Jaxpr *transform_vjp(Ctx *cx, const Jaxpr *j, const Transform *t) {
    Flag d = flag_of(cx, j, t->text), f = d;
    differentiate(&d);
    const Jaxpr *both = finish(&d); /* primals, tangents → results, their tangents */
    if (!both) return NULL;
    Inner lin;
    Val *in = values(&f, both->in.n), *out = values(&f, both->out.n), *primals = add_primals(&f);
    memcpy(in, primals, j->in.n * sizeof *in);
    Val *ct = seeds(&f, t);
    bool *force = arena_new(cx->arena, bool, both->out.n + 1);
    memset(force + j->out.n, true, both->out.n - j->out.n);
    if (!split_into(&f.tx, &f.b, both, in, force, out, &lin)) return NULL;
    uint32_t n = lin.j->in.n, ncaptured = lin.captured.n;
    Val *lin_in = values(&f, n), *lin_ct = values(&f, lin.j->out.n), *ct_in = values(&f, n);
    if (ncaptured) memcpy(lin_in, lin.captured.at, ncaptured * sizeof *lin_in);
    for (uint32_t i = 0, k = 0; i < j->out.n; i++)
        if (ct[i]) lin_ct[k++] = ct[i];
    if (!transpose_into(&f.tx, &f.b, lin.j, lin_in, lin_ct, ct_in)) return NULL;
    for (uint32_t i = 0; i < j->out.n && t->kind != TRANSFORM_GRAD; i++) add_output(&f, out[i]);
    for (uint32_t i = 0, k = ncaptured; i < j->in.n; i++) {
        if (!differentiable(&f, j->in.at[i])) continue;
        Val c = ct_in[k++];
        if (gives(t, i)) add_output(&f, c ? c : b_zeros_like(&f.b, primals[i]));
    }
    return finish(&f);
}

Jaxpr *transform(Ctx *cx, const Jaxpr *j, const Transform *t) {
    return t->kind == TRANSFORM_JVP ? transform_jvp(cx, j, t) : transform_vjp(cx, j, t);
}
