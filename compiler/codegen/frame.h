/* Functions being written, and what they know of the caller: pointers, scalars, dimensions. */
#ifndef JAXCC_FRAME_H
#define JAXCC_FRAME_H
#include "emit.h"
#include "plan.h"

typedef struct Frame Frame;
typedef struct {
    enum { CAPTURE_BUF, CAPTURE_SCALAR, CAPTURE_SYMBOL, CAPTURE_ROW } kind;
    uint32_t number; /* of the buffer, value */
    Dim symbol;
    V inside;
} Capture;
struct Frame {
    Plan *plan;
    Emit *e;
    Frame *parent;   /* NULL: the entry function */
    MlirBlock entry; /* stays open while the function is written */
    V context;       /* of an outlined kernel: where captured values lie, 8 bytes each */
    Intern keys;
    struct {
        Capture *at;
        uint32_t n, cap;
    } captures;
    /* the entry function's own */
    V *in, *out, workspace, heap;
    struct {
        Dim *at;
        uint32_t n;
    } symbols;
    V *symbol_args;
    V *slots;   /* by buffer number: the pointer a loop set */
    V *scalars; /* by Val: registers of the host */
};

V frame_buffer(Frame *, Buf *);
V frame_scalar(Frame *, Val);
V frame_dim(Frame *, Dim); /* i64, written at e->block */
V frame_bytes(Frame *, Dim); /* the same of a size; INT64_MAX for what i64 does not hold */
/* Stores what `inside` captured into `context`, seen from the function it is called from. */
void frame_pass(Frame *inside, V context);

#endif
