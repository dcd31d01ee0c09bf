/* Attention: softmax(q · k) · v as one step, the second product's, on a device. Its scores never go to memory: a block
   has a tile of rows of q, and the keys come a tile at a time.

   The values between both products are found among the equations of a body before these are planned (attention_find).
   No equation of their own computes them: the step evaluates them, and remembers the scores and what the rows are
   reduced to. */
#ifndef JAXCC_ATTENTION_H
#define JAXCC_ATTENTION_H
#include "dot.h"

typedef struct Attention {
    const Eqn *product, *scores; /* the second and the first product */
    const Eqn *max, *sum;        /* of the rows of scores, of their weights */
    const Eqn *difference;       /* a score minus a function of the maximum */
    Val score;                   /* of which the maximum is, apart from views */
    double scale;        /* a score is a sum of the first product times this, at most 1; 0: it is made otherwise */
    const Eqn *hidden;   /* select_n, which the score is, one of whose operands is a number; NULL: it is not */
    uint32_t number;     /* which operand that is … */
    double hidden_score; /* … and the number */
    const Eqn *weight;   /* exp of the difference */
    const Eqn *share;    /* the weight divided or multiplied by a function of the sum */
    uint32_t weighted;   /* which of its operands is the weight */
    uint32_t side;       /* of the second product, which has the shares */
    Atom key;            /* the loop over the keys */
    DeviceDot *dot;      /* the first product: rows × keys */
    uint32_t block;      /* tiles of keys whose sums are in registers, then in wide forms; 0: all */
} Attention;
static inline Val attention_by(const Attention *a) { return a->share->in.at[!a->weighted]; }
/* The index of each value that a point of rows and keys needs. */
typedef struct {
    Ix scores[MAX_RANK], score[MAX_RANK]; /* the result of the first product, and what is made of it */
    Ix max[MAX_RANK], sum[MAX_RANK];      /* over the rows alone */
    Ix shift[MAX_RANK], by[MAX_RANK];     /* the other operands of `difference` and `share` */
    Ix difference[MAX_RANK];
    Ix weight[MAX_RANK], summed[MAX_RANK]; /* `weight`, the operand of `sum` */
    Ix hidden[MAX_RANK];                   /* the condition of `hidden` */
} AttentionIndex;
/* Finds those of a body; info->attention of what is between the products says so. */
void attention_find(Plan *, const Jaxpr *);
/* The one whose second product the equation is; NULL: none. */
Attention *attention_of(Plan *, const Eqn *);
/* Schedules copies of what many blocks would compute. */
void attention_plan(Plan *, Body *, Step *);
/* The step computes what is between its products. */
void attention_own(Plan *, const Step *);
/* Reports what the operands of the first product read. */
void attention_reads(Plan *, const Attention *, Seen *, void *user);
/* Where the second product reads the shares at `share`. False if the values are not at points of rows and keys. */
bool attention_index(Plan *, const Attention *, const Ix *share, AttentionIndex *);
/* The same for the loops of the step. */
void attention_at(Plan *, const Step *, AttentionIndex *);
/* The indices of the first product's operands. */
void attention_operands(Plan *, const Step *, Ix at[2][MAX_RANK]);
void attention_schedule(Plan *, Step *);

#endif
