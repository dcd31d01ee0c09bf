#include "gather.h"
#include "../../typecheck/index.h"
#include <assert.h>
#include <math.h>
#include <mlir-c/BuiltinTypes.h>
#include <stdlib.h>

/* Gather moves no data: the result at an index is the operand at another, some of whose terms are elements of an array.
   They are clamped, so that nothing outside the operand is read; if the mode asks for it, elements outside are replaced
   afterwards. */

IndexMode index_mode(const Eqn *e) {
    static const char *const names[] = {"", "CLIP", "FILL_OR_DROP", "PROMISE_IN_BOUNDS", "ONE_HOT"};
    Str s = param_word(e, K_mode);
    _Static_assert(sizeof names / sizeof *names == MODE_ONE_HOT + 1, "a name for each mode");
    for (uint32_t i = 1; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (s.n >= n && !memcmp(s.at + s.n - n, names[i], n)) return (IndexMode)i;
        if (s.n == 1 && s.at[0] == (char)('0' + i)) return (IndexMode)i;
    }
    return MODE_NONE;
}
/* Does gather replace windows that are not inside? Without a mode or with a promise XLA moves them inside. */
static bool fills(const Eqn *e) {
    IndexMode m = index_mode(e);
    return m == MODE_FILL_OR_DROP || m == MODE_ONE_HOT;
}
/* JAX treats the positions of such a gather as 32-bit integers if every extent fits them (slicing.py, _gather_fill,
   0.10.2). */
static bool wraps(const Eqn *e, const ArrayType *x) {
    if (e->prim != P_gather || !fills(e)) return false;
    for (uint32_t d = 0; d < x->rank; d++)
        if (!dim_is_const(x->dims[d]) || x->dims[d] > INT32_MAX) return false;
    return true;
}
void window_at(Plan *p, const Eqn *e, const Ix *index, Window *w) {
    Ctx *cx = p->cx;
    const ArrayType *x = val_array(cx, e->in.at[0]), *indices = val_array(cx, e->in.at[1]);
    bool gather = e->prim == P_gather;
    const ArrayType *y = val_array(cx, gather ? e->out.at[0] : e->in.at[2]);
    IndexNumbers n;
    Ix batch[MAX_RANK];
    Dim most[MAX_RANK];
    uint32_t nbatch = 0, window = 0;
    bool known = index_numbers(cx, e, &n); /* checked by typecheck */
    assert(known && n.map.n <= x->rank);
    for (uint32_t d = 0; d < y->rank; d++)
        if (!ints_have(n.windows, d)) batch[nbatch++] = index[d];
    for (uint32_t d = 0; d < x->rank; d++) {
        bool whole = ints_have(n.dropped, d) || ints_have(n.batch, d);
        int64_t axis = whole ? 0 : n.windows.at[window++];
        w->operand[d] = whole ? 0 : index[axis];
        most[d] = dim_sub(cx->types, x->dims[d], whole ? 1 : y->dims[axis]);
    }
    for (uint32_t i = 0; i < n.batch.n; i++) w->operand[n.batch.at[i]] = batch[n.index_batch.at[i]];
    assert(nbatch + 1 == indices->rank);
    w->n = n.map.n;
    for (uint32_t i = 0; i < w->n; i++) {
        memcpy(w->at[i], batch, nbatch * sizeof *batch);
        w->at[i][nbatch] = ix_dim(p->ix, i);
        int64_t d = n.map.at[i];
        w->position[i] = (IxValue){e->in.at[1], indices->rank, w->at[i], most[d], wraps(e, x)};
        w->operand[d] = ix_add(p->ix, w->operand[d], ix_value(p->ix, w->position[i]));
    }
}

