/* The plan of a program: the kernels, their order, and the memory of each value. */
#ifndef JAXCC_PLAN_H
#define JAXCC_PLAN_H
#include "../../passes/rewrite.h"
#include "../target/target.h"
#include "index.h"
#include <assert.h>

/* ---- memory */
typedef enum {
    BUF_NONE,
    BUF_IN,    /* argument `k` of the entry function */
    BUF_OUT,   /* result `k` */
    BUF_CONST, /* data of a value, in the library */
    BUF_WORK,  /* `offset` in the workspace */
    BUF_HEAP,  /* allocated during the call: its size is computed */
    BUF_SLOT,  /* a pointer that a loop sets: carry, slice of a scanned array */
    BUF_ROW    /* scratch of one row of a kernel, on its stack */
} BufKind;
typedef struct Buf {
    BufKind kind;
    uint32_t number; /* in plan->bufs */
    uint32_t k;      /* IN, OUT: position; SLOT: 1 if it may be written in place */
    bool written;    /* SLOT: it is written in place */
    bool lent;       /* another value may lie here as well, after a loop of no turns: it is not written in place */
    struct Buf *behind[3]; /* SLOT: the buffers that it may point to */
    struct Buf *before;    /* SLOT of a carry's next value: the slot of its current one */
    Val v;                 /* CONST: whose data */
    Dim bytes, offset;
    uint32_t first, last; /* WORK: live in [first, last], positions of the schedule */
} Buf;
/* Buffers are compared by number: one that is replaced becomes a copy of another. NULL is no buffer. */
static inline bool same_buf(const Buf *a, const Buf *b) { return a && b && a->number == b->number; }

/* ---- what is known about a value of the body */
/* How elements are read: without edges; from an array or padding, where loads are masked; from several arrays, or with
   padding of narrow elements, which have no masks. */
typedef enum { EDGED_NOT, EDGED_PADDED, EDGED_JOINED } Edged;
typedef enum {
    VAL_UNSEEN,
    VAL_VIRTUAL, /* computed wherever it is used */
    VAL_SCALAR,  /* rank 0: a register of the host code */
    VAL_MEMBER,  /* computed in a step; also stored if `buf` is set */
    VAL_STORED   /* lies in `buf` */
} ValClass;
typedef struct {
    ValClass class;
    const Eqn *e;    /* NULL: an input of the body */
    uint32_t out;    /* which result of e */
    uint32_t step;   /* the step that computes it */
    uint32_t uses;   /* uses not yet planned */
    uint32_t slices; /* that read it, each for one elementwise equation alone */
    uint32_t cost;   /* operations for one element, starting from stored values */
    uint32_t depth;  /* virtual: the depth of equations that evaluating it goes through */
    uint32_t pieces; /* virtual: pieces of concatenations that evaluating it may read */
    Edged edged;     /* virtual: what evaluating it reads */
    uint32_t
        after; /* virtual: the step of the last scalar that extents follow from, of all that evaluating it goes through */
    uint32_t level;       /* member: the stage of its step */
    uint32_t first, need; /* member: the first and the last stage that evaluates it */
    bool row;             /* member: has only the kept axes of the step */
    bool stack;           /* member: what a loop of elements stacks; the loop writes it */
    Ix turn;              /* stack: the index of its first axis */
    bool once;            /* one operand of one equation is all that uses it */
    const Eqn *reader;    /* the first that reads it; NULL: none */
    const Eqn *mover; /* of those that only move elements of it alone, the one with the largest result; NULL: none */
    Dim moved;        /* elements of that result */
    const Eqn *into;  /* joins it and other arrays to a large one; NULL: none does */
    Buf *buf;
    Ix offset;                   /* in `buf`, in elements from its start */
    const Dim *strides;          /* of its axes in `buf`, in elements; NULL: dense */
    struct Body *home;           /* the body that a loop-invariant input comes from; NULL: this body */
    bool borrowed;               /* an input of the body, which must not write its memory */
    struct Attention *attention; /* whose step alone computes it, between its products; NULL: none */
    struct Body *cut; /* a member of a step of this body that earlier steps compute themselves; NULL: it is none */
} Info;

