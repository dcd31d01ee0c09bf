/* What a batch of examples does besides computing: each example that is really here does it. */
#include "flow.h"

bool acts(const Eqn *e) {
    VmapRule *rule = vmap_rules[e->prim];
    return rule == vmap_print || rule == vmap_check || rule == vmap_shape_assertion;
}
static bool some_batched(const Vmap *v) {
    bool some = false;
    for (uint32_t i = 0; i < v->e->in.n; i++) some |= v->batched[i];
    return some;
}
static Val any_here(Vmap *v) { return b_reduce(v->b, P_reduce_or, v->tx->batch.mask, 1, (int64_t[]){0}); }

/* ---- messages: one for each example, in their order; one for all if it is the same */
bool vmap_print(Vmap *v) {
    Builder *b = v->b;
    if (some_batched(v)) return vmap_in_turn(v);
    Val some = any_here(v);
    Inner branches[2] = {b_inner(b, 0, NULL)};
    b_inner_end(b, &branches[0], 0, NULL);
    branches[1] = b_inner(b, 0, NULL);
    b_eqn(b, v->e, 0, NULL);
    b_inner_end(b, &branches[1], 0, NULL);
    b_cond(b, some, 2, branches, 0, NULL);
    return !b->failed;
}

/* ---- checks: of the examples that are here */
/* The predicate for those, otherwise `idle`. */
static Val of_those_here(Vmap *v, uint32_t i, bool idle) {
    Val mask = v->tx->batch.mask;
    if (!mask) return v->e->in.at[i];
    Val x = vmap_operand(v, i);
    if (b_failed(v->b, x)) return VAL_FAILED;
    const ArrayType t = *b_type(v->b, x);
    Val here = b_broadcast(v->b, mask, t.rank, t.dims, (int64_t[]){0});
    return idle ? b_or(v->b, x, b_not(v->b, here)) : b_and(v->b, x, here);
}
bool vmap_check(Vmap *v) {
    Eqn e = *v->e;
    e.in = vals_joined(v->tx->cx->arena, 1, &v->e->in);
    for (uint32_t i = 0; i < e.in.n && vmap_type(v, i)->dtype == DT_bool; i++) e.in.at[i] = of_those_here(v, i, false);
    b_eqn(v->b, &e, 0, NULL);
    return !v->b->failed;
}
/* Of numbers for the message that differ, the largest of an example that fails. */
bool vmap_shape_assertion(Vmap *v) {
    Builder *b = v->b;
    Eqn e = *v->e;
    e.in = vals_joined(v->tx->cx->arena, 1, &v->e->in);
    Val good = of_those_here(v, 0, true);
    bool differs = v->batched[0] || v->tx->batch.mask;
    for (uint32_t i = 1; i < e.in.n && !b->failed; i++) {
        if (!v->batched[i]) continue;
        const ArrayType t = *b_type(b, e.in.at[i]);
        Val least = b_full(b, b_neutral(b, P_reduce_max, t.dtype), t.rank, t.dims);
        Val of_failing = differs ? b_select(b, good, e.in.at[i], least) : e.in.at[i];
        e.in.at[i] = b_reduce(b, P_reduce_max, of_failing, 1, (int64_t[]){0});
    }
    e.in.at[0] = differs ? b_reduce(b, P_reduce_and, good, 1, (int64_t[]){0}) : good;
    b_eqn(b, &e, 0, NULL);
    return !b->failed;
}
bool vmap_nothing(Vmap *v) { return true; }
/* A token is for all examples. */
bool vmap_token(Vmap *v) {
    Type type = val_type(v->tx->cx, v->read->out.at[0]);
    v->out[0] = b_eqn(v->b, v->e, 1, &type).at[0], v->out_batched[0] = false;
    return !v->b->failed;
}
bool vmap_tie(Vmap *v) {
    v->out[0] = v->e->in.at[1], v->out_batched[0] = v->batched[1];
    return true;
}

/* ---- functions that are not in the text */
bool vmap_callback(Vmap *v) {
    return tx_error(v->tx, v->e->span, "%s cannot be batched: it calls a function that is not in the text",
                    prim_name[v->e->prim]);
}
static Str method_of(const Eqn *e) {
    each(const Param, p, e->params)
        if (p->key == K_other && str_is(p->name, "vmap_method")) return p->value.kind == V_NONE ? S("") : p->value.s;
    return S("");
}
/* The axis of the examples is the slowest in memory too. */
static Value batched_layouts(Arena *arena, Value all, const bool *batched) {
    if (all.kind != V_LIST) return all;
    all.list.at = arena_copy(arena, all.list.at, all.list.n * sizeof *all.list.at);
    for (uint32_t i = 0; i < all.list.n; i++) {
        Value *one = &all.list.at[i];
        if (one->kind != V_INTS || (batched && !batched[i])) continue;
        Ints own = one->ints;
        one->ints.at = arena_new(arena, int64_t, own.n + 1);
        for (uint32_t a = 0; a < own.n; a++) one->ints.at[a] = own.at[a] + 1;
        one->ints.at[own.n] = 0, one->ints.n = own.n + 1;
    }
    return all;
}
/* As its vmap_method says. */
bool vmap_ffi_call(Vmap *v) {
    Arena *arena = v->tx->cx->arena;
    Str how = method_of(v->e);
    bool legacy = str_is(how, "legacy_vectorized"), stretched = str_is(how, "expand_dims");
    if (str_is(how, "sequential") || str_is(how, "sequential_unrolled")) return vmap_in_turn(v);
    if (!legacy && !stretched && !str_is(how, "broadcast_all"))
        return tx_error(v->tx, v->e->span, "ffi_call without a vmap_method cannot be batched");
    Eqn e = *v->e;
    Val *in = arena_new(arena, Val, e.in.n + 1);
    e.params = (Params){arena_new(arena, Param, v->e->params.n + 1), 0};
    each(const Param, p, v->e->params) {
        if (p->key == K_other && str_is(p->name, "result_avals")) continue; /* the types of one example */
        Param *own = &e.params.at[e.params.n++];
        *own = *p;
        if (p->key == K_input_layouts || p->key == K_output_layouts)
            own->value = batched_layouts(arena, p->value, legacy && p->key == K_input_layouts ? v->batched : NULL);
    }
    for (uint32_t i = 0; i < e.in.n; i++) {
        bool as_is = legacy || v->batched[i];
        Val x = e.in.at[i];
        in[i] = as_is ? x : stretched ? b_expand_dims(v->b, x, 1, (int64_t[]){0}) : vmap_operand(v, i);
    }
    return vmap_apply(v, &e, in);
}
