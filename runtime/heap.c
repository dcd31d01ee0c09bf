/* Memory of one call whose sizes the program itself computes. An error there ends the call: all its memory is freed,
   and the status says why. */
#include "rt.h"
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALIGN = 64 };
typedef struct Block {
    struct Block *next, *before;
} Block;
typedef struct Output {
    struct Output *before;
    jaxcc_array *array;
} Output;
struct jaxcc_rt_heap {
    jmp_buf end;
    int32_t status;
    jaxcc_rt_comm *comm; /* for one device of several; else NULL */
    void *cuda;          /* the call's state on its GPU (cuda.c), or NULL */
    Block blocks;        /* a ring */
    Output *outputs;     /* allocated so far, in blocks: freed if the call fails */
};

static void release(jaxcc_array *a) {
    free(a->data);
    free((void *)a->dims);
    *a = (jaxcc_array){0};
}
static _Noreturn void stop(jaxcc_rt_heap *h, int32_t status) {
    h->status = status;
    longjmp(h->end, 1);
}
static int32_t run(void (*body)(void *args, jaxcc_rt_heap *), void *args, jaxcc_rt_comm *comm, void *cuda) {
    jaxcc_rt_heap h = {.comm = comm, .cuda = cuda, .blocks = {&h.blocks, &h.blocks}};
    if (!setjmp(h.end)) body(args, &h);
    for (Output *o = h.status ? h.outputs : NULL; o; o = o->before) o->array->release(o->array);
    while (h.blocks.next != &h.blocks) {
        Block *b = h.blocks.next;
        h.blocks.next = b->next;
        free(b);
    }
    return h.status;
}
int32_t jaxcc_rt_heap_run(void (*body)(void *args, jaxcc_rt_heap *), void *args) { return run(body, args, NULL, NULL); }
int32_t jaxcc_rt_device_run(void (*body)(void *args, jaxcc_rt_heap *), void *args, jaxcc_rt_comm *comm) {
    return run(body, args, comm, NULL);
}
int32_t jaxcc_rt_cuda_body(void (*body)(void *args, jaxcc_rt_heap *), void *args, jaxcc_rt_comm *comm, void *cuda) {
    return run(body, args, comm, cuda);
}
jaxcc_rt_comm *jaxcc_rt_comm_of(jaxcc_rt_heap *h) { return h->comm; }
void *jaxcc_rt_cuda_of(jaxcc_rt_heap *h) { return h->cuda; }
void jaxcc_rt_heap_end(jaxcc_rt_heap *h, int32_t status) { stop(h, status); }
void jaxcc_rt_stop(jaxcc_rt_heap *h, int32_t status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    jaxcc_rt_fail_list(status, format, args);
    va_end(args);
    stop(h, status);
}
static void *get(jaxcc_rt_heap *h, int64_t bytes) {
    void *p;
    if (bytes < 0 || bytes > INT64_MAX - 2 * ALIGN || posix_memalign(&p, ALIGN, (size_t)bytes + ALIGN)) return NULL;
    Block *b = p;
    b->next = h->blocks.next;
    b->before = &h->blocks;
    b->next->before = h->blocks.next = b;
    return (char *)p + ALIGN;
}
void *jaxcc_rt_heap_get(jaxcc_rt_heap *h, int64_t bytes) {
    void *p = get(h, bytes);
    if (!p) stop(h, jaxcc_rt_fail_memory(bytes, ""));
    return p;
}
/* The text with the numbers in the place of {0}, {1}, …; truncated if it does not fit. */
static void fill(char *to, size_t size, const char *text, int64_t n, void *const *numbers) {
    size_t used = 0;
    while (*text && used + 1 < size) {
        char *end = NULL;
        long k = *text == '{' && text[1] >= '0' && text[1] <= '9' ? strtol(text + 1, &end, 10) : n;
        if (k < n && *end == '}') {
            int more = snprintf(to + used, size - used, "%" PRId64, *(const int64_t *)numbers[k]);
            used += (size_t)more < size - used ? (size_t)more : size - used - 1;
            text = end + 1;
        } else {
            to[used++] = *text++;
        }
    }
    to[used] = 0;
}
/* Ends the call with the text, truncated. */
static _Noreturn void stop_with(jaxcc_rt_heap *h, int32_t status, const char *text, int64_t n, void *const *numbers) {
    char filled[256];
    fill(filled, sizeof filled, text, n, numbers);
    jaxcc_rt_fail(status, "%s", filled);
    stop(h, status);
}
void jaxcc_rt_heap_no_rows(jaxcc_rt_heap *h, int64_t turns, int64_t row, const char *error) {
    stop_with(h, JAXCC_MEMORY, error, 2, (void *[]){&turns, &row});
}
void *jaxcc_rt_heap_rows(jaxcc_rt_heap *h, int64_t bytes, int64_t turns, int64_t row, const char *error) {
    void *p = get(h, bytes);
    if (!p) jaxcc_rt_heap_no_rows(h, turns, row, error);
    return p;
}
void jaxcc_rt_heap_put(jaxcc_rt_heap *h, void *p) {
    Block *b = (Block *)((char *)p - ALIGN);
    b->next->before = b->before;
    b->before->next = b->next;
    free(b);
    (void)h;
}
void jaxcc_rt_heap_dim(jaxcc_rt_heap *h, const char *name, int64_t value) {
    if (value < 0) stop(h, jaxcc_rt_fail_negative(name, value));
}
void jaxcc_rt_heap_output(jaxcc_rt_heap *h, jaxcc_array *out, int32_t rank, const int64_t *dims,
                          void (*by)(jaxcc_array *)) {
    Output *output = jaxcc_rt_heap_get(h, sizeof *output);
    int64_t *own = malloc(sizeof *own * (size_t)(rank + 1));
    if (!own) stop(h, jaxcc_rt_fail_memory(8 * (int64_t)rank, ""));
    for (int32_t i = 0; i < rank; i++) own[i] = dims[i];
    *out = (jaxcc_array){NULL, rank, own, by};
    *output = (Output){h->outputs, out};
    h->outputs = output;
}
void *jaxcc_rt_heap_array(jaxcc_rt_heap *h, jaxcc_array *out, int32_t rank, const int64_t *dims, int64_t bytes) {
    jaxcc_rt_heap_output(h, out, rank, dims, release);
    if (bytes < 0 || posix_memalign(&out->data, ALIGN, (size_t)bytes + !bytes)) {
        out->data = NULL;
        stop(h, jaxcc_rt_fail_memory(bytes, ""));
    }
    return out->data;
}

/* Ends the call with the text if the condition is true. sizes: how many numbers there are between the two. */
void jaxcc_rt_check(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    if (*(const uint8_t *)arrays[0]) stop_with(call, JAXCC_CHECK, arrays[1 + sizes[0]], sizes[0], arrays + 1);
}
