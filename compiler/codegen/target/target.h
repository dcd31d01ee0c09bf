/* What code is generated for. The plan gets the facts and decides with them; kernels read the decisions in the steps,
   and the facts only for what one operation becomes. */
#ifndef JAXCC_TARGET_H
#define JAXCC_TARGET_H
#include "../../ir.h"

enum { MAX_LANES = 512 }; /* of any vector */
struct Plan;
struct Step;
struct Machine;
/* A GPU that runs the kernels of libraries for it. */
typedef struct {
    const char *name; /* as LLVM calls it: "sm_90" */
    int32_t sm;       /* 10 · major + minor */
    int32_t runs_on;  /* which other GPUs run its code: JAXCC_RT_CUDA_… of runtime/cuda.h */
    uint32_t shared;  /* bytes of shared memory that a block may have, on all of them */
    bool clusters;    /* blocks of a cluster run together and write to each other's shared memory */
    bool warpgroups;  /* four warps multiply together what is in shared memory: wgmma */
} Device;
typedef struct Target {
    const char *platform;                /* as JAX names it */
    const char *triple, *cpu, *features; /* of LLVM */
    const char *tune;                    /* the CPU whose costs count; `cpu` is only a level (x86-64-v3) */
    uint64_t need;                       /* what the machine must have: bits of runtime/cpu.def */
    uint32_t vector_bytes, registers;    /* of a vector register; how many there are */
    bool rounds, fma;                    /* instructions that round to whole numbers; fused products */
    bool masks;                          /* masked loads and stores of every element width … */
    bool word_masks;                     /* … of 4 bytes and more */
    bool words;                          /* dot products of the bytes of words, which code uses after target_words */
    /* Lanes, tiles and units of a step whose loops and stages are known; they are stored in the step. */
    void (*decide)(struct Plan *, struct Step *);
    const Device *device;          /* what runs the kernels; NULL: the CPU itself */
    const struct Machine *machine; /* its code (host/machine.h); NULL: it is only planned for */
} Target;

/* The levels of x86-64, lowest first, without what LLVM says about them: tune, need and machine. */
enum { X86_LEVELS = 4 };
extern const Target x86_levels[X86_LEVELS];

/* Code for the target may use the dot products of words, which its CPU needs then. */
void target_words(Target *);

/* nvptx64, nvptx64-nvidia-cuda */
bool nvptx_triple(const char *triple);
/* From -march or -mcpu, sm_80 if there is none, without its machine; false after a diagnostic. */
bool nvptx_target(Ctx *, Target *);

/* One, or several levels of x86-64, lowest first: a library has all of them and runs the highest that the CPU can. */
typedef struct {
    Target at[X86_LEVELS];
    uint32_t n;
} Targets;
/* From -march, -mcpu, --target, or this machine; false after a diagnostic. */
bool targets_from_options(Ctx *, Targets *);

#endif
