/* The worst errors of the programs of stdlib/, in units of the last place, as jaxcc compiles them;
   a table on standard output.

     accuracy [-s STRIDE] [-n SAMPLES] [-o COMMAND] JAXCC [FUNCTION...]

   f32: functions of one operand at every STRIDE-th of all 2^32 inputs, the others at 2^26 / STRIDE
   drawn ones, against the f64 program. f32 again, and f64: at SAMPLES drawn inputs, a quarter of
   them for functions of several operands, against MPFR. The larger error of f32 is printed, and
   that of f64. With -o the results are those of a command instead, which is started as COMMAND
   FUNCTION f32|f64: it reads CHUNK elements of each operand, writes as many results, and so on
   until its input ends. Subnormal operands and results are not counted then: JAX takes them for 0.
 */
#include "exact.h"
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK = 1 << 14, MOST = 3, PRECISION = 256 };

static const struct {
    const char *name;
    Exact *exact;
    const char *arity;
} functions[] = {
#define NO_LOWERING NULL
#undef STDLIB
#define STDLIB(f) exact_##f
#undef PRIM
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) {text, lowering, #arity},
#include "../compiler/prims.def"
    {"sqrt", exact_sqrt, "unary"},
    {"square", exact_square, "unary"},
    {"floor", exact_floor, "unary"},
    {"ceil", exact_ceil, "unary"},
};
enum { NFUNCTIONS = sizeof functions / sizeof *functions };

/* Where half of the drawn operands lie. */
static const struct {
    const char *name;
    double lo[MOST], hi[MOST];
} ranges[] = {
    {"exp", {-20}, {20}},
    {"expm1", {-5}, {5}},
    {"log", {0}, {4}},
    {"log1p", {-1}, {3}},
    {"sin", {-100}, {100}},
    {"cos", {-100}, {100}},
    {"tan", {-100}, {100}},
    {"asin", {-1}, {1}},
    {"acos", {-1}, {1}},
    {"atanh", {-1}, {1}},
    {"acosh", {1}, {8}},
    {"rsqrt", {0}, {10}},
    {"erf_inv", {-1}, {1}},
    {"erfc", {-3}, {12}},
    {"lgamma", {0}, {20}},
    {"digamma", {0}, {20}},
    {"bessel_i0e", {-20}, {20}},
    {"bessel_i1e", {-20}, {20}},
    {"pow", {0, -30}, {30, 30}},
    {"zeta", {1, 0}, {12, 20}},
    {"polygamma", {0, 0}, {12, 20}},
    {"poisson", {0, 0}, {40, 60}},
    {"igamma", {0, 0}, {20, 30}},
    {"igammac", {0, 0}, {20, 30}},
    {"igamma_grad_a", {0, 0}, {20, 30}},
    {"random_gamma_grad", {0, 0}, {20, 30}},
    {"random_gamma_grad_a", {0, 0}, {20, 30}},
    {"random_gamma_grad_x", {0, 0}, {20, 30}},
    {"regularized_incomplete_beta", {0, 0, 0}, {20, 20, 1}},
};
static void range_of(const char *name, uint32_t operand, double *lo, double *hi) {
    *lo = -10, *hi = 10;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (!strcmp(ranges[i].name, name)) *lo = ranges[i].lo[operand], *hi = ranges[i].hi[operand];
}

/* ---- a function of the compiled library, or a command's */
typedef struct {
    const char *name;
    bool wide; /* f64 */
    uint32_t n;
    void *symbol;
    int to, from; /* pipes */
    pid_t child;
} Function;

