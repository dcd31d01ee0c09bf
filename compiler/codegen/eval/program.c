#include "program.h"
#include "../cost.h"
#include "../../passes/eval.h"
#include <assert.h>

/* ---- which values differ between the lanes, and which are used */
static bool mark(const Marks *m, Vals to, uint32_t i, bool yes) {
    bool *at = &m->varies[to.at[i] - m->first], changed = yes && !*at;
    *at |= yes;
    return changed;
}
static bool mark_eqns(const Marks *m, Eqns eqns);
static bool mark_consts(const Marks *m, Vals to, Vals from) {
    bool changed = false;
    for (uint32_t i = 0; i < to.n; i++) {
        changed |= mark(m, to, i, program_varies(m, from.at[i]));
        uint32_t array = program_array(m, from.at[i]);
        assert(!array || m->arrays);
        if (array) m->arrays[to.at[i] - m->first] = array;
    }
    return changed;
}
/* A carry that the loop counts is the same in all lanes that still run. If the others go on without it, it is so only
   where no result says how far each lane got. */
static bool mark_while(const Marks *m, const Eqn *q) {
    const While w = while_of(q), turn = while_turn(&w, w.cond, w.body);
    bool changed = mark_consts(m, turn.cond_consts, w.cond_consts), again = true;
    changed |= mark_consts(m, turn.body_consts, w.body_consts);
    while (again) {
        again = mark_eqns(m, w.cond->eqns);
        bool masked = program_varies(m, w.cond->out.at[0]);
        for (uint32_t i = 0; i < w.carry.n; i++) {
            bool yes = program_varies(m, w.carry.at[i]) || program_varies(m, turn.end.at[i]) ||
                       (masked && m->uses[w.end.at[i] - m->first]);
            again |= mark(m, turn.carry, i, yes) | mark(m, turn.tested, i, yes) | mark(m, w.end, i, yes);
        }
        again |= mark_eqns(m, w.body->eqns);
        changed |= again;
    }
    return changed;
}
static bool mark_scan(const Marks *m, const Eqn *q) {
    const Scan c = scan_of(q), turn = scan_turn(&c, c.body);
    bool changed = mark_consts(m, turn.consts, c.consts), again = true;
    while (again) {
        again = false;
        for (uint32_t i = 0; i < c.carry.n; i++) {
            bool yes = program_varies(m, c.carry.at[i]) || program_varies(m, turn.end.at[i]);
            again |= mark(m, turn.carry, i, yes) | mark(m, c.end, i, yes);
        }
        again |= mark_eqns(m, c.body->eqns);
        changed |= again;
    }
    return changed;
}
static bool mark_eqns(const Marks *m, Eqns eqns) {
    bool changed = false;
    each(Eqn, q, eqns) {
        bool yes = false;
        if (q->prim == P_while || q->prim == P_scan) {
            changed |= q->prim == P_while ? mark_while(m, q) : mark_scan(m, q);
            continue;
        }
        each(Val, v, q->in) yes |= program_varies(m, *v);
        changed |= mark(m, q->out, 0, yes);
    }
    return changed;
}
static void use_values(const Marks *m, Vals vals) {
    each(Val, v, vals) {
        if (val_info(m->plan->cx, *v)->lit) continue;
        uint8_t *n = &m->uses[*v - m->first];
        *n += *n < 2;
    }
}
static void use_all(const Marks *m, const Jaxpr *j) {
    each(Eqn, q, j->eqns) {
        use_values(m, q->in);
        each(Val, v, q->out) m->makers[*v - m->first] = q;
        if (q->prim == P_scan) use_all(m, scan_of(q).body);
        if (q->prim != P_while) continue;
        use_all(m, while_of(q).cond);
        use_all(m, while_of(q).body);
    }
    use_values(m, j->out);
}
static void mark_all(const Marks *m, const Jaxpr *j, const bool *inputs) {
    for (uint32_t i = 0; i < j->in.n; i++) mark(m, j->in, i, inputs[i]);
    use_all(m, j);
    mark_eqns(m, j->eqns);
}
static Marks marks_new(Plan *p, const Jaxpr *j, bool arrays) {
    Val first, last;
    jaxpr_range(p->cx, j, &first, &last);
    uint32_t n = last - first + 1;
    return (Marks){.plan = p,
                   .first = first,
                   .n = n,
                   .varies = arena_new(p->arena, bool, n),
                   .uses = arena_new(p->arena, uint8_t, n),
                   .makers = arena_new(p->arena, const Eqn *, n),
                   .arrays = arrays ? arena_new(p->arena, uint32_t, n) : NULL};
}
Marks program_marks(Plan *p, const Jaxpr *j, const bool *inputs) {
    Marks m = marks_new(p, j, false);
    mark_all(&m, j, inputs);
    return m;
}
Marks program_marks_at(Plan *p, const Eqn *e, const Ix *element, const bool *inputs) {
    const Jaxpr *j = param_jaxpr(e, K_jaxpr);
    Marks m = marks_new(p, j, program_has_arrays(p->cx, e));
    m.e = e, m.element = element, m.rank = program_rank(p->cx, e);
    for (uint32_t i = 0; i < j->in.n; i++)
        if (val_array(p->cx, j->in.at[i])->rank) {
            assert(m.arrays);
            m.arrays[j->in.at[i] - m.first] = i + 1;
        }
    mark_all(&m, j, inputs);
    return m;
}

