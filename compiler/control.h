/* Control flow and calls: how their parameters divide operands, results and nested programs. Only these functions read
   and write that, and the type rules, which check it.

   A reader takes an equation apart into slices. In a checked program the counts always fit the operands and results and
   the inputs and results of nested programs. If they do not fit, programs are NULL, and a cond has no branches.

   A writer makes an equation from such parts, which it copies. The place and the other parameters come from `like`,
   which may have none; `linear`, which lists the operands that a function is linear in, is dropped if there are new
   ones. */
#ifndef JAXCC_CONTROL_H
#define JAXCC_CONTROL_H
#include "ir.h"

static inline Vals vals_part(Vals v, uint32_t from, uint32_t n) {
    assert(from + n <= v.n && (v.at || !n));
    return (Vals){v.at ? v.at + from : NULL, n};
}
/* The slices, concatenated. */
Vals vals_joined(Arena *, uint32_t n, const Vals *);

/* Those of the slice for which `which` says `want`; the same of a part of a list that begins at `first`, which `which`
   is for. */
Vals vals_where(Arena *, Vals, const bool *which, bool want);
static inline Vals part_where(Arena *arena, Vals part, const Val *first, const bool *which, bool want) {
    return part.n ? vals_where(arena, part, which + (part.at - first), want) : part;
}

/* scan: constants, carry, scanned arrays → final carry, stacked results. */
typedef struct {
    Jaxpr *body;
    Dim length; /* the parameter's value: see scan_length */
    bool reverse;
    Vals consts, carry, xs;
    Vals end, ys;
} Scan;
Scan scan_of(const Eqn *);
Eqn scan_eqn(Arena *, const Eqn *like, const Scan *);
/* One iteration: the slices are those of the inputs and results of the body, or of a rewritten body, in which more
   inputs and results may follow. */
Scan scan_turn(const Scan *, const Jaxpr *body);
/* The number of iterations: the extent of scanned and stacked arrays, since the parameter may be a name internal to
   JAX. */
Dim scan_length(const Ctx *, const Scan *);
/* Is it known to have an iteration? */
static inline bool scan_runs(const Ctx *cx, const Scan *s) {
    Dim n = scan_length(cx, s);
    return dim_is_const(n) && n > 0;
}

/* while: constants of the condition, of the body, carry → final carry. */
typedef struct {
    Jaxpr *cond, *body;
    Vals cond_consts, body_consts, carry;
    Vals tested; /* the part of the carry that the condition takes: all of it */
    Vals end;
    bool resizes;      /* Catalyst's: extents of the carry may change from turn to turn, */
    uint32_t implicit; /* and so many of its first values are such extents */
} While;
While while_of(const Eqn *);
Eqn while_eqn(Arena *, const Eqn *like, const While *);
/* One iteration: `cond_consts` and `tested` are inputs of the condition, `body_consts`, `carry` and `end` inputs and
   results of the body; or of rewritten programs. */
While while_turn(const While *, const Jaxpr *cond, const Jaxpr *body);

/* for_loop, Catalyst's: constants, extents of the carry, lower, upper, step, first index, carry → final extents, final
   carry. `bounds` are the four, or the index of one iteration. */
typedef struct {
    Jaxpr *body;
    Vals consts, implicit, bounds, carry;
    Vals end_implicit, end; /* end_implicit is empty in Catalyst's documentation, which omits them */
} ForLoop;
enum { FOR_LOWER, FOR_UPPER, FOR_STEP, FOR_FIRST, NFOR_BOUNDS };
ForLoop for_of(const Ctx *, const Eqn *);
ForLoop for_turn(const ForLoop *, const Jaxpr *body);

/* cond: the branch index, then the operands of every branch → the results of the branch that runs. */
typedef struct {
    Jaxprs branches;
    bool bools; /* Catalyst: a bool for each branch but the last; the first true one decides */
    Vals index; /* the index, or the bools */
    Vals in, out;
} Cond;
Cond cond_of(const Eqn *);
Eqn cond_eqn(Arena *, const Eqn *like, const Cond *);
Param cond_param(Jaxprs branches, bool bools); /* the parameter that holds them, which it does not copy */

