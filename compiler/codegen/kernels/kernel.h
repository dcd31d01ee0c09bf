/* Kernels: values of the program evaluated at an index, inside loops, one vector of lanes at a time. */
#ifndef JAXCC_KERNEL_H
#define JAXCC_KERNEL_H
#include "../emit/emit.h"
#include "../eval/evaluate.h"

/* A function being written. What it needs from the function that calls it (pointers, scalars,
   dimensions) is captured on first use: stored by the caller into a context, loaded in the entry
   block. Its own code is the host's (host/frame.c). */
typedef struct Frame Frame;
V frame_buffer(Frame *, Buf *);
V frame_scalar(Frame *, Val);
/* A scalar in memory as a register; the host waits for one in a device's memory. */
V frame_load(Frame *, Dtype, V pointer);
bool frame_waits(const Frame *); /* would it? */
V frame_dim(Frame *, Dim);       /* i64, written at e->block */

/* A value of the evaluation is one of MLIR: a scalar if it is uniform or k->w is 1, else a vector of k->w lanes. */
static inline V reg_v(Reg r) { return (V){r.v}; }
static inline Reg reg(V v, bool uniform, uint32_t depth) {
    return (Reg){.v = v.ptr, .uniform = uniform, .depth = depth};
}

typedef struct Kernel Kernel;
/* On a device: how a kernel finds elements that it has in shared memory for now, not in their arrays. A value is as in
   memory. */
typedef struct {
    V (*load)(Kernel *, const Buf *, Dtype, Ix address);        /* NULL: this one is in its array */
    bool (*store)(Kernel *, const Buf *, Dtype, Ix address, V); /* false: this one goes there; NULL: all do */
    void *user;
} Elsewhere;

struct Kernel {
    Eval x;
    Emit *e;
    Frame *frame;
    MlirBlock blocks[MAX_DEPTH]; /* of the open scopes */
    uint32_t w;                  /* lanes */
    Atom lane;                   /* the loop they run along; 0: none */
    uint32_t tile, tile_at;      /* the rows of the tile being written (0: none), and the current row */
    V strip_from, strip_to;      /* what the lane loop goes through within a tile's; NULL: all */
    uint32_t jam;                /* iterations of the step's loop `jam` that are done at once; 0: one */
    Atom first;                  /* the first of them: as they end before the loop does, its extent is smaller, and so
                                    indices of all of them have the quotients and remainders that the loop's has */
    uint32_t least;              /* loads are not hoisted out of this scope */
    V tail;                      /* mask of the lanes that exist, at the end of the lane loop; NULL: all */
    uint32_t in_stdlib;          /* how deep in programs of stdlib */
    bool normal_divisors;        /* what is divided there is 1, and divisors and quotients are normal numbers */
    struct {
        uint32_t threads;                /* of a block; 0: there are none */
        bool together;                   /* several of them do an item together: */
        uint32_t group, chunks, cluster; /* as Grid has them */
        bool met;                        /* all blocks of the cluster have begun */
        V exists; /* together: is there an item for this thread? If not, it has the last; NULL: yes */
        V thread, number, count, rank; /* see threads.h; NULL: not needed so far */
        V member;                      /* its number among those that share the lane loop, or of its chunk */
        int64_t shared;                /* bytes of shared memory */
        V scratch;                     /* of it, for merging: */
        int64_t scratch_bytes;
        V maps;                 /* tensor maps of the operands of a product whose terms come as boxes */
    } block;                    /* on a device */
    const Elsewhere *elsewhere; /* NULL: everything is in its array */
    struct {
        V near[ROW_ARRAYS]; /* shared memory for what is beyond registers */
        bool waited;        /* it has come */
    } rest;                 /* on a device: of a row (rows.c) */
    uint32_t in_run;        /* 1 + the number in its run of the element that is evaluated; 0: none is */
    bool rows;              /* values over the kept axes are being stored; else values over the whole domain */
};
extern const Operations kernel_operations;

