/* Signals from outside that end jaxcc-run. */
#include "run.h"
#include <signal.h>

/* The process dies of the signal, as its parent expects. */
static void ended(int number) {
    npz_abandon();
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
}

void end_cleanly(void) {
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU};
    enum { NENDS = sizeof ends / sizeof *ends };
    struct sigaction action = {.sa_handler = ended}, old;
    for (unsigned i = 0; i < NENDS; i++) sigaddset(&action.sa_mask, ends[i]);
    for (unsigned i = 0; i < NENDS; i++)
        if (!sigaction(ends[i], NULL, &old) && old.sa_handler == SIG_DFL) sigaction(ends[i], &action, NULL);
    signal(SIGXFSZ, SIG_IGN);
}
