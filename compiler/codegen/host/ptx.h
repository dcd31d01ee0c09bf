/* PTX that LLVM wrote, in a form that NVIDIA's compiler reads as it is meant. */
#ifndef JAXCC_HOST_PTX_H
#define JAXCC_HOST_PTX_H
#include "compiler/str.h"

/* A store may name a register that is wider than what it stores, whose low bits it takes. Where a floating-point
   operation computed the register, ptxas (CUDA 13.0) converts its number to an integer instead: what is left of an f64
   whose words are stored one by one is its high word. So the low bits go through a register of their own. */
Str ptx_with_narrow_stores(Arena *, Str ptx);

#endif
