#include "kernel.h"
#include "../../passes/passes.h"
#include "../../typecheck/index.h"
#include "../eval/gather.h"
#include "point.h"
#include <math.h>
#include <mlir-c/BuiltinTypes.h>
#include <stdlib.h>

/* The operations that evaluation is made of, as code. */

static Kernel *of(Eval *x) { return (Kernel *)x; }

/* ---- equations */
static Reg literal(Eval *x, Val v) {
    Kernel *k = of(x);
    MlirBlock was = kernel_at(k, 0);
    Reg r = reg(kernel_literal(k, v, 1), true, 0);
    k->e->block = was;
    return r;
}
static Reg read(Eval *x, Val v, const Ix *index) {
    Kernel *k = of(x);
    const ArrayType *t = val_array(k->x.plan->cx, v);
    const Info *info = plan_info(k->x.plan, v);
    if (info->class != VAL_SCALAR) {
        Dense dense = {0};
        if (!info->strides && !info->offset && t->rank)
            dense = (Dense){type_size(k->x.plan->cx->types, val_type(k->x.plan->cx, v)), t->dims[t->rank - 1]};
        return kernel_load(k, info->buf, t->dtype, eval_address(k->x.plan, v, index), dense);
    }
    MlirBlock was = kernel_at(k, 0);
    Reg r = reg(frame_scalar(k->frame, v), true, 0);
    k->e->block = was;
    return r;
}
static Summand summand(const Kernel *k, Val v) {
    const Info *info = plan_info(k->x.plan, v);
    if (val_info(k->x.plan->cx, v)->lit) return (Summand){0};
    bool here = k->x.step && info->class == VAL_MEMBER && info->step == k->x.step->number && !info->buf;
    return (Summand){info->e, info->once && (here || info->class == VAL_VIRTUAL)};
}
static uint32_t product(Eval *x, const Eqn *e) {
    Kernel *k = of(x);
    return kernel_contracts(k, e, (Summand[]){summand(k, e->in.at[0]), summand(k, e->in.at[1])});
}
static Reg point(Eval *y, const Eqn *e, uint32_t contracted, const Reg *in, uint32_t n) {
    Kernel *k = of(y);
    V *x = arena_new(k->x.plan->arena, V, n + 1);
    Reg r = {.uniform = true};
    for (uint32_t i = 0; i < n; i++) {
        r.uniform &= in[i].uniform;
        r.depth = in[i].depth > r.depth ? in[i].depth : r.depth;
    }
    MlirBlock was = kernel_at(k, r.depth);
    if (k->e->unit.ptr) em_at(k->e, e->span);
    for (uint32_t i = 0; i < n; i++) x[i] = r.uniform ? reg_v(in[i]) : kernel_vector(k, in[i]);
    V v = contracted < 2 ? kernel_contracted(k, e, contracted, x) : kernel_point(k, e, x, r.uniform ? 1 : k->w);
    r.v = v.ptr;
    k->e->block = was;
    return r;
}
/* A loop may not end for what is no element: it is not written before the loops of the kernel. */
static void program(Eval *eval, const Eqn *e, const Ix *element, const Reg *in, Reg *out) {
    Kernel *k = of(eval);
    V *x = arena_new(k->x.plan->arena, V, e->in.n + 1), *all = arena_new(k->x.plan->arena, V, e->out.n + 1);
    bool uniform = true;
    for (uint32_t i = 0; i < e->in.n; i++) {
        uniform &= in[i].uniform;
        x[i] = reg_v(in[i]);
    }
    if (k->e->unit.ptr) em_at(k->e, e->span);
    kernel_run_at(k, e, element, x, uniform ? 1 : k->w, all);
    for (uint32_t i = 0; i < e->out.n; i++) {
        bool same = uniform || (k->w > 1 && all[i].ptr && em_width(all[i]) == 1);
        out[i] = reg(all[i], same, k->x.depth);
    }
}

