/* The runtime's pool, workspaces, copies and error text. */
#include "runtime/rt.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 10000 };

static void count(void *ctx, int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; i++) ((int *)ctx)[i]++;
}

static void count_nested(void *ctx, int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; i++) jaxcc_rt_parallel_for(count, (int *)ctx + i * 100, 100, 10);
}

/* Every index once in each of 200 loops, plain and nested. */
static bool covers(void) {
    int *a = calloc(N, sizeof *a);
    bool good = true;
    for (int k = 0; k < 100; k++) {
        jaxcc_rt_parallel_for(count, a, N, 64);
        jaxcc_rt_parallel_for(count_nested, a, N / 100, 1);
    }
    for (int i = 0; i < N; i++) good &= a[i] == 200;
    free(a);
    return good;
}

static void *covers_thread(void *unused) { return covers() ? unused : NULL; }

static int threads(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    while (readdir(d)) n++;
    closedir(d);
    return n - 2;
}

Test(thread, every_index_once_with_any_number_of_threads) {
    for (int n = 1; n <= 6; n++) {
        jaxcc_rt_set_num_threads(n);
        cr_assert(covers());
    }
}

Test(thread, callers_at_once) {
    pthread_t t[4];
    void *good;
    jaxcc_rt_set_num_threads(3);
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, covers_thread, t);
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], &good);
        cr_assert(good);
    }
}

Test(thread, none_until_it_is_worth_it) {
    int a[10] = {0}, before = threads();
    jaxcc_rt_set_num_threads(4);
    jaxcc_rt_parallel_for(count, a, 10, 10);
    jaxcc_rt_parallel_for(count, a, 0, 1);
    cr_assert_eq(threads(), before);
    jaxcc_rt_parallel_for(count, a, 10, 1);
    cr_assert_eq(threads(), before + 3);
    cr_assert(a[0] == 2 && a[9] == 2);
    jaxcc_rt_set_num_threads(1);
    jaxcc_rt_parallel_for(count, a, 10, 1);
    for (int i = 0; i < 1000 && threads() != before; i++) usleep(1000);
    cr_assert_eq(threads(), before);
}

Test(thread, woken_for_small_jobs_that_follow_each_other) {
    int a[10] = {0}, before = threads();
    jaxcc_rt_set_num_threads(2);
    for (int i = 0; i < 20; i++) jaxcc_rt_parallel_for(count, a, 10, 100), usleep(1000); /* two grains in all */
    cr_assert_eq(threads(), before);
    for (int i = 0; i < 1000 && threads() == before; i++) /* unless this thread is held up */
        for (int k = 0; k < 11; k++) jaxcc_rt_parallel_for(count, a, 10, 90);
    cr_assert_eq(threads(), before + 1);
}

Test(thread, anew_after_fork) {
    jaxcc_rt_set_num_threads(3);
    cr_assert(covers());
    for (int k = 0; k < 10; k++) {
        pid_t child = fork();
        if (!child) _exit(covers() && threads() == 3 ? 0 : 1);
        int status;
        waitpid(child, &status, 0);
        cr_assert_eq(status, 0);
    }
    cr_assert(covers());
}

enum { GRAIN = 160, AWAKE_GRAIN = 4 };
typedef struct {
    int64_t n;
    _Atomic int64_t sum, least;
} Ranges;
static void note_range(void *ctx, int64_t lo, int64_t hi) {
    Ranges *r = ctx;
    atomic_fetch_add(&r->sum, hi - lo);
    if (hi - lo < AWAKE_GRAIN && hi != r->n) atomic_store(&r->least, hi - lo);
}

Test(thread, ranges_are_of_a_part_of_the_grain) {
    jaxcc_rt_set_num_threads(3);
    for (int64_t n = 1; n < 5000; n += 77) {
        Ranges r = {.n = n, .least = AWAKE_GRAIN};
        jaxcc_rt_parallel_for(note_range, &r, n, GRAIN);
        cr_assert_eq(r.sum, n);
        cr_assert_eq(r.least, AWAKE_GRAIN);
    }
}

static void host(void *pool, jaxcc_body *body, void *ctx, int64_t n, int64_t grain) {
    ++*(int *)pool;
    body(ctx, 0, n / 2);
    body(ctx, n / 2, n);
}

Test(thread, the_host_may_bring_its_pool) {
    int calls = 0, a[10] = {0}, before;
    jaxcc_rt_set_num_threads(4);
    jaxcc_rt_parallel_for(count, a, 10, 1); /* its own workers are awake then */
    before = threads();
    jaxcc_rt_set_parallel_for(host, &calls);
    jaxcc_rt_parallel_for(count, a, 10, 1);
    jaxcc_rt_parallel_for(count, a, 10, 100); /* 10 are a tenth of the grain */
    jaxcc_rt_set_parallel_for(NULL, NULL);
    cr_assert(calls == 1 && a[0] == 3 && a[9] == 3 && threads() == before);
}

