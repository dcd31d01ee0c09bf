/* Index arithmetic of kernels: sums of coefficients times atoms. An atom is a loop, a quotient or remainder of an
   index, or an element of an integer array. Interned: equal indices have equal numbers. */
#ifndef JAXCC_INDEX_H
#define JAXCC_INDEX_H
#include "../../passes/passes.h"

typedef uint32_t Ix; /* 0 is the constant 0 */
typedef uint32_t Atom;
typedef struct {
    Atom atom;
    uint32_t pad;
    Dim coef;
} IxTerm;
typedef struct {
    Dim c;
    uint32_t n;
    const IxTerm *at; /* sorted by atom, with nonzero coefficients */
    bool data;        /* it contains an element of an array */
} IxExpr;
typedef enum { ATOM_LOOP, ATOM_DIV, ATOM_MOD, ATOM_VALUE } AtomKind;
/* The element of the integer array `v` at the index `at`, an Ix for each of its `rank` axes, clamped to [0, most].
   `wraps`: its lowest 32 bits, as a signed number. */
typedef struct {
    Val v;
    uint32_t rank;
    const Ix *at;
    Dim most;
    bool wraps;
} IxValue;
typedef struct {
    AtomKind kind;
    Dim extent;    /* the atom is in [0, extent) */
    Ix a;          /* DIV, MOD: the dividend */
    Dim b;         /* DIV, MOD: the divisor */
    IxValue value; /* VALUE */
    Atom into;     /* LOOP: collapsed into this loop, which then runs over both (0: itself) */
    bool merged;   /* LOOP: others were collapsed into it, and its extent is `run` */
    Dim run;
    Atom outer; /* LOOP: the next one outside that was collapsed into the same loop; 0: none */
} AtomInfo;

typedef struct Indices Indices;
Indices *indices_new(Ctx *);
const IxExpr *ix_at(const Indices *, Ix);
AtomInfo *atom_at(const Indices *, Atom);
Atom atom_loop(Indices *, Dim extent);
/* The loop that an index is; it is nothing else. */
Atom ix_loop(const Indices *, Ix);
/* Is it computed from an element of an array of rank above 0, whose read may depend on a condition? */
bool atom_data(const Indices *, Atom);
static inline Dim loop_extent(const Indices *x, Atom a) {
    return atom_at(x, a)->merged ? atom_at(x, a)->run : atom_at(x, a)->extent;
}
Ix ix_dim(Indices *, Dim c);
Ix ix_atom(Indices *, Atom);
Ix ix_add(Indices *, Ix, Ix);
Ix ix_sub(Indices *, Ix, Ix);
Ix ix_scale(Indices *, Ix, Dim);
Ix ix_div(Indices *, Ix, Dim); /* of an index that is never negative */
Ix ix_mod(Indices *, Ix, Dim);
Ix ix_value(Indices *, IxValue);
/* The coefficient of a loop in an index; *other says whether the loop also occurs inside an atom, for ix_coef_outside
   inside an atom that is not an element of an array. */
Dim ix_coef(const Indices *, Ix, Atom loop, bool *other);
Dim ix_coef_outside(const Indices *, Ix, Atom loop, bool *other);
/* Does the loop occur at all? */
bool ix_uses(const Indices *, Ix, Atom loop);
/* Bounds of the index; false if they are not known. */
bool ix_bounds(const Indices *, Ix, int64_t *lo, int64_t *hi);
/* Does it contain a quotient or remainder of the loop, by more than 2, that stays one however loops are split? */
bool ix_stays_divided(Indices *, Ix, Atom loop);
/* Is it a sum of loops times constants, so that its bounds for all iterations of some of them are known at once? */
bool ix_is_loops(const Indices *, Ix);
/* Replaces a loop by an index, everywhere in the index. */
Ix ix_substitute(Indices *, Ix, Atom loop, Ix by);
/* The same with `by` counting the iterations of all loops that were collapsed into it. In runs: see ix_divide_runs. */
Ix ix_replaced(Indices *, Ix, Atom loop, Ix by, bool in_runs);
/* a = d·quotient + rest. What divides d and all of `a` but a constant is not divided again, so that neighbouring
   elements have quotients and remainders in common. */
void ix_divide_runs(Indices *, Ix a, Dim d, Ix *quotient, Ix *rest);

#endif
