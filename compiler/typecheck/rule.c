#include "rule.h"
#include <assert.h>

Span operand_at(const Ctx *cx, const Eqn *e, unsigned i) { return e->in_at && i < e->in.n ? e->in_at[i] : e->span; }

Span result_at(const Ctx *cx, const Eqn *e, unsigned i) {
    if (i >= e->out.n) return e->span;
    Span s = val_info(cx, e->out.at[i])->span;
    return s.n ? s : e->span;
}

Span param_at(const Eqn *e, ParamKey k) {
    const Param *p = param_find(e, k);
    return p && p->span.n ? p->span : e->span;
}

const char *type_c(const Ctx *cx, Type t) { return str_c(cx->arena, ctx_type_text(cx, t)); }

const char *name_of(const Ctx *cx, const Eqn *e) {
    if (e->unknown.n) return str_c(cx->arena, e->unknown);
    Str text = diags_text(cx->diags, e->span.file);
    bool printed =
        e->span.n && e->span.at + e->span.n <= text.n && text.at[e->span.at] >= 'a' && text.at[e->span.at] <= 'z';
    return printed ? str_c(cx->arena, (Str){text.at + e->span.at, e->span.n}) : prim_name[e->prim];
}

static Str bound_name(const void *cx, uint32_t val) { return val_name(cx, val); }

const char *dim_c(const Ctx *cx, Dim d) { return str_c(cx->arena, dim_text(cx->arena, cx->types, d, bound_name, cx)); }

/* ---- demands */

void operand_count_error(Ctx *cx, const Eqn *e, unsigned n) {
    diag(cx->diags, e->span, "%s takes %u operand%s, but has %u", name_of(cx, e), n, plural(n), e->in.n);
}

bool want_results(Ctx *cx, const Eqn *e, unsigned n) {
    return e->out.n == n || diag(cx->diags, result_at(cx, e, 0), "%s has %u result%s, but %u are bound", name_of(cx, e),
                                 n, plural(n), e->out.n);
}

bool want(Ctx *cx, const Eqn *e, unsigned operands, unsigned results) {
    return want_operands(cx, e, operands) && want_results(cx, e, results);
}

/* "integers, floats": the words for a set of element types. */
static const char *kinds_text(Ctx *cx, unsigned kinds) {
    static const struct {
        unsigned kinds;
        const char *word;
    } words[] = {{OF_BOOL, "booleans"},
                 {OF_INT, "integers"},
                 {OF_SINT, "signed integers"},
                 {OF_UINT, "unsigned integers"},
                 {OF_FLOAT, "floats"},
                 {OF_COMPLEX, "complex numbers"},
                 {OF_KEY, "keys"}};
    Text text = {.arena = cx->arena};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        if ((kinds & words[i].kinds) != words[i].kinds) continue;
        text_add(&text, "%s%s", text.n ? ", " : "", words[i].word);
        kinds &= ~words[i].kinds;
    }
    return str_c(cx->arena, (Str){text.at, text.n});
}

bool want_kind(Ctx *cx, const Eqn *e, const Type *in, unsigned i, unsigned kinds) {
    Dtype d = type_at(cx->types, in[i])->dtype;
    if (kinds >> dtype_info[d].kind & 1) return true;
    diag(cx->diags, operand_at(cx, e, i), "%s takes %s, but operand %u is %s", name_of(cx, e), kinds_text(cx, kinds), i,
         type_c(cx, in[i]));
    note_operand(cx, e, i, in[i]);
    return false;
}

void operands_error(Ctx *cx, const Eqn *e, const Type *in, unsigned i, unsigned with) {
    diag(cx->diags, operand_at(cx, e, i), "%s: operand %u is %s, but operand %u is %s", name_of(cx, e), i,
         type_c(cx, in[i]), with, type_c(cx, in[with]));
    note_operand(cx, e, with, in[with]);
}

void note_operand(Ctx *cx, const Eqn *e, unsigned i, Type t) {
    const ValInfo *v = val_info(cx, e->in.at[i]);
    if (!e->in_at || v->lit || !v->span.n) return;
    diag_note(cx->diags, v->span, "'%.*s' has type %s", SF(v->name), type_c(cx, t));
}

bool want_dtype_of(Ctx *cx, const Eqn *e, const Type *in, unsigned i, unsigned as) {
    return type_at(cx->types, in[i])->dtype == type_at(cx->types, in[as])->dtype || operands_disagree(cx, e, in, i, as);
}

bool want_scalar(Ctx *cx, const Eqn *e, const Type *in, unsigned i) {
    return type_at(cx->types, in[i])->rank == 0 ||
           diag(cx->diags, operand_at(cx, e, i), "%s: operand %u must be a scalar, but is %s", name_of(cx, e), i,
                type_c(cx, in[i]));
}

