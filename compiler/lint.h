/* Warnings about a program that is right, but perhaps not what was meant. */
#ifndef JAXCC_LINT_H
#define JAXCC_LINT_H
#include "ir.h"

/* All of them, for a checked program; each nested program is looked at once. */
void lint(Ctx *, const Jaxpr *);

/* Keys used twice, in the program and in those nested in it (lint_key.c). */
void lint_keys(Ctx *, const Jaxpr *);
/* The literals among the operands of one equation (lint_literal.c). */
void lint_literals(Ctx *, const Eqn *);

/* Where operand `i` stands. */
static inline Span lint_at(const Eqn *e, unsigned i) { return e->in_at ? e->in_at[i] : e->span; }

#endif
