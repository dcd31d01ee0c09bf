/* Constants: values that the text names but does not contain. */
#ifndef JAXCC_CONSTS_H
#define JAXCC_CONSTS_H
#include "ir.h"

typedef struct {
    Val val;
    const Jaxpr *holder; /* the program that contains the array literal, [...]; NULL for a constvar */
    bool unused;         /* belongs to a hoisted program that no equation names, or to one inside it */
} Constant;
typedef struct {
    Constant *at;
    uint32_t n, cap;
    uint32_t own;    /* how many, from the first on, are constvars of the program itself */
    uint32_t unused; /* how many are unused */
} Constants;

/* The constants of a program that was just read, in the order of --consts: its own, then those of nested programs and
   array literals in order of appearance. */
Constants consts_of(Ctx *, const Jaxpr *);
/* "a:f32[4]", "[...]:f32[4]"; without a type where the text prints none. */
Str constant_text(Ctx *, Val);

/* Warns that constants inside the program will become inputs; in a text without types that is an error instead. */
void consts_warn(Ctx *, const Jaxpr *);
/* --consts: binds const0, const1, … or arr_0, arr_1, … of an .npz file. Sets their data, and their type where the text
   prints none. False after a diagnostic: too few, too many, or a wrong type. */
bool consts_bind(Ctx *, Jaxpr *, const char *path);

#endif
