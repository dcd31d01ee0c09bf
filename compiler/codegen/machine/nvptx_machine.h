/* Kernels as PTX; the host's code for any x86-64. */
#ifndef JAXCC_NVPTX_MACHINE_H
#define JAXCC_NVPTX_MACHINE_H
#include "../host/machine.h"

extern const Machine nvptx_machine;

#endif
