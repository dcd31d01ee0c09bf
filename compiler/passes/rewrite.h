/* Shared by passes: copying equations and programs with some values replaced. */
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
    LOWER_SORT,
    LOWER_SPMD,
    LOWER_PROGRAM,
    LOWER_CALL,
    LOWER_SAME,
    LOWER_STATE
} Lower;
extern const uint8_t prim_lower[NPRIMS];
/* One result for each element, from the operands' elements at the same place. */
static inline bool prim_elementwise(Prim p) { return prim_lower[p] == LOWER_POINT || prim_lower[p] == LOWER_STDLIB; }
/* Does it run its programs, as calls, branches, loops and programs for several devices do? Programs of other primitives
   say how elements are combined. */
bool runs_programs(Prim);

/* The deepest nest of loops in the program of an elementwise equation that reads arrays or stacks. */
enum { ELEMENT_NEST = 8 };

/* For reductions, cumulative primitives and scatters: the elementwise primitive that combines two values, or P_none;
   and its neutral value (not for scatters). */
typedef enum { NEUTRAL_ZERO, NEUTRAL_ONE, NEUTRAL_LEAST, NEUTRAL_MOST, NEUTRAL_ONES } Neutral;
extern const uint16_t prim_combiner[NPRIMS];
extern const uint8_t prim_neutral[NPRIMS];

/* ---- a map from values to values: an array as large as the number of values in the compilation or, for many or small
   maps, a `sparse` one, which grows with its entries */
typedef struct {
    Ctx *cx;
    Val *at;
    uint32_t n;
    bool sparse;
    Intern keys;      /* of a sparse map: their numbers index `at` */
    uint32_t spliced; /* equations written by jaxpr_splice */
} ValMap;
Val valmap_get(const ValMap *, Val); /* the value itself if it has no entry */
void valmap_put(ValMap *, Val, Val with);

/* ---- memoization of rewritten sub-programs, so that a shared one is rewritten once. A key is bytes without padding:
   the program and everything else that determines the result. */
typedef struct {
    Arena *arena;
    Intern table;
    struct {
        Jaxpr **at;
        uint32_t n, cap;
    } done;
} Memo;
/* The slot of a key, which holds NULL until it is filled; valid until the next call. */
Jaxpr **memo_at(Memo *, const void *key, size_t n);
Jaxpr **memo_slot(Memo *, const Jaxpr *); /* keyed by the program alone */

/* Rewrites a sub-program. */
typedef Jaxpr *JaxprMap(void *user, const Jaxpr *);

/* A copy of `e` with `map` applied to operands and dimensions, and `sub` (unless NULL) to programs in parameters; the
   results are those of `e`. Parameters that do not change are shared with `e`. */
Eqn eqn_rewrite(const ValMap *map, const Eqn *e, JaxprMap *sub, void *user);
Vals vals_rewrite(const ValMap *map, Vals);
/* Visits the values that are extents in a type or in the parameters of an equation. */
typedef void ValVisit(void *user, Val);
void type_extents(const Ctx *, Type, ValVisit *, void *user);
void eqn_extents(const Ctx *, const Eqn *, ValVisit *, void *user);
/* Visits the values that an equation takes: operands, then extents, those of its results' types included. */
void eqn_takes(const Ctx *, const Eqn *, ValVisit *, void *user);
/* The type with `map` applied to the scalars that are its extents. */
Type type_rewrite(const ValMap *map, Type);

/* In an index of a reference, a literal outside the array is an error, whereas a variable is clamped. Operands that
   were variables before the equation was rewritten become variables again, by equations before it. */
void name_indices(Ctx *, Eqns *to, Eqn *);
/* Of a program that is written, at most: functions that call functions twice grow as 2^depth when calls are inlined,
   and each derivative of a derivative may be several times longer than the one before. */
enum { MOST_EQNS = 1 << 20 };
/* Appends the equations of `j` for operands `in`, with fresh results; afterwards `map` maps the values of `j`, except
   its constants, which stay. False after a diagnostic at `call`: there would be more than MOST_EQNS. */
bool jaxpr_splice(ValMap *map, Eqns *to, const Jaxpr *j, Vals in, Span call);
/* The same for a call `e`, whose results are mapped to those of `j`. */
bool jaxpr_splice_call(ValMap *map, Eqns *to, const Jaxpr *j, Vals in, const Eqn *e);

/* Replaces the results of an equation by its operands. */
void results_replace(ValMap *map, Eqns *to, const Eqn *);
/* Replaces `old` by `v` in later equations. A value that is an extent of types is kept, as a copy of `v`. */
void val_replace(ValMap *map, Eqns *to, Val old, Val v);

/* The constants of a program into which others are inlined, without duplicates. */
typedef struct {
    Val *at;
    uint32_t n, cap;
    Intern seen;
} Consts;
void add_consts(Arena *, Consts *, Vals);

/* An empty list with room for as many equations as `j` has. */
static inline Eqns eqns_for(const Ctx *cx, const Jaxpr *j) {
    return (Eqns){.at = arena_new(cx->arena, Eqn, j->eqns.n + 1), .cap = j->eqns.n + 1};
}
/* `j` with other equations and results. */
Jaxpr *jaxpr_with(Ctx *, const Jaxpr *, Eqns, Vals out);

/* Appends what an equation becomes, and to the constants those of programs that are put in its place; false after an
   error. */
typedef bool EqnMap(void *user, Eqns *to, Consts *, const Eqn *);
/* The program with each equation replaced by what `write` makes of it, and its results under `map`: once for each
   program, as `memo` remembers. NULL after an error. */
Jaxpr *jaxpr_rewrite(ValMap *map, Memo *memo, const Jaxpr *, EqnMap *write, void *user);

/* The branch of a cond whose index is a literal after `map`, and its operands; NULL for any other equation. */
const Jaxpr *known_branch(const ValMap *map, const Eqn *e, Vals *in);
/* May calls of the program stay calls? Only if callers know its types: without references, and without extents that are
   computed inside. `cx` is the Ctx. */
bool may_stay_call(void *cx, const Jaxpr *);
/* `e`, a call of the program `body` with these operands, as the passes write calls: jit[name jaxpr]. */
Eqn eqn_call(const ValMap *map, const Eqn *e, Jaxpr *body, Vals operands);
/* Does it take little more time than reading its results from memory would? */
bool eqn_cheap(const Eqn *);
/* Does `e` itself have side effects? Sub-programs are not counted. */
bool eqn_impure(const Eqn *);
/* A search for equations of one kind in `e` and in the programs within it, each of which is examined once. */
typedef struct {
    Ctx *cx;
    Intern programs;
    struct {
        bool *at;
        uint32_t n, cap;
    } found; /* by program */
} Search;
typedef bool EqnTest(const Eqn *, Jaxprs within);
bool eqn_contains(Search *, const Eqn *, EqnTest *is);
bool jaxpr_contains(Search *, const Jaxpr *, EqnTest *is);
typedef Search Effects;
bool eqn_has_effects(Effects *, const Eqn *);
bool jaxpr_has_effects(Effects *, const Jaxpr *);
/* Can it, which has no effects, be run where the program might not run it: before a loop that may have no iterations? A
   while or a function of the host may not end there; checks that were asked for might find something. */
bool eqn_runs_anywhere(Search *, const Eqn *);
/* The programs within custom_jvp_call and custom_vjp_call, at any depth, as keys: their rules are known by their
   form. */
Intern programs_of_rules(Ctx *, const Jaxpr *);

#endif
