/* Control flow and calls: what their parameters say about operands, results and the programs inside. Only the functions
   here read and write that, and the type rules, which check it.

   A reader takes an equation apart into slices of it. In a checked program they always fit: the counts, the operands
   and results, and the inputs and results of the programs inside. Where they do not, there is no program: it is NULL,
   and a cond has no branches.

   A writer makes an equation of such parts, which it copies. The place and the other parameters are those of `like`,
   which may be without any; `linear`, which once told of each operand whether a function is linear in it, goes. */
#ifndef JAXCC_CONTROL_H
#define JAXCC_CONTROL_H
#include "ir.h"

static inline Vals vals_part(Vals v, uint32_t from, uint32_t n) { return (Vals){v.at ? v.at + from : NULL, n}; }
/* The slices one after the other. */
Vals vals_joined(Arena *, uint32_t n, const Vals *);

/* scan: constants, carry, scanned arrays → the carry at the end, stacked results. */
typedef struct {
    Jaxpr *body;
    Dim length; /* as the parameter says it: see scan_length */
    bool reverse;
    Vals consts, carry, xs;
    Vals end, ys;
} Scan;
Scan scan_of(const Eqn *);
Eqn scan_eqn(Arena *, const Eqn *like, const Scan *);
/* One turn: the slices are those of the inputs and results of the body, or of what became of it: more inputs and results
   may stand behind them. */
Scan scan_turn(const Scan *, const Jaxpr *body);
/* What is scanned or stacked has the extent; the parameter may be a name of JAX's own that stands for nothing. */
Dim scan_length(const Ctx *, const Scan *);

/* while: constants of the condition, of the body, carry → the carry at the end. */
typedef struct {
    Jaxpr *cond, *body;
    Vals cond_consts, body_consts, carry;
    Vals tested; /* what the condition takes of the carry: all of it */
    Vals end;
} While;
While while_of(const Eqn *);
Eqn while_eqn(Arena *, const Eqn *like, const While *);
/* One turn: `cond_consts` and `tested` are inputs of the condition, `body_consts`, `carry` and `end` inputs and results
   of the body; or of what became of these. */
While while_turn(const While *, const Jaxpr *cond, const Jaxpr *body);

/* cond: which branch, then the operands of every branch → the results of the one that runs. */
typedef struct {
    Jaxprs branches;
    bool bools; /* Catalyst: a bool for each branch but the last, the first that is true decides; else the number */
    Vals index; /* the number, or the bools */
    Vals in, out;
} Cond;
Cond cond_of(const Eqn *);
Eqn cond_eqn(Arena *, const Eqn *like, const Cond *);

/* Control flow with other operands and results: `in` gives those for a slice of operands of `e`, `out` for results.
   Programs and other parameters are those of `new`. For any other equation the slices are all operands, all results. */
typedef Vals ValsMap(void *user, Vals);
Eqn control_map(Arena *, const Eqn *e, const Eqn *new, ValsMap *in, ValsMap *out, void *user);

/* How many leading results of a loop of Catalyst's are extents of the others; -1: the text does not say it. */
int64_t implicit_inputs(const Eqn *);

/* ---- calls */
bool prim_calls(Prim); /* the primitive does nothing but run a program, whatever else its parameters are for */
/* The program of an equation that has one, under any of its names; NULL. */
Jaxpr *eqn_program(const Eqn *);
/* The program that `e` is nothing but a call of, and its operands. NULL where it is no call. */
Jaxpr *eqn_body(Arena *, const Eqn *e, Vals *in);

/* linear_call: constants of the callee, of its transpose, residuals, what the callee is linear in. */
typedef struct {
    Jaxpr *callee, *transpose; /* transpose: NULL since JAX 0.5 */
    Vals callee_consts, transpose_consts, residuals, linear;
} LinearCall;
LinearCall linear_call_of(const Eqn *);

/* custom_linear_solve: constants of four programs, each NULL where it is None, then the right-hand sides. */
typedef enum { SOLVE_MATVEC, SOLVE_VECMAT, SOLVE_SOLVE, SOLVE_TRANSPOSE, NSOLVES } SolveProgram;
extern const char *const solve_field[NSOLVES];
typedef struct {
    Jaxpr *program[NSOLVES];
    Vals consts[NSOLVES], b;
} LinearSolve;
LinearSolve linear_solve_of(const Eqn *); /* no program where the lengths do not fit */

/* ---- text that is being completed: operands may not fit yet */

/* A program of an equation whose leading inputs are operands of its own: constants. */
typedef struct {
    Jaxpr *program;
    uint32_t first; /* of the operands */
    int64_t *n;     /* how many; NULL where no parameter says it */
} OwnConsts;
/* The k-th of them; false where there are no more, or counts are missing. */
bool own_consts(const Eqn *, uint32_t k, OwnConsts *);

#endif
