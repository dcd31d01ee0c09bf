/* The builder: equations, typed as they are written. Rules that expand primitives into simpler ones use it. */
#ifndef JAXCC_BUILD_H
#define JAXCC_BUILD_H
#include "../typecheck/index.h"
#include "rewrite.h"
#include <assert.h>

/* An axis of devices bound by an enclosing program: a device's coordinate is its number / stride % extent. */
typedef struct MeshAxis {
    Str name;
    int64_t extent, stride;
    uint32_t at;     /* position in the mesh, which includes the axes of enclosing programs */
    uint32_t region; /* nesting depth of programs for several devices, including this one */
    const struct MeshAxis *outer;
} MeshAxis;
/* What the rules of one program have made and use again. */
typedef struct {
    Intern seen; /* constants by content: equal ones are one value */
    struct {
        Val *at;
        uint32_t n, cap;
    } vals;
    Memo callers; /* programs that take more and call another (b_cond) */
} Tables;
/* The state of one rule: the equations written so far, all with the place `span`. After a failure, which is reported,
   every call does nothing and returns VAL_FAILED, which is also accepted as an operand, so that a rule checks `failed`
   once, at its end. 0 (no value) is never an operand. */
typedef struct {
    Ctx *cx;
    const MeshAxis *mesh; /* innermost first */
    Eqns eqns;
    Consts consts;    /* of b_const, for the program into which the equations go */
    Tables *tables;   /* that builders of one program share; NULL: the builder's own, made when they are needed */
    Span span, whole; /* whole.n = 0: as span */
    uint32_t depth;   /* inner programs that have begun and not ended */
    bool failed;
} Builder;

/* ---- parameters, as in (Param[]){p_ints(K_axes, 1, &axis), p_bool(K_reverse, true)} */
Param p_int(ParamKey, int64_t);
Param p_bool(ParamKey, bool);
Param p_ints(Builder *, ParamKey, uint32_t n, const int64_t *at); /* copied */
Param p_dims(Builder *, ParamKey, uint32_t n, const Dim *at);     /* copied */
Param p_dtype(ParamKey, Dtype);
Param p_word(ParamKey, const char *);
Param p_jaxpr(ParamKey, Jaxpr *);
Param p_text(Builder *, ParamKey, Str); /* any bytes */
Param p_none(ParamKey);
Param p_impl(Dtype key); /* of random_wrap */
/* NAME(field=(1, 2), …), of n fields. */
Param p_record(Builder *, ParamKey, const char *name, uint32_t n, const char *const *fields, const Ints *at);

/* ---- one equation */
Val build(Builder *, Prim, uint32_t n, const Val *in, uint32_t nparams, const Param *); /* one result */
/* Several results; `types`: declared types where the type rule cannot infer them (0: inferred); NULL: all are
   inferred. */
Vals build_many(Builder *, Prim, uint32_t n, const Val *in, uint32_t nparams, const Param *, uint32_t nout,
                const Type *types);
/* A copy of the equation at the builder's place, with new results; `types` as above. */
Vals b_eqn(Builder *, const Eqn *, uint32_t nout, const Type *types);
/* Has the builder failed, or is this operand a failure? */
static inline bool b_failed(const Builder *b, Val v) {
    assert(v || b->failed);
    return b->failed || v == VAL_FAILED;
}

bool b_any_failed(Builder *, uint32_t n, const Val *in);
Vals b_failures(Builder *, uint32_t n); /* n times VAL_FAILED */
Tables *b_tables(Builder *);

/* ---- elementwise: a function for each primitive of one to three operands, b_sin(b, x), b_add(b, x, y); b1 to b3 if
   the primitive is a variable */
Val b1(Builder *, Prim, Val);
Val b2(Builder *, Prim, Val, Val);
Val b3(Builder *, Prim, Val, Val, Val);
#define B_unary_YES(id)                                                                                                \
    static inline Val b_##id(Builder *b, Val x) { return b1(b, P_##id, x); }
