/* What type rules share. A demand that is not met reports and returns false. */
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
/* Of the parameter's name; of the primitive where it is left out. */
Span param_at(const Eqn *, ParamKey);
/* Terminated, for messages. */
const char *type_c(const Ctx *, Type);
const char *dim_c(const Ctx *, Dim);
/* The primitive as the text calls it. */
const char *name_of(const Ctx *, const Eqn *);

/* ---- demands */

bool want_operands(Ctx *, const Eqn *, unsigned n);
bool want_results(Ctx *, const Eqn *, unsigned n);
/* Both, for the rules of fixed arity. */
bool want(Ctx *, const Eqn *, unsigned operands, unsigned results);
bool want_kind(Ctx *, const Eqn *, const Type *in, unsigned i, unsigned kinds);
/* Operand `i` has the element type of operand `as`. */
bool want_dtype_of(Ctx *, const Eqn *, const Type *in, unsigned i, unsigned as);
bool want_scalar(Ctx *, const Eqn *, const Type *in, unsigned i);
/* The parameter is there, and its value has the form that params.def says. */
bool want_param(Ctx *, const Eqn *, ParamKey);
/* Says what the value of the parameter must be instead, with an example; returns false. */
bool param_wrong(Ctx *, const Eqn *, ParamKey, const char *must_be);
/* No parameter is a misspelt one; all whose form is known have it. */
bool want_params(Ctx *, const Eqn *);
/* A note: the parameters that decide the element type, the shape of a result. */
void note_params(Ctx *, const Eqn *, bool dtype, bool shape);
/* The parameter is an axis of an array of that rank. */
bool want_axis(Ctx *, const Eqn *, ParamKey, int64_t axis, uint32_t rank);
/* The parameter holds different axes; marks them in `marked[rank]`. */
bool want_axes(Ctx *, const Eqn *, ParamKey, Ints axes, uint32_t rank, bool *marked);
/* The parameter has one entry for each axis. */
bool want_length(Ctx *, const Eqn *, ParamKey, uint32_t n, uint32_t rank);
/* An element type that the parameter gives. */
bool want_param_dtype(Ctx *, const Eqn *, ParamKey, Dtype *);

/* The parameter is an integer of at least `least`. */
bool want_int(Ctx *, const Eqn *, ParamKey, int64_t least, int64_t *);
/* The parameter, where it is given, is one of these words (NULL behind them), perhaps with the name of an enum before
   it. */
bool want_word(Ctx *, const Eqn *, ParamKey, const char *const *words);
/* The integers of a field of the record that the parameter holds; none where it is left out. */
bool want_field(Ctx *, const Eqn *, ParamKey, const char *field, Ints *);
/* The field holds different axes; marks them in `marked[rank]`. */
bool want_field_axes(Ctx *, const Eqn *, ParamKey, const char *field, Ints axes, uint32_t rank, bool *marked);

/* "the result is T2, but operand 0 is T1": two operands that disagree, reported at the later one.
 */
bool operands_disagree(Ctx *, const Eqn *, const Type *in, unsigned i, unsigned with);
/* A note that shows where operand `i` comes from. */
void note_operand(Ctx *, const Eqn *, unsigned i, Type);

/* ---- dimensions: false where they differ for sure; what is undecided is checked at entry */

bool dims_agree(Ctx *, Dim, Dim, Span);
bool dims_at_most(Ctx *, Dim a, Dim b, Span);
/* Equal shapes; element types do not matter. */
bool shapes_agree(Ctx *, Type, Type, Span);
/* Equal up to what a type may carry besides (TypeExtra). */
bool types_agree(Ctx *, Type, Type, Span);

/* Is some extent a variable? */
bool type_has_bound(const Ctx *, Type);
Type type_like(Ctx *, Type shape, Dtype); /* the same shape, another element type */

