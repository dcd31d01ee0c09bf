/* Elementwise rules. The operands have one element type; scalars meet arrays, and between arrays of
   equal rank an axis of extent 1 stretches. Which element types a primitive takes follows
   jax/_src/lax/lax.py of JAX 0.10. */
#include "rule.h"

/* The extent of an axis on which `x` meets `y`; false if they do not fit. */
static bool extent_meet(Ctx *cx, Dim x, Dim y, Span span, Dim *out) {
    *out = x;
    if (x == y || y == 1) return true;
    if (x == 1) {
        *out = y;
        return true;
    }
    if (dim_is_const(y)) *out = y;
    return dims_agree(cx, x, y, span);
}

/* The common shape of operands of different shapes, with element type `d`. */
bool shapes_meet(Ctx *cx, const Eqn *e, const Type *in, Dtype d, Type *out) {
    unsigned first = 0;
    while (first < e->in.n && type_at(cx->types, in[first])->rank == 0) first++;
    if (first == e->in.n) {
        *out = type_of(cx->types, d, 0, NULL);
        return true;
    }
    uint32_t rank = type_at(cx->types, in[first])->rank;
    Dim *dims = arena_new(cx->arena, Dim, rank);
    memcpy(dims, type_at(cx->types, in[first])->dims, rank * sizeof *dims);
    for (unsigned i = first + 1; i < e->in.n; i++) {
        const ArrayType *x = type_at(cx->types, in[i]);
        if (x->rank == 0) continue;
        if (x->rank != rank) return operands_disagree(cx, e, in, i, first);
        for (uint32_t k = 0; k < rank; k++)
            if (!extent_meet(cx, dims[k], x->dims[k], operand_at(cx, e, i), &dims[k]))
                return operands_disagree(cx, e, in, i, first);
    }
    *out = type_of(cx->types, d, rank, dims);
    return true;
}

/* Operands of one type T in `kinds` give T's shape with elements of type `d` (DT_none: T's). */
static bool same_types(Ctx *cx, const Eqn *e, const Type *in, Type *out, unsigned kinds, Dtype d) {
    bool alike = true;
    for (unsigned i = 0; i < e->in.n; i++) {
        if (!want_kind(cx, e, in, i, kinds)) return false;
        alike = alike && in[i] == in[0];
    }
    for (unsigned i = 1; !alike && i < e->in.n; i++)
        if (!want_dtype_of(cx, e, in, i, 0)) return false;
    if (alike) {
        out[0] = d == DT_none ? type_plain(cx->types, in[0]) : type_like(cx, in[0], d);
        return true;
    }
    return shapes_meet(cx, e, in, d == DT_none ? type_at(cx->types, in[0])->dtype : d, out);
}

bool type_num(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return same_types(cx, e, in, out, OF_NUM, DT_none); }
/* Nothing stretches. */
bool type_add_any(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    for (unsigned i = 0; i < 2; i++)
        if (!want_kind(cx, e, in, i, OF_NUM)) return false;
    if (!types_agree(cx, in[1], in[0], operand_at(cx, e, 1))) return operands_disagree(cx, e, in, 1, 0);
    out[0] = type_plain(cx->types, in[0]);
    return true;
}
bool type_real(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return same_types(cx, e, in, out, OF_REAL, DT_none);
}
bool type_ordered(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return same_types(cx, e, in, out, OF_NUM | OF_BOOL, DT_none);
}
bool type_integer(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return same_types(cx, e, in, out, OF_INT, DT_none);
}
bool type_float(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return same_types(cx, e, in, out, OF_FLOAT, DT_none);
}
bool type_inexact(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return same_types(cx, e, in, out, OF_INEXACT, DT_none);
}
bool type_bits(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return same_types(cx, e, in, out, OF_BOOL | OF_INT, DT_none);
}
bool type_equality(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return same_types(cx, e, in, out, OF_ANY, DT_bool);
}
bool type_comparison(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return same_types(cx, e, in, out, OF_REAL | OF_BOOL, DT_bool);
}
bool type_is_finite(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return same_types(cx, e, in, out, OF_FLOAT, DT_bool);
}
bool type_fma(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return want(cx, e, 3, 1) && same_types(cx, e, in, out, OF_FLOAT, DT_none);
}
bool type_round(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    static const char *const methods[] = {"0", "1", "AWAY_FROM_ZERO", "TO_NEAREST_EVEN", NULL};
    return want(cx, e, 1, 1) && want_word(cx, e, K_rounding_method, methods) &&
           same_types(cx, e, in, out, OF_FLOAT, DT_none);
}

bool type_same(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    out[0] = in[0];
    return true;
}

