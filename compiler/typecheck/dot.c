/* dot_general: [batch…, left…, contracted…] · [batch…, right…, contracted…] → [batch…, left…,
   right…], the axes of the operands in any order. */
#include "rule.h"

/* Decides which operand's element type the result of mixed operands has: compared from left to right. */
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
    Precision p = {k == DK_COMPLEX, -1, -1, (int32_t)dtype_info[d].width, k != DK_UINT};
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

Dtype dtype_of_product(Dtype a, Dtype b) {
    int order = compare(precision_of(a), precision_of(b));
    return order == 0 && a != b ? DT_none : order < 0 ? b : a;
}

const DotAlgorithm *dot_algorithm(const Eqn *e) {
    static const DotAlgorithm all[] = {
        {"DEFAULT", {DT_none}, DT_none},
        {"ANY_F8_ANY_F8_F32", {DT_none}, DT_f32},
        {"ANY_F8_ANY_F8_F32_FAST_ACCUM", {DT_none}, DT_f32},
        {"ANY_F8_ANY_F8_ANY", {DT_none}, DT_none},
        {"ANY_F8_ANY_F8_ANY_FAST_ACCUM", {DT_none}, DT_none},
        {"F16_F16_F16", {DT_f16}, DT_f16},
        {"F16_F16_F32", {DT_f16}, DT_f32},
        {"BF16_BF16_BF16", {DT_bf16, DT_f32}, DT_bf16},
        {"BF16_BF16_F32", {DT_bf16, DT_f32}, DT_f32},
        {"BF16_BF16_F32_X3", {DT_f32}, DT_f32},
        {"BF16_BF16_F32_X6", {DT_f32}, DT_f32},
        {"BF16_BF16_F32_X9", {DT_f32}, DT_f32},
        {"TF32_TF32_F32", {DT_f32}, DT_f32},
        {"TF32_TF32_F32_X3", {DT_f32}, DT_f32},
        {"F32_F32_F32", {DT_f32}, DT_f32},
        {"F64_F64_F64", {DT_f64}, DT_f64},
    };
    static const char before[] = "DotAlgorithmPreset."; /* printed by repr */
    const Param *p = param_find(e, K_precision);
    Str s = p && p->value.kind == V_WORD ? p->value.s : (Str){0};
    uint32_t n = sizeof before - 1;
    if (s.n > n && memcmp(s.at, before, n) == 0) s.at += n, s.n -= n;
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
        if (str_is(s, all[i].name)) return &all[i];
    return NULL;
}

/* A tuple of numbers. */
static bool read_ints(Ctx *cx, const Value *v, Ints *out) {
    if (v->kind == V_INTS) return *out = v->ints, true;
    if (v->kind != V_LIST) return false;
    *out = (Ints){arena_new(cx->arena, int64_t, v->list.n), v->list.n};
    for (uint32_t i = 0; i < v->list.n; i++) {
        if (v->list.at[i].kind != V_INT) return false;
        out->at[i] = v->list.at[i].i;
    }
    return true;
}

bool dot_axes(Ctx *cx, const Eqn *e, ParamKey k, const Value *v, Dot *a) {
    *a = (Dot){.key = k};
    for (uint32_t i = 0; i < 4; i++) { /* (([l], [r]), ([lb], [rb])), or the four */
        const Value *pair = v && v->kind == V_LIST && v->list.n == 2 ? &v->list.at[i / 2] : NULL, *list = NULL;
        if (v && v->kind == V_LIST && v->list.n == 4) list = &v->list.at[i];
        if (pair && pair->kind == V_LIST && pair->list.n == 2) list = &pair->list.at[i % 2];
        if (!list || !read_ints(cx, list, &(i < 2 ? a->contracted : a->batch)[i % 2]))
            return diag(cx->diags, param_at(e, k), "%s: %s are not (([l], [r]), ([lb], [rb]))", name_of(cx, e),
                        param_name[k]);
    }
    return (a->contracted[0].n == a->contracted[1].n && a->batch[0].n == a->batch[1].n) ||
           diag(cx->diags, param_at(e, k), "%s: %s pair lists of different lengths", name_of(cx, e), param_name[k]);
}

/* Paired axes have equal extents. */
static bool want_pairs(Ctx *cx, const Eqn *e, const Dot *d, unsigned right, const Ints axes[2]) {
    const ArrayType *x = type_at(cx->types, d->type[0]), *y = type_at(cx->types, d->type[1]);
    for (uint32_t i = 0; i < axes[0].n; i++) {
        Dim a = x->dims[axes[0].at[i]], b = y->dims[axes[1].at[i]];
        if (dims_agree(cx, a, b, operand_at(cx, e, right))) continue;
        diag(cx->diags, operand_at(cx, e, right),
             "%s: axis %lld of operand %u, %s, meets axis %lld of operand 0, %s, but %s is not %s", name_of(cx, e),
             (long long)axes[1].at[i], right, type_c(cx, d->type[1]), (long long)axes[0].at[i], type_c(cx, d->type[0]),
             dim_c(cx, b), dim_c(cx, a));
        note_operand(cx, e, 0, d->type[0]);
        return false;
    }
    return true;
}

