/* The plan of a program: what becomes a kernel, in which order, where each value lies. */
#ifndef JAXCC_PLAN_H
#define JAXCC_PLAN_H
#include "index.h"

/* ---- memory */
typedef enum {
    BUF_NONE,
    BUF_IN,    /* argument `k` of the entry function */
    BUF_OUT,   /* result `k` */
    BUF_CONST, /* data of a value, in the library */
    BUF_WORK,  /* `offset` in the workspace */
    BUF_SLOT,  /* a pointer that a loop sets: carry, slice of a scanned array */
    BUF_ROW    /* scratch of one row of a kernel, on its stack */
} BufKind;
typedef struct Buf {
    BufKind kind;
    uint32_t number; /* in plan->bufs */
    uint32_t k;      /* IN, OUT: position */
    Val v;           /* CONST: whose data */
    Dim bytes, offset;
    uint32_t first, last; /* WORK: live in [first, last], positions of the schedule */
} Buf;

/* ---- what is known about a value of the body */
typedef enum {
    VAL_UNSEEN,
    VAL_VIRTUAL, /* computed wherever it is used */
    VAL_SCALAR,  /* rank 0: a register of the host code */
    VAL_MEMBER,  /* computed in a group; stored too where `buf` is set */
    VAL_STORED   /* lies in `buf` */
} ValClass;
typedef struct {
    ValClass class;
    const Eqn *e; /* NULL: an input of the body */
    uint32_t out; /* which result of e */
    uint32_t step; /* that computes it */
    uint32_t uses, cost;
    uint32_t level; /* member: stage of its group */
    bool row;       /* member: has the kept axes of the group only */
    Buf *buf;
    Val alias; /* same memory as this value, other type; 0: none */
    Ix offset; /* stored as part of `buf`: in elements, from its start */
} Info;

/* ---- steps: the schedule of one body */
typedef enum { STEP_LOOPS, STEP_DOT, STEP_CUM, STEP_UPDATE, STEP_SCALAR, STEP_COPY, STEP_COND, STEP_WHILE, STEP_SCAN } StepKind;
typedef struct {
    Val v;      /* what is stored */
    Buf *buf;
    Ix offset;  /* in elements; START atoms allowed */
    const Dim *strides; /* of v's axes in elements; NULL: dense */
} Store;
typedef struct Body Body;
typedef struct Step {
    StepKind kind;
    const Eqn *e; /* the equation of everything but LOOPS */
    uint32_t number;
    /* LOOPS and those with an epilogue: a domain and its members */
    Dims domain;
    bool *reduced;   /* LOOPS: which axes of the domain are reduced */
    bool reduces;
    Ix *axes;        /* the domain's axes as indices over loops */
    struct {
        Val *at;
        uint32_t n, cap;
    } members; /* in order */
    struct {
        Store *at;
        uint32_t n, cap;
    } stores;
    uint32_t levels; /* stages: 1 + the largest level */
    uint32_t cost;   /* of one element, in operations */
    /* control flow */
    Body **bodies;
    uint32_t nbodies;
    uint32_t start, end; /* positions in the schedule */
} Step;
struct Body {
    const Jaxpr *j;
    struct {
        Step **at;
        uint32_t n, cap;
    } steps;
    Buf **in_slots, **out_slots; /* by position; NULL for scalars and where no memory is needed */
};
typedef struct Plan {
    Ctx *cx;
    Arena *arena;
    Indices *ix;
    Info **info; /* by Val: plan_info */
    struct {
        Buf **at;
        uint32_t n, cap;
    } bufs;
    Body *top;
    Dim workspace; /* bytes */
    uint32_t position;
} Plan;

Info *plan_info(Plan *, Val);
Plan *plan(Ctx *, const Jaxpr *);
Step *step_new(Plan *, Body *, StepKind, const Eqn *);
Buf *buf_new(Plan *, BufKind, Dim bytes);

#endif
