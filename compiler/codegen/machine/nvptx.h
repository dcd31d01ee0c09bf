/* NVIDIA GPUs as targets: the host's code is for any x86-64. */
#ifndef JAXCC_NVPTX_H
#define JAXCC_NVPTX_H
#include "../target/target.h"

/* nvptx64, nvptx64-nvidia-cuda */
bool nvptx_triple(const char *triple);
/* From -march or -mcpu, sm_80 if there is none; false after a diagnostic. */
bool nvptx_target(Ctx *, Target *);

#endif
