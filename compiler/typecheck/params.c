/* Parameters: their names, and the forms of their values. */
#include "rule.h"

bool param_wrong(Ctx *cx, const Eqn *e, ParamKey k, const char *must_be) {
    return diag(cx->diags, param_at(e, k), "%s: '%s' must be %s%ssuch as %s=%s", name_of(cx, e), param_name[k], must_be,
                *must_be ? ", " : "", param_name[k], param_example(e->prim, k));
}

static Str name_text(const Param *p) { return p->key == K_other ? p->name : str(param_name[p->key]); }

/* Is the parameter missing, so that an unknown name may be meant for it? */
static bool left_out(Ctx *cx, const Eqn *e, ParamKey k) {
    const char *words = kind_words(param_kind[k]), *at = NULL;
    Str first;
    diag(cx->diags, e->span, "%s needs the parameter '%s'%s%s, such as %s=%s", name_of(cx, e), param_name[k],
         *words ? ", " : "", words, param_name[k], param_example(e->prim, k));
    bool known = prim_param(e->prim, &at, &first);
    each(const Param, p, e->params)
        if (known && !prim_has(e->prim, name_text(p)))
            diag_note(cx->diags, p->span, "'%.*s' is no parameter of %s", SF(name_text(p)), name_of(cx, e));
    return false;
}

bool want_param(Ctx *cx, const Eqn *e, ParamKey k) {
    const Param *p = param_find(e, k);
    if (!p) return left_out(cx, e, k);
    ParamKind kind = param_kind[k];
    Dtype near = kind == PK_DTYPE && p->value.kind == V_WORD ? dtype_similar(p->value.s) : DT_none;
    if (near)
        return diag(cx->diags, p->span, "%s: %s=%.*s is no element type; did you mean '%s'?", name_of(cx, e),
                    param_name[k], SF(p->value.s), dtype_info[near].long_name);
    return kind_holds(kind, &p->value) || param_wrong(cx, e, k, kind_words(kind));
}

/* Is `given` an abbreviation of `name`? */
static bool begins(Str name, Str given) {
    enum { SHORT = 3 };
    return given.n >= SHORT && name.n > given.n && memcmp(name.at, given.at, given.n) == 0;
}

/* An unknown name close to a missing parameter of the primitive is an error, one close to another primitive's parameter
   a warning: it would be ignored silently. */
static bool want_name(Ctx *cx, const Eqn *e, const Param *p) {
    enum { LETTERS = 4 };
    if (prim_has(e->prim, name_text(p))) return true;
    Similar near = similar_to(name_text(p), edits_of(name_text(p), LETTERS));
    Str name;
    for (const char *at = NULL; prim_param(e->prim, &at, &name);) {
        bool given = false;
        each(const Param, q, e->params) given = given || str_eq(name_text(q), name);
        if (!given && !similar_offer(&near, name) && !near.best.n && begins(name, name_text(p))) near.best = name;
    }
    if (near.best.n)
        return diag(cx->diags, p->span, "%s has no parameter '%.*s'; did you mean '%.*s'?", name_of(cx, e), SF(p->name),
                    SF(near.best));
    ParamKey other = p->key == K_other ? param_similar(p->name) : K_other;
    if (other != K_other)
        diag_warn(cx->diags, W_unknown_parameter, p->span, "unknown parameter '%.*s'; did you mean '%s'?", SF(p->name),
                  param_name[other]);
    return true;
}

/* Numbers, element types and lists of them must have the form that their rules read: none is silently ignored. Axes of
   collectives may be names; the `transpose` of a linear_call is a program. */
static bool want_form(Ctx *cx, const Eqn *e, const Param *p) {
    static const bool read[PK_VALUE + 1] = {[PK_INT] = true,    [PK_DIM] = true,   [PK_BOOL] = true,  [PK_INTS] = true,
                                            [PK_DIMS] = true,   [PK_BOOLS] = true, [PK_DTYPE] = true, [PK_JAXPR] = true,
                                            [PK_JAXPRS] = true, [PK_LIST] = true,  [PK_NAME] = true};
    if (p->key == K_other || p->value.kind == V_NONE || !read[param_kind[p->key]]) return true;
    bool program = p->value.kind == V_JAXPR || p->value.kind == V_WORD;
    if (p->key == K_transpose && e->prim == P_linear_call)
        return program || param_wrong(cx, e, p->key, kind_words(PK_JAXPR));
    return (p->key == K_axes && p->value.kind == V_LIST) || want_param(cx, e, p->key);
}

bool want_params(Ctx *cx, const Eqn *e) {
    bool ok = true;
    each(const Param, p, e->params) {
        bool named = cx->passes || want_name(cx, e, p);
        ok = named && want_form(cx, e, p) && ok;
    }
    return ok;
}

void note_params(Ctx *cx, const Eqn *e, bool dtype, bool shape) {
    enum { SHOWN = 40 };
    static const bool shapes[PK_VALUE + 1] = {[PK_INT] = true,  [PK_DIM] = true,     [PK_INTS] = true,
                                              [PK_DIMS] = true, [PK_PADDING] = true, [PK_PAIRS] = true};
    Text say = {.arena = cx->arena};
    Span first = {0};
    each(const Param, p, e->params) {
        ParamKind kind = param_kind[p->key];
        bool decides =
            p->key != K_other && p->value.kind != V_NONE && (kind == PK_DTYPE ? dtype : shape && shapes[kind]);
        if (!decides || !e->in_at || !p->span.n || !p->value.span.n || !prim_has(e->prim, name_text(p))) continue;
        Str value = {diags_text(cx->diags, p->value.span.file).at + p->value.span.at, p->value.span.n};
        bool cut = value.n > SHOWN;
        if (!say.n) first = p->span;
        text_add(&say, "%s%.*s=%.*s%s", say.n ? ", " : "", SF(name_text(p)), cut ? SHOWN : (int)value.n, value.at,
                 cut ? "..." : "");
    }
    if (say.n) diag_note(cx->diags, first, "because of %.*s", (int)say.n, say.at);
}
