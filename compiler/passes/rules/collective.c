/* Programs for several devices. shard_map and pmap become `spmd`: every device gets the whole operands, takes its
   parts, and returns its parts of the results, which are stored device by device. For GPUs, which have memory of their
   own, operands are cut before: each gets its parts alone. Collectives become calls of runtime/comm.c that exchange
   whole arrays, and arithmetic on the received arrays: sums are in the order of the devices. A nested program for
   several devices runs on each device of the enclosing one; its axes are then the fastest. */
#include "../../control.h"
#include "../../options.h"
#include "../build.h"
#include <assert.h>
#include <stdlib.h>

enum { MAX_MESH = 8, MAX_SIZES = 512, MAX_GROUP = 2 * MAX_MESH + 3 + MAX_SIZES, MAX_MEMBERS = 4096 };

/* ---- the mesh */
static bool names(const Value *v, Str name) {
    if (v->kind == V_STR || v->kind == V_WORD) return str_eq(value_name(v), name);
    for (uint32_t i = 0; v->kind == V_LIST && i < v->list.n; i++)
        if (names(&v->list.at[i], name)) return true;
    return false;
}
/* Does this shard_map run over the axis of the mesh? */
static bool manual(const Eqn *e, Str axis) {
    const Param *now = param_find(e, K_newly_manual_axes), *others = param_find(e, K_auto);
    if (now && now->value.kind == V_LIST) return names(&now->value, axis);
    return !others || !names(&others->value, axis);
}
static const MeshAxis *bind(Ctx *cx, Str name, int64_t extent, int64_t stride, uint32_t at, uint32_t region,
                            const MeshAxis *outer) {
    MeshAxis *a = arena_new(cx->arena, MeshAxis, 1);
    *a = (MeshAxis){name, extent, stride, at, region, outer};
    return a;
}
/* Each device of the axes around becomes n. */
static const MeshAxis *spread(Ctx *cx, const MeshAxis *m, int64_t n) {
    return m ? bind(cx, m->name, m->extent, m->stride * n, m->at, m->region, spread(cx, m->outer, n)) : NULL;
}
/* The extent of the i-th axis of a shard_map's mesh, 0: it does not run over it. */
static int64_t mesh_axis(const Eqn *e, const Value *mesh, uint32_t i, Str *name) {
    const Value *v = &mesh->list.at[i];
    if (v->kind != V_PAIR || v->list.n != 2 || v->list.at[0].kind != V_STR || v->list.at[1].kind != V_INT) return 0;
    *name = value_name(&v->list.at[0]);
    return manual(e, *name) ? v->list.at[1].i : 0;
}
static Dim pmap_size(const Ctx *cx, const Eqn *e);
const MeshAxis *mesh_of(Ctx *cx, const Eqn *e, const MeshAxis *outer) {
    uint32_t region = outer ? outer->region + 1 : 1;
    const Param *mesh = param_find(e, K_mesh), *axis = param_find(e, K_axis_name);
    if (e->prim == P_xla_pmap) {
        Dim n = pmap_size(cx, e);
        int64_t devices = dim_is_const(n) ? n : 0;
        uint32_t at = 0;
        for (const MeshAxis *m = outer; m; m = m->outer) at = m->at < at ? at : m->at + 1;
        return bind(cx, axis ? value_name(&axis->value) : S(""), devices, 1, at, region, spread(cx, outer, devices));
    }
    if (e->prim != P_shard_map) return outer;
    uint32_t n = mesh && mesh->value.kind == V_LIST ? mesh->value.list.n : 0;
    int64_t devices = 1, stride = 1, extent;
    Str name;
    for (uint32_t i = 0; i < n; i++)
        if ((extent = mesh_axis(e, &mesh->value, i, &name))) devices *= extent;
    const MeshAxis *around = spread(cx, outer, devices), *m = around;
    for (uint32_t i = n; i-- > 0;) /* the last axis is the fastest */
        if ((extent = mesh_axis(e, &mesh->value, i, &name))) {
            m = bind(cx, name, extent, stride, i, region, m);
            stride *= extent;
        }
    return m == around ? bind(cx, S(""), 1, 1, 0, region, around) : m;
}
static const MeshAxis *axis_named(const MeshAxis *m, Str name) {
    while (m && !str_eq(m->name, name)) m = m->outer;
    return m;
}
static int64_t devices_of(const MeshAxis *m) {
    int64_t n = 1;
    for (uint32_t region = m->region; m && m->region == region; m = m->outer) n *= m->extent;
    return n;
}

