/* Programs for several devices on GPUs. Each device has a thread and a stream: it begins when the work before the
   program has ended, and its thread waits for its end. In between the streams wait for each other at marks, which are
   events; an event is waited for after it was recorded, so that no order of the threads makes a circle.

   Operands and results lie on the GPU of the call. Devices there use their parts in place; others have copies. */
#include "cuda_nccl.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNED = 16 }; /* as kernels expect arrays */

typedef struct Members {
    struct Members *next;
    Call *around;
    int gpus;
    int64_t n;
    Call at[];
} Members;

static Members *members_of(const jaxcc_rt_comm *c) { return c->program->user; }
static Call *member(const jaxcc_rt_comm *c) { return &members_of(c)->at[c->place]; }
Call *jaxcc_rt_cuda_member(const jaxcc_rt_comm *c) { return member(c); }
static Call *whole(Call *c) { return c->whole ? c->whole : c; }

/* ---- moving data */
static int32_t mark(jaxcc_rt_heap *h) {
    Call *c = call_of(h);
    return jaxcc_rt_cuda_lane_mark(c->device, c->lane, c->stream);
}
static int32_t follow_call(jaxcc_rt_heap *h, const Call *other) {
    Call *c = call_of(h);
    return CU(c->device, cuStreamWaitEvent, c->stream, other->lane->mark, 0);
}
static int32_t follow(jaxcc_rt_heap *h, const jaxcc_rt_comm *other) { return follow_call(h, member(other)); }
/* Copies from one GPU, here, to another one, there, or the same. */
static int32_t move(jaxcc_rt_heap *h, const Device *there, void *to, const Device *here, const void *from,
                    int64_t bytes) {
    Call *c = call_of(h);
    if (bytes <= 0 || to == from) return 0;
    if (there == here) return CU(c->device, cuMemcpyDtoDAsync_v2, address(to), address(from), (size_t)bytes, c->stream);
    jaxcc_rt_cuda_reach(c->device, c->device == there ? here : there);
    return CU(c->device, cuMemcpyPeerAsync, address(to), there->context, address(from), here->context, (size_t)bytes,
              c->stream);
}
static int32_t copy(jaxcc_rt_heap *h, void *to, const jaxcc_rt_comm *owner, const void *from, int64_t bytes) {
    return move(h, call_of(h)->device, to, member(owner)->device, from, bytes);
}
static int32_t zero(jaxcc_rt_heap *h, void *to, int64_t bytes) {
    Call *c = call_of(h);
    return bytes > 0 ? CU(c->device, cuMemsetD8Async, address(to), 0, (size_t)bytes, c->stream) : 0;
}

/* A GPU that is lost tells only who asks, and what other GPUs exchange with it by NCCL does not end by itself. */
static int32_t watch(jaxcc_rt_heap *h) {
    const Call *c = call_of(h);
    CUresult r = jaxcc_rt_cuda.cuEventQuery(c->lane->mark);
    int32_t status = r == CUDA_ERROR_NOT_READY ? 0 : jaxcc_rt_cuda_failed(c->device, r, "cuEventQuery");
    if (c->device->failed) jaxcc_rt_nccl_lost(c->device);
    return status ? status : jaxcc_rt_nccl_check(c);
}

/* ---- one device */
/* The device's part of an input, on the GPU of the call. */
static void *input(const jaxcc_rt_comm *comm, int64_t i) {
    const jaxcc_rt_spmd_program *p = comm->program;
    const int64_t *mesh = p->in_bytes + p->n_in, axes = *mesh, *step = mesh + 1 + axes + i * axes;
    int64_t place = comm->place, at = 0;
    for (int64_t k = axes; k-- > 0;) {
        at += place % mesh[1 + k] * step[k];
        place /= mesh[1 + k];
    }
    return (char *)p->arrays[i] + at;
}
/* The bytes of the arrays that the device needs a copy of: parts on another GPU, or where its kernels cannot use them;
   0 for others. */
