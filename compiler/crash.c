#include "crash.h"
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
#ifndef __SANITIZE_ADDRESS__
    size_t size = 64 << 10; /* a stack of its own: the usual one may be what overflowed */
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED) sigaltstack(&(stack_t){.ss_sp = at, .ss_size = size}, NULL);
    struct sigaction action = {.sa_handler = caught, .sa_flags = SA_ONSTACK | SA_RESETHAND};
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
#endif
}
