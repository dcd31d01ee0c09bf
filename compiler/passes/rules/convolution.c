/* Convolutions are matrix products: of windows of the left operand with the right one, over the features and the positions in
   the window. Groups are batch axes. The axes of the result come in the order of the equation, without a transpose: those
   that cannot are batch axes too, and the operand without them is the same along them. */
#include "window.h"
#include "../../typecheck/rule.h"

/* Every axis has a name. */
enum { BATCH, GROUP, FEATURE, OUT, SPACE, KERNEL = SPACE + MOST_AXES, NAMES = KERNEL + MOST_AXES };
typedef struct {
    Val v;
    uint32_t n;
    uint8_t name[MOST_AXES]; /* of each axis */
} Named;
typedef struct {
    Builder *b;
    uint32_t space;
    int64_t features, batches; /* groups */
    Ints lhs, rhs, out;
    Named x, y;
    Dim extent[NAMES];
    uint8_t result[MOST_AXES]; /* the result's axes, GROUP before OUT where there are groups */
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
    Dim dims[MOST_AXES + 1];
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
/* The axes in this order; those that v has not are made. */
static void arrange(Conv *c, Named *v, uint32_t n, const uint8_t *names) {
    Dim dims[MOST_AXES];
    int64_t to[MOST_AXES];
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
static bool read_conv(Conv *c, const Eqn *e) {
    Builder *b = c->b;
    const ParamKey k = K_dimension_numbers;
    c->space = b_type(b, e->in.at[0])->rank - 2;
    if (2 * c->space + 4 > MOST_AXES / 2)
        return diag(b->cx->diags, e->span, "conv_general_dilated of %u spatial axes is not supported yet", c->space);
    c->features = param_int(e, K_feature_group_count, 1);
    c->batches = param_int(e, K_batch_group_count, 1);
    c->dtype = val_array(b->cx, e->out.at[0])->dtype;
    return want_field(b->cx, e, k, "lhs_spec", &c->lhs) && want_field(b->cx, e, k, "rhs_spec", &c->rhs) &&
           want_field(b->cx, e, k, "out_spec", &c->out);
}
static void left(Conv *c, const Eqn *e) {
    Builder *b = c->b;
    const ArrayType *t = b_type(b, e->in.at[0]);
    Windows w = {.rank = t->rank};
    Dim stride[MOST_AXES], base[MOST_AXES], dilation[MOST_AXES], padding[2 * MOST_AXES];
    read_extents(e, K_window_strides, c->space, 1, stride);
    read_extents(e, K_lhs_dilation, c->space, 1, base);
    read_extents(e, K_rhs_dilation, c->space, 1, dilation);
    read_extents(e, K_padding, 2 * c->space, 0, padding);
    Named *x = &c->x;
    *x = (Named){.v = e->in.at[0], .n = t->rank};
    for (uint32_t i = 0; i < t->rank; i++) w.window[i] = w.stride[i] = w.dilation[i] = w.base[i] = 1;
    x->name[c->lhs.at[0]] = BATCH, x->name[c->lhs.at[1]] = FEATURE;
    for (uint32_t i = 0; i < c->space; i++) {
        int64_t a = c->lhs.at[2 + i];
        x->name[a] = SPACE + i;
        w.window[a] = b_type(b, e->in.at[1])->dims[c->rhs.at[2 + i]];
        w.stride[a] = stride[i], w.dilation[a] = dilation[i], w.base[a] = base[i];
        w.low[a] = padding[2 * i], w.high[a] = padding[2 * i + 1];
    }
    x->v = b1(b, P_stored, b_spread_out(b, x->v, &w, b_number(b, t->dtype, 0)));
    x->v = b_windows(b, x->v, &w, c->space, c->lhs.at + 2);
    for (uint32_t i = 0; i < c->space; i++) x->name[x->n++] = KERNEL + i;
    if (c->features > 1) split(c, x, FEATURE, c->features);
    if (c->batches > 1) split(c, x, BATCH, c->batches);
}
static void right(Conv *c, const Eqn *e) {
    Named *y = &c->y;
    *y = (Named){.v = e->in.at[1], .n = c->rhs.n};
    y->name[c->rhs.at[0]] = OUT, y->name[c->rhs.at[1]] = FEATURE;
    for (uint32_t i = 0; i < c->space; i++) y->name[c->rhs.at[2 + i]] = KERNEL + i;
    if (c->features * c->batches > 1) split(c, y, OUT, c->features * c->batches);
}
static void find_result(Conv *c) {
    uint8_t name[MOST_AXES];
    name[c->out.at[0]] = BATCH, name[c->out.at[1]] = OUT;
    for (uint32_t i = 0; i < c->space; i++) name[c->out.at[2 + i]] = SPACE + i;
    for (uint32_t i = 0; i < c->out.n; i++) {
        if (name[i] == OUT && c->features * c->batches > 1) c->result[c->nresult++] = GROUP;
        c->result[c->nresult++] = name[i];
    }
}

/* ---- the product */
/* Axes of the result that one operand alone has, after others of the other operand alone: all but the batch axes. */
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
    uint8_t names[MOST_AXES];
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
    uint8_t summed[MOST_AXES];
    bool swap = first == &c->y;
    for (uint32_t i = 0; i < c->y.n; i++)
        if (c->y.name[i] == FEATURE || c->y.name[i] >= KERNEL) summed[n++] = c->y.name[i];
    arrange_operand(c, &c->x, nbatch, summed, n);
    arrange_operand(c, &c->y, nbatch, summed, n);
    Named *l = swap ? &c->y : &c->x, *r = swap ? &c->x : &c->y;
    return b_dot(c->b, l->v, r->v, axes(c, l->n - n, n), axes(c, r->n - n, n), axes(c, 0, nbatch), axes(c, 0, nbatch),
                 c->dtype);
}

/* ---- groups of one feature: an elementwise product, summed over the window */
static Dtype summed_as(Dtype d) {
    return dtype_info[d].kind == DK_FLOAT && dtype_info[d].bits < 32 ? DT_f32 : d;
}
static Val depthwise(Conv *c) {
    Builder *b = c->b;
    uint8_t names[MOST_AXES];
    uint32_t n = c->nresult;
    int64_t last[MOST_AXES];
    memcpy(names, c->result, n);
    for (uint32_t i = 0; i < c->space; i++) last[i] = n, names[n++] = KERNEL + i;
    for (uint32_t s = 0; s < 2; s++) { /* without the features: there is one */
        Named *v = s ? &c->y : &c->x, w = {0};
        Dim dims[MOST_AXES];
        for (uint32_t i = 0; i < v->n && !b->failed; i++)
            if (v->name[i] != FEATURE) dims[w.n] = b_type(b, v->v)->dims[i], w.name[w.n++] = v->name[i];
        w.v = b_convert(b, b_reshape(b, v->v, w.n, dims), summed_as(c->dtype));
        *v = w;
        arrange(c, v, n, names);
    }
    Val y = b_reduce(b, P_reduce_sum, b2(b, P_mul, c->x.v, c->y.v), c->space, last);
    return b_convert(b, y, c->dtype);
}
bool expand_conv_general_dilated(Builder *b, const Eqn *e, Val *out) {
    Conv *c = arena_new(b->cx->arena, Conv, 1);
    c->b = b;
    if (!read_conv(c, e)) return false;
    left(c, e);
    right(c, e);
    find_result(c);
    find_extents(c, &c->x), find_extents(c, &c->y);
    if (b->failed) return false;
    bool apart = c->features > 1 && c->extent[FEATURE] == 1;
    Val y = apart ? depthwise(c) : product(c);
    const ArrayType *t = val_array(b->cx, e->out.at[0]);
    out[0] = b_reshape(b, y, t->rank, t->dims);
    return true;
}
