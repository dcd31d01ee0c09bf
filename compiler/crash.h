/* How the compiler ends that cannot go on: a failure of our own is status 3 and says so, never a bare abort; memory
   that is not there is status 1. */
#ifndef JAXCC_CRASH_H
#define JAXCC_CRASH_H

void crash_report(void);
_Noreturn void crash_no_memory(void);

/* Calls run(user) where there is as much stack as nested programs may take: elsewhere, if `ulimit -s` gives less. */
enum { STACK_BYTES = 8 << 20, GUARD_BYTES = 1 << 16 };
int crash_on_stack(int (*run)(void *), void *user);

#endif
