/* Functions that emitted code calls. All are hidden in the library and compiled for the baseline of the
   architecture. */
#ifndef JAXCC_RT_H
#define JAXCC_RT_H
#include "jaxcc.h"
#include <stdarg.h>

/* Additions in vectors that are worth waking a thread: PARALLEL_COST in compiler/codegen/cost.h. */
enum { JAXCC_RT_GRAIN = 2000000 };
/* Runs body over [0, n): inline if that is not worth other threads, if the library's pool is busy (nested and concurrent
   calls), or with one thread; else on the pool, in ranges of a 40th of `grain` or more, on a host's pool of a 10th, the
   last one excepted. A grain is what is worth waking a thread, computation of about 50 us; with threads that are awake,
   or in jobs that follow each other, less is worth it. */
void jaxcc_rt_parallel_for(jaxcc_body *body, void *ctx, int64_t n, int64_t grain);
/* The same in no more ranges than there are threads: neighbouring elements have much in common. */
void jaxcc_rt_parallel_ranges(jaxcc_body *body, void *ctx, int64_t n, int64_t grain);
void jaxcc_rt_set_num_threads(int n);
/* Is it known that jaxcc_rt_parallel_for has the calling thread alone? */
_Bool jaxcc_rt_alone(void);
void jaxcc_rt_set_parallel_for(jaxcc_parallel_for *, void *pool);
void jaxcc_rt_set_print(jaxcc_print *, void *user);

/* At least `bytes` of memory aligned to 64, from the library's free list; NULL when memory runs out. */
void *jaxcc_rt_workspace_get(int64_t bytes);
void jaxcc_rt_workspace_put(void *);

/* copy.c: as memcpy. */
void jaxcc_rt_copy(void *to, const void *from, int64_t bytes);

/* The calling thread's last failure; "" before the first. */
const char *jaxcc_rt_error(void);
/* Each sets this text and returns the status. */
__attribute__((format(printf, 2, 3), cold)) int32_t jaxcc_rt_fail(int32_t status, const char *format, ...);
__attribute__((format(printf, 2, 0), cold)) int32_t jaxcc_rt_fail_list(int32_t status, const char *format, va_list);
__attribute__((cold)) int32_t jaxcc_rt_fail_text(int32_t status, const char *text);
__attribute__((cold)) int32_t jaxcc_rt_fail_null(const char *argument);
__attribute__((cold)) int32_t jaxcc_rt_fail_negative(const char *dim, int64_t value);
__attribute__((cold)) int32_t jaxcc_rt_fail_unequal(const char *a, int64_t x, const char *b, int64_t y);
__attribute__((cold)) int32_t jaxcc_rt_fail_above(const char *a, int64_t x, const char *b, int64_t y);
__attribute__((cold)) int32_t jaxcc_rt_fail_divisor(const char *expression);
__attribute__((cold)) int32_t jaxcc_rt_fail_size(const char *argument);
__attribute__((cold)) int32_t jaxcc_rt_fail_memory(int64_t bytes, const char *hint);
/* Fails if one of n arguments is NULL: the first nfirst are at `first`, the others at their own index in `rest`.
   `names` lists them in order, separated by blanks; "-" for one that may be NULL. */
int32_t jaxcc_rt_check_pointers(void *const *first, int64_t nfirst, void *const *rest, int64_t n, const char *names);

/* Calls that compute sizes or call C code (heap.c). The functions that follow may end the body early: a negative size,
   no memory. */
typedef struct jaxcc_rt_heap jaxcc_rt_heap;
int32_t jaxcc_rt_heap_run(void (*body)(void *args, jaxcc_rt_heap *), void *args);
void *jaxcc_rt_heap_get(jaxcc_rt_heap *, int64_t bytes);
/* The same for what a loop of so many turns stacks. `error`: the text if there is none, with {0} for `turns` and {1}
   for `row`. */
