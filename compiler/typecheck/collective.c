/* Programs that run on many devices, and communication between them. shard_map and pmap bind names of mesh axes;
   inside, arrays are one device's part. */
#include "nested.h"

/* A name bound by an enclosing program; the number of devices along it, 0: unknown. */
struct AxisScope {
    Str name;
    int64_t size;
    struct AxisScope *outer;
};

void axis_bind(Ctx *cx, Str name, int64_t size) {
    struct AxisScope *s = arena_new(cx->arena, struct AxisScope, 1);
    *s = (struct AxisScope){name, size, cx->axes};
    cx->axes = s;
}

static const struct AxisScope *bound(const Ctx *cx, Str name) {
    const struct AxisScope *s = cx->axes;
    while (s && !str_eq(s->name, name)) s = s->outer;
    return s;
}

/* ---- over which axes */

static bool one_axis(Ctx *cx, const Eqn *e, ParamKey k, const Value *v, int64_t *size) {
    if (v->kind != V_STR && v->kind != V_WORD) return true; /* an axis of the array */
    const struct AxisScope *s = bound(cx, value_name(v));
    if (!s)
        return diag(cx->diags, param_at(e, k), "%s: no mesh and no --vmap-axis binds '%.*s'", name_of(cx, e),
                    SF(value_name(v)));
    *size = *size && s->size && s->size <= INT32_MAX / *size ? *size * s->size : 0;
    return true;
}

/* The names in a parameter are bound; their sizes' product, 0: unknown. */
static bool want_bound(Ctx *cx, const Eqn *e, ParamKey k, int64_t *size) {
    *size = 1;
    if (!param_has(e, k)) return diag(cx->diags, e->span, "%s needs the parameter '%s'", name_of(cx, e), param_name[k]);
    const Value *v = &param_find(e, k)->value;
    if (v->kind != V_LIST) return one_axis(cx, e, k, v, size);
    for (uint32_t i = 0; i < v->list.n; i++)
        if (!one_axis(cx, e, k, &v->list.at[i], size)) return false;
    return true;
}

static uint32_t places(const Value *v) { return v->kind == V_INTS ? v->ints.n : v->kind == V_LIST ? v->list.n : 0; }
static bool place(const Value *v, uint32_t i, int64_t *at) {
    bool is_int = v->kind == V_INTS || v->list.at[i].kind == V_INT;
    *at = !is_int ? -1 : v->kind == V_INTS ? v->ints.at[i] : v->list.at[i].i;
    return is_int;
}

/* axis_index_groups has each of the devices in one group; `equal`: groups of one size. `size` becomes that of a
   group. */
static bool want_groups(Ctx *cx, const Eqn *e, bool equal, int64_t *size) {
    const Param *p = param_find(e, K_axis_index_groups);
    if (!p || p->value.kind == V_NONE) return true;
    uint32_t n = p->value.kind == V_LIST ? p->value.list.n : 0;
    const Value *group = n ? p->value.list.at : NULL;
    int64_t all = 0, at;
    for (uint32_t i = 0; i < n; i++) all += places(&group[i]);
    if (!all || (*size && all != *size))
        return diag(cx->diags, p->span, "%s: axis_index_groups have %lld place%s for %lld device%s", name_of(cx, e),
                    (long long)all, plural((uint64_t)all), (long long)*size, plural((uint64_t)*size));
    bool *seen = arena_new(cx->arena, bool, all);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t each = places(&group[i]);
        if (!each || (equal && each != places(group)))
            return diag(cx->diags, p->span, "%s: axis_index_groups must be of one size", name_of(cx, e));
        for (uint32_t k = 0; k < each; k++) {
            if (!place(&group[i], k, &at) || at < 0 || at >= all || seen[at])
                return diag(cx->diags, p->span, "%s: axis_index_groups must have each device once", name_of(cx, e));
            seen[at] = true;
        }
    }
    if (equal) *size = places(group);
    return true;
}

