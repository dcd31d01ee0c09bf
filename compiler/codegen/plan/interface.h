/* The C function that a program becomes. */
#ifndef JAXCC_INTERFACE_H
#define JAXCC_INTERFACE_H
#include "../../ir.h"

/* The parameters in order: dimensions, inputs, outputs. Constants without data are the first inputs; values without
   elements (tokens, float0) have no parameter. */
typedef struct {
    const char *name; /* of the function, which no parameter may have; NULL: there is no interface */
    Dims dims;        /* the symbols, in order of first appearance in the types of inputs, outputs, body */
    Vals in, out;     /* in: variables; out: variables or literals */
    Str *names;       /* of all parameters, dims.n + in.n + out.n distinct C identifiers; terminated */
    Str *is;          /* by output: what flags made it; or empty */
} Signature;
Signature signature_of(Ctx *, const char *name, const Jaxpr *);
/* Its dimensions, without the rest. */
Dims program_symbols(Ctx *, const Jaxpr *);
/* That of a program within one that has these symbols: it gets all of them. Without names. */
Signature signature_within(Ctx *, Dims symbols, const Jaxpr *);

/* A dimension as text in terms of the names of symbols and, for scalars that are inputs or outputs, of parameters. */
Str signature_dim_text(Ctx *, const Signature *, Dim);
/* The type of a parameter in the same terms. */
Str signature_type_text(Ctx *, const Signature *, Val);
/* Does the program compute an extent of this output? Its parameter is a jaxcc_array *. */
bool signature_computed(Ctx *, const Signature *, Val out);

#endif
