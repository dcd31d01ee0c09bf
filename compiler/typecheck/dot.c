/* dot_general: [batch…, left…, contracted…] · [batch…, right…, contracted…] → [batch…, left…,
   right…], the axes of the operands in any order. */
#include "rule.h"

typedef struct {
    Ints contracted, batch;
    bool *used; /* by axis */
} Side;

/* What decides whose element type the result of mixed operands has: compared from left to right. */
typedef struct {
    int32_t complex, exponent, mantissa, bits, is_signed;
} Precision;

/* The power of two above the largest value, and bits of the mantissa. */
static void float_precision(Dtype d, Precision *p) {
    const FloatFormat *f = &float_format[d];
    int top = (1 << f->exponent) - f->bias - (f->special == FLOAT_IEEE);
    *p = (Precision){p->complex, top - (f->special == FLOAT_POWER), f->mantissa, p->bits, 1};
}

static Precision precision_of(Dtype d) {
    DtypeKind k = dtype_info[d].kind;
    Precision p = {k == DK_COMPLEX, -1, -1, (int32_t)dtype_info[d].width,
                   k != DK_UINT};
    if (k == DK_COMPLEX) d = d == DT_c64 ? DT_f32 : DT_f64;
    if (k == DK_COMPLEX || k == DK_FLOAT) float_precision(d, &p);
    return p;
}

static int compare(Precision a, Precision b) {
    const int32_t x[] = {a.complex, a.exponent, a.mantissa, a.bits, a.is_signed};
    const int32_t y[] = {b.complex, b.exponent, b.mantissa, b.bits, b.is_signed};
    for (unsigned i = 0; i < sizeof x / sizeof *x; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

static bool bad_numbers(Ctx *cx, const Eqn *e, const char *what) {
    return diag(cx->diags, param_at(e, K_dimension_numbers), "dot_general: dimension_numbers %s",
                what);
}

/* The axes of one operand exist and are all different. */
static bool want_side(Ctx *cx, const Eqn *e, const ArrayType *x, Side *s) {
    s->used = arena_new(cx->arena, bool, x->rank);
    return want_axes(cx, e, K_dimension_numbers, s->contracted, x->rank, s->used) &&
           want_axes(cx, e, K_dimension_numbers, s->batch, x->rank, s->used);
}

/* Paired axes have equal extents. */
static bool want_pairs(Ctx *cx, const Eqn *e, const Type *in, Ints l, Ints r) {
    const ArrayType *x = type_at(cx->types, in[0]), *y = type_at(cx->types, in[1]);
    for (uint32_t i = 0; i < l.n; i++) {
        Dim a = x->dims[l.at[i]], b = y->dims[r.at[i]];
        if (dims_agree(cx, a, b, operand_at(cx, e, 1))) continue;
        diag(cx->diags, operand_at(cx, e, 1),
             "dot_general: axis %lld of operand 1, %s, meets axis %lld of operand 0, %s, but %s is "
             "not %s",
             (long long)r.at[i], type_c(cx, in[1]), (long long)l.at[i], type_c(cx, in[0]),
             dim_c(cx, b), dim_c(cx, a));
        note_operand(cx, e, 0, in[0]);
        return false;
    }
    return true;
}

static bool result_dtype(Ctx *cx, const Eqn *e, const Type *in, Dtype *d) {
    Dtype a = type_at(cx->types, in[0])->dtype, b = type_at(cx->types, in[1])->dtype;
    int order = compare(precision_of(a), precision_of(b));
    if (order == 0 && a != b) return operands_disagree(cx, e, in, 1, 0);
    *d = order < 0 ? b : a;
    if (!param_has(e, K_preferred_element_type)) return true;
    if (!want_param_dtype(cx, e, K_preferred_element_type, d)) return false;
    return (OF_NUM | OF_BOOL) >> dtype_info[*d].kind & 1 ||
           diag(cx->diags, param_at(e, K_preferred_element_type),
                "dot_general: preferred_element_type=%s holds no numbers",
                dtype_info[*d].long_name);
}

static uint32_t put_free(Dim *dims, uint32_t n, const ArrayType *x, const Side *s) {
    for (uint32_t i = 0; i < x->rank; i++)
        if (!s->used[i]) dims[n++] = x->dims[i];
    return n;
}

bool type_dot_general(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 2, 1) || !want_param(cx, e, K_dimension_numbers)) return false;
    const Value *v = &param_find(e, K_dimension_numbers)->value;
    bool four = v->kind == V_LIST && v->list.n == 4;
    for (unsigned i = 0; four && i < 4; i++)
        four = v->list.at[i].kind == V_INTS;
    if (!four) return bad_numbers(cx, e, "are not (([l], [r]), ([lb], [rb]))");
    Side l = {v->list.at[0].ints, v->list.at[2].ints, NULL};
    Side r = {v->list.at[1].ints, v->list.at[3].ints, NULL};
    if (l.contracted.n != r.contracted.n || l.batch.n != r.batch.n)
        return bad_numbers(cx, e, "pair lists of different lengths");
    for (unsigned i = 0; i < 2; i++)
        if (!want_kind(cx, e, in, i, OF_NUM | OF_BOOL)) return false;
    const ArrayType *x = type_at(cx->types, in[0]), *y = type_at(cx->types, in[1]);
    Dtype d;
    if (!want_side(cx, e, x, &l) || !want_side(cx, e, y, &r)) return false;
    if (!want_pairs(cx, e, in, l.batch, r.batch)) return false;
    if (!want_pairs(cx, e, in, l.contracted, r.contracted)) return false;
    if (!result_dtype(cx, e, in, &d)) return false;
    Dim *dims = arena_new(cx->arena, Dim, (size_t)x->rank + y->rank);
    uint32_t n = 0;
    each(int64_t, axis, l.batch)
        dims[n++] = x->dims[*axis];
    n = put_free(dims, n, x, &l);
    n = put_free(dims, n, y, &r);
    out[0] = type_of(cx->types, d, n, dims);
    return true;
}

/* Groups of rows or columns, whose sizes operand 2 has: dot_general with a matrix for each group. */
bool type_ragged_dot_general(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 3, 1)) return false;
    for (unsigned i = 0; i < 2; i++)
        if (!want_kind(cx, e, in, i, OF_NUM | OF_BOOL)) return false;
    return want_kind(cx, e, in, 2, OF_INT) && type_declared(cx, e, in, out);
}
