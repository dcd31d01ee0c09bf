#include "call.h"
#include "../../control.h"
#include <assert.h>

/* A function is NAME.function_N(symbols, operands, results, workspace, heap): arrays and scalars are pointers, its
   workspace is a part of the caller's, which calls one after the other share.

   Some results are an operand with elements overwritten. The function expects the operand in the memory of the result:
   the caller passes the memory of its operand if that is its own and nothing reads it later, else a copy. So a loop
   that carries a large array through a function copies it once at most, like a loop whose body is part of the caller.
   But of an argument of the entry, or of an operand that is read again, each call makes a copy. */

/* ---- finding them */
static void add_callee(Callees *cs, const Jaxpr *program) {
    bool fresh;
    intern(&cs->numbers, &program, sizeof program, &fresh);
    if (!fresh) return;
    Callee *callee = arena_new(cs->cx->arena, Callee, 1);
    *callee =
        (Callee){.number = cs->all.n, .program = program, .signature = signature_within(cs->cx, cs->symbols, program)};
    push(cs->cx->arena, &cs->all, callee);
}
Str callee_name(const Callees *cs, const Callee *c) {
    return str_format(cs->cx->arena, "%s.function_%u", cs->name, c->number);
}
Callees *callees_of(Ctx *cx, const Program *program, const Target *target) {
    const Jaxpr *j = program->j;
    Callees *cs = arena_new(cx->arena, Callees, 1);
    *cs = (Callees){.cx = cx, .target = target, .symbols = program_symbols(cx, j)};
    cs->name = program->name;
    cs->numbers.arena = cx->arena;
    Jaxprs within = jaxprs_within(cx->arena, j);
    each(Jaxpr *, k, within)
        each(const Eqn, e, (*k)->eqns)
            if (calls_function(e)) add_callee(cs, eqn_program(e));
    return cs;
}
const Callee *callee_of(const Callees *cs, const Eqn *e) {
    const Jaxpr *program = calls_function(e) ? eqn_program(e) : NULL;
    uint32_t number = 0;
    bool known = program && intern_find(&cs->numbers, &program, sizeof program, &number);
    assert(known || !program);
    return known ? cs->all.at[number] : NULL;
}

/* ---- a function */

/* The inputs whose memory results might use, all distinct. */
static void find_over(const Callees *cs, Callee *c) {
    const Jaxpr *j = c->program;
    Ctx *cx = cs->cx;
    bool *taken = arena_new(cx->arena, bool, j->in.n + 1);
    c->over = arena_new(cx->arena, uint32_t, j->out.n + 1);
    for (uint32_t k = 0; k < j->out.n; k++) {
        Val v = plan_origin(cs, j, j->out.at[k]);
        uint32_t i = 0;
        while (i < j->in.n && j->in.at[i] != v) i++;
        bool ok = i < j->in.n && !taken[i] && val_array(cx, v)->rank && val_type(cx, v) == val_type(cx, j->out.at[k]);
        ok = ok && !dim_has_bound(cx->types, type_size(cx->types, val_type(cx, v)));
        c->over[k] = ok ? i : NOT_OVER;
        if (ok) taken[i] = true;
    }
}
/* Keeps only those that are returned in that memory: the others would be copied twice. Without them others may fail:
   then none is kept, so that there are three plans at most. */
Plan *callee_plan(Callees *cs, Callee *c) {
    find_over(cs, c);
    for (uint32_t round = 0;; round++) {
        Plan *p = plan(cs, c->program, c->over);
        bool all = true;
        for (uint32_t k = 0; p && k < c->program->out.n; k++) {
            if (c->over[k] == NOT_OVER) continue;
            if (same_buf(plan_info(p, c->program->out.at[k])->buf, p->over[k])) continue;
            c->over[k] = NOT_OVER;
            all = false;
        }
        if (all) return p;
        for (uint32_t k = 0; round && k < c->program->out.n; k++) c->over[k] = NOT_OVER;
    }
}
/* ---- a call, planned */

/* For a result that is an overwritten operand: memory that contains it and that the function may write. */
static Buf *given(Plan *p, Body *b, const Eqn *e, uint32_t operand) {
    Val v = e->in.at[operand];
    bool computed = !val_info(p->cx, v)->lit && plan_info(p, v)->class != VAL_VIRTUAL;
    if (computed) plan_stored(p, b, v);
    Buf *own = computed ? plan_owned(p, v, e) : NULL;
    if (!own) return plan_copied(p, b, v);
    own->written = true;
    return own;
}
static Buf *operand(Plan *p, Body *b, Val v, bool *in_register) {
    const Info *info = plan_info(p, v);
    bool lit = val_info(p->cx, v)->lit;
    *in_register = plan_register(p, v) && (lit || (info->class == VAL_SCALAR && !info->buf));
    return *in_register ? buf_for(p, BUF_WORK, v) : plan_dense(p, b, v);
}
bool plan_call(Plan *p, Body *b, const Eqn *e) {
    const Callee *c = callee_of(p->callees, e);
    struct Call *call = arena_new(p->arena, struct Call, 1);
    uint32_t n = e->in.n + e->out.n;
    Buf **arrays = arena_new(p->arena, Buf *, n + 1);
    *call = (struct Call){.callee = c, .registers = arena_new(p->arena, bool, e->in.n + 1)};
    for (uint32_t k = 0; k < e->out.n; k++)
        if (c->over[k] == NOT_OVER)
            arrays[e->in.n + k] = buf_for(p, BUF_WORK, e->out.at[k]);
        else
            arrays[e->in.n + k] = arrays[c->over[k]] = given(p, b, e, c->over[k]);
    for (uint32_t i = 0; i < e->in.n; i++)
        if (!arrays[i]) arrays[i] = operand(p, b, e->in.at[i], &call->registers[i]);
    Step *s = step_new(p, b, STEP_CALL, e, NULL);
    if (c->workspace != 0) arrays[n] = call->workspace = buf_new(p, BUF_WORK, c->workspace);
    s->arrays = arrays, s->narrays = n + 1;
    s->call = call;
    p->heap |= c->heap;
    for (uint32_t k = 0; k < e->out.n; k++) step_result(p, s, k, arrays[e->in.n + k]);
    return true;
}
