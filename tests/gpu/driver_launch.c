/* Modules, their functions, and launches. */
#include "driver.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Module {
    PtxModule *ptx;
    int device;
    struct Function *functions;
} Module;
typedef struct Function {
    struct Function *next;
    PtxFunc *ptx;
    const Module *module;
    char *name;
    unsigned most_shared; /* dynamic, as set */
    CUfunction handle;
} Function;

/* ---- does the driver know this version of PTX, and the device this target? */
/* Of each version of CUDA: the PTX that it introduced. */
static const struct {
    int driver, ptx;
} versions[] = {{13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85}, {12040, 84}, {12030, 83},
                {12020, 82}, {12010, 81}, {12000, 80}, {11080, 78}, {11070, 77}, {11060, 76}, {11050, 75},
                {11040, 74}, {11030, 73}, {11020, 72}, {11010, 71}, {11000, 70}, {0, 65}};
/* "8.0" or "sm_80" after the directive: its digits */
static int digits_after(const char *text, const char *directive) {
    const char *at = strstr(text, directive);
    int n = 0;
    if (!at) return 0;
    for (at += strlen(directive); *at && *at != '\n' && *at != ',' && !isdigit((unsigned char)*at);) at++;
    for (; isdigit((unsigned char)*at) || *at == '.'; at++)
        if (*at != '.') n = 10 * n + *at - '0';
    return n;
}
static CUresult check_target(const char *text, int device, char *log, size_t size) {
    int version = digits_after(text, ".version"), target = digits_after(text, ".target"), i = 0;
    while (versions[i].driver > settings.version) i++;
    if (version > versions[i].ptx) {
        snprintf(log, size,
                 "ptxas application ptx input, line 1; fatal : Unsupported .version %d.%d; current version is '%d.%d'",
                 version / 10, version % 10, versions[i].ptx / 10, versions[i].ptx % 10);
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    if (settings.version < CONDITIONS_SINCE && strstr(text, "cudaGraphSetConditional")) {
        snprintf(log, size, "ptxas fatal : Unresolved extern function 'cudaGraphSetConditional'");
        return CUDA_ERROR_INVALID_PTX;
    }
    if (target <= devices[device].sm) return 0;
    snprintf(log, size,
             "ptxas fatal : SM version specified by .target is higher than default SM version assumed: sm_%d", target);
    return NO_BINARY;
}

/* ---- modules */
static void give_log(const char *log, unsigned n, const int *options, void **values) {
    char *buffer = NULL;
    size_t size = 0;
    for (unsigned i = 0; i < n; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) buffer = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) size = (size_t)values[i];
    }
    if (buffer && size) snprintf(buffer, size, "%s", log);
}
static CUresult load(CUmodule *handle, const char *text, unsigned n, const int *options, void **values) {
    char log[1024] = "", what[900] = "";
    if (!memcmp(text, "\177ELF", 4)) return NO_BINARY;
    CUresult r = check_target(text, current_device(), log, sizeof log);
    PtxModule *ptx = r ? NULL : ptx_load(text, what, sizeof what);
    if (!r && !ptx) {
        snprintf(log, sizeof log, "ptxas application ptx input, error : %s", what);
        fprintf(stderr, "libcuda: %s\n", log);
        r = CUDA_ERROR_INVALID_PTX;
    }
    give_log(log, n, options, values);
    if (r) return r;
    Module *m = malloc(sizeof *m);
    if (!m) abort();
    *m = (Module){ptx, current_device(), NULL};
    *handle = handle_new(MODULE, m->device, m);
    return 0;
}
API cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n, int *options, void **values) {
    return done(begin(__func__, CURRENT) ?: load(m, image, n, options, values));
}
API cuModuleLoadData(CUmodule *m, const void *image) {
    return done(begin(__func__, CURRENT) ?: load(m, image, 0, NULL, NULL));
}
static CUresult unload(CUmodule handle) {
    Module *m = handle_object(MODULE, handle);
    if (!m) return INVALID_HANDLE;
    if (stream_uses(m)) {
        misused(0, "a kernel of the module is still to be run");
        stream_drain_all(m->device);
    }
    handle_end(handle);
    for (Function *f = m->functions, *next; f; f = next) {
        next = f->next;
        handle_end(f->handle);
        free(f->name);
        free(f);
    }
    ptx_unload(m->ptx);
    free(m);
    return 0;
}
API cuModuleUnload(CUmodule m) { return done(begin(__func__, CURRENT) ?: stream_unsafe() ?: unload(m)); }
static CUresult function(CUfunction *handle, CUmodule module, const char *name) {
    Module *m = handle_object(MODULE, module);
    if (!m) return INVALID_HANDLE;
    PtxFunc *ptx = ptx_function(m->ptx, name);
    if (!ptx) return NOT_FOUND;
    Function *f = malloc(sizeof *f);
    if (!f) abort();
    *f = (Function){.next = m->functions, .ptx = ptx, .module = m, .name = strdup(name), .most_shared = 48 << 10};
    m->functions = f;
    f->handle = handle_new(FUNCTION, m->device, f);
    *handle = f->handle;
    return 0;
}
API cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
    return done(begin(__func__, CURRENT) ?: function(f, m, name));
}
static CUresult global(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name) {
    const Module *m = handle_object(MODULE, module);
    size_t n = 0;
    if (!m) return INVALID_HANDLE;
    CUdeviceptr p = ptx_global(m->ptx, name, &n);
    if (!p) return NOT_FOUND;
    if (at) *at = p;
    if (bytes) *bytes = n;
    return 0;
}
API cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule m, const char *name) {
    return done(begin(__func__, CURRENT) ?: global(at, bytes, m, name));
}

