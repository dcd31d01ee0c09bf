/* Host code of libraries whose kernels run on a device: calls of runtime/cuda.h. */
#ifndef JAXCC_DEVICE_H
#define JAXCC_DEVICE_H
#include "host.h"
#include <llvm-c/Core.h>

/* A kernel as the library's table lists it. */
typedef struct Launched {
    Str name, what;
    int64_t context, shared; /* bytes */
} Launched;

/* Copies of arrays, as host_copy; a register stored in the device's memory. */
void device_copy(Host *, V to, V from, V bytes);
void device_store(Host *, V to, Dtype, V scalar);
/* How many turns of a while come next, after `turns` of them: 0 at its end. */
V device_turns(Host *, const Step *, V turns);
/* On devices, for the equation that gives the number of the device, among those of a program for several: the host has
   it. False for other equations, and for other targets. */
bool device_number(Host *, const Eqn *);
/* A call of C code of that name with the arrays of the step, then `text`: it runs on the host, and gets copies there
   unless it exchanges data of several devices. */
void device_runtime(Host *, Step *, Str name, V arrays, V sizes);
/* The entry's call of the schedule; its status. */
V device_run(Frame *, const Written *);
/* The library's tables: kernels, constants and code, once the kernels are PTX. */
void device_define(Emit *, LLVMModuleRef host, Str ptx);

#endif
