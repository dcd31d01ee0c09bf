/* The plan of a program: what becomes a kernel, in which order, where each value lies. */
#ifndef JAXCC_PLAN_H
#define JAXCC_PLAN_H
#include "index.h"
#include <assert.h>

/* ---- memory */
typedef enum {
    BUF_NONE,
    BUF_IN,    /* argument `k` of the entry function */
    BUF_OUT,   /* result `k` */
    BUF_CONST, /* data of a value, in the library */
    BUF_WORK,  /* `offset` in the workspace */
    BUF_HEAP,  /* taken while the call runs: its size is computed */
    BUF_SLOT,  /* a pointer that a loop sets: carry, slice of a scanned array */
    BUF_ROW    /* scratch of one row of a kernel, on its stack */
} BufKind;
typedef struct Buf {
    BufKind kind;
    uint32_t number;       /* in plan->bufs */
    uint32_t k;            /* IN, OUT: position; SLOT: 1 if it may be written in place */
    bool written;          /* SLOT: it is */
    struct Buf *behind[3]; /* SLOT: what it may point at */
    struct Buf *before;    /* SLOT of a carry's next value: that of its current one */
    Val v;                 /* CONST: whose data */
    Dim bytes, offset;
    uint32_t first, last; /* WORK: live in [first, last], positions of the schedule */
} Buf;
/* A buffer is its number: one that becomes another is a copy of it. NULL is no buffer. */
static inline bool same_buf(const Buf *a, const Buf *b) { return a && b && a->number == b->number; }

/* ---- what is known about a value of the body */
typedef enum {
    VAL_UNSEEN,
    VAL_VIRTUAL, /* computed wherever it is used */
    VAL_SCALAR,  /* rank 0: a register of the host code */
    VAL_MEMBER,  /* computed in a group; stored too where `buf` is set */
    VAL_STORED   /* lies in `buf` */
} ValClass;
typedef struct {
    ValClass class;
    const Eqn *e;    /* NULL: an input of the body */
    uint32_t out;    /* which result of e */
    uint32_t step;   /* that computes it */
    uint32_t uses;   /* not yet planned */
    uint32_t cost;   /* of one element, in operations, from what is stored */
    uint32_t depth;  /* virtual: how many equations evaluating it goes through */
    uint32_t pieces; /* virtual: of concatenations, that evaluating it may read */
    uint32_t level;  /* member: stage of its group */
    uint32_t need;   /* member: the last stage that evaluates it */
    bool row;        /* member: has the kept axes of the group only */
    Buf *buf;
    Ix offset;          /* in `buf`, in elements from its start */
    const Dim *strides; /* of its axes in `buf`, in elements; NULL: dense */
    struct Body *home;  /* an input that is the same in every turn: where it comes from; NULL: this body */
    bool borrowed;      /* an input of the body: its memory is not the body's to write */
} Info;

