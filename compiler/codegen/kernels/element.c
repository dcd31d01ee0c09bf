#include "kernel.h"
#include <mlir-c/BuiltinTypes.h>

/* Elements of integer arrays as indices. */

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
    width->sign = dtype_info[val_array(k->x.plan->cx, v->v)->dtype].kind == DK_SINT;
    bool fits = dim_is_const(v->most) && v->most < INT32_MAX;
    if (v->wraps && bits == 64) x = em_cast(e, "llvm.trunc", em_vec(e, e->i32, w), x), bits = 32;
    if (v->wraps && bits == 32) width->sign = true;
    width->type = fits && bits <= 32 ? e->i32 : e->i64;
    if (bits < mlirIntegerTypeGetWidth(width->type))
        x = em_cast(e, width->sign ? "llvm.sext" : "llvm.zext", em_vec(e, width->type, w), x);
    return x;
}
Reg kernel_element(Kernel *k, const IxValue *v, const MlirType *integer) {
    Emit *e = k->e;
    Width width;
    Reg r = eval_element(&k->x, v);
    MlirBlock was = kernel_at(k, r.depth);
    if (!integer && !r.uniform && k->w > 1) r = reg(em_extract(e, reg_v(r), 0), true, r.depth);
    V x = widened(k, v, reg_v(r), &width);
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
    return reg(x, w == 1 && (r.uniform || !integer), r.depth);
}
/* 0 ≤ element ≤ most: as unsigned numbers, one comparison. */
Reg kernel_in_range(Kernel *k, const IxValue *v, Reg r) {
    Emit *e = k->e;
    Width width;
    MlirBlock was = kernel_at(k, r.depth);
    V x = widened(k, v, reg_v(r), &width);
    uint32_t w = em_width(x);
    V most = spread(k, v->most, width.type, w);
    r.v = em_cmpi(e, "ule", x, most).ptr;
    if (!dim_is_const(v->most) || v->most < 0) {
        V zero = em_int(e, em_vec(e, width.type, w), 0);
        r.v = em_bin(e, "llvm.and", reg_v(r), em_cmpi(e, "sge", most, zero)).ptr;
    }
    e->block = was;
    return r;
}
