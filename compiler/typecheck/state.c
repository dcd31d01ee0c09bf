/* References: cells that hold an array, read and written by name. The parameter `index` of get, swap
   and addupdate has the brackets after the reference: one list for each (see parse/build.c); a word in it is an operand
   of the equation. */
#include "rule.h"
#include <stdlib.h>

bool type_is_ref(const Ctx *cx, Type t) { return t && type_extra(cx->types, t)->ref.n; }

static Type ref_to(Ctx *cx, Type t) {
    TypeExtra extra = {.ref = S("Ref")};
    return type_with_extra(cx->types, type_plain(cx->types, t), &extra);
}

bool want_no_refs(Ctx *cx, const Eqn *e, const Type *in) {
    if (e->prim == P_none || prim_is(e->prim, TAKES_REFS) || eqn_jaxprs(cx->arena, e).n) return true;
    for (unsigned i = 0; i < e->in.n; i++)
        if (type_is_ref(cx, in[i])) {
            diag(cx->diags, operand_at(cx, e, i), "%s takes arrays, but operand %u is the reference %s", name_of(cx, e),
                 i, type_c(cx, in[i]));
            note_operand(cx, e, i, in[i]);
            return false;
        }
    return true;
}

static bool want_ref(Ctx *cx, const Eqn *e, const Type *in, unsigned i) {
    if (type_is_ref(cx, in[i])) return true;
    diag(cx->diags, operand_at(cx, e, i), "%s takes a reference Ref{%s}, but operand %u is %s", name_of(cx, e),
         type_c(cx, in[i]), i, type_c(cx, in[i]));
    note_operand(cx, e, i, in[i]);
    return false;
}

/* ---- creating and freezing */

bool type_new_ref(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1)) return false;
    out[0] = ref_to(cx, in[0]);
    return true;
}

/* Its type is the binder's. */
bool type_empty_ref(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 0, 1)) return false;
    return type_is_ref(cx, out[0]) ||
           diag(cx->diags, result_at(cx, e, 0), "empty_ref gives a reference, but '%.*s' is declared as %s",
                SF(val_name(cx, e->out.at[0])), out[0] ? type_c(cx, out[0]) : "nothing");
}

bool type_freeze(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1) || !want_ref(cx, e, in, 0)) return false;
    out[0] = type_plain(cx->types, in[0]);
    return true;
}

bool type_free_ref(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return want(cx, e, 1, 0) && want_ref(cx, e, in, 0);
}

/* ---- views: the types that the brackets after a reference give */

typedef struct {
    Ctx *cx;
    const Eqn *e;
    const Type *in;
    Span at;          /* of the bracket */
    unsigned operand; /* the next one that an index uses */
} View;

static bool bad_index(View *w, Type t) {
    return diag(w->cx->diags, w->at, "%s: this is no index of %s", name_of(w->cx, w->e), type_c(w->cx, t));
}

bool index_number(const Value *v, int64_t otherwise, int64_t *n) {
    *n = otherwise;
    if (v->kind == V_NONE) return true;
    enum { MOST_DIGITS = 18 };
    if (v->kind != V_TEXT || v->s.n > MOST_DIGITS) return false;
    char text[MOST_DIGITS + 1] = {0}, *end;
    memcpy(text, v->s.at, v->s.n);
    *n = strtoll(text, &end, 10);
    return *end == 0;
}

static bool outside(View *w, const Value *v, int64_t n, uint32_t axis, Type t) {
    return diag(w->cx->diags, v->span.n ? v->span : w->at, "%s: index %lld is outside of axis %u of %s",
                name_of(w->cx, w->e), (long long)n, axis, type_c(w->cx, t));
}

/* a:b, a:b+n, :, …: the extent of the range. */
static bool slice_of(View *w, const Value *v, uint32_t axis, Type t, Dim *extent) {
    Dim n = type_at(w->cx->types, t)->dims[axis];
    const Value *from = &v->list.at[0], *to = &v->list.at[1];
    int64_t a = 0, b = 0;
    *extent = n;
    if (from->kind == V_NONE && to->kind == V_NONE) return true;
    if (from->kind == V_WORD) {
        unsigned i = w->operand++;
        if (i >= w->e->in.n) return bad_index(w, t);
        if (!want_kind(w->cx, w->e, w->in, i, OF_INT) || !want_scalar(w->cx, w->e, w->in, i)) return false;
    } else if (!index_number(from, 0, &a)) {
        return bad_index(w, t);
    }
    if (!dim_is_const(n) || !index_number(to, n, &b)) return bad_index(w, t);
    *extent = str_is(v->s, "+") ? b : b - a;
    if (a < 0 || a > n) return outside(w, from, a, axis, t);
    return (*extent >= 0 && a + *extent <= n) || outside(w, to, b, axis, t);
}

