/* Complex numbers and their parts; to passes, keys are made of two parts too. */
#include "rule.h"

Dtype dtype_real(Dtype d) {
    static const Dtype parts[NDTYPES] = {
        [DT_c64] = DT_f32, [DT_c128] = DT_f64, [DT_key_fry] = DT_u32, [DT_key_rbg] = DT_u64, [DT_key_urbg] = DT_u64};
    return parts[d] ? parts[d] : d;
}
Dtype dtype_complex(Dtype d) { return d == DT_f32 ? DT_c64 : d == DT_f64 ? DT_c128 : d; }

static bool part(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_kind(cx, e, in, 0, cx->passes ? OF_COMPLEX | OF_KEY : OF_COMPLEX)) return false;
    out[0] = type_like(cx, in[0], dtype_real(type_at(cx->types, in[0])->dtype));
    return true;
}
bool type_real_part(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return part(cx, e, in, out); }
bool type_imag_part(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return part(cx, e, in, out); }

/* Floats of which complex numbers can be made. */
static bool want_part(Ctx *cx, const Eqn *e, const Type *in, unsigned i) {
    Dtype d = type_at(cx->types, in[i])->dtype;
    return d == DT_f32 || d == DT_f64 ||
           diag(cx->diags, operand_at(cx, e, i), "%s takes f32 or f64, but operand %u is %s", name_of(cx, e), i,
                type_c(cx, in[i]));
}

bool type_complex(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_part(cx, e, in, 0) || !want_part(cx, e, in, 1) || !want_dtype_of(cx, e, in, 1, 0)) return false;
    return shapes_meet(cx, e, in, dtype_complex(type_at(cx->types, in[0])->dtype), out);
}

/* A key of its parts. */
bool type_random_join(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    const Param *p = param_find(e, K_impl);
    Dtype key = p ? dtype_named(str_format(cx->arena, "key<%.*s>", SF(p->value.s))) : DT_none;
    if (!want(cx, e, 2, 1) || !want_dtype_of(cx, e, in, 1, 0)) return false;
    return key && shapes_meet(cx, e, in, key, out);
}

/* The conjugate of a real number is complex too: what JAX differentiates through says input_dtype.
 */
bool type_conj(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1) || !want_kind(cx, e, in, 0, OF_INEXACT)) return false;
    Dtype d = type_at(cx->types, in[0])->dtype;
    if (dtype_info[d].kind == DK_FLOAT && !want_part(cx, e, in, 0)) return false;
    out[0] = type_like(cx, in[0], dtype_complex(d));
    return true;
}