/* ---- values made of indices */
/* An index as a value of type d. */
static Reg index_value(Eval *x, Ix i, Dtype d) {
    Kernel *k = of(x);
    Emit *e = k->e;
    const DtypeInfo *t = &dtype_info[d];
    if (t->kind == DK_SINT || t->kind == DK_UINT) {
        Reg n = kernel_index_lanes(k, i, em_register_type(e, d));
        MlirBlock was = kernel_at(k, n.depth);
        n.v = em_round(e, d, reg_v(n)).ptr;
        e->block = was;
        return n;
    }
    int64_t lo, hi;
    bool fits = ix_bounds(k->x.ix, i, &lo, &hi) && lo > INT32_MIN && hi < INT32_MAX;
    Reg r = kernel_index_lanes(k, i, fits ? e->i32 : e->i64);
    MlirBlock was = kernel_at(k, r.depth);
    V v = reg_v(r);
    v = d == DT_bool ? em_cmpi(e, "ne", v, em_int(e, mlirValueGetType(v), 0))
                     : em_round(e, d, em_cast(e, "llvm.sitofp", em_vec(e, em_register_type(e, d), em_width(v)), v));
    r.v = v.ptr;
    e->block = was;
    return r;
}
static Reg constant(Eval *x, Dtype d, double v) {
    Kernel *k = of(x);
    Emit *e = k->e;
    MlirType t = em_register_type(e, d);
    V c = dtype_info[d].kind == DK_FLOAT ? em_float(e, t, v) : em_int(e, t, (int64_t)v);
    return reg(c, true, k->x.depth);
}
static MlirType narrow_index(Kernel *k, Ix i, Dim lo, Dim hi) {
    int64_t a, b;
    bool fits = ix_bounds(k->x.ix, i, &a, &b) && a > INT32_MIN && b < INT32_MAX && dim_is_const(lo) &&
                dim_is_const(hi) && lo > INT32_MIN && hi < INT32_MAX;
    return fits ? k->e->i32 : k->e->i64;
}
static Reg between(Eval *x, Ix i, Dim lo, Dim hi) {
    Kernel *k = of(x);
    Emit *e = k->e;
    MlirType t = narrow_index(k, i, lo, hi);
    V bounds[2] = {kernel_dim(k, lo), kernel_dim(k, hi)};
    Reg r = kernel_index_lanes(k, i, t);
    MlirBlock was = kernel_at(k, r.depth);
    uint32_t w = em_width(reg_v(r));
    for (uint32_t b = 0; b < 2; b++) {
        if (mlirTypeEqual(t, e->i32)) bounds[b] = em_cast(e, "llvm.trunc", e->i32, bounds[b]);
        bounds[b] = em_broadcast(e, bounds[b], w);
    }
    V above = em_cmpi(e, "sge", reg_v(r), bounds[0]), below = em_cmpi(e, "slt", reg_v(r), bounds[1]);
    r.v = em_bin(e, "llvm.and", above, below).ptr;
    e->block = was;
    return r;
}
/* The fill value for windows that are not inside; if JAX prints none, NaN, the smallest integer, the largest unsigned
   one or True (slicing.py, gather, 0.10.2). */
static Reg fill(Eval *y, const Eqn *e) {
    Kernel *k = of(y);
    Dtype d = val_array(k->x.plan->cx, e->out.at[0])->dtype;
    const DtypeInfo *t = &dtype_info[d];
    const Param *p = param_find(e, K_fill_value);
    double value[2];
    bool given = gather_fill(k->x.plan->cx, e, value);
    const Value *v = given ? &p->value : NULL;
    MlirType type = em_register_type(k->e, d);
    bool zero = !v && index_mode(e) == MODE_ONE_HOT;
    if (t->kind == DK_FLOAT) {
        V x = em_float(k->e, type, given ? value[0] : zero ? 0 : NAN);
        return reg(em_round(k->e, d, x), true, k->x.depth);
    }
    int64_t i = dtype_limit(d, t->kind != DK_SINT);
    if (v && v->kind == V_FLOAT) /* beyond int64 */
        i = (int64_t)strtoull(str_c(k->x.plan->arena, v->s), NULL, 10);
    else if (v)
        i = (int64_t)value[0];
    if (v && (v->kind == V_INT || v->kind == V_BOOL)) i = v->i;
    return reg(em_int(k->e, type, zero ? 0 : i), true, k->x.depth);
}

/* ---- conditions */
static const void *any_of(Reg r) { return r.uniform ? r.v : r.any; }
static Reg both(Eval *eval, Reg a, Reg b) {
    Kernel *k = of(eval);
    Reg r = {.uniform = a.uniform && b.uniform, .depth = a.depth > b.depth ? a.depth : b.depth};
    V any[] = {{any_of(a)}, {any_of(b)}};
    MlirBlock was = kernel_at(k, r.depth);
    V x = r.uniform ? reg_v(a) : kernel_vector(k, a), y = r.uniform ? reg_v(b) : kernel_vector(k, b);
    r.v = em_bin(k->e, "llvm.and", x, y).ptr;
    bool two = any[0].ptr && any[1].ptr && !r.uniform;
    r.any = two ? em_bin(k->e, "llvm.and", any[0], any[1]).ptr : any[any[0].ptr ? 0 : 1].ptr;
    k->e->block = was;
    return r;
}
static Reg choose(Eval *x, Reg c, Reg yes, Reg no) {
    Kernel *k = of(x);
    Reg r = {.uniform = c.uniform && yes.uniform && no.uniform, .depth = k->x.depth};
    V s[3] = {reg_v(c), reg_v(yes), reg_v(no)};
    if (!r.uniform) s[0] = kernel_vector(k, c), s[1] = kernel_vector(k, yes), s[2] = kernel_vector(k, no);
    r.v = em_select(k->e, s[0], s[1], s[2]).ptr;
    return r;
}
static Reg narrowed(Eval *x, Reg condition) {
    Reg guard = x->guard;
    guard.depth = x->depth;
    return both(x, guard, condition);
}
static Reg inside(Eval *x, const IxValue *v, Reg element) { return kernel_in_range(of(x), v, element); }
static void edge(Eval *x, Ix i, Dim lo, Dim hi) {} /* the plan has found them */
static void place(Eval *x, const IxValue *v) {}    /* read when the address is computed */

const Operations kernel_operations = {.literal = literal,
                                      .read = read,
                                      .product = product,
                                      .point = point,
                                      .program = program,
                                      .constant = constant,
                                      .fill = fill,
                                      .index = index_value,
                                      .between = between,
                                      .inside = inside,
                                      .both = both,
                                      .narrowed = narrowed,
                                      .choose = choose,
                                      .edge = edge,
                                      .place = place};
