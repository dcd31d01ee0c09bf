/* Program → plan → kernels → library. */
#ifndef JAXCC_CODEGEN_H
#define JAXCC_CODEGEN_H
#include "../ir.h"

typedef enum {
    EMIT_so,
    EMIT_a,
    EMIT_obj,
    EMIT_asm,
    EMIT_llvm,
    EMIT_mlir,
    EMIT_ptx,
    EMIT_jaxpr,
    EMIT_types,
    EMIT_header
} EmitKind;

/* Compiles a checked program whose calls are inlined and writes `kind` (so … mlir) to `out`; false
   after a diagnostic, and then nothing is left behind. */
bool codegen(Ctx *, const Jaxpr *, EmitKind, const char *out);

#endif