/* The axes are bound; the number of devices that exchange data, by axis_size if it is given. */
static bool want_members(Ctx *cx, const Eqn *e, int64_t *size) {
    const Param *p = param_find(e, K_axis_size);
    int64_t said = 0;
    if (!want_bound(cx, e, K_axis_name, size) || !want_groups(cx, e, true, size)) return false;
    if (p && !want_int(cx, e, K_axis_size, 1, &said)) return false;
    if (said && *size && said != *size)
        return diag(cx->diags, p->span, "%s: axis_size is %lld, but %lld device%s exchange%s", name_of(cx, e),
                    (long long)said, (long long)*size, plural((uint64_t)*size), *size == 1 ? "s" : "");
    if (said) *size = said;
    return true;
}

/* The axes of the array among those of `axes`. */
static bool own_axes(Ctx *cx, const Eqn *e, uint32_t rank, bool *gone) {
    const Param *p = param_find(e, K_axes);
    if (!p || (p->value.kind != V_INTS && p->value.kind != V_LIST)) return true;
    uint32_t all = p->value.kind == V_INTS ? p->value.ints.n : p->value.list.n;
    Ints axes = {arena_new(cx->arena, int64_t, all), 0};
    for (uint32_t i = 0; i < all; i++) {
        if (p->value.kind == V_INTS)
            axes.at[axes.n++] = p->value.ints.at[i];
        else if (p->value.list.at[i].kind == V_INT)
            axes.at[axes.n++] = p->value.list.at[i].i;
    }
    return want_axes(cx, e, K_axes, axes, rank, gone);
}

/* ---- collectives */

/* psum, pmax, pmin: axes of the array are removed, named ones do not change its shape. */
static bool all_reduce(Ctx *cx, const Eqn *e, const Type *in, Type *out, unsigned kinds) {
    int64_t size;
    ParamKey key = param_has(e, K_axis_name) ? K_axis_name : K_axes;
    if (!want_results(cx, e, e->in.n) || !want_bound(cx, e, key, &size)) return false;
    for (unsigned i = 0; i < e->in.n; i++) {
        uint32_t rank = type_at(cx->types, in[i])->rank;
        if (!own_axes(cx, e, rank, arena_new(cx->arena, bool, rank))) return false;
    }
    if (!want_groups(cx, e, false, &size)) return false;
    const Param *groups = param_find(e, K_axis_index_groups);
    bool grouped = groups && groups->value.kind != V_NONE;
    for (unsigned i = 0; i < e->in.n; i++) {
        const ArrayType *x = type_at(cx->types, in[i]);
        bool *gone = arena_new(cx->arena, bool, x->rank);
        if (!want_kind(cx, e, in, i, kinds) || !own_axes(cx, e, x->rank, gone)) return false;
        for (uint32_t k = 0; k < x->rank && grouped; k++)
            if (gone[k])
                return diag(cx->diags, param_at(e, key), "%s: axis_index_groups are of named axes only",
                            name_of(cx, e));
        Dim *dims = arena_new(cx->arena, Dim, x->rank);
        uint32_t n = 0;
        for (uint32_t k = 0; k < x->rank; k++)
            if (!gone[k]) dims[n++] = x->dims[k];
        out[i] = type_of(cx->types, x->dtype, n, dims);
    }
    return true;
}

bool type_psum(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return all_reduce(cx, e, in, out, OF_NUM | OF_BOOL);
}
bool type_pmax(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return all_reduce(cx, e, in, out, OF_REAL | OF_BOOL);
}

