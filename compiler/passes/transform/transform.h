/* Transformations of programs: what the rules of the columns jvp, transpose and vmap of prims.def see. The rules are in
   passes/rules/, those of control flow and calls here. */
#ifndef JAXCC_TRANSFORM_H
#define JAXCC_TRANSFORM_H
#include "../build.h"

typedef struct Tx Tx; /* one transformation of a whole program: tx.h */

/* Has a value of this type a tangent: is it an array of floats or complex numbers? A tangent and a cotangent have the
   type of their value. */
bool has_tangent(const Ctx *, Type);
/* An error at `span`; false. The note that names the flag comes by itself, as for what `diag` reports. */
__attribute__((format(printf, 3, 4))) bool tx_error(Tx *, Span, const char *fmt, ...);
/* x + y as add_any; 0 stands for zero. */
Val tx_sum(Builder *, Val x, Val y);
/* The place of operand i of an equation. */
Span operand_span(const Eqn *, uint32_t i);

/* ---- jvp: the tangents of the results of an equation

   A tangent of 0 is zero: no value exists. A rule is called if some operand has another one. */
typedef struct {
    Tx *tx;
    Builder *b;
    const Eqn *e;    /* operands: values of the program that is written; results: for their number and types */
    const Eqn *read; /* the equation in the program read */
    const Val *t;    /* the tangent of each operand */
    Val *out;        /* the results: 0 until jvp_result copies the equation, or the rule writes all of them itself */
    Val *dt;         /* to be written: the tangent of each result; 0 at first */
} Jvp;
/* False after tx_error. */
typedef bool JvpRule(Jvp *);
/* Result k. The first use copies the equation, and so does the driver after the rule if no rule wrote results. */
Val jvp_result(Jvp *, uint32_t k);
/* The tangent of operand i, as an array of zeros if it is 0. The operand's type has tangents. */
Val jvp_tangent(Jvp *, uint32_t i);
/* `e` with other operands in place of its own, as a new equation: its results. */
Vals jvp_apply(Jvp *, const Val *in);

/* ---- transpose: the cotangents of the operands in which an equation is linear

   A cotangent of 0 is zero. A rule is called if some result has another one. */
typedef struct {
    Tx *tx;
    Builder *b;
    const Eqn *e; /* operands: values of the program that is written; those that are linear, and the results, stand
                           for their types only and must not become operands of what the rule writes */
    const bool *linear; /* by operand; for one at least */
    const Val *ct;      /* the cotangent of each result */
    const Eqn *read;    /* the equation in the program read */
} Transpose;
typedef bool TransposeRule(Transpose *);
/* Adds to the cotangent of linear operand i: a value of the operand's type; 0 adds nothing. */
void ct_add(Transpose *, uint32_t i, Val);
/* The same for a value that belongs to a part of the operand: the slice, as of the primitive slice (strides NULL: 1);
   the block that starts at these scalars, clamped as dynamic_slice does; what a scatter-add of these Places updates.
   Parts are put together when all are known. */
void ct_add_slice(Transpose *, uint32_t i, Val, const Dim *start, const Dim *limit, const int64_t *strides);
void ct_add_at(Transpose *, uint32_t i, Val, const Val *starts);
void ct_add_scattered(Transpose *, uint32_t i, Val updates, Val indices, Places);
/* Nested programs add to such a sum in place: they take what a loop carries for operand i and return it with what they
   add. 0: there is none, or it is taken. What was taken is given back, with more. */
Val ct_take(Transpose *, uint32_t i);
void ct_give(Transpose *, uint32_t i, Val taken, Val sum);
/* The cotangent of result k, as an array of zeros if it is 0. */
Val ct_result(Transpose *, uint32_t k);
static inline const ArrayType *ct_type(const Transpose *t, uint32_t i) { return b_type(t->b, t->e->in.at[i]); }

/* ---- vmap: an equation for a batch of examples

   A value that differs between the examples is batched: it has one axis more, the first, for them. A rule is called if
   some operand is batched. */
typedef struct {
    Tx *tx;
    Builder *b;
    const Eqn *e;        /* operands: values of the program that is written; results: for their number and types */
    const Eqn *read;     /* the equation in the program read */
    const bool *batched; /* by operand */
    Val *out;            /* to be written: the results */
    bool *out_batched;   /* to be written; all are true at first */
} Vmap;
typedef bool VmapRule(Vmap *);
/* The number of examples, and the name of their axis; empty: it has none. */
Dim vmap_size(const Vmap *);
Str vmap_axis(const Vmap *);
/* Is it a collective over this axis? */
bool names_axis(const Eqn *, Str);
/* The type of operand i, and of result k, of one example. */
const ArrayType *vmap_type(const Vmap *, uint32_t i);
const ArrayType *vmap_result_type(const Vmap *, uint32_t k);
/* A type of one example with the axis of the examples in front. */
Type vmap_batched(const Tx *, const ArrayType *);
/* Operand i with the axis of the examples, along which one that is not batched is broadcast. */
Val vmap_operand(Vmap *, uint32_t i);
/* The same for any value of one example. */
Val vmap_broadcast(Tx *, Builder *, Val);
/* Operand i as one that other operands of `rank` axes stretch: the axis of the examples is first, and has extent 1 in
   one that is not batched; a scalar that is not batched stays. */
Val vmap_stretched(Vmap *, uint32_t i, uint32_t rank);
/* A batched value as one without the axis of the examples, which stand side by side in `axis` of what has the type
   `one` for one example; and back. */
Val vmap_folded(Vmap *, Val, const ArrayType *one, uint32_t axis);
Val vmap_unfolded(Vmap *, Val, const ArrayType *one, uint32_t axis);
/* Writes `e` with other operands, as a new equation whose results are all batched, to v->out. */
bool vmap_apply(Vmap *, const Eqn *e, const Val *in);
/* `e` with the parameters that list axes or extents (axes.c) as they are when the axis of the examples is the first,
   and without those that repeat what types say. */
Eqn vmap_axes(const Vmap *, const Eqn *e);
/* Must the equation, which writes into operand 0, leave it as it is for the examples that are not really here? Then the
   new value for those that are, and the old one for the others. */
bool vmap_keeps(const Vmap *);
Val vmap_kept(const Vmap *, Val old, Val new);

/* ---- rules that many rows share */
/* linear: the equation applied to the tangents, with arrays of zeros for those that are 0; other operands stay.
   zero: the results have none. text: the programs of stdlib/jvp.jaxpr. expand: what the EXPAND rule writes is
   transformed. none: an error. point, front, each: see prims.def. */
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering)                                   \
    JvpRule jvp_##jvp;                                                                                                 \
    TransposeRule transpose_##transpose;                                                                               \
    VmapRule vmap_##vmap;
#include "../../prims.def"
extern JvpRule *const jvp_rules[NPRIMS];
extern TransposeRule *const transpose_rules[NPRIMS];
extern VmapRule *const vmap_rules[NPRIMS];

#endif