/* ---- groups: the devices that an equation names, as runtime/comm.c reads them */
typedef struct {
    const MeshAxis *axes[MAX_MESH];
    uint32_t naxes;
    int64_t n; /* members, of the largest group */
    const Value *groups;
    bool uneven; /* groups of different sizes */
} Group;
static bool add_axis(Builder *b, const Eqn *e, Group *g, const Value *v) {
    if (v->kind == V_LIST) {
        for (uint32_t i = 0; i < v->list.n; i++)
            if (!add_axis(b, e, g, &v->list.at[i])) return false;
        return true;
    }
    if (v->kind != V_STR && v->kind != V_WORD) return true; /* an axis of the array */
    const MeshAxis *a = axis_named(b->mesh, value_name(v));
    if (!a)
        return diag(b->cx->diags, e->span, "%s: no mesh and no --vmap-axis binds '%.*s'", prim_name[e->prim],
                    SF(value_name(v)));
    if (g->naxes == MAX_MESH) return diag(b->cx->diags, e->span, "%s: more than %d axes", prim_name[e->prim], MAX_MESH);
    g->axes[g->naxes++] = a;
    g->n *= a->extent;
    return true;
}
static uint32_t members(const Value *group) { return group->kind == V_INTS ? group->ints.n : group->list.n; }
static int64_t member(const Value *group, uint32_t i) {
    return group->kind == V_INTS ? group->ints.at[i] : group->list.at[i].i;
}
static bool group_of(Builder *b, const Eqn *e, Group *g) {
    const Param *p = param_has(e, K_axis_name) ? param_find(e, K_axis_name) : param_find(e, K_axes);
    const Param *groups = param_find(e, K_axis_index_groups);
    *g = (Group){.n = 1};
    if (p && !add_axis(b, e, g, &p->value)) return false;
    if (g->n > MAX_MEMBERS)
        return diag(b->cx->diags, e->span, "%s: more than %d devices", prim_name[e->prim], MAX_MEMBERS);
    if (!groups || groups->value.kind != V_LIST || !groups->value.list.n) return true;
    g->groups = &groups->value;
    g->n = members(&g->groups->list.at[0]);
    for (uint32_t i = 1; i < g->groups->list.n; i++) {
        int64_t n = members(&g->groups->list.at[i]);
        g->uneven |= n != g->n;
        if (n > g->n) g->n = n;
    }
    return g->n * g->groups->list.n <= MAX_SIZES ||
           diag(b->cx->diags, e->span, "%s: more than %d places in axis_index_groups", prim_name[e->prim], MAX_SIZES);
}
static uint32_t write_group(const Group *g, Dim *sizes) { /* sizes[MAX_GROUP] */
    uint32_t n = 0;
    sizes[n++] = g->naxes;
    for (uint32_t i = 0; i < g->naxes; i++) sizes[n++] = g->axes[i]->extent, sizes[n++] = g->axes[i]->stride;
    sizes[n++] = g->groups ? g->groups->list.n : 0;
    sizes[n++] = g->n;
    for (uint32_t i = 0; g->groups && i < g->groups->list.n; i++) {
        const Value *group = &g->groups->list.at[i];
        for (uint32_t k = 0; k < g->n; k++) sizes[n++] = k < members(group) ? member(group, k) : -1;
    }
    return n;
}
static Dim bytes_of(Builder *b, Val v) {
    uint32_t bits = dtype_info[b_type(b, v)->dtype].bits;
    return dim_mul(b_types(b), type_size(b_types(b), val_type(b->cx, v)), bits < 8 ? 1 : bits / 8);
}
/* The arrays of the members along a new first axis; or with `parts`, for arrays whose first axis is the members, their
   parts for this one. */
static Val exchanged(Builder *b, const Group *g, Val v, bool parts) {
    Dim sizes[1 + MAX_GROUP], dims[MAX_RANK + 1];
    if (b->failed) return VAL_FAILED;
    const ArrayType *t = b_type(b, v);
    Type type = type_plain(b_types(b), val_type(b->cx, v));
    sizes[0] = bytes_of(b, v);
    if (parts)
        sizes[0] = dim_floordiv(b_types(b), sizes[0], g->n);
    else {
        dims[0] = g->n;
        if (t->rank) memcpy(dims + 1, t->dims, t->rank * sizeof *dims);
        type = type_of(b_types(b), t->dtype, t->rank + 1, dims);
    }
    uint32_t n = 1 + write_group(g, sizes + 1);
    return b_runtime(b, parts ? "all_to_all" : "all_gather", n, sizes, 1, &v, 1, &type).at[0];
}

