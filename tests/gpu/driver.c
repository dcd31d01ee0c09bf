/* The driver as a whole: its start, devices, contexts, handles, errors, and what it reports at the end. */
#include "driver.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Device devices[MOST_DEVICES];
Settings settings = {.n_devices = 1, .version = 12080, .memory = (size_t)8 << 30};
Counts counts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t started; /* the process that called cuInit */
static const char *function = "the driver";

/* ---- messages */
enum { MOST_SAID = 20 };
static char said[MOST_SAID][200];
CUresult misused(CUresult r, const char *format, ...) {
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "libcuda: %s: %s\n", function, text);
    if (counts.misuses < MOST_SAID)
        snprintf(said[counts.misuses], sizeof *said, "misuse: %.60s: %.120s", function, text);
    counts.misuses++;
    return r;
}

/* ---- handles */
#define HANDLE_BITS ((uint64_t)0xC0DA << 48) /* no address of the host */
typedef struct {
    Kind kind;
    int device;
    bool alive;
    void *object;
} Handle;
static Handle *handles;
static size_t n_handles, room;
static const char *const kinds[] = {"nothing", "context", "module",     "function",           "stream",
                                    "event",   "graph",   "graph node", "graph that can run", "memory pool"};

static void *handle_of(size_t i) { return (void *)(HANDLE_BITS | (i + 1) << 4); }
static Handle *find(const void *handle) {
    uint64_t i = ((uint64_t)handle & ~HANDLE_BITS) >> 4;
    bool valid = ((uint64_t)handle & HANDLE_BITS) == HANDLE_BITS && i > 0 && i <= n_handles;
    return valid && handle_of(i - 1) == handle ? &handles[i - 1] : NULL;
}
void *handle_new(Kind kind, int device, void *object) {
    if (n_handles == room) {
        room = room ? 2 * room : 64;
        handles = realloc(handles, room * sizeof *handles);
        if (!handles) abort();
    }
    handles[n_handles] = (Handle){kind, device, true, object};
    return handle_of(n_handles++);
}
void *handle_again(Kind kind, int device, void *object) {
    size_t i = 0;
    while (i < n_handles && (handles[i].kind != kind || handles[i].alive)) i++;
    if (i == n_handles || !settings.reuse) return handle_new(kind, device, object);
    handles[i] = (Handle){kind, device, true, object};
    return handle_of(i);
}
void *handle_object(Kind kind, const void *handle) {
    const Handle *h = find(handle);
    if (h && h->kind == kind && h->alive) return h->object;
    if (h && h->kind == kind)
        misused(0, "the %s %p was released", kinds[kind], handle);
    else
        misused(0, "%p is no %s", handle, kinds[kind]);
    return NULL;
}
int handle_device(const void *handle) {
    const Handle *h = find(handle);
    return h ? h->device : -1;
}
/* Functions belong to modules, nodes to graphs, the default pools to nobody. */
static bool is_counted(const Handle *h) {
    return h->kind != FUNCTION && h->kind != NODE && (h->kind != POOL || h->device >= 0);
}
void handle_end(const void *handle) {
    Handle *h = find(handle);
    if (h) h->alive = false;
}

