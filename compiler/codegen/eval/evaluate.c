#include "evaluate.h"
#include <assert.h>

/* ---- values computed already, by value (or index) and condition; valid while their scope is open. The condition
   matters for values and for indices that contain elements, since it guards loads. */
struct Memo {
    Intern keys;
    struct {
        struct {
            Reg reg;
            uint32_t serial;
        } *at;
        uint32_t n, cap;
    } all;
};
uint32_t memo_id(Eval *x, uint32_t v, uint64_t a, const Ix *index, uint32_t n) {
    bool loaded =
        v < KEY_DIM || (v == KEY_INDEX && ix_at(x->ix, (Ix)a)->data) || (v == KEY_ATOM && atom_data(x->ix, (Atom)a));
    assert(n <= MAX_RANK);
    uint32_t key[4 + MAX_RANK] = {v, loaded ? 2 * x->guard_id + x->inside : 0, (uint32_t)a, (uint32_t)(a >> 32)};
    if (n) memcpy(key + 4, index, n * sizeof *index);
    bool fresh;
    uint32_t id = intern(&x->memo->keys, key, (4 + n) * sizeof *key, &fresh);
    if (fresh) {
        __typeof__(*x->memo->all.at) none = {0};
        push(x->plan->arena, &x->memo->all, none);
    }
    return id;
}
bool memo_get(const Eval *x, uint32_t id, Reg *r) {
    uint32_t serial = x->memo->all.at[id].serial;
    *r = x->memo->all.at[id].reg;
    return serial && r->depth <= x->depth && x->serials[r->depth] == serial;
}
Reg memo_set(Eval *x, uint32_t id, Reg r) {
    x->memo->all.at[id].reg = r;
    x->memo->all.at[id].serial = x->serials[r.depth];
    return r;
}

/* ---- scopes */
void eval_open(Eval *x, const Operations *op, Plan *p, Step *s) {
    x->op = op, x->plan = p, x->step = s, x->ix = p->ix;
    x->memo = arena_new(p->arena, struct Memo, 1);
    x->memo->keys.arena = p->arena;
    x->serial = x->serials[0] = 1;
}
void eval_forget(Eval *x) { x->serials[0] = ++x->serial; }
void eval_enter(Eval *x) {
    x->depth++;
    assert(x->depth < MAX_DEPTH);
    x->serials[x->depth] = ++x->serial;
}
void eval_leave(Eval *x) {
    assert(x->depth > 0);
    x->depth--;
}
Reg eval_guard(Eval *x, Reg condition) {
    Reg before = x->guard;
    before.depth = x->guard_id; /* remembered together */
    if (x->guard.v) condition = x->op->narrowed(x, condition);
    x->guard = condition;
    x->guard_id = ++x->nguards;
    return before;
}
void eval_unguard(Eval *x, Reg before) {
    x->guard_id = before.depth;
    x->guard = before;
    x->guard.depth = x->depth;
}

/* ---- where */
Ix eval_address(Plan *p, Val v, const Ix *index) {
    const ArrayType *t = val_array(p->cx, v);
    const Info *info = plan_info(p, v);
    Dim stride = 1;
    Ix sum = info->offset;
    for (uint32_t d = t->rank; d-- > 0;) {
        Dim s = info->strides ? info->strides[d] : stride;
        sum = ix_add(p->ix, sum, ix_scale(p->ix, index[d], s));
        stride = dim_mul(p->cx->types, stride, t->dims[d]);
    }
    return sum;
}
void eval_operand(Plan *p, const Eqn *e, Val x, const Ix *index, Ix *out) {
    const ArrayType *t = val_array(p->cx, x), *y = val_array(p->cx, e->out.at[0]);
    for (uint32_t d = 0; d < t->rank; d++) out[d] = t->dims[d] == 1 && y->dims[d] != 1 ? 0 : index[d];
}