static void fail(const char *what) {
    fprintf(stderr, "accuracy: %s\n", what);
    exit(2);
}
static void compile(Function *f, const char *jaxcc) {
    char dir[] = "/tmp/accuracy.XXXXXX", command[512], path[64];
    const char *type = f->wide ? "f64" : "f32";
    if (!mkdtemp(dir)) fail("no temporary directory");
    snprintf(path, sizeof path, "%s/f.so", dir);
    snprintf(command, sizeof command, "'%s' - --name=f --no-header -o %s", jaxcc, path);
    FILE *text = popen(command, "w");
    if (!text) fail("jaxcc does not start");
    fprintf(text, "{ lambda ;");
    for (uint32_t i = 0; i < f->n; i++) fprintf(text, " %c:%s[%d]", 'a' + i, type, CHUNK);
    fprintf(text, ". let r:%s[%d] = %s", type, CHUNK, f->name);
    for (uint32_t i = 0; i < f->n; i++) fprintf(text, " %c", 'a' + i);
    fprintf(text, " in (r,) }\n");
    if (pclose(text) != 0) fail("jaxcc fails");
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib) fail(dlerror());
    f->symbol = dlsym(lib, "f");
    unlink(path);
    rmdir(dir);
}
static void start(Function *f, const char *command) {
    int in[2], out[2];
    char line[1024];
    snprintf(line, sizeof line, "%s %s %s", command, f->name, f->wide ? "f64" : "f32");
    if (pipe(in) || pipe(out)) fail("no pipe");
    f->child = fork();
    if (f->child == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[0]), close(in[1]), close(out[0]), close(out[1]);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    close(in[0]), close(out[1]);
    f->to = in[1], f->from = out[0];
}
static void stop(Function *f) {
    if (!f->child) return;
    close(f->to), close(f->from);
    waitpid(f->child, NULL, 0);
}
static void call(const Function *f, void *const *x, void *y) {
    size_t bytes = (size_t)CHUNK * (f->wide ? 8 : 4);
    if (!f->child) {
        if (f->n == 1) ((int (*)(void *, void *))f->symbol)(x[0], y);
        if (f->n == 2) ((int (*)(void *, void *, void *))f->symbol)(x[0], x[1], y);
        if (f->n == 3) ((int (*)(void *, void *, void *, void *))f->symbol)(x[0], x[1], x[2], y);
        return;
    }
    for (uint32_t i = 0; i < f->n; i++)
        for (size_t done = 0; done < bytes;) {
            ssize_t n = write(f->to, (char *)x[i] + done, bytes - done);
            if (n <= 0) fail("the command does not read");
            done += (size_t)n;
        }
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read(f->from, (char *)y + done, bytes - done);
        if (n <= 0) fail("the command does not answer");
        done += (size_t)n;
    }
}

/* ---- inputs, by number */
static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static float f32_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
/* A quarter any bits, half uniform in the function's range, a quarter of any size about 1. */
static double drawn(const Function *f, uint64_t i, uint32_t operand) {
    uint64_t r = mix((i * MOST + operand + 1) * 0x9e3779b97f4a7c15u);
    double u = (double)(mix(r) >> 11) * 0x1p-53, lo, hi, x;
    range_of(f->name, operand, &lo, &hi);
    switch (i % 4) {
    case 0:
        if (!f->wide) return f32_of((uint32_t)r);
        memcpy(&x, &r, sizeof x);
        return x;
    case 1: x = ldexp(lo < 0 ? u - 0.5 : u, (int)(r % 24) - 19); break;
    default: x = lo + u * (hi - lo);
    }
    if (operand == 0 && !strcmp(f->name, "polygamma")) x = floor(x);
    return x;
}

/* ---- errors */
typedef struct {
    double error, x[MOST], got;
    bool known;
} Worst;
static void worse(Worst *w, double error, uint32_t n, const double *x, double got) {
    if (w->known && !(error > w->error)) return;
    *w = (Worst){.error = error, .got = got, .known = true};
    memcpy(w->x, x, n * sizeof *x);
}
/* The unit in the last place of an f32 next to x. */
static double ulp_f32(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= (uint64_t)0x7ff << 52;
    memcpy(&x, &bits, sizeof x);
    return (x < 0x1p-126 ? 0x1p-126 : x > 0x1p127 ? 0x1p127 : x) * 0x1p-23;
}
/* In those units; infinite where a NaN, an infinity or the sign of a zero is wrong. */
static double error_f32(float got, double exact) {
    float nearest = (float)exact;
    if (isnan(got) || isnan(nearest)) return isnan(got) && isnan(nearest) ? 0 : INFINITY;
    if (got == nearest && (got == 0 || isinf(got))) return signbit(got) == signbit(nearest) ? 0 : INFINITY;
    return fabs((isinf(got) ? copysign(0x1p128, got) : got) - exact) / ulp_f32(exact);
}
static double error_f64(double got, mpfr_t exact) {
    double nearest = mpfr_get_d(exact, MPFR_RNDN);
    if (isnan(got) || isnan(nearest)) return isnan(got) && isnan(nearest) ? 0 : INFINITY;
    if (got == nearest && (got == 0 || isinf(got))) return signbit(got) == signbit(nearest) ? 0 : INFINITY;
    if (isinf(got) || mpfr_inf_p(exact)) return INFINITY;
    mpfr_t d;
    mpfr_init2(d, PRECISION);
    mpfr_sub_d(d, exact, got, MPFR_RNDN);
    long e = mpfr_zero_p(exact) ? -1073 : mpfr_get_exp(exact) - 53;
    mpfr_mul_2si(d, d, e < -1074 ? 1074 : -e, MPFR_RNDN);
    double error = fabs(mpfr_get_d(d, MPFR_RNDN));
    mpfr_clear(d);
    return error;
}
static bool subnormal(bool wide, double x) { return x != 0 && fabs(x) < (wide ? 0x1p-1022 : 0x1p-126); }

