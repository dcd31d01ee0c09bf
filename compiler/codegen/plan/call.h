/* Called programs (those of passes/share.c, and calls that inline.c left): each is planned and written once, as a
   function of the library. */
#ifndef JAXCC_CALL_H
#define JAXCC_CALL_H
#include "../codegen.h"
#include "plan.h"
#include "interface.h"

enum { NOT_OVER = UINT32_MAX };
typedef struct {
    uint32_t number;
    const Jaxpr *program;
    Signature signature; /* its dimensions are those of the whole program */
    uint32_t *over;      /* by result: the input in whose memory it is returned, which the caller owns; or NOT_OVER */
    int64_t launches;    /* on a device: guard_launches */
    uint32_t loops;      /* guard_loops */
    bool heap;           /* it allocates memory or may end the call, and so do its callers */
    Dim workspace;       /* bytes that it gets from its caller: of the plan, and what the code needs beside */
    const struct Written *written; /* its code (host.h) */
} Callee;
/* What the plans of one program share. */
struct Callees {
    Ctx *cx;
    const Target *target;
    const char *name; /* of the program */
    Dims symbols;     /* of the whole program: each function gets all of them */
    Intern numbers;   /* of the programs */
    struct {
        Callee **at;
        uint32_t n, cap;
    } all; /* a program after those that it calls */
};

/* All programs called within it, including programs of devices. */
Callees *callees_of(Ctx *, const Program *, const Target *);
/* NAME.function_N */
Str callee_name(const Callees *, const Callee *);
/* The plan of one, whose callees have been planned and, for the workspace that they need, written; NULL after a
   diagnostic. */
Plan *callee_plan(Callees *, Callee *);
/* The program that an equation calls; NULL: it is not a call. */
const Callee *callee_of(const Callees *, const Eqn *);

/* The step of a call. */
struct Call {
    const Callee *callee;
    Buf *workspace;  /* NULL: it needs none */
    bool *registers; /* by operand: a scalar that is stored to memory before the call */
};
bool plan_call(Plan *, Body *, const Eqn *);

#endif