/* ---- scopes: after a loop's block is opened (em_for), kernel_enter makes it the innermost scope and kernel_bind sets
   the loop's index; kernel_leave comes before the block is closed. */
void kernel_enter(Kernel *);
void kernel_bind(Kernel *, Atom loop, V index);
void kernel_leave(Kernel *);
/* What is written between the two is done only if the condition, i1, is true. */
If kernel_if(Kernel *, V condition);
void kernel_if_end(Kernel *, If *);
/* Puts subsequent operations into the scope of that depth (hoisting); returns the block to restore in e->block. */
MlirBlock kernel_at(Kernel *, uint32_t depth);

/* ---- values */
V kernel_vector(Kernel *, Reg); /* broadcast if uniform */
/* An index as an i64, of lane 0; in all lanes, as a vector of an integer type. */
V kernel_index(Kernel *, Ix);
Reg kernel_index_reg(Kernel *, Ix);
V kernel_lane_indices(Kernel *, Ix); /* of i32 if that holds it, else of i64 */
Reg kernel_index_lanes(Kernel *, Ix, MlirType integer);
/* An element of an integer array, clamped: an i64, of lane 0; with `integer` (i64 or i32) a vector for all lanes. */
Reg kernel_element(Kernel *, const IxValue *, const MlirType *integer);
/* Is it in [0, most]? */
Reg kernel_in_range(Kernel *, const IxValue *, Reg element);
V kernel_dim(Kernel *, Dim); /* i64, in the outermost scope */

/* ---- memory; addresses in elements */
V kernel_buffer(Kernel *, Buf *);
/* The elements of a value that is dense and has a buffer of its own, and those of its rows; 0: it is not known to be. */
typedef struct {
    Dim all, rows;
} Dense;
Reg kernel_load(Kernel *, Buf *, Dtype, Ix address, Dense);
void kernel_store(Kernel *, Buf *, Dtype, Ix address, Reg);
/* A value to be stored. Those that lie beside each other are stored together. */
typedef struct {
    Buf *buf;
    Dtype d;
    Ix address;
    Reg r;
    bool done;
} Pending;
void kernel_store_all(Kernel *, Pending *, uint32_t n);
/* On a device: stores n neighbours if one access does that, so that they make way in the cache for what others read
   again. */
void kernel_stream(Kernel *, Pending *run, uint32_t n);
/* The values at the current index of the domain that belong to the stage k->x.level, into all[0], all[apart], …; how
   many. */
uint32_t kernel_pending(Kernel *, Pending *all, uint32_t apart);
/* Writes the step's stores at the current index of the domain whose values belong to the stage k->x.level; only the
   lanes of k->tail, if it is set. */
void kernel_stores(Kernel *);

/* ---- edges (edge.c) */
/* i1: no lane, no iteration done at once and no iteration of an unbound loop reads padding. */
V edge_inside(Kernel *);

/* ---- rules by family: the `lowering` column of prims.def */
typedef struct {
    Dtype in, out; /* of operand 0 (select_n: of the cases) and of the result */
    const Eqn *e;
    Kernel *k;
} Point;
/* One result from registers, all of the same width. */
typedef V PointRule(Emit *, const Point *, const V *x);

/* One elementwise equation on registers of width w. */
V kernel_point(Kernel *, const Eqn *, const V *x, uint32_t w);
/* The same for an equation that is a program of stdlib/; such a program by name, on registers of f64 or, for every
   other type, f32. */
V kernel_program(Kernel *, const Eqn *, const V *x, uint32_t w);
V kernel_stdlib(Kernel *, const char *name, Dtype, const V *x, uint32_t n, uint32_t w);
/* Has the module so many of these that they are calls from now on? So are loads of columns then. */
bool kernel_calls(const Kernel *);
/* -ffp-contract: the operand of `e` that is a product and is rounded once with the sum or difference that `e` is; 2:
   neither. A sum of two products is not contracted: a·b − c·d stays 0 where both are equal. */
