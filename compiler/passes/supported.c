/* Reports everything in the program after the passes that code cannot be generated for: primitives without a lowering,
   types without elements in memory, references. So --check says the same as compiling, without a code generator. */
#include "rewrite.h"
#include "../control.h"

typedef struct {
    Ctx *cx;
    Intern programs; /* those already examined */
    bool failed;
} Supported;

/* The text of a type that is unknown, or the name of one without elements. */
static const char *void_type(const Ctx *cx, Type t) {
    Dtype d = type_at(cx->types, t)->dtype;
    return d == DT_opaque ? str_c(cx->arena, ctx_type_text(cx, t)) : dtype_info[d].name;
}

static void want_type(Supported *s, Val v, Span at) {
    Ctx *cx = s->cx;
    Type t = val_type(cx, v);
    const TypeExtra *extra = type_extra(cx->types, t);
    if (dtype_info[val_array(cx, v)->dtype].kind == DK_VOID)
        s->failed = !diag(cx->diags, at, "type %s is not supported yet", void_type(cx, t));
    else if (extra && extra->ref.n)
        s->failed = !diag(cx->diags, at, "a reference is not supported yet");
    else
        s->failed |= !rank_compiles(cx, t, at);
}

/* Is the program of a scatter elementwise, if it has one? */
static bool scatters(const Eqn *e) {
    const Jaxpr *j = e->prim == P_scatter ? param_jaxpr(e, K_update_jaxpr) : NULL;
    if (!j) return true;
    bool ok = j->consts.n == 0;
    each(Eqn, q, j->eqns) ok &= prim_elementwise(q->prim);
    return ok;
}

static void want_program(Supported *s, const Jaxpr *j);

static void want_eqn(Supported *s, const Eqn *e) {
    Lower how = prim_lower[e->prim];
    bool call = how == LOWER_CALL && !calls_function(e);
    if (how == LOWER_NONE || call || how == LOWER_STATE || how == LOWER_EXPAND || how == LOWER_SAME)
        s->failed = !diag(s->cx->diags, e->span, "primitive '%s' is not supported yet", prim_name[e->prim]);
    else if (!scatters(e))
        s->failed =
            !diag(s->cx->diags, e->span,
                  "primitive '%s' with an update_jaxpr that is more than elementwise operations is not supported yet",
                  prim_name[e->prim]);
    each(Val, v, e->in) want_type(s, *v, e->span);
    each(Val, v, e->out) want_type(s, *v, e->span);
    Jaxprs subs = e->params.n ? eqn_jaxprs(s->cx->arena, e) : (Jaxprs){0};
    each(Jaxpr *, j, subs) want_program(s, *j);
}

static void want_program(Supported *s, const Jaxpr *j) {
    bool fresh;
    intern(&s->programs, &j, sizeof j, &fresh);
    if (!fresh) return;
    each(Val, v, j->consts) want_type(s, *v, val_info(s->cx, *v)->span);
    each(Val, v, j->in) want_type(s, *v, val_info(s->cx, *v)->span);
    each(const Eqn, e, j->eqns) want_eqn(s, e);
}

bool supported(Ctx *cx, const Jaxpr *j) {
    Supported s = {.cx = cx, .programs.arena = cx->arena};
    want_program(&s, j);
    return !s.failed;
}
