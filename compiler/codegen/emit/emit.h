/* MLIR through its C API: types, one builder function, the few operations kernels are made of. */
#ifndef JAXCC_EMIT_H
#define JAXCC_EMIT_H
#include "../../ir.h"
#include "../codegen.h"
#include "../cost.h"
#include "../target/target.h"
#include <mlir-c/IR.h>

typedef MlirValue V;

/* The data of a value, which the library carries: large ones in one block. */
typedef struct {
    Val v;
    bool large;
    uint64_t bytes, offset; /* in the block */
} Constant;

typedef struct Emit {
    Ctx *cx;
    Arena *arena;
    MlirContext mlir;
    MlirModule module;
    MlirBlock block; /* new operations are appended here */
    struct {
        MlirModule module;
        Intern declared, texts;
    } other;        /* for a device: the module that is not being written, of the kernels or of the host */
    bool on_device; /* the kernels' module is being written */
    struct {
        struct Launched *at;
        uint32_t n, cap;
    } launched; /* kernels of a device, by number (host/device.c) */
    MlirLocation loc;
    MlirType i1, i8, i16, i32, i64, i128, f16, bf16, f32, f64, ptr;
    const Targets *targets;
    const Target *target;           /* what is written now is for it … */
    const char *level;              /* … as the names of functions end; the lowest: "" */
    bool for_ld;                    /* the object becomes a library by GNU ld */
    bool fast;                      /* -ffast-math, for what is written now */
    uint32_t nkernels;              /* functions written so far: the number of the next */
    uint32_t nstdlib[X86_LEVELS];   /* calls of programs of stdlib so far, by target … */
    uint32_t nproducts[X86_LEVELS]; /* … and tiles of matrix products */
    struct Tape *tape;              /* of the function being written, if it may be shared */
    uint32_t written;               /* operations of the function being written */
    Intern declared;
    Intern texts;
    Intern functions; /* printed kernels: equal ones are written once */
    struct {
        Str *at;
        uint32_t n, cap;
    } names; /* of the functions, by number */
    Intern constant_ids;
    struct {
        Constant *at;
        uint32_t n, cap;
    } constants;                       /* those that em_constant was called for, by number */
    uint64_t small_bytes, large_bytes; /* their sizes, in all */
    Text messages;                     /* MLIR's diagnostics: internal errors */
    MlirAttribute unit;                /* of debug information: the compile unit; NULL without -g */
    MlirAttribute file;
} Emit;

static const MlirType no_type = {NULL};

typedef struct {
    const char *name;
    MlirAttribute value;
} Attr;

/* What an operation is made of. */
typedef struct {
    uint32_t nresults;
    const MlirType *results;
    uint32_t n;
    const V *operands;
    uint32_t nattrs;
    const Attr *attrs;
    uint32_t nregions;
    MlirRegion *regions;
} Op;
/* Appends one operation to e->block. */
MlirOperation em_op(Emit *, const char *name, const Op *);
/* One result of the type `t`. */
V em_1(Emit *, const char *name, MlirType t, uint32_t n, const V *operands, uint32_t nattrs, const Attr *attrs);
/* The result has the operand's type. */
V em_un(Emit *, const char *name, V x);
V em_bin(Emit *, const char *name, V x, V y);
/* fold.c: is it an integer constant? The result of em_bin, if another one than the operation is known. */
bool em_known(V, int64_t *value);
bool em_folded(Emit *, const char *name, V x, V y, V *result);
V em_without_constant(const Emit *, V, int64_t *c); /* x of v = x + c; v and 0 if it is no such sum */
V em_cast(Emit *, const char *name, MlirType t, V x);
V em_fma(Emit *, V a, V b, V c); /* a·b + c, one rounding */
V em_select(Emit *, V condition, V yes, V no);
/* `predicate`: eq ne slt sle sgt sge ult ule ugt uge */
V em_cmpi(Emit *, const char *predicate, V x, V y);
/* `predicate`: oeq ogt oge olt ole one une uno ord ugt … */
V em_cmpf(Emit *, const char *predicate, V x, V y);
/* Numbers of one integer type, with a sign: the smaller and the larger of two, and is the first one smaller? Of i1:
   both. */
