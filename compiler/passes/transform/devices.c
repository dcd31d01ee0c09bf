/* Programs for several devices, shard_map and pmap, under jvp, split and transpose. A tangent is shared by the devices
   as its value is. A residual leaves as a result with each device's own along its first axis. What the types do not say
   is found by sums, as JAX does where check_vma is False: a result that devices have in common gets a part of its
   cotangent from each, and the cotangents of an operand that they have in common are added. */
#include "flow.h"
#include "../../typecheck/rule.h"

/* The operands or results of such an equation, and how the devices share each: an entry of in_specs or out_specs, or of
   in_axes or out_axes. */
typedef struct {
    ValList vals;
    struct {
        Value *at;
        uint32_t n, cap;
    } how;
} Shared;
/* An equation, in the terms of both primitives. */
typedef struct {
    Tx *tx;
    const Eqn *e;
    const Jaxpr *body;
    const MeshAxis *mesh; /* its own axes, the fastest first */
    int64_t devices;
    bool pmap;
    bool typed; /* types say over which axes a value varies, so that sums are in the text */
} Devices;

static const Value none = {.kind = V_NONE}, first_axis = {.kind = V_INT, .i = 0};
static Value tuple(const char *name, Value *at, uint32_t n) {
    return (Value){.kind = V_LIST, .open = '(', .s = str(name), .list = {at, n}};
}
/* Do types say over which axes a value varies? As versions of JAX write it. */
static bool is_typed(const Eqn *e) {
    static const ParamKey keys[] = {K_rewrite, K_check_vma, K_check_rep};
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
        if (param_has(e, keys[i])) return param_bool(e, keys[i]);
    return false;
}
/* False after tx_error. */
static bool devices_of(Tx *tx, const Eqn *e, Devices *d) {
    *d = (Devices){.tx = tx, .e = e, .body = eqn_program(e), .pmap = e->prim == P_xla_pmap, .typed = is_typed(e)};
    d->mesh = mesh_of(tx->cx, e, NULL);
    d->devices = 1;
    for (const MeshAxis *m = d->mesh; m; m = m->outer) d->devices *= m->extent;
    if (d->devices < 1)
        return tx_error(tx, e->span, "%s for an unknown number of devices cannot be transformed", prim_name[e->prim]);
    static const ParamKey specs[] = {K_in_specs, K_out_specs};
    const uint32_t n[] = {e->in.n, e->out.n};
    for (int k = 0; k < 2 && !d->pmap; k++) {
        const Param *p = param_find(e, specs[k]);
        bool known = p && p->value.kind == V_LIST && p->value.list.n == n[k];
        for (uint32_t i = 0; known && i < n[k]; i++) known = p->value.list.at[i].kind == V_LIST;
        if (!known)
            return tx_error(tx, p ? p->span : e->span, "a shard_map without the list '%s' cannot be transformed",
                            param_name[specs[k]]);
    }
    return true;
}
/* From here on until axes_leave, what is built is inside the program. */
static struct AxisScope *axes_enter(const Devices *d) {
    struct AxisScope *outer = d->tx->cx->axes;
    for (const MeshAxis *m = d->mesh; m; m = m->outer) axis_bind(d->tx->cx, m->name, m->extent);
    return outer;
}
static void axes_leave(const Devices *d, struct AxisScope *outer) { d->tx->cx->axes = outer; }

