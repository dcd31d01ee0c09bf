/* Convolutions and reductions over windows. Along each spatial axis a window of `window` elements,
   `window_dilation` apart, moves by `stride` over the operand, whose elements are `base_dilation` apart and which
   `padding` extends or shortens. */
#include "rule.h"

/* How windows move over the axes; a missing list is NULL and stands for ones. */
typedef struct {
    uint32_t rank;
    const Dim *window, *base_dilation, *window_dilation, *stride;
    const Dim *padding; /* low, high of each axis */
} Windows;

/* A list of numbers that a parameter holds, one for each of `rank` axes, each at least `least`;
   NULL where it is left out. */
static bool read_list(Ctx *cx, const Eqn *e, ParamKey k, uint32_t rank, int64_t least, const Dim **out) {
    *out = NULL;
    if (!param_has(e, k)) return true;
    if (!want_param(cx, e, k)) return false;
    const Value *v = &param_find(e, k)->value;
    uint32_t n = v->kind == V_DIMS ? v->dims.n : v->ints.n;
    Dim *dims = arena_new(cx->arena, Dim, n);
    for (uint32_t i = 0; i < n; i++) dims[i] = v->kind == V_DIMS ? v->dims.at[i] : v->ints.at[i];
    if (n != rank)
        return diag(cx->diags, param_at(e, k), "%s: %s has %u %s, but windows have %u %s", name_of(cx, e),
                    param_name[k], n, entries(n), rank, axes_word(rank));
    for (uint32_t i = 0; i < n; i++)
        if (!dims_at_most(cx, least, dims[i], param_at(e, k)))
            return diag(cx->diags, param_at(e, k), "%s: %s[%u] is %s, but must be at least %lld", name_of(cx, e),
                        param_name[k], i, dim_c(cx, dims[i]), (long long)least);
    *out = dims;
    return true;
}

/* ((low, high), …), or the words SAME and VALID of old texts. */
static bool read_padding(Ctx *cx, const Eqn *e, uint32_t rank, const Dim **out) {
    if (!want_param(cx, e, K_padding)) return false;
    const Value *v = &param_find(e, K_padding)->value;
    if (v->kind == V_DIMS && v->dims.n == 2 * rank) return *out = v->dims.at, true;
    return diag(cx->diags, param_at(e, K_padding), "%s: padding is no list of %u pairs (low, high)", name_of(cx, e),
                rank);
}

/* The extent n of axis i with its gaps and its padding, which may be negative. */
static Dim padded_extent(Types *ts, const Windows *w, uint32_t i, Dim n) {
    Dim base = w->base_dilation ? w->base_dilation[i] : 1;
    return dim_add(ts, dim_dilated(ts, n, base), dim_add(ts, w->padding[2 * i], w->padding[2 * i + 1]));
}
/* Windows along axis i of extent n: max(0, (padded − window) // stride + 1). */
static Dim count_windows(Types *ts, const Windows *w, uint32_t i, Dim n) {
    Dim far = w->window_dilation ? w->window_dilation[i] : 1;
    Dim room = dim_sub(ts, padded_extent(ts, w, i, n), dim_dilated(ts, w->window[i], far));
    return dim_max(ts, dim_add(ts, dim_floordiv(ts, room, w->stride ? w->stride[i] : 1), 1), 0);
}

/* ---- written by passes */

/* The windows along `axes`, which follow the axes of the result. */
bool type_windows(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1) || !want_param(cx, e, K_window_dimensions)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    Ints axes = param_ints(e, K_axes);
    bool *marked = arena_new(cx->arena, bool, x->rank + 1);
    Windows w = {.rank = axes.n, .padding = arena_new(cx->arena, Dim, 2 * axes.n + 1)};
    if (!want_axes(cx, e, K_axes, axes, x->rank, marked) ||
        !read_list(cx, e, K_window_dimensions, w.rank, 0, &w.window) ||
        !read_list(cx, e, K_window_strides, w.rank, 1, &w.stride) ||
        !read_list(cx, e, K_window_dilation, w.rank, 1, &w.window_dilation))
        return false;
    Dim *dims = arena_new(cx->arena, Dim, x->rank + axes.n + 1);
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    for (uint32_t i = 0; i < axes.n; i++) {
        uint32_t axis = (uint32_t)axes.at[i];
        dims[axis] = count_windows(cx->types, &w, i, x->dims[axis]);
        dims[x->rank + i] = w.window[i];
    }
    out[0] = type_of(cx->types, x->dtype, x->rank + axes.n, dims);
    return true;
}

/* ---- reductions */