#define B_binary_YES(id)                                                                                               \
    static inline Val b_##id(Builder *b, Val x, Val y) { return b2(b, P_##id, x, y); }
#define B_ternary_YES(id)                                                                                              \
    static inline Val b_##id(Builder *b, Val x, Val y, Val z) { return b3(b, P_##id, x, y, z); }
#define B_params_YES(id) /* below */
#define B_unary_NO(id)
#define B_binary_NO(id)
#define B_params_NO(id)
#define B_FUNCTION(arity, elementwise, id) B_##arity##_##elementwise(id)
#define NO_LOWERING NO
#define POINT(f) YES
#define STDLIB(f) YES
#define SAME YES
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) B_FUNCTION(arity, lowering, id)
#include "../prims.def"
Val b_integer_pow(Builder *, Val, int64_t y);
Val b_round(Builder *, Val, bool to_even); /* ties: to even numbers, or away from 0 */
Val b_reduce_precision(Builder *, Val, int64_t exponent_bits, int64_t mantissa_bits);
Val b_conj(Builder *, Val); /* complex */
Val b_fma(Builder *, Val x, Val y, Val z);
Val b_clamp(Builder *, Val least, Val, Val most);
Val b_select_n(Builder *, Val which, uint32_t n, const Val *cases);
Val b_select(Builder *, Val condition, Val no, Val yes);
Val b_convert(Builder *, Val, Dtype); /* the value itself if it has that type */
Val b_bitcast(Builder *, Val, Dtype);

/* ---- types of values */
static inline const ArrayType *b_type(const Builder *b, Val v) {
    const ArrayType *t = val_array(b->cx, v);
    assert(t->rank <= COMPILED_RANK); /* prune.c, build_many */
    return t;
}
static inline Types *b_types(const Builder *b) { return b->cx->types; }

/* ---- scalars, which are literals, and arrays of one value */
Val b_int(Builder *, Dtype, int64_t);
Val b_float(Builder *, Dtype, double);
/* A number as a scalar of any real type, including bool. */
Val b_number(Builder *, Dtype, double);
/* An extent as a scalar. */
Val b_dim(Builder *, Dtype, Dim);
/* An array of these extents filled with `scalar`. */
Val b_full(Builder *, Val scalar, uint32_t rank, const Dim *dims);
Val b_full_like(Builder *, Val like, double value);
/* Zeros of a type, also of keys. */
Val b_zeros(Builder *, Type);
static inline Val b_zeros_like(Builder *b, Val like) { return b_full_like(b, like, 0); }
/* An array with known elements, dense and as laid out in memory: a constant of the program in which the rule writes,
   and captured by inner ones. The extents are numbers. The data are copied. */
Val b_const(Builder *, Type, const void *data);
/* Is an extent 0? */
bool b_empty(const Builder *, Val);

/* ---- shapes */
/* Axis i of v becomes axis axes[i] of the result. */
Val b_broadcast(Builder *, Val, uint32_t rank, const Dim *dims, const int64_t *axes);
Val b_reshape(Builder *, Val, uint32_t rank, const Dim *dims);
/* v with its extents spelt as those of `like`, to which they are equal by a condition on symbols. 0 stays 0. */
Val b_as_declared(Builder *, Val v, Val like);
Val b_transpose(Builder *, Val, const int64_t *permutation);
/* v's axis `from` becomes axis `to`; the others keep their order. */
Val b_move_axis(Builder *, Val v, uint32_t from, uint32_t to);
/* v's axis i becomes axis axes[i] of an array of these extents, the axes in any order. */
Val b_place(Builder *, Val v, uint32_t rank, const Dim *dims, const int64_t *axes);
Val b_slice(Builder *, Val, const Dim *start, const Dim *limit, const int64_t *strides); /* strides NULL: 1 */
/* Elements lo … hi - 1 of one axis. */
Val b_slice_axis(Builder *, Val, int64_t axis, Dim lo, Dim hi);
Val b_pad(Builder *, Val, Val scalar, const Dim *config); /* low, high, interior of each axis */
Val b_concatenate(Builder *, uint32_t n, const Val *in, int64_t axis);
Val b_iota(Builder *, Dtype, uint32_t rank, const Dim *dims, int64_t axis);
Val b_rev(Builder *, Val, uint32_t n, const int64_t *axes);
/* Adds axes of extent 1 at these places of the result; drops those at these places of the operand. */
Val b_expand_dims(Builder *, Val, uint32_t n, const int64_t *axes);
Val b_squeeze(Builder *, Val, uint32_t n, const int64_t *axes);

