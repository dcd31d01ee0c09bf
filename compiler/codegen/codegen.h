/* Program → plan → kernels → library. */
#ifndef JAXCC_CODEGEN_H
#define JAXCC_CODEGEN_H
#include "../ir.h"
#include "../output.h"

/* Compiles a checked program whose calls are inlined and writes `kind` (so … mlir) to `out`; false
   after a diagnostic. */
bool codegen(Ctx *, const Jaxpr *, EmitKind, const Output *out);

/* `end` is called when LLVM or the C++ library runs out of memory. */
void codegen_no_memory(void (*end)(void));

#endif
