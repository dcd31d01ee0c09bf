/* The program: jaxprs of equations over values. Every stage before the plan reads and writes this. */
#ifndef JAXCC_IR_H
#define JAXCC_IR_H
#include "diag.h"
#include "type.h"
#include <assert.h>

/* ---- values: numbers into one table of the compilation, unique over all (sub-)programs */
typedef uint32_t Val; /* 0: none */
/* The result of a call that failed, after a diagnostic: a value without a type, in no equation. */
enum { VAL_FAILED = 1 };
typedef struct {
    Val *at;
    uint32_t n;
} Vals;
typedef struct {
    int64_t *at;
    uint32_t n;
} Ints;
static inline bool ints_have(Ints list, int64_t v) {
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i] == v) return true;
    return false;
}
/* The first place of v in the list; -1: it is not there. */
static inline int64_t ints_find(Ints list, int64_t v) {
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i] == v) return i;
    return -1;
}

typedef enum { LIT_INT, LIT_FLOAT, LIT_BOOL, LIT_COMPLEX, LIT_ARRAY /* [...] */, LIT_FLOAT0, LIT_UNIT } LitKind;
typedef struct {
    LitKind kind;
    bool negative; /* INT: the value is -i */
    uint64_t i;    /* INT: magnitude; BOOL: 0 or 1 */
    double re, im; /* FLOAT, COMPLEX */
} Lit;
typedef struct {
    Type type; /* 0 until known */
    Str name;  /* from the text; empty for values created by passes */
    Span span;
    const Lit *lit;   /* a literal; NULL for a variable */
    const void *data; /* the elements if known at compile time (--consts), not aligned; else NULL */
    bool used;        /* a variable called `_` that the text uses nevertheless */
} ValInfo;

/* ---- parameters */
typedef enum {
#define PARAM(id, kind, example) K_##id,
#include "params.def"
    K_other, /* a name that is not in params.def */
    NPARAMS
} ParamKey;
typedef enum {              /* what a parameter holds, by params.def */
               PK_INT,      /* V_INT */
               PK_DIM,      /* V_DIM */
               PK_BOOL,     /* V_BOOL */
               PK_INTS,     /* V_INTS */
               PK_DIMS,     /* V_DIMS: a shape or sizes, maybe symbolic */
               PK_BOOLS,    /* V_INTS of 0 and 1 */
               PK_DTYPE,    /* V_DTYPE */
               PK_WORD,     /* V_WORD: name, enum */
               PK_JAXPR,    /* V_JAXPR */
               PK_JAXPRS,   /* V_JAXPRS */
               PK_PADDING,  /* V_DIMS of 3·rank numbers: low, high, interior of each axis */
               PK_PAIRS,    /* V_DIMS of 2·rank numbers: low, high of each axis */
               PK_DOTDIMS,  /* V_LIST of four V_INTS: lhs contracting, rhs contracting, lhs batch, rhs batch */
               PK_INTLISTS, /* V_LIST of V_INTS */
               PK_LIST,     /* V_LIST, or the text of an object */
               PK_NAME,     /* V_WORD, V_STR, V_LIST of them, or the text of an object */
               PK_TYPED,    /* any tree; np.int32(1) stays what it is */
               PK_VALUE     /* any tree, or text */
} ParamKind;
typedef enum {
    V_NONE, /* None */
    V_BOOL,
    V_INT,
    V_FLOAT,
    V_DIM,
    V_INTS,
    V_DIMS,
    V_DTYPE,
    V_WORD, /* an identifier, dotted: Precision.HIGHEST */
    V_STR,  /* quoted, with its quotes */
    V_LIST, /* ( … ) [ … ] { … }, `open` says which; with `s` a record: GatherDimensionNumbers(…) */
    V_PAIR, /* s = list.at[0], or list.at[0] : list.at[1] in a dict */
    V_JAXPR,
    V_JAXPRS,
    V_TEXT /* opaque: printed as it was */
} ValueKind;
typedef struct Jaxpr Jaxpr;
typedef struct Value Value;
struct Value {
    ValueKind kind;
    char open;
    Span span;
    Str s;
    union {
        int64_t i; /* INT, BOOL, DTYPE */
        double f;
        Dim dim;
        Ints ints;
        Dims dims;
        Jaxpr *jaxpr;
        struct {
            Value *at;
            uint32_t n;
        } list;
        struct {
            Jaxpr **at;
            uint32_t n;
        } jaxprs;
    };
};
typedef struct {
    ParamKey key;
    Span span; /* of the name */
    Str name;  /* of K_other */
    Value value;
} Param;
typedef struct {
    Param *at;
    uint32_t n;
} Params;

