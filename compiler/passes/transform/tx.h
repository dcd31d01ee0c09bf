/* The drivers of derivatives: jvp, then split, then transpose.

   jvp writes, beside the values of a program, their tangents. What depends on the tangents of the inputs is linear in
   them, so split divides the result into a known program and a linear one, which takes values of the known one (the
   residuals), and transpose runs the linear program backwards. All three write into a builder, so that a nested program
   is written between b_inner and b_inner_end like any other. */
#ifndef JAXCC_TX_H
#define JAXCC_TX_H
#include "transform.h"

/* One bit for each of a list of values. */
typedef struct {
    const bool *at;
    uint32_t n;
} Bits;

/* Contributions to a cotangent (parts.c). */
typedef struct Part Part;
typedef struct {
    Part *at;
    uint32_t n, cap;
    Val sum; /* of contributions from outside, which a loop carries; 0: none */
} Acc;

enum { MOST_DEPTH = 64 };
struct Tx {
    Ctx *cx;
    ValMap map;     /* values of the programs read → of those written */
    ValMap tangent; /* jvp: the same → their tangents */
    struct {        /* by value of the programs read: */
        bool *at;   /* split: is it unknown; transpose: is it linear; vmap: is it batched */
        uint32_t n, cap;
    } marked;
    struct { /* by value of the linear programs read: the parts of its cotangent */
        Acc *at;
        uint32_t n, cap;
    } accs;
    ValMap continues;        /* a sum that a nested program returned → the one that it took */
    struct Flow *flow;       /* taint.c, made.c: bits and programs made; NULL: none yet */
    struct Loops *loops;     /* scan.c: what is made for loops; NULL: none yet */
    uint32_t depth;          /* of equations that are expanded first: at most MOST_DEPTH */
    bool reverse;            /* what depends on tangents will be transposed */
    bool in_loop;            /* split: in the body of a loop */
    bool in_remat;           /* split: in a remat of the program read */
    Intern written;          /* split: programs that segments.c wrote */
    struct {                 /* vmap: */
        Dim size;            /* the number of examples */
        Str axis;            /* its name in collectives; empty: none */
        Val mask;            /* bool[size]: the examples that really are here, in a branch or loop; 0: all of them */
        ValMap lengths;      /* batched extents that were read → those of the examples (vmap_extents.c) */
        ValMap longest;      /* → the largest one, if what gives the extent gives that too */
        Val extent;          /* a batched one that was found */
        bool in_rule;        /* in the derivative rule of a custom call */
        bool differentiated; /* derivatives of what is written will be taken */
    } batch;
    bool failed; /* an error was reported */
};

/* Copies an equation of the program read, with results of its own, which tx->map maps those of `e` to. */
Vals tx_copy(Tx *, Builder *, const Eqn *e);
/* The operands or results of a program that is read, as values of the program that is written. */
static inline Vals tx_vals(const Tx *tx, Vals read) { return vals_rewrite(&tx->map, read); }
/* A value of this type, rewritten by tx->map, that is bound nowhere: it stands for its type. */
Val tx_placeholder(Tx *, Val read);
bool tx_marked(const Tx *, Val read);
void tx_mark(Tx *, Val read, bool);

/* Writes the equations of `j` and their tangents to `b`. `in`: values for its inputs, `t`: their tangents, 0: zero.
   Writes its results to `out` and their tangents to `dt`. */
bool jvp_into(Tx *, Builder *b, const Jaxpr *j, const Val *in, const Val *t, Val *out, Val *dt);
/* ---- bits, without making anything (taint.c)

   The bits of results that may have a tangent, or be unknown or batched, if these inputs have one or are: at least
   those that the drivers find. */
typedef enum { TAINT_JVP, TAINT_SPLIT, TAINT_VMAP } TaintKind;
Bits taint(Tx *, TaintKind, const Jaxpr *, Bits in);
/* The bits of inputs that may have a cotangent if the program is linear in those of `linear` and these results have
   one; by input. */
Bits taint_transpose(Tx *, const Jaxpr *, Bits linear, Bits ct);
/* The bits of the inputs of a loop's body: those of the n carries from `first` on, which are its first n results, grow
   until an iteration adds none. */
Bits taint_loop(Tx *, TaintKind, const Jaxpr *body, Bits in, uint32_t first, uint32_t n);

/* ---- nested programs, made once for each pattern of bits (made.c)

   The programs read take nothing from outside but constants, so that those made capture only constants; an equation
   that runs one passes `captured` first. `force`: results that get a tangent, or are unknown, or linear inputs that get
   a cotangent, in any case; Bits without elements force none. All return NULL after an error. `b`: the builder of the
   program in which the made one is run. */

