/* Shared by type rules. A demand (want…) that is not met is reported, and false returned. */
#ifndef JAXCC_RULE_H
#define JAXCC_RULE_H
#include "check.h"

/* Sets of element types, as bits. */
enum {
    OF_BOOL = 1 << DK_BOOL,
    OF_SINT = 1 << DK_SINT,
    OF_UINT = 1 << DK_UINT,
    OF_FLOAT = 1 << DK_FLOAT,
    OF_COMPLEX = 1 << DK_COMPLEX,
    OF_KEY = 1 << DK_KEY,
    OF_INT = OF_SINT | OF_UINT,
    OF_REAL = OF_INT | OF_FLOAT,
    OF_INEXACT = OF_FLOAT | OF_COMPLEX,
    OF_NUM = OF_REAL | OF_COMPLEX,
    OF_ANY = OF_NUM | OF_BOOL | OF_KEY
};

/* ---- places and names */

Span operand_at(const Ctx *, const Eqn *, unsigned i);
Span result_at(const Ctx *, const Eqn *, unsigned i);
/* The place of the parameter's name; of the primitive if the parameter is missing. */
Span param_at(const Eqn *, ParamKey);
/* Terminated, for messages. */
const char *type_c(const Ctx *, Type);
const char *dim_c(const Ctx *, Dim);
/* The primitive as the text calls it. */
const char *name_of(const Ctx *, const Eqn *);

/* ---- demands */

void operand_count_error(Ctx *, const Eqn *, unsigned n);
static inline bool want_operands(Ctx *cx, const Eqn *e, unsigned n) {
    if (e->in.n == n) return true;
    operand_count_error(cx, e, n);
    return false;
}
bool want_results(Ctx *, const Eqn *, unsigned n);
/* Both, for rules of fixed arity. */
bool want(Ctx *, const Eqn *, unsigned operands, unsigned results);
bool want_kind(Ctx *, const Eqn *, const Type *in, unsigned i, unsigned kinds);
/* Operand `i` has the element type of operand `as`. */
bool want_dtype_of(Ctx *, const Eqn *, const Type *in, unsigned i, unsigned as);
bool want_scalar(Ctx *, const Eqn *, const Type *in, unsigned i);
/* The parameter is present, and its value has the form that params.def gives. */
bool want_param(Ctx *, const Eqn *, ParamKey);
/* Reports what the value of the parameter must be instead, with an example; returns false. */
bool param_wrong(Ctx *, const Eqn *, ParamKey, const char *must_be);
/* No parameter name is misspelt; all parameters of a known form have it. */
bool want_params(Ctx *, const Eqn *);
/* A note that shows the parameters which determine the element type or the shape of a result. */
void note_params(Ctx *, const Eqn *, bool dtype, bool shape);
/* The parameter is an axis of an array of that rank. */
bool want_axis(Ctx *, const Eqn *, ParamKey, int64_t axis, uint32_t rank);
/* The parameter holds distinct axes; marks them in `marked[rank]`. */
bool want_axes(Ctx *, const Eqn *, ParamKey, Ints axes, uint32_t rank, bool *marked);
/* The parameter has one entry for each axis. */
bool want_length(Ctx *, const Eqn *, ParamKey, uint32_t n, uint32_t rank);
/* An element type that the parameter gives. */
bool want_param_dtype(Ctx *, const Eqn *, ParamKey, Dtype *);

/* The parameter is an integer of at least `least`. */
bool want_int(Ctx *, const Eqn *, ParamKey, int64_t least, int64_t *);
/* The parameter is a number, integer or not; `otherwise` if it is missing. */
bool want_real(Ctx *, const Eqn *, ParamKey, double otherwise, double *);
/* The parameter, if given, is one of these words (ended by NULL), perhaps preceded by the name of an enum. */
bool want_word(Ctx *, const Eqn *, ParamKey, const char *const *words);
/* The integers in a field of the record that the parameter holds; none if the field is missing. */
bool want_field(Ctx *, const Eqn *, ParamKey, const char *field, Ints *);
/* The field holds distinct axes; marks them in `marked[rank]`. */
bool want_field_axes(Ctx *, const Eqn *, ParamKey, const char *field, Ints axes, uint32_t rank, bool *marked);

/* Reports two operands whose types disagree, at the later one; returns false. */
void operands_error(Ctx *, const Eqn *, const Type *in, unsigned i, unsigned with);
static inline bool operands_disagree(Ctx *cx, const Eqn *e, const Type *in, unsigned i, unsigned with) {
    operands_error(cx, e, in, i, with);
    return false;
}
/* A note that shows where operand `i` was computed. */
void note_operand(Ctx *, const Eqn *, unsigned i, Type);

/* ---- dimensions: false if they certainly differ; what cannot be decided is checked on entry to the library */