/* ---- the place of a device */
static Val device_number(Builder *b) {
    Type t = type_of(b_types(b), DT_i32, 0, NULL);
    return b_runtime(b, "device", 0, NULL, 0, NULL, 1, &t).at[0];
}
/* Its place along axes, the last one the fastest. */
static Val place(Builder *b, Val device, const Group *g) {
    Val at = b_int(b, DT_i32, 0);
    for (uint32_t i = 0; i < g->naxes; i++) {
        Val c = b_rem(b, b_div(b, device, b_int(b, DT_i32, g->axes[i]->stride)), b_int(b, DT_i32, g->axes[i]->extent));
        at = b_add(b, b_mul(b, at, b_int(b, DT_i32, g->axes[i]->extent)), c);
    }
    return at;
}
bool expand_axis_index(Builder *b, const Eqn *e, Val *out) {
    Group g;
    if (!group_of(b, e, &g)) return false;
    out[0] = place(b, device_number(b), &g);
    return true;
}

/* ---- sums and the like */
static Prim reduction(Prim p) { return p == P_pmax ? P_reduce_max : p == P_pmin ? P_reduce_min : P_reduce_sum; }
/* Axes of the arrays themselves. */
static uint32_t own_axes(const Eqn *e, int64_t *axes) {
    const Param *p = param_find(e, K_axes);
    uint32_t n = 0;
    if (p && p->value.kind == V_INTS)
        for (; n < p->value.ints.n; n++) axes[n] = p->value.ints.at[n];
    for (uint32_t i = 0; p && p->value.kind == V_LIST && i < p->value.list.n; i++)
        if (p->value.list.at[i].kind == V_INT) axes[n++] = p->value.list.at[i].i;
    return n;
}
/* For groups that are smaller than others: zeros in the place of missing members. */
static Val only_members(Builder *b, const Group *g, Val v) {
    int32_t count[MAX_SIZES] = {0};
    int64_t n = 1;
    for (uint32_t i = 0; i < g->naxes; i++) n *= g->axes[i]->extent;
    if (b->failed || n > MAX_SIZES) return v; /* n: as many as there are in groups */
    for (uint32_t i = 0; i < g->groups->list.n; i++) {
        const Value *group = &g->groups->list.at[i];
        for (uint32_t k = 0; k < members(group); k++)
            if (member(group, k) >= 0 && member(group, k) < n) count[member(group, k)] = (int32_t)members(group);
    }
    Val counts = b_const(b, type_of(b_types(b), DT_i32, 1, (Dim[]){n}), count), at = place(b, device_number(b), g);
    Val mine = b_dynamic_slice(b, counts, &at, (Dim[]){1});
    if (b->failed) return v;
    const ArrayType *t = b_type(b, v);
    Val is = b_lt(b, b_iota(b, DT_i32, t->rank, t->dims, 0), b_full(b, b_reshape(b, mine, 0, NULL), t->rank, t->dims));
    return b_select(b, is, b_full_like(b, v, 0), v);
}
static Val without_axis(Builder *b, Val v, int64_t axis) { /* of extent 1 */
    Dim dims[MAX_RANK + 1];
    uint32_t n = 0;
    if (b->failed) return VAL_FAILED;
    const ArrayType *t = b_type(b, v);
    for (uint32_t i = 0; i < t->rank; i++)
        if (i != axis) dims[n++] = t->dims[i];
    return b_reshape(b, v, n, dims);
}
/* The sum along the first axis, the members, in their order, as XLA adds on the CPU: half floats one by one, each sum
   rounded; floats of a byte and less as half floats; other types as reduce_sum does. */
static Val total(Builder *b, const Group *g, Val v) {
    int64_t first = 0;
    if (b->failed) return VAL_FAILED;
    Dtype d = b_type(b, v)->dtype;
    bool tiny = dtype_info[d].kind == DK_FLOAT && dtype_info[d].bits <= 8;
    if (!tiny && d != DT_f16) return b_reduce(b, P_reduce_sum, v, 1, &first);
    v = b_convert(b, v, DT_f16);
    Val sum = b_slice_axis(b, v, 0, 0, 1);
    for (int64_t i = 1; i < g->n; i++) sum = b_add(b, sum, b_slice_axis(b, v, 0, i, i + 1));
    return without_axis(b, b_convert(b, sum, d), 0);
}
/* An array of so many bytes is summed in parts, if there are more than two devices and their memory is not shared: each
   adds up its part, then they gather the parts. So a device gets 2 (n - 1) / n times the array instead of n - 1 times
   it; in return the devices meet twice. */
