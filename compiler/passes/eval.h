/* The values of scalars at compile time: bit for bit what the compiled program would compute. */
#ifndef JAXCC_EVAL_H
#define JAXCC_EVAL_H
#include "passes.h"

/* One element: its bits, zero above its width; bool is 0 or 1. */
typedef struct {
    Dtype dtype;
    uint64_t bits;
} Scalar;

/* bool, integers and floats of any width. */
bool scalar_dtype(Dtype);
/* Of a literal of rank 0 and such a type; false for any other value. */
bool scalar_of(const Ctx *, Val, Scalar *);
Lit scalar_lit(Scalar);
double scalar_float(Scalar); /* of a float */
int64_t scalar_int(Scalar);  /* of bool and the integers; u64 wraps */
Scalar scalar_f32(float);
Scalar scalar_f64(double);

/* The result of an elementwise equation for scalar operands; false where it is none or a type is
 * another. */
bool eval_point(Ctx *, const Eqn *, const Scalar *in, Scalar *out);

/* Runs a program of such equations and of while loops with one result, any number of times. */
typedef struct Evaluator Evaluator;
Evaluator *evaluator_new(Ctx *, const Jaxpr *);
bool evaluator_run(Evaluator *, const Scalar *in, Scalar *out);
/* Of a program of stdlib/, made on first use; NULL when there is none. */
Evaluator *stdlib_evaluator(Ctx *, const char *name);

#endif