static inline V em_add(Emit *e, V x, V y) { return em_bin(e, "llvm.add", x, y); }
static inline V em_sub(Emit *e, V x, V y) { return em_bin(e, "llvm.sub", x, y); }
static inline V em_mul(Emit *e, V x, V y) { return em_bin(e, "llvm.mul", x, y); }
static inline V em_least(Emit *e, V x, V y) { return em_bin(e, "llvm.intr.smin", x, y); }
static inline V em_most(Emit *e, V x, V y) { return em_bin(e, "llvm.intr.smax", x, y); }
static inline V em_less(Emit *e, V x, V y) { return em_cmpi(e, "slt", x, y); }
static inline V em_both(Emit *e, V x, V y) { return em_bin(e, "llvm.and", x, y); }

/* Types: w = 1 is the scalar itself, else vector<w x t>. No vector has more than MAX_LANES lanes. */
MlirType em_vec(Emit *, MlirType t, uint32_t w);
MlirType em_elem(V x);  /* element type of a vector, or the type itself */
uint32_t em_width(V x); /* lanes; 1 for scalars */
V em_broadcast(Emit *, V scalar, uint32_t w);
/* The lanes with these numbers, those of b counted after those of a. */
V em_shuffle(Emit *, V a, V b, uint32_t n, const int64_t *lanes);
/* Lanes [from, from + n) of a vector; the first of all in the place of those that it has not. */
V em_part(Emit *, V vector, uint32_t from, uint32_t n);
/* The lanes of a, then those of b. */
V em_joined(Emit *, V a, V b);
V em_extract(Emit *, V vector, uint32_t lane);
V em_insert(Emit *, V scalar, V vector, uint32_t lane);
V em_lanes(Emit *, MlirType integer, uint32_t w); /* 0, 1, 2, … */

/* Constants; a splat when t is a vector type. */
V em_int(Emit *, MlirType t, int64_t v);
V em_float(Emit *, MlirType t, double v);
V em_i64(Emit *, int64_t v);

/* Memory. Addresses are !llvm.ptr; alignment is the element's. */
V em_gep(Emit *, V p, V index, MlirType elem); /* &((elem *)p)[index] */
V em_load(Emit *, MlirType t, V p, uint32_t align);
void em_store(Emit *, V v, V p, uint32_t align);
void em_prefetch(Emit *, V p); /* the line of the first cache is soon read; it need not exist */
V em_masked_load(Emit *, MlirType vector, V p, V mask, V otherwise, uint32_t align);
void em_masked_store(Emit *, V v, V p, V mask, uint32_t align);
V em_gather(Emit *, MlirType vector, V p, V indices, MlirType elem, V mask, V otherwise, uint32_t align);

/* Regions: begin a block, fill it (e->block is the block), end it. While an inner block is open, operations may still
   be appended to outer ones: they come before the operation that owns the inner block. */
typedef struct {
    MlirBlock outer, block;
    MlirRegion region;
} Scope;
Scope em_begin(Emit *, uint32_t nargs, const MlirType *args);
void em_end(Emit *, Scope *); /* e->block is the outer one again */
V em_arg(Scope *, uint32_t i);

/* scf.for lo..hi by step with n carried values. em_for opens the body's block, whose arguments are the index (0) and
   the carried values (1 … n); em_for_end yields `next` and sets the results. */
typedef struct {
    Scope scope;
    V lo, hi, step;
    uint32_t n;
    const V *init;
    bool rolled; /* on a device it stays a loop */
} For;
For em_for(Emit *, V lo, V hi, V step, uint32_t n, const V *init);
void em_for_end(Emit *, For *, const V *next, V *results);
/* scf.if: em_if opens the then-block; em_else closes it with its results and opens the else-block. */
typedef struct {
    Scope then, otherwise;
    V condition;
    uint32_t n;
} If;
If em_if(Emit *, V condition);
void em_else(Emit *, If *, uint32_t n, const V *yes);
void em_if_end(Emit *, If *, const V *no, V *results);

