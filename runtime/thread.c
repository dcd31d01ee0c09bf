/* The library's thread pool.

   One job at a time. The caller owns the pool while `busy` is set; a call that finds it set (nested or concurrent) runs
   inline. `inside` counts the workers in the job; OPEN is set in it while more may join. A worker joins by incrementing
   `inside` from a value with OPEN, claims chunks until there are none, and leaves. So the caller waits only for workers
   that are computing, never for one that has yet to wake up.

   Workers sleep on `generation`, which every job increments, after they have waited awake for a while. To wake one costs
   the caller some 15 us on a virtual machine, and it arrives after 50: a job of `grain` elements is worth that, or
   several smaller ones that follow each other. With a worker that is awake much smaller jobs are worth sharing.

   The pool belongs to a process: after fork the child finds another pid in `owner`, forgets the parent's threads, and
   starts its own at the first call. */
#include "pool.h"
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OPEN (1u << 31)
enum {
    MOST = 1024,
    STACK = 512 * 1024,
    CHUNKS_PER_THREAD = 4,
    AWAKE = 40,             /* a 40th of the grain is worth a thread that is awake; … */
    OFTEN = 10,             /* … a 10th, one of the host's pool, or one to wake if such jobs follow each other */
    SPIN = 64,              /* between two looks at the clock */
    AWAKE_TIME = 200 * 1000 /* nanoseconds until a thread that waits sleeps */
};

typedef struct {
    _Alignas(64) _Atomic int64_t next; /* the first that nobody has claimed */
    int64_t end;
} Share;
static struct {
    _Atomic pid_t owner; /* 0: nobody yet */
    _Atomic bool busy;
    /* written by the owner of `busy` */
    _Atomic int wanted, threads; /* the number asked for when the pool was started; those taking part, the caller too */
    pthread_t worker[MOST];
    uint32_t started; /* the generation when they were */
    /* the job: written while `inside` is 0 */
    jaxcc_body *body;
    void *ctx;
    int64_t chunk;
    uint32_t float_mode;
    int shares;
    Share share[MOST];      /* of the caller, then of the workers */
    _Atomic int64_t latest; /* when the latest job that had use for a worker asleep was done */
    double grains;          /* of such jobs, each soon after the one before, since all were woken */
    _Alignas(64) _Atomic uint32_t inside;
    _Alignas(64) _Atomic uint32_t generation;
    _Atomic uint32_t sleepers;
    _Atomic bool stop;
} pool;

/* ---- the machine's state */