/* ---- elements as indices */
/* The bits with which they are compared, and the signedness. */
typedef struct {
    MlirType type;
    bool sign;
} Width;
static V spread(Kernel *k, Dim d, MlirType t, uint32_t w) {
    Emit *e = k->e;
    if (dim_is_const(d)) return em_int(e, em_vec(e, t, w), d);
    return em_broadcast(e, kernel_dim(k, d), w); /* of 64 bits */
}
/* An element widened so that it can be compared with `most`. */
static V widened(Kernel *k, const IxValue *v, V x, Width *width) {
    Emit *e = k->e;
    uint32_t bits = mlirIntegerTypeGetWidth(em_elem(x)), w = em_width(x);
    width->sign = dtype_info[val_array(k->plan->cx, v->v)->dtype].kind == DK_SINT;
    bool fits = dim_is_const(v->most) && v->most < INT32_MAX;
    if (v->wraps && bits == 64) x = em_cast(e, "llvm.trunc", em_vec(e, e->i32, w), x), bits = 32;
    if (v->wraps && bits == 32) width->sign = true;
    width->type = fits && bits <= 32 ? e->i32 : e->i64;
    if (bits < mlirIntegerTypeGetWidth(width->type))
        x = em_cast(e, width->sign ? "llvm.sext" : "llvm.zext", em_vec(e, width->type, w), x);
    return x;
}
static Reg read_element(Kernel *k, const IxValue *v) {
    Reg guard = k->guard;
    uint32_t id = k->guard_id;
    if (!v->rank) k->guard = (Reg){0}, k->guard_id = 0; /* a scalar can always be read */
    Reg r = kernel_eval(k, v->v, v->at);
    k->guard = guard, k->guard_id = id;
    return r;
}
Reg kernel_element(Kernel *k, const IxValue *v, const MlirType *integer) {
    Emit *e = k->e;
    Width width;
    Reg r = read_element(k, v);
    MlirBlock was = kernel_at(k, r.depth);
    if (!integer && !r.uniform && k->w > 1) r = (Reg){em_extract(e, r.v, 0), true, r.depth};
    V x = widened(k, v, r.v, &width);
    uint32_t w = em_width(x);
    V zero = em_int(e, em_vec(e, width.type, w), 0), most = spread(k, v->most, width.type, w);
    if (!dim_is_const(v->most)) most = em_bin(e, "llvm.intr.smax", most, zero);
    if (width.sign) {
        x = em_bin(e, "llvm.intr.smin", x, most);
        x = em_bin(e, "llvm.intr.smax", x, zero);
    } else
        x = em_bin(e, "llvm.intr.umin", x, most);
    MlirType want = integer ? *integer : e->i64;
    uint32_t from = mlirIntegerTypeGetWidth(width.type), to = mlirIntegerTypeGetWidth(want);
    if (from != to) x = em_cast(e, from < to ? "llvm.zext" : "llvm.trunc", em_vec(e, want, w), x);
    e->block = was;
    return (Reg){x, w == 1 && (r.uniform || !integer), r.depth};
}
/* 0 ≤ element ≤ most: as unsigned numbers, one comparison. */
static Reg in_range(Kernel *k, const IxValue *v) {
    Emit *e = k->e;
    Width width;
    Reg r = read_element(k, v);
    if (k->dry) return r;
    MlirBlock was = kernel_at(k, r.depth);
    V x = widened(k, v, r.v, &width);
    uint32_t w = em_width(x);
    V most = spread(k, v->most, width.type, w);
    r.v = em_cmpi(e, "ule", x, most);
    if (!dim_is_const(v->most) || v->most < 0) {
        V zero = em_int(e, em_vec(e, width.type, w), 0);
        r.v = em_bin(e, "llvm.and", r.v, em_cmpi(e, "sge", most, zero));
    }
    e->block = was;
    return r;
}
Reg window_inside(Kernel *k, const Window *w) {
    Reg all = {0};
    for (uint32_t i = 0; i < w->n; i++) {
        Reg one = in_range(k, &w->position[i]);
        all = i ? kernel_and(k, all, one) : one;
    }
    return all;
}

/* ---- gather */
/* The fill value for windows that are not inside; if JAX prints none, NaN, the smallest integer, the largest unsigned
   one or True (slicing.py, gather, 0.10.2). */
static Reg filling(Kernel *k, const Eqn *e) {
    Dtype d = val_array(k->plan->cx, e->out.at[0])->dtype;
    const DtypeInfo *t = &dtype_info[d];
    const Param *p = param_find(e, K_fill_value);
    double fill[2];
    bool given = gather_fill(k->plan->cx, e, fill);
    const Value *v = given ? &p->value : NULL;
    MlirType type = em_register_type(k->e, d);
    bool zero = !v && index_mode(e) == MODE_ONE_HOT;
    if (t->kind == DK_FLOAT) {
        V x = em_float(k->e, type, given ? fill[0] : zero ? 0 : NAN);
        return (Reg){em_round(k->e, d, x), true, k->depth};
    }
    int64_t i = dtype_limit(d, t->kind != DK_SINT);
    if (v && v->kind == V_FLOAT) /* beyond int64 */
        i = (int64_t)strtoull(str_c(k->plan->arena, v->s), NULL, 10);
    else if (v)
        i = (int64_t)fill[0];
    if (v && (v->kind == V_INT || v->kind == V_BOOL)) i = v->i;
    return (Reg){em_int(k->e, type, zero ? 0 : i), true, k->depth};
}
Reg index_gather(Kernel *k, const Eqn *e, uint32_t out, const Ix *index) {
    Window w;
    window_at(k->plan, e, index, &w);
    Reg inside = {0};
    bool some = w.n && fills(e);
    if (k->dry || some) inside = window_inside(k, &w);
    Reg x = kernel_eval(k, e->in.at[0], w.operand);
    return k->dry || !some ? x : kernel_choose(k, inside, x, filling(k, e));
}