/* ---- failures on request */
typedef struct {
    char name[64];
    int at, calls;
    CUresult error;
} Failure;
enum { MOST_FAILURES = 16 };
static Failure failures[MOST_FAILURES];
static int n_failures;
static bool failing = true;
/* What a function fails with if nothing else is asked for: by the beginning of its name. */
static const struct {
    const char *name;
    CUresult error;
} usual[] = {{"cuInit", CUDA_ERROR_NO_DEVICE},
             {"cuDeviceGetCount", CUDA_ERROR_NO_DEVICE},
             {"cuDevicePrimaryCtxRetain", 46},
             {"cuDevice", INVALID_DEVICE},
             {"cuCtx", INVALID_CONTEXT},
             {"cuModuleLoad", CUDA_ERROR_INVALID_PTX},
             {"cuModuleGet", NOT_FOUND},
             {"cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY},
             {"cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY},
             {"cuStreamCreate", CUDA_ERROR_OUT_OF_MEMORY},
             {"cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY},
             {"cuLaunch", 701},
             {"", UNKNOWN}};
static CUresult usual_error(const char *name) {
    int i = 0;
    while (strncmp(name, usual[i].name, strlen(usual[i].name)) != 0) i++;
    return usual[i].error;
}
static void read_failures(const char *text) {
    for (n_failures = 0; text && *text && n_failures < MOST_FAILURES; n_failures++) {
        Failure *f = &failures[n_failures];
        size_t n = strcspn(text, ":,");
        *f = (Failure){.at = 1};
        snprintf(f->name, sizeof f->name, "%.*s", (int)n, text);
        f->error = usual_error(f->name);
        text += n;
        if (*text == ':') f->at = (int)strtol(text + 1, (char **)&text, 10);
        if (*text == ':') f->error = (CUresult)strtol(text + 1, (char **)&text, 10);
        text += *text == ',';
    }
}
/* For tests: the same, from now on; NULL: no failures, until the same text goes on counting. */
__attribute__((visibility("default"))) void jaxcc_gpu_fail(const char *text) {
    static char last[256];
    pthread_mutex_lock(&lock);
    if (text && strcmp(text, last) != 0) {
        snprintf(last, sizeof last, "%s", text);
        read_failures(text);
    }
    failing = text;
    pthread_mutex_unlock(&lock);
}
static CUresult failure(const char *name) {
    for (int i = 0; i < n_failures && failing; i++)
        if (!strcmp(failures[i].name, name) && (!failures[i].at || ++failures[i].calls == failures[i].at))
            return failures[i].error;
    return 0;
}
static bool is_sticky(CUresult r) { return r == 214 || r == 226 || (r >= 700 && r <= 721 && r != 701 && r != 704); }

/* ---- calls */
enum { MOST_CONTEXTS = 32 };
static _Thread_local struct {
    int n, device[MOST_CONTEXTS];
} stack;

int current_device(void) { return stack.n ? stack.device[stack.n - 1] : -1; }
CUresult lost(int device, CUresult r) {
    if (device >= 0 && !devices[device].error) devices[device].error = r;
    return r;
}
CUresult begin(const char *name, int needs) {
    pthread_mutex_lock(&lock);
    function = name;
    ptx_device = current_device();
    counts.calls++;
    if (needs == ANYTHING) return 0;
    if (started != getpid()) return NOT_INITIALIZED;
    CUresult r = failure(name);
    if (r && is_sticky(r)) lost(current_device(), r);
    if (r) return r;
    if (needs != CURRENT) return 0;
    if (current_device() < 0) return misused(INVALID_CONTEXT, "no context is current");
    return devices[current_device()].error;
}
CUresult done(CUresult r) {
    pthread_mutex_unlock(&lock);
    return r;
}

/* ---- start */
static long number(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}
static void read_settings(void) {
    const char *sm = getenv("JAXCC_GPU_SM");
    int last = 80;
    settings = (Settings){.lazy = (int)number("JAXCC_GPU_LAZY", 0),
                          .blocking = number("CUDA_LAUNCH_BLOCKING", 0),
                          .reuse = number("JAXCC_GPU_REUSE", 0),
                          .n_devices = (int)number("JAXCC_GPU_DEVICES", 1),
                          .version = (int)number("JAXCC_GPU_DRIVER", 12080),
                          .memory = (size_t)number("JAXCC_GPU_MEMORY", (long)8 << 30)};
    if (settings.n_devices > MOST_DEVICES) settings.n_devices = MOST_DEVICES;
    ptx_options.races = (int)number("JAXCC_GPU_RACES", 0);
    ptx_options.order = (int)number("JAXCC_GPU_ORDER", 0);
    ptx_options.host = number("JAXCC_GPU_HOST", 0);
    ptx_options.uninitialised = number("JAXCC_GPU_UNINITIALISED", 0);
    ptx_options.most = (uint64_t)number("JAXCC_GPU_MOST", 0);
    for (int i = 0; i < MOST_DEVICES; i++) {
        if (sm && *sm) last = (int)strtol(sm, (char **)&sm, 10), sm += *sm == ',';
        devices[i].sm = last;
    }
    read_failures(getenv("JAXCC_GPU_FAIL"));
}
static CUresult init(void) {
    static bool read;
    if (started && started != getpid()) return NOT_INITIALIZED; /* a child of a process that uses the GPU */
    if (!read) read_settings();
    read = true;
    ptx_set_conditional = graph_set_condition;
    CUresult r = failure("cuInit");
    if (r) return r;
    if (settings.n_devices == 0) return CUDA_ERROR_NO_DEVICE;
    started = getpid();
    return 0;
}
API cuInit(unsigned flags) { return done(begin(__func__, ANYTHING) ?: flags ? CUDA_ERROR_INVALID_VALUE : init()); }
static CUresult give(int *to, int value) { return *to = value, 0; }
API cuDriverGetVersion(int *version) { return done(begin(__func__, STARTED) ?: give(version, settings.version)); }
API cuDeviceGetCount(int *n) { return done(begin(__func__, STARTED) ?: give(n, settings.n_devices)); }

/* ---- devices */
static CUresult check_device(int d) { return d < 0 || d >= settings.n_devices ? INVALID_DEVICE : 0; }
API cuDeviceGet(CUdevice *d, int ordinal) {
    return done(begin(__func__, STARTED) ?: check_device(ordinal) ?: give(d, ordinal));
}
static CUresult device_name(char *name, int size, int d) {
    return snprintf(name, (size_t)size, "interpreter of sm_%d", devices[d].sm), 0;
}
API cuDeviceGetName(char *name, int size, CUdevice d) {
    return done(begin(__func__, STARTED) ?: check_device(d) ?: device_name(name, size, d));
}
API cuDeviceTotalMem_v2(size_t *bytes, CUdevice d) {
    CUresult r = begin(__func__, STARTED) ?: check_device(d);
    *bytes = settings.memory;
    return done(r);
}
unsigned most_shared(int device) {
    int sm = devices[device].sm;
    if (sm == 80 || sm == 87) return 163 << 10;
    return sm >= 90 && sm < 120 ? 227 << 10 : 99 << 10;
}
static CUresult attribute(int *value, int which, int d) {
    enum { SM_SHARED = 81, BLOCK_SHARED = 97, RESERVED = 1 << 10 };
    static const struct {
        int which, value;
    } table[] = {{1, 1024},  {2, 1024},   {3, 1024},   {4, 64}, {5, INT32_MAX}, {6, 65535}, {7, 65535},    {8, 49152},
                 {9, 65536}, {10, 32},    {12, 65536}, {16, 4}, {31, 1},        {32, 0},    {38, 4 << 20}, {39, 2048},
                 {41, 1},    {82, 65536}, {83, 1},     {95, 1}, {106, 32},      {115, 1}};
    *value = which == 75 ? devices[d].sm / 10 : which == 76 ? devices[d].sm % 10 : 0;
    if (which == SM_SHARED) *value = (int)most_shared(d) + RESERVED;
    if (which == BLOCK_SHARED) *value = (int)most_shared(d);
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].which == which) *value = table[i].value;
    return 0;
}
API cuDeviceGetAttribute(int *value, int which, CUdevice d) {
    return done(begin(__func__, STARTED) ?: check_device(d) ?: attribute(value, which, d));
}

/* ---- contexts: the primary ones only */
static CUresult retain(CUcontext *context, int d) {
    if (devices[d].retained++ == 0) devices[d].context = handle_new(CONTEXT, d, &devices[d]);
    *context = devices[d].context;
    return devices[d].error;
}
API cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice d) {
    return done(begin(__func__, STARTED) ?: check_device(d) ?: retain(context, d));
}
/* What was in the context is gone with it. Not to have released it is a leak, unless nothing could be any more. */
static void forget(int d) {
    for (size_t i = 0; i < n_handles; i++) {
        if (handles[i].device != d || !handles[i].alive) continue;
        if (!devices[d].error && is_counted(&handles[i])) misused(0, "not released: %s", kinds[handles[i].kind]);
        handles[i].alive = false;
    }
}
static CUresult release(int d) {
    if (!devices[d].retained) return misused(INVALID_CONTEXT, "the primary context is not retained");
    if (--devices[d].retained) return 0;
    handle_end(devices[d].context);
    if (!devices[d].error) stream_drain_all(d);
    forget(d);
    memory_forget(d);
    stream_forget(d);
    for (int i = 0; i < MOST_DEVICES; i++) devices[d].peers[i] = devices[i].peers[d] = false;
    devices[d].error = 0;
    return 0;
}
API cuDevicePrimaryCtxRelease_v2(CUdevice d) { return done(begin(__func__, STARTED) ?: check_device(d) ?: release(d)); }
static CUresult state(int d, unsigned *flags, int *active) {
    *flags = 0;
    *active = devices[d].retained > 0;
    return 0;
}
API cuDevicePrimaryCtxGetState(CUdevice d, unsigned *flags, int *active) {
    return done(begin(__func__, STARTED) ?: check_device(d) ?: state(d, flags, active));
}
static CUresult push(CUcontext context) {
    if (!handle_object(CONTEXT, context)) return INVALID_CONTEXT;
    if (stack.n == MOST_CONTEXTS) return misused(UNKNOWN, "%d contexts are pushed", stack.n);
    stack.device[stack.n++] = handle_device(context);
    return 0;
}
API cuCtxPushCurrent_v2(CUcontext context) { return done(begin(__func__, STARTED) ?: push(context)); }
static CUresult pop(CUcontext *context) {
    if (!stack.n) return misused(INVALID_CONTEXT, "no context is pushed");
    if (context) *context = devices[current_device()].context;
    stack.n--;
    return 0;
}
API cuCtxPopCurrent_v2(CUcontext *context) { return done(begin(__func__, STARTED) ?: pop(context)); }
static CUresult set_current(CUcontext context) {
    if (stack.n) stack.n--;
    return context ? push(context) : 0;
}
API cuCtxSetCurrent(CUcontext context) { return done(begin(__func__, STARTED) ?: set_current(context)); }
API cuCtxGetCurrent(CUcontext *context) {
    CUresult r = begin(__func__, STARTED);
    *context = current_device() < 0 ? NULL : devices[current_device()].context;
    return done(r);
}
API cuCtxGetDevice(CUdevice *d) { return done(begin(__func__, CURRENT) ?: give(d, current_device())); }
static CUresult synchronize(void) {
    CUresult r = stream_waits(current_device());
    if (r) return r;
    counts.waits++;
    return stream_drain_all(current_device());
}
API cuCtxSynchronize(void) { return done(begin(__func__, CURRENT) ?: synchronize()); }