bool want_axis(Ctx *cx, const Eqn *e, ParamKey k, int64_t axis, uint32_t rank) {
    return (axis >= 0 && axis < rank) ||
           diag(cx->diags, param_at(e, k), "%s: %s=%lld is no axis of an array of rank %u", name_of(cx, e),
                param_name[k], (long long)axis, rank);
}

bool want_axes(Ctx *cx, const Eqn *e, ParamKey k, Ints axes, uint32_t rank, bool *marked) {
    each(int64_t, a, axes) {
        if (!want_axis(cx, e, k, *a, rank)) return false;
        if (marked[*a])
            return diag(cx->diags, param_at(e, k), "%s: %s holds axis %lld twice", name_of(cx, e), param_name[k],
                        (long long)*a);
        marked[*a] = true;
    }
    return true;
}

bool want_length(Ctx *cx, const Eqn *e, ParamKey k, uint32_t n, uint32_t rank) {
    return n == rank || diag(cx->diags, param_at(e, k), "%s: %s has %u %s, but there %s %u %s", name_of(cx, e),
                             param_name[k], n, entries(n), is_are(rank), rank, axes_word(rank));
}

bool want_real(Ctx *cx, const Eqn *e, ParamKey k, double otherwise, double *v) {
    const Param *p = param_find(e, k);
    *v = !p ? otherwise : p->value.kind == V_INT ? (double)p->value.i : p->value.f;
    return !p || p->value.kind == V_INT || p->value.kind == V_FLOAT ||
           diag(cx->diags, param_at(e, k), "%s: %s is no number", name_of(cx, e), param_name[k]);
}
bool want_int(Ctx *cx, const Eqn *e, ParamKey k, int64_t least, int64_t *n) {
    if (!want_param(cx, e, k)) return false;
    *n = param_int(e, k, 0);
    return *n >= least || diag(cx->diags, param_at(e, k), "%s: %s is %lld, but must be at least %lld", name_of(cx, e),
                               param_name[k], (long long)*n, (long long)least);
}

bool want_word(Ctx *cx, const Eqn *e, ParamKey k, const char *const *words) {
    const Param *p = param_find(e, k);
    if (!p || p->value.kind == V_NONE) return true;
    Str s = p->value.s;
    const char *all = "";
    for (; *words; words++) {
        size_t n = strlen(*words);
        if (p->value.kind == V_WORD && s.n >= n && memcmp(s.at + s.n - n, *words, n) == 0 &&
            (s.n == n || s.at[s.n - n - 1] == '.'))
            return true;
        all = *all ? str_format(cx->arena, "%s, %s", all, *words).at : *words;
    }
    return diag(cx->diags, p->span, "%s: %s=%.*s is none of %s", name_of(cx, e), param_name[k], SF(s), all);
}

/* range(from, to): the numbers between; false if they are not axes. */
static bool expand_range(Ctx *cx, Ints *ints) {
    enum { MOST = 1000 };
    if (ints->n != 2 || ints->at[0] < 0 || ints->at[1] > MOST) return false;
    int64_t from = ints->at[0], n = ints->at[1] > from ? ints->at[1] - from : 0;
    *ints = (Ints){arena_new(cx->arena, int64_t, n), (uint32_t)n};
    for (uint32_t i = 0; i < n; i++) ints->at[i] = from + i;
    return true;
}

bool want_field(Ctx *cx, const Eqn *e, ParamKey k, const char *field, Ints *ints) {
    if (!want_param(cx, e, k)) return false;
    const Value *record = &param_find(e, k)->value, *v = value_field(record, field);
    bool ok = record->kind == V_LIST && (!v || v->kind == V_LIST);
    uint32_t n = ok && v ? v->list.n : 0;
    *ints = (Ints){arena_new(cx->arena, int64_t, n), n};
    for (uint32_t i = 0; i < n; i++) {
        ok = ok && v->list.at[i].kind == V_INT;
        if (ok) ints->at[i] = v->list.at[i].i;
    }
    if (ok && v && str_is(v->s, "range")) ok = expand_range(cx, ints);
    return ok ||
           diag(cx->diags, param_at(e, k), "%s: %s of %s is no list of axes", name_of(cx, e), field, param_name[k]);
}

bool want_field_axes(Ctx *cx, const Eqn *e, ParamKey k, const char *field, Ints axes, uint32_t rank, bool *marked) {
    each(int64_t, a, axes) {
        if (*a < 0 || *a >= rank)
            return diag(cx->diags, param_at(e, k), "%s: %s: %s holds %lld, which is no axis of an array of rank %u",
                        name_of(cx, e), param_name[k], field, (long long)*a, rank);
        if (marked[*a])
            return diag(cx->diags, param_at(e, k), "%s: %s: %s holds axis %lld a second time", name_of(cx, e),
                        param_name[k], field, (long long)*a);
        marked[*a] = true;
    }
    return true;
}

