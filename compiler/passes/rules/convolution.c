/* Convolutions become matrix products of windows of the left operand with the right one, over the features and the
   positions in the window. Groups are batch axes. The axes of the result are in the order of the equation, without a
   transpose but where strides would set lanes apart (features_last): axes for which that is impossible are batch axes
   too, along which the operand without them is broadcast. */
#include "some.h"
#include "../transform/transform.h"
#include "window.h"
#include "../../options.h"
#include "../../typecheck/rule.h"

/* Every axis has a name. */
enum {
    BATCH,
    GROUP,
    FEATURE,
    OUT,
    EXAMPLES,
    SPACE = EXAMPLES + MAX_RANK,
    KERNEL = SPACE + MAX_RANK,
    NAMES = KERNEL + MAX_RANK
};
typedef struct {
    Val v;
    uint32_t n;
    uint8_t name[MAX_RANK]; /* of each axis */
} Named;
typedef struct {
    Builder *b;
    uint32_t examples, space;  /* axes: of examples, which come first in all arrays */
    int64_t features, batches; /* groups */
    bool apart;                /* of one feature, or one result */
    Ints lhs, rhs, out;
    Named x, y;
    Dim extent[NAMES];
    uint8_t result[MAX_RANK]; /* the result's axes, GROUP before OUT where there are groups */
    uint32_t nresult;
    Dtype dtype;
} Conv;

static bool has(const Named *v, uint8_t name) {
    for (uint32_t i = 0; i < v->n; i++)
        if (v->name[i] == name) return true;
    return false;
}
/* The axis `name` becomes GROUP and itself. */
static void split(Conv *c, Named *v, uint8_t name, int64_t groups) {
    Dim dims[MAX_RANK + 1];
    Named w = {0};
    for (uint32_t i = 0; i < v->n; i++) {
        Dim n = b_type(c->b, v->v)->dims[i];
        if (v->name[i] == name) dims[w.n] = groups, w.name[w.n++] = GROUP, n = dim_floordiv(b_types(c->b), n, groups);
        dims[w.n] = n, w.name[w.n++] = v->name[i];
    }
    w.v = b_reshape(c->b, v->v, w.n, dims);
    *v = w;
}
static void find_extents(Conv *c, const Named *v) {
    for (uint32_t i = 0; i < v->n && !c->b->failed; i++) c->extent[v->name[i]] = b_type(c->b, v->v)->dims[i];
}
/* Puts the axes into this order; missing ones are added. */
static void arrange(Conv *c, Named *v, uint32_t n, const uint8_t *names) {
    Dim dims[MAX_RANK];
    int64_t to[MAX_RANK];
    for (uint32_t i = 0; i < n; i++) {
        dims[i] = c->extent[names[i]];
        for (uint32_t k = 0; k < v->n; k++)
            if (v->name[k] == names[i]) to[k] = i;
    }
    v->v = b_place(c->b, v->v, n, dims, to);
    memcpy(v->name, names, n);
    v->n = n;
}

/* ---- the operands */
static const char *const spec_names[] = {"lhs_spec", "rhs_spec", "out_spec"};
static Param dimension_numbers(Builder *b, const Ints *specs) {
    return p_record(b, K_dimension_numbers, "ConvDimensionNumbers", 3, spec_names, specs);
}
static bool read_conv(Conv *c, const Eqn *e) {
    Builder *b = c->b;
    const ParamKey k = K_dimension_numbers;
    c->examples = (uint32_t)param_int(e, K_batching_dims, 0);
    c->space = b_type(b, e->in.at[0])->rank - 2 - c->examples;
    if (2 * c->space + 4 + c->examples > MAX_RANK / 2)
        return diag(b->cx->diags, e->span, "conv_general_dilated of %u spatial axes is not supported yet", c->space);
    c->features = param_int(e, K_feature_group_count, 1);
    c->batches = param_int(e, K_batch_group_count, 1);
    c->dtype = val_array(b->cx, e->out.at[0])->dtype;
    if (!want_field(b->cx, e, k, "lhs_spec", &c->lhs) || !want_field(b->cx, e, k, "rhs_spec", &c->rhs) ||
        !want_field(b->cx, e, k, "out_spec", &c->out))
        return false;
    const Dim *dims = b_type(b, e->in.at[1])->dims;
    int64_t groups = c->features * c->batches;
    c->apart = groups > 1 && (dims[c->rhs.at[1]] == 1 || dims[c->rhs.at[0]] == groups);
    return true;
}
/* The type of the sums. */
static Dtype summed_as(Dtype d) { return dtype_info[d].kind == DK_FLOAT && dtype_info[d].bits < 32 ? DT_f32 : d; }
/* A matrix product reads its operand in place, so padding is written to memory; an elementwise product tests for
   padding, up to MOST_READS times for a result. */
