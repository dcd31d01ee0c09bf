#include "places.h"
#include "../cost.h"
#include "../eval/record.h"

typedef struct {
    Plan *p;
    PlaceKind kind;
    SeenPlace *place;
    void *user;
    const Eval *x;
} Places;
static void seen(void *user, Val v, const Ix *index, Ix address) {
    Places *x = user;
    const Info *info = v ? plan_info(x->p, v) : NULL; /* not an index that is a value */
    PlaceKind kind = x->kind == PLACE_TERM && x->x->guard_id ? PLACE_GUARDED : x->kind;
    if (v && info->class != VAL_SCALAR) x->place(x->user, kind, info->buf, val_array(x->p->cx, v)->dtype, address);
}
static void terms_of(Plan *p, Step *s, Eval *x) {
    Ix index[MAX_RANK];
    each(Val, v, s->members) {
        const Eqn *e = plan_info(p, *v)->e;
        if (!eqn_reduces(e)) continue;
        step_at(p, s, e->in.at[0], index);
        eval_value(x, e->in.at[0], index);
    }
}
void step_places(Plan *p, Step *s, bool terms, SeenPlace *place, void *user) {
    Places places = {p, PLACE_TERM, place, user, NULL};
    Eval *x = record(p, s, seen, &places);
    places.x = x;
    if (terms) terms_of(p, s, x);
    each(Store, st, s->stores) {
        Ix index[MAX_RANK];
        places.kind = PLACE_READ;
        step_at(p, s, st->v, index);
        eval_value(x, st->v, index);
        record_place(x, st, index);
        place(user, PLACE_STORE, st->buf, st->as ? st->as : val_array(p->cx, st->v)->dtype,
              store_address(p, st, index));
    }
    record(p, NULL, NULL, NULL); /* `places` does not last as long as it */
}
Dim neighbours_add(Plan *p, const Step *s, Neighbours *n, const Buf *b, Dtype d, Ix address) {
    bool other;
    Dim moves = ix_coef(p->ix, address, s->lane, &other);
    if (!other && moves == 0) return 0;
    n->apart |= other || moves != 1 || address_align(p, b, d, 0) < DEVICE_ALIGN;
    if (dtype_bytes(d) > n->widest) n->widest = dtype_bytes(d);
    return other ? 0 : moves;
}