#ifdef __x86_64__
static void note_mode(void *ctx, int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; i++) ((unsigned *)ctx)[i] = __builtin_ia32_stmxcsr() & ~63u;
    usleep(1000);
}

Test(thread, workers_round_as_the_caller_does) {
    unsigned mode[64], before = __builtin_ia32_stmxcsr(), toward_zero = (before | 0xe040) & ~63u;
    jaxcc_rt_set_num_threads(3);
    __builtin_ia32_ldmxcsr(toward_zero); /* and subnormals flushed */
    jaxcc_rt_parallel_for(note_mode, mode, 64, 1);
    __builtin_ia32_ldmxcsr(before);
    for (int i = 0; i < 64; i++) cr_assert_eq(mode[i], toward_zero);
}
#endif

Test(workspace, blocks_come_back) {
    char *a = jaxcc_rt_workspace_get(100), *b = jaxcc_rt_workspace_get(5000);
    cr_assert(a && b && a != b && (uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0);
    memset(a, 1, 100);
    memset(b, 2, 5000);
    jaxcc_rt_workspace_put(b);
    cr_assert_eq(jaxcc_rt_workspace_get(4000), b);
    jaxcc_rt_workspace_put(a);
    char *c = jaxcc_rt_workspace_get(1 << 20); /* replaces a */
    jaxcc_rt_workspace_put(c);
    cr_assert_eq(jaxcc_rt_workspace_get(1), c);
    cr_assert_null(jaxcc_rt_workspace_get(INT64_MAX));
    cr_assert_null(jaxcc_rt_workspace_get(-1));
}

static void *use_workspaces(void *unused) {
    for (int i = 0; i < 20000; i++) {
        int64_t n = 100 + i % 7 * 100;
        char *p = jaxcc_rt_workspace_get(n);
        if (!p) return NULL;
        p[0] = p[n - 1] = (char)i;
        if (p[0] != (char)i) return NULL;
        jaxcc_rt_workspace_put(p);
    }
    return unused;
}

Test(workspace, many_threads) {
    pthread_t t[4];
    void *good;
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, use_workspaces, t);
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], &good);
        cr_assert(good);
    }
}

static void *fails(void *unused) {
    cr_assert_str_eq(jaxcc_rt_error(), "");
    cr_assert_eq(jaxcc_rt_fail_negative("b", -3), JAXCC_DIMENSION);
    cr_assert_str_eq(jaxcc_rt_error(), "dimension 'b' is negative: -3");
    return unused;
}

Test(error, one_text_for_each_thread) {
    pthread_t t;
    cr_assert_eq(jaxcc_rt_fail_unequal("b", 2, "2*c", 4), JAXCC_DIMENSION);
    pthread_create(&t, NULL, fails, NULL);
    pthread_join(t, NULL);
    cr_assert_str_eq(jaxcc_rt_error(), "dimensions 'b' and '2*c' must be equal, but are 2 and 4");
    cr_assert_eq(jaxcc_rt_fail_null("x"), JAXCC_ARGUMENT);
    cr_assert_eq(jaxcc_rt_fail_cpu(jaxcc_rt_cpu | (uint64_t)1 << 18), JAXCC_CPU);
    char longest[400];
    memset(longest, 'x', 399);
    longest[399] = 0;
    cr_assert_eq(jaxcc_rt_fail_text(JAXCC_CHECK, longest), JAXCC_CHECK);
    cr_assert_eq(strlen(jaxcc_rt_error()), 255u);
}

/* ---- copies */
Test(copy, of_any_length_and_alignment) {
    enum { MOST = (1 << 20) + 300, AROUND = 64 };
    unsigned char *from = malloc(MOST + 2 * AROUND), *to = malloc(MOST + 2 * AROUND);
    for (size_t i = 0; i < MOST + 2 * AROUND; i++) from[i] = (unsigned char)(i * 37 >> 3);
    for (int64_t n = 0; n <= MOST; n += n < 400 ? 1 : n < (1 << 20) - 60000 ? 49981 : 61)
        for (size_t x = 0; x < 2; x++) {
            unsigned char *y = to + AROUND - x * 3;
            memset(to, 0x5a, MOST + 2 * AROUND);
            jaxcc_rt_copy(y, from + 7 * x, n);
            cr_assert(!memcmp(y, from + 7 * x, (size_t)n) && y[-1] == 0x5a && y[n] == 0x5a, "%d bytes", (int)n);
        }
    free(from), free(to);
}
