/* Four threads call one library at once, and a child after fork calls it too: every call gives the
 * bits of the first. */
#include "attention.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 4 * 64 * 16, CALLS = 50 };
static float q[N], k[N], v[N], want[N];

static void *calls(void *wrong) {
    float out[N];
    for (int i = 0; i < CALLS; i++)
        if (attention(q, k, v, out) != 0 || memcmp(out, want, sizeof out) != 0) *(int *)wrong = 1;
    return NULL;
}

static int at_once(void) {
    pthread_t thread[4];
    int wrong[4] = {0};
    for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, calls, &wrong[i]);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    return wrong[0] | wrong[1] | wrong[2] | wrong[3];
}

int main(void) {
    for (int i = 0; i < N; i++) {
        q[i] = (float)(i % 17) / 17;
        k[i] = (float)(i % 23) / 23;
        v[i] = (float)(i % 31) / 31;
    }
    if (attention(q, k, v, want) != 0) return fprintf(stderr, "%s\n", attention_error()), 1;
    if (at_once()) return fputs("other bits in concurrent calls\n", stderr), 1;
    pid_t child = fork();
    if (child == 0) _exit(at_once());
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) return fputs("other bits after fork\n", stderr), 1;
    return 0;
}