static bool read_windows(Ctx *cx, const Eqn *e, uint32_t rank, Windows *w) {
    if (!want_param(cx, e, K_window_dimensions)) return false;
    w->rank = rank;
    return read_list(cx, e, K_window_dimensions, rank, 1, &w->window) &&
           read_list(cx, e, K_window_strides, rank, 1, &w->stride) &&
           read_list(cx, e, K_base_dilation, rank, 1, &w->base_dilation) &&
           read_list(cx, e, K_window_dilation, rank, 1, &w->window_dilation) && read_padding(cx, e, rank, &w->padding);
}

/* One element of type `d` for each window. */
static bool windowed(Ctx *cx, const Eqn *e, Type of, Type *out) {
    const ArrayType *x = type_at(cx->types, of);
    Windows w;
    if (!read_windows(cx, e, x->rank, &w)) return false;
    Dim *dims = arena_new(cx->arena, Dim, x->rank);
    for (uint32_t i = 0; i < x->rank; i++) dims[i] = count_windows(cx->types, &w, i, x->dims[i]);
    *out = type_of(cx->types, x->dtype, x->rank, dims);
    return true;
}

bool type_reduce_window_num(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return want(cx, e, 1, 1) && want_kind(cx, e, in, 0, OF_NUM) && windowed(cx, e, in[0], out);
}
bool type_reduce_window_ordered(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return want(cx, e, 1, 1) && want_kind(cx, e, in, 0, OF_NUM | OF_BOOL) && windowed(cx, e, in[0], out);
}

/* Operands x1 … xn of equal shapes, then a scalar for each, then 2n scalars into the program. */
bool type_reduce_window(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    unsigned n = e->in.n / 2;
    if (!n || e->in.n % 2)
        return diag(cx->diags, e->span, "reduce_window takes arrays and as many initial values, but has %u operand%s",
                    e->in.n, plural(e->in.n));
    if (!want_results(cx, e, n) || !want_param(cx, e, K_jaxpr)) return false;
    Type *takes = arena_new(cx->arena, Type, e->in.n);
    for (unsigned i = 0; i < n; i++) {
        if (!shapes_agree(cx, in[i], in[0], operand_at(cx, e, i))) return operands_disagree(cx, e, in, i, 0);
        if (!want_scalar(cx, e, in, n + i) || !want_dtype_of(cx, e, in, n + i, i)) return false;
        takes[i] = takes[n + i] = type_plain(cx->types, in[n + i]);
        if (!windowed(cx, e, in[i], &out[i])) return false;
    }
    return want_program(cx, e, K_jaxpr, param_jaxpr(e, K_jaxpr), takes, e->in.n, n);
}

/* Operand 0 has an element for each window of operand 1, which goes to the selected place. */
static bool want_select_prim(Ctx *cx, const Eqn *e) {
    static const char *const prims[] = {"ge", "le", NULL};
    return want_param(cx, e, K_select_prim) && want_word(cx, e, K_select_prim, prims);
}

/* Operand `source` has an element for each window of operand `of`. */
static bool want_windows(Ctx *cx, const Eqn *e, const Type *in, unsigned source, unsigned of) {
    Type windows;
    return windowed(cx, e, in[of], &windows) &&
           (shapes_agree(cx, in[source], windows, operand_at(cx, e, source)) ||
            diag(cx->diags, operand_at(cx, e, source), "%s: operand %u is %s, but the windows of operand %u are %s",
                 name_of(cx, e), source, type_c(cx, in[source]), of, type_c(cx, windows)));
}

bool type_select_and_scatter_add(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_select_prim(cx, e)) return false;
    if (!want(cx, e, 2, 1) || !want_kind(cx, e, in, 1, OF_NUM)) return false;
    if (!want_dtype_of(cx, e, in, 1, 0) || !want_windows(cx, e, in, 0, 1)) return false;
    out[0] = type_plain(cx->types, in[1]);
    return true;
}

/* The program in a parameter takes two scalars of element type d and gives one of type `result`. */
static bool want_combination(Ctx *cx, const Eqn *e, ParamKey k, Dtype d, Dtype result) {
    Type scalar = type_of(cx->types, d, 0, NULL), wanted = type_of(cx->types, result, 0, NULL),
         takes[2] = {scalar, scalar};
    if (!want_param(cx, e, k)) return false;
    Jaxpr *j = param_jaxpr(e, k);
    if (!want_program(cx, e, k, j, takes, 2, 1)) return false;
    Type t = result_type(cx, j, 0, wanted);
    return !t || types_agree(cx, t, wanted, param_at(e, k)) ||
           diag(cx->diags, param_at(e, k), "%s: %s gives %s, but must give %s", name_of(cx, e), param_name[k],
                type_c(cx, t), type_c(cx, wanted));
}