enum { MOST_READS = 64 };
/* A sum converted to the result's type; narrow floats are rounded twice. */
static Val rounded(Conv *c, Val y) { return b_convert(c->b, b_convert(c->b, y, dtype_arithmetic(c->dtype)), c->dtype); }
static void left(Conv *c, const Eqn *e) {
    Builder *b = c->b;
    const ArrayType *t = b_type(b, e->in.at[0]);
    Windows w = {.rank = t->rank};
    Dim stride[MAX_RANK], base[MAX_RANK], dilation[MAX_RANK], padding[2 * MAX_RANK];
    read_extents(e, K_window_strides, c->space, 1, stride);
    read_extents(e, K_lhs_dilation, c->space, 1, base);
    read_extents(e, K_rhs_dilation, c->space, 1, dilation);
    read_extents(e, K_padding, 2 * c->space, 0, padding);
    Named *x = &c->x;
    *x = (Named){.v = e->in.at[0], .n = t->rank};
    for (uint32_t i = 0; i < t->rank; i++) w.window[i] = w.stride[i] = w.dilation[i] = w.base[i] = 1;
    for (uint32_t i = 0; i < c->examples; i++) x->name[i] = EXAMPLES + i;
    x->name[c->lhs.at[0]] = BATCH, x->name[c->lhs.at[1]] = FEATURE;
    for (uint32_t i = 0; i < c->space; i++) {
        int64_t a = c->lhs.at[2 + i];
        x->name[a] = SPACE + i;
        w.window[a] = b_type(b, e->in.at[1])->dims[c->rhs.at[2 + i]];
        w.stride[a] = stride[i], w.dilation[a] = dilation[i], w.base[a] = base[i];
        w.low[a] = padding[2 * i], w.high[a] = padding[2 * i + 1];
    }
    bool often = false, gaps = false;
    Dim positions = 1;
    for (uint32_t a = 0; a < t->rank; a++) {
        often |= w.window[a] != 1, gaps |= w.base[a] != 1;
        positions = dim_mul(b_types(b), positions, w.window[a]);
    }
    Dtype d = float_format[t->dtype].special == FLOAT_POWER ? DT_f32 : t->dtype; /* has a zero, which padding is */
    x->v = b_spread_out(b, b_convert(b, x->v, d), &w, b_number(b, d, 0));
    bool tensor_cores = options_for_device(b->cx->options); /* they read narrow types */
    if (often && !tensor_cores) x->v = b_convert(b, x->v, summed_as(c->dtype));
    bool read_through = c->apart && !gaps && dim_is_const(positions) && positions <= MOST_READS;
    if (!read_through) x->v = b_stored(b, x->v);
    x->v = b_windows(b, x->v, &w, c->space, c->lhs.at + 2);
    for (uint32_t i = 0; i < c->space; i++) x->name[x->n++] = KERNEL + i;
    if (c->features > 1) split(c, x, FEATURE, c->features);
    if (c->batches > 1) split(c, x, BATCH, c->batches);
}
static void right(Conv *c, const Eqn *e) {
    Named *y = &c->y;
    *y = (Named){.v = e->in.at[1], .n = c->examples + c->rhs.n};
    for (uint32_t i = 0; i < c->examples; i++) y->name[i] = EXAMPLES + i;
    y->name[c->rhs.at[0]] = OUT, y->name[c->rhs.at[1]] = FEATURE;
    for (uint32_t i = 0; i < c->space; i++) y->name[c->rhs.at[2 + i]] = KERNEL + i;
    if (c->features * c->batches > 1) split(c, y, OUT, c->features * c->batches);
}
static void find_result(Conv *c) {
    uint8_t name[MAX_RANK];
    for (uint32_t i = 0; i < c->examples; i++) name[i] = EXAMPLES + i;
    name[c->out.at[0]] = BATCH, name[c->out.at[1]] = OUT;
    for (uint32_t i = 0; i < c->space; i++) name[c->out.at[2 + i]] = SPACE + i;
    for (uint32_t i = 0; i < c->examples + c->out.n; i++) {
        if (name[i] == OUT && c->features * c->batches > 1) c->result[c->nresult++] = GROUP;
        c->result[c->nresult++] = name[i];
    }
}

