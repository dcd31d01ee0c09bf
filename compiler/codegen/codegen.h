/* Program → plan → kernels → library. */
#ifndef JAXCC_CODEGEN_H
#define JAXCC_CODEGEN_H
#include "../ir.h"
#include "../output.h"

/* What becomes a function of the library, as the passes left it. */
typedef struct {
    const char *name; /* of the function: a C identifier */
    const Jaxpr *j;
} Program;
typedef struct {
    const Program *at;
    uint32_t n; /* at least 1 */
} Programs;

/* Compiles programs of different names, whose calls are inlined, to one library, which shares their constants and equal
   code, and writes `kind` (so … mlir) to `out`; false after a diagnostic. The caller makes sure that what the programs
   export, NAME, NAME_error, NAME_program and so on, has different names: `f` and `f_error` cannot be in one library. */
bool codegen(Ctx *, Programs, EmitKind, const Output *out);

/* How many bytes of a product one word of its instructions has on the machine that code is generated for; 0: there are
   no such instructions. */
uint32_t codegen_words(Ctx *);

/* Can the program have the interface that the options ask for? False after a diagnostic. */
bool codegen_interface(Ctx *, const Program *);

/* `end` is called when LLVM or the C++ library runs out of memory. */
void codegen_no_memory(void (*end)(void));

#endif
