/* The library's function: checks, workspace, and the steps of the schedule. */
#ifndef JAXCC_HOST_H
#define JAXCC_HOST_H
#include "../plan/call.h"
#include "frame.h"

/* On a device: what the kernels that are written test before they do anything, and before it what is around: the branch
   of a cond whose index is in `buf`, or turns of a while as long as its predicate is. */
typedef struct Guard {
    const struct Guard *outer;
    Buf *buf;
    Dtype dtype;
    uint32_t branch, last; /* the number of the branch, and of the last one */
} Guard;
typedef struct {
    Plan *plan;
    Emit *e;
    const Signature *signature;
    Str name;
    Frame frame;        /* of the function being written */
    const Guard *guard; /* NULL: they run */
    V context;          /* captures of the kernels that it calls: `room` words */
    uint32_t room;
    Kernel *scalar;   /* computes scalars */
    uint32_t inlined; /* operations of kernels inlined into the function */
    bool calls;       /* are there kernels that are functions of their own? */
    bool cut;         /* cut into parts (part.c), whose arguments are in memory */
    uint32_t nparts;
} Host;

/* Begins a function whose parameters are the program's arguments, the workspace and the heap. */
void host_enter(Host *, Scope *);
void host_body(Host *, Body *);
/* Frees heap memory. */
void host_put(Host *, V memory);
void host_control(Host *, Step *);            /* hostloop.c */
void host_call(Host *, const Body *, Step *); /* calls.c */
/* A value of rank 0 as a register. */
V host_scalar(Host *, Val);
/* Writes a scalar result to memory. */
void host_store(Host *, Val, V pointer);
/* A scalar that others computed is a register again. */
void host_load(Host *, Val, Buf *);
/* Memory of n words, of use until it is asked for again: what is called finds there what it gets. */
V host_context(Host *, uint32_t n);
/* bytes of v's array as i64 */
V host_bytes(Host *, Val);
/* Copies an array; words of the host. */
void host_copy(Host *, V to, V from, V bytes);
void host_copy_words(Host *, V to, V from, V bytes);

/* The schedule, written: NAME.body(the program's arguments, workspace, heap). */
typedef struct Written {
    Str name;
    MlirOperation function;
    const Signature *signature;
    bool in_memory; /* are the arguments in memory? */
    bool calls;     /* does it call kernels? */
    uint32_t homes; /* bytes that it needs before the workspace */
    Dim workspace;  /* bytes of both */
} Written;
/* NAME.body.run(args, heap): the same with its arguments in memory, 8 bytes each; `flat`: these are all arguments of
   the program and the workspace. */
Str entry_run(Emit *, const Written *, bool flat);
/* The schedule for one of the library's targets. */
typedef struct {
    Plan *plan;
    Written body;
} Level;
/* NAME itself: checks, workspace, then the schedule; and NAME_workspace_size. Of several targets' schedules, by number
   as in e->targets, it is the highest whose features the CPU has (entry.c). */
void entry_write(Emit *, const Jaxpr *, const Level *);
/* What the schedule is given, of memory for `homes` and the workspace. */
V written_past_homes(Emit *, const Written *, V workspace);
/* The same for a device, where the workspace is the device's: `homes` come from the heap, and so does the word behind
   them, which holds the workspace's address. To be given back. */
V written_homes_new(Emit *, const Written *, V heap, V workspace);
void written_homes_put(Emit *, const Written *, V heap, V given);
/* The schedule of a program as a function of that name. */
Written host_write(Plan *, Emit *, const Jaxpr *, const Signature *, Str name);
/* Plans and writes the functions that a program calls; false after a diagnostic (calls.c). */
bool callees_write(Callees *, Emit *);
/* The schedule of a whole program, for the target that is written. */
Written host_program(Plan *, Emit *, const Program *, const Signature *);

#endif