/* One position, or an array of positions, whose extents the result has. */
static bool position_of(View *w, const Value *v, uint32_t axis, Type t, Type *positions) {
    Ctx *cx = w->cx;
    Dim n = type_at(cx->types, t)->dims[axis];
    int64_t k;
    if (v->kind == V_WORD) {
        unsigned i = w->operand++;
        if (i >= w->e->in.n) return bad_index(w, t);
        if (!want_kind(cx, w->e, w->in, i, OF_INT)) return false;
        const ArrayType *x = type_at(cx->types, w->in[i]);
        if (!dims_at_most(cx, 1, n, w->at))
            return diag(cx->diags, w->at, "%s: axis %u of %s has no elements", name_of(cx, w->e), axis, type_c(cx, t));
        if (x->rank && *positions && !shapes_agree(cx, *positions, w->in[i], w->at))
            return operands_disagree(cx, w->e, w->in, i, i - 1);
        if (x->rank) *positions = w->in[i];
        return true;
    }
    if (!index_number(v, 0, &k)) return bad_index(w, t);
    return (k >= 0 && dims_at_most(cx, k + 1, n, v->span)) || outside(w, v, k, axis, t);
}

/* [0, :, 1:3, b:b+2, …]. Positions remove their axes; axes of arrays of positions go to the place of the first one, or
   to the front if the positions are not adjacent. */
static bool index_view(View *w, const Value *index, Type t, Type *out) {
    Ctx *cx = w->cx;
    const ArrayType *x = type_at(cx->types, t);
    uint32_t n = index->list.n, kept = 0, first = 0, last = 0, count = 0;
    bool rest = n == 1 && index->list.at[0].kind == V_TEXT && str_is(index->list.at[0].s, "...");
    if (rest || (!n && !x->rank)) return *out = type_plain(cx->types, t), true;
    if (n > x->rank)
        return diag(cx->diags, w->at, "%s: %u %s, but the reference is %s", name_of(cx, w->e), n,
                    n == 1 ? "index" : "indices", type_c(cx, t));
    Dim *dims = arena_new(cx->arena, Dim, x->rank);
    Type positions = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        const Value *v = i < n ? &index->list.at[i] : NULL;
        if (!v || v->kind == V_PAIR) {
            dims[kept] = x->dims[i];
            if (v && !slice_of(w, v, i, t, &dims[kept])) return false;
            kept++;
            continue;
        }
        if (!position_of(w, v, i, t, &positions)) return false;
        if (!count++) first = kept;
        last = kept;
    }
    const ArrayType *p = type_at(cx->types, positions);
    uint32_t at = first == last ? first : 0, extra = positions ? p->rank : 0;
    Dim *all = arena_new(cx->arena, Dim, (size_t)kept + extra);
    for (uint32_t i = 0; i < kept; i++) all[i + (i >= at ? extra : 0)] = dims[i];
    for (uint32_t i = 0; i < extra; i++) all[at + i] = p->dims[i];
    *out = type_of(cx->types, x->dtype, kept + extra, all);
    return true;
}

Dims text_numbers(Ctx *cx, Str s) {
    Dims dims = {arena_new(cx->arena, Dim, s.n), 0};
    bool inside = false;
    for (uint32_t i = 0; i < s.n; i++) {
        bool digit = s.at[i] >= '0' && s.at[i] <= '9';
        if (digit && !inside) dims.at[dims.n++] = 0;
        if (digit && dims.at[dims.n - 1] < INT32_MAX) dims.at[dims.n - 1] = 10 * dims.at[dims.n - 1] + (s.at[i] - '0');
        inside = digit;
    }
    return dims;
}