/* ---- steps: the schedule of one body */
typedef enum {
    STEP_LOOPS,
    STEP_DOT,
    STEP_CUM,
    STEP_SCATTER,
    STEP_SORT,    /* on a device */
    STEP_RUNTIME, /* a call of C code */
    STEP_SPMD,    /* a program that runs once for each of several devices */
    STEP_CALL,    /* a call of a program that is a function (call.c) */
    STEP_SCALAR,
    STEP_COND,
    STEP_WHILE,
    STEP_SCAN,
    STEP_KINDS
} StepKind;
/* The lanes of the vectors of the main loop along an axis (0: it has none) and of its remainder: one masked vector,
   or 1, element by element (0: it has none). */
typedef struct {
    uint32_t main, tail;
} Widths;
/* An axis in blocks of `width` neighbouring elements that begin every `apart` elements; width 0: it has one stride. */
typedef struct {
    uint32_t axis;
    Dim width, apart;
} Panels;
typedef struct {
    Val v; /* what is stored */
    Buf *buf;
    Ix offset;          /* in elements */
    const Dim *strides; /* of v's axes in elements; NULL: dense */
    Panels panels;      /* of an axis that has no stride */
    const Eqn *scatter; /* v holds the updates of this scatter, which determines their places in a dense array */
    Dtype as;           /* converted to this when stored; DT_none: not converted */
    uint32_t level;     /* the stage that computes v */
    bool row;
} Store;
typedef struct Body Body;
typedef struct Carry Carry;
/* Memory allocated before a step: for a HEAP buffer, freed when the body ends, or for an output. */
typedef struct Alloc {
    uint32_t step;
    Buf *buf;
    Val like;        /* OUT: the output */
    const Eqn *loop; /* HEAP: the scan that stacks it, its result `rows`; or NULL */
    Val rows;
    bool kept; /* HEAP: not freed by the body, as a carry's next value */
} Alloc;
/* Where padding begins: it is read at an index that is not in [lo, hi). */
typedef struct {
    Ix index;
    Dim lo, hi;
} Edge;
/* Sums of many terms run in blocks (sums.h): the n outermost reduced loops are cut, into blocks of so many
   iterations. */
typedef struct {
    uint32_t n;
    Dim *block;   /* by reduced loop */
    bool several; /* there is more than one block for all values of unknown extents */
} Cuts;
/* Upper bounds: ends of pieces of a loop; reductions of a step; loops split in two; loops of a step. */
enum { STEP_ENDS = 6, STEP_REDUCTIONS = 32, STEP_SPLITS = 16, STEP_NEST = COMPILED_RANK + STEP_SPLITS };
/* On a device: how the work is divided among blocks and threads. */
typedef struct {
    const Atom *loops; /* independent, collapsed: an item is a point of them; none: a unit */
    uint32_t nloops;
    Dim items;
    bool together;    /* several threads of a block do an item together; else each thread does one */
    uint32_t threads; /* of a block */
    /* together: one of the two, or the whole block does an item */
    uint32_t group; /* neighbouring threads share the lane loop: a power of two up to a warp, or the whole block */
    uint32_t
        chunks; /* the outermost reduced loop is divided into so many chunks; neighbouring threads have neighbouring
                        items, and those of one item are threads / chunks apart */
    uint32_t blocks;  /* that a multiprocessor has registers for; 0: any number */
    bool once;        /* there is a block for each item, … */
    uint32_t cluster; /* … or a cluster of so many, whose threads are the group; 0: a block */
    bool in_turn;     /* blocks do items in the order in which they begin, as one waits for those before it */
} Grid;
/* A long loop in parts; on a device they are items of the grid. */
typedef struct {
    Atom loop;       /* over the parts, the outermost one of the grid; 0: none, or prefixes of a CPU */
    Dim length;      /* iterations of a part */
    Dim items;       /* of the grid, in one part */
    uint32_t chunks; /* of the parts, if threads of a block have chunks of columns: Grid's when they are combined */
    bool waits;     /* parts of prefixes: one kernel does all, in which a part waits for what those before it leave … */
    uint32_t group; /* … or so many parts in all, for those of later groups; 0: there are no groups */
} Division;
/* A place in an array that the loops of a step read or write: what reductions read; what else is read; what is
   written. */
