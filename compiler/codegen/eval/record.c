#include "record.h"
#include "gather.h"
#include "program.h"

struct Recorder {
    Eval x;
    Seen *seen;
    SeenEdge *edge;   /* NULL: edges are not reported */
    SeenPoint *point; /* NULL: equations are not reported */
    void *user;
};
static struct Recorder *of(Eval *x) { return (struct Recorder *)x; }

static const Reg nothing = {0};
static Reg literal(Eval *x, Val v) { return nothing; }
static Reg read(Eval *x, Val v, const Ix *index) {
    bool stored = plan_info(x->plan, v)->buf;
    of(x)->seen(of(x)->user, v, index, stored ? eval_address(x->plan, v, index) : 0);
    return nothing;
}
static uint32_t product(Eval *x, const Eqn *e) { return 2; }
static Reg point(Eval *x, const Eqn *e, uint32_t product_, const Reg *in, uint32_t n) {
    if (of(x)->point) of(x)->point(of(x)->user, e);
    return nothing;
}
static void program(Eval *x, const Eqn *e, const Ix *element, const Reg *in, Reg *out) {
    const Jaxpr *j = param_jaxpr(e, K_jaxpr);
    if (of(x)->point) of(x)->point(of(x)->user, e);
    if (!program_has_arrays(x->plan->cx, e)) return;
    bool *varies = arena_new(x->plan->arena, bool, e->in.n + 1);
    for (uint32_t i = 0; i < e->in.n; i++)
        varies[i] = val_array(x->plan->cx, e->in.at[i])->rank > val_array(x->plan->cx, j->in.at[i])->rank;
    Marks m = program_marks_at(x->plan, e, element, varies);
    program_read_all(x, &m, j->eqns);
}
static Reg constant(Eval *x, Dtype d, double v) { return nothing; }
static Reg fill(Eval *x, const Eqn *gather) { return nothing; }
static void index_seen(Eval *x, Ix i) { of(x)->seen(of(x)->user, 0, NULL, i); }
static Reg index_value(Eval *x, Ix i, Dtype d) { return index_seen(x, i), nothing; }
static Reg between(Eval *x, Ix i, Dim lo, Dim hi) { return index_seen(x, i), nothing; }
static Reg inside(Eval *x, const IxValue *v, Reg element) { return nothing; }
static Reg both(Eval *x, Reg a, Reg b) { return nothing; }
static Reg narrowed(Eval *x, Reg condition) { return nothing; }
static Reg choose(Eval *x, Reg condition, Reg yes, Reg no) { return nothing; }
static void edge(Eval *x, Ix i, Dim lo, Dim hi) {
    if (of(x)->edge) of(x)->edge(of(x)->user, i, lo, hi);
}
static void place(Eval *x, const IxValue *v) { eval_value(x, v->v, v->at); }

static const Operations operations = {literal, read,   product, point,    program, constant, fill, index_value,
                                      between, inside, both,    narrowed, choose,  edge,     place};

Eval *record(Plan *p, Step *s, Seen *seen, void *user) {
    if (!p->recorder) {
        p->recorder = arena_new(p->arena, struct Recorder, 1);
        eval_open(&p->recorder->x, &operations, p, NULL);
    }
    eval_forget(&p->recorder->x);
    p->recorder->x.step = s;
    p->recorder->seen = seen, p->recorder->user = user;
    return &p->recorder->x;
}
void record_edges(Plan *p, SeenEdge *to) { p->recorder->edge = to; }
void record_points(Plan *p, SeenPoint *to) { p->recorder->point = to; }
void record_place(Eval *x, const Store *st, const Ix *index) {
    if (st->scatter) {
        Window w;
        window_at(x->plan, st->scatter, index, &w);
        for (uint32_t i = 0; i < w.n; i++) place(x, &w.position[i]);
    }
    const IxExpr at = *ix_at(x->ix, st->offset);
    for (uint32_t i = 0; i < at.n; i++) {
        const AtomInfo *a = atom_at(x->ix, at.at[i].atom);
        if (a->kind == ATOM_VALUE) place(x, &a->value);
    }
}
