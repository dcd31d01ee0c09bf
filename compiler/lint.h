/* Warnings about a program that is correct but perhaps not what was meant. */
#ifndef JAXCC_LINT_H
#define JAXCC_LINT_H
#include "ir.h"

/* Reports all of them for a checked program; each nested program is visited once. */
void lint(Ctx *, const Jaxpr *);

/* Random keys used twice, in the program and its nested programs (lint_key.c). */
void lint_keys(Ctx *, const Jaxpr *);
/* Suspicious literals among the operands of one equation (lint_literal.c). */
void lint_literals(Ctx *, const Eqn *);

/* The place of operand `i`. */
static inline Span lint_at(const Eqn *e, unsigned i) { return e->in_at ? e->in_at[i] : e->span; }

#endif