/* ---- arithmetic */
Val b_reduce(Builder *, Prim, Val, uint32_t n, const int64_t *axes); /* reduce_sum … argmax excepted */
/* Undoes a broadcast, as its transpose does: v has the shape that b_broadcast gives an array of these extents for these
   axes. Axes not named, and those where the array has extent 1, are summed. NULL: v is what an elementwise operand is
   stretched to, which is a scalar or has the same rank; any other rank needs the axes. */
Val b_sum_to(Builder *, Val v, uint32_t rank, const Dim *dims, const int64_t *axes);
/* What an elementwise operand is stretched to, undone by b_sum_to without axes: v is a scalar, or its axes of extent 1
   get the array's extents. Other axes agree: equal, or symbols that the program equates. */
Val b_stretch(Builder *, Val v, uint32_t rank, const Dim *dims);
/* The axes of two operands that are summed over or batched; the element type of the result (DT_none: that of the
   operands); the parameter `precision`, as of another product (NULL: none). */
typedef struct {
    Ints contracted[2], batch[2];
    Dtype preferred;
    const Param *precision;
} Contraction;
Val b_dot_general(Builder *, Val, Val, Contraction); /* [batch…, left…, right…] */
/* The neutral value of a reduction or cumulative primitive. */
Val b_neutral(Builder *, Prim, Dtype);
/* The reduction that combines with this operation of two operands; P_none if there is none. */
Prim b_reduction(Prim);
/* A call of the runtime's C function jaxcc_rt_<name> (rt.h). */
Vals b_runtime(Builder *, const char *name, uint32_t nsizes, const Dim *sizes, uint32_t n, const Val *in, uint32_t nout,
               const Type *types);

/* Ends the call with JAXCC_CHECK if the scalar bool is true; the message is the place of `e`, its primitive, and
   `what`. */
void b_stop_if(Builder *, Val, const Eqn *e, const char *what);
/* The same at a place and with any text, in which {0}, {1}, … stand for the values of n integer scalars. */
void b_stop_with(Builder *, Val, Span place, Str what, uint32_t n, const Val *numbers);
/* The text of the former without the place. */
Str b_stop_text(Builder *, const Eqn *e, Str what);

/* ---- computed places (build_index.c) */
/* The block of these extents that starts at these scalars, which have one integer type and are clamped so that it lies
   inside. */
Val b_dynamic_slice(Builder *, Val, const Val *starts, const Dim *sizes);
Val b_dynamic_update_slice(Builder *, Val, Val block, const Val *starts);
/* The parameters of gather and scatter. The indices are [positions…, one for each axis of the map]. */
typedef struct {
    IndexNumbers n;
    Str mode;            /* GatherScatterMode.CLIP, …; empty: FILL_OR_DROP */
    bool sorted, unique; /* what is known of the indices */
    bool zeros;          /* gather: 0 is read outside, not NaN or the least integer */
    Jaxpr *update;       /* scatter: combines an element with an update; NULL: the primitive does */
} Places;
Param p_index_numbers(Builder *, Prim, const IndexNumbers *); /* as dimension_numbers of gather, or of a scatter */
/* Those of a gather or scatter equation; false after a diagnostic. A scatter with the Places of a gather writes what
   that reads. */
bool places_of(Ctx *, const Eqn *, Places *);
Val b_gather(Builder *, Val, Val indices, const Dim *sizes, Places); /* sizes: of a window, by axis of the operand */
/* P_scatter, P_scatter_add, … */
Val b_scatter(Builder *, Prim, Val, Val indices, Val updates, Places);