/* ---- the product */
/* The number of batch axes: all but axes of one operand alone that come after those of the other operand alone. */
static uint32_t count_batch(const Conv *c, const Named **first) {
    const Named *owner = NULL;
    uint32_t i = c->nresult, runs = 0;
    for (; i > 0; i--) {
        bool x = has(&c->x, c->result[i - 1]), y = has(&c->y, c->result[i - 1]);
        if (x && y) break;
        const Named *of = x ? &c->x : &c->y;
        if (of != owner && ++runs > 2) break;
        owner = of;
    }
    *first = owner ? owner : &c->x;
    return i;
}
static Ints axes(const Conv *c, uint32_t from, uint32_t n) {
    Ints s = {arena_new(c->b->cx->arena, int64_t, n + 1), n};
    for (uint32_t i = 0; i < n; i++) s.at[i] = from + i;
    return s;
}
/* Batch axes, the operand's own, the contracted ones in the order of the right operand. */
static void arrange_operand(Conv *c, Named *v, uint32_t nbatch, const uint8_t *summed, uint32_t nsummed) {
    uint8_t names[MAX_RANK];
    uint32_t n = nbatch;
    memcpy(names, c->result, nbatch);
    for (uint32_t i = nbatch; i < c->nresult; i++)
        if (has(v, c->result[i])) names[n++] = c->result[i];
    memcpy(names + n, summed, nsummed);
    arrange(c, v, n + nsummed, names);
}
static Val product(Conv *c) {
    const Named *first;
    uint32_t nbatch = count_batch(c, &first), n = 0;
    uint8_t summed[MAX_RANK];
    bool swap = first == &c->y;
    for (uint32_t i = 0; i < c->y.n; i++)
        if (c->y.name[i] == FEATURE || c->y.name[i] >= KERNEL) summed[n++] = c->y.name[i];
    arrange_operand(c, &c->x, nbatch, summed, n);
    arrange_operand(c, &c->y, nbatch, summed, n);
    Named *l = swap ? &c->y : &c->x, *r = swap ? &c->x : &c->y;
    Contraction all = {.contracted = {axes(c, l->n - n, n), axes(c, r->n - n, n)},
                       .batch = {axes(c, 0, nbatch), axes(c, 0, nbatch)},
                       .preferred = dtype_arithmetic(c->dtype)};
    return rounded(c, b_dot_general(c->b, l->v, r->v, all));
}

/* ---- groups of one feature, or one result: an elementwise product, summed over the window and the features */
static Val depthwise(Conv *c) {
    Builder *b = c->b;
    uint8_t names[MAX_RANK];
    uint32_t n = c->nresult;
    int64_t last[MAX_RANK];
    memcpy(names, c->result, n);
    for (uint32_t i = 0; i < c->space; i++) names[n++] = KERNEL + i;
    names[n++] = FEATURE;
    for (uint32_t i = 0; c->nresult + i < n; i++) last[i] = c->nresult + i;
    for (uint32_t s = 0; s < 2; s++) {
        Named *v = s ? &c->y : &c->x;
        v->v = b_convert(b, v->v, summed_as(c->dtype));
        arrange(c, v, n, names);
    }
    bool bits = summed_as(c->dtype) == DT_bool;
    Val products = b2(b, bits ? P_and : P_mul, c->x.v, c->y.v);
    Val y = b_reduce(b, bits ? P_reduce_or : P_reduce_sum, products, n - c->nresult, last);
    return rounded(c, y);
}