bool type_optimization_barrier(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_results(cx, e, e->in.n)) return false;
    for (unsigned i = 0; i < e->in.n; i++) out[i] = in[i];
    return true;
}

/* With out_dtype the operands may differ and the binder gives the result type: JAX prints the parameter of jnp's
   accumulating products before it is canonicalized. */
bool type_mul(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!param_has(e, K_out_dtype)) return type_num(cx, e, in, out);
    if (!want_kind(cx, e, in, 0, OF_NUM) || !want_kind(cx, e, in, 1, OF_NUM)) return false;
    Dtype said = param_dtype(e, K_out_dtype), d = out[0] ? type_at(cx->types, out[0])->dtype : said;
    if (!(OF_NUM >> dtype_info[said].kind & 1))
        return diag(cx->diags, param_at(e, K_out_dtype), "mul: out_dtype=%s holds no numbers", dtype_info[said].name);
    if (!(OF_NUM >> dtype_info[d].kind & 1))
        return diag(cx->diags, param_at(e, K_out_dtype), "mul: out_dtype is no type of numbers");
    return shapes_meet(cx, e, in, d, out);
}

/* |x| of a complex number is a float of half the width. */
bool type_abs(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!same_types(cx, e, in, out, OF_SINT | OF_INEXACT, DT_none)) return false;
    Dtype d = type_at(cx->types, in[0])->dtype;
    if (d == DT_c64) out[0] = type_like(cx, in[0], DT_f32);
    if (d == DT_c128) out[0] = type_like(cx, in[0], DT_f64);
    return true;
}

/* x^y: y has x's type or is an integer. */
bool type_pow(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_kind(cx, e, in, 0, OF_INEXACT) || !want_kind(cx, e, in, 1, OF_NUM)) return false;
    DtypeKind y = dtype_info[type_at(cx->types, in[1])->dtype].kind;
    if (!(OF_INT >> y & 1) && !want_dtype_of(cx, e, in, 1, 0)) return false;
    return shapes_meet(cx, e, in, type_at(cx->types, in[0])->dtype, out);
}

bool type_integer_pow(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1) || !want_param(cx, e, K_y)) return false;
    if (!same_types(cx, e, in, out, OF_NUM, DT_none)) return false;
    int64_t y = param_int(e, K_y, 0);
    bool integer = OF_INT >> dtype_info[type_at(cx->types, in[0])->dtype].kind & 1;
    if (y < 0 && integer)
        return diag(cx->diags, param_at(e, K_y), "integer_pow: an integer has no power y=%lld", (long long)y);
    return true;
}

bool type_reduce_precision(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1) || !want_param(cx, e, K_exponent_bits)) return false;
    if (!want_param(cx, e, K_mantissa_bits)) return false;
    if (!same_types(cx, e, in, out, OF_FLOAT, DT_none)) return false;
    int64_t exponent = param_int(e, K_exponent_bits, 0), mantissa = param_int(e, K_mantissa_bits, 0);
    if (exponent < 1)
        return diag(cx->diags, param_at(e, K_exponent_bits),
                    "reduce_precision: exponent_bits is %lld, but must be positive", (long long)exponent);
    if (mantissa < 0)
        return diag(cx->diags, param_at(e, K_mantissa_bits),
                    "reduce_precision: mantissa_bits is %lld, but must not be negative", (long long)mantissa);
    return true;
}

/* Operand 0 selects among the others, which have one type: as a whole, or element by element. */
bool type_select_n(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_results(cx, e, 1)) return false;
    if (e->in.n < 2) return diag(cx->diags, e->span, "select_n takes at least 2 operands, but has %u", e->in.n);
    if (!want_kind(cx, e, in, 0, OF_BOOL | OF_INT)) return false;
    const ArrayType *which = type_at(cx->types, in[0]);
    if (which->dtype == DT_bool && e->in.n > 3)
        return diag(cx->diags, operand_at(cx, e, 3),
                    "select_n: operand 0 is %s, which chooses between 2 cases, but there are %u", type_c(cx, in[0]),
                    e->in.n - 1);
    if (which->rank && !shapes_agree(cx, in[0], in[1], operand_at(cx, e, 0))) {
        diag(cx->diags, operand_at(cx, e, 0), "select_n: operand 0 is %s, but the cases are %s", type_c(cx, in[0]),
             type_c(cx, in[1]));
        note_operand(cx, e, 1, in[1]);
        return false;
    }
    for (unsigned i = 2; i < e->in.n; i++)
        if (!types_agree(cx, in[1], in[i], operand_at(cx, e, i))) return operands_disagree(cx, e, in, i, 1);
    out[0] = type_plain(cx->types, in[1]);
    return true;
}