/* Of a number, or of the parts of a complex one. */
static unsigned part_bits(Dtype d) { return dtype_info[d].kind == DK_BOOL ? 1 : dtype_info[dtype_real(d)].width; }

static bool result_dtype(Ctx *cx, const Eqn *e, const Type *in, unsigned right, Dtype *d) {
    Dtype a = type_at(cx->types, in[0])->dtype, b = type_at(cx->types, in[right])->dtype;
    *d = dtype_of_product(a, b);
    if (!*d) return operands_disagree(cx, e, in, right, 0);
    if (!param_has(e, K_preferred_element_type)) return true;
    Dtype exact = *d;
    if (!want_param_dtype(cx, e, K_preferred_element_type, d)) return false;
    if (!((OF_NUM | OF_BOOL) >> dtype_info[*d].kind & 1))
        return diag(cx->diags, param_at(e, K_preferred_element_type), "%s: preferred_element_type=%s holds no numbers",
                    name_of(cx, e), dtype_info[*d].long_name);
    const Param *precision = param_find(e, K_precision);
    bool written_out = precision && precision->value.s.n > 12 && memcmp(precision->value.s.at, "DotAlgorithm", 12) == 0;
    bool algorithm = written_out || dot_algorithm(e);
    return algorithm || dtype_info[exact].kind == DK_FLOAT || part_bits(*d) >= part_bits(exact) ||
           diag(cx->diags, param_at(e, K_preferred_element_type),
                "%s: preferred_element_type=%s is narrower than the operands' %s", name_of(cx, e),
                dtype_info[*d].long_name, dtype_info[exact].name);
}

static uint32_t put_free(Dim *dims, uint32_t n, const ArrayType *x, const bool *used) {
    for (uint32_t i = 0; i < x->rank; i++)
        if (!used[i]) dims[n++] = x->dims[i];
    return n;
}

static bool want_dot_axes(Ctx *cx, const Eqn *e, const Type *in, Type left, unsigned right, Dot *a) {
    a->type[0] = left, a->type[1] = in[right];
    for (unsigned i = 0; i < 2; i++)
        if (!want_kind(cx, e, in, i ? right : 0, OF_NUM | OF_BOOL)) return false;
    for (unsigned i = 0; i < 2; i++) { /* the axes exist and are all different */
        uint32_t rank = type_at(cx->types, a->type[i])->rank;
        bool *used = a->used[i] = arena_new(cx->arena, bool, rank);
        if (!want_axes(cx, e, a->key, a->contracted[i], rank, used) ||
            !want_axes(cx, e, a->key, a->batch[i], rank, used))
            return false;
    }
    return want_pairs(cx, e, a, right, a->batch) && want_pairs(cx, e, a, right, a->contracted);
}

bool want_dot(Ctx *cx, const Eqn *e, const Type *in, Type left, unsigned right, Dot *a) {
    return want_dot_axes(cx, e, in, left, right, a) && result_dtype(cx, e, in, right, &a->dtype);
}

Type dot_type(Ctx *cx, const Dot *a) {
    const ArrayType *x = type_at(cx->types, a->type[0]), *y = type_at(cx->types, a->type[1]);
    Dim *dims = arena_new(cx->arena, Dim, (size_t)x->rank + y->rank);
    uint32_t n = 0;
    each(int64_t, axis, a->batch[0]) dims[n++] = x->dims[*axis];
    n = put_free(dims, n, x, a->used[0]);
    n = put_free(dims, n, y, a->used[1]);
    return type_of(cx->types, a->dtype, n, dims);
}

bool type_dot_general(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dot a;
    if (!want(cx, e, 2, 1) || !want_param(cx, e, K_dimension_numbers)) return false;
    if (!dot_axes(cx, e, K_dimension_numbers, &param_find(e, K_dimension_numbers)->value, &a)) return false;
    if (!want_dot(cx, e, in, in[0], 1, &a)) return false;
    out[0] = dot_type(cx, &a);
    return true;
}

static bool holds(Ints s, int64_t v) {
    for (uint32_t i = 0; i < s.n; i++)
        if (s.at[i] == v) return true;
    return false;
}

/* ---- operands with scales: one for each block of elements along the contracted axes */