/* ---- cases that are not taken */
static bool has_cases(const Marks *m, const Eqn *q) {
    bool two = q->prim == P_select_n && q->in.n == 3 && !val_info(m->plan->cx, q->in.at[0])->lit;
    return two && val_array(m->plan->cx, q->in.at[0])->dtype == DT_bool && program_varies(m, q->out.at[0]) &&
           !program_varies(m, q->in.at[0]);
}
/* What is known of a value after the equations behind it: nothing reads it, one case alone, or others. */
typedef struct {
    Case only;
    bool read, others;
} Needed;
static void needs(const Marks *m, Needed *by, Val v, Case by_case) {
    if (val_info(m->plan->cx, v)->lit) return;
    Needed *n = &by[v - m->first];
    bool same = n->only.select == by_case.select && n->only.taken == by_case.taken;
    n->others |= !by_case.select || (n->read && !same);
    n->read = true, n->only = by_case;
}
static void needs_operands(const Marks *m, Needed *by, const Eqn *q, Case *of) {
    const Needed *y = &by[q->out.at[0] - m->first];
    if (q->out.n == 1 && prim_elementwise(q->prim) && y->read && !y->others) *of = y->only;
    bool parts = !of->select && has_cases(m, q);
    for (uint32_t i = 0; i < q->in.n; i++)
        needs(m, by, q->in.at[i], parts && i ? (Case){.select = q, .taken = i - 1} : *of);
}
Case *program_cases(const Marks *m, const Jaxpr *j) {
    bool any = false;
    each(Eqn, q, j->eqns) any |= has_cases(m, q);
    if (!any) return NULL;
    Needed *by = arena_new(m->plan->arena, Needed, m->n);
    Case *of = arena_new(m->plan->arena, Case, j->eqns.n);
    uint32_t *cost = arena_new(m->plan->arena, uint32_t, 2 * j->eqns.n);
    each(Val, v, j->out) needs(m, by, *v, (Case){0});
    for (uint32_t i = j->eqns.n; i-- > 0;) needs_operands(m, by, &j->eqns.at[i], &of[i]);
    for (uint32_t i = 0; i < j->eqns.n; i++)
        if (of[i].select) cost[2 * (of[i].select - j->eqns.at) + of[i].taken] += eqn_cost(&j->eqns.at[i]);
    for (uint32_t i = 0; i < j->eqns.n; i++) of[i].parted = cost[2 * i] >= CASE_COST || cost[2 * i + 1] >= CASE_COST;
    for (uint32_t i = j->eqns.n; i-- > 0;) {
        if (!of[i].select) continue;
        Case *select = &of[of[i].select - j->eqns.at];
        of[i].next = select->first[of[i].taken], select->first[of[i].taken] = i + 1;
        if (!select->parted) of[i].select = NULL;
    }
    return of;
}

/* ---- arrays, read at places that the program computes */
bool program_has_arrays(const Ctx *cx, const Eqn *e) {
    const Jaxpr *j = param_jaxpr(e, K_jaxpr);
    each(Val, v, j->in)
        if (val_array(cx, *v)->rank) return true;
    each(Val, v, j->out)
        if (val_array(cx, *v)->rank) return true;
    return false;
}
/* The place along an axis that an integer of the program says, clamped: an element of an array that has the elements'
   axes if the lanes differ. */
static Ix place(Eval *x, const Marks *m, Val v, Dim extent) {
    Scalar known = {0};
    Dim last = dim_sub(m->plan->cx->types, extent, 1);
    bool literal = val_info(m->plan->cx, v)->lit && scalar_of(m->plan->cx, v, &known);
    if (literal && (scalar_int(known) == 0 || (dim_is_const(last) && scalar_int(known) <= last)))
        return ix_dim(x->ix, scalar_int(known));
    return ix_value(x->ix, (IxValue){v, program_varies(m, v) ? m->rank : 0, m->element, last, false});
}
/* The array has the axes of the elements last, unless they share it. */
Reg program_read(Eval *x, const Marks *m, const Eqn *q) {
    const Ctx *cx = m->plan->cx;
    const ArrayType *t = val_array(cx, q->in.at[0]);
    assert(program_array(m, q->in.at[0]));
    Val whole = m->e->in.at[program_array(m, q->in.at[0]) - 1];
    uint32_t rank = val_array(cx, whole)->rank;
    Ix index[MAX_RANK];
    assert(rank <= MAX_RANK);
    for (uint32_t d = 0; d < t->rank; d++) index[d] = place(x, m, q->in.at[1 + d], t->dims[d]);
    for (uint32_t d = t->rank; d < rank; d++) index[d] = m->element[d - t->rank];
    return eval_value(x, whole, index);
}
void program_read_all(Eval *x, const Marks *m, Eqns eqns) {
    each(Eqn, q, eqns) {
        if (q->prim == P_element) program_read(x, m, q);
        if (q->prim == P_scan) program_read_all(x, m, scan_of(q).body->eqns);
        if (q->prim != P_while) continue;
        program_read_all(x, m, while_of(q).cond->eqns);
        program_read_all(x, m, while_of(q).body->eqns);
    }
}
