/* What passes share: copying equations and programs with other values in the place of theirs. */
#ifndef JAXCC_REWRITE_H
#define JAXCC_REWRITE_H
#include "../control.h"
#include "passes.h"

/* How a primitive is lowered, without the function that does it: the column of prims.def. */
typedef enum {
    LOWER_NONE,
    LOWER_POINT,
    LOWER_STDLIB,
    LOWER_INDEX,
    LOWER_REDUCE,
    LOWER_CUM,
    LOWER_ARG,
    LOWER_DOT,
    LOWER_UPDATE,
    LOWER_COND,
    LOWER_WHILE,
    LOWER_SCAN,
    LOWER_EXPAND,
    LOWER_SCATTER,
    LOWER_RUNTIME,
    LOWER_SPMD,
    LOWER_CALL,
    LOWER_SAME,
    LOWER_STATE
} Lower;
extern const uint8_t prim_lower[NPRIMS];
/* Do its programs run as they are: calls, branches, loops, programs for several devices? Those of others say how
   elements are combined. */
bool runs_programs(Prim);

/* Of reductions, cumulative primitives and scatters: the elementwise primitive that combines two values, or P_none; and
   the value that combining leaves as it is (not of scatters). */
typedef enum { NEUTRAL_ZERO, NEUTRAL_ONE, NEUTRAL_LEAST, NEUTRAL_MOST, NEUTRAL_ONES } Neutral;
extern const uint16_t prim_combiner[NPRIMS];
extern const uint8_t prim_neutral[NPRIMS];

/* ---- a table by value: one that grows with the values of the compilation; or, where there are many of them or they
   hold little, a `sparse` one, which grows with what is put */
typedef struct {
    Ctx *cx;
    Val *at;
    uint32_t n;
    bool sparse;
    Intern keys;      /* of a sparse one: their numbers are places in `at` */
    uint32_t spliced; /* equations that jaxpr_splice made */
} ValMap;
Val valmap_get(const ValMap *, Val); /* the value itself where nothing was put */
void valmap_put(ValMap *, Val, Val with);

/* ---- what a pass made of a sub-program, so that a shared one is made once. A key is bytes without padding: the program
   and whatever else decides what becomes of it. */
typedef struct {
    Arena *arena;
    Intern table;
    struct {
        Jaxpr **at;
        uint32_t n, cap;
    } done;
} Memo;
/* NULL in it until it is made; valid until the next call. */
Jaxpr **memo_at(Memo *, const void *key, size_t n);
Jaxpr **memo_slot(Memo *, const Jaxpr *); /* by the program alone */

/* A sub-program as the pass wants it. */
typedef Jaxpr *JaxprMap(void *user, const Jaxpr *);

/* `e` with `map` in its operands and dimensions, and `sub` (may be NULL) in its parameters; the
   results are those of `e`. A parameter without a dimension or a jaxpr that changes is shared with
   `e`. */
Eqn eqn_rewrite(const ValMap *map, const Eqn *e, JaxprMap *sub, void *user);
Vals vals_rewrite(const ValMap *map, Vals);
/* The values that are extents in a type, in the parameters of an equation, one after the other. */
typedef void ValVisit(void *user, Val);
void type_extents(const Ctx *, Type, ValVisit *, void *user);
void eqn_extents(const Ctx *, const Eqn *, ValVisit *, void *user);
/* The type with `map` in the scalars that are its extents. */
Type type_rewrite(const ValMap *map, Type);

/* A number in an index of a reference is part of the text, and outside of the array an error; a variable is clamped.
   What was a variable before the equation was rewritten becomes one again: by equations before it. */
void name_indices(Ctx *, Eqns *to, Eqn *);
/* Appends the equations of `j` for the operands `in` of its inputs, with fresh results; `map` then
   has what stands for the values of `j`, its constants excepted: they stay what they are. False
   after a diagnostic at `call`: functions that call functions twice grow as 2^depth, so there is a
   limit. */
bool jaxpr_splice(ValMap *map, Eqns *to, const Jaxpr *j, Vals in, Span call);
/* The same in the place of the equation `e`, whose results become those of `j`. */
bool jaxpr_splice_call(ValMap *map, Eqns *to, const Jaxpr *j, Vals in, const Eqn *e);

/* `v` in the place of `old`, which later equations use. What is an extent keeps its name, which types have: it is a
   copy. */
void val_replace(ValMap *map, Eqns *to, Val old, Val v);

/* The constants of a program that takes in others: once each. */
typedef struct {
    Val *at;
    uint32_t n, cap;
    Intern seen;
} Consts;
void add_consts(Arena *, Consts *, Vals);

/* `j` with other equations and results. */
Jaxpr *jaxpr_with(Ctx *, const Jaxpr *, Eqns, Vals out);

/* The branch of a cond whose index `map` makes a literal, and its operands. NULL for any other equation. */
const Jaxpr *known_branch(const ValMap *map, const Eqn *e, Vals *in);
/* May calls of the program stay calls? Its types are known to a caller: there are no references, and no extents that
   are computed inside. `cx` is the Ctx. */
bool may_stay_call(void *cx, const Jaxpr *);
/* `e`, a call of the program `body` with these operands, as the passes write calls: jit[name jaxpr]. */
Eqn eqn_call(const ValMap *map, const Eqn *e, Jaxpr *body, Vals operands);
/* Whether `e` does more than compute its results, itself; sub-programs not counted. */
bool eqn_impure(const Eqn *);
/* The same of it and the programs within, each looked at once. */
typedef struct {
    Ctx *cx;
    Intern programs;
    struct {
        bool *at;
        uint32_t n, cap;
    } impure; /* by program */
} Effects;
bool eqn_has_effects(Effects *, const Eqn *);

#endif