/* scf.while: `before` ended in scf.condition, `after` in scf.yield. */
V *em_while(Emit *, uint32_t n, const V *init, Scope *before, Scope *after);

/* A function, internal to the library; opens its entry block. `shared`: its operations are recorded for
   em_shared_function. */
typedef struct {
    Scope scope;
    Str name;
    uint32_t nargs;
    const MlirType *args;
    MlirType result;           /* no_type: void */
    struct Tape *tape, *outer; /* its own; the enclosing function's */
    uint32_t written;          /* operations in the enclosing function */
} Function;
Function em_function(Emit *, Str name, MlirType result, uint32_t nargs, const MlirType *args, bool shared);
/* Ends the function, which returns `value` (NULL: nothing), and appends it to the module. */
MlirOperation em_function_end(Emit *, Function *, V value);
/* LLVM writes the function where it is called. */
void em_inline(Emit *, MlirOperation function);
/* The function's code is for every x86-64. */
void em_for_any_cpu(Emit *, MlirOperation function);
/* em_call declares an external function once and calls it; em_call_local calls one of this module, and so does
   em_call_last, whose result is returned at once. */
void em_declare(Emit *, const char *name, MlirType result, uint32_t n, const MlirType *args);
V em_call_local(Emit *, Str name, MlirType result, uint32_t n, const V *args);
V em_call_last(Emit *, Str name, MlirType result, uint32_t n, const V *args);
V em_call(Emit *, const char *name, MlirType result, uint32_t n, const V *args);
V em_address(Emit *, Str symbol); /* of a function or global */
/* Declares a word of data, defined elsewhere, once. */
void em_declare_word(Emit *, Str name);
/* The address of a value's data: read-only bytes in the library, aligned to 64. */
V em_constant(Emit *, Val);
uint32_t em_constant_number(Emit *, Val); /* in e->constants */
/* Sets the place of subsequent operations in the program, for debug information. */
void em_at(Emit *, Span);
V em_alloca(Emit *, int64_t bytes, uint32_t align);

/* Puts a text, terminated, into read-only data; its symbol. */
Str em_text(Emit *, Str);
/* Drops this function if an equal one has been written before; returns its number in e->names. */
uint32_t em_shared_function(Emit *, const Function *, MlirOperation);

/* ---- element types, in memory and in registers. bool: i8 and i1; floats below f32: their bits in an i16 or i8, and
   f32 (rounded after every operation); i2 to u4: i8 in both, sign- or zero-extended after every operation in registers;
   complex: both parts as one integer; the others are the same in both. */
MlirType em_memory_type(Emit *, Dtype);
MlirType em_register_type(Emit *, Dtype);
V em_to_register(Emit *, Dtype, V memory);
V em_to_memory(Emit *, Dtype, V reg);
/* A result brought into the range of its type: floats rounded to nearest, ties to even; integers wrapped. */
V em_round(Emit *, Dtype, V reg);

/* From now on functions and declarations belong to the module of the kernels, or to that of the host. */
void em_device(Emit *, bool kernels);
/* What follows is written for this target of e->targets. */
void em_target(Emit *, uint32_t number);

Emit *emit_open(Ctx *, const Targets *);
void emit_close(Emit *);
/* Verifies, lowers, optimises and writes the module: `kind` asm, llvm, mlir, ptx or obj. */
bool emit_write(Emit *, Programs, EmitKind kind, const Output *);
/* Object files for a shared library, under temporary names: a long module becomes several. */
typedef struct {
    uint32_t n;
    const char *at[MOST_SHARDS];
} Objects;
bool emit_objects(Emit *, Programs, const Output *library, Objects *);

#endif
