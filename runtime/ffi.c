/* ffi_call: a handler in another library, by XLA's foreign function interface (ffi.h). The library is loaded when it is
   first called. The call is described by a text (passes/rules/ffi.c writes it) of numbers and of bytes preceded by
   their length, N:BYTES:

     LIBRARY SYMBOL PLACE ARGUMENTS RESULTS               and for each buffer
     DTYPE RANK ALIAS                                     ALIAS: of an argument: the result in its memory, or -1
     ATTRIBUTES                                           their number, and for each, sorted by name
     NAME KIND …                                          s DTYPE HEX; a DTYPE COUNT HEX; t N:BYTES; d ATTRIBUTES

   The arrays are the arguments, the results and the text; the sizes are all extents. */
#include "ffi.h"
#include "rt.h"
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- functions that handlers may call */
struct ffi_error {
    int32_t code;
    char message[];
};
struct ffi_future {
    _Atomic(ffi_error *) error;
    _Atomic bool done;
};
enum { UNIMPLEMENTED = 12, EXHAUSTED = 8 };

static ffi_error *error_new(int32_t code, const char *message) {
    size_t n = strlen(message) + 1;
    ffi_error *e = malloc(sizeof *e + n);
    if (!e) abort(); /* as the handler itself would */
    e->code = code;
    memcpy(e->message, message, n);
    return e;
}
static ffi_error *error_create(ffi_error_create *a) { return error_new(a->code, a->message); }
static void error_message(ffi_error_message *a) { a->message = a->error->message; }
static void error_destroy(ffi_error_message *a) { free(a->error); }
static ffi_error *refuse(void *a) {
    return error_new(UNIMPLEMENTED, "a library of jaxcc has no streams, types or states for handlers");
}
static ffi_error *allocate(ffi_allocate *a) {
    size_t alignment = a->alignment > sizeof(void *) ? a->alignment : sizeof(void *);
    return posix_memalign(&a->data, alignment, a->bytes ? a->bytes : 1) ? error_new(EXHAUSTED, "no memory") : NULL;
}
static ffi_error *give_back(ffi_free *a) { return free(a->data), NULL; }
static ffi_error *schedule(ffi_schedule *a) { return a->task(a->data), NULL; }
static ffi_error *threads(ffi_threads *a) { return *a->n = 1, NULL; }
static ffi_error *future_create(ffi_future_set *a) {
    a->future = calloc(1, sizeof *a->future);
    return a->future ? NULL : error_new(EXHAUSTED, "no memory");
}
static ffi_error *future_available(ffi_future_set *a) {
    a->future->done = true;
    return NULL;
}
static ffi_error *future_error(ffi_future_set *a) {
    a->future->error = a->error;
    a->future->done = true;
    return NULL;
}
static ffi_error *run_id(ffi_run_id *a) { return a->id = 0, NULL; }
static ffi_error *device(ffi_device *a) { return a->ordinal = 0, NULL; }

static const ffi_api api = {
    .head.size = FFI_SIZE(ffi_api, device),
    .version = {.head.size = sizeof api.version, .major = 0, .minor = 3},
    .error_create = error_create,
    .error_message = error_message,
    .error_destroy = error_destroy,
    .handler_register = refuse,
    .stream_get = refuse,
    .type_register = refuse,
    .context_get = refuse,
    .state_set = refuse,
    .state_get = refuse,
    .allocate = allocate,
    .free = give_back,
    .schedule = schedule,
    .threads = threads,
    .future_create = future_create,
    .future_available = future_available,
    .future_error = future_error,
    .run_id = run_id,
    .device = device,
};

/* ---- the text, and memory for the frame made from it */
typedef struct {
    const char *at;
    char *memory; /* of the frame; NULL while it is measured */
    size_t used;
} Reader;

