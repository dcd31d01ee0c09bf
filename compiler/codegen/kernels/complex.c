#include "point.h"

/* Complex numbers have the same form in registers and in memory: one integer whose low half is the real part.
   Arithmetic is done only on the parts. */

/* Every second part, from `first` on. */
static V part(Emit *e, const Point *p, V x, uint32_t first) {
    uint32_t w = em_width(x);
    int64_t lanes[MAX_LANES];
    for (uint32_t i = 0; i < w; i++) lanes[i] = 2 * i + first;
    V parts = em_cast(e, "llvm.bitcast", em_vec(e, em_register_type(e, p->out), 2 * w), x);
    return w == 1 ? em_extract(e, parts, first) : em_shuffle(e, parts, parts, w, lanes);
}
V point_real(Emit *e, const Point *p, const V *x) { return part(e, p, x[0], 0); }
V point_imag(Emit *e, const Point *p, const V *x) { return part(e, p, x[0], 1); }

V point_complex(Emit *e, const Point *p, const V *x) {
    uint32_t w = em_width(x[0]);
    int64_t lanes[MAX_LANES];
    for (uint32_t i = 0; i < 2 * w; i++) lanes[i] = i / 2 + i % 2 * w;
    MlirType t = em_vec(e, em_register_type(e, p->out), w);
    if (w > 1) return em_cast(e, "llvm.bitcast", t, em_shuffle(e, x[0], x[1], 2 * w, lanes));
    V none = em_1(e, "llvm.mlir.poison", em_vec(e, em_elem(x[0]), 2), 0, NULL, 0, NULL);
    return em_cast(e, "llvm.bitcast", t, em_insert(e, x[1], em_insert(e, x[0], none, 0), 1));
}