enum { LEAST_IN_PARTS = 256 << 10 };
static bool in_parts(Builder *b, const Group *g, Val v) {
    if (b->failed || !options_for_device(b->cx->options) || g->n <= 2 || g->uneven) return false;
    Dim bytes = bytes_of(b, v);
    return dim_is_const(bytes) && bytes >= LEAST_IN_PARTS;
}
/* The members' values of this device's part; the last parts may end with zeros behind the array. */
static Val own_parts(Builder *b, const Group *g, Val v) {
    const ArrayType *t = b_type(b, v);
    Dim n = type_size(b_types(b), val_type(b->cx, v)), part = (n + g->n - 1) / g->n, over = part * g->n - n;
    Val flat = b_reshape(b, v, 1, &n), zero = b_zeros(b, type_of(b_types(b), t->dtype, 0, NULL));
    if (over) flat = b_pad(b, flat, zero, (Dim[]){0, over, 0});
    return exchanged(b, g, b_reshape(b, flat, 2, (Dim[]){g->n, part}), true);
}
static Val gathered(Builder *b, const Group *g, Val part, const ArrayType *whole) {
    if (b->failed) return VAL_FAILED;
    Dim n = 1, all = g->n * b_type(b, part)->dims[0];
    for (uint32_t i = 0; i < whole->rank; i++) n *= whole->dims[i];
    Val flat = b_slice_axis(b, b_reshape(b, exchanged(b, g, part, false), 1, &all), 0, 0, n);
    return b_reshape(b, flat, whole->rank, whole->dims);
}
/* One value of those that the members have, along the first axis. */
static Val combined(Builder *b, const Eqn *e, const Group *g, Val v) {
    int64_t first = 0;
    bool sum = reduction(e->prim) == P_reduce_sum;
    if (g->uneven && sum) v = only_members(b, g, v);
    return sum ? total(b, g, v) : b_reduce(b, reduction(e->prim), v, 1, &first);
}
static bool all_reduce(Builder *b, const Eqn *e, Val *out) {
    Group g;
    int64_t axes[MAX_RANK];
    uint32_t n = own_axes(e, axes);
    if (!group_of(b, e, &g)) return false;
    for (uint32_t i = 0; i < e->in.n; i++) {
        Dtype d = b_type(b, e->in.at[i])->dtype;
        Val v = b_reduce(b, reduction(e->prim), e->in.at[i], n, axes);
        if (g.n > 1 && in_parts(b, &g, v))
            v = gathered(b, &g, combined(b, e, &g, own_parts(b, &g, v)), b_type(b, v));
        else if (g.n > 1)
            v = combined(b, e, &g, exchanged(b, &g, v, false));
        out[i] = b_convert(b, v, d);
    }
    return true;
}
bool expand_psum(Builder *b, const Eqn *e, Val *out) { return all_reduce(b, e, out); }
bool expand_pmax(Builder *b, const Eqn *e, Val *out) { return all_reduce(b, e, out); }
bool expand_pmin(Builder *b, const Eqn *e, Val *out) { return all_reduce(b, e, out); }
bool expand_pvary(Builder *b, const Eqn *e, Val *out) {
    memcpy(out, e->in.at, e->in.n * sizeof *out);
    return true;
}

