/* Warnings that need one program at a time: unused inputs, branches that never run, symbols that may be meant to be
   variables. The program is walked once. */
#include "lint.h"
#include "control.h"
#include "options.h"

typedef struct {
    Ctx *cx;
    Intern programs;   /* Jaxpr pointers */
    const Lit **known; /* by value: the constant result of an equation */
    bool *used;        /* by value of the main program */
    Intern names;      /* of symbols and scalars */
    Span before;    /* the place that shows that JAX before 0.5 printed the text; n = 0: none, or it does not matter */
    Intern symbols; /* (program, name) */
    struct {
        Val *at;
        uint32_t n, cap;
    } symbol_of; /* by number in `symbols`: the first value whose type contains it; 0: warned */
} Lint;

/* ---- dimensions */

typedef struct {
    Lint *l;
    const Jaxpr *j;
    Val v;
} TypeOf;

static uint32_t symbol_number(Lint *l, const Jaxpr *j, Str name, bool *fresh) {
    uintptr_t key[2] = {(uintptr_t)j, intern(&l->names, name.at, name.n, NULL)};
    return intern(&l->symbols, key, sizeof key, fresh);
}

/* Notes symbols, and marks variables as used. */
static Dim visit_atom(void *user, Dim atom) {
    TypeOf *t = user;
    const DimExpr *d = dim_at(t->l->cx->types, atom);
    bool fresh = false;
    if (d->kind == DIM_BOUND) t->l->used[d->val] = true;
    if (d->kind == DIM_SYMBOL) symbol_number(t->l, t->j, d->name, &fresh);
    if (fresh) push(t->l->cx->arena, &t->l->symbol_of, t->v);
    return atom;
}

static void visit_dims(Lint *l, const Jaxpr *j, Val v, const Dim *dims, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!dim_is_const(dims[i])) dim_substitute(l->cx->types, dims[i], visit_atom, &(TypeOf){l, j, v});
}

/* A scalar with the name of a symbol in an earlier type, which may be what was meant. */
static void lint_scalar(Lint *l, const Jaxpr *j, Val v) {
    const ValInfo *info = val_info(l->cx, v);
    bool fresh;
    if (!info->name.n) return;
    uint32_t number = symbol_number(l, j, info->name, &fresh);
    if (fresh) push(l->cx->arena, &l->symbol_of, 0);
    Val first = l->symbol_of.at[number];
    if (!first) return;
    l->symbol_of.at[number] = 0;
    diag_warn(l->cx->diags, W_dimension_bound_later, info->span,
              "dimension '%.*s' is a symbol, not this variable, which is bound after it", SF(info->name));
    diag_note(l->cx->diags, val_info(l->cx, first)->span, "in the type of '%.*s'", SF(val_name(l->cx, first)));
}

static void lint_binders(Lint *l, const Jaxpr *j, Vals vals) {
    each(Val, v, vals) {
        const ArrayType *t = val_array(l->cx, *v);
        DtypeKind kind = dtype_info[t->dtype].kind;
        if (t->rank == 0 && (kind == DK_SINT || kind == DK_UINT) && l->symbol_of.n) lint_scalar(l, j, *v);
        visit_dims(l, j, *v, t->dims, t->rank);
    }
}

/* ---- branches */

/* The constant value of an operand; NULL if it is not constant. */
static const Lit *known(const Lint *l, Val v) {
    const Lit *lit = val_info(l->cx, v)->lit;
    return lit ? lit : l->known[v];
}

static int64_t clamp(const Lit *lit, int64_t most) {
    if (lit->negative) return 0;
    return lit->i > (uint64_t)most ? most : (int64_t)lit->i;
}

/* JAX prints equations that clamp or convert an index. */
static void note_known(Lint *l, const Eqn *e) {
    bool converts = e->prim == P_convert_element_type || e->prim == P_copy;
    if ((!converts && e->prim != P_clamp) || e->out.n != 1 || e->in.n != (converts ? 1 : 3)) return;
    const Lit *x = known(l, e->in.at[converts ? 0 : 1]);
    if (!x || (x->kind != LIT_INT && x->kind != LIT_BOOL)) return;
    if (!converts) {
        const Lit *lo = known(l, e->in.at[0]), *hi = known(l, e->in.at[2]);
        bool same = lo && hi && lo->kind == LIT_INT && lo->i == 0 && hi->kind == LIT_INT;
        if (!same || hi->negative || hi->i > INT32_MAX) return;
        Lit *clamped = arena_new(l->cx->arena, Lit, 1);
        *clamped = (Lit){.kind = LIT_INT, .i = (uint64_t)clamp(x, (int64_t)hi->i)};
        x = clamped;
    }
    l->known[e->out.at[0]] = x;
}