/* ---- equations and programs */
typedef enum {
    P_none,
#define PRIM(id, text, ...) P_##id,
#include "prims.def"
    NPRIMS
} Prim;
extern const char *const prim_name[NPRIMS];
Prim prim_named(Str);   /* P_none when unknown */
Prim prim_similar(Str); /* for "did you mean": P_none when none is close */

/* Columns of prims.def that several stages need. The number of operands: -1 if the type rule decides. */
extern const int8_t prim_arity[NPRIMS];
/* Facts about a primitive, a set. */
typedef enum {
    COMMUTES = 1 << 0,   /* x op y = y op x */
    PREDICATE = 1 << 1,  /* the result is a bool, the operands have one type */
    EXACT = 1 << 2,      /* the result has the operands' type and needs no rounding */
    NO_NAN = 1 << 3,     /* a NaN in the result comes from an operand; true of all INDEX rows too */
    COSTLY = 1 << 4,     /* takes several times as long as an addition */
    VIEW = 1 << 5,       /* rearranges the elements of operand 0 by index arithmetic */
    JOINS = 1 << 6,      /* puts the operands side by side */
    TAKES_REFS = 1 << 7, /* an operand may be a reference */
    USES_KEY = 1 << 8,   /* uses up its random key */
    INTERNAL = 1 << 9,   /* written only by passes: it trusts its operands */
    REMAT = 1 << 10,     /* a call whose program derivatives compute again */
    ODD = 1 << 11,       /* of -x it is what it is of x, with the other sign */
    EVEN = 1 << 12,      /* of -x it is what it is of x */
    PLAIN_CALL = 1 << 13 /* does nothing but run its one program, so that it may run another, and names no operand or
                            result by its number; of other calls, parameters say how the program may be called,
                            replaced or divided */
} Fact;
extern const uint16_t prim_facts[NPRIMS];
static inline bool prim_is(Prim p, Fact fact) { return prim_facts[p] & fact; }

typedef struct {
    Prim prim;
    Str unknown; /* the name in the text if it is not prim_name: for P_none, or an old spelling */
    Span span;   /* of the primitive's name */
    Span whole;  /* of the equation */
    Vals in, out;
    const Span *in_at; /* the place of each operand; NULL in equations created by passes */
    Params params;
} Eqn;
typedef struct {
    Eqn *at;
    uint32_t n, cap;
} Eqns;
struct Jaxpr {
    Str name;  /* hoisted: "let NAME = … in"; else empty */
    Span span; /* from `{` to `}` */
    Vals consts, in, out;
    const Span *out_at; /* the place of each result after `in`; NULL in programs created by passes */
    const Str *out_is;  /* what flags made each result, as "the cotangent of x"; empty: one of the text's; NULL: all */
    Eqns eqns;
    Str effects;  /* text of the effects, with braces; or empty */
    Jaxpr **lets; /* of a whole text: all hoisted jaxprs, used or not */
    uint32_t nlets;
    Span before;   /* of a whole text: an equation which shows that JAX before 0.5 printed it; n = 0: none */
    bool one_list; /* February 2020: constants and inputs are one list, `in` */
    bool checked;  /* typechecked; its types are final */
    bool checking; /* being typechecked */
    struct DimChecks *dim_checks; /* of a whole typechecked program; NULL in those inside of others */
};

/* A condition that types do not decide, checked on entry to the program's function: a = b, or a ≤ b. */
typedef struct {
    Dim a, b;
    bool at_most;
    Span span; /* of the equation or operand that needs it */
} DimCheck;
typedef struct DimChecks {
    DimCheck *at;
    uint32_t n, cap;
    Intern seen;
} DimChecks;

/* ---- the compilation */
typedef struct Options Options;
typedef struct Ctx {
    Arena *arena;
    Diags *diags;
    Types *types;
    const Options *options;
    Arena *values;    /* of the value table: */
    ValInfo **blocks; /* val_info */
    uint32_t nvals;
    bool passes;        /* passes are running: parsed text is output of passes */
    bool stdlib_passes; /* passes are running on a program of stdlib/, which must not contain calls */
    bool verify;        /* after every pass typecheck, print, read back and compare */
    uint32_t words;     /* bytes that a word of a product of bytes holds: 4 (dot_words), 2 (dot_halves); 0: none */
    /* of the program that is typechecked or rewritten now: */
    DimChecks *dim_checks;  /* where type rules add conditions; NULL: there is no program */
    bool wide;              /* untyped literals have 64 bits, because an input of the untyped text has */
    struct AxisScope *axes; /* typecheck: the axes of meshes bound by enclosing programs */
    /* of all programs: */
    Intern dim_names;             /* the symbols in the program read; empty if nobody asks (dims.c) */
    struct Report *report;        /* --report: what the plans of the library are; NULL: off */
    struct Timer *timer;          /* -ftime-report: timer_stage(cx->timer, "mlir"); NULL: off */
    struct Stdlib *stdlib;        /* the programs of stdlib/ read so far; NULL: none */
    struct TextRules *text_rules; /* derivatives that are text, once read; NULL: not yet */
    struct WellKnown *wellknown;  /* rules of stdlib/ for custom calls, once looked for; NULL: not yet */
    struct Rules *rules;          /* derivative rules of custom calls read so far; NULL: none */
} Ctx;