/* Operand 0, an element for each of its windows (1), and the initial value (2). */
bool type_select_and_scatter(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 3, 1) || !want_kind(cx, e, in, 0, OF_NUM | OF_BOOL)) return false;
    if (!want_dtype_of(cx, e, in, 1, 0) || !want_scalar(cx, e, in, 2) || !want_dtype_of(cx, e, in, 2, 0)) return false;
    Dtype d = type_at(cx->types, in[0])->dtype;
    if (!want_windows(cx, e, in, 1, 0) || !want_combination(cx, e, K_select_jaxpr, d, DT_bool) ||
        !want_combination(cx, e, K_scatter_jaxpr, d, d))
        return false;
    out[0] = type_plain(cx->types, in[0]);
    return true;
}

/* The element of operand 0 at the selected place of each window of operand 1. */
bool type_select_and_gather_add(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_select_prim(cx, e) || !want(cx, e, 2, 1) || !want_kind(cx, e, in, 0, OF_FLOAT)) return false;
    if (!types_agree(cx, in[1], in[0], operand_at(cx, e, 1))) return operands_disagree(cx, e, in, 1, 0);
    return windowed(cx, e, in[1], out);
}

/* ---- convolutions */

/* lhs [batch, feature, space…], rhs [out feature, in feature, space…], out [batch, feature,
   space…]: the specs say which axis each of these is. vmap puts `batching_dims` axes before them, in both operands and
   the result, each element of which is a convolution of its own. */
typedef struct {
    const ArrayType *x, *y;
    Ints lhs, rhs, out;
    int64_t features, batches; /* groups */
    uint32_t examples;         /* axes before those of the specs */
} Conv;

/* A spec is a permutation of the axes from `first` on. */
static bool read_spec(Ctx *cx, const Eqn *e, const char *field, uint32_t first, uint32_t rank, Ints *spec) {
    const ParamKey k = K_dimension_numbers;
    bool *marked = arena_new(cx->arena, bool, rank);
    if (!want_field(cx, e, k, field, spec)) return false;
    if (spec->n != rank - first)
        return diag(cx->diags, param_at(e, k), "%s: dimension_numbers: %s has %u %s, but the operands have %u",
                    name_of(cx, e), field, spec->n, axes_word(spec->n), rank - first);
    for (uint32_t i = 0; i < first; i++) marked[i] = true;
    return want_field_axes(cx, e, k, field, *spec, rank, marked);
}

static bool read_conv(Ctx *cx, const Eqn *e, const Type *in, Conv *c) {
    c->x = type_at(cx->types, in[0]);
    c->y = type_at(cx->types, in[1]);
    c->features = param_int(e, K_feature_group_count, 1);
    c->batches = param_int(e, K_batch_group_count, 1);
    int64_t examples = param_int(e, K_batching_dims, 0);
    if (c->x->rank != c->y->rank) return operands_disagree(cx, e, in, 1, 0);
    if (examples < 0 || examples > c->x->rank)
        return diag(cx->diags, param_at(e, K_batching_dims), "%s: batching_dims is %lld, but operand 0 is %s",
                    name_of(cx, e), (long long)examples, type_c(cx, in[0]));
    c->examples = (uint32_t)examples;
    for (uint32_t i = 0; i < c->examples; i++)
        if (!dims_agree(cx, c->x->dims[i], c->y->dims[i], operand_at(cx, e, 1)))
            return operands_disagree(cx, e, in, 1, 0);
    if (c->x->rank < c->examples + 2)
        return diag(cx->diags, operand_at(cx, e, 0),
                    "%s: the operands need axes for batch and features, but operand 0 is %s", name_of(cx, e),
                    type_c(cx, in[0]));
    return read_spec(cx, e, "lhs_spec", c->examples, c->x->rank, &c->lhs) &&
           read_spec(cx, e, "rhs_spec", c->examples, c->x->rank, &c->rhs) &&
           read_spec(cx, e, "out_spec", c->examples, c->x->rank, &c->out);
}

/* A count of groups is positive and divides an extent. */
static bool want_groups(Ctx *cx, const Eqn *e, ParamKey k, int64_t groups, const char *what, Dim extent) {
    if (groups < 1)
        return diag(cx->diags, param_at(e, k), "%s: %s is %lld, but must be positive", name_of(cx, e), param_name[k],
                    (long long)groups);
    return dims_agree(cx, dim_mod(cx->types, extent, groups), 0, param_at(e, k)) ||
           diag(cx->diags, param_at(e, k), "%s: %s=%lld does not divide %s, %s", name_of(cx, e), param_name[k],
                (long long)groups, what, dim_c(cx, extent));
}

