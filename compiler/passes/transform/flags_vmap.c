/* --vmap: the axis of the examples in inputs and results. */
#include "flags.h"
#include "../../dims.h"
#include "../../options.h"

static void note_extent(void *used, Val v) { intern(used, &v, sizeof v, NULL); }
static bool is_extent_of_input(Flag *f, uint32_t input) {
    Intern used = {.arena = f->b.cx->arena};
    uint32_t k;
    Val v = f->read->in.at[input];
    each(const Val, x, f->read->in) type_extents(f->b.cx, val_type(f->b.cx, *x), note_extent, &used);
    return intern_find(&used, &v, sizeof v, &k);
}
static int64_t axis_of(Ints axes, uint32_t i) { return axes.at[i < axes.n ? i : axes.n - 1]; }
static bool fits_axes(Flag *f) {
    const Jaxpr *j = f->read;
    Ctx *cx = f->b.cx;
    const Span option = {INPUT_FILE, 0, 0};
    const Ints axes = f->of->axes, out = f->of->out_axes;
    if (axes.n > j->in.n)
        return tx_error(&f->tx, option, "%s: %u axes for %u input%s", f->of->text, axes.n, j->in.n, plural(j->in.n));
    if (out.n > j->out.n && out.n > 1)
        return tx_error(&f->tx, option, "%s: %u axes for %u output%s", f->of->text, out.n, j->out.n, plural(j->out.n));
    for (uint32_t i = 0; i < j->in.n; i++) {
        Val v = j->in.at[i];
        Str name = val_name(cx, v), type = ctx_type_text(cx, val_type(cx, v));
        int64_t axis = axis_of(axes, i), rank = val_array(cx, v)->rank;
        if (axis != UNBATCHED && is_extent_of_input(f, i))
            tx_error(&f->tx, flag_input_place(f, i),
                     "%s: input '%.*s', %.*s, is a dimension of other inputs: it must be _", f->of->text, SF(name),
                     SF(type));
        else if (axis > rank)
            tx_error(&f->tx, flag_input_place(f, i), "%s: input '%.*s' is %.*s, with the examples it has no axis %lld",
                     f->of->text, SF(name), SF(type), (long long)axis);
    }
    return !f->tx.failed;
}
typedef struct {
    Types *types;
    Intern names;
} Symbols;
static Dim note_symbol(void *symbols, Dim atom) {
    Symbols *s = symbols;
    const DimExpr *e = dim_at(s->types, atom);
    if (e->kind == DIM_SYMBOL) intern(&s->names, e->name.at, e->name.n, NULL);
    return atom;
}
static void note_symbols(Ctx *cx, Symbols *s, Vals vals) {
    each(const Val, v, vals) type_substitute(cx->types, val_type(cx, *v), note_symbol, s);
}
/* The batch dimension: a number if -D says so. */
static Dim examples(Flag *f) {
    Ctx *cx = f->b.cx;
    Symbols s = {cx->types, {.arena = cx->arena}};
    uint32_t k, nth = dims_batch(cx, f->of);
    Str name = batch_name(cx->arena, f->of, nth);
    note_symbols(cx, &s, f->read->consts);
    note_symbols(cx, &s, f->read->in);
    note_symbols(cx, &s, f->read->out);
    each(const Eqn, e, f->read->eqns) note_symbols(cx, &s, e->out);
    while (!f->of->dim && intern_find(&s.names, name.at, name.n, &k)) name = batch_name(cx->arena, f->of, ++nth);
    if (intern_find(&s.names, name.at, name.n, &k) || dims_has(cx, name))
        tx_error(&f->tx, (Span){INPUT_FILE, 0, 0}, "--vmap-dim=%.*s: the program has a dimension of this name",
                 SF(name));
    for (uint32_t i = 0; i < cx->options->ndims; i++)
        if (str_eq(cx->options->dims[i].name, name)) return cx->options->dims[i].value;
    return dim_symbol(cx->types, name);
}
/* An input of a batch along this axis. */
static Val add_examples(Flag *f, uint32_t i, uint32_t axis) {
    Ctx *cx = f->b.cx;
    const ValInfo info = *val_info(cx, f->read->in.at[i]);
    const ArrayType *one = type_at(cx->types, type_rewrite(&f->tx.map, info.type));
    Dim dims[MAX_RANK + 1];
    for (uint32_t d = 0, k = 0; d <= one->rank; d++) dims[d] = d == axis ? f->tx.batch.size : one->dims[k++];
    Val v = val_new(cx, type_of(cx->types, one->dtype, one->rank + 1, dims), info.span);
    val_info(cx, v)->name = info.name;
    push(cx->arena, &f->in, v);
    return b_move_axis(&f->b, v, axis, 0);
}
static void add_batched_result(Flag *f, Val v, bool batched, uint32_t k) {
    int64_t axis = axis_of(f->of->out_axes, k);
    Ctx *cx = f->b.cx;
    Str type = ctx_type_text(cx, val_type(cx, f->read->out.at[k]));
    if (axis > val_array(cx, f->read->out.at[k])->rank)
        tx_error(&f->tx, flag_result_place(f, k), "%s: result %u is %.*s, with the examples it has no axis %lld",
                 f->of->text, k, SF(type), (long long)axis);
    else if (axis == UNBATCHED && batched)
        tx_error(&f->tx, flag_result_place(f, k), "%s: result %u differs between the examples: it needs an axis",
                 f->of->text, k);
    if (f->tx.failed) return;
    if (axis != UNBATCHED && !batched) v = vmap_broadcast(&f->tx, &f->b, v);
    flag_result(
        f, axis == UNBATCHED || val_array(cx, v)->dtype == DT_tok ? v : b_move_axis(&f->b, v, 0, (uint32_t)axis), k);
}
Jaxpr *transform_vmap(Ctx *cx, const Jaxpr *j, const Transform *t) {
    Flag f = flag_of(cx, j, t);
    if (!fits_axes(&f)) return NULL;
    f.tx.batch.size = examples(&f);
    if (t->axis) f.tx.batch.axis = str(t->axis);
    Val *in = flag_values(&f, j->in.n), *out = flag_values(&f, j->out.n);
    bool *batched = arena_new(cx->arena, bool, j->in.n + j->out.n + 1);
    for (uint32_t i = 0; i < j->in.n && !f.tx.failed; i++) {
        int64_t axis = axis_of(t->axes, i);
        batched[i] = axis != UNBATCHED && val_array(cx, j->in.at[i])->dtype != DT_tok; /* one for all examples */
        in[i] = batched[i] ? add_examples(&f, i, (uint32_t)axis)
                           : flag_input(&f, j->in.at[i], val_info(cx, j->in.at[i])->name);
        valmap_put(&f.tx.map, j->in.at[i], in[i]);
    }
    if (f.tx.failed || !vmap_into(&f.tx, &f.b, j, in, (Bits){batched, j->in.n}, out, batched + j->in.n)) return NULL;
    if (!vmap_extents_agree(&f.tx, j->out, NULL, f.b.span)) return NULL;
    for (uint32_t k = 0; k < j->out.n; k++) add_batched_result(&f, out[k], batched[j->in.n + k], k);
    return flag_end(&f);
}
