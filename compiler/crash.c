#include "crash.h"
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
/* The sanitizer reports, with our status. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "exitcode=3"; }
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "exitcode=3:print_stacktrace=1"; }
void crash_report(void) {}
#else
static void say(const char *text) {
    if (write(2, text, strlen(text)) < 0) _exit(3);
}

static void caught(int signal) {
    say("jaxcc: internal error: ");
    say(signal == SIGABRT ? "abort" : signal == SIGFPE ? "arithmetic fault" : "memory fault");
    say("; this is a bug of jaxcc, please report it with the program\n");
    _exit(3);
}

void crash_report(void) {
    size_t size = 64 << 10; /* a stack of its own: the usual one may be what overflowed */
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED) sigaltstack(&(stack_t){.ss_sp = at, .ss_size = size}, NULL);
    struct sigaction action = {.sa_handler = caught, .sa_flags = SA_ONSTACK | SA_RESETHAND};
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}
#endif