static int64_t *copied(jaxcc_rt_heap *h, const jaxcc_rt_comm *comm) {
    const jaxcc_rt_spmd_program *p = comm->program;
    bool away = call_of(h)->device != members_of(comm)->around->device;
    int64_t *bytes = jaxcc_rt_heap_get(h, (p->n_in + p->n_out) * (int64_t)sizeof *bytes);
    void **arrays = comm->args + p->n_dims;
    for (int64_t i = 0; i < p->n_in; i++) arrays[i] = input(comm, i);
    for (int64_t i = 0; i < p->n_in + p->n_out; i++) {
        bool needed = away || address(arrays[i]) % ALIGNED;
        bytes[i] = !needed ? 0 : i < p->n_in ? p->in_bytes[i] : p->out_bytes[i - p->n_in];
    }
    return bytes;
}
/* Gives the device its workspace and its copies, of the inputs with what is in them. */
static void take(jaxcc_rt_heap *h, const jaxcc_rt_comm *comm, const int64_t *bytes) {
    Call *c = call_of(h);
    const jaxcc_rt_spmd_program *p = comm->program;
    int64_t n = p->n_in + p->n_out, copies;
    void **arrays = comm->args + p->n_dims;
    CUdeviceptr at = 0;
    copies = jaxcc_rt_cuda_area_bytes(area(arrays, bytes, n));
    int64_t all = p->workspace < 0 || copies > INT64_MAX - p->workspace ? INT64_MAX : copies + p->workspace;
    if (all) must(h, jaxcc_rt_cuda_take_block(c, all, c->program->hint, &at));
    jaxcc_rt_cuda_place(arrays, bytes, n, &at);
    arrays[n] = p->workspace ? pointer(at) : NULL;
    for (int64_t i = 0; i < p->n_in; i++)
        must(h, move(h, c->device, arrays[i], members_of(comm)->around->device, input(comm, i), bytes[i]));
}
static void give_results(jaxcc_rt_heap *h, const jaxcc_rt_comm *comm, const int64_t *bytes) {
    const jaxcc_rt_spmd_program *p = comm->program;
    for (int64_t i = 0; i < p->n_out; i++) {
        void *to = (char *)p->arrays[p->n_in + i] + comm->place * p->out_bytes[i];
        must(h, move(h, members_of(comm)->around->device, to, call_of(h)->device, comm->args[p->n_dims + p->n_in + i],
                     bytes[p->n_in + i]));
    }
}
static void body(void *args, jaxcc_rt_heap *h) {
    const jaxcc_rt_comm *comm = args;
    must(h, follow_call(h, members_of(comm)->around));
    int64_t *bytes = copied(h, comm);
    take(h, comm, bytes);
    comm->program->body(comm->args, h);
    give_results(h, comm, bytes);
}
static int32_t begin(Call *c, const Members *m) {
    c->program = m->around->program;
    c->whole = whole(m->around);
    int32_t status = jaxcc_rt_cuda_load(c->device, c->program->library, &c->loaded);
    if (!status) status = jaxcc_rt_cuda_take_lane(c);
    if (!status) c->stream = c->lane->stream;
    jaxcc_rt_nccl_join(c, m->around);
    return status;
}
/* It has failed, and its text says why. Has its stream come to its end? */
static bool ends(Call *c, int32_t status) {
    char text[256] = "";
    strncpy(text, jaxcc_rt_error(), sizeof text - 1);
    bool good = c->stream && (jaxcc_rt_cuda_wait(c), !jaxcc_rt_cuda.cuStreamSynchronize(c->stream));
    jaxcc_rt_fail_text(status, text);
    return good;
}
static int32_t run(jaxcc_rt_comm *comm) {
    const Members *m = members_of(comm);
    Call *c = member(comm);
    int64_t gpu = (whole(m->around)->device->ordinal + comm->device) % m->gpus;
    int32_t status = jaxcc_rt_cuda_device(gpu, &c->device);
    if (!status) status = jaxcc_rt_cuda_enter(c->device);
    if (status) return status;
    status = begin(c, m);
    if (!status) status = jaxcc_rt_cuda_body(body, comm, comm, c);
    if (!status) status = jaxcc_rt_cuda_wait(c);
    c->good = !status || ends(c, status);
    if (c->device->failed) jaxcc_rt_nccl_lost(c->device);
    status = jaxcc_rt_nccl_leave(c, status);
    jaxcc_rt_cuda_leave();
    return status;
}

/* ---- all devices */
static void give_back_one(Call *c, CUcontext around) {
    if (!c->lane) return;
    bool other = c->device->context != around && !jaxcc_rt_cuda.cuCtxPushCurrent_v2(c->device->context);
    jaxcc_rt_cuda_give_back(c, c->good, c->good);
    if (other) jaxcc_rt_cuda_back();
}
static void give_back(Members *m) {
    CUcontext around = m->around->device->context;
    for (Members *next; m; m = next) {
        next = m->next;
        for (int64_t i = 0; i < m->n; i++) give_back_one(&m->at[i], around);
        free(m);
    }
}
/* If a device fails, others may still read its memory until all have ended: also those of other inner programs. */
static void end(Members *m, int32_t status) {
    Call *call = m->around->whole;
    if (!call) {
        m->next = atomic_exchange(&m->around->failed, NULL);
        give_back(m);
    } else if (!status) {
        give_back(m);
    } else {
        m->next = call->failed;
        while (!atomic_compare_exchange_weak(&call->failed, &m->next, m)) {
        }
    }
}
void jaxcc_rt_cuda_spmd(jaxcc_rt_heap *h, void *const *arrays, const int64_t *sizes,
                        void (*program)(void *args, jaxcc_rt_heap *)) {
    static const jaxcc_rt_devices gpus = {run, mark, follow, copy, zero, jaxcc_rt_nccl_exchange, watch};
    jaxcc_rt_spmd_program p = jaxcc_rt_spmd_program_of(arrays, sizes, program);
    int n;
    must(h, jaxcc_rt_cuda_take_lane(call_of(h)));
    must(h, mark(h));
    must(h, jaxcc_rt_cuda_count(&n));
    Members *m = calloc(1, sizeof *m + (size_t)p.devices * sizeof *m->at);
    if (!m) jaxcc_rt_stop(h, JAXCC_MEMORY, "no memory for the threads of all devices");
    *m = (Members){.around = call_of(h), .gpus = n, .n = p.devices};
    p.user = m;
    int32_t status = jaxcc_rt_spmd_run(h, &gpus, &p);
    end(m, status);
    must(h, status);
}
