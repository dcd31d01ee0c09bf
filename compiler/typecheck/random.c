/* Random numbers: arrays of keys, whose 32-bit words are not visible as an axis, and generators of bits. */
#include "rule.h"

static Dim words_of(Dtype key) { return dtype_info[key].bits / 32; }

/* The shape of operand 0 and then that of the parameter `shape`. */
static bool drawn(Ctx *cx, const Eqn *e, const Type *in, Dtype d, Type *out) {
    if (!want_param(cx, e, K_shape)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    Dims shape = param_dims(e, K_shape);
    Dim *dims = arena_new(cx->arena, Dim, (size_t)x->rank + shape.n);
    if (x->rank) memcpy(dims, x->dims, x->rank * sizeof *dims);
    if (shape.n) memcpy(dims + x->rank, shape.at, shape.n * sizeof *dims);
    for (uint32_t i = 0; i < shape.n; i++)
        if (!dims_at_most(cx, 0, shape.at[i], param_at(e, K_shape)))
            return diag(cx->diags, param_at(e, K_shape), "%s: shape holds the negative extent %s", name_of(cx, e),
                        dim_c(cx, shape.at[i]));
    *out = type_of(cx->types, d, x->rank + shape.n, dims);
    return true;
}

/* The element type of a key implementation. */
static bool want_impl(Ctx *cx, const Eqn *e, Dtype *key) {
    if (!want_param(cx, e, K_impl)) return false;
    const Param *p = param_find(e, K_impl);
    Str s = p->value.kind == V_WORD ? p->value.s : S("?");
    *key = dtype_named(str_format(cx->arena, "key<%.*s>", SF(s)));
    return *key != DT_none || diag(cx->diags, p->span, "%s: impl is none of fry, rbg and urbg", name_of(cx, e));
}

bool type_random_seed(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dtype key;
    if (!want(cx, e, 1, 1) || !want_kind(cx, e, in, 0, OF_INT) || !want_impl(cx, e, &key)) return false;
    out[0] = type_like(cx, in[0], key);
    return true;
}

/* u32[…, words] → key[…] */
bool type_random_wrap(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dtype key;
    if (!want(cx, e, 1, 1) || !want_impl(cx, e, &key)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    if (x->dtype != DT_u32 || !x->rank || !dims_agree(cx, x->dims[x->rank - 1], words_of(key), operand_at(cx, e, 0))) {
        diag(cx->diags, operand_at(cx, e, 0), "random_wrap: a %s is made of %lld words of u32, but operand 0 is %s",
             dtype_info[key].long_name, (long long)words_of(key), type_c(cx, in[0]));
        note_operand(cx, e, 0, in[0]);
        return false;
    }
    out[0] = type_of(cx->types, key, x->rank - 1, x->dims);
    return true;
}

/* key[…] → u32[…, words] */
bool type_random_unwrap(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1) || !want_kind(cx, e, in, 0, OF_KEY)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    Dim *dims = dims_copy(cx, x);
    dims[x->rank] = words_of(x->dtype);
    out[0] = type_of(cx->types, DT_u32, x->rank + 1, dims);
    return true;
}

bool type_random_split(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return want(cx, e, 1, 1) && want_kind(cx, e, in, 0, OF_KEY) &&
           drawn(cx, e, in, type_at(cx->types, in[0])->dtype, out);
}

bool type_random_clone(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1) || !want_kind(cx, e, in, 0, OF_KEY)) return false;
    out[0] = type_plain(cx->types, in[0]);
    return true;
}

bool type_random_fold_in(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return want(cx, e, 2, 1) && want_kind(cx, e, in, 0, OF_KEY) && want_kind(cx, e, in, 1, OF_INT) &&
           shapes_meet(cx, e, in, type_at(cx->types, in[0])->dtype, out);
}

bool type_random_bits(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    static const Dtype of_width[] = {[8] = DT_u8, [16] = DT_u16, [32] = DT_u32, [64] = DT_u64};
    if (!want(cx, e, 1, 1) || !want_kind(cx, e, in, 0, OF_KEY)) return false;
    if (!want_param(cx, e, K_bit_width)) return false;
    int64_t width = param_int(e, K_bit_width, 0);
    if (width < 0 || width > 64 || of_width[width] == DT_none)
        return diag(cx->diags, param_at(e, K_bit_width), "random_bits: bit_width is %lld, but must be 8, 16, 32 or 64",
                    (long long)width);
    return drawn(cx, e, in, of_width[width], out);
}