/* ---- exchanges */
/* Axis `from` of v becomes axis `to`. */
static Val moved(Builder *b, Val v, int64_t from, int64_t to) {
    int64_t p[MAX_RANK + 1];
    if (b->failed) return VAL_FAILED;
    uint32_t rank = b_type(b, v)->rank, n = 0;
    for (int64_t i = 0; n < rank; n++) {
        if (n == to) {
            p[n] = from;
            continue;
        }
        if (i == from) i++;
        p[n] = i++;
    }
    return b_transpose(b, v, p);
}
/* Axes `axis` and axis + 1 become one. */
static Val merged(Builder *b, Val v, int64_t axis) {
    Dim dims[MAX_RANK + 1];
    if (b->failed) return VAL_FAILED;
    assert(axis >= 0);
    const ArrayType *t = b_type(b, v);
    for (uint32_t i = 0, n = 0; i < t->rank; i++)
        if (i == axis + 1)
            dims[axis] = dim_mul(b_types(b), dims[axis], t->dims[i]);
        else
            dims[n++] = t->dims[i];
    return b_reshape(b, v, t->rank - 1, dims);
}
/* An axis is cut into n parts, which become a new first axis. */
static Val cut(Builder *b, Val v, int64_t axis, int64_t n) {
    Dim dims[MAX_RANK + 1];
    if (b->failed) return VAL_FAILED;
    const ArrayType *t = b_type(b, v);
    for (uint32_t i = 0, k = 0; i < t->rank; i++) {
        if (i == axis) dims[k++] = n;
        dims[k++] = i == axis ? dim_floordiv(b_types(b), t->dims[i], n) : t->dims[i];
    }
    return moved(b, b_reshape(b, v, t->rank + 1, dims), axis, 0);
}
bool expand_all_gather(Builder *b, const Eqn *e, Val *out) {
    Group g;
    int64_t axis = param_int(e, K_all_gather_dimension, 0);
    if (!group_of(b, e, &g)) return false;
    for (uint32_t i = 0; i < e->in.n; i++) {
        out[i] = moved(b, exchanged(b, &g, e->in.at[i], false), 0, axis);
        if (param_bool(e, K_tiled)) out[i] = merged(b, out[i], axis);
    }
    return true;
}
bool expand_reduce_scatter(Builder *b, const Eqn *e, Val *out) {
    Group g;
    int64_t axis = param_int(e, K_scatter_dimension, 0);
    if (!group_of(b, e, &g)) return false;
    out[0] = total(b, &g, exchanged(b, &g, cut(b, e->in.at[0], axis, g.n), true));
    if (!param_bool(e, K_tiled)) out[0] = without_axis(b, out[0], axis);
    return true;
}
bool expand_all_to_all(Builder *b, const Eqn *e, Val *out) {
    Group g;
    int64_t split = param_int(e, K_split_axis, 0), concat = param_int(e, K_concat_axis, 0);
    if (!group_of(b, e, &g)) return false;
    out[0] = merged(b, moved(b, exchanged(b, &g, cut(b, e->in.at[0], split, g.n), true), 0, concat), concat);
    return true;
}
/* Each place p of the group gets the array of place from[p], -1: zeros. */
static bool permuted(Builder *b, const Eqn *e, const Group *g, const int64_t *from, Val *out) {
    Dim sizes[2 + MAX_MEMBERS + MAX_GROUP] = {0, g->n};
    memcpy(sizes + 2, from, (size_t)g->n * sizeof *sizes);
    uint32_t n = 2 + (uint32_t)g->n + write_group(g, sizes + 2 + g->n);
    for (uint32_t i = 0; i < e->in.n && !b->failed; i++) {
        sizes[0] = bytes_of(b, e->in.at[i]);
        Type t = type_plain(b_types(b), val_type(b->cx, e->in.at[i]));
        out[i] = b_runtime(b, "permute", n, sizes, 1, &e->in.at[i], 1, &t).at[0];
    }
    return true;
}
static int by_mesh(const void *a, const void *b) {
    const MeshAxis *x = *(const MeshAxis *const *)a, *y = *(const MeshAxis *const *)b;
    return x->at < y->at ? -1 : x->at > y->at;
}
/* perm counts devices in the order of the mesh, whatever the order of its axes' names; a negative place from the
   end. */
bool expand_ppermute(Builder *b, const Eqn *e, Val *out) {
    Group g;
    int64_t from[MAX_MEMBERS];
    if (!group_of(b, e, &g)) return false;
    qsort(g.axes, g.naxes, sizeof *g.axes, by_mesh);
    for (int64_t i = 0; i < g.n; i++) from[i] = -1;
    const Value *perm = &param_find(e, K_perm)->value;
    for (uint32_t i = 0; i < perm->list.n; i++) {
        int64_t source = member(&perm->list.at[i], 0), to = member(&perm->list.at[i], 1);
        from[(to + g.n) % g.n] = (source + g.n) % g.n;
    }
    return permuted(b, e, &g, from, out);
}
/* A copy of the array of device `source` of the axes; in older text, without `source`, the array itself, marked as
   varying. */
bool expand_pbroadcast(Builder *b, const Eqn *e, Val *out) {
    Group g;
    int64_t from[MAX_MEMBERS];
    if (!param_has(e, K_source)) return expand_pvary(b, e, out);
    if (!group_of(b, e, &g)) return false;
    for (int64_t i = 0; i < g.n; i++) from[i] = param_number(e, K_source);
    return permuted(b, e, &g, from, out);
}

