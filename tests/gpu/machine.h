/* What runs: a launch, its block, the warps of the block. */
#ifndef PTX_MACHINE_H
#define PTX_MACHINE_H
#include "program.h"

/* Generic addresses: windows of the spaces. Device memory is everything below. */
#define SHARED_WINDOW ((uint64_t)1 << 60)
#define LOCAL_WINDOW ((uint64_t)2 << 60)
#define PARAM_WINDOW ((uint64_t)3 << 60)
#define WINDOW_MASK ((uint64_t)15 << 60)

enum {
    MAX_THREADS = 1024,
    WARPGROUP = 4,
    MAX_CLUSTER = 8,
    MAX_TOGETHER = 4096, /* threads of a cluster; a GPU has more */
    MAX_WARPS = MAX_TOGETHER / LANES,
    MAX_BARRIERS = 16,
    CLUSTER_BARRIER = MAX_CLUSTER * MAX_BARRIERS, /* behind those of the blocks */
    ALL_BARRIERS,
    MAX_CALLS = 24,
    MAX_COPY_GROUPS = 64,
    SHARED_ALIGN = 1024
};

/* Lanes at one place of a function. Groups are sorted by pc; there is one READY group at a pc at most. */
typedef enum { LANES_READY, LANES_PARKED, LANES_AT_BARRIER } GroupState;
typedef struct {
    uint32_t pc, mask;
    GroupState state;
    uint32_t barrier;
} Group;
/* A function being run by lanes of a warp. */
typedef struct Activation {
    const PtxFunc *f;
    uint8_t *frame;
    uint32_t started, live, exited; /* lanes; exited: those that leave the callers too */
    Group groups[LANES];
    uint32_t ngroups, turn, slices; /* turn: not the lowest group's, slices: that went by; see run.c */
    const uint8_t *params;          /* what ld.param reads: the same for all lanes, or of one lane after the other */
    uint32_t params_stride, params_bytes;
    uint8_t *calls; /* .param memory of the calls it makes, of one lane after the other */
    uint64_t local_base;
    struct Activation *caller;
} Activation;

/* Activations of one depth of calls, and their memory: the frame, arguments, .param memory of calls. */
typedef struct {
    Activation a;
    uint8_t *memory;
    size_t room;
} Called;

/* cp.async not done yet. */
typedef struct {
    uint64_t to, from;
    uint32_t bytes, valid, lane, group; /* valid: bytes that are read; group: of its lane */
} Copy;
typedef struct {
    Copy *at;
    uint32_t n, cap;
    uint32_t groups[LANES]; /* committed by each lane */
} Copies;

/* wgmma.mma_async not done yet. */
typedef struct {
    const Ins *at;
    uint64_t a, b; /* descriptors */
    bool add;      /* to what is there */
    uint32_t group, when;
} Product;
typedef struct {
    Product *at;
    uint32_t n, cap, groups; /* groups: committed */
    bool fenced;             /* registers may be used by products */
    uint32_t begun;          /* since the block began */
    uint8_t *used;           /* of each slot: how many products that are not done use it */
    uint8_t *kept;           /* registers of products as they were at the fence, one after the other */
    uint8_t *touched;        /* of each slot: is it a register of products that an instruction used since the fence? */
} Products;
/* The products of four warps: all of them begin the same ones. */
typedef struct {
    Product *at;
    uint32_t n, cap;
} Warpgroup;