/* ---- several devices */
API cuDeviceCanAccessPeer(int *can, CUdevice a, CUdevice b) {
    return done(begin(__func__, STARTED) ?: check_device(a) ?: check_device(b) ?: give(can, a != b));
}
static CUresult set_peer(CUcontext other, bool on) {
    if (!handle_object(CONTEXT, other)) return INVALID_CONTEXT;
    bool *is = &devices[current_device()].peers[handle_device(other)];
    if (*is == on) return on ? PEER_ALREADY : PEER_NOT_ENABLED;
    *is = on;
    return 0;
}
API cuCtxEnablePeerAccess(CUcontext other, unsigned flags) {
    return done(begin(__func__, CURRENT) ?: flags ? CUDA_ERROR_INVALID_VALUE : set_peer(other, true));
}
API cuCtxDisablePeerAccess(CUcontext other) { return done(begin(__func__, CURRENT) ?: set_peer(other, false)); }

/* ---- errors by name */
static const struct {
    CUresult error;
    const char *name;
} names[] = {{0, "CUDA_SUCCESS"},
             {1, "CUDA_ERROR_INVALID_VALUE"},
             {2, "CUDA_ERROR_OUT_OF_MEMORY"},
             {3, "CUDA_ERROR_NOT_INITIALIZED"},
             {4, "CUDA_ERROR_DEINITIALIZED"},
             {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
             {100, "CUDA_ERROR_NO_DEVICE"},
             {101, "CUDA_ERROR_INVALID_DEVICE"},
             {201, "CUDA_ERROR_INVALID_CONTEXT"},
             {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
             {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
             {218, "CUDA_ERROR_INVALID_PTX"},
             {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
             {400, "CUDA_ERROR_INVALID_HANDLE"},
             {401, "CUDA_ERROR_ILLEGAL_STATE"},
             {500, "CUDA_ERROR_NOT_FOUND"},
             {600, "CUDA_ERROR_NOT_READY"},
             {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
             {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
             {702, "CUDA_ERROR_LAUNCH_TIMEOUT"},
             {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
             {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"},
             {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
             {710, "CUDA_ERROR_ASSERT"},
             {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
             {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
             {719, "CUDA_ERROR_LAUNCH_FAILED"},
             {801, "CUDA_ERROR_NOT_SUPPORTED"},
             {802, "CUDA_ERROR_SYSTEM_NOT_READY"},
             {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
             {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
             {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
             {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
             {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
             {907, "CUDA_ERROR_CAPTURED_EVENT"},
             {999, "CUDA_ERROR_UNKNOWN"}};
static CUresult error_name(CUresult r, const char **name) {
    *name = NULL;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].error == r) *name = names[i].name;
    return *name ? 0 : CUDA_ERROR_INVALID_VALUE;
}
API cuGetErrorName(CUresult r, const char **name) { return done(begin(__func__, ANYTHING) ?: error_name(r, name)); }
API cuGetErrorString(CUresult r, const char **name) { return done(begin(__func__, ANYTHING) ?: error_name(r, name)); }

/* ---- the end */
static FILE *report(const char *variable) {
    const char *path = getenv(variable);
    return path && *path ? fopen(path, "a") : NULL;
}
static void report_leaks(FILE *f) {
    for (uint64_t i = 0; i < counts.misuses && i < MOST_SAID; i++) fprintf(f, "%s\n", said[i]);
    for (size_t i = 0; i < n_handles; i++) {
        const Handle *h = &handles[i];
        if (h->alive && is_counted(h)) fprintf(f, "leak: %s of device %d\n", kinds[h->kind], h->device);
    }
    memory_report(f);
}
static void report_counts(FILE *f) {
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"calls", counts.calls},
                {"launches", ptx_counts.launches},
                {"waits", counts.waits},
                {"to_device", counts.to_device},
                {"to_host", counts.to_host},
                {"on_device", counts.on_device},
                {"graphs", counts.graphs},
                {"instantiated", counts.instantiated},
                {"captures", counts.captures},
                {"allocations", counts.allocations},
                {"peak", counts.peak},
                {"misuses", counts.misuses},
                {"warp_instructions", ptx_counts.warp_instructions},
                {"lane_instructions", ptx_counts.lane_instructions},
                {"global_read", ptx_counts.global_read},
                {"global_written", ptx_counts.global_written},
                {"shared_conflicts", ptx_counts.shared_conflicts},
                {"divergent_branches", ptx_counts.divergent_branches}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        fprintf(f, "%s%s %llu", i ? " " : "", rows[i].name, (unsigned long long)rows[i].value);
    for (int i = 0; i < settings.n_devices; i++)
        fprintf(f, " received_%d %llu", i, (unsigned long long)counts.received[i]);
    fprintf(f, "\n");
}
__attribute__((destructor)) static void at_end(void) {
    FILE *f;
    if (!started || started != getpid()) return;
    if ((f = report("JAXCC_GPU_LEAKS"))) report_leaks(f), fclose(f);
    if ((f = report("JAXCC_GPU_COUNTS"))) report_counts(f), fclose(f);
}
