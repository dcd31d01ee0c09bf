/* Fourier transforms of the last one to three axes. */
#include "rule.h"

typedef enum { FFT, IFFT, RFFT, IRFFT, NFFT } Transform;

/* FftType.RFFT, jax.lax.FftType.RFFT, RFFT or its number. */
static bool want_transform(Ctx *cx, const Eqn *e, Transform *t) {
    static const char *const words[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
    if (!want_param(cx, e, K_fft_type)) return false;
    const Param *p = param_find(e, K_fft_type);
    Str s = p->value.s;
    for (uint32_t i = s.n; i-- > 0;)
        if (s.at[i] == '.') {
            s = (Str){s.at + i + 1, s.n - i - 1};
            break;
        }
    for (*t = FFT; *t < NFFT; *t = (Transform)(*t + 1))
        if (str_is(s, words[*t]) || (s.n == 1 && s.at[0] == (char)('0' + *t))) return true;
    return diag(cx->diags, p->span, "fft: fft_type=%.*s is none of FFT, IFFT, RFFT and IRFFT", SF(p->value.s));
}

/* Real transforms keep of n complex results the first n // 2 + 1. */
bool type_fft(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Transform t;
    if (!want(cx, e, 1, 1) || !want_transform(cx, e, &t) || !want_param(cx, e, K_fft_lengths)) return false;
    if (!want_kind(cx, e, in, 0, t == RFFT ? OF_FLOAT : OF_COMPLEX)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    if (t == RFFT && dtype_complex(x->dtype) == x->dtype)
        return diag(cx->diags, operand_at(cx, e, 0), "fft takes f32 or f64, but operand 0 is %s", type_c(cx, in[0]));
    Dims lengths = param_dims(e, K_fft_lengths);
    if (!lengths.n || lengths.n > 3 || lengths.n > x->rank)
        return diag(cx->diags, param_at(e, K_fft_lengths), "fft: fft_lengths has %u %s, but operand 0 is %s", lengths.n,
                    entries(lengths.n), type_c(cx, in[0]));
    Dim *dims = dims_copy(cx, x);
    for (uint32_t i = 0; i < lengths.n; i++) {
        uint32_t axis = x->rank - lengths.n + i;
        bool last = i + 1 == lengths.n;
        Dim half = dim_add(cx->types, dim_floordiv(cx->types, lengths.at[i], 2), 1);
        Dim need = last && t == IRFFT ? half : lengths.at[i];
        if (!dims_agree(cx, x->dims[axis], need, param_at(e, K_fft_lengths)))
            return diag(cx->diags, param_at(e, K_fft_lengths),
                        "fft: fft_lengths[%u] is %s, for which axis %u must have extent %s, but "
                        "operand 0 is %s",
                        i, dim_c(cx, lengths.at[i]), axis, dim_c(cx, need), type_c(cx, in[0]));
        dims[axis] = last && t == RFFT ? half : lengths.at[i];
    }
    Dtype d = t == RFFT ? dtype_complex(x->dtype) : t == IRFFT ? dtype_real(x->dtype) : x->dtype;
    out[0] = type_of(cx->types, d, x->rank, dims);
    return true;
}