typedef enum { PLACE_TERM, PLACE_READ, PLACE_STORE } PlaceKind;
typedef struct {
    PlaceKind kind;
    bool guarded; /* it is read only under a condition */
    Buf *buf;
    Dtype dtype;
    Ix address;
} ArrayPlace;
enum { ROW_ARRAYS = 4 };
/* On a device: what a thread has of a row that several threads share, if that is known and in its registers: `turns`
   runs of `run` neighbouring elements, as many apart as the group's threads have together; the last one may not exist
   for all of them. */
typedef struct {
    uint32_t run, turns, group; /* turns 0: a loop goes along the row */
    uint32_t cluster;           /* of so many blocks, in which the group is; 0: one */
    Atom *loops;  /* nloops of them have become one, the last, which counts the iterations of all of them … */
    Dim *extents; /* … of so many */
    uint32_t nloops;
    Dim rest;                    /* the elements from here on are too many: each stage reads them; 0: there are none */
    ArrayPlace near[ROW_ARRAYS]; /* what reductions read of these comes to shared memory first */
    uint32_t nnear;
    Atom first, last; /* the number of the first run; of the last one, or that of the row if there is none */
} HeldRow;
/* On a device: updates of a scatter that meet in one place. */
typedef enum {
    MEET_IN_ORDER, /* a thread does all that may meet */
    MEET_NEVER,
    MEET_ATOMIC, /* they are combined in any order, with the same result */
    MEET_SHARED, /* the same, of a block at first in shared memory */
    MEET_LAST,   /* the last one is found before it is written: it has claimed the place */
    MEET_SORTED  /* positions are sorted by place: a thread does all of one place, in their order */
} Meeting;
/* Why an equation did not join the latest step that computes what it reads. */
typedef enum {
    APART_NOT,       /* it was not tried: there is no such step, or the equation always has a step of its own */
    APART_KIND,      /* that step takes no members, or as a product no reductions */
    APART_LONG,      /* it has enough members */
    APART_SHAPE,     /* the shapes differ */
    APART_LATER,     /* something else that is read is computed after it */
    APART_INDEX,     /* its members are read at other elements than those computed at the time */
    APART_ROWS,      /* it reads results of few long rows together with what they are reduced from */
    APART_REDUCTION, /* it reduces other axes, or as many as one step may */
    APART_EDGES,     /* it reduces rows of what is read across edges */
    APARTS
} Apart;
typedef struct {
    Apart why;
    uint32_t step; /* the one that it did not join; 0: there is none */
} Begun;
/* On a device: reads and stores of elements that are apart along the lane loop and beside each other along another go
   through shared memory (crossed.h). */
enum { MOST_CROSSED = 2 };
typedef struct {
    ArrayPlace at[MOST_CROSSED];
    uint32_t n, bytes;               /* of such places; of an element */
    Atom across;                     /* the other loop */
    uint32_t lane_side, across_side; /* iterations of the two loops in a tile, powers of two */
    Atom lane_tiles, across_tiles;   /* loops over tiles, … */
    Atom reads, words; /* … over accesses of 16 bytes along `across`, over words of elements along the lanes */
} Crossed;