/* ---- functions */
enum { MAX_THREADS, SHARED, CONSTANT, LOCAL, REGISTERS, MAX_DYNAMIC = 8, MOST_THREADS = 1024 };
static CUresult set_attribute(CUfunction handle, int which, int value) {
    Function *f = handle_object(FUNCTION, handle);
    PtxInfo info;
    if (!f) return INVALID_HANDLE;
    if (which != MAX_DYNAMIC) return 0; /* carve-outs and the like */
    ptx_func_info(f->ptx, &info);
    if (value < 0 || (unsigned)value + info.shared_bytes > most_shared(handle_device(handle)))
        return CUDA_ERROR_INVALID_VALUE;
    f->most_shared = (unsigned)value;
    return 0;
}
API cuFuncSetAttribute(CUfunction f, int which, int value) {
    return done(begin(__func__, CURRENT) ?: set_attribute(f, which, value));
}
static CUresult get_attribute(int *value, int which, CUfunction handle) {
    const Function *f = handle_object(FUNCTION, handle);
    PtxInfo info;
    if (!f) return INVALID_HANDLE;
    ptx_func_info(f->ptx, &info);
    *value = which == MAX_THREADS   ? (info.maxntid.x ? (int)info.maxntid.x : MOST_THREADS)
             : which == SHARED      ? (int)info.shared_bytes
             : which == LOCAL       ? (int)info.local_bytes
             : which == MAX_DYNAMIC ? (int)f->most_shared
                                    : 0;
    return 0;
}
API cuFuncGetAttribute(int *value, int which, CUfunction f) {
    return done(begin(__func__, CURRENT) ?: get_attribute(value, which, f));
}
static CUresult occupancy(int *blocks, CUfunction f, int threads) {
    if (!handle_object(FUNCTION, f) || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = 2048 / threads;
    return 0;
}
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads, size_t shared) {
    return done(begin(__func__, CURRENT) ?: occupancy(blocks, f, threads));
}

