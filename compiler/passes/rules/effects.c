/* Side effects: checks; and callbacks, which are refused. debug_print is in print.c. */
#include "../transform/transform.h"

bool expand_callback(Builder *b, const Eqn *e, Val *out) {
    return diag(b->cx->diags, e->span, "primitive '%s' is not supported: it calls back into Python",
                prim_name[e->prim]);
}
bool jvp_callback(Jvp *d) {
    return tx_error(d->tx, d->e->span, "%s has no derivative: it calls a function that is not in the text",
                    prim_name[d->e->prim]);
}
/* The linear part of a custom rule, which JAX leaves when it linearizes. */
bool jvp_custom_lin(Jvp *d) {
    return tx_error(d->tx, d->e->span,
                    "custom_lin: its bwd is not in the text; print the program before it is differentiated");
}

/* ---- check: the library stops if a predicate is true. The predicates come first, then their codes and other parts of
   the messages, which the text does not contain. */
bool expand_check(Builder *b, const Eqn *e, Val *out) {
    Val failed = 0;
    if (param_bool(e, K_debug)) return true; /* only used by checkify */
    for (uint32_t i = 0; i < e->in.n && b_type(b, e->in.at[i])->dtype == DT_bool; i++) {
        int64_t axes[MAX_RANK];
        uint32_t rank = b_type(b, e->in.at[i])->rank;
        for (uint32_t k = 0; k < rank; k++) axes[k] = k;
        Val any = b_reduce(b, P_reduce_or, e->in.at[i], rank, axes);
        failed = failed ? b_or(b, failed, any) : any;
    }
    if (failed) b_stop_if(b, failed, e, "finds that a condition of the program does not hold");
    return true;
}

/* ---- dimensions */
bool expand_dimension_size(Builder *b, const Eqn *e, Val *out) {
    Dim n = b_type(b, e->in.at[0])->dims[param_number(e, K_dimension)];
    out[0] = b_dim(b, val_array(b->cx, e->out.at[0])->dtype, n);
    return true;
}
/* Does the text have the equation itself? A derivative makes assertions where the text has other equations. */
static bool stated(const Builder *b, const Eqn *e) {
    Str text = diags_text(b->cx->diags, e->span.file), name = str(prim_name[e->prim]);
    return e->span.at <= text.n && text.n - e->span.at >= name.n && !memcmp(text.at + e->span.at, name.at, name.n);
}
bool expand_shape_assertion(Builder *b, const Eqn *e, Val *out) {
    Str what = param_find(e, K_error_message)->value.s;
    if (stated(b, e)) what = b_stop_text(b, e, str_format(b->cx->arena, "fails: %.*s", SF(what)));
    b_stop_with(b, b_not(b, e->in.at[0]), e->span, what, e->in.n - 1, e->in.at + 1);
    return true;
}