/* c64 ↔ f32, c128 ↔ f64; other element types are what they are (complex.c). */
Dtype dtype_real(Dtype);
Dtype dtype_complex(Dtype);
/* The extents, with room for two more. */
Dim *dims_copy(Ctx *, const ArrayType *);
/* Operands of one element type: scalars meet arrays, and extent 1 stretches (elementwise.c). */
bool shapes_meet(Ctx *, const Eqn *, const Type *in, Dtype, Type *out);

/* What is checked from here on is inside of a program that binds the axis over `size` devices; until Ctx.axes is put
   back (collective.c). */
void axis_bind(Ctx *, Str name, int64_t size);

/* Has this pallas_call no grid, and references to all of its operands and results? Operands of a grid may be its
   extents (call.c). */
bool kernel_runs_once(const Eqn *);

/* ---- products (dot.c) */

/* Which axes of two operands meet. */
typedef struct {
    ParamKey key; /* the parameter that says so */
    Ints contracted[2], batch[2];
    Type type[2];
    bool *used[2]; /* by axis: it does not stand alone in the result */
    Dtype dtype;   /* of the result */
} Dot;
/* Reads (([l], [r]), ([lb], [rb])). */
bool dot_axes(Ctx *, const Eqn *, ParamKey, const Value *, Dot *);
/* `left` (operand 0, or what it stands for) and operand `right` fit together; fills in what does not stand in the text.
   */
bool want_dot(Ctx *, const Eqn *, const Type *in, Type left, unsigned right, Dot *);
/* The one of two element types that holds products of both; DT_none where neither is more precise. */
Dtype dtype_of_product(Dtype, Dtype);
/* JAX's DotAlgorithmPreset. */
typedef struct {
    const char *name;
    Dtype types[2]; /* of operands: others become the first one; none: all remain */
    Dtype sum;      /* of products; none: the result's */
} DotAlgorithm;
/* The one that `precision` names; NULL. */
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
/* The axes whose extents the sizes of groups have in front: batch, then those before `axis` in `among`; how many. */
uint32_t ragged_prefix(Ints batch, Ints among, int64_t axis, int64_t *prefix);

/* ---- references (state.c) */

bool type_is_ref(const Ctx *, Type);
/* Only calls, control flow and the primitives of references take one. */
bool want_no_refs(Ctx *, const Eqn *, const Type *in);
/* tree=PyTreeDef((…,)) of a get, a swap, an addupdate: what its brackets are; NULL where there are none. */
const Value *tree_of(const Eqn *);
/* A constant in the brackets behind a reference, `otherwise` where there is none; false for what is no number. */
bool index_number(const Value *, int64_t otherwise, int64_t *);
/* The numbers in a text such as {reshape([4, 3])}. */
Dims text_numbers(Ctx *, Str);
/* How a program whose equations are checked uses its references. */
void check_refs(Ctx *, const Jaxpr *);

/* ---- nested programs (control.c, check.c) */

/* The program in a parameter takes values of these types and gives `results`; in untyped text its
   inputs take them. Element types and shapes are compared where it has types. */
bool want_program(Ctx *, const Eqn *, ParamKey, Jaxpr *, const Type *takes, uint32_t n, uint32_t results);
/* The type of result `i` of a nested program; an untyped literal takes `like`. 0: unknown. */
Type result_type(Ctx *, const Jaxpr *, uint32_t i, Type like);
/* The input of a for_loop's body that operand `i` becomes; 0: none (catalyst.c). */
Val for_loop_input(const Ctx *, const Eqn *, uint32_t i);

/* Checks a nested program that no one has checked yet. */
void check_nested(Ctx *, Jaxpr *, Span caller);

/* Gives what the text leaves out: parameters of old printers, the types of literals (untyped.c). */
void complete(Ctx *, Eqn *, Type *in);
/* The type that a literal has by itself. */
Type literal_type(Ctx *, const Lit *);
/* Does the value of a literal fit its type? */
bool literal_fits(const Ctx *, const Lit *, Type);

#endif