/* ---- launches */
void **launch_parameters(const PtxFunc *f, void *const *from) {
    uint32_t n = ptx_param_count(f);
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) bytes += (ptx_param_size(f, i) + 15) / 16 * 16;
    char *memory = malloc((n + 1) * sizeof(void *) + 16 + bytes), *at = memory + (n * sizeof(void *) + 15) / 16 * 16;
    if (!memory) abort();
    for (uint32_t i = 0; i < n; i++) {
        ((void **)memory)[i] = at;
        memcpy(at, from[i], ptx_param_size(f, i));
        at += (ptx_param_size(f, i) + 15) / 16 * 16;
    }
    return (void **)memory;
}
/* CU_LAUNCH_PARAM_BUFFER_POINTER 1, _BUFFER_SIZE 2: all parameters in one piece, as a struct */
static CUresult from_buffer(const PtxFunc *f, void **extra, const void **to) {
    const char *at = NULL;
    size_t size = 0, used = 0;
    for (; *extra; extra += 2) {
        if (*extra == (void *)1) at = extra[1];
        if (*extra == (void *)2) size = *(const size_t *)extra[1];
    }
    for (uint32_t i = 0; i < ptx_param_count(f); i++) {
        size_t n = ptx_param_size(f, i), align = n >= 8 || n & (n - 1) ? 8 : n;
        used = (used + align - 1) / align * align;
        to[i] = at + used;
        used += n;
    }
    return used > size ? misused(CUDA_ERROR_INVALID_VALUE, "parameters have %zu bytes, not %zu", used, size) : 0;
}
static CUresult check_dims(const Function *f, const unsigned d[6], unsigned shared) {
    PtxInfo info;
    ptx_func_info(f->ptx, &info);
    size_t threads = (size_t)d[3] * d[4] * d[5];
    size_t most =
        info.maxntid.x ? (size_t)info.maxntid.x * (info.maxntid.y ?: 1) * (info.maxntid.z ?: 1) : MOST_THREADS;
    if (!d[0] || !d[1] || !d[2] || !threads || d[0] > INT32_MAX || d[1] > UINT16_MAX || d[2] > UINT16_MAX)
        return misused(CUDA_ERROR_INVALID_VALUE, "%s: the grid is %u x %u x %u", f->name, d[0], d[1], d[2]);
    if (threads > most)
        return misused(CUDA_ERROR_INVALID_VALUE, "%s: %zu threads, at most %zu", f->name, threads, most);
    if (info.reqntid.x && (info.reqntid.x != d[3] || (info.reqntid.y ?: 1) != d[4] || (info.reqntid.z ?: 1) != d[5]))
        return misused(CUDA_ERROR_INVALID_VALUE, "%s: %zu threads, but it requires another number", f->name, threads);
    if (shared > f->most_shared)
        return misused(CUDA_ERROR_INVALID_VALUE, "%s: %u bytes of shared memory, at most %u", f->name, shared,
                       f->most_shared);
    return 0;
}
CUresult launch_work(CUfunction handle, const unsigned d[6], unsigned shared, void **parameters, void **extra,
                     Work *w) {
    enum { MOST_PARAMETERS = 1024 };
    static const void *from[MOST_PARAMETERS];
    const Function *f = handle_object(FUNCTION, handle);
    if (!f) return INVALID_HANDLE;
    uint32_t n = ptx_param_count(f->ptx);
    if (f->module->device != current_device()) return misused(INVALID_HANDLE, "%s is of another device", f->name);
    if (n > MOST_PARAMETERS || (n && !parameters && !extra))
        return misused(CUDA_ERROR_INVALID_VALUE, "%s takes %u parameters", f->name, n);
    CUresult r = check_dims(f, d, shared);
    if (!r && !parameters && extra) r = from_buffer(f->ptx, extra, from);
    if (r) return r;
    *w = (Work){.perform = perform_launch,
                .module = f->module,
                .function = f->ptx,
                .name = f->name,
                .shared = shared,
                .grid = {d[0], d[1], d[2]},
                .block = {d[3], d[4], d[5]},
                .graph_type = GRAPH_KERNEL};
    w->parameters = launch_parameters(f->ptx, parameters ? parameters : (void *const *)from);
    return 0;
}
CUresult perform_launch(Work *w) {
    ptx_device = w->device;
    if (ptx_launch(w->function, w->grid, w->block, w->shared, (const void *const *)w->parameters)) return 0;
    fprintf(stderr, "libcuda: kernel %s: %s\n", w->name, ptx_fault());
    return lost(w->device, strstr(ptx_fault(), "not a multiple") ? 716 : ILLEGAL_ADDRESS);
}
static CUresult launch(CUfunction f, const unsigned d[6], unsigned shared, CUstream stream, void **parameters,
                       void **extra, const char *name) {
    Work w;
    Stream *s = stream_of(stream, name);
    if (!s) return INVALID_HANDLE;
    CUresult r = launch_work(f, d, shared, parameters, extra, &w);
    return r ? r : stream_add(s, w);
}
API cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, CUstream stream, void **parameters, void **extra) {
    return done(begin(__func__, CURRENT)
                    ?: launch(f, (unsigned[]){gx, gy, gz, bx, by, bz}, shared, stream, parameters, extra, __func__));
}
API cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, CUstream stream, void **parameters) {
    return done(begin(__func__, CURRENT)
                    ?: launch(f, (unsigned[]){gx, gy, gz, bx, by, bz}, shared, stream, parameters, NULL, __func__));
}
/* CUlaunchConfig */
typedef struct {
    unsigned dims[6], shared;
    CUstream stream;
    const void *attributes;
    unsigned n_attributes;
} Config;
API cuLaunchKernelEx(const Config *c, CUfunction f, void **parameters, void **extra) {
    return done(begin(__func__, CURRENT) ?: launch(f, c->dims, c->shared, c->stream, parameters, extra, __func__));
}