/* ---- existing programs: b_call copies the equations of `j`, b_jit writes a call that shares it */
Vals b_call(Builder *, const Jaxpr *j, uint32_t n, const Val *in);
/* Applies a program on scalars to every element of arrays of one shape. */
Vals b_map(Builder *, const Jaxpr *j, uint32_t n, const Val *in);

/* ---- programs within programs

     Inner turn = b_inner(b, 2, (Type[]){f32, f32});                   carry, slice
     Val sum = b_add(b, turn.in.at[0], b_mul(b, turn.in.at[1], k));    k: of an enclosing program
     b_inner_end(b, &turn, 1, &sum);
     Vals y = b_scan(b, &turn, (Loop){.length = n, .carries = 1}, 2, (Val[]){zero, xs});

   Between b_inner and b_inner_end, equations belong to the inner program. They, its types and its results may use any
   value of the enclosing programs, and b_const: the program captures the values it uses except literals, each after the
   scalars that are its extents, and equations that run the program pass them. Programs may be nested: the one
   that began last ends first. One that has ended never changes: any number of equations may run it, in any program that
   is around, and its Inner may be copied. */
typedef struct {
    Vals in;        /* its inputs */
    Vals captured;  /* once it has ended: the values that its program takes before those */
    Jaxpr *j;       /* its program, once it has ended */
    Eqns outer;     /* of the enclosing program */
    uint32_t depth; /* how many had begun and not ended with it; 0: an existing program */
} Inner;
Inner b_inner(Builder *, uint32_t n, const Type *types);
/* Inputs with the types of these values; if one is an extent of another, so are the inputs. */
Inner b_inner_like(Builder *, uint32_t n, const Val *like);
Jaxpr *b_inner_end(Builder *, Inner *, uint32_t n, const Val *out);
/* An existing program; `consts`: the operands of its first inputs wherever it runs. */
Inner b_program(Builder *, const Jaxpr *, uint32_t n, const Val *consts);

/* A call. */
Vals b_jit(Builder *, Str name, const Inner *, uint32_t n, const Val *in);
/* The branch selected by `which`: an integer, which is clamped, or a bool. All branches have as many results. All take
   what any of them captures: one that captures something else becomes a program that takes it and calls the branch's,
   once for the same branch and captured values. */
Vals b_cond(Builder *, Val which, uint32_t nbranches, const Inner *branches, uint32_t n, const Val *in);
/* The same for a cond that is written otherwise: the values that all branches take first; their programs. */
Vals b_branches(Builder *, uint32_t n, const Inner *branches, Jaxpr **programs);
typedef struct {
    Dim length;
    uint32_t carries;
    bool reverse;
    int64_t unroll;  /* iterations at once: a hint; 0: 1 */
    const Eqn *like; /* a scan whose other parameters are taken over; or NULL */
} Loop;
/* The first of the n operands are carried, the others are sliced. An iteration maps carry and slices to carry and
   slices; the results are the final carry, then the stacked slices. */
Vals b_scan(Builder *, const Inner *turn, Loop, uint32_t n, const Val *in);
/* Runs while `test` of the carry is true; the results are the final carry. */
Vals b_while(Builder *, const Inner *test, const Inner *turn, uint32_t n, const Val *carry);

/* ---- rules: the EXPAND rows of prims.def, in passes/rules/. A rule writes the expansion of `e` and stores its results
   into out[e->out.n]; what it writes is expanded in turn. False after a diagnostic. */
typedef bool ExpandRule(Builder *, const Eqn *e, Val *out);
/* The same for a primitive that is expanded for some types only: out[0] = 0 if it stays. */
ExpandRule expand_some;
extern ExpandRule *const expand_rules[NPRIMS]; /* NULL: the primitive has none */
/* The axes that shard_map or pmap binds for its program; `outer` if `e` is neither. */
const MeshAxis *mesh_of(Ctx *, const Eqn *e, const MeshAxis *outer);
#define NO_LOWERING
#define EXPAND(f) ExpandRule expand_##f;
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) lowering
#include "../prims.def"

#endif
