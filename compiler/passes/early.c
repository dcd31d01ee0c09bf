/* Equations with small results come as early as their operands allow:

     y = sub x m                      v = rsqrt u
     v = rsqrt u           becomes    y = sub x m
     z = mul y v[None]                z = mul y v[None]

   An equation joins the kernel that computes its operands only if all else that it reads is computed before it: here y
   and z are one kernel, though the program has something small between them. Scalars come before all arrays first, then
   small arrays before large ones. The others stay in their order. */
#include "../options.h"
#include "rewrite.h"
#include <assert.h>

/* Elements of the largest result that counts as small; of all those of a program that may come before large ones, since
   they are in memory until they are read, and of all scalars. */
enum { SMALL_RESULT = 4096, MOST_MOVED = 1 << 16 };

typedef struct {
    Ctx *cx;
    Memo memo;
    Effects effects;
    Dim small;       /* elements of the largest result that counts as small now */
    uint32_t *after; /* by value: how many equations with large results come before it, one that computes it included */
} Early;

static bool is_large(const Early *p, const Eqn *e) {
    each(const Val, v, e->out) {
        Dim n = type_size(p->cx->types, val_type(p->cx, *v));
        if (!dim_is_const(n) || n > p->small) return true;
    }
    return false;
}
/* Of an equation without large results. */
static Dim size_of(const Early *p, const Eqn *e) {
    Dim n = 0;
    each(const Val, v, e->out) n += type_size(p->cx->types, val_type(p->cx, *v));
    return n;
}
static bool moves(Early *p, const Eqn *e) {
    Lower how = prim_lower[e->prim];
    bool simple = prim_elementwise(e->prim) || how == LOWER_INDEX || how == LOWER_REDUCE || how == LOWER_ARG;
    return simple && e->out.n && !is_large(p, e) && !eqn_has_effects(&p->effects, e);
}
typedef struct {
    const uint32_t *after;
    uint32_t latest;
} Latest;
static void latest(void *user, Val v) {
    Latest *l = user;
    if (l->after[v] > l->latest) l->latest = l->after[v];
}

static Jaxpr *early_jaxpr(void *user, const Jaxpr *j) {
    Early *p = user;
    const ValMap same = {.cx = p->cx};
    if (*memo_slot(&p->memo, j)) return *memo_slot(&p->memo, j);
    uint32_t n = j->eqns.n, stay = 0;
    Dim left = MOST_MOVED;
    uint32_t *group = arena_new(p->cx->arena, uint32_t, n + 1), *place = arena_new(p->cx->arena, uint32_t, n + 2);
    for (uint32_t i = 0; i < n; i++) {
        const Eqn *e = &j->eqns.at[i];
        Latest l = {.after = p->after};
        eqn_takes(p->cx, e, latest, &l);
        assert(l.latest <= stay);
        stay += is_large(p, e);
        bool early = moves(p, e) && (l.latest == stay || size_of(p, e) <= left);
        if (early && l.latest < stay) left -= size_of(p, e);
        group[i] = early ? l.latest : stay;
        each(const Val, v, e->out) p->after[*v] = group[i];
        place[group[i] + 1]++;
    }
    for (uint32_t g = 1; g <= stay; g++) place[g] += place[g - 1];
    Eqns eqns = eqns_for(p->cx, j);
    eqns.n = n;
    for (uint32_t i = 0; i < n; i++) eqns.at[place[group[i]]++] = eqn_rewrite(&same, &j->eqns.at[i], early_jaxpr, p);
    return *memo_slot(&p->memo, j) = jaxpr_with(p->cx, j, eqns, j->out);
}

Jaxpr *pass_early(Ctx *cx, const Jaxpr *j) {
    if (options_for_device(cx->options)) return jaxpr_with(cx, j, j->eqns, j->out);
    static const Dim small[] = {1, SMALL_RESULT};
    Jaxpr *now = NULL;
    for (uint32_t i = 0; i < sizeof small / sizeof *small; i++) {
        uint32_t *after = arena_new(cx->arena, uint32_t, cx->nvals + 1);
        Early p = {.cx = cx, .memo.arena = cx->arena, .effects.cx = cx, .small = small[i], .after = after};
        now = early_jaxpr(&p, now ? now : j);
    }
    return now;
}