typedef struct Step {
    StepKind kind;
    const Eqn *e; /* the equation, except for LOOPS */
    struct Body *body;
    uint32_t number; /* in the body */
    Begun begun;     /* why it was begun */
    Str symbol;      /* of its code, once that is written; empty: it is a part of the schedule's */
    /* LOOPS and those with an epilogue: a domain and its members */
    Dims domain;           /* without axes of extent 1 */
    bool *reduced;         /* by axis of the domain: LOOPS: reduced; SCATTER: done in order */
    uint64_t reads_beside; /* by axis of the domain: elements that it reads lie beside each other along it … */
    uint64_t reads_apart;  /* … or apart */
    Dim *like; /* elements between neighbours along each axis, in the first array read along all; NULL: none is */
    bool reduces;
    Edged edged;          /* what its members read */
    uint32_t nreductions; /* at most STEP_REDUCTIONS */
    int64_t row_bytes;    /* of scratch rows */
    Ix *axes;             /* the domain's axes as indices over loops */
    Atom *kept, *red;     /* the loops, outermost first: over kept and over reduced axes; collapsed ones
                         left out */
    uint32_t nkept, nred; /* together at most STEP_NEST */
    Atom lane;            /* the loop along which vectors run; 0: none */
    Atom unrolled;        /* a short kept loop that is unrolled; 0: none */
    bool beside;          /* it stores values beside each other: unrelated equations do not join it */
    bool interleaved;     /* the elements of all its iterations are stored together */
    Atom jam;             /* a kept loop with several iterations at once, which share loads, or that over the
                             positions of a scatter; 0: none */
    bool apart;           /* lanes read or write elements that do not lie beside each other */
    bool written_out;     /* the loops over reduced axes have few iterations and are unrolled */
    Dim half;             /* written out, longer sums are two chains: the iterations of the first; 0: one */
    Edge *edges;          /* where padding begins (edge.c) */
    uint32_t nedges;
    Val unswitched;             /* the predicate of a select_n, tested before the loops (unswitch.c); 0: none */
    uint32_t nends;             /* of the lane loop's pieces, if it is short and written out; none crosses an edge; … */
    Dim ends[STEP_ENDS];        /* … where one begins or ends, in order; 0: it is a loop */
    bool tile_tested;           /* conditions depend on the row of a tile, … */
    bool tile_apart;            /* … some of which are no edges */
    Atom edge_loop;             /* the innermost loop that moves an index across an edge; 0: none */
    Atom tile;                  /* a kept loop done in blocks as wide as a vector, which are transposed in registers;
                  0: none */
    uint32_t narrowest, widest; /* bytes of the elements it reads and writes */
    Buf *parts;        /* accumulators of the parts of a reduction, results of those of prefixes; NULL: not split */
    struct Dot *dot;   /* STEP_DOT: dot.c's */
    struct Sort *sort; /* STEP_SORT, MEET_SORTED: sort.c's */

    /* decided by the target (Target.decide) */
    Widths widths;  /* of `lane` */
    Cuts cuts;      /* of the sums */
    uint32_t rows;  /* of a tile: the iterations of `tile` that are done at once */
    uint32_t strip; /* of the lane loop, for each of which `tile` runs once; 0: it runs once */
    Buf *lines;     /* sums of columns, a few rows of terms at a time: their accumulators (kernels/reduce.c) */
    uint32_t turns; /* iterations of `jam` that are done at once */
    uint32_t block; /* iterations of the outermost loop in a unit */
    Dim units;      /* independent parts of the work, which threads share */
    Dim part_cost;  /* of a unit that is a part of a row of prefixes, in operations */
    Grid grid;      /* on a device */
    Division division;
    uint32_t columns; /* on a device: neighbouring sums that a thread has along `run_loop`; 0: one */
    uint32_t terms;   /* on a device: iterations of the innermost reduced loop whose terms are read at once; 0: one */
    HeldRow held;
    Crossed crossed;    /* n 0: there are none */
    uint32_t run;       /* on a device: neighbouring iterations of `run_loop` that a thread does at once; 0: one */
    uint32_t run_turns; /* such runs at once, as many apart as a block has threads */
    bool narrow_run;    /* their elements do not lie beside each other */
    Atom run_loop;      /* the lane loop or, for accesses that are apart along that, another kept loop */
    Atom runs;          /* a loop over runs */
    uint32_t run_rows;  /* as many neighbouring iterations of `row_loop` with a run in each; 0: one */
    Atom row_loop, row_runs;
    Meeting meeting;
    Grid updates; /* MEET_SHARED: of which an item of the grid is a part */
    struct {
        Buf *buf; /* by place: 1 + the number of the last position that is there; NULL: not needed */
        Dtype as;
        Dim places;
        Grid grid;
    } claims; /* MEET_LAST */

    struct {
        Val *at;
        uint32_t n, cap;
    } members; /* in order */
    struct {
        Store *at;
        uint32_t n, cap;
    } stores;
    uint32_t levels;   /* stages: 1 + the largest level */
    uint32_t cost;     /* of one element, in operations */
    uint32_t row_cost; /* of what is computed once for all terms that are reduced; a part of `cost` */
    uint32_t carried;  /* the most carries and constants of a loop that a member runs; 0: none does */
    bool crowded;      /* such a loop has room for fewer vectors (program_crowded) */
    uint32_t nreads;   /* values of other steps that its elementwise members read */
    /* control flow: memory of each carry, stacked output or branch result */
    Body **bodies;
    uint32_t nbodies;
    Buf **arrays; /* RUNTIME, SPMD, CALL: memory of the operands, then of the results, then the workspace of a CALL */
    uint32_t narrays;
    struct Call *call;   /* CALL: see call.c */
    struct Plan *device; /* SPMD: the plan of the program, with a workspace of its own */
    struct Carry *carries;
    uint32_t ncarries;
    Buf *decides; /* COND, WHILE on a device: the index or predicate, if the kernels of the bodies test it (guard.h) */
    uint32_t at_once;                       /* a WHILE of which so many turns are enqueued at once, at most */
    Buf **xs, **ys, **xs_slots, **ys_slots; /* SCAN: whole arrays, and their part in one iteration */
    uint32_t start, end;                    /* positions in the schedule */
} Step;
/* Its loops, the outermost first. */
static inline Atom step_loop(const Step *s, uint32_t i) { return i < s->nkept ? s->kept[i] : s->red[i - s->nkept]; }
/* Is the value computed wherever it is used, as far as this step is concerned? NULL: of no step. */
static inline bool info_virtual(const Info *i, const Step *s) {
    bool earlier = i->cut && s && s->body == i->cut && s->number < i->step;
    return i->class == VAL_VIRTUAL || earlier;
}
/* An array carried by a loop: read at `current`, written at `next`; the two swap after each iteration, using the
   buffers a and b. In place: only `current`, which starts as a copy of the operand in a. Copied: the same, and `next`
   is b, from where a step at the end of the body copies it. */