/* Inputs and results in groups: the first in[0] inputs, the next in[1], the rest; the first `out` results, the rest.
   The tangents of a group come after it. */
typedef struct {
    uint32_t in[2], out;
} Groups;
typedef struct {
    Inner
        program; /* takes the inputs and tangents of those of `in`; returns the results and tangents of those of `out` */
    Bits out;
} MadeJvp;
const MadeJvp *made_jvp(Tx *, Builder *b, const Jaxpr *, Bits in, Bits force, Groups);

/* What the unknown program takes from the known one. */
typedef struct {
    enum { RESIDUAL_CONST, RESIDUAL_INPUT, RESIDUAL_RESULT } kind;
    Val value;   /* as a value of the known program; CONST: the constant */
    uint32_t at; /* INPUT: of the program read; RESULT: of the known program */
} Residual;
typedef struct {
    Inner known;   /* takes the known inputs; returns the known results, then `nmore` residuals */
    Inner unknown; /* `captured` is empty; takes the residuals, then the unknown inputs; returns the unknown results */
    Bits out;      /* by result of the program read: is it unknown? */
    uint32_t nresiduals, nmore;
    const Residual *residuals; /* each after the scalars that are its extents */
} MadeSplit;
const MadeSplit *made_split(Tx *, Builder *b, const Jaxpr *, Bits unknown, Bits force);

typedef struct {
    Inner program; /* takes the inputs that are not linear, then cotangents of the results of `ct`, then sums for the
                      inputs of `sums`; returns cotangents of the inputs of `in`, added to their sums */
    Bits in;       /* by input */
} MadeTranspose;
const MadeTranspose *made_transpose(Tx *, Builder *b, const Jaxpr *, Bits linear, Bits ct, Bits force, Bits sums);

/* How a program is made for a batch of examples: `in` are batched, `force` are in any case; the mask is taken if there
   is one here (tx->batch). The largest extent of all examples comes with inputs and results that are extents
   (vmap_longest); without elements: there are none. */
typedef struct {
    Bits in, force;
    Bits longest_in, longest_out;
    bool masked;
} Batched;
/* The program takes the mask, if it is `masked`, the largest extents of `longest_in`, and the inputs; it returns the
   largest extents of `longest_out`, and the results. */
typedef struct {
    Inner program;
    Bits out, longest_in, longest_out;
    bool masked;
} MadeVmap;
const MadeVmap *made_vmap(Tx *, Builder *b, const Jaxpr *, Batched);
/* Does the program need a mask where not all examples are really here: has it a loop, which need not end for the
   others? */
bool takes_mask(Tx *, const Jaxpr *);
/* Or may it compute something from values that differ and values that do not? */
bool takes_shield(Tx *, const Jaxpr *);
Type mask_type(const Tx *);
/* A batched value of which the examples outside `p` make no use, though they seem to: it has no derivative there, which
   may be infinite or NaN, not 0, and must not reach what the examples share. */
Val vmap_shielded(Tx *, Builder *, Val p, Val x);
/* The operands from `first` on that are not batched become so, and shielded: `in`, `batched`: those of v, to be
   written. What is computed from these and others need not be shielded itself. */
void vmap_shield(Vmap *v, uint32_t first, Vals in, bool *batched);
/* Does it solve linear systems? */
bool vmap_solves(Prim);
/* Of the examples of `p` the new value, of the others the old one. */
Val vmap_where(Builder *, Val p, Val old, Val new);
/* Updates in place (vmap_updates.c).
   The operand into which an equation writes its result k, and the input into which a program does: where a mask says
   that an example is not really here, result k is what it was. NOT_UPDATED: there is none. */
#define NOT_UPDATED UINT32_MAX
uint32_t updated_operand(Tx *, const Eqn *, uint32_t k);
uint32_t updated_input(Tx *, const Jaxpr *, uint32_t k);
/* Is operand i such an array, of all examples, and read? find_updates must have been called for its program. */
void find_updates(Tx *, const Jaxpr *);
bool vmap_reads_updated(const Vmap *, uint32_t i);
/* Programs made for a batch (vmap_programs.c).
   Which of these operands or results of an equation, which are batched, are extents of its operands or results. */
Bits vmap_longest(Tx *, const Eqn *, Vals read, Bits batched);
/* Has the equation operands or results whose extents differ? */
bool vmap_moves_padding(const Vmap *);
/* What the program made takes before the operands that were read as `read`. */
Vals vmap_given(Tx *, const MadeVmap *, Vals read);
/* Of what it gives, the results of an equation, which were read as `read`: the largest extents are noted. */
Vals vmap_results(Tx *, const MadeVmap *, Vals read, Vals out);
/* Calls the program made: all that it gives. */
Vals vmap_run(Vmap *, const MadeVmap *, Vals read, Vals in);