/* ---- sweeps, over chunks that threads take one after another */
typedef struct {
    Function f, wide;
    Exact *exact; /* NULL: f against wide */
    uint64_t inputs, stride;
    atomic_uint_fast64_t next; /* the first input of the chunk that nobody has taken */
    pthread_mutex_t lock;
    Worst worst;
} Sweep;

/* Input number i of the sweep: of one operand every bit pattern, or one of each `stride`. */
static float swept(const Sweep *s, uint64_t i, uint32_t operand) {
    if (s->f.n > 1) return (float)drawn(&s->f, i, operand);
    return f32_of((uint32_t)(s->stride == 1 ? i : i * s->stride + mix(i) % s->stride));
}
static void chunk(const Sweep *s, uint64_t first, Worst *w, float (*x)[CHUNK], double (*v)[CHUNK]) {
    uint32_t n = s->f.n;
    float y[CHUNK];
    double exact[CHUNK], at[MOST];
    for (uint32_t k = 0; k < n; k++)
        for (uint64_t i = 0; i < CHUNK; i++) v[k][i] = x[k][i] = swept(s, first + i, k);
    call(&s->f, (void *[]){x[0], x[1], x[2]}, y);
    call(&s->wide, (void *[]){v[0], v[1], v[2]}, exact);
    for (uint32_t i = 0; i < CHUNK && first + i < s->inputs; i++) {
        if (fabs(y[i] - exact[i]) <= w->error * ulp_f32(exact[i]) && y[i] != 0) continue;
        bool skip = s->f.child && subnormal(false, exact[i]);
        for (uint32_t k = 0; k < n; k++) at[k] = v[k][i], skip |= s->f.child && subnormal(false, v[k][i]);
        if (!skip) worse(w, error_f32(y[i], exact[i]), n, at, y[i]);
    }
}
static void chunk_exact(const Sweep *s, uint64_t first, Worst *w, float (*x)[CHUNK], double (*v)[CHUNK]) {
    uint32_t n = s->f.n;
    bool wide = s->f.wide, skip;
    float y[CHUNK];
    double got[CHUNK], at[MOST], nearest;
    mpfr_t operand[MOST], exact;
    mpfr_init2(exact, PRECISION);
    for (uint32_t k = 0; k < n; k++) {
        mpfr_init2(operand[k], 53);
        for (uint64_t i = 0; i < CHUNK; i++) {
            v[k][i] = drawn(&s->f, first + i, k);
            x[k][i] = (float)v[k][i];
        }
    }
    if (wide)
        call(&s->f, (void *[]){v[0], v[1], v[2]}, got);
    else
        call(&s->f, (void *[]){x[0], x[1], x[2]}, y);
    for (uint32_t i = 0; i < CHUNK && first + i < s->inputs; i++) {
        skip = false;
        for (uint32_t k = 0; k < n; k++) {
            at[k] = wide ? v[k][i] : x[k][i];
            mpfr_set_d(operand[k], at[k], MPFR_RNDN);
            skip |= s->f.child && subnormal(wide, at[k]);
        }
        if (skip || !s->exact(exact, (const mpfr_t *)operand)) continue;
        nearest = mpfr_get_d(exact, MPFR_RNDN);
        if (s->f.child && subnormal(wide, nearest)) continue;
        if (wide)
            worse(w, error_f64(got[i], exact), n, at, got[i]);
        else
            worse(w, error_f32(y[i], nearest), n, at, y[i]);
    }
    for (uint32_t k = 0; k < n; k++) mpfr_clear(operand[k]);
    mpfr_clear(exact);
}
static void *sweep(void *user) {
    Sweep *s = user;
    Worst w = {0};
    float (*x)[CHUNK] = calloc(MOST, sizeof *x);
    double (*v)[CHUNK] = calloc(MOST, sizeof *v);
    for (uint64_t first; (first = atomic_fetch_add(&s->next, CHUNK)) < s->inputs;)
        if (s->exact)
            chunk_exact(s, first, &w, x, v);
        else
            chunk(s, first, &w, x, v);
    pthread_mutex_lock(&s->lock);
    if (w.known) worse(&s->worst, w.error, MOST, w.x, w.got);
    pthread_mutex_unlock(&s->lock);
    free(x), free(v);
    mpfr_free_cache();
    return NULL;
}
static Worst sweep_all(Sweep *s) {
    pthread_t thread[64];
    long n = s->f.child ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
    if (n > 64) n = 64;
    pthread_mutex_init(&s->lock, NULL);
    for (long i = 1; i < n; i++) pthread_create(&thread[i], NULL, sweep, s);
    sweep(s);
    for (long i = 1; i < n; i++) pthread_join(thread[i], NULL);
    return s->worst;
}
static void print(const Worst *w, uint32_t n, const char *format) {
    printf(" %.4g |", w->error);
    for (uint32_t k = 0; k < n && w->error > 0; k++) {
        printf(k ? ", " : " ");
        printf(format, w->x[k]);
    }
    printf(" |");
    fflush(stdout);
}

