/* NVIDIA GPUs by compute capability; the host's code is for any x86-64. */
#include "target.h"
#include "../../../runtime/cuda.h"
#include "../../options.h"
#include "../cost.h"
#include "../plan/threads.h"

/* Compute capabilities that LLVM 22 knows, from 8.0 on: tensor cores with bf16, asynchronous copies, redux. */
enum { ROOM = 227 << 10 }; /* shared memory of a block, for code that no other GPU runs */
static const Device devices[] = {
    {"sm_80", 80, JAXCC_RT_CUDA_LATER, ROOM_BYTES, false, false},
    {"sm_86", 86, JAXCC_RT_CUDA_LATER, ROOM_BYTES, false, false},
    {"sm_87", 87, JAXCC_RT_CUDA_LATER, ROOM_BYTES, false, false},
    {"sm_89", 89, JAXCC_RT_CUDA_LATER, ROOM_BYTES, false, false},
    {"sm_90", 90, JAXCC_RT_CUDA_LATER, ROOM_BYTES, true, false},
    {"sm_90a", 90, JAXCC_RT_CUDA_SAME, ROOM, true, true},
    {"sm_100", 100, JAXCC_RT_CUDA_LATER, ROOM_BYTES, true, false},
    {"sm_100a", 100, JAXCC_RT_CUDA_SAME, ROOM, true, false},
    {"sm_103", 103, JAXCC_RT_CUDA_LATER, ROOM_BYTES, true, false},
    {"sm_120", 120, JAXCC_RT_CUDA_LATER, ROOM_BYTES, true, false},
    {"sm_121", 121, JAXCC_RT_CUDA_LATER, ROOM_BYTES, true, false},
};

bool nvptx_triple(const char *triple) { return !strcmp(triple, "nvptx64") || !strcmp(triple, "nvptx64-nvidia-cuda"); }
bool nvptx_target(Ctx *cx, Target *t) {
    enum { LETTERS = 2, VECTOR_BYTES = 16 };
    const Options *o = cx->options;
    Str name = str(o->march ? o->march : o->mcpu ? o->mcpu : devices[0].name);
    Similar near = similar_to(name, edits_of(name, LETTERS));
    *t = x86_levels[0];
    t->vector_bytes = VECTOR_BYTES;
    t->platform = "cuda";
    t->rounds = t->fma = true;
    t->decide = threads_decide;
    for (unsigned i = 0; i < sizeof devices / sizeof *devices; i++) {
        if (str_is(name, devices[i].name)) t->device = &devices[i];
        similar_offer(&near, str(devices[i].name));
    }
    return t->device || diag_plain(cx->diags, "unknown GPU '%.*s'%s%.*s%s", SF(name),
                                   near.best.n ? "; did you mean '" : "", SF(near.best), near.best.n ? "'?" : "");
}