bool want_param_dtype(Ctx *cx, const Eqn *e, ParamKey k, Dtype *d) {
    if (!want_param(cx, e, k)) return false;
    *d = param_dtype(e, k);
    return *d != DT_none || diag(cx->diags, param_at(e, k), "%s: %s is no element type", name_of(cx, e), param_name[k]);
}

/* ---- dimensions */

void dim_checks_add(Arena *arena, DimChecks *to, DimCheck c) {
    to->seen.arena = arena;
    int64_t key[] = {c.a, c.b, c.at_most};
    bool fresh;
    intern(&to->seen, key, sizeof key, &fresh);
    if (fresh) push(arena, to, c);
}
static void record(Ctx *cx, Dim a, Dim b, bool at_most, Span span) {
    assert(cx->dim_checks); /* of whom is it a condition? */
    dim_checks_add(cx->arena, cx->dim_checks, (DimCheck){a, b, at_most, span});
}

/* What conditions say about symbols. */
typedef struct {
    struct {
        DimKnown *at;
        uint32_t n, cap;
    } all;
    DimKnown used; /* the last that a substitution used */
} Knowns;
static Dim known_value(void *user, Dim atom) {
    Knowns *known = user;
    each(DimKnown, k, known->all)
        if (k->symbol == atom) return known->used = *k, k->value;
    return atom;
}
const DimCheck *dims_contradict(const Ctx *cx, const DimChecks *checks, DimKnown *with) {
    Types *ts = cx->types;
    Knowns known = {0};
    for (uint32_t before = UINT32_MAX; before != known.all.n;) {
        before = known.all.n;
        each(DimCheck, c, *checks) {
            if (dim_has_bound(ts, c->a) || dim_has_bound(ts, c->b)) continue;
            Dim a = dim_substitute(ts, c->a, known_value, &known), b = dim_substitute(ts, c->b, known_value, &known);
            if ((c->at_most ? dim_at_most(ts, a, b, true) : dim_equal(ts, a, b, true)) == 0)
                return *with = known.used, c;
            Dim symbol = dim_is_const(a) ? b : a, value = dim_is_const(a) ? a : b;
            if (!c->at_most && dim_is_const(value) && !dim_is_const(symbol) && dim_at(ts, symbol)->kind == DIM_SYMBOL)
                push(cx->arena, &known.all, ((DimKnown){symbol, value, c}));
        }
    }
    return NULL;
}

bool dims_agree(Ctx *cx, Dim a, Dim b, Span span) {
    int equal = dim_equal(cx->types, a, b, cx->passes);
    if (equal < 0) record(cx, a, b, false, span);
    return equal != 0;
}

bool dims_at_most(Ctx *cx, Dim a, Dim b, Span span) {
    if (a == b) return true;
    if (dim_is_const(a) && dim_is_const(b)) return a <= b;
    int order = dim_at_most(cx->types, a, b, cx->passes);
    if (order < 0) record(cx, a, b, true, span);
    return order != 0;
}

bool shapes_agree(Ctx *cx, Type s, Type t, Span span) {
    const ArrayType *x = type_at(cx->types, s), *y = type_at(cx->types, t);
    if (x->rank != y->rank) return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->dims[i] != y->dims[i] && !dims_agree(cx, x->dims[i], y->dims[i], span)) return false;
    return true;
}

bool types_agree(Ctx *cx, Type s, Type t, Span span) {
    if (type_is_ref(cx, s) != type_is_ref(cx, t)) return false;
    if (type_plain(cx->types, s) == type_plain(cx->types, t)) return true;
    return type_at(cx->types, s)->dtype == type_at(cx->types, t)->dtype && shapes_agree(cx, s, t, span);
}

bool type_has_bound(const Ctx *cx, Type t) {
    const ArrayType *a = type_at(cx->types, t);
    for (uint32_t i = 0; i < a->rank; i++)
        if (dim_has_bound(cx->types, a->dims[i])) return true;
    return false;
}

Dim *dims_copy(Ctx *cx, const ArrayType *x) {
    Dim *dims = arena_new(cx->arena, Dim, (size_t)x->rank + 2);
    if (x->rank) memcpy(dims, x->dims, x->rank * sizeof *dims);
    return dims;
}

Type type_like(Ctx *cx, Type shape, Dtype d) {
    const ArrayType *a = type_at(cx->types, shape);
    return type_of(cx->types, d, a->rank, a->dims);
}
