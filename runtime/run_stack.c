/* --guard: a call on a thread of its own, whose stack is a little larger than what a library may use. */
#include "run.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes: for the library; for the thread itself; unreadable ones below, wider than any frame; for the fault handler. */
enum { STACK = 64 << 10, OWN = 16 << 10, GUARD = 1 << 20, FAULTS = 64 << 10 };

typedef struct {
    const jaxcc_program *p;
    const int64_t *dims;
    const void *const *in;
    void *const *out;
    char *stack;    /* OWN + STACK bytes above GUARD; zeros */
    void *faults;   /* the stack of the handler */
    int32_t status; /* of the call, and its text */
    char error[600];
    size_t used; /* bytes used below the library's caller */
} OnStack;

static void *call(void *user) {
    OnStack *s = user;
    char here = 0, *end = &here;
    stack_t before; /* a sanitizer has one of its own, and unmaps the one that it finds at the end of the thread */
    sigaltstack(&(stack_t){.ss_sp = s->faults, .ss_size = FAULTS}, &before);
    s->status = s->p->call(s->dims, s->in, s->out);
    if (s->status) snprintf(s->error, sizeof s->error, "%s", s->p->error());
    const char *lowest = s->stack;
    while (lowest < end && !*lowest) lowest++;
    s->used = (size_t)(end - lowest);
    sigaltstack(&before, NULL);
    return NULL;
}

static bool call_in_thread(OnStack *s) {
    pthread_attr_t attr;
    pthread_t thread;
    char *map = mmap(NULL, GUARD + STACK + OWN + FAULTS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + GUARD, STACK + OWN + FAULTS, PROT_READ | PROT_WRITE))
        return run_error("no memory for a stack");
    s->stack = map + GUARD;
    s->faults = s->stack + STACK + OWN;
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, s->stack, STACK + OWN);
    int failed = pthread_create(&thread, &attr, call, s);
    if (!failed) pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    munmap(map, GUARD + STACK + OWN + FAULTS);
    return !failed || run_error("cannot start a thread: %s", strerror(failed));
}

bool run_on_stack(const jaxcc_program *p, const int64_t *dims, const void *const *in, void *const *out) {
    OnStack s = {.p = p, .dims = dims, .in = in, .out = out};
    if (!call_in_thread(&s)) return false;
    if (s.status) return run_error("%s failed with status %d: %s", p->name, s.status, s.error);
    return s.used <= STACK || run_error("%s took %zu bytes of stack, more than %d", p->name, s.used, STACK);
}