/* ---- how operands and results are shared */
static Value how(const Devices *d, bool result, uint32_t i) {
    ParamKey in = param_has(d->e, K_mapped_invars) ? K_mapped_invars : K_in_axes;
    const Param *p = param_find(d->e, d->pmap ? (result ? K_out_axes : in) : result ? K_out_specs : K_in_specs);
    const Value *v = p && p->value.kind == V_LIST && i < p->value.list.n ? &p->value.list.at[i] : NULL;
    assert(v || d->pmap); /* devices_of */
    if (!d->pmap) return *v;
    if (!v || v->kind == V_INT) return v ? *v : first_axis;
    return v->kind == V_BOOL && v->i ? first_axis : none;
}
/* All devices have the same. */
static Value in_common(const Devices *d) { return d->pmap ? none : tuple("P", NULL, 0); }
/* Each device has its own along a new first axis. */
static Value own_each(const Devices *d) {
    Arena *arena = d->tx->cx->arena;
    uint32_t n = 0, at;
    if (d->pmap) return first_axis;
    for (const MeshAxis *m = d->mesh; m; m = m->outer) n += m->name.n > 0;
    Value *names = arena_new(arena, Value, n + 1), *entry = arena_new(arena, Value, 1);
    at = n;
    for (const MeshAxis *m = d->mesh; m; m = m->outer)
        if (m->name.n) names[--at] = (Value){.kind = V_STR, .s = str_format(arena, "'%.*s'", SF(m->name))};
    *entry = n == 1 ? *names : tuple("", names, n);
    return tuple("P", entry, n > 0);
}
static bool is_named(const Value *v, Str name) {
    if (v->kind == V_STR) return str_eq((Str){v->s.at + 1, v->s.n - 2}, name);
    for (uint32_t i = 0; v->kind == V_LIST && i < v->list.n; i++)
        if (is_named(&v->list.at[i], name)) return true;
    return false;
}
/* The devices that have one part in common, and the names of their axes. */
static int64_t sharing(const Devices *d, const Value *spec, Value *names) {
    Arena *arena = d->tx->cx->arena;
    int64_t n = 1;
    uint32_t at = 0;
    for (const MeshAxis *m = d->mesh; m; m = m->outer) at++;
    *names = tuple("", arena_new(arena, Value, at + 1), 0);
    for (const MeshAxis *m = d->mesh; m; m = m->outer) {
        if (!m->name.n || is_named(spec, m->name)) continue;
        n *= m->extent;
        names->list.at[names->list.n++] = (Value){.kind = V_STR, .s = str_format(arena, "'%.*s'", SF(m->name))};
    }
    return n;
}
static void add_shared(const Devices *d, Shared *to, Val v, Value as) {
    push(d->tx->cx->arena, &to->vals, v);
    push(d->tx->cx->arena, &to->how, as);
}
static void add_captured(const Devices *d, Shared *to, Vals captured) {
    each(const Val, v, captured) add_shared(d, to, *v, in_common(d));
}
/* The operands or results whose bit is `want`. */
static void add_own(const Devices *d, Shared *to, bool results, Bits bits, bool want) {
    for (uint32_t i = 0; i < bits.n; i++)
        if (bits.at[i] == want) add_shared(d, to, results ? 0 : d->e->in.at[i], how(d, results, i));
}

/* ---- equations */
/* The equation with another program, operands and results. */
static Eqn devices_eqn(const Devices *d, Builder *b, Jaxpr *j, Shared in, Shared out) {
    static const bool listing[NPARAMS] = {[K_in_specs] = true, [K_out_specs] = true,     [K_in_axes] = true,
                                          [K_out_axes] = true, [K_mapped_invars] = true, [K_global_arg_shapes] = true};
    Eqn e = call_of(d->tx->cx->arena, d->e, j, list_vals(in.vals));
    uint32_t n = 0;
    Param *at = arena_new(d->tx->cx->arena, Param, e.params.n + 2);
    each(const Param, p, e.params)
        if (!listing[p->key]) at[n++] = *p;
    at[n++] = (Param){.key = d->pmap ? K_in_axes : K_in_specs, .value = tuple("", in.how.at, in.how.n)};
    at[n++] = (Param){.key = d->pmap ? K_out_axes : K_out_specs, .value = tuple("", out.how.at, out.how.n)};
    e.params = (Params){at, n};
    e.in_at = NULL, e.span = b->span, e.whole = b->whole.n ? b->whole : b->span;
    e.out = list_vals(out.vals);
    assert(j->in.n == e.in.n && j->out.n == out.how.n);
    return e;
}
/* The same with these results, which are new; their types are known. */
static void run_devices(const Devices *d, Builder *b, Jaxpr *j, Shared in, Shared out) {
    Eqn e = devices_eqn(d, b, j, in, out);
    if (!b->failed && !b_any_failed(b, e.in.n, e.in.at)) push(d->tx->cx->arena, &b->eqns, e);
}
/* v as of all devices, along a new first axis: a value bound nowhere. */
static Val stacked(const Devices *d, Val v) {
    Ctx *cx = d->tx->cx;
    Dim dims[MAX_RANK + 1] = {d->devices};
    const ArrayType *t = val_array(cx, v);
    if (t->rank) memcpy(dims + 1, t->dims, t->rank * sizeof *dims);
    return val_new(cx, type_of(cx->types, t->dtype, t->rank + 1, dims), d->e->span);
}
static Val with_first_axis(Builder *b, Val v) {
    Dim dims[MAX_RANK + 1] = {1};
    if (b_failed(b, v)) return VAL_FAILED;
    const ArrayType *t = b_type(b, v);
    if (t->rank) memcpy(dims + 1, t->dims, t->rank * sizeof *dims);
    return b_reshape(b, v, t->rank + 1, dims);
}
static Jaxpr *named(const Devices *d, Jaxpr *j, const char *what) {
    if (j && d->body->name.n) j->name = str_format(d->tx->cx->arena, "%.*s_%s", SF(d->body->name), what);
    return j;
}

