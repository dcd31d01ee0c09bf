/* Element types, dimensions and array types. All are interned numbers: equality is ==. */
#ifndef JAXCC_TYPE_H
#define JAXCC_TYPE_H
#include "../runtime/float.h"
#include "intern.h"
#include "str.h"

typedef enum {
    DT_none, /* unknown yet */
#define DTYPE(id, name, bits, width, kind) DT_##id,
#include "dtypes.def"
    NDTYPES
} Dtype;
typedef enum { DK_BOOL, DK_SINT, DK_UINT, DK_FLOAT, DK_COMPLEX, DK_KEY, DK_VOID } DtypeKind;
typedef struct {
    const char *name, *long_name; /* "f32", "float32" */
    uint32_t bits, width;         /* bits of an element in memory; significant bits: i4 has 4 of 8 */
    DtypeKind kind;
} DtypeInfo;
extern const DtypeInfo dtype_info[NDTYPES];

extern const FloatFormat float_format[NDTYPES]; /* of the floats */
/* The size of an element in memory; the alignment of arrays: a complex number is aligned like its parts. */
static inline uint32_t dtype_bytes(Dtype d) { return dtype_info[d].bits / 8; }
static inline uint32_t dtype_align(Dtype d) {
    DtypeKind kind = dtype_info[d].kind;
    return kind == DK_COMPLEX ? dtype_bytes(d) / 2 : kind == DK_KEY ? 4 : dtype_bytes(d);
}
/* Floats of less than 16 bits, integers of less than 8. */
static inline bool dtype_is_narrow(Dtype d) {
    const DtypeInfo *t = &dtype_info[d];
    return t->bits == 8 && t->width > 1 && (t->kind == DK_FLOAT || t->width < 8);
}
/* The type in which results are computed before they are rounded to `d`: XLA computes narrow floats in f16, powers of
   two in f32. */
static inline Dtype dtype_arithmetic(Dtype d) {
    if (dtype_info[d].kind != DK_FLOAT || !dtype_is_narrow(d)) return d;
    return float_format[d].special == FLOAT_POWER ? DT_f32 : DT_f16;
}
/* Does `to` represent every value of `from`? For bool, integers and floats; no if `to` is a float of less than 16
   bits. */
bool dtype_is_exact(Dtype from, Dtype to);
/* The smallest or largest value of an integer type or bool; of u64 the largest wraps to -1. */
int64_t dtype_limit(Dtype, bool most);
/* The same for floats: an infinity if the type has one, else the largest number; NaN for powers of two (f8_e8m0fnu). */
double dtype_float_limit(Dtype, bool most);
/* "f32", "key<fry>": as jaxprs print it. */
const char *dtype_text(Dtype);
/* By short or long name; DT_none when it is neither. Other spellings, such as "<class 'numpy.float32'>", are the
   parser's business. */
Dtype dtype_named(Str);
/* The type that a misspelt name of letters and digits, such as "f23", may mean; DT_none when none is close. */
Dtype dtype_similar(Str);

/* A dimension: a constant (any int64 above DIM_FIRST_SYMBOLIC, so that paddings may be negative), or the number of an
   expression over symbols and bound scalars, in normal form. */
typedef int64_t Dim;
#define DIM_SYMBOLIC_BASE (-((int64_t)1 << 62))
static inline bool dim_is_const(Dim d) { return d > DIM_SYMBOLIC_BASE; }

typedef struct {
    Dim *at;
    uint32_t n;
} Dims;

typedef enum {
    DIM_SYMBOL,   /* name */
    DIM_BOUND,    /* val: an integer scalar variable (a Val of ir.h) */
    DIM_SUM,      /* terms: Σ coef · Π atoms, sorted; an atom is any non-sum dimension; the constant term has none */
    DIM_FLOORDIV, /* a floordiv b, as Python's // */
    DIM_MOD,      /* a mod b, as Python's % */
    DIM_MAX,
    DIM_MIN,
    DIM_HOLE,    /* `None` in a shape parameter: the next dimension operand */
    DIM_DBIDX,   /* position a (a constant) in the inputs of the signature: DBIdx */
    DIM_INDBIDX, /* InDBIdx */
    DIM_OUTDBIDX /* OutDBIdx */
} DimKind;
typedef struct {
    int64_t coef;
    uint32_t natoms;
    const Dim *atoms; /* sorted, repeated for powers */
} DimTerm;
typedef struct {
    DimKind kind;
    Str name;     /* SYMBOL */
    uint32_t val; /* BOUND */
    Dim a, b;     /* FLOORDIV MOD MAX MIN, *IDX (a) */
    uint32_t nterms;
    const DimTerm *terms; /* SUM: at least one non-constant term; a sum of one atom with coefficient 1 is that atom */
} DimExpr;

