#include "accumulators.h"
#include "point.h"
#include <mlir-c/BuiltinTypes.h>
#include <assert.h>

/* Where masks are vectors of words, a loop that carries vectors of i1 would have a register for each lane. */
static MlirType mask_type(const Kernel *k, const Acc *c) {
    const Target *t = k->x.plan->target;
    if (c->arg || c->in != DT_bool || t->device || t->masks) return (MlirType){NULL};
    const Emit *e = k->e;
    uint32_t bytes = k->x.step->widest;
    return bytes <= 1 ? e->i8 : bytes == 2 ? e->i16 : bytes <= 4 ? e->i32 : e->i64;
}
V acc_mask(Emit *e, const Acc *c, V x) {
    uint32_t w = em_width(x);
    return c->mask.ptr && w > 1 ? em_cast(e, "llvm.sext", em_vec(e, c->mask, w), x) : x;
}
void accs_booleans(Emit *e, const Accs *a, V *acc) {
    for (uint32_t i = 0; i < a->n; i++) {
        V *x = acc;
        acc += a->at[i].arg ? 2 : 1;
        if (a->at[i].mask.ptr && em_width(*x) > 1) *x = em_cmpi(e, "ne", *x, em_int(e, mlirValueGetType(*x), 0));
    }
}
void accs_collect(Kernel *k, Accs *a) {
    a->n = a->nv = 0;
    each(Val, v, k->x.step->members) {
        const Info *info = plan_info(k->x.plan, *v);
        if (!eqn_reduces(info->e) || info->level != k->x.level + 1) continue;
        Acc *c = &a->at[a->n++], *first = c;
        *c = (Acc){.v = *v, .e = info->e};
        c->in = val_array(k->x.plan->cx, info->e->in.at[0])->dtype;
        c->out = val_array(k->x.plan->cx, *v)->dtype;
        c->arg = info->e->prim == P_argmax || info->e->prim == P_argmin;
        c->index = k->e->i64;
        c->mask = mask_type(k, c);
        Dim n = type_size(k->x.plan->cx->types, val_type(k->x.plan->cx, info->e->in.at[0]));
        if (dim_is_const(n) && n < INT32_MAX) c->index = k->e->i32;
        for (uint32_t i = 1; i < k->x.step->columns; i++) a->at[a->n] = *first, a->at[a->n++].column = i;
        assert(a->n <= STEP_REDUCTIONS);
    }
    for (uint32_t i = 0; i < a->n; i++) a->nv += a->at[i].arg ? 2 : 1;
}
void accs_initial(Kernel *k, const Accs *a, uint32_t w, V *out) {
    for (uint32_t i = 0; i < a->n; i++) {
        *out++ = acc_mask(k->e, &a->at[i], point_identity(k->e, a->at[i].e->prim, a->at[i].in, w));
        if (a->at[i].arg) *out++ = em_int(k->e, em_vec(k->e, a->at[i].index, w), 0);
    }
}
static bool is_float(Dtype d) { return dtype_info[d].kind == DK_FLOAT; }
V acc_better(Emit *e, Prim p, Dtype d, V y, V x) {
    bool max = p == P_argmax;
    if (!is_float(d)) {
        bool s = dtype_info[d].kind == DK_SINT;
        return em_cmpi(e, max ? (s ? "sgt" : "ugt") : (s ? "slt" : "ult"), y, x);
    }
    return em_bin(e, "llvm.and", em_cmpf(e, max ? "ugt" : "ult", y, x), em_cmpf(e, "ord", x, x));
}
static V equally(Emit *e, Dtype d, V y, V x) {
    if (!is_float(d)) return em_cmpi(e, "eq", y, x);
    V nans = em_bin(e, "llvm.and", em_cmpf(e, "uno", y, y), em_cmpf(e, "uno", x, x));
    return em_bin(e, "llvm.or", em_cmpf(e, "oeq", y, x), nans);
}
/* The better of two (value, position) pairs in any order. */
static void merge_arg(Emit *e, const Acc *c, V *a, const V *b) {
    V before = em_bin(e, "llvm.and", equally(e, c->in, b[0], a[0]), em_cmpi(e, "slt", b[1], a[1]));
    V take = em_bin(e, "llvm.or", acc_better(e, c->e->prim, c->in, b[0], a[0]), before);
    a[0] = em_select(e, take, b[0], a[0]);
    a[1] = em_select(e, take, b[1], a[1]);
}
static void halve(Emit *e, V v, V *lo, V *hi) {
    int64_t lanes[MAX_LANES];
    uint32_t w = em_width(v) / 2;
    for (uint32_t i = 0; i < 2 * w; i++) lanes[i] = i;
    *lo = em_shuffle(e, v, v, w, lanes);
    *hi = em_shuffle(e, v, v, w, lanes + w);
    if (w == 1) *lo = em_extract(e, *lo, 0), *hi = em_extract(e, *hi, 0);
}
void accs_horizontal(Emit *e, const Accs *a, V *acc) {
    for (uint32_t i = 0; i < a->n; i++) {
        const Acc *c = &a->at[i];
        while (em_width(acc[0]) > 1) {
            V lo[2] = {acc[0]}, hi[2] = {acc[0]};
            halve(e, acc[0], &lo[0], &hi[0]);
            if (c->arg)
                halve(e, acc[1], &lo[1], &hi[1]), merge_arg(e, c, lo, hi), acc[1] = lo[1];
            else
                lo[0] = point_combine(e, c->e->prim, c->in, lo[0], hi[0]);
            acc[0] = lo[0];
        }
        acc += c->arg ? 2 : 1;
    }
}

void accs_merge(Emit *e, const Accs *a, V *x, const V *y) {
    for (uint32_t i = 0; i < a->n; i++) {
        const Acc *c = &a->at[i];
        if (c->arg)
            merge_arg(e, c, x, y);
        else
            x[0] = point_combine(e, c->e->prim, c->in, x[0], y[0]);
        x += c->arg ? 2 : 1, y += c->arg ? 2 : 1;
    }
}