/* {transpose([1, 0])}, {reshape([4, 3])}; the result of other transformations is unknown: 0. */
static bool transform_view(View *w, const Value *v, Type t, Type *out) {
    Ctx *cx = w->cx;
    Str s = v->s;
    const ArrayType *x = type_at(cx->types, t);
    Dims given = text_numbers(cx, s);
    *out = 0;
    if (s.n > 9 && memcmp(s.at, "{reshape(", 9) == 0) {
        *out = type_of(cx->types, x->dtype, given.n, given.at);
        return dims_agree(cx, type_size(cx->types, t), type_size(cx->types, *out), w->at) ||
               diag(cx->diags, w->at, "%s: %s cannot be seen as %s", name_of(cx, w->e), type_c(cx, t),
                    type_c(cx, *out));
    }
    if (s.n > 11 && memcmp(s.at, "{transpose(", 11) == 0) {
        Dim *dims = arena_new(cx->arena, Dim, x->rank);
        for (uint32_t i = 0; i < x->rank && given.n == x->rank; i++)
            if (given.at[i] < x->rank) dims[i] = x->dims[given.at[i]];
        *out = type_of(cx->types, x->dtype, x->rank, dims);
        return given.n == x->rank ||
               diag(cx->diags, w->at, "%s: no permutation of the axes of %s", name_of(cx, w->e), type_c(cx, t));
    }
    return true;
}

/* tree=PyTreeDef((…,)): the brackets, as JAX prints them without its rules for references; NULL where there are
   none. */
const Value *tree_of(const Eqn *e) {
    const Param *tree = param_find(e, K_tree);
    const Value *v = tree ? &tree->value : NULL;
    if (!v || v->kind != V_LIST || v->list.n != 1 || v->list.at[0].kind != V_LIST || !v->list.at[0].list.n) return NULL;
    return &v->list.at[0];
}

/* The type of the view of an equation; 0 if only the binder knows. */
static bool view(Ctx *cx, const Eqn *e, const Type *in, unsigned operands, Type *t) {
    *t = 0;
    const Param *index = NULL;
    if (!want_ref(cx, e, in, 0)) return false;
    each(const Param, q, e->params)
        if (q->key == K_other && str_is(q->name, "index")) index = q;
    if (!index) return e->in.n > operands || tree_of(e) || (*t = type_plain(cx->types, in[0]), true);
    View w = {cx, e, in, e->span, operands};
    *t = type_plain(cx->types, in[0]);
    each(const Value, v, index->value.list) {
        if (v->span.n) w.at = v->span;
        if (!(v->kind == V_TEXT ? transform_view : index_view)(&w, v, *t, t)) return false;
        if (!*t) return true;
    }
    return want_operands(cx, e, w.operand);
}

/* ---- reading and writing */

bool type_get(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Type t;
    if (!e->in.n) return want_operands(cx, e, 1);
    if (!want_results(cx, e, 1) || !view(cx, e, in, 1, &t)) return false;
    if (t) out[0] = t;
    return true;
}

static bool writes(Ctx *cx, const Eqn *e, const Type *in, Type *t) {
    if (e->in.n < 2) return want_operands(cx, e, 2);
    if (!view(cx, e, in, 2, t)) return false;
    if (!*t || types_agree(cx, in[1], *t, operand_at(cx, e, 1))) return true;
    diag(cx->diags, operand_at(cx, e, 1), "%s: the reference takes %s here, but operand 1 is %s", name_of(cx, e),
         type_c(cx, *t), type_c(cx, in[1]));
    note_operand(cx, e, 0, in[0]);
    return false;
}

/* The old value is the result. */
bool type_swap(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Type t;
    if (!want_results(cx, e, 1) || !writes(cx, e, in, &t)) return false;
    if (t) out[0] = t;
    return true;
}

bool type_addupdate(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Type t;
    return want_results(cx, e, 0) && writes(cx, e, in, &t) && want_kind(cx, e, in, 1, OF_NUM);
}

/* The shape of an index together with the other arrays, as numpy broadcasts. */
bool type_broadcast_to(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1) || !want_param(cx, e, K_shape)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    Dims shape = param_dims(e, K_shape);
    bool ok = x->rank <= shape.n;
    for (uint32_t i = 0; ok && i < x->rank; i++)
        ok = x->dims[i] == 1 || dims_agree(cx, x->dims[i], shape.at[shape.n - x->rank + i], param_at(e, K_shape));
    if (!ok)
        return diag(cx->diags, param_at(e, K_shape), "broadcast_to: %s does not broadcast to this shape",
                    type_c(cx, in[0]));
    out[0] = type_of(cx->types, x->dtype, shape.n, shape.at);
    return true;
}