/* ---- jvp */
bool jvp_devices(Jvp *j) {
    Devices d;
    if (!devices_of(j->tx, j->e, &d)) return false;
    Bits some = bits_of(j->tx, j->e->in.n, j->t);
    struct AxisScope *outer = axes_enter(&d);
    const MadeJvp *m = made_jvp(j->tx, j->b, d.body, some, (Bits){0}, (Groups){0});
    axes_leave(&d, outer);
    if (!m) return false;
    if (!bits_some(m->out)) return true;
    Shared in = {0}, out = {0};
    add_captured(&d, &in, m->program.captured);
    for (uint32_t i = 0; i < some.n; i++) add_shared(&d, &in, j->e->in.at[i], how(&d, false, i));
    for (uint32_t i = 0; i < some.n; i++)
        if (some.at[i]) add_shared(&d, &in, j->t[i], how(&d, false, i));
    for (uint32_t i = 0; i < m->out.n; i++) add_shared(&d, &out, 0, how(&d, true, i));
    add_own(&d, &out, true, m->out, true);
    Eqn e = devices_eqn(&d, j->b, m->program.j, in, out);
    return jvp_run(j, &e, m->out, 0);
}

/* ---- split */
/* Residuals with extents that a device computes cannot lie side by side. */
static void see_extent(void *some, Val v) { *(bool *)some = true; }
static bool computes_extents(Tx *tx, const MadeSplit *m) {
    bool some = false;
    for (uint32_t i = 0; i < m->nresiduals; i++)
        if (m->residuals[i].kind == RESIDUAL_RESULT)
            type_extents(tx->cx, val_type(tx->cx, m->residuals[i].value), see_extent, &some);
    return some;
}
/* The known program, whose residuals have an axis for the devices. */
static Inner known_stacked(const Devices *d, Builder *b, const MadeSplit *m) {
    const Inner *known = &m->known;
    Inner i = b_inner_like(b, known->in.n, known->in.at);
    Vals in = vals_joined(d->tx->cx->arena, 2, (Vals[]){known->captured, i.in});
    Vals out = b_call(b, known->j, in.n, in.at);
    Vals all = vals_joined(d->tx->cx->arena, 1, &out);
    for (uint32_t k = all.n - m->nmore; k < all.n; k++) all.at[k] = with_first_axis(b, all.at[k]);
    named(d, b_inner_end(b, &i, all.n, all.at), "known");
    return i;
}
static bool is_stacked(const MadeSplit *m, uint32_t k) {
    const Residual *r = &m->residuals[k];
    return r->kind == RESIDUAL_RESULT && r->at >= m->known.j->out.n - m->nmore;
}
/* The unknown program, which takes them so. */
static Inner unknown_stacked(const Devices *d, Builder *b, const MadeSplit *m) {
    Ctx *cx = d->tx->cx;
    const Jaxpr *j = m->unknown.j;
    Type *types = arena_new(cx->arena, Type, j->in.n + 1);
    for (uint32_t k = 0; k < j->in.n; k++) {
        const ArrayType *t = val_array(cx, j->in.at[k]);
        Dim dims[MAX_RANK + 1] = {1};
        types[k] = val_type(cx, j->in.at[k]);
        if (k >= m->nresiduals || !is_stacked(m, k)) continue;
        if (t->rank) memcpy(dims + 1, t->dims, t->rank * sizeof *dims);
        types[k] = type_of(cx->types, t->dtype, t->rank + 1, dims);
    }
    Inner i = b_inner(b, j->in.n, types);
    Vals in = vals_joined(cx->arena, 1, &i.in);
    for (uint32_t k = 0; k < m->nresiduals; k++) {
        const ArrayType *t = val_array(cx, j->in.at[k]);
        if (is_stacked(m, k)) in.at[k] = b_reshape(b, in.at[k], t->rank, t->dims);
    }
    Vals out = b_call(b, j, in.n, in.at);
    named(d, b_inner_end(b, &i, out.n, out.at), "lin");
    return i;
}
/* Runs the known program: what it returns, and how the devices share it. */
static Shared run_known(const Devices *d, SplitEqn *s, const MadeSplit *m, const Inner *known) {
    Shared in = {0}, out = {0};
    const Jaxpr *j = m->known.j;
    add_captured(d, &in, known->captured);
    add_own(d, &in, false, (Bits){s->unknown, s->e->in.n}, false);
    for (uint32_t i = 0; i < s->e->out.n; i++)
        if (!m->out.at[i]) add_shared(d, &out, s->out[i] = tx_placeholder(s->tx, s->e->out.at[i]), how(d, true, i));
    for (uint32_t k = j->out.n - m->nmore; k < j->out.n; k++)
        add_shared(d, &out, stacked(d, j->out.at[k]), own_each(d));
    if (worth_running(s->tx, known->j)) run_devices(d, s->b, known->j, in, out);
    return out;
}
static void run_unknown(const Devices *d, SplitEqn *s, const MadeSplit *m, const Inner *unknown, Shared y) {
    Shared in = {0}, out = {0};
    const Val *vals = residual_values(s->tx, m, s->e->in.at, y.vals.at);
    add_captured(d, &in, unknown->captured);
    for (uint32_t k = 0; k < m->nresiduals; k++) {
        const Residual *r = &m->residuals[k];
        bool constant = r->kind == RESIDUAL_CONST, input = r->kind == RESIDUAL_INPUT;
        add_shared(d, &in, vals[k], constant ? in_common(d) : input ? how(d, false, r->at) : y.how.at[r->at]);
    }
    add_own(d, &in, false, (Bits){s->unknown, s->e->in.n}, true);
    for (uint32_t i = 0; i < s->e->out.n; i++)
        if (m->out.at[i]) add_shared(d, &out, s->out[i] = tx_placeholder(s->tx, s->e->out.at[i]), how(d, true, i));
    if (unknown->j->out.n) run_devices(d, s->u, unknown->j, in, out);
}
bool split_devices(SplitEqn *s) {
    Devices d;
    Tx *tx = s->tx;
    Bits unknown = {s->unknown, s->e->in.n};
    if (!devices_of(tx, s->e, &d)) return false;
    struct AxisScope *outer = axes_enter(&d);
    const MadeSplit *made = made_split(tx, s->b, d.body, unknown, (Bits){0});
    MadeSplit m = made ? *made : (MadeSplit){0};
    bool ok = made && (!computes_extents(tx, made) || split_again(tx, s->b, unknown, &m));
    Inner known = m.known, lin = m.unknown;
    if (ok && m.nmore && !d.pmap) {
        known = known_stacked(&d, s->b, &m);
        lin = unknown_stacked(&d, s->u, &m);
    }
    axes_leave(&d, outer);
    if (!ok || s->b->failed || s->u->failed) return false;
    memcpy(s->out_unknown, m.out.at, m.out.n);
    run_unknown(&d, s, &m, &lin, run_known(&d, s, &m, &known));
    return !s->b->failed && !s->u->failed;
}

