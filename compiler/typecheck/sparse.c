/* Sparse arrays by coordinates. What they are part of is declared: the text says the results' types. */
#include "rule.h"

/* Operand `i` is […, nse, axes] of integers, of an array of that rank. */
static bool want_coordinates(Ctx *cx, const Eqn *e, const Type *in, unsigned i, uint32_t rank) {
    const ArrayType *t = type_at(cx->types, in[i]);
    if (!want_kind(cx, e, in, i, OF_INT)) return false;
    if (t->rank < 2 || !dim_is_const(t->dims[t->rank - 1]) || t->rank - 2 + t->dims[t->rank - 1] > rank)
        return diag(cx->diags, operand_at(cx, e, i), "%s: operand %u, %s, are no coordinates in an array of %u axes",
                    name_of(cx, e), i, type_c(cx, in[i]), rank);
    return true;
}
/* Operand 0 is data at the coordinates of operand `i`. */
static bool want_data(Ctx *cx, const Eqn *e, const Type *in, unsigned i) {
    const ArrayType *data = type_at(cx->types, in[0]), *at = type_at(cx->types, in[i]);
    return data->rank >= at->rank - 1 ||
           diag(cx->diags, operand_at(cx, e, 0), "%s: operand 0, %s, is no data of operand %u, %s", name_of(cx, e),
                type_c(cx, in[0]), i, type_c(cx, in[i]));
}
bool type_bcoo(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    enum { MOST = 30 };
    bool extract = e->prim == P_bcoo_extract, todense = e->prim == P_bcoo_todense;
    if (!want(cx, e, extract || todense ? 2 : 3, 1) || !type_declared(cx, e, in, out)) return false;
    if (extract) return want_coordinates(cx, e, in, 0, type_at(cx->types, in[1])->rank);
    if (todense) return want_coordinates(cx, e, in, 1, type_at(cx->types, out[0])->rank) && want_data(cx, e, in, 1);
    if (e->prim == P_bcoo_dot_general) return want_coordinates(cx, e, in, 1, MOST) && want_data(cx, e, in, 1);
    return want_coordinates(cx, e, in, 2, MOST);
}