struct Carry {
    enum {
        CARRY_SCALAR,
        CARRY_FIXED,
        CARRY_IN_PLACE,
        CARRY_SWAP,
        CARRY_COPIED,
        CARRY_HEAP /* a new array in every iteration */
    } kind;        /* FIXED: the body returns its input */
    Buf *operand, *current, *next, *a, *b, *result;
};
struct Body {
    const Jaxpr *j;
    struct {
        Step **at;
        uint32_t n, cap;
    } steps;
    Buf **out_slots; /* where results must be stored; NULL for scalars */
    struct {
        struct Alloc *at;
        uint32_t n, cap;
    } allocs; /* in the order of their steps */
    Body *outer;
    uint32_t depth;
    uint32_t weight;  /* estimated length of its code, in scalar equations */
    bool conditional; /* a branch: its work must not be hoisted out of it */
};
typedef struct Callees Callees;
typedef struct Plan {
    Ctx *cx;
    Arena *arena;
    Indices *ix;
    const Target *target;
    Callees *callees; /* of the compilation */
    Info ***info;     /* by Val, in blocks, of which most are NULL in the plan of a function: plan_info */
    uint32_t ninfo;   /* blocks */
    ValMap copies;    /* of bodies: what stands for their values, while one is copied */
    struct {
        Buf **at;
        uint32_t n, cap;
    } bufs;
    Body *top;
    Buf **over; /* of a function, by result: the slot of the input whose memory it has; NULL: it has its own */
    struct Recorder *recorder; /* eval/record.h */
    Dim workspace;             /* bytes, of which products may read some after the last buffer */
    bool heap;                 /* sizes are computed, or C code is called: the body runs under jaxcc_rt_heap_run */
    bool *computed;            /* by output: the library allocates it */
    bool function;             /* called by the program, with arrays at any place */
    bool failed;               /* a diagnostic was given while a step was scheduled */
    bool unswitches;           /* it has equations for plan_unswitch */
    bool fuse;                 /* not at -O0: each equation is a step of its own */
    uint32_t position;
    struct {
        bool *at;
        uint32_t n, cap;
        Intern keys; /* of the programs walked, with their inputs' bits */
        Intern programs, loops;
        struct {
            bool *at;
            uint32_t n, cap;
        } by_kernels, loops_guarded; /* of these programs: kernels do all of it; loops there go on without the host */
        struct {
            bool **at;
            uint32_t n, cap;
        } results;
    } known; /* by Val, for a device: does the host know the scalar? (known.c) */
} Plan;

