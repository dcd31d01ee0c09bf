#include "places.h"
#include "../cost.h"
#include "../eval/record.h"

typedef struct {
    Plan *p;
    const Eval *recorder;
    PlaceKind kind;
    SeenPlace *place;
    void *user;
} Reads;
static void seen(void *user, Val v, const Ix *index, Ix address) {
    const Reads *r = user;
    const Info *info = v ? plan_info(r->p, v) : NULL; /* not an index that is a value */
    if (!v || info->class == VAL_SCALAR) return;
    r->place(r->user, &(ArrayPlace){r->kind, r->recorder->guard_id, info->buf, val_array(r->p->cx, v)->dtype, address});
}
/* `r` does not last as long as the recorder. */
static void end(Plan *p) { record(p, NULL, NULL, NULL); }
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
    Reads r = {p, NULL, PLACE_TERM, place, user};
    Eval *x = record(p, s, seen, &r);
    r.recorder = x;
    if (terms) terms_of(p, s, x);
    r.kind = PLACE_READ;
    each(Store, st, s->stores) {
        Ix index[MAX_RANK];
        step_at(p, s, st->v, index);
        eval_value(x, st->v, index);
        record_place(x, st, index);
        const ArrayPlace to = store_place(p, st, index);
        place(user, &to);
    }
    end(p);
}
void value_places(Plan *p, Val v, const Ix *index, SeenPlace *place, void *user) {
    Reads r = {p, NULL, PLACE_READ, place, user};
    Eval *x = record(p, NULL, seen, &r);
    r.recorder = x;
    eval_value(x, v, index);
    end(p);
}
ArrayPlace store_place(Plan *p, const Store *st, const Ix *index) {
    Dtype d = st->as ? st->as : val_array(p->cx, st->v)->dtype;
    return (ArrayPlace){PLACE_STORE, false, st->buf, d, store_address(p, st, index)};
}
Dim neighbours_add(Plan *p, const Step *s, Neighbours *n, const ArrayPlace *a) {
    bool other;
    Dim moves = ix_coef(p->ix, a->address, s->lane, &other);
    if (!other && moves == 0) return 0;
    n->apart |= other || moves != 1 || address_align(p, a->buf, a->dtype, 0) < DEVICE_ALIGN;
    if (dtype_bytes(a->dtype) > n->widest) n->widest = dtype_bytes(a->dtype);
    return other ? 0 : moves;
}
