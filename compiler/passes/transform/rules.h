/* Derivative rules of custom calls, which the text of a program does not carry: those of --rule, and those of stdlib/
   for functions of JAX's own libraries. */
#ifndef JAXCC_RULES_H
#define JAXCC_RULES_H
#include "tx.h"

/* A rule with the types of one call. jvp: primals, tangents of the float ones → results, tangents of the float ones.
   fwd: primals → results, residuals. bwd: residuals, cotangents of the float results → cotangents of the float
   primals. */
typedef struct {
    Jaxpr *jvp, *fwd, *bwd; /* NULL: none */
    bool whole;             /* jvp takes all operands: the constants of the function, which have no tangents, too */
} CustomRule;

/* The rule for custom_jvp_call or custom_vjp_call `e` of a program read: that on the equation, else of --rule, else of
   stdlib/. No programs if none is known. */
CustomRule rule_of(Ctx *, const Eqn *e);
/* The rule of stdlib/ for this custom_jvp_call; NULL if there is none. */
Jaxpr *wellknown_rule(Ctx *, const Eqn *e);
/* Its name: "relu". */
Str rule_name(const Eqn *e);

/* ---- a program for other types of its inputs (fit.c) */
typedef enum {
    FIT_SYMBOLS, /* symbolic extents stand for what is there */
    FIT_LEADING, /* and a leading `n` for any number of leading axes, element types for others of their kind */
} FitKind;
typedef struct Fit Fit;
Fit *fit_new(Ctx *, FitKind);
/* Can an input of type `of` have the type `is`? The same symbol is the same in all. */
bool fit_type(Fit *, Type of, Type is);
/* The type with what is known of symbols and element types. */
Type fitted_type(Fit *, Type);
/* The program; NULL if it cannot be rewritten so. */
Jaxpr *fit_program(Fit *, const Jaxpr *);

/* Do two programs do the same, the first for the vector of all elements of arrays with the axes `lead`, which the
   second is for (alike.c)? */
bool programs_alike(Ctx *, const Jaxpr *, const Jaxpr *, Dims lead);

#endif