/* ---- steps: the schedule of one body */
typedef enum {
    STEP_LOOPS,
    STEP_DOT,
    STEP_CUM,
    STEP_SCATTER,
    STEP_RUNTIME, /* a call of C code */
    STEP_SPMD,    /* a program run once for each of several devices */
    STEP_SCALAR,
    STEP_COND,
    STEP_WHILE,
    STEP_SCAN
} StepKind;
typedef struct {
    Val v; /* what is stored */
    Buf *buf;
    Ix offset;          /* in elements */
    const Dim *strides; /* of v's axes in elements; NULL: dense */
    const Eqn *scatter; /* v are its updates: they go where it says, in a dense array */
    Dtype as;           /* converted to this when stored; DT_none: as it is */
    uint32_t level;     /* the stage that computes v */
    bool row;
} Store;
typedef struct Body Body;
typedef struct Carry Carry;
/* Memory that is taken before a step: of a HEAP buffer, given back when the body ends, or of an output. */
typedef struct Alloc {
    uint32_t step;
    Buf *buf;
    Val like;  /* OUT: the output */
    bool kept; /* HEAP: not given back by the body: a carry's next value */
} Alloc;
/* At most: reductions of a step; loops that are split in two, and so loops of a step. */
enum { STEP_REDUCTIONS = 32, STEP_SPLITS = 16, STEP_NEST = COMPILED_RANK + STEP_SPLITS };
typedef struct Step {
    StepKind kind;
    const Eqn *e; /* the equation of everything but LOOPS */
    uint32_t number;
    /* LOOPS and those with an epilogue: a domain and its members */
    Dims domain;   /* without axes of extent 1 */
    bool *reduced; /* LOOPS: which axes of the domain are reduced; SCATTER: done in order */
    bool reduces;
    uint32_t nreductions; /* at most STEP_REDUCTIONS */
    int64_t row_bytes;    /* of scratch rows */
    Ix *axes;             /* the domain's axes as indices over loops */
    Atom *kept, *red;     /* the loops, outermost first: over kept and over reduced axes; collapsed ones
                         left out */
    uint32_t nkept, nred; /* together at most STEP_NEST */
    Atom lane;            /* the loop vectors run along; 0: none */
    Atom unrolled;        /* a short kept loop, written out; 0: none */
    Atom jam;             /* a kept loop done several turns at once, which share what they read; 0: none */
    bool written_out;     /* the loops over reduced axes are few turns: no loops */
    struct Edge *edges;   /* between padding and what it surrounds (edge.c) */
    uint32_t nedges;
    Atom edge_loop;             /* the innermost loop that decides on which side of them an index is; 0: none */
    Atom tile;                  /* a kept loop done in blocks as wide as a vector, which are transposed in registers;
                  0: none */
    uint32_t narrowest, widest; /* bytes of the elements it reads and writes */
    Buf *parts;                 /* accumulators of the parts of a reduction of everything; NULL: it is not split */
    struct Dot *dot;            /* STEP_DOT: dot.c's */
    struct {
        Val *at;
        uint32_t n, cap;
    } members; /* in order */
    struct {
        Store *at;
        uint32_t n, cap;
    } stores;
    uint32_t levels; /* stages: 1 + the largest level */
    uint32_t cost;   /* of one element, in operations */
    uint32_t nreads; /* of what others compute, by its elementwise members */
    /* control flow: what becomes of each carry, stacked output or branch result */
    Body **bodies;
    uint32_t nbodies;
    Buf **arrays;        /* RUNTIME, SPMD: of the operands, then of the results */
    struct Plan *device; /* SPMD: of the program; it has a workspace of its own */
    struct Carry *carries;
    uint32_t ncarries;
    Buf **xs, **ys, **xs_slots, **ys_slots; /* SCAN: whole arrays and the part of one turn */
    uint32_t start, end;                    /* positions in the schedule */
} Step;
/* An array carried by a loop: read at `current`, written at `next`; the two trade places after each
   turn, over the buffers a and b. In place: only `current`, which starts as a copy of the operand
   in a. */
struct Carry {
    enum {
        CARRY_SCALAR,
        CARRY_FIXED,
        CARRY_IN_PLACE,
        CARRY_SWAP,
        CARRY_HEAP /* a new array in every turn */
    } kind;        /* FIXED: the body returns what it got; HEAP: a new array in every turn */
    Buf *operand, *current, *next, *a, *b, *result;
};
struct Body {
    const Jaxpr *j;
    struct {
        Step **at;
        uint32_t n, cap;
    } steps;
    Buf **out_slots; /* where results are wanted; NULL for scalars */
    struct {
        struct Alloc *at;
        uint32_t n, cap;
    } allocs; /* in the order of their steps */
    Body *outer;
    uint32_t depth;
    uint32_t weight;  /* how long its code will be, about: in scalar equations */
    bool conditional; /* a branch: what it does not run must not be computed before it */
};
typedef struct Plan {
    Ctx *cx;
    Arena *arena;
    Indices *ix;
    Info **info; /* by Val: plan_info */
    uint32_t ninfo;
    struct {
        Buf **at;
        uint32_t n, cap;
    } bufs;
    Body *top;
    struct Kernel *dry;
    Dim workspace;  /* bytes */
    bool heap;      /* sizes are computed, or C code is called: the body runs by jaxcc_rt_heap_run */
    bool *computed; /* by output: the library allocates it */
    bool fuse;      /* not at -O0: each equation is a step of its own */
    uint32_t position;
    uint32_t vector_bytes; /* of the target */
} Plan;

