/* The library's code and constants on a device: loaded once, by the first call that needs them. */
#include "cuda_device.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STATIC_SHARED = 48 << 10, LOG_BYTES = 1024 };

/* ---- choosing */
static bool runs(const jaxcc_rt_cuda_image *i, int sm) {
    switch (i->runs_on) {
    case JAXCC_RT_CUDA_LATER: return sm >= i->sm;
    case JAXCC_RT_CUDA_MAJOR: return sm / 10 == i->sm / 10 && sm >= i->sm;
    default: return sm == i->sm;
    }
}
static const jaxcc_rt_cuda_image *choose(const jaxcc_rt_cuda_library *library, int sm) {
    for (int64_t i = 0; i < library->n_images; i++)
        if (runs(&library->images[i], sm)) return &library->images[i];
    return NULL;
}
static int32_t fail_older(const Device *d, const jaxcc_rt_cuda_library *library) {
    const jaxcc_rt_cuda_image *last = &library->images[library->n_images - 1];
    static const char *const later[] = {" and later", " and what follows it in its series", ""};
    return jaxcc_rt_fail(JAXCC_CPU, "this library was compiled for %s%s, but GPU %d (%s) is sm_%d", last->name,
                         later[last->runs_on], d->ordinal, d->name, d->sm);
}

/* ---- code */
/* The first line of the driver's log that is about an error. */
static void first_error(char *log) {
    char *at = strstr(log, "error");
    while (at && at > log && at[-1] != '\n') at--;
    if (at) memmove(log, at, strlen(at) + 1);
    log[strcspn(log, "\n")] = 0;
}
static int32_t fail_code(Device *d, CUresult r, char *log) {
    const jaxcc_rt_cuda_answer *a = jaxcc_rt_cuda_answer_to(r);
    int version = 0;
    if (r == CUDA_ERROR_UNSUPPORTED_PTX_VERSION && !jaxcc_rt_cuda.cuDriverGetVersion(&version))
        return jaxcc_rt_fail(a->status, "this program needs a newer driver than that of CUDA %d.%d: %s", version / 1000,
                             version % 1000 / 10, jaxcc_rt_cuda_name_of(r));
    first_error(log);
    if (a->sticky || !*log) return jaxcc_rt_cuda_failed(d, r, "cuModuleLoadDataEx");
    return jaxcc_rt_fail(a->status, "GPU %d: the driver rejects the code, %s: %s", d->ordinal, jaxcc_rt_cuda_name_of(r),
                         log);
}
static CUresult load_image(Loaded *l, const jaxcc_rt_cuda_image *image, char log[LOG_BYTES]) {
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    /* The driver replaces the size by what it wrote. NOLINTNEXTLINE(performance-no-int-to-ptr) */
    void *values[] = {log, (void *)(uintptr_t)(LOG_BYTES - 1)};
    memset(log, 0, LOG_BYTES);
    return jaxcc_rt_cuda.cuModuleLoadDataEx(&l->module, image->data, 2, options, values);
}
static int32_t load_code(Loaded *l, const jaxcc_rt_cuda_image *image) {
    char log[LOG_BYTES];
    CUresult r = load_image(l, image, log);
    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        jaxcc_rt_cuda_release_blocks(l->device);
        r = load_image(l, image, log);
    }
    return r ? fail_code(l->device, r, log) : 0;
}
static int32_t find_functions(Loaded *l) {
    int32_t status = 0;
    for (int64_t i = 0; i < l->library->n_kernels && !status; i++) {
        const jaxcc_rt_cuda_kernel *k = &l->library->kernels[i];
        if (k->shared > l->device->most_shared)
            return jaxcc_rt_fail(JAXCC_CPU, "kernel '%s' needs %lld bytes of shared memory, but GPU %d (%s) has %d",
                                 k->name, (long long)k->shared, l->device->ordinal, l->device->name,
                                 l->device->most_shared);
        status = CU(l->device, cuModuleGetFunction, &l->functions[i], l->module, k->name);
        if (!status && k->shared > MOST_STATIC_SHARED)
            status = CU(l->device, cuFuncSetAttribute, l->functions[i], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                        (int)k->shared);
    }
    return status;
}

