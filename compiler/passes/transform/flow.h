/* What control flow and calls share under jvp, split and transpose. */
#ifndef JAXCC_FLOW_H
#define JAXCC_FLOW_H
#include "tx.h"

/* The memory of one transformation: what is known of nested programs. */
typedef struct Flow {
    Intern taint_keys, made_keys; /* kind, program, bits */
    struct {
        Bits **at;
        uint32_t n, cap;
    } taints;
    struct {
        struct Made **at;
        uint32_t n, cap;
    } made;
    struct { /* by value of the programs read; taint.c */
        uint8_t *at;
        uint32_t n, cap;
    } marks;
    Intern origins_keys; /* vmap_updates.c: programs; by result, the inputs into which they write; */
    struct {
        struct Origin **at;
        uint32_t n, cap;
    } origins;
    ValMap written; /* results of equations → the operands into which these write; */
    struct {        /* by value of the programs read: is it an input, then a result? */
        bool *at;
        uint32_t n, cap;
    } updated;
    Effects effects;
    Memo pure;                              /* programs without effects; pure.c */
    Search whiles, loops, masked, shielded; /* made.c */
    Search exchanging;                      /* taint.c */
    Search heavy;                           /* vmap_control.c */
} Flow;
Flow *flow_of(Tx *);

/* ---- bits */
bool bits_some(Bits);
Bits bits_copy(Tx *, Bits);
Bits bits_part(Bits, uint32_t from, uint32_t n);
void bits_unite(bool *to, Bits with); /* to[i] |= with[i] */
/* Which of the n values are there. */
Bits bits_of(Tx *, uint32_t n, const Val *);

/* ---- values */
typedef struct {
    Val *at;
    uint32_t n, cap;
} ValList;
static inline Vals list_vals(ValList l) { return (Vals){l.at, l.n}; }
/* Appends the values whose bit is `want`; those that are not 0. */
void add_where(Tx *, ValList *, const Val *, Bits, bool want);
void add_nonzero(Tx *, ValList *, uint32_t n, const Val *);
/* The operands from `first` on, one for each bit, then the tangents of those with one, arrays of zeros for those that
   are zero. */
Vals jvp_operands(Jvp *, uint32_t first, Bits some);
/* Writes the values to those places of `to` whose bit is `want`, in order. */
void put_where(Val *to, Bits, bool want, const Val *from);

/* The residuals as values of the program that runs the known one with these operands, by input of the program read, and
   results. */
Val *residual_values(Tx *, const MadeSplit *, const Val *operands, const Val *results);
/* Of a program divided whose residuals are too many: the unknown program computes them again from the known inputs,
   which take their place, but for those with effects. `unknown`: inputs of the program read. */
bool split_again(Tx *, Builder *, Bits unknown, MadeSplit *);
/* Writes `e`, whose results are those of the equation and the tangents of those of `dt`, in two groups, the first of
   `group` results; their types are those of the equation. */
bool jvp_run(Jvp *, const Eqn *e, Bits dt, uint32_t group);
/* The cond `like` of these branches, which has no results yet; `in`: the operands of all branches, without the
   index. */
Eqn cond_like(Tx *, Builder *, const Eqn *like, const Inner *branches, ValList in);
/* A literal as a variable, so that it may be an extent; any other value. */
Val b_variable(Builder *, Val);
/* The sums that loops carry for operands `first` and on, of those of `in`, 0: none; the equation takes them. Then they
   and cotangents are given back: `y`, for those of `in`. */
const Val *take_sums(Transpose *, uint32_t first, Bits in);
void give_sums(Transpose *, uint32_t first, Bits in, const Val *sums, const Val *y);
/* Does it return anything, or have effects? */
bool worth_running(Tx *, const Jaxpr *);
/* Of a call divided into two programs: calls the known one, if it is worth it, with the known operands: all that it
   returns, the equation's known results first. `out`: by result of the equation, is it unknown? */
Vals split_known(SplitEqn *, const Inner *, Bits out);
/* Then the unknown one, by a call like `e`, with `in` and the unknown operands. */
bool split_unknown(SplitEqn *, const Eqn *e, const Inner *, Bits out, ValList in);

/* Is it a call whose derivative need not be that of its program, and may be where the program has none? */
bool has_own_rule(Prim);

SplitRule split_call, split_cond, split_devices, split_remat, split_scan, split_while;

#endif