/* Gets a value that is read, at which index, and its address, in elements, if it has a buffer. */
typedef void Seen(void *user, Val v, const Ix *index, Ix address);

static inline bool eqn_reduces(const Eqn *e) {
    return prim_lower[e->prim] == LOWER_REDUCE || prim_lower[e->prim] == LOWER_ARG;
}
void plan_count_uses(Plan *, const Jaxpr *); /* of the values of a body: adds to Info.uses */
uint32_t eqn_cost(const Eqn *);              /* in additions, for an element */
static inline bool eqn_point(const Eqn *e) { return prim_elementwise(e->prim) || prim_lower[e->prim] == LOWER_PROGRAM; }

/* The index of a member of `step` in terms of the domain's axes, that of a stack after the loop's turn. False if its
   shape is neither that of the domain nor that of the kept axes; *row says which. Axes of extent 1 do not count. */
bool step_index(Plan *, const Step *, Val, Ix *index, bool *row);
/* The same for a value known to have one of the two shapes, such as a member; returns `row`. */
bool step_at(Plan *, const Step *, Val, Ix *index);
/* The step of this body that computes the value. */
static inline Step *step_of(const Body *b, const Info *info) {
    assert(info->step > 0 && info->step <= b->steps.n);
    return b->steps.at[info->step - 1];
}
/* The outermost body in which v can be computed: that before the loop, if v is loop-invariant. */
Body *plan_home(Plan *, Body *, Val v);
/* Schedules a copy of v before the next step of that body into a new buffer of `elements` elements, v's axes at
   `strides`, but for the one in panels; NULL: none is. */
Buf *plan_materialise(Plan *, Body *, Val v, const Dim *strides, const Panels *, Dim elements, Dtype as);

/* Scalars are registers of the host code, except for complex numbers and keys, which are in memory, and for those
   that a device computes. */
static inline bool plan_register(const Plan *p, Val v) {
    const ArrayType *t = val_array(p->cx, v);
    if (p->target->device && !val_info(p->cx, v)->lit && (v >= p->known.n || !p->known.at[v])) return false;
    return t->rank == 0 && dtype_info[t->dtype].kind != DK_COMPLEX && dtype_info[t->dtype].kind != DK_KEY;
}
Info *plan_info(Plan *, Val);
/* The scalars that the equation's extents, lengths and paddings follow from. */
void plan_bounds(const Plan *, const Eqn *, BoundSeen *, void *user);
void plan_grow(Plan *); /* after creating values */
/* Is v what a loop of elements stacks in this step? */
static inline bool plan_stacks(Plan *p, const Step *s, Val v) {
    const Info *info = plan_info(p, v);
    return info->stack && s && info->step == s->number;
}
/* Where the result of an equation that joins arrays is written: a buffer of its own, or its part of another such
   result. */
typedef struct {
    Buf *buf;
    Ix offset;
    Dim *strides;
} Joined;
Joined plan_join(Plan *, const Eqn *);
/* The part of the result of such an equation that operand k is; *at: where it begins along the axis, then where it
   ends. */