void *jaxcc_rt_heap_rows(jaxcc_rt_heap *, int64_t bytes, int64_t turns, int64_t row, const char *error);
void jaxcc_rt_heap_put(jaxcc_rt_heap *, void *);
void jaxcc_rt_heap_dim(jaxcc_rt_heap *, const char *name, int64_t value);
/* The same for one of several devices (comm.h), and its end of the communicator. */
typedef struct jaxcc_rt_comm jaxcc_rt_comm;
int32_t jaxcc_rt_device_run(void (*body)(void *args, jaxcc_rt_heap *), void *args, jaxcc_rt_comm *);
jaxcc_rt_comm *jaxcc_rt_comm_of(jaxcc_rt_heap *);
/* Ends the call with this status and text; only on the thread that runs the body. */
__attribute__((format(printf, 3, 4), cold)) _Noreturn void jaxcc_rt_stop(jaxcc_rt_heap *, int32_t status,
                                                                         const char *format, ...);
/* The same; the thread's text says why. */
_Noreturn void jaxcc_rt_heap_end(jaxcc_rt_heap *, int32_t status);
/* A function for runtime_call. `arrays`: operands, then results, dense, then the equation's `text`; `sizes`: its
   sizes. */
typedef void jaxcc_rt_function(jaxcc_rt_heap *, void *const *arrays, const int64_t *sizes);
jaxcc_rt_function jaxcc_rt_print, jaxcc_rt_check, jaxcc_rt_ffi;
/* What devices of a program for several exchange (comm.c). */
jaxcc_rt_function jaxcc_rt_device, jaxcc_rt_all_gather, jaxcc_rt_all_to_all, jaxcc_rt_permute;
int32_t jaxcc_rt_device_number(jaxcc_rt_heap *); /* for code whose arrays are not on the host */
/* Memory for an output, freed by its release(). */
void *jaxcc_rt_heap_array(jaxcc_rt_heap *, jaxcc_array *out, int32_t rank, const int64_t *dims, int64_t bytes);

/* An output whose memory is still to be had: by() frees it, which is called if the call fails. */
void jaxcc_rt_heap_output(jaxcc_rt_heap *, jaxcc_array *out, int32_t rank, const int64_t *dims,
                          void (*by)(jaxcc_array *));
_Noreturn void jaxcc_rt_heap_no_rows(jaxcc_rt_heap *, int64_t turns, int64_t row, const char *error);
/* A call on a GPU, or one of several devices there (else NULL), with its state (cuda_call.h). */
int32_t jaxcc_rt_cuda_body(void (*body)(void *args, jaxcc_rt_heap *), void *args, jaxcc_rt_comm *, void *cuda);
void *jaxcc_rt_cuda_of(jaxcc_rt_heap *);

/* Operations for which some CPUs have no instruction (math.c): as libm's functions of these names. */
double jaxcc_rt_fmod(double, double), jaxcc_rt_fma(double, double, double);
float jaxcc_rt_fmodf(float, float), jaxcc_rt_fmaf(float, float, float);
double jaxcc_rt_floor(double), jaxcc_rt_ceil(double), jaxcc_rt_trunc(double);
double jaxcc_rt_round(double), jaxcc_rt_roundeven(double);
float jaxcc_rt_floorf(float), jaxcc_rt_ceilf(float), jaxcc_rt_truncf(float);
float jaxcc_rt_roundf(float), jaxcc_rt_roundevenf(float);

/* The features of this CPU, a bit per row of cpu.def; set before any other constructor runs. The entry of a library
   tests `need & ~jaxcc_rt_cpu` and returns jaxcc_rt_fail_cpu(need). */
extern uint64_t jaxcc_rt_cpu;
/* Does this CPU have the feature of that name in cpu.def? */
int jaxcc_rt_has(const char *feature);
__attribute__((cold)) int32_t jaxcc_rt_fail_cpu(uint64_t need);

#endif
