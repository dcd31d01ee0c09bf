/* Constants: values that the text names but cannot hold. */
#ifndef JAXCC_CONSTS_H
#define JAXCC_CONSTS_H
#include "ir.h"

typedef struct {
    Val val;
    const Jaxpr *holder; /* the program that an array literal, [...], stands in; NULL for a constvar */
    bool unused;         /* of a hoisted program that no equation names, or of one inside it */
} Constant;
typedef struct {
    Constant *at;
    uint32_t n, cap;
    uint32_t own;    /* the first ones are constvars of the program itself */
    uint32_t unused; /* how many are */
} Constants;

/* Those of a program that was just read as --consts counts them: its own, then those of nested
   programs and array literals in order of appearance. */
Constants consts_of(Ctx *, const Jaxpr *);
/* "a:f32[4]", "[...]:f32[4]"; without a type where the text prints none. */
Str constant_text(Ctx *, Val);

/* Warns where constants inside the program are to become inputs; not of text without types, where
 * that is an error. */
void consts_warn(Ctx *, const Jaxpr *);
/* --consts: binds const0, const1, … or arr_0, arr_1, … of an .npz file. Sets their data, and their
   type where the text prints none. False after diagnostics: too few, too many, or another type. */
bool consts_bind(Ctx *, Jaxpr *, const char *path);

#endif