/* A convolution of these operands with the equation's parameters but for some. */
static Val conv_with(Builder *b, const Eqn *e, const Val *in, uint32_t n, const Param *with) {
    Param *params = arena_new(b->cx->arena, Param, e->params.n + 1);
    for (uint32_t i = 0; i < e->params.n; i++) {
        params[i] = e->params.at[i];
        for (uint32_t k = 0; k < n; k++)
            if (with[k].key == params[i].key) params[i] = with[k];
    }
    return build(b, P_conv_general_dilated, 2, in, e->params.n, params);
}

/* ---- gaps between the elements of the left operand. Along an axis with gaps of d - 1 the results r, r + d, r + 2d, …
   are a convolution of the operand as it is with the elements k, k + d, … of the right one, where k = low - r modulo d:
   so nothing is multiplied by zeros in the gaps. Each such phase is an equation of its own. */
enum { MOST_PHASES = 16 };
typedef struct {
    uint32_t n;              /* axes with gaps */
    uint32_t axis[MAX_RANK]; /* among the spatial ones */
    int64_t gap[MAX_RANK];   /* d */
    int64_t phases;
    Dim base[MAX_RANK], padding[2 * MAX_RANK];
} Phases;

static bool find_phases(const Conv *c, const Eqn *e, Phases *p) {
    Dim stride[MAX_RANK], dilation[MAX_RANK];
    const ArrayType *x = b_type(c->b, e->in.at[0]), *y = b_type(c->b, e->in.at[1]), *z = b_type(c->b, e->out.at[0]);
    read_extents(e, K_window_strides, c->space, 1, stride);
    read_extents(e, K_lhs_dilation, c->space, 1, p->base);
    read_extents(e, K_rhs_dilation, c->space, 1, dilation);
    read_extents(e, K_padding, 2 * c->space, 0, p->padding);
    p->n = 0, p->phases = 1;
    for (uint32_t i = 0; i < c->space; i++) {
        if (p->base[i] == 1) continue;
        bool known = dim_is_const(x->dims[c->lhs.at[2 + i]]) && dim_is_const(y->dims[c->rhs.at[2 + i]]) &&
                     dim_is_const(z->dims[c->out.at[2 + i]]) && dim_is_const(p->padding[2 * i]);
        if (!known || stride[i] != 1 || dilation[i] != 1 || p->base[i] > MOST_PHASES) continue;
        if (p->phases * p->base[i] > MOST_PHASES) continue;
        p->axis[p->n] = i, p->gap[p->n++] = p->base[i];
        p->phases *= p->base[i];
        p->base[i] = 1;
    }
    return p->n > 0 && !b_empty(c->b, e->out.at[0]) && !b_empty(c->b, e->in.at[0]);
}
/* The results at these offsets along the axes with gaps. */
static Val phase(Conv *c, const Eqn *e, const Phases *p, const int64_t *offset) {
    Builder *b = c->b;
    const ArrayType *x = b_type(b, e->in.at[0]), *y = b_type(b, e->in.at[1]), *z = b_type(b, e->out.at[0]);
    Dim start[MAX_RANK] = {0}, padding[2 * MAX_RANK], dims[MAX_RANK];
    int64_t stride[MAX_RANK];
    bool none = false;
    memcpy(padding, p->padding, 2 * c->space * sizeof *padding);
    memcpy(dims, z->dims, z->rank * sizeof *dims);
    for (uint32_t a = 0; a < y->rank; a++) stride[a] = 1;
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t s = p->axis[i];
        int64_t d = p->gap[i], low = p->padding[2 * s], k = ((low - offset[i]) % d + d) % d;
        int64_t taps = (y->dims[c->rhs.at[2 + s]] - k + d - 1) / d, first = (offset[i] + k - low) / d;
        Dim results = (z->dims[c->out.at[2 + s]] + d - 1) / d;
        start[c->rhs.at[2 + s]] = k, stride[c->rhs.at[2 + s]] = d;
        padding[2 * s] = -first;
        padding[2 * s + 1] = first + results + taps - 1 - x->dims[c->lhs.at[2 + s]];
        dims[c->out.at[2 + s]] = results;
        none |= taps <= 0;
    }
    if (none) return b_full(b, b_number(b, z->dtype, 0), z->rank, dims);
    Val in[2] = {e->in.at[0], b_slice(b, e->in.at[1], start, y->dims, stride)};
    Param with[2] = {p_ints(b, K_lhs_dilation, c->space, p->base), p_dims(b, K_padding, 2 * c->space, padding)};
    return conv_with(b, e, in, 2, with);
}
/* [phases, …], parts of the axes → the whole axes. */
static Val interleave(Conv *c, const Phases *p, Val v, uint32_t rank, const Dim *wanted) {
    Builder *b = c->b;
    if (b_failed(b, v)) return VAL_FAILED;
    const ArrayType *t = b_type(b, v);
    Dim dims[2 * MAX_RANK], start[MAX_RANK] = {0};
    int64_t order[2 * MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) dims[i] = p->gap[i];
    memcpy(dims + p->n, t->dims + 1, rank * sizeof *dims);
    v = b_reshape(b, v, p->n + rank, dims);
    for (uint32_t a = 0; a < rank; a++) {
        order[n++] = p->n + a;
        dims[a] = t->dims[1 + a];
        for (uint32_t i = 0; i < p->n; i++)
            if (c->out.at[2 + p->axis[i]] == a) order[n++] = i, dims[a] = dim_mul(b_types(b), dims[a], p->gap[i]);
    }
    v = b_reshape(b, b_transpose(b, v, order), rank, dims);
    return b_slice(b, v, start, wanted, NULL);
}
static Val by_phases(Conv *c, const Eqn *e, const Phases *p) {
    Builder *b = c->b;
    const ArrayType *z = b_type(b, e->out.at[0]);
    Val parts[MOST_PHASES];
    for (int64_t k = 0; k < p->phases; k++) {
        int64_t offset[MAX_RANK], rest = k;
        for (uint32_t i = p->n; i-- > 0; rest /= p->gap[i]) offset[i] = rest % p->gap[i];
        parts[k] = phase(c, e, p, offset);
    }
    Val all = build(b, P_stack, (uint32_t)p->phases, parts, 1, (Param[]){p_int(K_axis, 0)});
    return interleave(c, p, all, z->rank, z->dims);
}
/* The same equation of other element types. */
static Val conv_of(Builder *b, const Eqn *e, Dtype d) {
    Val in[2] = {b_convert(b, e->in.at[0], d), b_convert(b, e->in.at[1], d)};
    return conv_with(b, e, in, 1, (Param[]){p_dtype(K_preferred_element_type, d)});
}

