/* Types of the libraries that jaxcc writes. Types only: no library exports a name that begins with jaxcc_. */
#ifndef JAXCC_H
#define JAXCC_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns: 0, or the kind of failure, after which outputs are undefined. */
enum {
    JAXCC_OK,
    JAXCC_ARGUMENT,  /* NULL for an array that has elements, other memory, or a tensor of another form */
    JAXCC_DIMENSION, /* negative, unequal where they must be equal, a divisor of zero, too large */
    JAXCC_MEMORY,    /* no memory for the workspace or for an output */
    JAXCC_CPU,       /* the library was compiled for instructions that this CPU lacks, or for later GPUs */
    JAXCC_CHECK,     /* --debug-nans, --check-bounds, --tape or check stopped the call, or a handler failed */
    JAXCC_MISSING,   /* something the program needs is not there: LAPACK, a handler, a GPU */
    JAXCC_INTERNAL
};

/* An output whose shape the program computes; release() frees what the library allocated. */
typedef struct jaxcc_array {
    void *data;
    int32_t rank;
    const int64_t *dims;
    void (*release)(struct jaxcc_array *);
} jaxcc_array;

/* A parallel loop over [0, n): calls body on disjoint ranges that cover it, of at least `grain`
   each if possible, and returns when all are done. */
typedef void jaxcc_body(void *ctx, int64_t lo, int64_t hi);
typedef void jaxcc_parallel_for(void *pool, jaxcc_body *body, void *ctx, int64_t n, int64_t grain);

/* Receives the output of debug_print: one message, without its newline. */
typedef void jaxcc_print(void *user, const char *text);

/* One input or output. Extents are text: "128", "b", "2*b + 1". */
typedef struct {
    const char *name, *dtype;
    int32_t rank;
    const char *const *extents;
} jaxcc_type;

/* The description of a program in a library. */
typedef struct {
    uint32_t version, size; /* of this struct: fields are only added */
    const char *name;
    int32_t n_dims, n_in, n_out;
    const char *const *dims;
    const jaxcc_type *in, *out;
    int32_t (*call)(const int64_t *dims, const void *const *in, void *const *out);
    const char *(*error)(void);                                 /* the thread's last failure, one line */
    int64_t (*workspace)(const int64_t *dims);                  /* bytes beside arrays of computed sizes */
    void (*set_num_threads)(int n);                             /* 0: as many as there are CPUs */
    void (*set_parallel_for)(jaxcc_parallel_for *, void *pool); /* NULL: the library's own */
    void (*set_print)(jaxcc_print *, void *user);               /* NULL: standard error */
} jaxcc_program;

#ifdef __cplusplus
}
#endif
#endif
