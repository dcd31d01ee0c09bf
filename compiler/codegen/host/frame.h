/* Functions being written, and the pointers, scalars and dimensions that they get from their callers. */
#ifndef JAXCC_FRAME_H
#define JAXCC_FRAME_H
#include "arguments.h"
#include "../kernels/kernel.h"

typedef struct {
    enum { CAPTURE_BUF, CAPTURE_SCALAR, CAPTURE_SYMBOL, CAPTURE_ROW } kind;
    uint32_t number; /* of the buffer or value */
    Dim symbol;
    V inside;
} Capture;
/* A value computed by host code: a register in the function that computed it, a word of memory for the others. */
typedef struct {
    V v;               /* NULL: not computed, or computed by a kernel */
    uint32_t function; /* the number of the function */
    uint32_t home;     /* the word of memory, counted from 1; 0: no other function has needed it */
} Held;
/* Shared by the functions of one schedule, which is a single function or cut into parts (part.c). */
typedef struct {
    Held *slots;   /* by buffer: the pointer set by a loop, or heap memory */
    Held *outs;    /* by output: memory allocated by the library */
    Held *scalars; /* by Val */
    struct {
        Val *at;
        uint32_t n, cap;
    } read;         /* values of a device that the host has read, in the blocks that are open: among `scalars` */
    uint32_t homes; /* words of memory before the workspace */
    uint32_t call;  /* the last one of `room` words for the arguments of calls */
    uint32_t room;
    struct {
        V *at;
        uint32_t n, cap;
    } workspaces; /* the workspace in each function, by its number */
} Schedule;

struct Frame {
    Plan *plan;
    Emit *e;
    MlirBlock entry; /* stays open while the function is written */
    Intern keys;
    /* for an outlined kernel: what it captures from the function that calls it */
    Frame *parent;
    V context; /* where captured values lie, 8 bytes each */
    struct {
        Capture *at;
        uint32_t n, cap;
    } captures;
    /* for other functions */
    Schedule *schedule; /* NULL for NAME, which computes only dimensions */
    uint32_t function;  /* its number */
    Dims symbols;
    Arguments arguments;
    V workspace, heap;
};

V frame_bytes(Frame *, Dim); /* the same for a size; INT64_MAX if it overflows */
/* Begins the next function of the schedule. */
void frame_enter(Frame *);
/* Sets the current pointer of the buffer or output, or the value of the scalar. */
void frame_set_slot(Frame *, const Buf *, V);
void frame_set_out(Frame *, uint32_t k, V);
void frame_set_scalar(Frame *, Val, V);
V frame_slot(Frame *, const Buf *);
/* What the host has read of a device's memory it need not read again: frame_keep says that it has read the scalar,
   frame_kept gives it (NULL: it has not). What is read in a block is forgotten when the block ends: frame_forget keeps
   the first n. */
void frame_keep(Frame *, Val, V);
V frame_kept(Frame *, Val);
uint32_t frame_nkept(const Frame *);
void frame_forget(Frame *, uint32_t n);
/* Reserves n consecutive words of memory; returns the number of the last one, which is the smallest. */
uint32_t frame_words(Frame *, uint32_t n);
/* The same for the arguments of a call: the next call has them again. */
uint32_t frame_call_words(Frame *, uint32_t n);
V frame_word(Frame *, uint32_t number);
/* frame_store writes a scalar (DT_none: a pointer) to a word; the others say that a buffer's pointer or a scalar is
   there from now on. */
void frame_store(Frame *, uint32_t word, Dtype, V);
void frame_slot_at(Frame *, const Buf *, uint32_t word);
void frame_scalar_at(Frame *, Val, uint32_t word);
/* The size, in bytes, of the memory before the workspace. */
uint32_t frame_homes(const Frame *);
/* Stores the captures of `inside` into `context`, in the function that calls it. */
void frame_pass(Frame *inside, V context);

#endif