/* ---- transpose */
/* The cotangent of result i, as the devices get it. */
static Val shared_ct(const Devices *d, const Transpose *t, uint32_t i) {
    Value spec = how(d, true, i), names;
    int64_t n = d->pmap ? (spec.kind == V_NONE ? d->devices : 1) : d->typed ? 1 : sharing(d, &spec, &names);
    return n == 1 ? t->ct[i] : b_div(t->b, t->ct[i], b_full_like(t->b, t->ct[i], (double)n));
}
/* The program with the cotangents of operands that devices have in common added up; itself if there are none. */
static Inner summed(const Devices *d, Builder *b, const MadeTranspose *m) {
    const Inner *p = &m->program;
    Arena *arena = d->tx->cx->arena;
    Value *names = arena_new(arena, Value, d->e->in.n + 1);
    uint32_t n = 0;
    bool some = false;
    if (d->pmap || d->typed) return *p;
    for (uint32_t i = 0; i < m->in.n; i++) {
        if (!m->in.at[i]) continue;
        Value spec = how(d, false, i);
        sharing(d, &spec, &names[n]);
        some |= names[n++].list.n > 0;
    }
    if (!some) return *p;
    Inner i = b_inner_like(b, p->in.n, p->in.at);
    Vals in = vals_joined(arena, 2, (Vals[]){p->captured, i.in});
    Vals out = b_call(b, p->j, in.n, in.at), all = vals_joined(arena, 1, &out);
    for (uint32_t k = 0; k < n; k++)
        if (names[k].list.n)
            all.at[k] = build(b, P_psum, 1, &all.at[k], 2,
                              (Param[]){{.key = K_axes, .value = names[k]}, p_none(K_axis_index_groups)});
    named(d, b_inner_end(b, &i, n, all.at), "t");
    return i;
}
bool transpose_devices(Transpose *t) {
    Devices d;
    Tx *tx = t->tx;
    Builder *b = t->b;
    Bits linear = {t->linear, t->e->in.n}, ct = bits_of(tx, t->e->out.n, t->ct);
    if (!devices_of(tx, t->e, &d)) return false;
    struct AxisScope *outer = axes_enter(&d);
    const MadeTranspose *m = made_transpose(tx, b, d.body, linear, ct, (Bits){0}, (Bits){0});
    Inner program = m ? summed(&d, b, m) : (Inner){0};
    axes_leave(&d, outer);
    if (!m || b->failed) return false;
    if (!bits_some(m->in)) return true;
    Shared in = {0}, out = {0};
    add_captured(&d, &in, program.captured);
    add_own(&d, &in, false, linear, false);
    for (uint32_t i = 0; i < ct.n; i++)
        if (ct.at[i]) add_shared(&d, &in, shared_ct(&d, t, i), how(&d, true, i));
    for (uint32_t i = 0; i < m->in.n; i++) {
        if (!m->in.at[i]) continue;
        Value as = how(&d, false, i);
        bool each = d.pmap && as.kind == V_NONE; /* to be added up outside */
        Val like = t->e->in.at[i];
        add_shared(&d, &out, each ? stacked(&d, like) : val_new(tx->cx, val_type(tx->cx, like), b->span),
                   each ? own_each(&d) : as);
    }
    run_devices(&d, b, program.j, in, out);
    const Val *v = out.vals.at;
    for (uint32_t i = 0; i < m->in.n; i++) {
        if (!m->in.at[i]) continue;
        bool each = d.pmap && how(&d, false, i).kind == V_NONE;
        ct_add(t, i, each ? b_reduce(b, P_reduce_sum, *v, 1, (int64_t[]){0}) : *v);
        v++;
    }
    return !b->failed;
}