static void *get(Reader *r, size_t bytes) {
    void *p = r->memory ? r->memory + r->used : NULL;
    r->used += (bytes + 15) / 16 * 16;
    return p;
}
static int64_t number(Reader *r) {
    char *end;
    int64_t n = strtoll(r->at, &end, 10);
    r->at = end;
    return n;
}
static ffi_bytes text(Reader *r) {
    size_t n = (size_t)number(r);
    ffi_bytes b = {r->at + 1, n};
    r->at += 1 + n;
    return b;
}
static unsigned digit(char c) { return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10); }
/* Bytes of two hexadecimal digits each. */
static void *hex(Reader *r, size_t *n) {
    r->at += strspn(r->at, " ");
    *n = strspn(r->at, "0123456789abcdef") / 2;
    unsigned char *to = get(r, *n);
    for (size_t i = 0; i < *n && r->memory; i++)
        to[i] = (unsigned char)(digit(r->at[2 * i]) << 4 | digit(r->at[2 * i + 1]));
    r->at += 2 * *n;
    return to;
}

static void attributes(Reader *r, ffi_attributes *to);
static void *attribute(Reader *r, int32_t *type) {
    size_t bytes;
    r->at += strspn(r->at, " ");
    char kind = *r->at++;
    if (kind == 't') {
        ffi_bytes *b = get(r, sizeof *b), read = text(r);
        if (b) *b = read;
        return *type = FFI_STRING, b;
    }
    if (kind == 'd') {
        ffi_attributes *d = get(r, sizeof *d), spare;
        attributes(r, d ? d : &spare);
        return *type = FFI_DICTIONARY, d;
    }
    int32_t dtype = (int32_t)number(r);
    size_t n = kind == 'a' ? (size_t)number(r) : 1;
    void *data = hex(r, &bytes);
    if (kind == 's') {
        ffi_scalar *s = get(r, sizeof *s);
        if (s) *s = (ffi_scalar){dtype, data};
        return *type = FFI_SCALAR, s;
    }
    ffi_array *a = get(r, sizeof *a);
    if (a) *a = (ffi_array){dtype, n, data};
    return *type = FFI_ARRAY, a;
}
static void attributes(Reader *r, ffi_attributes *to) {
    int64_t n = number(r);
    size_t count = (size_t)n;
    *to = (ffi_attributes){.head.size = FFI_SIZE(ffi_attributes, at), .n = n};
    to->types = get(r, count * sizeof *to->types);
    to->names = get(r, count * sizeof *to->names);
    to->at = get(r, count * sizeof *to->at);
    for (int64_t i = 0; i < n; i++) {
        ffi_bytes *name = get(r, sizeof *name), read = text(r);
        int32_t type;
        void *value = attribute(r, &type);
        if (!r->memory) continue;
        *name = read;
        to->names[i] = name, to->types[i] = type, to->at[i] = value;
    }
}
/* The buffers, and the result with which each argument shares its memory. */
static void buffers(Reader *r, ffi_list *to, int64_t n, void *const *arrays, const int64_t **sizes, int64_t *alias) {
    size_t count = (size_t)n;
    *to = (ffi_list){.head.size = FFI_SIZE(ffi_list, at), .n = n};
    to->types = get(r, count * sizeof *to->types);
    to->at = get(r, count * sizeof *to->at);
    for (int64_t i = 0; i < n; i++) {
        ffi_buffer *b = get(r, sizeof *b);
        int32_t dtype = (int32_t)number(r);
        int64_t rank = number(r), shared = number(r);
        if (r->memory) {
            *b = (ffi_buffer){{FFI_SIZE(ffi_buffer, dims), NULL}, dtype, arrays[i], rank, (int64_t *)*sizes};
            to->types[i] = FFI_BUFFER, to->at[i] = b;
            if (alias) alias[i] = shared;
        }
        *sizes += rank;
    }
}