Joined plan_part(Plan *, const Eqn *, uint32_t k, Dim *at, Joined whole);
/* Operand k, or what it is a reshape of, if a step computes that and the part lies in one piece, where it is stored
   densely: of 4000 rows of 16 as 16000 of 4 in 74 us instead of 81. */
Val joined_under(Plan *, const Eqn *, uint32_t k, Joined *part);
/* Does it join single elements, at most MOST_BESIDE, which a step can store together? */
bool joined_beside(Plan *, const Eqn *);
/* Are all operands computed by steps or, of such single elements, some? Steps store them in their places then. */
bool joined_where_computed(Plan *, const Eqn *);
/* Computes a virtual value in a step of its own: one of a long chain, so that evaluating the last does not recurse
   through all, or one that is better read from memory. */
void plan_cut(Plan *, Body *, Val);
/* Elementwise programs (program.c): the most values that a loop keeps; are more of them in use at once than four
   vectors of each leave registers for, in operations that do not wait for each other? What the results are that a loop
   stacks; copies of what it scans. */
uint32_t program_carries(const Jaxpr *);
bool program_crowded(Plan *, const Jaxpr *);
void program_stacks(Plan *, const Eqn *);
void program_stored(Plan *, Body *, const Eqn *);
/* The axes of the elements of an elementwise program: what its results have beyond those of the program's. */
uint32_t program_rank(const Ctx *, const Eqn *);
void plan_constant(Plan *, Val); /* v is data of the library */
/* Reports what a SCALAR step reads. */
void plan_scalar_reads(Plan *, const Step *, Seen *, void *user);
/* The plan of a program, of one for several devices, or of a function, whose results are given back in the memory of
   the inputs `over` (call.h); NULL after a diagnostic. */
Plan *plan(Callees *, const Jaxpr *, const uint32_t *over);
/* A step at the end of the body over the axes of `shape` (DOT, LOOPS, CUM). */
Step *step_new(Plan *, Body *, StepKind, const Eqn *, const ArrayType *shape);
Dim plan_bytes(const Plan *, Val); /* of v's array */
Buf *buf_new(Plan *, BufKind, Dim bytes);
Buf *buf_for(Plan *, BufKind, Val); /* of the size of v's array */
void step_store(Plan *, Step *, Val, Buf *, Ix offset, const Dim *strides, Dtype as);
/* The offset of element `index` of an axis in panels. */
Ix panels_at(Plan *, const Panels *, Ix index);
/* The address to which a store writes element `index` of its value. */
Ix store_address(Plan *, const Store *, const Ix *index);
/* The number of parts of a reduction. On a CPU: blocks of its outermost loop. */
Dim step_parts(Plan *, const Step *);
/* The product of their extents. */
Dim loop_extents(Plan *, const Atom *loops, uint32_t n);
/* Iterations of a loop, of `inner` elements each, that have so many in all; 1 if one may have more. */
int64_t loop_turns(Dim inner, int64_t elements);
/* The accumulators that a part of the step's reductions leaves; 0: they cannot be done in parts. */
uint32_t step_part_words(Plan *, const Step *);
/* Does it contain a reduction whose order matters? Then its terms may not be divided among lanes or parts. */
bool step_in_order(Plan *, const Step *);
/* Is the reduction a sum or product that is rounded after every step, in the order of the elements, as XLA does with
   narrow floats? */
bool prim_in_order(Prim reduce, Dtype);
/* CUM: the loop over the axis. */
Atom cum_axis(Plan *, const Step *);
/* On a device: words of 64 bits that a part of one row leaves for others. */
uint32_t cum_part_words(Plan *, const Step *);
/* The bytes of which a place in memory is known to be a multiple, from those of an element up to DEVICE_ALIGN. */
uint32_t address_align(Plan *, const Buf *, Dtype, Ix address);
/* Makes sure that v is in memory; returns its buffer. */
Buf *plan_stored(Plan *, Body *, Val v);
/* The step reads what is at that address. */
void step_sees(Plan *, Step *, Ix address);
/* The strides of a value of the step's domain that lies as an array that the step reads along another axis than its
   last one; NULL: it is dense. */