bool scaled_axes(Ctx *cx, const Eqn *e, Dot *a) {
    if (e->prim == P_scaled_dot)
        return want_param(cx, e, K_dimension_numbers) &&
               dot_axes(cx, e, K_dimension_numbers, &param_find(e, K_dimension_numbers)->value, a);
    int64_t *axis = arena_new(cx->arena, int64_t, 2);
    axis[1] = 2;
    *a = (Dot){
        .key = K_preferred_element_type, .batch = {{axis, 1}, {axis, 1}}, .contracted = {{axis + 1, 1}, {axis + 1, 1}}};
    return true;
}

/* Operand `i` and its scales, operand `i` + 2. */
static bool want_scales(Ctx *cx, const Eqn *e, const Type *in, unsigned i, Ints contracted) {
    const ArrayType *x = type_at(cx->types, in[i]), *s = type_at(cx->types, in[i + 2]);
    const Span at = operand_at(cx, e, i + 2);
    const int64_t least = e->prim == P_scaled_dot ? 2 : 1; /* elements of a block */
    for (uint32_t a = 0; a < x->rank; a++) {
        Dim n = x->dims[a], blocks = s->dims[a];
        bool in_blocks = holds(contracted, a);
        if (in_blocks ? dims_agree(cx, dim_mod(cx->types, n, blocks), 0, at) &&
                            dims_at_most(cx, least, dim_floordiv(cx->types, n, blocks), at)
                      : dims_agree(cx, n, blocks, at))
            continue;
        diag(cx->diags, at,
             in_blocks ? "%s: operand %u, %s, does not cut axis %u of operand %u, %s, in equal blocks%s"
                       : "%s: operand %u, %s, does not have axis %u of operand %u, %s%s",
             name_of(cx, e), i + 2, type_c(cx, in[i + 2]), a, i, type_c(cx, in[i]),
             in_blocks && least > 1 ? " of at least 2 elements" : "");
        note_operand(cx, e, i, in[i]);
        return false;
    }
    return true;
}

/* Operands, then their scales. */
bool type_scaled_dot(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dot a;
    bool free = e->prim == P_scaled_dot;
    if (!want(cx, e, 4, 1) || (!free && !want_param(cx, e, K_preferred_element_type))) return false;
    uint32_t rank = free ? type_at(cx->types, in[0])->rank : 3;
    for (unsigned i = 0; i < 4; i++) {
        if (!want_kind(cx, e, in, i, OF_REAL | OF_BOOL)) return false;
        if (type_at(cx->types, in[i])->rank != rank)
            return diag(cx->diags, operand_at(cx, e, i), "%s: operand %u, %s, does not have %u axes%s", name_of(cx, e),
                        i, type_c(cx, in[i]), rank, free ? ", as operand 0 does" : "");
    }
    if (!scaled_axes(cx, e, &a) || !want_dot_axes(cx, e, in, in[0], 1, &a)) return false;
    if (!want_scales(cx, e, in, 0, a.contracted[0]) || !want_scales(cx, e, in, 1, a.contracted[1])) return false;
    a.dtype = DT_bf16;
    if (param_has(e, K_preferred_element_type) && !want_param_dtype(cx, e, K_preferred_element_type, &a.dtype))
        return false;
    if (!((OF_REAL | OF_BOOL) >> dtype_info[a.dtype].kind & 1))
        return diag(cx->diags, param_at(e, K_preferred_element_type),
                    "%s: preferred_element_type=%s holds no real numbers", name_of(cx, e),
                    dtype_info[a.dtype].long_name);
    out[0] = dot_type(cx, &a);
    return true;
}

/* ---- groups of rows, columns or contracted elements, whose sizes are in operand 2: a matrix for each group */

bool ragged_axes(Ctx *cx, const Eqn *e, Ragged *r) {
    const ParamKey k = K_ragged_dot_dimension_numbers;
    Ints ragged, group;
    if (!want_param(cx, e, k)) return false;
    if (!dot_axes(cx, e, k, value_field(&param_find(e, k)->value, "dot_dimension_numbers"), &r->dot)) return false;
    if (!want_field(cx, e, k, "lhs_ragged_dimensions", &ragged) ||
        !want_field(cx, e, k, "rhs_group_dimensions", &group))
        return false;
    if (ragged.n != 1)
        return diag(cx->diags, param_at(e, k), "%s: lhs_ragged_dimensions has %u axes, but must have one",
                    name_of(cx, e), ragged.n);
    r->axis = ragged.at[0];
    r->where = holds(r->dot.batch[0], r->axis)        ? RAGGED_BATCH
               : holds(r->dot.contracted[0], r->axis) ? RAGGED_CONTRACTED
                                                      : RAGGED_FREE;
    r->group = r->where == RAGGED_FREE && group.n ? group.at[0] : -1;
    return group.n == (r->where == RAGGED_FREE) ||
           diag(cx->diags, param_at(e, k),
                "%s: rhs_group_dimensions has %u %s, but must have %s: the ragged axis of operand 0 is %s",
                name_of(cx, e), group.n, axes_word(group.n), r->where == RAGGED_FREE ? "one" : "none",
                r->where == RAGGED_FREE    ? "free"
                : r->where == RAGGED_BATCH ? "a batch axis"
                                           : "contracted");
}