/* ---- the call */
typedef struct {
    ffi_frame frame;
    ffi_bytes library, symbol, place;
    int64_t *alias;
} Call;
static void read_call(Reader *r, Call *c, void *const *arrays, const int64_t *sizes) {
    *c = (Call){.frame = {.head.size = FFI_SIZE(ffi_frame, attributes), .api = &api, .stage = FFI_EXECUTE}};
    c->library = text(r), c->symbol = text(r), c->place = text(r);
    int64_t n = number(r), results = number(r);
    c->alias = get(r, (size_t)n * sizeof *c->alias);
    buffers(r, &c->frame.arguments, n, arrays, &sizes, c->alias);
    buffers(r, &c->frame.results, results, arrays + n, &sizes, NULL);
    attributes(r, &c->frame.attributes);
}
static size_t bytes_of(const ffi_buffer *b, const int64_t *element) {
    size_t n = (size_t)element[b->dtype];
    for (int64_t i = 0; i < b->rank; i++) n *= (size_t)b->dims[i];
    return n;
}
/* The size of an element of each xla::PrimitiveType. */
static const int64_t element_bytes[] = {0, 1,  1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 0, 8, 2,
                                        0, 16, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

typedef struct Known {
    struct Known *next;
    const char *text; /* of the call: one for each place in a program */
    ffi_handler *handler;
} Known;
static ffi_handler *handler_of(jaxcc_rt_heap *call, const char *what, const Call *c) {
    static _Atomic(Known *) known;
    for (const Known *k = known; k; k = k->next)
        if (k->text == what) return k->handler;
    char library[1024], symbol[256];
    snprintf(library, sizeof library, "%.*s", (int)c->library.n, c->library.at);
    snprintf(symbol, sizeof symbol, "%.*s", (int)c->symbol.n, c->symbol.at);
    void *l = dlopen(library, RTLD_NOW | RTLD_LOCAL), *f = l ? dlsym(l, symbol) : NULL;
    const char *why = f ? NULL : dlerror();
    Known *k = f ? malloc(sizeof *k) : NULL;
    if (f && !k) jaxcc_rt_stop(call, JAXCC_MEMORY, "no memory to call a handler");
    if (!f && !l) jaxcc_rt_stop(call, JAXCC_MISSING, "%.*s: %s", (int)c->place.n, c->place.at, why ? why : library);
    if (!f) jaxcc_rt_stop(call, JAXCC_MISSING, "%.*s: '%s' has no '%s'", (int)c->place.n, c->place.at, library, symbol);
    k->text = what;
    memcpy(&k->handler, &f, sizeof f);
    k->next = known;
    while (!atomic_compare_exchange_weak(&known, &k->next, k)) {
    }
    return k->handler;
}
/* The handler's answer, once everything it started has finished. */
static ffi_error *answer(ffi_handler *handler, ffi_frame *frame) {
    ffi_error *error = handler(frame);
    ffi_future *f = frame->future;
    if (!f) return error;
    while (!f->done) sched_yield();
    if (!error) error = f->error;
    free(f);
    return error;
}
void jaxcc_rt_ffi(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    const char *what = arrays[sizes[0]];
    Reader measure = {.at = what};
    Call c;
    read_call(&measure, &c, arrays, sizes + 1);
    ffi_handler *handler = handler_of(call, what, &c);
    Reader r = {.at = what, .memory = jaxcc_rt_heap_get(call, (int64_t)measure.used + 1)};
    read_call(&r, &c, arrays, sizes + 1);
    for (int64_t i = 0; i < c.frame.arguments.n; i++) {
        if (c.alias[i] < 0) continue;
        ffi_buffer *a = c.frame.arguments.at[i], *b = c.frame.results.at[c.alias[i]];
        jaxcc_rt_copy(b->data, a->data, (int64_t)bytes_of(a, element_bytes));
        a->data = b->data;
    }
    ffi_error *error = answer(handler, &c.frame);
    jaxcc_rt_heap_put(call, r.memory);
    if (!error) return;
    char message[192];
    int32_t status = error->code == EXHAUSTED ? JAXCC_MEMORY : JAXCC_CHECK;
    snprintf(message, sizeof message, "%s", error->message);
    for (char *m = message; (m = strchr(m, '\n'));) *m = ' '; /* errors are one line */
    free(error);
    jaxcc_rt_stop(call, status, "%.*s: ffi_call: %s", (int)c.place.n, c.place.at, message);
}