Ctx *ctx_new(Arena *);
Val val_new(Ctx *, Type, Span);
Val val_literal(Ctx *, Type, Lit, Span);
enum { VAL_BLOCK = 4096 };
static inline ValInfo *val_info(const Ctx *cx, Val v) {
    assert(v < cx->nvals);
    return &cx->blocks[v / VAL_BLOCK][v % VAL_BLOCK];
}
static inline Type val_type(const Ctx *cx, Val v) { return val_info(cx, v)->type; }
static inline const ArrayType *val_array(const Ctx *cx, Val v) { return type_at(cx->types, val_type(cx, v)); }
/* Are none of these arrays of a rank above 0? */
static inline bool all_scalars(const Ctx *cx, Vals vs) {
    each(const Val, v, vs)
        if (val_array(cx, *v)->rank) return false;
    return true;
}
/* The name for messages and printing; invented for values without one. */
Str val_name(const Ctx *, Val);
/* The type as text for messages. */
Str ctx_type_text(const Ctx *, Type);
Str ctx_dim_text(const Ctx *, Dim);

/* ---- parameters of an equation: NULL or the neutral value if it has no parameter of that key */
const Param *param_find(const Eqn *, ParamKey);
static inline bool param_has(const Eqn *e, ParamKey k) {
    const Param *p = param_find(e, k);
    return p && p->value.kind != V_NONE;
}
int64_t param_int(const Eqn *, ParamKey, int64_t otherwise);
int64_t param_number(const Eqn *, ParamKey); /* of one that the type rule demands */
bool param_bool(const Eqn *, ParamKey);
Ints param_ints(const Eqn *, ParamKey);
Dims param_dims(const Eqn *, ParamKey);
Dtype param_dtype(const Eqn *, ParamKey); /* DT_none */
Str param_word(const Eqn *, ParamKey);
/* A word, or a string without its quotes: the name of an axis. */
Str value_name(const Value *);
bool rounds_to_even(const Eqn *); /* rounding_method: 1, RoundingMethod.TO_NEAREST_EVEN */
Jaxpr *param_jaxpr(const Eqn *, ParamKey);
typedef struct {
    Jaxpr **at;
    uint32_t n;
} Jaxprs;
Jaxprs param_jaxprs(const Eqn *, ParamKey);
/* A field of a record; NULL if it has no such field. */
const Value *value_field(const Value *record, const char *field);
/* The program in a field; NULL for None. A field may hold hoisted programs before it: the last one is meant. */
Jaxpr *value_jaxpr(const Value *record, const char *field);
bool value_has_jaxpr(const Value *); /* anywhere in it */
/* All jaxprs anywhere in the value; in the parameters. */
Jaxprs value_jaxprs(Arena *, const Value *);
Jaxprs eqn_jaxprs(Arena *, const Eqn *);
/* The program and all that its equations hold, at any depth, each once: a program comes after those within it. */
Jaxprs jaxprs_within(Arena *, const Jaxpr *);
/* Is there such an equation in any of them? */
bool jaxpr_uses(Arena *, const Jaxpr *, Prim);
extern const ParamKind param_kind[NPARAMS];
extern const char *const param_name[NPARAMS];
/* A kind of value in words; is this value of the kind? An example of a parameter's value: "(0, 1)". */
const char *kind_words(ParamKind);
bool kind_holds(ParamKind, const Value *);
const char *param_example(Prim, ParamKey);
/* Iterates over the parameters that JAX prints for a primitive (takes.def): the next one; *at is NULL before the
   first. */
bool prim_param(Prim, const char **at, Str *name);
bool prim_has(Prim, Str param);
ParamKey param_named(Str);   /* K_other when it has no row */
ParamKey param_similar(Str); /* for "did you mean": K_other when none is close */

/* Prints in today's spelling, which the parser reads back; with types where they are known. */
void jaxpr_print(const Ctx *, const Jaxpr *, Text *);

/* Are they the same program up to names of values and spans, as printing and reading back must give? If not, `*why`
   (unless NULL) describes the first difference. */
bool jaxpr_equal(const Ctx *, const Jaxpr *, const Jaxpr *, Str *why);

#endif
