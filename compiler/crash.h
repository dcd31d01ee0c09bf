/* How the compiler ends when it cannot go on: after a bug of its own with status 3 and a message, never a bare abort;
   when memory runs out with status 1. */
#ifndef JAXCC_CRASH_H
#define JAXCC_CRASH_H

void crash_report(void);
/* For another thread, which calls it first. */
void crash_thread(void);
/* Of several threads that end the compilation, the first one goes on; the others stay here. */
void crash_once(void);
_Noreturn void crash_no_memory(void);

/* Calls run(user) with as much stack as nested programs may take: on a stack of its own if `ulimit -s` gives less. */
enum { MAIN_STACK = 8 << 20, GUARD_BYTES = 1 << 16 };
int crash_on_stack(int (*run)(void *), void *user);

#endif
