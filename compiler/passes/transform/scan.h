/* What the files on loops and on what is computed again share. */
#ifndef JAXCC_SCAN_H
#define JAXCC_SCAN_H
#include "flow.h"

Vals vals_new(Arena *, uint32_t cap); /* empty */
void vals_push(Vals *, Val);

static inline bool is_among(const Intern *vals, Val v) {
    uint32_t k;
    return intern_find(vals, &v, sizeof v, &k);
}

/* The operands of a scan. */
typedef struct {
    Vals consts, carry, xs;
    bool backwards; /* in the opposite order */
} ScanIn;
/* A scan like `e` of another iteration, whose inputs are these. */
Vals scan_run(const Tx *, Builder *, const Eqn *e, const Inner *turn, ScanIn);

/* ---- residuals: how an iteration of the unknown loop gets a value of the same iteration of the known one */
typedef enum {
    STORE_NONE,    /* it is computed */
    STORE_CONST,   /* it is a constant of the known loop, `at` of those captured and given */
    STORE_KEPT,    /* carry `at`, which no iteration changes */
    STORE_HOISTED, /* computed before the loop: result `at` of `hoist` */
    STORE_SCANNED, /* scanned operand `at` of the known loop */
    STORE_RESULT,  /* stacked result `at` of the known loop, one of the program's or one for this */
    STORE_BEFORE,  /* carry `at` before the iteration; stacked result `from` is it after */
    STORE_AFTER,   /* carry `at` after the iteration; stacked result `from` is it before */
    STORE_INDEX    /* carry `at` before the iteration, a scalar that grows by the same step */
} StoreKind;
typedef struct {
    StoreKind kind;
    uint32_t at, from;
    Val v;           /* in the known program */
    Val step;        /* INDEX: a literal, */
    bool step_const; /* or given constant `from` */
} Store;
/* A scan divided. */
typedef struct {
    Inner
        extents; /* takes all constants, those captured first, and the known carry; returns constants that `known` takes
                      before those given; no program: there are none */
    Inner known; /* takes known constants, carry, scanned; returns known carry, known stacked, those for residuals */
    Inner hoist; /* takes all constants of `known`, those captured first, and its carry; no program: there is nothing */
    Inner unknown; /* takes stores up to HOISTED, unknown constants, unknown carry, other stores, unknown scanned */
    Store *stores; /* first those up to HOISTED */
    uint32_t nstores;
    Bits unknown_in, out;
} MadeScan;
/* made_split of the body of a loop. */
const MadeSplit *split_turn(Tx *, Builder *b, const Jaxpr *body, Bits unknown, Bits force);
/* `e`: the equation as written. NULL after an error. */
const MadeScan *made_scan(Tx *, Builder *, const Eqn *e, Bits unknown);
/* What the loop of this body keeps for the backward part: as --remat says, unless the text does. */
Keep keeps(const Tx *, const Jaxpr *body);
/* May a loop that keeps this compute an equation without effects again? */
bool computed_again(const Tx *, Keep, const Eqn *);
/* Does the loop become one of segments? Divides it so; `turns`: its length. */
bool scan_divides(const Tx *, const Scan *);
bool split_in_segments(SplitEqn *, Dim turns);
/* Did segments.c write the program? */
bool tx_wrote(const Tx *, const Jaxpr *);
/* The bytes of an array, about; many if they are too many. */
int64_t scan_bytes(const Ctx *, Val);
/* [v, stack[0], stack[1], …] as long as the stack; or [stack[1], …, stack[n-1], v]. */
Val b_shifted(Builder *, Val stack, Val v, bool up);
/* [first, first + step, …], or the same backwards. */
Val b_progression(Builder *, Val first, Val step, Dim n, bool backwards);
/* Copies an equation under `map`, with results of its own, which it maps those of the equation to. */
void b_copied(Builder *, ValMap *, const Eqn *);
/* A new value for an input, to which `map` maps this one. */
Val b_input_like(Builder *, ValMap *map, Val like);
/* The program with other values, to which `map` maps its own; the n values become theirs. */
const Jaxpr *program_copied(Ctx *, const Jaxpr *, ValMap *map, Val *, uint32_t n);
/* The program with the bodies of short calls without rules of their own in place of those that give one of these n
   values, which become values of the result; `map`: values of the program to those of the result. NULL after an
   error. */
const Jaxpr *calls_opened(Ctx *, const Jaxpr *, ValMap *map, Val *, uint32_t n);
/* What runs again has no effects (pure.c). The equation, in `e` or its programs, that has an effect and results, so
   that it may run only once; NULL: there is none. */
const Eqn *effect_kept(Tx *, const Eqn *e);
const Eqn *effect_kept_in(Tx *, const Jaxpr *);
/* The program without its effects; b_copied without those of the equation's programs. */
const Jaxpr *jaxpr_pure(Tx *, const Jaxpr *);
void b_copied_pure(Tx *, Builder *, ValMap *, const Eqn *);
/* The slot of what is made for a loop, by key; NULL until it is filled. */
const void **loop_slot(Tx *, const void *key, size_t n);

#endif