/* Operand `i` is not a float of less than 16 bits or an integer of less than 8. */
static bool want_wide(Ctx *cx, const Eqn *e, const Type *in, unsigned i) {
    return !dtype_is_narrow(type_at(cx->types, in[i])->dtype) ||
           diag(cx->diags, operand_at(cx, e, i), "%s takes no narrow numbers, but operand %u is %s", name_of(cx, e), i,
                type_c(cx, in[i]));
}

/* A key for each place along the leading axes of the parameters of gamma distributions; one for all. */
bool type_random_gamma(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 2, 1) || !want_kind(cx, e, in, 0, OF_KEY) || !want_kind(cx, e, in, 1, OF_FLOAT)) return false;
    const ArrayType *keys = type_at(cx->types, in[0]), *x = type_at(cx->types, in[1]);
    if (!want_wide(cx, e, in, 1)) return false;
    for (uint32_t i = 0; i < keys->rank; i++)
        if (i >= x->rank || !dims_agree(cx, keys->dims[i], x->dims[i], operand_at(cx, e, 0)))
            return operands_disagree(cx, e, in, 1, 0);
    out[0] = type_plain(cx->types, in[1]);
    return true;
}

/* Words of key and counter, all u32, give `words` words. */
static bool block(Ctx *cx, const Eqn *e, const Type *in, Type *out, unsigned operands, unsigned words) {
    if (!want(cx, e, operands, words)) return false;
    for (unsigned i = 0; i < operands; i++)
        if (type_at(cx->types, in[i])->dtype != DT_u32)
            return diag(cx->diags, operand_at(cx, e, i), "%s takes u32, but operand %u is %s", name_of(cx, e), i,
                        type_c(cx, in[i]));
    if (!shapes_meet(cx, e, in, DT_u32, &out[0])) return false;
    for (unsigned i = 1; i < words; i++) out[i] = out[0];
    return true;
}

bool type_threefry2x32(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return block(cx, e, in, out, 4, 2); }
bool type_threefry4x32(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return block(cx, e, in, out, 8, 4); }
bool type_philox2x32(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return block(cx, e, in, out, 3, 2); }
bool type_philox4x32(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return block(cx, e, in, out, 6, 4); }

/* The halves of 0, 1, 2, … as numbers of 64 bits, in row-major order. */
bool type_iota_2x32_shape(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 0, 2) || !want_param(cx, e, K_shape)) return false;
    Dims shape = param_dims(e, K_shape);
    out[0] = out[1] = type_of(cx->types, DT_u32, shape.n, shape.at);
    return true;
}

/* The next state of the generator, and bits. */
bool type_rng_bit_generator(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dtype d;
    if (!want(cx, e, 1, 2) || !want_kind(cx, e, in, 0, OF_UINT)) return false;
    if (!want_param(cx, e, K_shape) || !want_param_dtype(cx, e, K_dtype, &d)) return false;
    if (!(OF_INT >> dtype_info[d].kind & 1))
        return diag(cx->diags, param_at(e, K_dtype), "rng_bit_generator: dtype=%s is no integer type",
                    dtype_info[d].long_name);
    const ArrayType *key = type_at(cx->types, in[0]);
    if (key->rank != 1)
        return diag(cx->diags, operand_at(cx, e, 0),
                    "rng_bit_generator: the state is a list of words, but operand 0 is %s", type_c(cx, in[0]));
    Dims shape = param_dims(e, K_shape);
    out[0] = type_plain(cx->types, in[0]);
    out[1] = type_of(cx->types, d, shape.n, shape.at);
    return true;
}

/* Numbers between two scalars. */
bool type_rng_uniform(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 2, 1) || !want_kind(cx, e, in, 0, OF_REAL) || !want_wide(cx, e, in, 0)) return false;
    if (!want_dtype_of(cx, e, in, 1, 0) || !want_param(cx, e, K_shape)) return false;
    if (!want_scalar(cx, e, in, 0) || !want_scalar(cx, e, in, 1)) return false;
    Dims shape = param_dims(e, K_shape);
    out[0] = type_of(cx->types, type_at(cx->types, in[0])->dtype, shape.n, shape.at);
    return true;
}