static void lint_cond(Lint *l, const Eqn *e) {
    const Cond c = cond_of(e);
    const Jaxprs branches = c.branches;
    const Lit *index = branches.n > 1 && !c.bools ? known(l, c.index.at[0]) : NULL;
    if (!index || (index->kind != LIT_INT && index->kind != LIT_BOOL)) return;
    int64_t taken = clamp(index, (int64_t)branches.n - 1);
    Span other = branches.at[taken == 0]->span;
    diag_warn(l->cx->diags, W_dead_branch, lint_at(e, 0),
              "cond: the index is always %s%llu: only branch %lld of %u runs", index->negative ? "-" : "",
              (unsigned long long)index->i, (long long)taken, branches.n);
    if (other.n) diag_note(l->cx->diags, other, "this branch never runs");
}

static void lint_while(Lint *l, const Eqn *e) {
    const While w = while_of(e);
    const Jaxpr *cond = w.cond, *body = w.body;
    const Lit *go = cond && cond->out.n == 1 ? val_info(l->cx, cond->out.at[0])->lit : NULL;
    if (!go || !body || go->kind != LIT_BOOL || go->i) return;
    diag_warn(l->cx->diags, W_dead_branch, cond->out_at ? cond->out_at[0] : e->span,
              "while: the condition is always False: the body never runs");
    if (body->span.n) diag_note(l->cx->diags, body->span, "the body");
}

/* ---- random numbers */

/* JAX before 0.5 gave other bits of threefry keys, and other keys when splitting them. Warns at the first such
   equation. */
static void lint_bits(Lint *l, const Eqn *e) {
    bool bits = e->prim == P_random_bits, keys = e->prim == P_random_split || e->prim == P_random_gamma;
    if (!l->before.n || (!bits && !keys)) return;
    Dtype key = val_array(l->cx, e->in.at[0])->dtype;
    if (key != DT_key_fry && (bits || key != DT_key_rbg)) return;
    diag_warn(l->cx->diags, W_threefry_partitionable, e->span,
              "%s: the text is of JAX before 0.5, whose random numbers --threefry-partitionable=false gives; =true "
              "gives today's",
              prim_name[e->prim]);
    diag_note(l->cx->diags, l->before, "JAX since 0.5 does not print this so");
    l->before = (Span){0};
}

/* ---- the whole program */

static void visit_params(Lint *l, const Jaxpr *j, const Eqn *e) {
    Val v = e->out.n ? e->out.at[0] : 0;
    each(const Param, p, e->params) {
        if (p->value.kind == V_DIM) visit_dims(l, j, v, &p->value.dim, 1);
        if (p->value.kind == V_DIMS) visit_dims(l, j, v, p->value.dims.at, p->value.dims.n);
    }
}

static void lint_program(Lint *l, const Jaxpr *j) {
    bool fresh;
    intern(&l->programs, &j, sizeof j, &fresh);
    if (!fresh) return;
    lint_binders(l, j, j->consts);
    lint_binders(l, j, j->in);
    each(const Eqn, e, j->eqns) {
        for (uint32_t i = 0; i < e->in.n; i++) l->used[e->in.at[i]] = true;
        note_known(l, e);
        lint_literals(l->cx, e);
        visit_params(l, j, e);
        if (e->prim == P_cond) lint_cond(l, e);
        if (e->prim == P_while) lint_while(l, e);
        lint_bits(l, e);
        Jaxprs inner = e->params.n ? eqn_jaxprs(l->cx->arena, e) : (Jaxprs){0};
        each(Jaxpr *, i, inner) lint_program(l, *i);
        lint_binders(l, j, e->out);
    }
    each(Val, v, j->out) l->used[*v] = true;
}

static void lint_unused(Lint *l, Vals inputs) {
    each(Val, v, inputs) {
        const ValInfo *i = val_info(l->cx, *v);
        bool elided = i->name.n && (i->name.at[0] == '_' || i->name.at[0] == '*');
        if (!l->used[*v] && !elided)
            diag_warn(l->cx->diags, W_unused_input, i->span, "input '%.*s' is not used", SF(i->name));
    }
}

void lint(Ctx *cx, const Jaxpr *j) {
    Arena *a = cx->arena;
    Lint l = {.cx = cx, .before = j->before};
    if (cx->options->threefry_given) l.before.n = 0;
    l.programs.arena = l.names.arena = l.symbols.arena = a;
    l.known = arena_new(a, const Lit *, cx->nvals);
    l.used = arena_new(a, bool, cx->nvals);
    lint_program(&l, j);
    lint_unused(&l, j->consts);
    lint_unused(&l, j->in);
    lint_keys(cx, j);
}