typedef struct Block Block;
struct Warp {
    uint8_t *frame; /* of the activation that runs */
    Activation *top;
    Block *block;
    const Ins *at; /* being run, for messages */
    uint32_t index, all;
    uint32_t syncs;                 /* warp barriers so far */
    uint32_t carry;                 /* the condition code, a bit of each lane */
    uint32_t depth;                 /* of calls */
    uint32_t waits;                 /* set by a barrier's run: 1 + the barrier */
    uint32_t arrived;               /* lanes at the barrier of the cluster, that have not waited */
    bool poll;                      /* set by a failed test of an mbarrier */
    uint32_t busy;                  /* instructions since the last failed test */
    uint8_t *local, *local_written; /* of one lane after the other */
    uint32_t local_bytes;
    Activation entry;
    Called *called; /* MAX_CALLS of them, if any */
    Copies copies;
    Products products;
};
typedef struct {
    uint32_t expected, arrived, waiting, holding; /* threads; holding: whose predicate of bar.red is true */
} Barrier;
typedef struct Bulk Bulk;
typedef struct Mbarrier Mbarrier;
typedef struct Launch Launch;
struct Block {
    Launch *launch;
    uint8_t *shared, *shared_written;
    uint32_t shared_bytes, threads, nwarps; /* bytes of one of the blocks if it is a cluster, threads of all */
    uint32_t ranks;                         /* blocks */
    PtxDim3 id;                             /* of the first one */
    uint32_t first_epoch;                   /* see race.h */
    bool atomics, acquired;
    Barrier barriers[ALL_BARRIERS];
    uint32_t reduced[ALL_BARRIERS][3]; /* what the last completed bar.red found: popc, and, or */
    Warpgroup warpgroups[MAX_WARPS / WARPGROUP];
    struct {
        uint32_t *at, n, *number; /* slots that products use; by slot: which of them */
    } accumulators;
    Bulk *bulk; /* copies that nobody has waited for yet (bulk.h) */
    uint32_t nbulk, bulk_cap;
    struct {
        Mbarrier *at;
        uint32_t n, cap;
    } mbarriers;           /* mbarrier.c */
    uint32_t meets;        /* barriers that were completed */
    uint32_t failed_tests; /* of mbarriers, since something else happened that others may wait for */
    Warp warps[MAX_WARPS];
};
struct Launch {
    PtxFunc *f;
    PtxDim3 grid, block;
    Arena *arena;
    uint64_t left;         /* instructions until the limit */
    uint64_t random, seed; /* 0: none */
    uint32_t dynamic_bytes;
    uint32_t first_epoch;
    uint8_t *params;
    Block b;
};

/* Ends the launch. `lane`: whose thread the message names. */
__attribute__((format(printf, 3, 4), noreturn)) void fault(Warp *, uint32_t lane, const char *format, ...);

/* A cluster is one block whose threads have barriers and shared memory by rank. */
static inline uint32_t rank_of(const Warp *w) { return w->index / (w->block->nwarps / w->block->ranks); }
static inline uint32_t first_lane(uint32_t mask) { return (uint32_t)__builtin_ctz(mask); }
#define each_lane(l, mask)                                                                                             \
    for (uint32_t l##_left = (mask), l; l##_left && (l = first_lane(l##_left), 1); l##_left &= l##_left - 1)

/* The members are exactly the lanes that are here. */
void check_members(Warp *, uint32_t mask, uint32_t members);
void run_warp(Warp *); /* until it ends, waits or its time is up */
void run_activation(Warp *, Activation *);
void run_call(Warp *, const Ins *, uint32_t mask);
void free_called(Warp *);
void check_registers(Warp *, const Ins *);               /* products that are not done do not use them */
void *launch_room(Launch *, size_t bytes, size_t align); /* until its end */
bool warp_ready(const Warp *);
void release_barrier(Block *, uint32_t barrier, bool all); /* all: all threads of the block wait there */
uint64_t dynamic_base(const PtxFunc *);                    /* where shared memory given at the launch begins */
uint32_t shared_total(const PtxFunc *, uint32_t dynamic);  /* bytes of a block's shared memory */
void give_reduced(Warp *, const Ins *, uint32_t mask);     /* the results of bar.red */
/* Constants and addresses of variables to their slots. */
void fill_frame(const Launch *, const PtxFunc *, uint8_t *frame, uint64_t local_base);

#endif