/* ---- shard_map */
/* Which axes of the mesh share axis `d` of an array, by a spec P(None, 'x', ('x', 'y')). */
static bool shares(Builder *b, const Eqn *e, const MeshAxis *mesh, const Value *spec, uint32_t d, Group *g) {
    const MeshAxis *outer = b->mesh;
    *g = (Group){.n = 1};
    if (!spec || spec->kind != V_LIST || d >= spec->list.n || spec->list.at[d].kind == V_NONE) return true;
    b->mesh = mesh;
    bool ok = add_axis(b, e, g, &spec->list.at[d]);
    b->mesh = outer;
    for (uint32_t i = 0; ok && i < g->naxes; i++)
        if (g->axes[i]->region != mesh->region)
            return diag(b->cx->diags, e->span, "shard_map: a spec names the axis '%.*s' of a program around",
                        SF(g->axes[i]->name));
    return ok;
}
static const Value *spec_at(const Eqn *e, ParamKey k, uint32_t i) {
    const Param *p = param_find(e, k);
    return p && p->value.kind == V_LIST && i < p->value.list.n ? &p->value.list.at[i] : NULL;
}
/* A device's part of a whole operand. */
static bool own_part(Builder *b, const Eqn *e, const MeshAxis *mesh, uint32_t i, Val device, Val *v) {
    const Value *spec = spec_at(e, K_in_specs, i);
    for (uint32_t d = 0; !b->failed && d < b_type(b, *v)->rank; d++) {
        Group g;
        if (!shares(b, e, mesh, spec, d, &g)) return false;
        if (!g.naxes || b->failed) continue;
        const ArrayType *t = b_type(b, *v);
        Dim dims[MAX_RANK], one = dim_floordiv(b_types(b), t->dims[d], g.n);
        memcpy(dims, t->dims, t->rank * sizeof *dims);
        dims[d] = one;
        Val starts[MAX_RANK];
        for (uint32_t k = 0; k < t->rank; k++) starts[k] = b_int(b, DT_i32, 0);
        starts[d] = b_mul(b, place(b, device, &g), b_dim(b, DT_i32, one));
        *v = b_dynamic_slice(b, *v, starts, dims);
    }
    return true;
}
static uint32_t rank_of(const MeshAxis *mesh) {
    uint32_t n = 0;
    for (const MeshAxis *m = mesh; m && m->region == mesh->region; m = m->outer) n++;
    return n;
}
/* The axes of the mesh, the slowest first; how many. */
static uint32_t own_mesh(const MeshAxis *mesh, const MeshAxis *axes[MAX_MESH]) {
    uint32_t n = rank_of(mesh);
    assert(n <= MAX_MESH); /* expand_shard_map */
    for (uint32_t k = 0; k < n; k++, mesh = mesh->outer) {
        assert(mesh);
        axes[k] = mesh;
    }
    return n;
}
/* An array that is cut along the axes that devices share: [devices of axis 0, …, devices of axis d, part of it, …]. */
typedef struct {
    Dim dims[MAX_RANK + MAX_MESH];
    int64_t place[MAX_MESH], part[MAX_RANK]; /* of each axis of the mesh, -1: not shared; of each part */
    uint32_t n;
    bool any, even; /* something is shared; known to be of equal parts */
} Cuts;
static bool cuts_of(Builder *b, const Eqn *e, const MeshAxis *mesh, uint32_t i, const ArrayType *t, Cuts *c) {
    const MeshAxis *axes[MAX_MESH];
    uint32_t n = own_mesh(mesh, axes);
    *c = (Cuts){.even = n + t->rank <= COMPILED_RANK};
    for (uint32_t k = 0; k < n; k++) c->place[k] = -1;
    for (uint32_t d = 0; d < t->rank; d++) {
        Group g;
        if (!shares(b, e, mesh, spec_at(e, K_in_specs, i), d, &g)) return false;
        for (uint32_t a = 0; a < g.naxes; a++, c->any = true)
            for (uint32_t k = 0; k < n; k++)
                if (axes[k] == g.axes[a]) c->place[k] = c->n, c->dims[c->n++] = axes[k]->extent;
        Dim part = dim_floordiv(b_types(b), t->dims[d], g.n);
        c->even &= dim_mul(b_types(b), part, g.n) == t->dims[d];
        c->part[d] = c->n, c->dims[c->n++] = part;
    }
    return true;
}
/* A whole operand → [an axis for each of the mesh, part…]: those that share none of its axes have extent 1, as all
   their devices get the same. It stays whole if all devices get all of it; so does one that may not have equal
   parts. */
static bool shards(Builder *b, const Eqn *e, const MeshAxis *mesh, uint32_t i, Val *v, bool *cut) {
    const MeshAxis *axes[MAX_MESH];
    const ArrayType *t = b_type(b, *v);
    Cuts c;
    if (!cuts_of(b, e, mesh, i, t, &c)) return false;
    *cut = c.any && c.even;
    if (!*cut) return true;
    int64_t order[MAX_RANK + MAX_MESH];
    Dim dims[MAX_RANK + MAX_MESH];
    uint32_t n = own_mesh(mesh, axes), rank = t->rank, at = 0;
    for (uint32_t k = 0; k < n; k++) {
        dims[k] = c.place[k] < 0 ? 1 : axes[k]->extent;
        if (c.place[k] >= 0) order[at++] = c.place[k];
    }
    for (uint32_t d = 0; d < rank; d++) dims[n + d] = c.dims[c.part[d]], order[at++] = c.part[d];
    *v = b_reshape(b, b_transpose(b, b_reshape(b, *v, c.n, c.dims), order), n + rank, dims);
    return !b->failed;
}
/* [devices, part…] → the whole: axes of the mesh come before the axes they share; if devices have the same, the first
   one's. */