/* ---- constants */
static int32_t copy_constants(Loaded *l) {
    const jaxcc_rt_cuda_constant_data *data = l->library->constants;
    Area a = {&data->data, &data->bytes, sizeof *data, sizeof *data, l->library->n_constants, 0, 0}, next = a;
    int64_t bytes = jaxcc_rt_cuda_area_bytes(a);
    if (!bytes) return 0;
    Lane *lane;
    int32_t status = jaxcc_rt_cuda_alloc(l->device, bytes, " of constants", &l->memory);
    if (!status) status = jaxcc_rt_cuda_lane_take(l->device, &lane);
    if (status) return status;
    CUdeviceptr at = l->memory;
    for (int64_t i = 0; i < a.n; i++) l->constants[i] = jaxcc_rt_cuda_area_next(&next, &at);
    status = jaxcc_rt_cuda_copy_in(l->device, lane, lane->stream, a, l->memory);
    int32_t waited = CU(l->device, cuStreamSynchronize, lane->stream);
    jaxcc_rt_cuda_lane_give(l->device, lane, !waited);
    return status ? status : waited;
}

/* ---- loading */
static void loaded_free(Loaded *l) {
    if (l->memory) jaxcc_rt_cuda_free(l->device, l->memory);
    if (l->module) jaxcc_rt_cuda.cuModuleUnload(l->module);
    free(l);
}
static Loaded *find(const Device *d, const jaxcc_rt_cuda_library *library) {
    Loaded *l = library->loaded;
    while (l && l->device != d) l = l->next;
    return l;
}
static Loaded *loaded_new(Device *d, jaxcc_rt_cuda_library *library) {
    size_t kernels = (size_t)library->n_kernels, constants = (size_t)library->n_constants;
    Loaded *l = calloc(1, sizeof *l + kernels * sizeof *l->functions + constants * sizeof *l->constants);
    if (!l) return NULL;
    l->device = d;
    l->library = library;
    l->constants = (CUdeviceptr *)(l + 1);
    l->functions = (CUfunction *)(l->constants + constants);
    return l;
}
static int32_t load(Device *d, jaxcc_rt_cuda_library *library, Loaded **out) {
    const jaxcc_rt_cuda_image *image = choose(library, d->sm);
    if (!image) return fail_older(d, library);
    Loaded *l = loaded_new(d, library);
    if (!l) return jaxcc_rt_fail_text(JAXCC_MEMORY, "no memory");
    int32_t status = load_code(l, image);
    if (!status) status = find_functions(l);
    if (!status) status = copy_constants(l);
    if (status) {
        loaded_free(l);
        return status;
    }
    l->next_on = d->loaded;
    d->loaded = l;
    void *first = library->loaded;
    do l->next = first;
    while (!atomic_compare_exchange_weak(&library->loaded, &first, l));
    *out = l;
    return 0;
}
int32_t jaxcc_rt_cuda_load(Device *d, jaxcc_rt_cuda_library *library, Loaded **out) {
    *out = find(d, library);
    if (*out) return 0;
    pthread_mutex_lock(&d->loading);
    *out = find(d, library);
    int32_t status = *out ? 0 : load(d, library, out);
    pthread_mutex_unlock(&d->loading);
    return status;
}
/* The libraries' lists lose this device; nothing is being called. */
void jaxcc_rt_cuda_unload(Device *d) {
    for (Loaded *l = d->loaded, *next; l; l = next) {
        next = l->next_on;
        Loaded *first = l->library->loaded;
        if (first == l)
            l->library->loaded = l->next;
        else
            for (Loaded *p = first; p; p = p->next)
                if (p->next == l) p->next = l->next;
        loaded_free(l);
    }
    d->loaded = NULL;
    if (d->conditions) jaxcc_rt_cuda.cuModuleUnload(d->conditions);
}
