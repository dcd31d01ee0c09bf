/* What a target is behind the plan: its kernels, how the host runs them, and its object files. */
#ifndef JAXCC_MACHINE_H
#define JAXCC_MACHINE_H
#include "host.h"
#include <llvm-c/TargetMachine.h>

enum { OPT_LEVELS = 4 };
typedef struct Machine {
    KernelRule *kernels[STEP_KINDS]; /* by the kind of the step; NULL: it has no kernel */
    KernelRule *before[STEP_KINDS];  /* of a step with parts, before its kernel: for all parts but the last; or NULL */
    KernelRule *after[STEP_KINDS];   /* of a step with parts on a device, once, after its kernel; or NULL */
    void (*launch)(Host *, Step *);  /* the host's code that runs the kernel of a step */
    LLVMTargetMachineRef (*open)(const Target *, uint32_t opt, char **why);        /* NULL: `why` is set */
    LLVMTargetMachineRef (*open_device)(const Target *, uint32_t opt, char **why); /* of the kernels; NULL: the same */
    const char *const *passes;                                                     /* LLVM's, by -O; NULL: none */
    void (*mark)(const Target *, LLVMValueRef function);                           /* attributes of each function */
    void (*amend)(const Target *, LLVMValueRef function);                          /* each, after the passes */
    void (*amend_kernel)(LLVMValueRef function); /* the same of a device, NULL: there is none */
} Machine;

/* launch.c: in the function of the schedule, as a function, or as one that threads share. */
void launch_threads(Host *, Step *);
/* device.c: on a device. */
void launch_device(Host *, Step *);

#endif