static bool whole(Builder *b, const Eqn *e, const MeshAxis *mesh, uint32_t i, Val *v) {
    const Value *spec = spec_at(e, K_out_specs, i);
    const MeshAxis *axes[MAX_MESH];
    Dim dims[MAX_RANK + MAX_MESH];
    uint32_t n = own_mesh(mesh, axes), rank = b_type(b, *v)->rank - 1;
    if (n + rank > MAX_RANK) return diag(b->cx->diags, e->span, "shard_map: more than %d axes", MAX_RANK);
    for (uint32_t k = 0; k < n; k++) dims[k] = axes[k]->extent; /* bound last: the slowest comes first */
    memcpy(dims + n, b_type(b, *v)->dims + 1, rank * sizeof *dims);
    *v = b_reshape(b, *v, n + rank, dims);
    bool used[MAX_MESH] = {false};
    int64_t order[MAX_RANK];
    Dim final[MAX_RANK];
    uint32_t at = 0;
    for (uint32_t d = 0; d < rank; d++) {
        Group g;
        if (!shares(b, e, mesh, spec, d, &g)) return false;
        final[d] = dim_mul(b_types(b), dims[n + d], g.n);
        for (uint32_t a = 0; a < g.naxes; a++)
            for (uint32_t k = 0; k < n; k++)
                if (axes[k] == g.axes[a]) order[at++] = k, used[k] = true;
        order[at++] = n + d;
    }
    for (uint32_t k = 0; k < n; k++)
        if (!used[k]) *v = b_slice_axis(b, *v, k, 0, 1);
    for (uint32_t k = 0; k < n; k++)
        if (!used[k]) order[at++] = k;
    *v = b_reshape(b, b_transpose(b, *v, order), rank, final);
    return true;
}
/* The operands of a spmd, and how the program for one device gets them: cut by the first axes of the operand, or
   whole. */
typedef struct {
    Vals in;
    bool *cut;
    Inner inner;
} Operands;
static Operands operands(Builder *b, const Eqn *e) {
    Vals in = {arena_new(b->cx->arena, Val, e->in.n + 1), e->in.n};
    for (uint32_t i = 0; i < in.n; i++) in.at[i] = e->in.at[i];
    return (Operands){.in = in, .cut = arena_new(b->cx->arena, bool, e->in.n + 1)};
}
/* The program for one device: operands of plain types in, without the first `axes` if they are cut. */
static void operands_begin(Builder *b, Operands *o, uint32_t axes) {
    Type *types = arena_new(b->cx->arena, Type, o->in.n + 1);
    for (uint32_t i = 0; i < o->in.n; i++) {
        const ArrayType *t = b_type(b, o->in.at[i]);
        types[i] = type_plain(b_types(b), val_type(b->cx, o->in.at[i]));
        if (o->cut[i]) types[i] = type_of(b_types(b), t->dtype, t->rank - axes, t->dims + axes);
    }
    o->inner = b_inner(b, o->in.n, types);
}
static Vals spmd(Builder *b, const MeshAxis *mesh, Operands *o, Vals results) {
    const MeshAxis *axes[MAX_MESH];
    Dim extents[MAX_MESH];
    uint32_t n = own_mesh(mesh, axes);
    bool any = false;
    for (uint32_t k = 0; k < n; k++) extents[k] = axes[k]->extent;
    for (uint32_t i = 0; i < o->in.n; i++) any |= o->cut[i];
    Param p[3] = {p_int(K_axis_size, devices_of(mesh)),
                  p_jaxpr(K_call_jaxpr, b_inner_end(b, &o->inner, results.n, results.at)),
                  p_dims(b, K_sizes, n, extents)};
    Vals all = vals_joined(b->cx->arena, 2, (Vals[]){o->inner.captured, o->in});
    return build_many(b, P_spmd, all.n, all.at, any ? 3 : 2, p, results.n, NULL);
}
/* Do the parts have the types that the program takes? Unreadable specs leave this open. */
static bool takes(Builder *b, const Eqn *e, const Jaxpr *j, const Val *parts) {
    for (uint32_t i = 0; i < e->in.n && !b->failed; i++) {
        Types *ts = b_types(b);
        if (type_plain(ts, val_type(b->cx, parts[i])) != type_plain(ts, val_type(b->cx, j->in.at[i])))
            return diag(b->cx->diags, e->span,
                        "%s: the part of operand %u that a device gets is not what its program takes",
                        prim_name[e->prim], i);
    }
    return !b->failed;
}
bool expand_shard_map(Builder *b, const Eqn *e, Val *out) {
    const Jaxpr *j = param_jaxpr(e, K_jaxpr);
    const MeshAxis *mesh = mesh_of(b->cx, e, b->mesh), *axes[MAX_MESH];
    if (rank_of(mesh) > MAX_MESH)
        return diag(b->cx->diags, e->span, "shard_map: a mesh of more than %d axes is not supported yet", MAX_MESH);
    Operands o = operands(b, e);
    for (uint32_t i = 0; i < e->in.n && options_for_device(b->cx->options); i++)
        if (!shards(b, e, mesh, i, &o.in.at[i], &o.cut[i])) return false;
    operands_begin(b, &o, own_mesh(mesh, axes));
    Val *parts = arena_new(b->cx->arena, Val, e->in.n + 1), device = device_number(b);
    for (uint32_t i = 0; i < e->in.n; i++) {
        parts[i] = o.inner.in.at[i];
        if (!o.cut[i] && !own_part(b, e, mesh, i, device, &parts[i])) return false;
    }
    if (!takes(b, e, j, parts)) return false;
    Vals results = b_call(b, j, e->in.n, parts);
    if (b->failed) return false;
    Vals v = spmd(b, mesh, &o, results);
    for (uint32_t i = 0; i < e->out.n && !b->failed; i++) {
        out[i] = v.at[i];
        if (!whole(b, e, mesh, i, &out[i])) return false;
    }
    return true;
}

