/* Functions being written, and what they know of the caller: pointers, scalars, dimensions. */
#ifndef JAXCC_FRAME_H
#define JAXCC_FRAME_H
#include "arguments.h"
#include "plan.h"

typedef struct Frame Frame;
typedef struct {
    enum { CAPTURE_BUF, CAPTURE_SCALAR, CAPTURE_SYMBOL, CAPTURE_ROW } kind;
    uint32_t number; /* of the buffer, value */
    Dim symbol;
    V inside;
} Capture;
/* What the host computed: a register of the function that computed it, memory for the others. */
typedef struct {
    V v;               /* none: not computed, or computed by a kernel */
    uint32_t function; /* its number */
    uint32_t home;     /* the word of memory, counted from 1; 0: nobody else asked for it */
} Held;
/* What the functions of one schedule share: it is one, or cut into parts (part.c). */
typedef struct {
    Held *slots;    /* by buffer: the pointer a loop set; heap memory */
    Held *outs;     /* by output: memory that the library allocates */
    Held *scalars;  /* by Val */
    uint32_t homes; /* words of memory, before the workspace */
    struct {
        V *at;
        uint32_t n, cap;
    } workspaces; /* as the functions know it, by their numbers */
} Schedule;

struct Frame {
    Plan *plan;
    Emit *e;
    MlirBlock entry; /* stays open while the function is written */
    Intern keys;
    /* of an outlined kernel: what it takes from the function that calls it */
    Frame *parent;
    V context; /* where captured values lie, 8 bytes each */
    struct {
        Capture *at;
        uint32_t n, cap;
    } captures;
    /* of the others */
    Schedule *schedule; /* NULL: of NAME, which computes nothing but dimensions */
    uint32_t function;  /* its number */
    Dims symbols;
    Arguments arguments;
    V workspace, heap;
};

V frame_buffer(Frame *, Buf *);
V frame_scalar(Frame *, Val);
V frame_dim(Frame *, Dim);   /* i64, written at e->block */
V frame_bytes(Frame *, Dim); /* the same of a size; INT64_MAX for what i64 does not hold */
/* The next function of its schedule is written from now on. */
void frame_enter(Frame *);
/* From now on this is the buffer, the output, the scalar. */
void frame_set_slot(Frame *, const Buf *, V);
void frame_set_out(Frame *, uint32_t k, V);
void frame_set_scalar(Frame *, Val, V);
V frame_slot(Frame *, const Buf *);
/* So many words of memory, one after the other: the number of the last, the first having the largest one. */
uint32_t frame_words(Frame *, uint32_t n);
V frame_word(Frame *, uint32_t number);
/* The scalar (DT_none: a pointer) goes there; the buffer, the scalar is found there from now on. */
void frame_store(Frame *, uint32_t word, Dtype, V);
void frame_slot_at(Frame *, const Buf *, uint32_t word);
void frame_scalar_at(Frame *, Val, uint32_t word);
/* Bytes of the memory before the workspace. */
uint32_t frame_homes(const Frame *);
/* Stores what `inside` captured into `context`, seen from the function it is called from. */
void frame_pass(Frame *inside, V context);

#endif