/* Does it branch or loop, in the form that all passes know: cond, while, scan? */
static inline bool is_control(Prim p) { return p == P_cond || p == P_while || p == P_scan; }
/* Control flow with other operands and results: `in` maps a slice of operands of `e`, `out` one of results. Programs
   and other parameters come from `new`. For any other equation the slices are all operands and all results, and it is
   written as a call. */
typedef Vals ValsMap(void *user, Vals);
Eqn control_map(Arena *, const Eqn *e, const Eqn *new, ValsMap *in, ValsMap *out, void *user);

/* The number of leading results of a Catalyst loop that are extents of the others; -1: the text does not say. */
int64_t implicit_inputs(const Eqn *);

/* ---- calls */
bool prim_calls(Prim); /* the primitive only runs a program, whatever its other parameters mean */
/* The program in an equation's parameters, under any key; NULL if it has none. */
Jaxpr *eqn_program(const Eqn *);
/* Is it a call as the passes leave them, jit[name jaxpr], of a program that becomes a function? */
static inline bool calls_function(const Eqn *e) { return e->prim == P_jit; }
/* The program that `e` calls, and its operands; NULL if `e` is not a call. */
Jaxpr *eqn_body(Arena *, const Eqn *e, Vals *in);
/* A call with other operands and results. Parameters that list operands or results are dropped if their number
   changes. */
Eqn call_eqn(Arena *, const Eqn *like, Vals in, Vals out);
/* A call of another program, which has no results yet. Parameters that list operands or results are dropped. */
Eqn call_of(Arena *, const Eqn *like, Jaxpr *program, Vals in);

/* linear_call: constants of the callee, of its transpose, residuals, linear operands. */
typedef struct {
    Jaxpr *callee, *transpose; /* transpose: NULL since JAX 0.5 */
    Vals callee_consts, transpose_consts, residuals, linear;
} LinearCall;
LinearCall linear_call_of(const Eqn *);
Eqn linear_call_eqn(Arena *, const LinearCall *); /* with a transpose */

/* custom_lin, in a program that will be transposed: residuals, linear operands. `bwd` takes the residuals and the
   results' cotangents; NULL: the text names it only. */
typedef struct {
    Jaxpr *bwd;
    Vals residuals, linear;
} CustomLin;
CustomLin custom_lin_of(const Eqn *);
Eqn custom_lin_eqn(Arena *, const CustomLin *);

/* The operands of custom_jvp_call and custom_vjp_call that the derivative rule takes: those after the constants. */
Vals rule_operands(const Eqn *);

/* Such a call of another body, after constants that the rules do not take; `rules` are parameters. No results yet. */
Eqn custom_call_eqn(Arena *, const Eqn *like, Jaxpr *body, Vals consts, Vals operands, Params rules);

/* custom_linear_solve: constants of four programs, each NULL for None, then the right-hand sides. */
typedef enum { SOLVE_MATVEC, SOLVE_VECMAT, SOLVE_SOLVE, SOLVE_TRANSPOSE, NSOLVES } SolveProgram;
extern const char *const solve_field[NSOLVES];
typedef struct {
    Jaxpr *program[NSOLVES];
    Vals consts[NSOLVES], b;
} LinearSolve;
LinearSolve linear_solve_of(const Eqn *);                            /* no programs if the lengths do not fit */
Eqn linear_solve_eqn(Arena *, const Eqn *like, const LinearSolve *); /* no results yet */

/* ---- for programs that are still being completed: operands may not fit yet */

/* A program of an equation whose leading inputs, its constants, are operands of the equation. */
typedef struct {
    Jaxpr *program;
    uint32_t first; /* operand */
    int64_t *n;     /* how many; NULL if no parameter says */
} OwnConsts;
/* The k-th of them; false if there are no more, or counts are missing. */
bool own_consts(const Eqn *, uint32_t k, OwnConsts *);
/* A custom call whose text does not say so has n constants before its operands, which its rule does not take. */
void count_consts(Arena *, Eqn *, uint32_t n);
/* The branches of a cond, and the first of the operands that they take. */
Jaxprs cond_branches(const Eqn *, uint32_t *first);

#endif