bool dims_agree(Ctx *, Dim, Dim, Span);
bool dims_at_most(Ctx *, Dim a, Dim b, Span);
/* Equal shapes; element types do not matter. */
bool shapes_agree(Ctx *, Type, Type, Span);
/* Equal up to their extras (TypeExtra). */
bool types_agree(Ctx *, Type, Type, Span);

/* Is an extent a variable of the program? */
bool type_has_bound(const Ctx *, Type);
Type type_like(Ctx *, Type shape, Dtype); /* the same shape, another element type */

/* c64 ↔ f32, c128 ↔ f64; other element types are unchanged (complex.c). */
Dtype dtype_real(Dtype);
Dtype dtype_complex(Dtype);
/* The extents, with room for two more. */
Dim *dims_copy(Ctx *, const ArrayType *);
/* Operands of one element type: scalars may meet arrays, and extent 1 stretches (elementwise.c). */
bool shapes_meet(Ctx *, const Eqn *, const Type *in, Dtype, Type *out);

/* Does this pallas_call have no grid, and references to all of its operands and results? Operands may be extents of a
   grid (call.c). */
bool kernel_runs_once(const Eqn *);

/* ---- products (dot.c) */

/* The axes of two operands that are paired. */
typedef struct {
    ParamKey key; /* the parameter that lists them */
    Ints contracted[2], batch[2];
    Type type[2];
    bool *used[2]; /* by axis: it is contracted or a batch axis */
    Dtype dtype;   /* of the result */
} Dot;
/* Reads (([l], [r]), ([lb], [rb])). */
bool dot_axes(Ctx *, const Eqn *, ParamKey, const Value *, Dot *);
/* `left` (operand 0, or what it represents) and operand `right` fit together; sets the rest of Dot. */
bool want_dot(Ctx *, const Eqn *, const Type *in, Type left, unsigned right, Dot *);
/* The more precise of two element types, that of their products; DT_none if neither is. */
Dtype dtype_of_product(Dtype, Dtype);
/* JAX's DotAlgorithmPreset. */
typedef struct {
    const char *name;
    Dtype types[2]; /* of operands: others are converted to the first; none: all stay */
    Dtype sum;      /* of the sums; none: the result's type */
} DotAlgorithm;
/* The algorithm that `precision` names; NULL if it names none. */
const DotAlgorithm *dot_algorithm(const Eqn *);
/* The axes of scaled_dot; of scaled_matmul: [b, m, k] · [b, n, k]. */
bool scaled_axes(Ctx *, const Eqn *, Dot *);
/* [batch…, left…, right…] */
Type dot_type(Ctx *, const Dot *);

/* A product whose operand 0 has groups along an axis. */
typedef struct {
    Dot dot;
    int64_t axis, group; /* of operand 0 that has groups; of operand 1 with a matrix for each, where `axis` is free */
    enum { RAGGED_FREE, RAGGED_CONTRACTED, RAGGED_BATCH } where;
} Ragged;
bool ragged_axes(Ctx *, const Eqn *, Ragged *);
/* The leading axes of the group sizes: the batch, then those before `axis` in `among`; returns their number. */
uint32_t ragged_prefix(Ints batch, Ints among, int64_t axis, int64_t *prefix);

/* ---- references (state.c) */

bool type_is_ref(const Ctx *, Type);
/* No operand is a reference: only calls, control flow and the primitives of references take one. */
bool want_no_refs(Ctx *, const Eqn *, const Type *in);
/* tree=PyTreeDef((…,)) of get, swap or addupdate: the content of the brackets; NULL if there are none. */
const Value *tree_of(const Eqn *);
/* A constant in the brackets after a reference, `otherwise` if it is missing; false if it is not a number. */
bool index_number(const Value *, int64_t otherwise, int64_t *);
/* The numbers in a text such as {reshape([4, 3])}. */
Dims text_numbers(Ctx *, Str);
/* Checks how a program uses its references, once its equations are checked. */
void check_refs(Ctx *, const Jaxpr *);

/* ---- nested programs (control.c, check.c) */

/* The program in a parameter takes values of these types and returns `results` values. Element types and shapes are
   compared if it has types; in untyped text its inputs get these types. */
bool want_program(Ctx *, const Eqn *, ParamKey, Jaxpr *, const Type *takes, uint32_t n, uint32_t results);
/* The type of result `i` of a nested program; an untyped literal takes `like`. 0: unknown. */
Type result_type(Ctx *, const Jaxpr *, uint32_t i, Type like);
/* The input of a for_loop's body that operand `i` becomes; 0: none (catalyst.c). */
Val for_loop_input(const Ctx *, const Eqn *, uint32_t i);

/* Checks a nested program unless it has been checked. */
void check_nested(Ctx *, Jaxpr *, Span caller);

/* Adds what the text leaves out: parameters that old versions did not print, types of literals (untyped.c). */
void complete(Ctx *, Eqn *, Type *in);
/* The type that a literal has by itself. */
Type literal_type(Ctx *, const Lit *);
/* Does the value of a literal fit its type? */
bool literal_fits(const Ctx *, const Lit *, Type);

#endif
