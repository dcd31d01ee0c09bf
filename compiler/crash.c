#include "crash.h"
#include "output.h"
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

static void say(const char *text) {
    if (write(2, text, strlen(text)) < 0) _exit(3);
}

void crash_once(void) {
    static atomic_flag taken = ATOMIC_FLAG_INIT;
    static _Thread_local bool here;
    while (!here && atomic_flag_test_and_set(&taken)) pause();
    here = true;
}
void crash_no_memory(void) {
    crash_once();
    output_remove();
    say("jaxcc: error: out of memory\n");
    _exit(1);
}

#ifdef __SANITIZE_ADDRESS__
/* The sanitizer reports crashes, with our status, and supports only one stack. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "exitcode=3:handle_abort=1"; }
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "exitcode=3:print_stacktrace=1"; }
void crash_report(void) {}
void crash_thread(void) {}
int crash_on_stack(int (*run)(void *), void *user) { return run(user); }
#else
/* Running out of memory may also show as a fault or an abort. */
static int exhausted(void) {
    enum { LITTLE = 4 << 20 };
    return mmap(NULL, LITTLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static void caught(int signal) {
    if (signal != SIGFPE && signal != SIGILL && exhausted()) crash_no_memory();
    crash_once();
    output_remove();
    say("jaxcc: internal error: ");
    say(signal == SIGABRT ? "abort" : signal == SIGFPE ? "arithmetic fault" : "memory fault");
    say("; this is a bug of jaxcc, please report it with the program\n");
    _exit(3);
}

void crash_thread(void) {
    size_t size = 64 << 10; /* a stack of its own: the usual one may have overflowed */
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED) sigaltstack(&(stack_t){.ss_sp = at, .ss_size = size}, NULL);
}
void crash_report(void) {
    crash_thread();
    struct sigaction action = {.sa_handler = caught, .sa_flags = SA_ONSTACK};
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, NULL);
}

/* makecontext passes only integers. */
typedef struct {
    int (*run)(void *);
    void *user;
    int result;
} Call;
static void enter(unsigned high, unsigned low) {
    uintptr_t address = (uintptr_t)high << 32 | low;
    Call *c;
    memcpy(&c, &address, sizeof c);
    c->result = c->run(c->user);
}

int crash_on_stack(int (*run)(void *), void *user) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= MAIN_STACK) return run(user);
    char *at =
        mmap(NULL, MAIN_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    ucontext_t here, there;
    if (at == MAP_FAILED || getcontext(&there)) crash_no_memory();
    mprotect(at, GUARD_BYTES, PROT_NONE); /* overflowing the stack is a fault */
    there.uc_stack = (stack_t){.ss_sp = at, .ss_size = MAIN_STACK};
    there.uc_link = &here;
    Call call = {run, user, 0};
    uintptr_t p = (uintptr_t)&call;
    makecontext(&there, (void (*)(void))enter, 2, (unsigned)(p >> 32), (unsigned)p);
    if (swapcontext(&here, &there)) crash_no_memory();
    munmap(at, MAIN_STACK);
    return call.result;
}
#endif