uint32_t ragged_prefix(Ints batch, Ints among, int64_t axis, int64_t *prefix) {
    uint32_t n = 0;
    each(int64_t, a, batch) prefix[n++] = *a;
    for (uint32_t i = 0; i < among.n && among.at[i] != axis; i++) prefix[n++] = among.at[i];
    return n;
}

/* Sizes of groups: [g], or one list for each element of the axes before the ragged one: [batch…, front…, g]. */
static bool want_sizes(Ctx *cx, const Eqn *e, const Type *in, const Ragged *r) {
    const ArrayType *x = type_at(cx->types, in[0]), *sizes = type_at(cx->types, in[2]);
    int64_t *prefix = arena_new(cx->arena, int64_t, x->rank);
    Ints free = {arena_new(cx->arena, int64_t, x->rank), 0}, none = {0};
    for (uint32_t i = 0; i < x->rank; i++)
        if (!r->dot.used[0][i]) free.at[free.n++] = i;
    bool batch = r->where == RAGGED_BATCH;
    uint32_t n = ragged_prefix(batch ? none : r->dot.batch[0],
                               batch                     ? r->dot.batch[0]
                               : r->where == RAGGED_FREE ? free
                                                         : r->dot.contracted[0],
                               r->axis, prefix);
    if (sizes->rank == 1) return true;
    bool good = sizes->rank == n + 1;
    for (uint32_t i = 0; good && i < n; i++)
        good = dims_agree(cx, sizes->dims[i], x->dims[prefix[i]], operand_at(cx, e, 2));
    if (good) return true;
    diag(cx->diags, operand_at(cx, e, 2),
         "%s: operand 2, %s, does not have the sizes of groups, alone or behind the %u %s in front of "
         "axis %lld of operand 0",
         name_of(cx, e), type_c(cx, in[2]), n, axes_word(n), (long long)r->axis);
    note_operand(cx, e, 0, in[0]);
    return false;
}

bool type_ragged_dot_general(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    const ParamKey k = K_ragged_dot_dimension_numbers;
    Ragged r;
    if (!want(cx, e, 3, 1) || !ragged_axes(cx, e, &r) || !want_dot(cx, e, in, in[0], 1, &r.dot)) return false;
    if (!want_kind(cx, e, in, 2, OF_INT)) return false;
    const ArrayType *sizes = type_at(cx->types, in[2]);
    bool *marked = arena_new(cx->arena, bool, type_at(cx->types, in[0])->rank);
    Ints axis = {&r.axis, 1}, group = {&r.group, r.where == RAGGED_FREE};
    if (!want_field_axes(cx, e, k, "lhs_ragged_dimensions", axis, type_at(cx->types, in[0])->rank, marked))
        return false;
    if (!want_field_axes(cx, e, k, "rhs_group_dimensions", group, type_at(cx->types, in[1])->rank, r.dot.used[1]))
        return false;
    if (!want_sizes(cx, e, in, &r)) return false;
    Dim groups = sizes->dims[sizes->rank - 1];
    if (group.n) {
        Dim n = type_at(cx->types, in[1])->dims[r.group];
        if (!dims_agree(cx, groups, n, operand_at(cx, e, 2))) {
            diag(cx->diags, operand_at(cx, e, 2),
                 "%s: operand 2, %s, has the sizes of %s groups, but operand 1, %s, has %s", name_of(cx, e),
                 type_c(cx, in[2]), dim_c(cx, groups), type_c(cx, in[1]), dim_c(cx, n));
            note_operand(cx, e, 1, in[1]);
            return false;
        }
    }
    out[0] = dot_type(cx, &r.dot);
    if (r.where != RAGGED_CONTRACTED) return true;
    const ArrayType *t = type_at(cx->types, out[0]);
    Dim *dims = arena_new(cx->arena, Dim, (size_t)t->rank + 1);
    dims[0] = groups;
    for (uint32_t i = 0; i < t->rank; i++) dims[i + 1] = t->dims[i];
    out[0] = type_of(cx->types, t->dtype, t->rank + 1, dims);
    return true;
}
