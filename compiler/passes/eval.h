/* Evaluation of scalars at compile time: bit for bit what the compiled program would compute. */
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
/* The scalar that a literal of rank 0 and such a type is; false for any other value. */
bool scalar_of(const Ctx *, Val, Scalar *);
Lit scalar_lit(Scalar);
double scalar_float(Scalar); /* of a float */
int64_t scalar_int(Scalar);  /* of bool and the integers; u64 wraps */
Scalar scalar_f32(float);
Scalar scalar_f64(double);

/* The result of an elementwise equation for scalar operands; false for other equations and other types. */
bool eval_point(Ctx *, const Eqn *, const Scalar *in, Scalar *out);

/* Runs a program of such equations and while loops, with one result; may be run any number of times. */
typedef struct Evaluator Evaluator;
Evaluator *evaluator_new(Ctx *, const Jaxpr *);
bool evaluator_run(Evaluator *, const Scalar *in, Scalar *out);
/* The evaluator of a program of stdlib/, created on first use; NULL if there is no such program. */
Evaluator *stdlib_evaluator(Ctx *, const char *name);

#endif
