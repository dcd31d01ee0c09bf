/* A module as the parser leaves it: functions of decoded instructions over slots of a frame. A slot is a register of a
   whole warp: 32 lanes of its width one after the other; a predicate is one word of 32 bits. Immediates, special
   registers and addresses of variables are slots too, filled before the function runs, so that operations know slots
   only. */
#ifndef PTX_PROGRAM_H
#define PTX_PROGRAM_H
#include "ptx.h"
#include "compiler/arena.h"
#include "compiler/intern.h"
#include "compiler/str.h"

enum { LANES = 32, MAX_OPERANDS = 6, SLOT_ALIGN = 64 };
#define ALL_LANES UINT32_MAX
#define NO_SLOT UINT32_MAX

typedef struct Warp Warp;
typedef struct Ins Ins;
/* One instruction for the lanes of `mask`, which is not empty. */
typedef void Run(Warp *, const Ins *, uint32_t mask);

typedef enum {
    FLOW_NEXT,    /* run, then the next instruction */
    FLOW_SYNC,    /* as NEXT, once all lanes named by `members` have come */
    FLOW_BARRIER, /* run says at which barrier of the block the lanes wait */
    FLOW_POLL,    /* as NEXT, then other warps run */
    FLOW_BRANCH,
    FLOW_SWITCH, /* to the target of a list that an operand says */
    FLOW_CALL,
    FLOW_RETURN,
    FLOW_EXIT,
} Flow;
typedef enum { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM, SPACE_CALL } Space;
typedef enum { ORDER_WEAK, ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL } MemoryOrder;

typedef struct {
    uint32_t *at, n, cap;
} Slots;
struct Ins {
    Run *run;
    uint32_t o[MAX_OPERANDS]; /* slots as byte offsets in the frame: destinations first */
    uint32_t guard;           /* the predicate's slot, or NO_SLOT */
    bool negated;             /* of the guard */
    uint8_t flow;
    uint8_t space, order;     /* of memory */
    uint8_t bytes, width;     /* of an element in memory; of the register that holds it */
    bool sign, short_address; /* sign extension; an address is 32 bits */
    uint8_t kind;             /* what the operation makes of it: a sub-operation, an immediate */
    uint32_t members;         /* SYNC: the slot of the mask, NO_SLOT: all lanes */
    uint32_t target;          /* BRANCH: an instruction; CALL: a function; SWITCH: the list holds them */
    int64_t offset, offset2;  /* of the addresses */
    uint32_t list, n;         /* operands in braces: n slots from func->lists[list] */
    uint32_t opcode, line;    /* its number in module->opcodes */
};

typedef struct {
    Str name;
    Space space;
    uint32_t align;
    uint64_t bytes, address; /* address: in its space */
    bool external;
    uint32_t function; /* that declares it, NO_SLOT: the module */
} Symbol;
typedef struct {
    Symbol *at;
    uint32_t n, cap;
} Symbols;
typedef struct { /* lanes of a slot all start with this value */
    uint32_t slot, width;
    uint64_t value;
    const Symbol *symbol; /* whose address is added, or NULL */
} Constant;
typedef struct {
    Str name;
    uint32_t offset, bytes;
} Param;

struct PtxFunc {
    Str name;
    PtxModule *module;
    bool entry, defined;
    struct {
        Ins *at;
        uint32_t n, cap;
    } code;
    Slots lists;
    struct {
        Param *at;
        uint32_t n, cap;
    } params;
    uint32_t param_bytes, result_bytes; /* arguments come after the result, from param_base */
    uint32_t param_base, call_bytes;    /* call_bytes: .param memory of the calls it makes */
    uint32_t frame_bytes, special;      /* special: the slot of the first special register */
    struct {
        Constant *at;
        uint32_t n, cap;
    } constants;
    uint64_t shared_bytes, dynamic_align; /* of shared memory, with what the functions it calls need */
    uint32_t local_bytes, stack_bytes;    /* stack: with the functions that it calls */
    Slots calls;                          /* functions */
    struct {
        const Symbol **at;
        uint32_t n, cap;
    } uses;                 /* variables in shared memory that it does not declare */
    bool visited, gathered; /* gather_needs has begun, has ended */
    bool clocks;            /* threads are ordered by barriers in memory and products (race.h) */
    PtxInfo info;
};
typedef struct Row Row;
typedef struct {
    Str name;
    uint32_t uses;
    const Row *row; /* or NULL */
} Opcode;
struct PtxModule {
    Arena *arena;
    struct {
        PtxFunc **at;
        uint32_t n, cap;
    } functions;
    struct {
        Symbol **at;
        uint32_t n, cap;
    } symbols;
    Intern opcode_ids;
    struct {
        Opcode *at;
        uint32_t n, cap;
    } opcodes;
};

/* Special registers, each a slot of 32 bits. */
typedef enum {
    SR_TID,
    SR_NTID = SR_TID + 3,
    SR_CTAID = SR_NTID + 3,
    SR_NCTAID = SR_CTAID + 3,
    SR_LANEID = SR_NCTAID + 3,
    SR_WARPID,
    SR_NWARPID,
    SR_LANEMASK_EQ,
    SR_LANEMASK_LE,
    SR_LANEMASK_LT,
    SR_LANEMASK_GE,
    SR_LANEMASK_GT,
    SR_DYNAMIC_SMEM,
    SR_CLUSTER, /* its number, how many there are, the block's rank and the blocks of one; along x */
    SR_NCLUSTER,
    SR_RANK,
    SR_RANKS,
    SR_ZERO,
    SR_ONE,
    SR_CLOCK,
    SPECIAL_REGISTERS
} SpecialRegister;
enum { SPECIAL_BYTES = 4 * LANES };

/* An operation whose operands are all registers. `operands`: a letter for each, destinations first: p predicate, h 16,
   w 32, x 64 bits; '|' before an optional second destination. */
struct Row {
    const char *name;
    Run *run;
    const char *operands;
    Flow flow;
    uint8_t members; /* SYNC: 1 + which operand names the lanes, 0: all */
    uint8_t kind;
};
typedef struct {
    const Row *at;
    size_t n;
} Rows;
const Row *row_find(Str name); /* NULL: none */

#endif