/* The index of a member of `step`: its axes over the domain's. False if its shape is neither the
   domain's nor that of the kept axes; *row says which. Axes of extent 1 do not count. */
bool step_index(Plan *, const Step *, Val, Ix *index, bool *row);
/* The same of what is known to have one of the two shapes, such as a member; returns `row`. */
bool step_at(Plan *, const Step *, Val, Ix *index);
/* The step of this body that computes the value. */
static inline Step *step_of(const Body *b, const Info *info) {
    assert(info->step > 0 && info->step <= b->steps.n);
    return b->steps.at[info->step - 1];
}
/* Schedules a copy of v before the next step (before the loop, where v is the same in every turn): into a new buffer of
   `elements` elements, v's axes at `strides`. */
Buf *plan_materialise(Plan *, Body *, Val v, const Dim *strides, Dim elements, Dtype as);

/* Scalars are registers of the host code, but for complex ones and keys, which lie in memory. */
static inline bool plan_register(const Plan *p, Val v) {
    const ArrayType *t = val_array(p->cx, v);
    return t->rank == 0 && dtype_info[t->dtype].kind != DK_COMPLEX && dtype_info[t->dtype].kind != DK_KEY;
}
Info *plan_info(Plan *, Val);
void plan_grow(Plan *);          /* after values were made */
void plan_constant(Plan *, Val); /* v is data of the library */
/* What a SCALAR step reads. */
void plan_scalar_reads(Plan *, const Step *, void (*seen)(void *, Val, const Ix *, Ix), void *user);
/* Of a program, or of one for several devices; NULL after a diagnostic. */
Plan *plan(Ctx *, const Jaxpr *, uint32_t vector_bytes);
/* A step at the end of the body over the axes of `shape` (DOT, LOOPS, CUM). */
Step *step_new(Plan *, Body *, StepKind, const Eqn *, const ArrayType *shape);
Buf *buf_new(Plan *, BufKind, Dim bytes);
void step_store(Plan *, Step *, Val, Buf *, Ix offset, const Dim *strides, Dtype as);
/* Where a store puts its value's element `index`. */
Ix store_address(Plan *, const Store *, const Ix *index);
/* How many parts a reduction of everything has: blocks of so many lanes, or turns of its outermost loop. */
enum { PART_LANES = 65536 };
Dim step_parts(Plan *, const Step *);
/* Sees to it that v lies in memory; returns where. */
Buf *plan_stored(Plan *, Body *, Val v);
/* What evaluating v at an index reads: `seen` for every value that is not virtual. */
void plan_reads(Plan *, Val v, const Ix *index, void (*seen)(void *, Val, const Ix *, Ix), void *user);
/* Finds the edges of a step whose loops are final (edge.c). */
void plan_edges(Plan *, Step *);
/* Loops, lanes and stages of a step whose members are complete (schedule.c). */
void schedule_step(Plan *, Body *, Step *);
/* What the step reads: of its members only what is stored. */
void step_reads(Plan *, Step *, void (*seen)(void *, Val, const Ix *, Ix), void *user);
/* Sets `weight` once the steps are complete (part.c). */
void plan_weigh(Body *);
/* Offsets in the workspace (buffers.c). */
void plan_buffers(Plan *);
/* Bodies of control flow (control.c). */
Ix index_start(Plan *, Val start, Dim most); /* a dynamic start, maybe a literal, clamped to [0, most] */
bool plan_control(Plan *, Body *, const Eqn *);
bool plan_body(Plan *, Body *);

#endif
