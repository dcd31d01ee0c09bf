/* Values of the program at an index, evaluated over a table of operations: those of the kernels write code, those of
   the planner record what would be read (record.h). */
#ifndef JAXCC_EVALUATE_H
#define JAXCC_EVALUATE_H
#include "../plan/plan.h"

/* What an operation gave. */
typedef struct {
    const void *v;   /* the instance's: a value of MLIR, or nothing */
    bool uniform;    /* it is the same for all lanes */
    uint32_t depth;  /* of the scope it was computed in */
    const void *any; /* of a condition that differs between the lanes: one for all, without which none of them has it;
                        NULL: none is known */
} Reg;

typedef struct Eval Eval;
typedef struct {
    Reg (*literal)(Eval *, Val);
    /* A value that is in memory or in a register of the host. */
    Reg (*read)(Eval *, Val, const Ix *index);
    /* The operand, 0 or 1, of an equation that is a product and is rounded once with it; 2: neither. */
    uint32_t (*product)(Eval *, const Eqn *);
    /* An elementwise equation of n operands; with a product x has its two factors, then the other operand. */
    Reg (*point)(Eval *, const Eqn *, uint32_t product, const Reg *x, uint32_t n);
    /* All results of an equation that is a program with loops, at an index of its elements. Of x what is an array
       inside the program has no value, only whether it is the same for all lanes; of y stacks have none. */
    void (*program)(Eval *, const Eqn *, const Ix *element, const Reg *x, Reg *y);
    Reg (*constant)(Eval *, Dtype, double);
    Reg (*fill)(Eval *, const Eqn *gather); /* the value of windows that are not inside */
    Reg (*index)(Eval *, Ix, Dtype);        /* an index as a value */
    Reg (*between)(Eval *, Ix, Dim lo, Dim hi);
    Reg (*inside)(Eval *, const IxValue *, Reg element); /* is it in [0, most]? */
    Reg (*both)(Eval *, Reg, Reg);
    Reg (*narrowed)(Eval *, Reg condition); /* it and the guard hold */
    Reg (*choose)(Eval *, Reg condition, Reg yes, Reg no);
    void (*edge)(Eval *, Ix, Dim lo, Dim hi); /* padding is read at an index that is not in [lo, hi) */
    void (*place)(Eval *, const IxValue *);   /* the element is a term of an index that is read at */
} Operations;

/* Inside the scope of this depth the predicate is known to be `taken`, and with it some that `and`, `or` and `not`
   compute from it: a select_n by one of these is a known case, and what is combined with one is one of the operands. */
typedef struct {
    Val predicate; /* 0: none is known */
    uint32_t taken, depth;
} Decided;
/* Scopes: a loop has two where it is done in blocks; kinds of kernels and programs of elements open a few more. */
enum { MAX_DEPTH = 2 * STEP_NEST + 8 + ELEMENT_NEST };
struct Eval {
    const Operations *op;
    Plan *plan;
    Step *step; /* whose members are evaluated, not read; NULL: reads of all members are reported */
    Indices *ix;
    /* open scopes: 0 is where the kernel starts, each loop is one more; a number for each that was ever opened */
    uint32_t serials[MAX_DEPTH], depth, serial;
    struct Memo *memo;
    Reg guard; /* loads only in lanes where this holds; v NULL: all */
    uint32_t guard_id, nguards;
    Decided decided;
    bool inside;    /* no padding is read here */
    uint32_t level; /* the stage being evaluated */
};
void eval_open(Eval *, const Operations *, Plan *, Step *);
/* Forgets everything. */
void eval_forget(Eval *);
void eval_enter(Eval *);
void eval_leave(Eval *);

/* v at an index (one Ix per axis of v). */
Reg eval_value(Eval *, Val v, const Ix *index);
/* Result `out` of an equation, evaluated even if the plan has it stored. */
Reg eval_equation(Eval *, const Eqn *, uint32_t out);
/* The results of an equation that is a program, at an index of its elements; they are remembered. */
Reg *eval_program(Eval *, const Eqn *, const Ix *element);
/* Remembers that v at that index is `r` (results of reductions, accumulators of matrix products). */
void eval_remember(Eval *, Val v, const Ix *index, Reg r);
/* An element of an array that is a term of an index. */
Reg eval_element(Eval *, const IxValue *);
/* Until eval_unguard, loads happen only in the lanes where the condition holds; returns the guard to restore. */
Reg eval_guard(Eval *, Reg condition);
void eval_unguard(Eval *, Reg before);
/* The address of v[index] in its buffer: the start of v plus the index times the strides. */
Ix eval_address(Plan *, Val v, const Ix *index);
/* The index of an elementwise equation's operand: empty for a scalar, 0 along an axis of extent 1 that stretches. */
void eval_operand(Plan *, const Eqn *, Val x, const Ix *index, Ix *out);

/* ---- what has been computed, by a kind and a number, valid while its scope is open. Kinds below these are values of
   the program. */
enum {
    KEY_INDEX = UINT32_MAX,
    KEY_ATOM = UINT32_MAX - 1,
    KEY_BUF = UINT32_MAX - 2,
    KEY_AHEAD = UINT32_MAX - 3,
    KEY_ROWS = UINT32_MAX - 4, /* below it, one for each row of a tile */
    KEY_DIM = UINT32_MAX - 100
};
uint32_t memo_id(Eval *, uint32_t kind, uint64_t number, const Ix *index, uint32_t n);
bool memo_get(const Eval *, uint32_t id, Reg *);
Reg memo_set(Eval *, uint32_t id, Reg);

/* ---- rules by family: the `lowering` column of prims.def */
/* Result `out` of an index operation at an index. */
typedef Reg IndexRule(Eval *, const Eqn *, uint32_t out, const Ix *index);
extern IndexRule *const index_rule[NPRIMS];
/* The result of a reduction whose axes all have extent 1. */
Reg reduce_unit(Eval *, const Eqn *, const Ix *index);

#endif