/* An equation with these operands, whose programs have these inputs and results (one of the programs, if there are
   several), as a new one: its results. Their types are those of `out` with extents that are inputs or results
   replaced. */
Vals tx_run(Tx *, Builder *, const Eqn *like, Vals operands, Vals in, Vals out);
/* A call like `e`, of another program: parameters that list operands and results go. It is jit if `e` does more than
   run its program. */
Vals tx_call(Tx *, Builder *, const Eqn *e, const Inner *, uint32_t n, const Val *in);

/* Divides `j`: writes to `b` the equations all of whose operands are known. `in`: values for its inputs, 0: unknown.
   out[k]: the value of result k, 0 if it is unknown. `lin` gets the program of the rest: it takes lin->captured, which
   are values that b has, then the unknown inputs, and returns the unknown results, and those of `force`, which may be
   NULL, as well. */
bool split_into(Tx *, Builder *b, const Jaxpr *j, const Val *in, const bool *force, Val *out, Inner *lin);
/* The same for equations: to `b` or, if an operand is marked as unknown, to `u`. Errors are in the Tx. */
void split_eqns(Tx *, Builder *b, Builder *u, Eqns);
/* An equation that runs a program, some of whose operands are unknown: it is divided, or goes to `u` as a whole. */
typedef struct {
    Tx *tx;
    Builder *b, *u;      /* of the known and of the unknown program */
    const Eqn *e;        /* operands: values of either program; results as read */
    const bool *unknown; /* by operand */
    Val *out;            /* to be written: the results */
    bool *out_unknown;   /* to be written */
} SplitEqn;
typedef bool SplitRule(SplitEqn *);
/* The rule of a primitive; NULL: the equation is unknown as a whole. */
SplitRule *split_rule(Prim);

/* The parts of the cotangent of a value of the linear program: adds a whole one, 0 adds nothing; writes their sum, 0 if
   there are none, after which there are none; are there none? */
void acc_add(Tx *, Val read, Val ct);
/* The sum to which all parts are added, in place: a loop carries it. */
void acc_begin(Tx *, Val read, Val sum);
Val acc_close(Tx *, Builder *, Val read);
bool acc_empty(const Tx *, Val read);
/* Runs `j` backwards. `in`: values for its inputs, 0: it is linear in this one. `ct`: cotangents of its results, 0:
   zero (and for results that are not linear). Equations without linear operands are copied first. Writes the cotangents
   of the linear inputs to ct_in, 0: zero. */
bool transpose_into(Tx *, Builder *b, const Jaxpr *j, const Val *in, const Val *ct, Val *ct_in);

/* Writes the equations of `j` to `b` for a batch of tx->batch.size examples. `in`: values for its inputs. Writes its
   results to `out`. */
bool vmap_into(Tx *, Builder *b, const Jaxpr *j, const Val *in, Bits batched, Val *out, bool *out_batched);

/* Does it print or check something, which only examples that are here do (vmap_effects.c)? */
bool acts(const Eqn *);
/* May the equation, or one of a program within, let the examples exchange data? */
bool examples_exchange(Tx *, const Eqn *);

/* Extents that differ between the examples (vmap_extents.c).
   The value has been written: if it is batched and an extent, the map has the largest one in its place from now on. */
void vmap_extent(Tx *, Builder *, Val read);
/* What was written for a value, as an operand. */
static inline Val vmap_written(const Tx *tx, Val read) {
    Val length = valmap_get(&tx->batch.lengths, read);
    return length == read ? valmap_get(&tx->map, read) : length;
}
/* Has a type of the equation, or a parameter, an extent that differs? Have the types of these values one, but for those
   in `but`, which may be NULL? Then inputs and results of programs are refused. */
bool vmap_differs(Tx *, const Eqn *);
bool vmap_extents_agree(Tx *, Vals, const Intern *but, Span at);
VmapRule vmap_padded, vmap_scan_apart;
/* The extent of an array read, as an extent of what is written: the largest; and that of each example, i64[size], or
   i64[] if it does not differ, 0 after an error. */
Dim vmap_dim(const Tx *, Dim read);
Val vmap_length(Vmap *, Dim read);

/* A transformation of the command line, of a whole program: writes the programs that it makes to `made`, two of
   --linearize; how many. 0 after an error. */
enum { MOST_TRANSFORMED = 2 };
uint32_t transform(Ctx *, const Jaxpr *, const Transform *, Jaxpr **made);
/* Simplifies what a transformation wrote; calls stay calls. */
Pass pass_tidy;

#endif
