/* One second of processor time for an input; libFuzzer's own limit is of the clock, which runs on while others have the
   core. */
#ifndef JAXCC_TESTS_FUZZ_LIMIT_H
#define JAXCC_TESTS_FUZZ_LIMIT_H
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static inline void limit_over(int signal) {
    static const char what[] = "ERROR: an input takes longer than a second\n";
    (void)signal, (void)!write(2, what, sizeof what - 1);
    abort();
}
/* 1: from here on; 0: no longer. */
static inline void limit(int seconds) {
    signal(SIGVTALRM, limit_over);
    setitimer(ITIMER_VIRTUAL, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
}

#endif
