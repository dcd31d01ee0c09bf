#include "kernel.h"
#include "../../options.h"
#include "../../passes/eval.h"
#include "approximate.h"
#include "point.h"

/* Equations on registers. */

V kernel_literal(Kernel *k, Val v, uint32_t w) {
    Scalar s = {0};
    scalar_of(k->x.plan->cx, v, &s);
    MlirType t = em_vec(k->e, em_register_type(k->e, s.dtype), w);
    return dtype_info[s.dtype].kind == DK_FLOAT ? em_float(k->e, t, scalar_float(s)) : em_int(k->e, t, scalar_int(s));
}
V kernel_binary(Kernel *k, Prim prim, Dtype d, const V *x) {
    Point p = {.in = d, .out = d, .k = k};
    k->e->fast = k->x.plan->cx->options->fast_math;
    V y = point_rule[prim](k->e, &p, x);
    k->e->fast = false;
    return point_result(k->e, prim, d, y);
}
V kernel_point(Kernel *k, const Eqn *e, const V *x, uint32_t w) {
    Ctx *cx = k->x.plan->cx;
    Dtype in = val_array(cx, e->in.at[e->in.n > 1 && (e->prim == P_select_n || e->prim == P_clamp)])->dtype;
    Dtype out = val_array(cx, e->out.at[0])->dtype;
    V y = approximate(k, e->prim, out, x);
    if (y.ptr) return point_result(k->e, e->prim, out, y);
    if (point_rule[e->prim]) {
        Point p = {.in = in, .out = out, .e = e, .k = k};
        k->e->fast = cx->options->fast_math && !k->in_stdlib;
        y = point_rule[e->prim](k->e, &p, x);
        k->e->fast = false;
        return point_result(k->e, e->prim, out, y);
    }
    return kernel_program(k, e, x, w);
}

bool kernel_is_product(const Eqn *e) { return e && (e->prim == P_mul || e->prim == P_square); }
/* One product for each row, which is computed before the loop over the row: adding it takes less time than a fused
   operation. A layer norm of rows of 768 takes 170 us so, not 174. The types say it, so that every kernel and every
   remainder rounds alike. */
static bool is_shared(const ArrayType *product, const ArrayType *sum) {
    if (product->rank == 0) return sum->rank > 0;
    return product->rank == sum->rank && product->dims[sum->rank - 1] == 1 && sum->dims[sum->rank - 1] != 1;
}
uint32_t kernel_contracts(const Kernel *k, const Eqn *e, const Summand x[2]) {
    const Ctx *cx = k->x.plan->cx;
    Dtype d = val_array(cx, e->out.at[0])->dtype;
    bool sum = e->prim == P_add || e->prim == P_sub || e->prim == P_add_any;
    if (!sum || (d != DT_f32 && d != DT_f64) || kernel_is_product(x[0].maker) == kernel_is_product(x[1].maker))
        return 2;
    if (k->in_stdlib || !k->e->target->fma || cx->options->no_contraction) return 2;
    uint32_t at = kernel_is_product(x[1].maker);
    const ArrayType *product = val_array(cx, x[at].maker->out.at[0]);
    return x[at].alone && product->dtype == d && !is_shared(product, val_array(cx, e->out.at[0])) ? at : 2;
}
V kernel_contracted(Kernel *k, const Eqn *e, uint32_t product, const V *x) {
    bool minus = e->prim == P_sub;
    V a = minus && product == 1 ? em_un(k->e, "llvm.fneg", x[0]) : x[0];
    return em_fma(k->e, a, x[1], minus && product == 0 ? em_un(k->e, "llvm.fneg", x[2]) : x[2]);
}
Reg kernel_convert(Kernel *k, Reg r, Dtype from, Dtype to) {
    if (!to || to == from) return r;
    Point p = {.in = from, .out = to, .k = k};
    V v = reg_v(r);
    r.v = em_round(k->e, to, point_rule[P_convert_element_type](k->e, &p, &v)).ptr;
    return r;
}
