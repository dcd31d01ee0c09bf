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

/* Contributions to a cotangent. */
typedef struct Part Part;
typedef struct {
    Part *at;
    uint32_t n, cap;
} Acc;

struct Tx {
    Ctx *cx;
    const char *flag; /* that asked for it: "--vjp" */
    ValMap map;       /* values of the programs read → of those written */
    ValMap tangent;   /* jvp: the same → their tangents */
    struct {          /* by value of the programs read: */
        bool *at;     /* split: is it unknown; transpose: is it linear */
        uint32_t n, cap;
    } marked;
    struct { /* by value of the linear programs read: the parts of its cotangent */
        Acc *at;
        uint32_t n, cap;
    } accs;
    Intern made_keys, taint_keys; /* flow.c: programs made, and bits of results, by program and bits of inputs */
    struct {
        struct Made *at;
        uint32_t n, cap;
    } made;
    struct {
        Bits *at;
        uint32_t n, cap;
    } taints;
    uint32_t depth; /* of equations that are expanded first */
    bool failed;    /* an error was reported */
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
/* The bits of results that may have a tangent, or be unknown, if these inputs have one or are. */
typedef enum { TAINT_JVP, TAINT_SPLIT } TaintKind;
Bits taint(Tx *, TaintKind, const Jaxpr *, Bits in);

/* Divides `j`: writes to `b` the equations all of whose operands are known. `in`: values for its inputs, 0: unknown.
   out[k]: the value of result k, 0 if it is unknown. `lin` gets the program of the rest: it takes lin->captured, which
   are values that b has, then the unknown inputs, and returns the unknown results, and those of `force`, which may be
   NULL, as well. */
bool split_into(Tx *, Builder *b, const Jaxpr *j, const Val *in, const bool *force, Val *out, Inner *lin);
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

/* Runs `j` backwards. `in`: values for its inputs, 0: it is linear in this one. `ct`: cotangents of its results, 0: zero
   (and for results that are not linear). Equations without linear operands are copied first. Writes the cotangents of
   the linear inputs to ct_in, 0: zero. */
bool transpose_into(Tx *, Builder *b, const Jaxpr *j, const Val *in, const Val *ct, Val *ct_in);

/* A transformation of the command line, of a whole program. */
Jaxpr *transform(Ctx *, const Jaxpr *, const Transform *);
/* Simplifies what a transformation wrote; calls stay calls. */
Pass pass_tidy;

#endif