/* min, x, max: the bounds are scalars or have x's shape. */
bool type_clamp(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 3, 1)) return false;
    for (unsigned i = 0; i < 3; i++)
        if (!want_kind(cx, e, in, i, OF_NUM | OF_BOOL)) return false;
    for (unsigned i = 1; i < 3; i++)
        if (!want_dtype_of(cx, e, in, i, 0)) return false;
    for (unsigned i = 0; i < 3; i += 2)
        if (type_at(cx->types, in[i])->rank && !shapes_agree(cx, in[i], in[1], operand_at(cx, e, i)))
            return operands_disagree(cx, e, in, i, 1);
    out[0] = type_plain(cx->types, in[1]);
    return true;
}

bool type_convert_element_type(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dtype d;
    if (!want(cx, e, 1, 1) || !want_param_dtype(cx, e, K_new_dtype, &d)) return false;
    if (!want_kind(cx, e, in, 0, OF_NUM | OF_BOOL)) return false;
    if (!((OF_NUM | OF_BOOL) >> dtype_info[d].kind & 1))
        return diag(cx->diags, param_at(e, K_new_dtype), "convert_element_type: new_dtype=%s holds no numbers",
                    dtype_info[d].long_name);
    out[0] = type_like(cx, in[0], d);
    return true;
}

/* Wider to narrower adds an axis, narrower to wider consumes the last one. */
bool type_bitcast_convert_type(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dtype d;
    if (!want(cx, e, 1, 1) || !want_param_dtype(cx, e, K_new_dtype, &d)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    uint32_t rank = x->rank, from = dtype_info[x->dtype].width, to = dtype_info[d].width;
    if (!want_kind(cx, e, in, 0, OF_NUM | OF_BOOL)) return false;
    if (d == x->dtype) {
        out[0] = type_plain(cx->types, in[0]);
        return true;
    }
    if (!want_kind(cx, e, in, 0, OF_REAL)) return false;
    if (!(OF_REAL >> dtype_info[d].kind & 1))
        return diag(cx->diags, param_at(e, K_new_dtype), "bitcast_convert_type: no bits of %s become new_dtype=%s",
                    type_c(cx, in[0]), dtype_info[d].long_name);
    Dim *dims = arena_new(cx->arena, Dim, (size_t)rank + 1);
    if (rank) memcpy(dims, x->dims, rank * sizeof *dims);
    if (from > to) dims[rank++] = from / to;
    if (from < to) {
        if (!rank || !dims_agree(cx, dims[rank - 1], to / from, operand_at(cx, e, 0)))
            return diag(cx->diags, operand_at(cx, e, 0),
                        "bitcast_convert_type: %u elements of %s make one %s, but operand 0 is %s", to / from,
                        dtype_info[x->dtype].name, dtype_info[d].name, type_c(cx, in[0]));
        rank--;
    }
    out[0] = type_of(cx->types, d, rank, dims);
    return true;
}

/* The program for each element of arrays whose last axes are those of the elements; an operand without these is the
   same for all. */
bool type_elementwise(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Type *takes = arena_new(cx->arena, Type, e->in.n + 1);
    Jaxpr *j = param_jaxpr(e, K_jaxpr);
    uint32_t rank = 0;
    const Dim *elements = NULL;
    assert(j->in.n == e->in.n);
    for (unsigned i = 0; i < e->in.n; i++) {
        const ArrayType *t = type_at(cx->types, in[i]), *own = val_array(cx, j->in.at[i]);
        takes[i] = type_of(cx->types, t->dtype, own->rank, t->dims);
        assert(t->rank >= own->rank);
        if (t->rank > own->rank) rank = t->rank - own->rank, elements = t->dims + own->rank;
    }
    assert(rank);
    if (!want_program(cx, e, K_jaxpr, j, takes, e->in.n, e->out.n)) return false;
    for (unsigned i = 0; i < e->out.n; i++) {
        const ArrayType *own = type_at(cx->types, result_type(cx, j, i, 0));
        Dim *dims = arena_new(cx->arena, Dim, own->rank + rank);
        if (own->rank) memcpy(dims, own->dims, own->rank * sizeof *dims);
        memcpy(dims + own->rank, elements, rank * sizeof *dims);
        out[i] = type_of(cx->types, own->dtype, own->rank + rank, dims);
    }
    return true;
}
/* One element of operand 0, at the place that the others say, an integer for each axis, moved inside the array. */
bool type_element(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    const ArrayType *t = type_at(cx->types, in[0]);
    assert(e->in.n == t->rank + 1);
    out[0] = type_of(cx->types, t->dtype, 0, NULL);
    return true;
}