/* ---- programs over references that start with the operands' values */

/* The program takes a reference to each operand, after an index if it is `counted`, and returns nothing; the results
   are the final contents of the references. An operand may itself be a reference. */
static bool type_runs(Ctx *cx, const Eqn *e, const Type *in, Type *out, bool counted) {
    if (!want_param(cx, e, K_jaxpr) || !want_results(cx, e, e->in.n)) return false;
    Jaxpr *j = param_jaxpr(e, K_jaxpr);
    Type *takes = arena_new(cx->arena, Type, e->in.n + 1);
    for (uint32_t i = 0; i < e->in.n; i++) {
        takes[counted + i] = type_is_ref(cx, in[i]) ? in[i] : ref_to(cx, in[i]);
        out[i] = in[i];
    }
    if (counted && j->in.n) takes[0] = val_type(cx, j->in.at[0]);
    if (counted && !takes[0]) takes[0] = type_of(cx->types, DT_i32, 0, NULL);
    return want_program(cx, e, K_jaxpr, j, takes, counted + e->in.n, 0);
}
bool type_run_state(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return type_runs(cx, e, in, out, false); }
bool type_for(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_param(cx, e, K_nsteps)) return false;
    if (!dims_at_most(cx, 0, param_find(e, K_nsteps)->value.dim, param_at(e, K_nsteps)))
        return diag(cx->diags, param_at(e, K_nsteps), "%s: nsteps is negative", name_of(cx, e));
    return type_runs(cx, e, in, out, true);
}

/* ---- programs */

/* The references of a program: which equation ended each. */
typedef struct {
    Intern table; /* of Val */
    const Eqn **at;
    uint32_t n, cap;
} Refs;

static const Eqn **ended(Ctx *cx, Refs *refs, Val v) {
    bool fresh;
    refs->table.arena = cx->arena;
    uint32_t k = intern(&refs->table, &v, sizeof v, &fresh);
    if (fresh) push(cx->arena, refs, NULL);
    return &refs->at[k];
}

static bool used_after(Ctx *cx, const Eqn *e, unsigned i, const Eqn *end) {
    diag(cx->diags, operand_at(cx, e, i), "%s: '%.*s' is used after %s", name_of(cx, e), SF(val_name(cx, e->in.at[i])),
         name_of(cx, end));
    diag_note(cx->diags, end->span, "%s ends the reference", name_of(cx, end));
    return false;
}

/* No reference is used after it is frozen, or passed twice to a nested program, which could not see that the two are
   one. */
static bool check_uses(Ctx *cx, Refs *refs, const Eqn *e) {
    Intern here = {.arena = cx->arena};
    bool calls = e->in.n > 1 && eqn_jaxprs(cx->arena, e).n, fresh;
    for (unsigned i = 0; i < e->in.n; i++) {
        Val v = e->in.at[i];
        if (!type_is_ref(cx, val_type(cx, v))) continue;
        const Eqn **end = ended(cx, refs, v);
        if (*end) return used_after(cx, e, i, *end);
        if (calls && (intern(&here, &v, sizeof v, &fresh), !fresh))
            return diag(cx->diags, operand_at(cx, e, i), "%s: the reference '%.*s' is given a second time",
                        name_of(cx, e), SF(val_name(cx, v)));
        if (e->prim == P_freeze || e->prim == P_free_ref) *end = e;
    }
    return true;
}

void check_refs(Ctx *cx, const Jaxpr *j) {
    Refs refs = {0};
    bool ok = true;
    for (uint32_t i = 0; i < j->eqns.n && ok; i++) ok = check_uses(cx, &refs, &j->eqns.at[i]);
    for (uint32_t i = 0; i < j->out.n; i++) {
        Type t = val_type(cx, j->out.at[i]);
        if (!type_is_ref(cx, t)) continue;
        diag(cx->diags, j->out_at ? j->out_at[i] : j->span,
             "result %u is the reference %s, which does not outlive the program", i, type_c(cx, t));
    }
}