/* ---- pmap */
/* Entry `i` of in_axes, out_axes or mapped_invars: false if all devices have the same. */
static bool mapped(const Eqn *e, ParamKey k, uint32_t i, int64_t *axis) {
    const Value *v = spec_at(e, k, i);
    *axis = v && v->kind == V_INT ? v->i : 0;
    return !v || v->kind == V_INT || (v->kind == V_BOOL && v->i);
}
static ParamKey in_key(const Eqn *e) { return param_has(e, K_mapped_invars) ? K_mapped_invars : K_in_axes; }
static Dim pmap_size(const Ctx *cx, const Eqn *e) {
    Dim size = param_int(e, K_axis_size, -1);
    for (uint32_t i = 0; i < e->in.n && size < 0; i++) {
        int64_t axis;
        const ArrayType *t = val_array(cx, e->in.at[i]);
        if (mapped(e, in_key(e), i, &axis)) size = t->dims[axis < 0 ? axis + t->rank : axis];
    }
    return size;
}
/* Element number `device` along the axis. */
static Val own_element(Builder *b, Val v, int64_t axis, Val device) {
    const ArrayType *t = b_type(b, v);
    Dim dims[MAX_RANK];
    Val starts[MAX_RANK];
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    dims[axis] = 1;
    for (uint32_t k = 0; k < t->rank; k++) starts[k] = k == axis ? device : b_int(b, DT_i32, 0);
    return without_axis(b, b_dynamic_slice(b, v, starts, dims), axis);
}
bool expand_xla_pmap(Builder *b, const Eqn *e, Val *out) {
    const Jaxpr *j = param_jaxpr(e, K_call_jaxpr);
    Dim size = pmap_size(b->cx, e);
    if (!dim_is_const(size) || size < 1)
        return diag(b->cx->diags, e->span, "xla_pmap: the number of devices must be known");
    const MeshAxis *mesh = mesh_of(b->cx, e, b->mesh);
    Operands o = operands(b, e);
    int64_t *axis = arena_new(b->cx->arena, int64_t, e->in.n + 1);
    bool *has = arena_new(b->cx->arena, bool, e->in.n + 1);
    for (uint32_t i = 0; i < e->in.n && !b->failed; i++) {
        has[i] = mapped(e, in_key(e), i, &axis[i]);
        if (axis[i] < 0) axis[i] += b_type(b, o.in.at[i])->rank;
        o.cut[i] = has[i] && options_for_device(b->cx->options);
        if (o.cut[i]) o.in.at[i] = moved(b, o.in.at[i], axis[i], 0);
    }
    if (b->failed) return false;
    operands_begin(b, &o, 1);
    Group all = {.axes = {mesh}, .naxes = 1};
    Val *parts = arena_new(b->cx->arena, Val, e->in.n + 1), device = place(b, device_number(b), &all);
    for (uint32_t i = 0; i < e->in.n && !b->failed; i++) {
        assert(o.inner.in.at);
        parts[i] = o.inner.in.at[i];
        if (has[i] && !o.cut[i]) parts[i] = own_element(b, parts[i], axis[i], device);
    }
    if (!takes(b, e, j, parts)) return false;
    Vals results = b_call(b, j, e->in.n, parts);
    if (b->failed) return false;
    Vals v = spmd(b, mesh, &o, results);
    for (uint32_t i = 0; i < e->out.n && !b->failed; i++) {
        int64_t to;
        bool every = mapped(e, K_out_axes, i, &to);
        if (to < 0) to += b_type(b, v.at[i])->rank;
        out[i] = every ? moved(b, v.at[i], 0, to) : without_axis(b, b_slice_axis(b, v.at[i], 0, 0, 1), 0);
    }
    return true;
}