typedef struct {
    const Eqn *maker; /* computes the operand, or NULL */
    bool alone;       /* its result is not in memory, and nothing else uses it */
} Summand;
uint32_t kernel_contracts(const Kernel *, const Eqn *e, const Summand x[2]);
bool kernel_is_product(const Eqn *); /* of two values, or a square; NULL: no */
/* `e` from the factors of that product, x[0] and x[1], and the other operand, x[2]. */
V kernel_contracted(Kernel *, const Eqn *e, uint32_t product, const V *x);
/* A primitive of two operands of one type. */
V kernel_binary(Kernel *, Prim, Dtype, const V *x);
/* A program of elementwise equations and loops on scalars, in w lanes at once. An operand, and then a result, may be
   a scalar: it is the same in all lanes. */
void kernel_run(Kernel *, const Jaxpr *, const V *x, uint32_t w, V *out);
/* The same for the program of an equation whose elements are at this index: it may read operands at computed places,
   and writes what it stacks where the step stores it. */
void kernel_run_at(Kernel *, const Eqn *, const Ix *element, const V *x, uint32_t w, V *out);
V kernel_literal(Kernel *, Val, uint32_t w);
Reg kernel_convert(Kernel *, Reg, Dtype from, Dtype to); /* DT_none: as it is */

/* ---- one kernel of the plan: computes the units [lo, hi) of the step */
typedef void KernelRule(Kernel *, V lo, V hi);
/* Where the step has parts, kernel_combine comes after kernel_loops, device_combine after device_loops. */
KernelRule kernel_loops, kernel_combine, kernel_dot, kernel_cumulative, kernel_scatter;
/* The same on a device for one unit, or for the point of the grid's loops that is bound (grid.h). */
KernelRule device_loops, device_combine, device_dot, device_dot_combine, device_cumulative, device_scatter;
/* Reduce parts of the prefixes, before device_cumulative and kernel_cumulative where the step has parts. */
KernelRule device_cumulative_parts, kernel_cumulative_totals;
/* Before device_scatter, if it needs claims; if positions are sorted and there are parts. The tiles of a sort, then
   runs, once for each length. */
KernelRule device_claim, device_parts, device_sort, device_merge;
/* Or by digits of keys, in each pass: the counts of the tiles, what tiles before have, and the elements are moved;
   the first pass, those between, the last one and the only one, of which both do not store keys. */
KernelRule device_count_first, device_count, device_count_before;
KernelRule device_move_first, device_move, device_move_last, device_move_only;
/* The place of a scatter's position, as the keys that are sorted. */
V scatter_key(Kernel *, Dtype key);
/* The sum of a product, of type `acc`, in the result's type; if that does not represent all values of the operands'
   type, a float is first rounded to the latter. */
Reg dot_result(Kernel *, const Eqn *, Dtype acc, Reg sum);
/* Loops over n atoms, the outermost from lo to hi, the last one with lanes if it is k->lane; `inside` writes the
   body. */
typedef struct {
    const Atom *loops;
    uint32_t n;
    void (*inside)(Kernel *, void *user);
    void *user;
} Nesting;
void kernel_nest(Kernel *, Nesting, V lo, V hi);
/* The step's axes with a loop replaced by an index, which counts the iterations of all loops that were collapsed into
   it. */
Ix *kernel_axes(Kernel *, Atom loop, Ix);
/* Writes what is inside a loop, with the loop replaced by an index. */
typedef void Inside(Kernel *, void *user);
void kernel_substituted(Kernel *, Atom loop, Ix at, Inside *, void *user);
void kernel_jammed(Kernel *, Inside *, void *user); /* for each iteration of the step's `jam` that is done at once */
/* Units of the lane loop: blocks of `block` elements. */
void kernel_blocks(Kernel *, Atom loop, uint32_t block, V *lo, V *hi);

Kernel *kernel_new(Plan *, Emit *, Frame *, Step *);
/* Resets the kernel to its initial state, at e->block. */
void kernel_forget(Kernel *);

#endif
