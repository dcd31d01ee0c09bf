/* XLA's foreign function interface, version 0, as far as a caller of handlers needs it: the arguments of a handler, and
   the functions that it may call. Layouts are those of the public header xla/ffi/api/c_api.h; names are ours. Every
   struct begins with its size, up to and including the last field of the version, and a list of extensions, empty
   here. */
#ifndef JAXCC_FFI_H
#define JAXCC_FFI_H
#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t size;
    void *extensions;
} ffi_head;
#define FFI_SIZE(T, last) (offsetof(T, last) + sizeof(((T *)0)->last))

/* ---- the arguments of a handler */
enum { FFI_BUFFER = 1 };
enum { FFI_ARRAY = 1, FFI_DICTIONARY, FFI_SCALAR, FFI_STRING }; /* types of attributes */
enum { FFI_EXECUTE = 3 };                                       /* the stage */
typedef struct {
    ffi_head head;
    int32_t dtype; /* xla::PrimitiveType */
    void *data;
    int64_t rank;
    int64_t *dims;
} ffi_buffer;
typedef struct {
    const char *at;
    size_t n;
} ffi_bytes;
typedef struct {
    int32_t dtype;
    void *value;
} ffi_scalar;
typedef struct {
    int32_t dtype;
    size_t n;
    void *data;
} ffi_array;
typedef struct { /* arguments, results */
    ffi_head head;
    int64_t n;
    int32_t *types;
    void **at;
} ffi_list;
typedef struct { /* sorted by name */
    ffi_head head;
    int64_t n;
    int32_t *types;
    ffi_bytes **names;
    void **at;
} ffi_attributes;
typedef struct ffi_error ffi_error;
typedef struct ffi_future ffi_future;
typedef struct ffi_api ffi_api;
typedef struct {
    ffi_head head;
    const ffi_api *api;
    void *context;
    int32_t stage;
    ffi_list arguments, results;
    ffi_attributes attributes;
    ffi_future *future; /* set by handlers that continue after they return; not counted in the size */
} ffi_frame;
typedef ffi_error *ffi_handler(ffi_frame *);

/* ---- functions that a handler may call: each takes a struct that begins with an ffi_head */
typedef struct {
    ffi_head head;
    const char *message;
    int32_t code;
} ffi_error_create;
typedef struct {
    ffi_head head;
    ffi_error *error;
    const char *message;
} ffi_error_message;
typedef struct {
    ffi_head head;
    void *context;
    size_t bytes, alignment;
    void *data;
} ffi_allocate;
typedef struct {
    ffi_head head;
    void *context;
    size_t bytes;
    void *data;
} ffi_free;
typedef struct {
    ffi_head head;
    void *context;
    void (*task)(void *);
    void *data;
} ffi_schedule;
typedef struct {
    ffi_head head;
    void *context;
    int64_t *n;
} ffi_threads;
typedef struct {
    ffi_head head;
    ffi_future *future;
    ffi_error *error;
} ffi_future_set;
typedef struct {
    ffi_head head;
    void *context;
    int64_t id;
} ffi_run_id;
typedef struct {
    ffi_head head;
    void *context;
    int32_t ordinal;
} ffi_device;
struct ffi_api {
    ffi_head head;
    struct {
        ffi_head head;
        int32_t major, minor;
    } version;
    const void *internal;
    ffi_error *(*error_create)(ffi_error_create *);
    void (*error_message)(ffi_error_message *);
    void (*error_destroy)(ffi_error_message *);
    ffi_error *(*handler_register)(void *), *(*stream_get)(void *), *(*type_register)(void *), *(*context_get)(void *);
    ffi_error *(*state_set)(void *), *(*state_get)(void *);
    ffi_error *(*allocate)(ffi_allocate *), *(*free)(ffi_free *);
    ffi_error *(*schedule)(ffi_schedule *), *(*threads)(ffi_threads *);
    ffi_error *(*future_create)(ffi_future_set *), *(*future_available)(ffi_future_set *),
        *(*future_error)(ffi_future_set *);
    ffi_error *(*run_id)(ffi_run_id *), *(*device)(ffi_device *);
};
#endif