static void futex_wait(_Atomic uint32_t *word, uint32_t seen) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int n) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static void relax(void) {
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

static int64_t nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Waits for a while until `word` is not `seen`; returns it. */
static uint32_t await_change(_Atomic uint32_t *word, uint32_t seen) {
    int64_t end = nanoseconds() + AWAKE_TIME;
    do {
        for (int i = 0; i < SPIN; i++, relax()) {
            uint32_t now = atomic_load_explicit(word, memory_order_acquire);
            if (now != seen) return now;
        }
    } while (nanoseconds() < end);
    return seen;
}

/* Rounding mode, flushing of subnormals, masked exceptions: workers take over the caller's. */
static uint32_t float_mode(void) {
#ifdef __x86_64__
    return __builtin_ia32_stmxcsr() & ~0x3fu;
#else
    return 0;
#endif
}

static void set_float_mode(uint32_t mode) {
#ifdef __x86_64__
    __builtin_ia32_ldmxcsr(mode);
#endif
    (void)mode;
}

/* ---- work */

static void claim_chunks(int thread) {
    for (int i = 0; i < pool.shares; i++) {
        Share *s = &pool.share[(thread + i) % pool.shares];
        int64_t end = s->end, chunk = pool.chunk, lo = atomic_load_explicit(&s->next, memory_order_relaxed);
        while (lo < end && (lo = atomic_fetch_add_explicit(&s->next, chunk, memory_order_relaxed)) < end)
            pool.body(pool.ctx, lo, end - lo < chunk ? end : lo + chunk);
    }
}

static bool join(void) {
    uint32_t inside = atomic_load_explicit(&pool.inside, memory_order_relaxed);
    while (inside & OPEN)
        if (atomic_compare_exchange_weak_explicit(&pool.inside, &inside, inside + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static void leave(void) {
    if (atomic_fetch_sub_explicit(&pool.inside, 1, memory_order_release) == 1) futex_wake(&pool.inside, 1);
}

/* Waits until `generation` is not `seen`; returns it. */
static uint32_t next_generation(uint32_t seen) {
    uint32_t now = await_change(&pool.generation, seen);
    if (now != seen) return now;
    atomic_fetch_add(&pool.sleepers, 1);
    while (atomic_load(&pool.generation) == seen) futex_wait(&pool.generation, seen);
    atomic_fetch_sub(&pool.sleepers, 1);
    return atomic_load(&pool.generation);
}

static void raise_generation(int workers) {
    atomic_fetch_add(&pool.generation, 1);
    if (workers && atomic_load(&pool.sleepers)) futex_wake(&pool.generation, workers);
}

static void *work(void *number) {
    for (uint32_t seen = pool.started;; seen = next_generation(seen)) {
        if (atomic_load(&pool.stop)) return NULL;
        if (!join()) continue;
        set_float_mode(pool.float_mode);
        claim_chunks((int)(intptr_t)number);
        leave();
    }
}

/* ---- starting and ending, by the owner of `busy` */

/* The number that the host asked for, else JAXCC_NUM_THREADS, else one for each CPU. */
static int threads_for(int asked) {
    const char *text = getenv("JAXCC_NUM_THREADS");
    long n = asked ? asked : text ? strtol(text, NULL, 10) : 0;
    if (n < 1) n = jaxcc_rt_cpus();
    return n < MOST ? (int)n : MOST;
}

static void start(void) {
    sigset_t all, before;
    pthread_attr_t attr;
    pool.wanted = jaxcc_rt_threads_wanted;
    pool.threads = 1;
    int wanted = threads_for(pool.wanted);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals go to the program's own threads */
    pool.started = atomic_load(&pool.generation);
    for (; pool.threads < wanted; pool.threads++) {
        void *number = (void *)(intptr_t)pool.threads; /* NOLINT(performance-no-int-to-ptr): a number */
        if (pthread_create(&pool.worker[pool.threads], &attr, work, number)) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

static void end(void) {
    atomic_store(&pool.stop, true);
    raise_generation(MOST);
    for (int i = 1; i < pool.threads; i++) pthread_join(pool.worker[i], NULL);
    atomic_store(&pool.stop, false);
    pool.threads = 0;
}

/* Does the pool belong to this process? After fork it is set up again; false while another thread does that. */
static bool adopt(void) {
    pid_t me = getpid(), owner = atomic_load_explicit(&pool.owner, memory_order_acquire);
    if (owner == me) return true;
    if (owner == -me || !atomic_compare_exchange_strong(&pool.owner, &owner, -me)) return false;
    pool.threads = 0;
    atomic_store(&pool.inside, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.stop, false);
    atomic_store(&pool.busy, false);
    atomic_store(&pool.owner, me);
    return true;
}

/* `busy` stays set: calls made while the process exits run inline. If one is computing right now, the threads end with
   the process. */
__attribute__((destructor)) static void unload(void) {
    if (atomic_load(&pool.owner) == getpid() && !atomic_exchange(&pool.busy, true)) end();
}

/* ---- a job */

/* Is the caller the only thread? Then there is nothing to claim or, after fork, to forget. */
static bool alone(void) {
    return atomic_load_explicit(&pool.threads, memory_order_relaxed) == 1 &&
           atomic_load_explicit(&pool.wanted, memory_order_relaxed) == jaxcc_rt_threads_wanted;
}

bool jaxcc_rt_alone(void) { return !jaxcc_rt_host_for && alone(); }

/* What the thread with the most chunks does, as far as is known. */
static int64_t longest(int64_t n, int64_t chunk) { return ((n - 1) / chunk / pool.threads + 1) * chunk; }

/* In at most so many chunks for each thread, of `least` or more, but for the last. */
static void share_out(int64_t n, int64_t least, int each) {
    int64_t most = (int64_t)pool.threads * each, chunks = n / least < most ? n / least : most;
    int64_t even = chunks > pool.threads ? chunks - chunks % pool.threads : chunks;
    pool.chunk = (n - 1) / chunks + 1;
    if (longest(n, (n - 1) / even + 1) < longest(n, pool.chunk)) pool.chunk = (n - 1) / even + 1;
    chunks = (n - 1) / pool.chunk + 1;
    pool.shares = chunks < pool.threads ? (int)chunks : pool.threads;
    int64_t from = 0;
    for (int i = 0; i < pool.shares; i++) {
        int64_t to = chunks * (i + 1) / pool.shares * pool.chunk;
        atomic_store_explicit(&pool.share[i].next, from, memory_order_relaxed);
        from = pool.share[i].end = i + 1 < pool.shares ? to : n;
    }
}

static void run(jaxcc_body *body, void *ctx, int wake) {
    pool.body = body;
    pool.ctx = ctx;
    pool.float_mode = float_mode();
    atomic_store_explicit(&pool.inside, OPEN, memory_order_release);
    raise_generation(wake);
    claim_chunks(0);
    uint32_t inside = atomic_fetch_and_explicit(&pool.inside, ~OPEN, memory_order_acq_rel) & ~OPEN;
    while (inside) {
        uint32_t now = await_change(&pool.inside, inside);
        if (now == inside) futex_wait(&pool.inside, inside);
        inside = atomic_load_explicit(&pool.inside, memory_order_acquire);
    }
}

static int64_t part(int64_t grain, int parts) { return (grain - 1) / parts + 1; }

/* How many of the workers asleep to wake for a job that has use for `useful` of them: one for each grain; all if it and
   those that it follows soon are worth it together. */
static int64_t to_wake(int64_t n, int64_t grain, int64_t useful) {
    double grains = (double)n / (double)grain;
    bool soon = nanoseconds() - atomic_load_explicit(&pool.latest, memory_order_relaxed) <= AWAKE_TIME;
    pool.grains = soon ? pool.grains + grains : grains;
    if (!soon || pool.grains <= 1) return (n - 1) / grain;
    pool.grains = 0;
    return useful;
}

/* By the owner of `busy`, who gives it back before doing alone what is worth nobody else. */
static void job(jaxcc_body *body, void *ctx, int64_t n, int64_t grain, int each) {
    bool other = pool.threads && pool.wanted != jaxcc_rt_threads_wanted, ready = pool.threads && !other;
    int64_t most = ready ? pool.threads - 1 : MOST, useful = (n - 1) / part(grain, OFTEN), wake = 0;
    int64_t awake = ready ? most - (int64_t)atomic_load(&pool.sleepers) : 0;
    useful = useful < 1 ? 1 : useful < most ? useful : most;
    bool asleep = awake < useful;
    if (asleep) wake = to_wake(n, grain, useful) - awake;
    if (wake > 0 && other) end();
    if (wake > 0 && !pool.threads) start();
    bool shared = pool.threads > 1 && (awake > 0 || wake > 0);
    if (shared) {
        share_out(n, part(grain, AWAKE), each);
        run(body, ctx, wake < 0 ? 0 : wake < most ? (int)wake : (int)most);
    }
    atomic_store_explicit(&pool.busy, false, memory_order_release);
    if (!shared) body(ctx, 0, n);
    if (asleep) atomic_store_explicit(&pool.latest, nanoseconds(), memory_order_relaxed);
}

static void parallel_for(jaxcc_body *body, void *ctx, int64_t n, int64_t grain, int each) {
    if (n <= 0) return;
    if (grain < 1) grain = 1;
    jaxcc_parallel_for *host = jaxcc_rt_host_for;
    int64_t least = part(grain, host ? OFTEN : AWAKE);
    if (n <= least)
        body(ctx, 0, n);
    else if (host)
        host(jaxcc_rt_host_pool, body, ctx, n, least);
    else if (n > INT64_MAX / 2 || alone() || !adopt() || atomic_exchange(&pool.busy, true))
        body(ctx, 0, n);
    else
        job(body, ctx, n, grain, each);
}

void jaxcc_rt_parallel_for(jaxcc_body *body, void *ctx, int64_t n, int64_t grain) {
    parallel_for(body, ctx, n, grain, CHUNKS_PER_THREAD);
}

void jaxcc_rt_parallel_ranges(jaxcc_body *body, void *ctx, int64_t n, int64_t grain) {
    parallel_for(body, ctx, n, grain, 1);
}
