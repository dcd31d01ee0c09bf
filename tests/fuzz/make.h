/* What the makers of equations share. A maker draws operands and parameters for a row of prims.def; infer() gives the
   results' types. What it refuses is thrown away, so that makers need not know every demand. */
#ifndef JAXCC_FUZZ_MAKE_H
#define JAXCC_FUZZ_MAKE_H
#include "gen.h"
#include "compiler/typecheck/check.h"
#include <stdlib.h>

enum {
    BOOL = 1 << DK_BOOL,
    SINT = 1 << DK_SINT,
    INT = SINT | 1 << DK_UINT,
    FLOAT = 1 << DK_FLOAT,
    REAL = INT | FLOAT,
    COMPLEX = 1 << DK_COMPLEX,
    NUM = REAL | COMPLEX,
    ANY = NUM | BOOL,
    KEY = 1 << DK_KEY,
    MOST_ELEMENTS = 5000,
    MOST_DEPTH = 3
};

typedef struct {
    Val *at;
    uint32_t n, cap;
} Pool; /* arrays that equations may use */
typedef struct {
    Pool pool;
    Eqns eqns;
} Scope;
typedef struct {
    Ctx *cx;
    Dice *dice;
    bool runs;     /* programs that can be run and compared */
    bool compiles; /* rows that compile alone */
    bool derived;  /* short programs of rows that have derivatives */
    bool narrow;   /* these: of all floats, instead of f64 */
    uint32_t depth;
    Scope *s;
    Eqns holders; /* equations with programs, of all scopes: others may share them */
} Gen;
typedef struct {
    Param *at;
    uint32_t n, cap;
} Set; /* of parameters */

static inline uint32_t draw(Gen *g, uint32_t n) { return dice_draw(g->dice, n); }
static inline bool coin(Gen *g) { return draw(g, 2); }

void put(Gen *, Set *, ParamKey, Value);
void put_int(Gen *, Set *, ParamKey, int64_t); /* an int, a dimension or a bool, as the parameter wants */
void put_dtype(Gen *, Set *, ParamKey, Dtype);
void put_ints(Gen *, Set *, ParamKey, const int64_t *, uint32_t n);
void put_jaxpr(Gen *, Set *, ParamKey, Jaxpr *);
/* Parameters as a jaxpr prints them, without the brackets. */
void put_text(Gen *, Set *, Prim, Str);

Dtype draw_dtype(Gen *, unsigned kinds);
Dim draw_dim(Gen *);
Type draw_type(Gen *, unsigned kinds);
bool is_small(Gen *, Type);
static inline const ArrayType *array(const Gen *g, Val v) { return val_array(g->cx, v); }
static inline unsigned kind_of(const Gen *g, Val v) { return 1u << dtype_info[array(g, v)->dtype].kind; }

/* Adds the equation where it types and its results are small; they join the pool. Result 0, or no value. */
Val emit(Gen *, Prim, const Val *in, uint32_t n, Set, uint32_t results);
/* The same for results whose types only their binders say: they are given. */
Val emit_declared(Gen *, Prim, const Val *in, uint32_t n, Set, const Type *results, uint32_t n_results);
Val literal(Gen *, Dtype);
/* A value of the type: of the pool, where there is one, most of the time. */
Val need(Gen *, Type);
/* A value of one of the kinds and of at least that rank. */
Val pick(Gen *, unsigned kinds, uint32_t rank);
static inline Val scalar(Gen *g, Dtype d) { return need(g, type_of(g->cx->types, d, 0, NULL)); }
/* A program; results of the types `out`, or of any. References among its inputs do not join its pool. */
Jaxpr *nested(Gen *, const Type *in, uint32_t n, const Type *out, uint32_t results);

uint32_t some_axes(Gen *, uint32_t rank, const bool *may, int64_t *axes);
void permute(Gen *, int64_t *, uint32_t n);

typedef void Make(Gen *, Prim, unsigned kinds);
Make make_again, make_arg, make_barrier, make_binary, make_broadcast, make_call, make_concatenate, make_cond,
    make_convert, make_cumulative, make_dim_as_value, make_dot, make_dynamic, make_integer_pow, make_iota, make_pad,
    make_reduce, make_reduce_precision, make_reshape, make_rev, make_round, make_scaled, make_scan, make_select_n,
    make_selected, make_slice, make_split, make_squeeze, make_ternary, make_tile, make_transpose, make_unary,
    make_while, make_text, make_reduction, make_window, make_index, make_conv, make_ragged, make_refs, make_state,
    make_catalyst, make_solve, make_sparse, make_devices, make_kernel;
/* Has make_text a row for this rule; and may its programs be compared? */
const char *type_rule_of(Prim); /* the type rule of a row */
bool text_rule(const char *rule, bool *runs);

#endif