/* ---- equations */
enum { KNOWN_DEPTH = 6, UNKNOWN = -1 };
/* What a value is everywhere because the predicate is known. */
static int known_value(const Eval *x, Val v, uint32_t depth) {
    if (v == x->decided.predicate) return (int)x->decided.taken;
    const Eqn *e = val_info(x->plan->cx, v)->lit || depth == 0 ? NULL : plan_info(x->plan, v)->e;
    if (!e || (e->prim != P_and && e->prim != P_or && e->prim != P_not)) return UNKNOWN;
    int a = known_value(x, e->in.at[0], depth - 1), alone = e->prim == P_or; /* which decides the result alone */
    if (e->prim == P_not) return a == UNKNOWN ? a : !a;
    int b = known_value(x, e->in.at[1], depth - 1);
    return a == alone || b == alone ? alone : a == UNKNOWN ? a : b;
}
/* The operand that the result is because the predicate is known; 0: it takes more than one. */
static Val decided(const Eval *x, const Eqn *e) {
    bool selects = e->prim == P_select_n && e->in.n == 3;
    uint32_t n = !x->decided.predicate ? 0 : selects ? 1 : e->prim == P_and || e->prim == P_or ? 2 : 0;
    for (uint32_t i = 0; i < n; i++) {
        int known = known_value(x, e->in.at[i], KNOWN_DEPTH);
        if (known == UNKNOWN) continue;
        if (selects) return e->in.at[1 + known];
        return e->in.at[known == (e->prim == P_and) ? 1 - i : i];
    }
    return 0;
}
/* Its register is of use in the scope of the predicate only. */
static Reg decided_value(Eval *x, const Eqn *e, Val v, const Ix *index) {
    Ix at[MAX_RANK];
    eval_operand(x->plan, e, v, index, at);
    Reg r = eval_value(x, v, at);
    if (r.depth < x->decided.depth) r.depth = x->decided.depth;
    return r;
}
/* The factors of a product that is rounded once with the equation come before the other operand. */
static Reg elementwise(Eval *x, const Eqn *e, const Ix *index) {
    Reg *r = arena_new(x->plan->arena, Reg, e->in.n + 2);
    uint32_t n = 0, product = e->in.n == 2 ? x->op->product(x, e) : 2;
    for (uint32_t i = 0; i < e->in.n; i++) {
        uint32_t from = product == 1 ? 1 - i : i;
        Ix at[MAX_RANK], factor[MAX_RANK];
        eval_operand(x->plan, e, e->in.at[from], index, at);
        const Eqn *p = product < 2 && from == product ? plan_info(x->plan, e->in.at[from])->e : NULL;
        if (!p) r[n++] = eval_value(x, e->in.at[from], at);
        for (uint32_t f = 0; p && f < 2; f++) {
            Val v = p->in.at[f < p->in.n ? f : 0];
            eval_operand(x->plan, p, v, at, factor);
            r[n++] = eval_value(x, v, factor);
        }
    }
    return x->op->point(x, e, product, r, n);
}
/* All results are remembered, under no condition: what is stacked is written once. */
Reg *eval_program(Eval *x, const Eqn *e, const Ix *element) {
    const Ctx *cx = x->plan->cx;
    const Jaxpr *j = param_jaxpr(e, K_jaxpr);
    Reg *in = arena_new(x->plan->arena, Reg, e->in.n + 1), *out = arena_new(x->plan->arena, Reg, e->out.n + 1);
    Reg guard = x->guard;
    uint32_t id = x->guard_id, rank = program_rank(cx, e);
    x->guard = (Reg){0}, x->guard_id = 0;
    for (uint32_t i = 0; i < e->in.n; i++) {
        uint32_t own = val_array(cx, j->in.at[i])->rank;
        in[i].uniform = val_array(cx, e->in.at[i])->rank == own;
        if (!own) in[i] = eval_value(x, e->in.at[i], element);
    }
    x->op->program(x, e, element, in, out);
    for (uint32_t i = 0; i < e->out.n; i++) {
        Ix at[MAX_RANK] = {plan_info(x->plan, e->out.at[i])->turn};
        uint32_t more = val_array(cx, e->out.at[i])->rank - rank;
        assert(more <= 1 && more + rank <= MAX_RANK);
        memcpy(at + more, element, rank * sizeof *at);
        eval_remember(x, e->out.at[i], at, out[i]);
    }
    x->guard = guard, x->guard_id = id;
    return out;
}
static Reg equation(Eval *x, const Eqn *e, uint32_t out, const Ix *index) {
    if (prim_lower[e->prim] == LOWER_PROGRAM) {
        uint32_t stacked = val_array(x->plan->cx, e->out.at[out])->rank - program_rank(x->plan->cx, e);
        assert(index || !stacked);
        return eval_program(x, e, index + stacked)[out];
    }
    if (index_rule[e->prim]) return index_rule[e->prim](x, e, out, index);
    if (eqn_reduces(e)) return reduce_unit(x, e, index);
    if (prim_lower[e->prim] == LOWER_CUM) return eval_value(x, e->in.at[0], index); /* along an axis of extent 1 */
    Val one = decided(x, e);
    return one ? decided_value(x, e, one, index) : elementwise(x, e, index);
}
Reg eval_equation(Eval *x, const Eqn *e, uint32_t out) { return equation(x, e, out, NULL); }

/* ---- values */
static bool remembered(const Eqn *e) {
    Lower how = prim_lower[e->prim];
    return eqn_reduces(e) || how == LOWER_DOT || how == LOWER_CUM || how == LOWER_SORT;
}
/* Was it computed before, under any condition? */
static bool known(Eval *x, Val v, const Ix *index, uint32_t rank, Reg *r) {
    uint32_t guard = x->guard_id;
    x->guard_id = 0;
    bool yes = memo_get(x, memo_id(x, v, 0, index, rank), r);
    x->guard_id = guard;
    return yes;
}
Reg eval_value(Eval *x, Val v, const Ix *index) {
    const ValInfo *vi = val_info(x->plan->cx, v);
    if (vi->lit) return x->op->literal(x, v);
    uint32_t rank = type_at(x->plan->cx->types, vi->type)->rank, id = memo_id(x, v, 0, index, rank);
    const Info *info = plan_info(x->plan, v);
    Reg r;
    if (memo_get(x, id, &r)) return r;
    bool here = x->step && info->class == VAL_MEMBER && info->step == x->step->number;
    bool always = here && (remembered(info->e) || prim_lower[info->e->prim] == LOWER_PROGRAM);
    if (always && x->guard_id && known(x, v, index, rank, &r)) return r;
    bool every = here && info->row && x->step->grid.together; /* one thread stores it, all threads compute it */
    bool again = here && (!info->buf || info->level >= x->level || every);
    if (info_virtual(info, x->step) || (again && !remembered(info->e)))
        return memo_set(x, id, equation(x, info->e, info->out, index));
    return memo_set(x, id, x->op->read(x, v, index));
}
void eval_remember(Eval *x, Val v, const Ix *index, Reg r) {
    memo_set(x, memo_id(x, v, 0, index, val_array(x->plan->cx, v)->rank), r);
}
Reg eval_element(Eval *x, const IxValue *v) {
    Reg guard = x->guard;
    uint32_t id = x->guard_id;
    bool scalar = val_array(x->plan->cx, v->v)->rank == 0; /* so may be one of a program that differs between lanes */
    if (scalar) x->guard = (Reg){0}, x->guard_id = 0;      /* a scalar can always be read */
    Reg r = eval_value(x, v->v, v->at);
    x->guard = guard, x->guard_id = id;
    return r;
}
