/* Elementwise rules: registers in, one register out. The POINT rows of prims.def. */
#ifndef JAXCC_POINT_H
#define JAXCC_POINT_H
#include "kernel.h"

#define NO_LOWERING
#define POINT(f) PointRule point_##f;
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) lowering
#include "../../prims.def"

/* NULL for primitives that are not elementwise. */
extern PointRule *const point_rule[NPRIMS];

/* A rule's result rounded to its type. */
V point_result(Emit *, Prim, Dtype, V);
/* a ∘ b for a reduction or cumulative primitive, unrounded (a: the accumulator); its neutral element in w lanes. */
V point_combine(Emit *, Prim reduce, Dtype, V a, V b);
V point_identity(Emit *, Prim reduce, Dtype, uint32_t w);

/* The bits of an element: integers of its size in memory, also for floats that are f32 in registers. */
V point_bits(Emit *, Dtype, V reg);
V point_of_bits(Emit *, Dtype, V bits);

static inline MlirType point_type(V x) { return mlirValueGetType(x); }
/* What kind of arithmetic an element type has. */
static inline bool point_is_float(Dtype d) { return dtype_info[d].kind == DK_FLOAT; }
static inline bool point_is_signed(Dtype d) { return dtype_info[d].kind == DK_SINT; }

#endif