/* ---- vmap: devices share a batch as they share each example */
static Value how_batched(const Devices *d, bool result, uint32_t i) {
    Value one = how(d, result, i);
    if (one.kind == V_INT && one.i >= 0) one.i++; /* pmap: the axis of the devices */
    if (d->pmap) return one;
    Value *at = arena_new(d->tx->cx->arena, Value, one.list.n + 1);
    at[0] = none;
    if (one.list.n) memcpy(at + 1, one.list.at, one.list.n * sizeof *at);
    return tuple("P", at, one.list.n + 1);
}
bool vmap_devices(Vmap *v) {
    Devices d;
    Tx *tx = v->tx;
    if (!devices_of(tx, v->read, &d)) return false; /* pmap: the axes of one example say how many */
    d.e = v->e;
    for (const MeshAxis *m = d.mesh; m; m = m->outer)
        if (tx->batch.axis.n && str_eq(m->name, tx->batch.axis))
            return tx_error(tx, v->e->span, "--vmap-axis=%.*s: %s runs over an axis of this name", SF(m->name),
                            prim_name[v->e->prim]);
    struct AxisScope *outer = axes_enter(&d);
    const Jaxpr *body = eqn_program(v->read);
    const MadeVmap *m =
        made_vmap(tx, v->b, body, (Batched){.in = {v->batched, v->e->in.n}, .masked = takes_mask(tx, body)});
    axes_leave(&d, outer);
    if (!m) return false;
    Shared in = {0}, out = {0};
    add_captured(&d, &in, m->program.captured);
    if (m->masked) add_shared(&d, &in, tx->batch.mask, in_common(&d));
    for (uint32_t i = 0; i < v->e->in.n; i++)
        add_shared(&d, &in, v->e->in.at[i], v->batched[i] ? how_batched(&d, false, i) : how(&d, false, i));
    for (uint32_t k = 0; k < v->e->out.n; k++) {
        v->out_batched[k] = m->out.at[k];
        v->out[k] = tx_placeholder(tx, v->read->out.at[k]);
        if (m->out.at[k]) val_info(tx->cx, v->out[k])->type = vmap_batched(tx, vmap_result_type(v, k));
        add_shared(&d, &out, v->out[k], m->out.at[k] ? how_batched(&d, true, k) : how(&d, true, k));
    }
    run_devices(&d, v->b, m->program.j, in, out);
    return !v->b->failed;
}
