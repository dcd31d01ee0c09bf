/* The library's function: checks, workspace, and the schedule, step by step. */
#ifndef JAXCC_HOST_H
#define JAXCC_HOST_H
#include "frame.h"
#include "header.h"
#include "kernel.h"

typedef struct {
    Plan *plan;
    Emit *e;
    Frame frame;
    V *outputs; /* NAME's arguments for them: a computed one is a jaxcc_array * */
    V context; /* of the kernels it calls */
    uint32_t inlined; /* operations of kernels written into the function itself */
} Host;

void host_body(Host *, Body *);
/* Gives heap memory back. */
void host_put(Host *, V memory);
void host_control(Host *, Step *); /* hostloop.c */
/* A value of rank 0 as a register. */
V host_scalar(Host *, Val);
/* Writes a scalar result to memory. */
void host_store(Host *, Val, V pointer);
/* bytes of v's array as i64 */
V host_bytes(Host *, Val);
/* Copies an array. */
void host_copy(Host *, V to, V from, V bytes);

/* BODY.run(args, heap): `body`, written for this signature, with its arguments from memory, 8 bytes each. */
Str entry_run(Emit *, Str body, const Signature *);
/* NAME itself: checks, workspace, then `body` (entry.c). */
void entry_write(Plan *, Emit *, const Jaxpr *, const Signature *, Str body);
/* NAME, and NAME_workspace_size. */
void host_entry(Plan *, Emit *, const Jaxpr *);

#endif