/* ---- strides along the last axis in memory, which lanes would read apart: they go along the features instead, which
   are moved to the end */
enum { FEW_FEATURES = 8 }; /* fewer do not fill a vector */
static bool reads_apart(const Conv *c, const Eqn *e) {
    Dim stride[MAX_RANK], base[MAX_RANK];
    const ArrayType *y = b_type(c->b, e->in.at[1]);
    Dim results = y->dims[c->rhs.at[0]];
    bool apart = false, gaps = false, windows = false;
    int64_t last = c->space + 1;
    read_extents(e, K_window_strides, c->space, 1, stride);
    read_extents(e, K_lhs_dilation, c->space, 1, base);
    for (uint32_t i = 0; i < c->space; i++) {
        apart |= c->lhs.at[2 + i] == last && stride[i] != 1, gaps |= base[i] != 1;
        windows |= y->dims[c->rhs.at[2 + i]] != 1;
    }
    if (!windows || !dim_is_const(results) || results < FEW_FEATURES) return false;
    return apart && !gaps && !c->examples && c->features * c->batches == 1 && !options_for_device(c->b->cx->options);
}
/* The axes of batch and features, or results and features, and the first of the spatial ones. */
static Ints spec_of(Builder *b, uint32_t space, int64_t batch, int64_t feature, int64_t spatial) {
    Ints s = {arena_new(b->cx->arena, int64_t, space + 2), space + 2};
    s.at[0] = batch, s.at[1] = feature;
    for (uint32_t i = 0; i < space; i++) s.at[2 + i] = spatial + i;
    return s;
}
static Val features_last(Conv *c, const Eqn *e) {
    Builder *b = c->b;
    uint32_t n = c->space;
    int64_t x[MAX_RANK], y[MAX_RANK], back[MAX_RANK];
    x[0] = c->lhs.at[0], x[n + 1] = c->lhs.at[1];
    y[n] = c->rhs.at[1], y[n + 1] = c->rhs.at[0];
    back[c->out.at[0]] = 0, back[c->out.at[1]] = n + 1;
    for (uint32_t i = 0; i < n; i++)
        x[1 + i] = c->lhs.at[2 + i], y[i] = c->rhs.at[2 + i], back[c->out.at[2 + i]] = 1 + i;
    Val in[2] = {b_transpose(b, e->in.at[0], x), b_transpose(b, e->in.at[1], y)};
    Ints of_x = spec_of(b, n, 0, n + 1, 1), of_y = spec_of(b, n, n + 1, n, 0);
    Param numbers = dimension_numbers(b, (Ints[]){of_x, of_y, of_x});
    return b_transpose(b, conv_with(b, e, in, 1, &numbers), back);
}
bool expand_conv_general_dilated(Builder *b, const Eqn *e, Val *out) {
    Conv *c = arena_new(b->cx->arena, Conv, 1);
    Phases p;
    c->b = b;
    if (!read_conv(c, e)) return false;
    Dtype given = b_type(b, e->in.at[0])->dtype, products = dtype_of_products(given, given, c->dtype);
    if (products != c->dtype || !dtype_goes_into(given, products)) {
        out[0] = b_convert(b, conv_of(b, e, products), c->dtype);
        return true;
    }
    if (find_phases(c, e, &p)) {
        out[0] = by_phases(c, e, &p);
        return true;
    }
    if (reads_apart(c, e)) {
        out[0] = features_last(c, e);
        return true;
    }
    left(c, e);
    right(c, e);
    find_result(c);
    find_extents(c, &c->x), find_extents(c, &c->y);
    if (b->failed) return false;
    Val y = c->apart ? depthwise(c) : product(c);
    const ArrayType *t = val_array(b->cx, e->out.at[0]);
    out[0] = b_reshape(b, y, t->rank, t->dims);
    return true;
}

