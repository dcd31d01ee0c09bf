/* Code for x86-64. */
#ifndef JAXCC_X86_MACHINE_H
#define JAXCC_X86_MACHINE_H
#include "../host/machine.h"

extern const Machine x86_machine;

#endif