enum { MOST_PLACES = 1 << 16 }; /* that are compared; more devices there are not */
/* perm: pairs from → to, in each half every place at most once; a negative place counts from the end. */
static bool want_perm(Ctx *cx, const Eqn *e, int64_t size) {
    const Param *p = param_find(e, K_perm);
    if (!p || p->value.kind != V_LIST)
        return diag(cx->diags, param_at(e, K_perm), "%s needs 'perm', pairs (from, to), such as perm=((0, 1), (1, 0))",
                    name_of(cx, e));
    if (size > MOST_PLACES) size = 0;
    bool *seen = arena_new(cx->arena, bool, 2 * size);
    for (uint32_t i = 0; i < p->value.list.n; i++) {
        const Value *v = &p->value.list.at[i];
        for (uint32_t k = 0; k < 2; k++) {
            int64_t at;
            if (places(v) != 2 || !place(v, k, &at))
                return diag(cx->diags, p->span,
                            "%s: perm has a part that is no pair (from, to) of places, such as (0, 1)", name_of(cx, e));
            if (!size) continue;
            if (at < -size || at >= size)
                return diag(cx->diags, p->span, "%s: perm names place %lld of %lld", name_of(cx, e), (long long)at,
                            (long long)size);
            bool *one = &seen[k * size + (at + size) % size];
            if (*one) return diag(cx->diags, p->span, "%s: perm has place %lld twice", name_of(cx, e), (long long)at);
            *one = true;
        }
    }
    return true;
}

/* ppermute, pbroadcast, pvary: other devices' values, of the same types. */
bool type_exchanged(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    int64_t size, source;
    ParamKey key = param_has(e, K_axis_name) ? K_axis_name : K_axes;
    if (!want_results(cx, e, e->in.n) || !want_bound(cx, e, key, &size)) return false;
    if (key == K_axes && param_ints(e, K_axes).n)
        return param_wrong(cx, e, K_axes, "names of axes that a program around binds");
    if (e->prim == P_ppermute && !want_perm(cx, e, size)) return false;
    if (e->prim == P_pbroadcast && param_has(e, K_source)) {
        if (!want_int(cx, e, K_source, 0, &source)) return false;
        if (size && source >= size)
            return diag(cx->diags, param_at(e, K_source), "%s: source is device %lld of %lld", name_of(cx, e),
                        (long long)source, (long long)size);
    }
    for (unsigned i = 0; i < e->in.n; i++) out[i] = type_plain(cx->types, in[i]);
    return true;
}

bool type_axis_index(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    int64_t size;
    if (!want(cx, e, 0, 1) || !want_bound(cx, e, K_axis_name, &size)) return false;
    out[0] = type_of(cx->types, DT_i32, 0, NULL);
    return true;
}