const Dim *strides_as_read(Plan *, const Step *, Val v);
/* The same of what a step computes, for readers that need not have it dense: it may lie as what it is computed from
   (transposed.c). */
void plan_laid(Plan *, Body *, Val v);
/* The same, dense and from the start of the buffer. */
Buf *plan_dense(Plan *, Body *, Val v);
/* The value under reshapes that a step computes: the same elements in the same order. */
Val plan_same_order(Plan *, Val v);
/* Is v the transpose of what a step computes, which suits storing it so? Then that step stores it (transposed.c). */
bool plan_transposed(Plan *, Body *, Val v, Buf *to);
/* Notes `mover` of its operand, for all equations of a body before any is planned. */
void plan_note_mover(Plan *, const Eqn *);
/* Does the mover of the virtual x find elements along its last axis by division, though x itself does not? A slice of
   an axis merged from transposed ones does: loops over it cannot be split where these begin (transposed.c). */
bool plan_mover_divides(Plan *, Val x);
/* The step that computes what a virtual value is computed from, if it may store that value as well: at its own index,
   and of its own members or of earlier ones. */
Step *step_beside(Plan *, Body *, Val v);
/* A dense buffer with v's elements in order; a reshape of an array in memory has that memory. */
Buf *plan_reshaped(Plan *, Body *, Val v);
/* RUNTIME, SPMD (runtime.c). */
bool plan_runtime(Plan *, Body *, const Eqn *);
/* An arbitrary index, for callers that only need to know which values are read. */
const Ix *plan_any_index(Plan *, Val);
/* Equations whose result is operand 0 with some elements overwritten (overwrite.c). */
void plan_update(Plan *, Body *, const Eqn *);
bool plan_scatter(Plan *, Body *, const Eqn *);
/* A new buffer with the elements of v. */
Buf *plan_copied(Plan *, Body *, Val v);
/* The buffer of an operand that nothing reads after `e`; NULL if it must not be written. */
Buf *plan_owned(Plan *, Val v, const Eqn *e);
/* The step will evaluate v: what other steps compute of it is stored. */
void step_evaluates(Plan *, Body *, Step *, Val v);
/* Sets the buffer of result k of the step's equation. */
void step_result(Plan *, Step *, uint32_t k, Buf *);
/* Reports what evaluating v at an index reads: calls `seen` for every value that is not virtual. */
void plan_reads(Plan *, Val v, const Ix *index, Seen *, void *user);
/* Finds the edges of a step whose loops are final (edge.c). */
void plan_edges(Plan *, Step *);
Edged eqn_edged(Plan *, const Eqn *);
/* Are rows of this shape better reduced after what is read so is stored? */
bool edges_apart(const Plan *, Edged, uint32_t rank, const Dim *dims, const bool *reduced);
/* The scalar operand that may decide before loops what need not be computed, 0 if there is none; if that is worth it,
   it does (unswitch.c). */
Val eqn_predicate(const Ctx *, const Eqn *);
void plan_unswitch(Plan *, Step *);
/* Loops, lanes and stages of a step whose members are complete (schedule.c). */
void schedule_step(Plan *, Body *, Step *);
/* SCAN: how many arrays are sliced. */
uint32_t step_slices(const Step *);
/* Reports what the step reads; of its members only those that are stored. */
void step_reads(Plan *, Step *, Seen *, void *user);
/* Sets `weight` once the steps are complete. */
void plan_weigh(Body *);
/* Offsets in the workspace (buffers.c). */
void plan_buffers(Plan *);
/* Bodies of control flow (control.c). */
Ix index_start(Plan *, Val start, Dim most); /* a dynamic start index, clamped to [0, most]; may be a literal */
bool plan_control(Plan *, Body *, const Eqn *);
/* The value that v of `j` is, except for elements that are written over, and which no equation of `j` computes; 0 if
   there is none. */
Val plan_origin(const Callees *, const Jaxpr *j, Val v);
bool plan_body(Plan *, Body *);

#endif
