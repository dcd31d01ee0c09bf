/* A module of LLVM on its way from MLIR to bytes. */
#ifndef JAXCC_WRITER_H
#define JAXCC_WRITER_H
#include "../../output.h"
#include "machine.h"
#include <llvm-c/Core.h>

typedef struct {
    Emit *e;
    const Target *target;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMTargetMachineRef machine;
} Writer;
typedef LLVMTargetMachineRef OpenMachine(const Target *, uint32_t opt, char **why);

/* A failure of MLIR or LLVM, which is a bug of ours: ends the compilation. */
_Noreturn void writer_failed(const Emit *, const char *stage, const char *why);
/* The machine that modules are for; and the module, if there is one. */
void writer_machine(Writer *, OpenMachine *);
/* Attributes that all functions have. */
void writer_mark(Writer *);
/* Runs LLVM's passes of that name. */
void writer_passes(Writer *, const char *list);
/* The passes of the optimisation level. */
void writer_optimise(Writer *);
/* What the target has to change in optimised functions. */
void writer_amend(Writer *);
/* The module as text of the machine's or as an object file. */
LLVMMemoryBufferRef writer_code(Writer *, LLVMCodeGenFileType);
/* Writes what writer_code gave; false after a diagnostic. */
bool writer_write(const Emit *, LLVMMemoryBufferRef, const Output *);
void writer_close(Writer *);

#endif