/* From the command line. */
typedef struct {
    const char *jaxcc, *command;
    uint64_t stride, samples;
} How;
static uint32_t operands(const char *arity) { return !strcmp(arity, "unary") ? 1 : !strcmp(arity, "binary") ? 2 : 3; }
static Worst sampled(const How *how, uint32_t row, Function f) {
    if (how->command) start(&f, how->command);
    Sweep s = {.f = f, .exact = functions[row].exact, .inputs = how->samples / (f.n > 1 ? 4 : 1)};
    Worst w = sweep_all(&s);
    stop(&f);
    return w;
}
static void measure(const How *how, uint32_t row) {
    Function f32 = {.name = functions[row].name, .n = operands(functions[row].arity)}, f64 = f32;
    f64.wide = true;
    compile(&f32, how->jaxcc);
    compile(&f64, how->jaxcc);
    Function f = f32;
    if (how->command) start(&f, how->command);
    Sweep all = {.f = f, .wide = f64, .stride = how->stride};
    all.inputs = ((uint64_t)1 << (f.n == 1 ? 32 : 26)) / how->stride;
    Worst w = sweep_all(&all), v = sampled(how, row, f32);
    stop(&f);
    printf("| %s |", f.name);
    print(v.error > w.error ? &v : &w, f.n, "%.9g");
    w = sampled(how, row, f64);
    print(&w, f.n, "%.17g");
    printf("\n");
}

int main(int argc, char **argv) {
    How how = {.stride = 1, .samples = 1 << 16};
    for (int c; (c = getopt(argc, argv, "s:n:o:")) != -1;) {
        if (c == 's') how.stride = strtoull(optarg, NULL, 10);
        if (c == 'n') how.samples = strtoull(optarg, NULL, 10);
        if (c == 'o') how.command = optarg;
        if (c == '?') return 2;
    }
    if (optind == argc || !how.stride)
        fail("usage: accuracy [-s STRIDE] [-n SAMPLES] [-o COMMAND] JAXCC [FUNCTION...]");
    how.jaxcc = argv[optind];
    setenv("JAXCC_NUM_THREADS", "1", 1);
    signal(SIGPIPE, SIG_IGN);
    for (uint32_t i = 0; i < NFUNCTIONS; i++) {
        bool wanted = optind + 1 == argc;
        for (int k = optind + 1; k < argc; k++) wanted |= !strcmp(argv[k], functions[i].name);
        if (wanted && functions[i].exact) measure(&how, i);
    }
}