typedef struct {
    Dtype dtype;
    uint32_t rank;
    const Dim *dims;
    uint32_t extra; /* number of a TypeExtra; 0 for a plain array */
} ArrayType;
/* What else a type may carry: printed again, ignored by arithmetic and by type equality. */
typedef struct {
    Str ref;     /* "Ref", "Ref<smem>" … when the type is Ref{...}; else empty */
    Str space;   /* "<host>" */
    Str varying; /* "{V:x}" */
    Str named;   /* ";i:4" */
    Str bound;   /* bint's "{≤5}" */
    Str *shards; /* rank texts such as "x" or "(x,y)", or NULL */
    uint32_t nshards;
    Str opaque; /* DT_opaque: the whole text */
} TypeExtra;

typedef uint32_t Type; /* 0: unknown */
typedef struct Types Types;

Types *types_new(Arena *);
Type type_of(Types *, Dtype, uint32_t rank, const Dim *dims);
Type type_with_extra(Types *, Type plain, const TypeExtra *);
Type type_plain(Types *, Type); /* without its extra */
const ArrayType *type_at(const Types *, Type);
const TypeExtra *type_extra(const Types *, Type);
/* "f32[8,2*b + 1]": as jaxprs print it; bound dimensions by `val_name` (NULL: v<number>). */
typedef Str ValName(const void *, uint32_t val);
Str type_text(Arena *, const Types *, Type, ValName *, const void *);
Str dim_text(Arena *, const Types *, Dim, ValName *, const void *);

const DimExpr *dim_at(const Types *, Dim); /* of a symbolic one */
Dim dim_symbol(Types *, Str name);
bool dim_symbol_exists(Types *, Str name);
Dim dim_bound(Types *, uint32_t val);
bool dim_is_bound(const Types *, uint32_t val);      /* may it be the extent of an array? */
Dim dim_special(Types *, DimKind, int64_t position); /* HOLE, *IDX */
Dim dim_add(Types *, Dim, Dim);
Dim dim_sub(Types *, Dim, Dim);
Dim dim_mul(Types *, Dim, Dim);
Dim dim_floordiv(Types *, Dim, Dim);
Dim dim_mod(Types *, Dim, Dim);
Dim dim_max(Types *, Dim, Dim);
Dim dim_min(Types *, Dim, Dim);
Dim dim_dilated(Types *, Dim n, Dim step); /* of n elements, neighbours `step` apart */
/* Replaces atoms (symbols, bound scalars) by `map(user, atom)`, everywhere in the expression. */
typedef Dim DimMap(void *user, Dim atom);
Dim dim_substitute(Types *, Dim, DimMap *, void *user);
Type type_substitute(Types *, Type, DimMap *, void *user);
/* Does a bound scalar occur in it? */
bool dim_has_bound(const Types *, Dim);
/* Calls `seen` for each scalar that the dimension follows from. */
typedef void BoundSeen(void *user, uint32_t val);
void dim_bounds(const Types *, Dim, BoundSeen *seen, void *user);
/* More than any array can have: the result of arithmetic that overflows 64 bits. */
#define DIM_TOO_LARGE INT64_MAX
/* Are they equal? 1: for all values, 0: for no values (without `zero`: for none where no symbol is 0), -1: it depends.
   Bound dimensions are equal only as the same variable. */
int dim_equal(Types *, Dim, Dim, bool zero);
/* a ≤ b: 1 always, 0 never, -1 depends. */
int dim_at_most(Types *, Dim, Dim, bool zero);
/* Product of the extents. */
Dim type_size(Types *, Type);

#endif