/* ---- derivatives: the cotangent of an operand is a convolution of the result's with the other operand */
typedef struct {
    Builder *b;
    Ints lhs, rhs, out;
    uint32_t space;
    int64_t features, batches;
    Dim stride[MAX_RANK], base[MAX_RANK], dilation[MAX_RANK], padding[2 * MAX_RANK];
    const ArrayType *x, *y, *r;
    const Eqn *e;
} ConvBack;

static bool read_back(ConvBack *c, const Eqn *e) {
    Ctx *cx = c->b->cx;
    const ParamKey k = K_dimension_numbers;
    c->e = e;
    c->x = b_type(c->b, e->in.at[0]), c->y = b_type(c->b, e->in.at[1]), c->r = b_type(c->b, e->out.at[0]);
    c->space = c->x->rank - 2 - (uint32_t)param_int(e, K_batching_dims, 0);
    c->features = param_int(e, K_feature_group_count, 1), c->batches = param_int(e, K_batch_group_count, 1);
    read_extents(e, K_window_strides, c->space, 1, c->stride);
    read_extents(e, K_lhs_dilation, c->space, 1, c->base);
    read_extents(e, K_rhs_dilation, c->space, 1, c->dilation);
    read_extents(e, K_padding, 2 * c->space, 0, c->padding);
    return want_field(cx, e, k, "lhs_spec", &c->lhs) && want_field(cx, e, k, "rhs_spec", &c->rhs) &&
           want_field(cx, e, k, "out_spec", &c->out);
}
/* The axis `from` is in `groups` parts, which become the outer part of the axis `to`. */
static Val move_groups(Builder *b, Val v, int64_t from, int64_t to, int64_t groups) {
    if (b_failed(b, v)) return VAL_FAILED;
    const ArrayType t = *b_type(b, v);
    assert(0 <= from && from < t.rank && 0 <= to && to < t.rank);
    Dim dims[MAX_RANK + 1];
    int64_t order[MAX_RANK + 1], group = from;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t.rank; i++) {
        if (i == from) dims[n++] = groups;
        dims[n++] = i == from ? dim_floordiv(b_types(b), t.dims[i], groups) : t.dims[i];
    }
    v = b_reshape(b, v, n, dims);
    n = 0;
    for (uint32_t i = 0; i < t.rank; i++) {
        if (i == to) order[n++] = group;
        order[n++] = i < from ? i : i + 1;
        dims[i] = t.dims[i];
    }
    dims[from] = dim_floordiv(b_types(b), dims[from], groups), dims[to] = dim_mul(b_types(b), dims[to], groups);
    return b_reshape(b, b_transpose(b, v, order), t.rank, dims);
}
/* With the first two axes exchanged: of batch and features. */
static Ints exchanged(Builder *b, Ints spec) {
    Ints s = {arena_new(b->cx->arena, int64_t, spec.n), spec.n};
    memcpy(s.at, spec.at, spec.n * sizeof *s.at);
    s.at[0] = spec.at[1], s.at[1] = spec.at[0];
    return s;
}
enum { CONV_PARAMS = 10 };
/* The parameters of a convolution that are not those of `c`. */
typedef struct {
    Ints lhs, rhs, out;
    int64_t features, batches;
    const Dim *stride, *base, *dilation, *padding;
} ConvParams;
static Val convolve(const ConvBack *c, Val x, Val y, const ConvParams *p) {
    Builder *b = c->b;
    Param params[CONV_PARAMS] = {
        p_int(K_batch_group_count, p->batches), dimension_numbers(b, (Ints[]){p->lhs, p->rhs, p->out}),
        p_int(K_feature_group_count, p->features), p_ints(b, K_lhs_dilation, c->space, p->base),
        p_dims(b, K_padding, 2 * c->space, p->padding)};
    static const ParamKey kept[] = {K_batching_dims, K_precision, K_preferred_element_type};
    uint32_t n = 5;
    for (uint32_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (param_find(c->e, kept[i])) params[n++] = *param_find(c->e, kept[i]);
    params[n++] = p_ints(b, K_rhs_dilation, c->space, p->dilation);
    params[n++] = p_ints(b, K_window_strides, c->space, p->stride);
    return build(b, P_conv_general_dilated, 2, (Val[]){x, y}, n, params);
}
/* The extents along spatial axis i as they are with gaps: of the operands and the result. */
static void spread_extents(const ConvBack *c, uint32_t i, Dim *x, Dim *y, Dim *r) {
    Types *ts = b_types(c->b);
    *x = dim_dilated(ts, c->x->dims[c->lhs.at[2 + i]], c->base[i]);
    *y = dim_dilated(ts, c->y->dims[c->rhs.at[2 + i]], c->dilation[i]);
    *r = dim_dilated(ts, c->r->dims[c->out.at[2 + i]], c->stride[i]);
}
static Val back_to_left(const ConvBack *c, Val ct) {
    Builder *b = c->b;
    Types *ts = b_types(b);
    Dim padding[2 * MAX_RANK];
    int64_t groups = c->features * c->batches;
    Val y = c->e->in.at[1];
    if (groups > 1) y = move_groups(b, y, c->rhs.at[0], c->rhs.at[1], groups);
    for (uint32_t i = 0; i < c->space; i++) {
        Dim x, k, r, one = 1;
        spread_extents(c, i, &x, &k, &r);
        padding[2 * i] = dim_sub(ts, dim_sub(ts, k, c->padding[2 * i]), one);
        padding[2 * i + 1] = dim_sub(ts, dim_sub(ts, dim_sub(ts, dim_add(ts, x, k), one), r), padding[2 * i]);
    }
    if (c->space) y = b_rev(b, y, c->space, c->rhs.at + 2);
    ConvParams p = {.lhs = c->out, .rhs = exchanged(b, c->rhs), .out = c->lhs, .features = groups, .batches = 1};
    p.stride = c->base, p.base = c->stride, p.dilation = c->dilation, p.padding = padding;
    Val v = b_convert(b, convolve(c, ct, b_convert(b, y, c->r->dtype), &p), c->x->dtype);
    return c->batches > 1 ? move_groups(b, v, c->lhs.at[1], c->lhs.at[0], c->batches) : v;
}
static Val back_to_right(const ConvBack *c, Val ct) {
    Builder *b = c->b;
    Types *ts = b_types(b);
    Dim padding[2 * MAX_RANK];
    for (uint32_t i = 0; i < c->space; i++) {
        Dim x, k, r, low = padding[2 * i] = c->padding[2 * i];
        spread_extents(c, i, &x, &k, &r);
        padding[2 * i + 1] = dim_sub(ts, dim_add(ts, dim_sub(ts, r, x), k), dim_add(ts, low, 1));
    }
    ConvParams p = {.lhs = exchanged(b, c->lhs), .rhs = exchanged(b, c->out), .out = exchanged(b, c->rhs)};
    p.features = c->batches, p.batches = c->features;
    p.stride = c->dilation, p.base = c->base, p.dilation = c->stride, p.padding = padding;
    return b_convert(b, convolve(c, b_convert(b, c->e->in.at[0], c->r->dtype), ct, &p), c->y->dtype);
}
bool transpose_conv_general_dilated(Transpose *t) {
    ConvBack c = {.b = t->b};
    if (!read_back(&c, t->e)) return false;
    for (uint32_t i = 0; i < 2; i++)
        if (t->linear[i] && !b_empty(t->b, t->e->in.at[1 - i]) && !b_empty(t->b, t->e->out.at[0]))
            ct_add(t, i, i ? back_to_right(&c, t->ct[0]) : back_to_left(&c, t->ct[0]));
    return true;
}

/* ---- for a batch of examples */
static Ints spec_later(Vmap *v, const char *field) {
    Ints own, out;
    if (!want_field(v->b->cx, v->e, K_dimension_numbers, field, &own)) return (Ints){0};
    out = (Ints){arena_new(v->b->cx->arena, int64_t, own.n), own.n};
    for (uint32_t i = 0; i < own.n; i++) out.at[i] = own.at[i] + 1;
    return out;
}
/* Both operands have examples of their own: an axis before those of the specs. */
static bool conv_of_each(Vmap *v) {
    Builder *b = v->b;
    Eqn e = vmap_axes(v, v->e);
    Param *params = arena_new(b->cx->arena, Param, e.params.n + 1), *to = params;
    Ints specs[3];
    for (uint32_t i = 0; i < 3; i++) specs[i] = spec_later(v, spec_names[i]);
    each(const Param, p, e.params)
        if (p->key != K_batching_dims) *to++ = p->key == K_dimension_numbers ? dimension_numbers(b, specs) : *p;
    *to++ = p_int(K_batching_dims, 1 + param_int(v->e, K_batching_dims, 0));
    e.params = (Params){params, (uint32_t)(to - params)};
    return vmap_apply(v, &e, (Val[]){vmap_operand(v, 0), vmap_operand(v, 1)});
}
/* Examples of one operand are more of its batch, or more features of the result. */
bool vmap_conv_general_dilated(Vmap *v) {
    Builder *b = v->b;
    ConvBack c = {.b = b};
    uint32_t side = v->batched[1];
    Eqn like = *v->e;
    like.in = v->read->in; /* of one example */
    if (v->batched[0] && v->batched[1]) return conv_of_each(v);
    if (!read_back(&c, &like)) return false;
    if (side ? c.features * c.batches > 1 : c.batches > 1) return conv_of_each(v);
    Eqn e = vmap_axes(v, v->e);
    Val in[2] = {v->e->in.at[0], v->e->in.at[1]};
    in[side] = vmap_folded(v, in[side], vmap_type(v, side), (uint32_t)(side ? c.rhs.at[0] : c.lhs.at[0]));
    e.in = (Vals){in, 2};
    e.in = vals_joined(b->cx->arena, 1, &e.in);
    v->out[0] = vmap_unfolded(v, b_eqn(b, &e, 1, NULL).at[0], vmap_result_type(v, 0), (uint32_t)c.out.at[side]);
    return !b->failed;
}
