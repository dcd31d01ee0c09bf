/* Calls become their bodies: jit, remat, custom_jvp_call and so on, and a cond whose index is a literal. Bodies are
   inlined bottom-up and memoized, so that a body called in many places is processed once; each call then gets a copy
   with its own values. Equations that return their operands (SAME in prims.def) are removed.

   Functions that call functions twice grow as 2^depth. A program whose copies would be too large (count.h) is not
   copied: its calls stay calls, all of them jit[name jaxpr], which later passes treat like loops and branches. Programs
   that cannot be called so are copied nevertheless, and the size of the result has a limit. */
#include "count.h"
#include "rewrite.h"
#include "../typecheck/rule.h"

typedef struct {
    Ctx *cx;
    ValMap map;
    Counts counts;
    bool whole;   /* no call stays, as in programs that say how elements are combined */
    Memo memo[2]; /* by `whole` */
    bool failed;
} Inline;

static Jaxpr *inline_jaxpr(void *user, const Jaxpr *j);

static bool known(Vals consts, const Ctx *cx) {
    each(Val, v, consts)
        if (!val_info(cx, *v)->data) return false;
    return true;
}
/* Programs of control flow must not have constants with unknown values. */
static bool nested_ok(Ctx *cx, const Eqn *e) {
    Jaxprs subs = eqn_jaxprs(cx->arena, e);
    each(Jaxpr *, j, subs)
        if (*j && !known((*j)->consts, cx))
            return diag(cx->diags, (*j)->span.n ? (*j)->span : e->span,
                        "%s: constants inside a nested program are not supported yet", prim_name[e->prim]);
    return true;
}

/* The operands of a differentiated remat, by an equation each that cse keeps apart: its body is computed again. */
static Vals operands_again(Inline *in, Eqns *to, const Eqn *e, Vals operands) {
    Ctx *cx = in->cx;
    const Param *prevents = param_find(e, K_prevent_cse);
    bool off = prevents && prevents->value.kind == V_BOOL && !prevents->value.i;
    if (!prim_is(e->prim, REMAT) || off || !param_bool(e, K_differentiated)) return operands;
    Vals new = {arena_new(cx->arena, Val, operands.n + 1), operands.n};
    for (uint32_t i = 0; i < operands.n; i++) {
        Val v = new.at[i] = operands.at[i];
        if (val_info(cx, v)->lit || dim_is_bound(cx->types, v) || type_is_ref(cx, val_type(cx, v))) continue;
        Vals both = {arena_new(cx->arena, Val, 2), 1};
        both.at[0] = v, both.at[1] = new.at[i] = val_new(cx, val_type(cx, v), e->span);
        Vals out = {both.at + 1, 1};
        push(cx->arena, to, ((Eqn){.prim = P_again, .span = e->span, .whole = e->whole, .in = both, .out = out}));
    }
    return new;
}
static bool inline_call(Inline *in, Eqns *to, Consts *consts, const Eqn *e, const Jaxpr *called, Vals operands) {
    bool stays = !in->whole && count_of(&in->counts, called)->function;
    Jaxpr *body = inline_jaxpr(in, called);
    if (!body) return false;
    if (stays) {
        Eqn call = eqn_call(&in->map, e, body, operands);
        if (!nested_ok(in->cx, &call)) return false;
        push(in->cx->arena, to, call);
        return true;
    }
    add_consts(in->cx->arena, consts, body->consts);
    Vals values = operands_again(in, to, e, vals_rewrite(&in->map, operands));
    return jaxpr_splice_call(&in->map, to, body, values, e);
}

/* Appends the equations that replace `e`; false after a diagnostic. */
static bool inline_eqn(void *user, Eqns *to, Consts *consts, const Eqn *e) {
    Inline *in = user;
    Vals operands;
    const Jaxpr *body = eqn_body(in->cx->arena, e, &operands);
    if (!body) body = known_branch(&in->map, e, &operands);
    if (body) return inline_call(in, to, consts, e, body, operands);
    if (prim_lower[e->prim] == LOWER_SAME) {
        results_replace(&in->map, to, e);
    } else if (prim_lower[e->prim] != LOWER_CALL) {
        bool outer = in->whole;
        in->whole = outer || !runs_programs(e->prim);
        Eqn new = eqn_rewrite(&in->map, e, inline_jaxpr, in);
        in->whole = outer;
        if (in->failed || !nested_ok(in->cx, &new)) return false;
        name_indices(in->cx, to, &new);
        push(in->cx->arena, to, new);
    } else {
        return diag(in->cx->diags, e->span, "primitive '%s' is not supported yet", prim_name[e->prim]);
    }
    return true;
}

static Jaxpr *inline_jaxpr(void *user, const Jaxpr *j) {
    Inline *in = user;
    Jaxpr *new = in->failed ? NULL : jaxpr_rewrite(&in->map, &in->memo[in->whole], j, inline_eqn, in);
    in->failed = !new;
    return new;
}

Jaxpr *pass_inline(Ctx *cx, const Jaxpr *j) {
    Inline in = {.cx = cx, .map.cx = cx, .memo = {{.arena = cx->arena}, {.arena = cx->arena}}};
    in.counts = counts_of(cx, j, COUNT_CALLS, may_stay_call, cx);
    return inline_jaxpr(&in, j);
}