static bool want_features(Ctx *cx, const Eqn *e, const Type *in, const Conv *c) {
    Dim batch = c->x->dims[c->lhs.at[0]], features = c->x->dims[c->lhs.at[1]];
    Dim made = c->y->dims[c->rhs.at[0]], taken = c->y->dims[c->rhs.at[1]];
    if (!want_groups(cx, e, K_feature_group_count, c->features, "the features of operand 0", features) ||
        !want_groups(cx, e, K_feature_group_count, c->features, "the output features of operand 1", made) ||
        !want_groups(cx, e, K_batch_group_count, c->batches, "the batch of operand 0", batch) ||
        !want_groups(cx, e, K_batch_group_count, c->batches, "the output features of operand 1", made))
        return false;
    if (c->features > 1 && c->batches > 1)
        return diag(cx->diags, param_at(e, K_batch_group_count),
                    "%s: feature_group_count and batch_group_count cannot both be above 1", name_of(cx, e));
    Dim given = dim_floordiv(cx->types, features, c->features);
    if (dims_agree(cx, given, taken, operand_at(cx, e, 1))) return true;
    diag(cx->diags, operand_at(cx, e, 1),
         "%s: operand 1, %s, takes %s input features, but operand 0, %s, has %s for each group", name_of(cx, e),
         type_c(cx, in[1]), dim_c(cx, taken), type_c(cx, in[0]), dim_c(cx, given));
    note_operand(cx, e, 0, in[0]);
    return false;
}

/* Integers become integers of their sign or floats, floats floats, complex numbers complex ones; never narrower. */
static bool widens(Dtype from, Dtype to) {
    unsigned kind = 1u << dtype_info[from].kind, into = 1u << dtype_info[to].kind;
    bool same = kind & OF_BOOL || (kind & OF_SINT   ? into & (OF_SINT | OF_FLOAT)
                                   : kind & OF_UINT ? into & (OF_INT | OF_FLOAT)
                                                    : into == kind);
    return same && (dtype_info[to].width + 7) / 8 >= (dtype_info[from].width + 7) / 8;
}

static bool conv_dtype(Ctx *cx, const Eqn *e, const Type *in, Dtype *d) {
    for (unsigned i = 0; i < 2; i++)
        if (!want_kind(cx, e, in, i, OF_NUM | OF_BOOL)) return false;
    if (!want_dtype_of(cx, e, in, 1, 0)) return false;
    *d = type_at(cx->types, in[0])->dtype;
    Dtype x = *d;
    if (!param_has(e, K_preferred_element_type)) return true;
    return want_param_dtype(cx, e, K_preferred_element_type, d) &&
           (widens(x, *d) || diag(cx->diags, param_at(e, K_preferred_element_type),
                                  "%s: preferred_element_type=%s does not hold sums of %s", name_of(cx, e),
                                  dtype_info[*d].long_name, dtype_info[x].name));
}

bool type_conv_general_dilated(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Conv c;
    Dtype d;
    if (!want(cx, e, 2, 1) || !conv_dtype(cx, e, in, &d) || !read_conv(cx, e, in, &c)) return false;
    uint32_t rank = c.x->rank, space = rank - 2 - c.examples;
    Dim *window = arena_new(cx->arena, Dim, space), *dims = arena_new(cx->arena, Dim, rank);
    for (uint32_t i = 0; i < space; i++) window[i] = c.y->dims[c.rhs.at[i + 2]];
    Windows w = {.rank = space, .window = window};
    if (!want_features(cx, e, in, &c) || !read_list(cx, e, K_window_strides, space, 1, &w.stride) ||
        !read_list(cx, e, K_lhs_dilation, space, 1, &w.base_dilation) ||
        !read_list(cx, e, K_rhs_dilation, space, 1, &w.window_dilation) || !read_padding(cx, e, space, &w.padding))
        return false;
    if (c.examples) memcpy(dims, c.x->dims, c.examples * sizeof *dims);
    dims[c.out.at[0]] = dim_floordiv(cx->types, c.x->dims[c.lhs.at[0]], c.batches);
    dims[c.out.at[1]] = c.y->dims[c.rhs.at[0]];
    for (uint32_t i = 0; i < space; i++) {
        Dim n = c.x->dims[c.lhs.at[i + 2]], padded = padded_extent(cx->types, &w, i, n);
        if (!dims_at_most(cx, 0, padded, param_at(e, K_padding)))
            return diag(cx->diags, param_at(e, K_padding), "%s: padding leaves spatial axis %u the extent %s",
                        name_of(cx, e), i, dim_c(cx, padded));
        dims[c.out.at[i + 2]] = count_windows(cx->types, &w, i, n);
    }
    out[0] = type_of(cx->types, d, rank, dims);
    return true;
}
