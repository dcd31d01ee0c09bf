/* The transformations of the command line: what their files share. */
#ifndef JAXCC_FLAGS_H
#define JAXCC_FLAGS_H
#include "tx.h"

/* A result, its place in the text or that of what it belongs to, and what it is, for readers of the header. */
typedef struct {
    Val v;
    Span place;
    Str is;
} Result;
/* A program being written whose inputs correspond to those of the one read. */
typedef struct {
    Tx tx;
    Builder b;
    const Jaxpr *read;
    const Transform *of;
    struct {
        Val *at;
        uint32_t n, cap;
    } in;
    struct {
        Result *at;
        uint32_t n, cap;
    } out;
    Intern names; /* of values, which new inputs must not have */
} Flag;

Flag flag_of(Ctx *, const Jaxpr *, const Transform *);
Val *flag_values(const Flag *, uint32_t n); /* n zeros */
bool flag_differentiable(const Flag *, Val);
Span flag_input_place(const Flag *, uint32_t i);
Span flag_result_place(const Flag *, uint32_t i);
/* ---- the program being written An input of the type of a value read, in which extents are inputs before it; all those
   of the program read, with their names. */
Val flag_input(Flag *, Val like, Str name);
Val *flag_primals(Flag *);
void flag_output(Flag *, Val, Span place, Str is);
void flag_result(Flag *, Val, uint32_t i); /* result i of the program read */
Jaxpr *flag_end(Flag *);                   /* NULL after an error */
/* ---- arguments: numbers of inputs */
bool flag_lists(const Transform *, uint32_t input);
bool flag_fits_arg(Flag *, int64_t arg);
/* ---- derivatives
   The program that returns the values and the tangents along the inputs that `along` lists, NULL: all; the same without
   what no result needs, which may have no transpose: its nested programs are those of no other program. */
const Jaxpr *flag_tangents(Flag *, const Transform *along);
const Jaxpr *flag_needed_tangents(Flag *, const Transform *along);
/* Writes the values to `f`, from these inputs, and to `out`, which has room for all results of `both`; `lin` gets the
   tangents. */
bool flag_split(Flag *f, const Jaxpr *both, const Val *primals, Val *out, Inner *lin);

Jaxpr *transform_vmap(Ctx *, const Jaxpr *, const Transform *);   /* flags_vmap.c */
Jaxpr *transform_jacfwd(Ctx *, const Jaxpr *, const Transform *); /* flags_jac.c */
Jaxpr *transform_jacrev(Ctx *, const Jaxpr *, const Transform *);
Jaxpr *transform_hessian(Ctx *, const Jaxpr *, const Transform *);

#endif
