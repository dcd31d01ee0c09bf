/* Expands composite primitives: the EXPAND rows of prims.def, whose rules are in rules/. What a rule writes is expanded
   in turn. */
#include "build.h"

#define EXPAND(f) expand_##f
ExpandRule *const expand_rules[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) [P_##id] = lowering,
#include "../prims.def"
};

enum { MOST_DEPTH = 64 };
typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo; /* by program and mesh */
    const MeshAxis *mesh;
    Intern names, meshes; /* of axes; of meshes by content, including enclosing ones */
    Consts *consts;       /* of the program that is being written */
    Tables *tables;
    uint32_t depth;
    bool failed;
} Expand;

static Jaxpr *expand_jaxpr(void *user, const Jaxpr *j);

static void expand_eqn(Expand *x, Eqns *to, const Eqn *e) {
    Ctx *cx = x->cx;
    ExpandRule *rule = expand_rules[e->prim] ? expand_rules[e->prim] : expand_some;
    const MeshAxis *outer = x->mesh;
    x->mesh = mesh_of(cx, e, outer);
    Eqn new = eqn_rewrite(&x->map, e, expand_jaxpr, x);
    x->mesh = outer;
    Builder b = {.cx = cx, .mesh = x->mesh, .tables = x->tables, .span = e->span, .whole = e->whole};
    Val *out = arena_new(cx->arena, Val, e->out.n + 1);
    if (!rule(&b, &new, out) || b.failed) {
        x->failed = true;
        return;
    }
    bool same = rule == expand_some && !out[0];
    for (uint32_t i = 0; i < e->out.n && !same && !b.failed; i++) out[i] = b_as_declared(&b, out[i], e->out.at[i]);
    x->failed |= b.failed;
    add_consts(cx->arena, x->consts, (Vals){b.consts.at, b.consts.n});
    if (same) {
        push(cx->arena, to, new);
        return;
    }
    if (++x->depth > MOST_DEPTH) x->failed = !diag(cx->diags, e->span, "%s: expanded too often", prim_name[e->prim]);
    for (uint32_t i = 0; i < b.eqns.n && !x->failed; i++) expand_eqn(x, to, &b.eqns.at[i]);
    x->depth--;
    for (uint32_t i = 0; i < e->out.n; i++) val_replace(&x->map, to, e->out.at[i], valmap_get(&x->map, out[i]));
}
/* Equal meshes have equal numbers; 0: none. */
static uint64_t mesh_number(Expand *x, const MeshAxis *m) {
    if (!m) return 0;
    uint64_t key[] = {intern(&x->names, m->name.at, m->name.n, NULL),
                      (uint64_t)m->extent,
                      (uint64_t)m->stride,
                      m->at,
                      m->region,
                      mesh_number(x, m->outer)};
    return 1 + (uint64_t)intern(&x->meshes, key, sizeof key, NULL);
}
static Jaxpr *expand_jaxpr(void *user, const Jaxpr *j) {
    Expand *x = user;
    uint64_t key[2] = {(uintptr_t)j, mesh_number(x, x->mesh)}; /* the meaning of collectives depends on the axes */
    if (*memo_at(&x->memo, key, sizeof key)) return *memo_at(&x->memo, key, sizeof key);
    Eqns eqns = eqns_for(x->cx, j);
    Consts consts = {0}, *outer = x->consts;
    Tables tables = {0}, *known = x->tables;
    add_consts(x->cx->arena, &consts, j->consts);
    x->consts = &consts, x->tables = &tables;
    for (uint32_t i = 0; i < j->eqns.n; i++) expand_eqn(x, &eqns, &j->eqns.at[i]); /* reports all errors */
    x->consts = outer, x->tables = known;
    Jaxpr *new = jaxpr_with(x->cx, j, eqns, vals_rewrite(&x->map, j->out));
    new->consts = (Vals){consts.at, consts.n};
    return *memo_at(&x->memo, key, sizeof key) = new;
}
Jaxpr *pass_expand(Ctx *cx, const Jaxpr *j) {
    Expand x = {.cx = cx, .map.cx = cx, .memo.arena = cx->arena};
    x.names.arena = x.meshes.arena = cx->arena;
    Jaxpr *new = expand_jaxpr(&x, j);
    return x.failed ? NULL : new;
}