/* The parts of the devices along a new axis or, if tiled, concatenated along an existing one. */
bool type_all_gather(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    int64_t size, axis = param_int(e, K_all_gather_dimension, 0);
    if (!want(cx, e, 1, 1) || !want_param(cx, e, K_axis_size) || !want_members(cx, e, &size)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    bool tiled = param_bool(e, K_tiled);
    if (!want_axis(cx, e, K_all_gather_dimension, axis, x->rank + !tiled)) return false;
    Dim *dims = dims_copy(cx, x);
    if (tiled)
        dims[axis] = dim_mul(cx->types, dims[axis], size);
    else
        memmove(dims + axis + 1, dims + axis, (x->rank - axis) * sizeof *dims), dims[axis] = size;
    out[0] = type_of(cx->types, x->dtype, x->rank + !tiled, dims);
    return true;
}

static bool want_parts(Ctx *cx, const Eqn *e, const Type *in, ParamKey k, int64_t axis, int64_t size, bool tiled) {
    Dim n = type_at(cx->types, in[0])->dims[axis];
    bool ok = tiled ? dims_agree(cx, dim_mod(cx->types, n, size), 0, operand_at(cx, e, 0))
                    : dims_agree(cx, n, size, operand_at(cx, e, 0));
    return ok ||
           diag(cx->diags, operand_at(cx, e, 0), "%s: %lld devices share axis %lld (%s) of %s, which has extent %s",
                name_of(cx, e), (long long)size, (long long)axis, param_name[k], type_c(cx, in[0]), dim_c(cx, n));
}

/* Each device's part of the sum: the axis is removed or, if tiled, shrinks. */
bool type_reduce_scatter(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    int64_t size, axis = param_int(e, K_scatter_dimension, 0);
    if (!want(cx, e, 1, 1) || !want_param(cx, e, K_axis_size) || !want_members(cx, e, &size)) return false;
    if (!want_kind(cx, e, in, 0, OF_NUM)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    bool tiled = param_bool(e, K_tiled);
    if (!want_axis(cx, e, K_scatter_dimension, axis, x->rank)) return false;
    if (!want_parts(cx, e, in, K_scatter_dimension, axis, size, tiled)) return false;
    Dim *dims = dims_copy(cx, x);
    if (tiled)
        dims[axis] = dim_floordiv(cx->types, dims[axis], size);
    else
        memmove(dims + axis, dims + axis + 1, (x->rank - axis - 1) * sizeof *dims);
    out[0] = type_of(cx->types, x->dtype, x->rank - !tiled, dims);
    return true;
}

/* Parts along split_axis go to the devices; received parts are joined along concat_axis. */
bool type_all_to_all(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    int64_t size, split = param_int(e, K_split_axis, 0), concat = param_int(e, K_concat_axis, 0);
    if (!want(cx, e, 1, 1) || !want_members(cx, e, &size)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    if (!want_axis(cx, e, K_split_axis, split, x->rank)) return false;
    if (!want_axis(cx, e, K_concat_axis, concat, x->rank)) return false;
    if (!size) return type_declared(cx, e, in, out);
    if (!want_parts(cx, e, in, K_split_axis, split, size, true)) return false;
    Dim *dims = dims_copy(cx, x);
    dims[split] = dim_floordiv(cx->types, dims[split], size);
    dims[concat] = dim_mul(cx->types, dims[concat], size);
    out[0] = type_of(cx->types, x->dtype, x->rank, dims);
    return true;
}

/* ---- shard_map */

/* Devices that share an axis by an entry of P(…): None, 'x' or ('x', 'y'); 0: unknown. */
static int64_t shares(const Ctx *cx, const Value *v) {
    int64_t n = 1;
    if (v->kind == V_STR) {
        const struct AxisScope *s = bound(cx, value_name(v));
        return s ? s->size : 0;
    }
    for (uint32_t i = 0; v->kind == V_LIST && i < v->list.n; i++) {
        int64_t k = shares(cx, &v->list.at[i]);
        n = k && n && n <= INT32_MAX / k ? n * k : 0;
    }
    return n;
}

static uint32_t times_named(const Value *v, Str axis) {
    uint32_t n = v->kind == V_STR && str_eq(value_name(v), axis);
    for (uint32_t i = 0; v->kind == V_LIST && i < v->list.n; i++) n += times_named(&v->list.at[i], axis);
    return n;
}
/* An axis of the mesh in `v` that the spec names more than once; NULL: none. */
static const Value *named_twice(const Value *spec, const Value *v) {
    const Value *found = v->kind == V_STR && times_named(spec, value_name(v)) > 1 ? v : NULL;
    for (uint32_t i = 0; v->kind == V_LIST && i < v->list.n && !found; i++) found = named_twice(spec, &v->list.at[i]);
    return found;
}

/* One device's part of `whole`, or with `join` the whole of a part; 0: the spec does not say. */
static bool shard(Ctx *cx, const Eqn *e, ParamKey k, uint32_t i, bool join, Type t, Type *out) {
    const Param *p = param_find(e, k);
    const Value *spec = p && p->value.kind == V_LIST && i < p->value.list.n ? &p->value.list.at[i] : NULL;
    const ArrayType *x = type_at(cx->types, t);
    *out = 0;
    if (!t || !spec || spec->kind != V_LIST) return true;
    if (spec->list.n > x->rank)
        return diag(cx->diags, p->span, "%s: %s[%u] has %u %s, but the array is %s", name_of(cx, e), param_name[k], i,
                    spec->list.n, entries(spec->list.n), type_c(cx, t));
    const Value *twice = named_twice(spec, spec);
    if (twice)
        return diag(cx->diags, p->span, "%s: %s[%u] names axis '%.*s' twice", name_of(cx, e), param_name[k], i,
                    SF(value_name(twice)));
    Dim *dims = dims_copy(cx, x);
    for (uint32_t a = 0; a < spec->list.n; a++) {
        int64_t n = shares(cx, &spec->list.at[a]);
        if (!n) return true;
        if (join)
            dims[a] = dim_mul(cx->types, dims[a], n);
        else if (dims_agree(cx, dim_mod(cx->types, dims[a], n), 0, p->span))
            dims[a] = dim_floordiv(cx->types, dims[a], n);
        else
            return diag(cx->diags, p->span, "%s: %lld devices cannot share axis %u of %s", name_of(cx, e), (long long)n,
                        a, type_c(cx, t));
    }
    *out = type_of(cx->types, x->dtype, x->rank, dims);
    return true;
}

/* The axes of a mesh, Mesh('x': 2, 'y': 4, …), are bound. */
static void bind_mesh(Ctx *cx, const Value *v) {
    for (uint32_t i = 0; v->kind == V_LIST && i < v->list.n; i++) {
        const Value *a = &v->list.at[i];
        if (a->kind == V_PAIR && a->list.n == 2 && a->list.at[0].kind == V_STR)
            axis_bind(cx, value_name(&a->list.at[0]), a->list.at[1].kind == V_INT ? a->list.at[1].i : 0);
    }
}

static bool shard_map(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Jaxpr *j = param_jaxpr(e, K_jaxpr);
    Type *takes = arena_new(cx->arena, Type, e->in.n);
    for (unsigned i = 0; i < e->in.n; i++)
        if (!shard(cx, e, K_in_specs, i, false, in[i], &takes[i])) return false;
    if (!want_results(cx, e, j->out.n)) return false;
    if (!want_program(cx, e, K_jaxpr, j, takes, e->in.n, j->out.n)) return false;
    for (uint32_t i = 0; i < j->out.n; i++) {
        Type whole;
        if (!shard(cx, e, K_out_specs, i, true, result_type(cx, j, i, out[i]), &whole)) return false;
        if (whole) out[i] = whole;
    }
    return type_declared(cx, e, in, out);
}

bool type_shard_map(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    struct AxisScope *outer = cx->axes;
    if (!want_param(cx, e, K_jaxpr) || !want_param(cx, e, K_mesh)) return false;
    bind_mesh(cx, &param_find(e, K_mesh)->value);
    bool ok = shard_map(cx, e, in, out);
    cx->axes = outer;
    return ok;
}

/* ---- pmap */

/* Is entry `i` of in_axes, out_axes or mapped_invars an axis? Without a list all are. */
static bool mapped(const Eqn *e, ParamKey k, uint32_t i, int64_t *axis) {
    const Param *p = param_find(e, k);
    *axis = 0;
    if (!p || p->value.kind != V_LIST || i >= p->value.list.n) return true;
    const Value *v = &p->value.list.at[i];
    if (v->kind == V_INT) *axis = v->i;
    return v->kind == V_INT || (v->kind == V_BOOL && v->i);
}

static bool part(Ctx *cx, const Eqn *e, const Type *in, unsigned i, Dim *size, Type *out) {
    int64_t axis;
    ParamKey key = param_has(e, K_mapped_invars) ? K_mapped_invars : K_in_axes;
    const ArrayType *x = type_at(cx->types, in[i]);
    *out = in[i];
    if (!mapped(e, key, i, &axis)) return true;
    if (axis < 0) axis += x->rank;
    if (!want_axis(cx, e, key, axis, x->rank)) return false;
    if (*size == -1) *size = x->dims[axis];
    if (!dims_agree(cx, x->dims[axis], *size, operand_at(cx, e, i)))
        return diag(cx->diags, operand_at(cx, e, i), "%s: axis %lld of operand %u, %s, must have extent %s",
                    name_of(cx, e), (long long)axis, i, type_c(cx, in[i]), dim_c(cx, *size));
    Dim *dims = dims_copy(cx, x);
    memmove(dims + axis, dims + axis + 1, (x->rank - axis - 1) * sizeof *dims);
    *out = type_of(cx->types, x->dtype, x->rank - 1, dims);
    return true;
}

static Type whole(Ctx *cx, const Eqn *e, uint32_t i, Dim size, Type t) {
    int64_t axis;
    const ArrayType *x = type_at(cx->types, t);
    if (!t || !mapped(e, K_out_axes, i, &axis) || axis < 0 || axis > x->rank) return t;
    Dim *dims = dims_copy(cx, x);
    memmove(dims + axis + 1, dims + axis, (x->rank - axis) * sizeof *dims);
    dims[axis] = size;
    return type_of(cx->types, x->dtype, x->rank + 1, dims);
}

/* Of an operand with an axis in front for each extent of the mesh, `sizes`, which is of that extent or 1: the part that
   one device gets. Others are whole. */
static bool spmd_part(Ctx *cx, const Eqn *e, unsigned i, Type in, Type takes, Type *out) {
    Dims mesh = param_dims(e, K_sizes);
    const ArrayType *x = type_at(cx->types, in);
    *out = in;
    if (x->rank == type_at(cx->types, takes)->rank) return true;
    for (uint32_t k = 0; k < mesh.n; k++)
        if (k >= x->rank || (x->dims[k] != 1 && x->dims[k] != mesh.at[k]))
            return diag(cx->diags, operand_at(cx, e, i), "%s: operand %u is %s, which devices cannot share",
                        name_of(cx, e), i, type_c(cx, in));
    *out = type_of(cx->types, x->dtype, x->rank - mesh.n, x->dims + mesh.n);
    return true;
}
/* What passes turn both into: the program runs once on each device, on its parts of the operands or on the whole; each
   result has a new first axis for the devices. */
bool type_spmd(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    int64_t devices;
    if (!want_param(cx, e, K_call_jaxpr) || !want_int(cx, e, K_axis_size, 1, &devices)) return false;
    Jaxpr *j = param_jaxpr(e, K_call_jaxpr);
    Type *takes = arena_new(cx->arena, Type, e->in.n + 1);
    for (unsigned i = 0; i < e->in.n; i++) {
        takes[i] = in[i];
        if (i < j->in.n && !spmd_part(cx, e, i, in[i], val_type(cx, j->in.at[i]), &takes[i])) return false;
    }
    if (!want_results(cx, e, j->out.n) || !want_program(cx, e, K_call_jaxpr, j, takes, e->in.n, j->out.n)) return false;
    for (uint32_t i = 0; i < j->out.n; i++) {
        Type t = result_type(cx, j, i, 0);
        const ArrayType *x = type_at(cx->types, t);
        Dim *dims = dims_copy(cx, x);
        memmove(dims + 1, dims, x->rank * sizeof *dims);
        dims[0] = devices;
        out[i] = t ? type_of(cx->types, x->dtype, x->rank + 1, dims) : 0;
    }
    return true;
}

/* The program runs once for each place along an axis of its operands. */
bool type_xla_pmap(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_param(cx, e, K_call_jaxpr)) return false;
    Jaxpr *j = param_jaxpr(e, K_call_jaxpr);
    int64_t said;
    if (param_has(e, K_axis_size) && !want_int(cx, e, K_axis_size, 1, &said)) return false;
    Dim size = param_int(e, K_axis_size, -1);
    Type *takes = arena_new(cx->arena, Type, e->in.n);
    for (unsigned i = 0; i < e->in.n; i++)
        if (!part(cx, e, in, i, &size, &takes[i])) return false;
    bool known = size != -1;
    struct AxisScope *outer = cx->axes;
    const Param *name = param_find(e, K_axis_name);
    if (name) axis_bind(cx, value_name(&name->value), known && dim_is_const(size) ? size : 0);
    bool ok = want_results(cx, e, j->out.n) && want_program(cx, e, K_call_jaxpr, j, takes, e->in.n, j->out.n);
    cx->axes = outer;
    if (ok && !known) return type_declared(cx, e, in, out);
    for (uint32_t i = 0; ok && i < j->out.n; i++) out[i] = whole(cx, e, i, size, result_type(cx, j, i, 0));
    return ok;
}
