/* jaxcc-run: calls a program of a library with arrays from files. */
#include "run.h"
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DONE, FAILED, USAGE };
static const char version[] = "jaxcc-run 0.1.0\n";
static const char help[] =
    "Usage: jaxcc-run [options] LIBRARY [FILE.npz | FILE.npy ...]\n"
    "Calls a function of LIBRARY with in0, in1, ... of an .npz file, or with one .npy file for each input.\n\n"
    "  -o OUT.npz         write the outputs out0, out1, ... (a single one: also OUT.npy) instead of printing them\n"
    "  --info             print name, inputs, outputs, dimensions and workspace\n"
    "  --bench[=SECONDS]  call repeatedly (for one second) and print the time of a call\n"
    "  --profile FILE     with --bench: write to FILE.json where the time goes, by kernels, for the page of jaxcc "
    "--report\n"
    "  --guard            place arrays against unreadable memory and call with a stack of 80 KiB, so that a library\n"
    "                     that accesses memory outside them ends with an error\n"
    "  --expect OUT.npz   compare the outputs with those in OUT.npz\n"
    "  --rtol R, --atol A tolerance of --expect: |got - want| <= A + R |want|; the default depends on the type\n"
    "  --entry NAME       the function to call; the default is the first of the library\n"
    "  --threads N        the number of threads that the library may use\n"
    "  --device N         the GPU that a library for GPUs uses\n"
    "  -D NAME=N          the value of a dimension that does not follow from the shapes of the inputs\n"
    "  --help, --version\n\n"
    "Exit status: 0 done; 1 the library or the data is at fault, or the call failed; 2 wrong usage.\n";

bool run_error(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fprintf(stderr, "jaxcc-run: error: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    return false;
}

const char *plural(int64_t n) { return n == 1 ? "" : "s"; }

void *run_alloc(size_t n, size_t size) {
    void *p = calloc(n + !n, size);
    if (p) return p;
    run_error("no memory");
    exit(FAILED);
}

/* ---- the command line */

typedef struct {
    const char *library, *output, *expect, *entry, *profile;
    char **files;
    int n_files;
    char **dims; /* texts of -D */
    int n_dims, threads;
    bool info, bench, guard;
    double seconds, rtol, atol; /* tolerances: negative when not given */
} Options;

static bool usage(const char *format, const char *what) {
    run_error(format, what);
    fprintf(stderr, "try 'jaxcc-run --help'\n");
    return false;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), k = strlen(end);
    return n >= k && !strcmp(text + n - k, end);
}

/* A name without a suffix, such as /dev/full, is taken as .npz. */
static bool output_option(const char *path) {
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *suffix = strrchr(name, '.');
    return !suffix || !strcmp(suffix, ".npz") || !strcmp(suffix, ".npy") ||
           usage("-o %s: write a name that ends in .npz, or, of one output, in .npy", path);
}

static bool number(const char *text, double *x) {
    char *end;
    *x = strtod(text, &end);
    return (*text && !*end && *x >= 0 && isfinite(*x)) || usage("'%s' is no number", text);
}

static bool count(const char *text, int *n) {
    char *end;
    long x = strtol(text, &end, 10);
    *n = (int)x;
    return (*text && !*end && x > 0 && x < 100000) || usage("'%s' is no number of threads", text);
}

/* Libraries for GPUs read it from the environment. */
static bool number_of_gpu(const char *text) {
    char *end;
    long x = strtol(text, &end, 10);
    if (!*text || *end || x < 0 || x > INT32_MAX) return usage("'%s' is no number of a GPU", text);
    return setenv("JAXCC_CUDA_DEVICE", text, 1) == 0;
}

/* NAME=N */
static bool dim_option(const char *text, int64_t *value) {
    const char *equals = strchr(text, '=');
    char *end = NULL;
    if (equals && equals > text) *value = strtoll(equals + 1, &end, 10);
    return (end && end > equals + 1 && !*end) || usage("-D %s: write NAME=N", text);
}

enum {
    O_INFO = 256,
    O_BENCH,
    O_PROFILE,
    O_GUARD,
    O_EXPECT,
    O_RTOL,
    O_ATOL,
    O_ENTRY,
    O_THREADS,
    O_DEVICE,
    O_HELP,
    O_VERSION
};
static const struct option long_options[] = {{"info", no_argument, NULL, O_INFO},
                                             {"bench", optional_argument, NULL, O_BENCH},
                                             {"profile", required_argument, NULL, O_PROFILE},
                                             {"guard", no_argument, NULL, O_GUARD},
                                             {"expect", required_argument, NULL, O_EXPECT},
                                             {"rtol", required_argument, NULL, O_RTOL},
                                             {"atol", required_argument, NULL, O_ATOL},
                                             {"entry", required_argument, NULL, O_ENTRY},
                                             {"threads", required_argument, NULL, O_THREADS},
                                             {"device", required_argument, NULL, O_DEVICE},
                                             {"help", no_argument, NULL, O_HELP},
                                             {"version", no_argument, NULL, O_VERSION},
                                             {NULL, 0, NULL, 0}};

static bool read_option(Options *o, int c, char **argv) {
    int64_t value;
    switch (c) {
    case 'o': o->output = optarg; return output_option(optarg);
    case 'D': o->dims[o->n_dims++] = optarg; return dim_option(optarg, &value);
    case O_INFO: return o->info = true;
    case O_BENCH: o->bench = true; return !optarg || number(optarg, &o->seconds);
    case O_PROFILE: o->profile = optarg; return true;
    case O_GUARD: return o->guard = true;
    case O_EXPECT: o->expect = optarg; return true;
    case O_RTOL: return number(optarg, &o->rtol);
    case O_ATOL: return number(optarg, &o->atol);
    case O_ENTRY: o->entry = optarg; return true;
    case O_THREADS: return count(optarg, &o->threads);
    case O_DEVICE: return number_of_gpu(optarg);
    case ':': return usage("'%s' needs a value", argv[optind - 1]);
    default: return usage("unknown option '%s'", argv[optind - 1]);
    }
}

static bool is_file(const char *path, const struct stat *is) {
    struct stat of;
    return path && !stat(path, &of) && of.st_dev == is->st_dev && of.st_ino == is->st_ino;
}
/* Is what is written none of the files that are read? */
static bool is_apart(const Options *o, const char *written) {
    struct stat is;
    if (!written || stat(written, &is)) return true;
    bool apart = !is_file(o->library, &is) && !is_file(o->expect, &is);
    for (int i = 0; i < o->n_files; i++) apart &= !is_file(o->files[i], &is);
    return apart || usage("'%s' is read, and would be overwritten", written);
}
/* Returns -1 to go on, or the exit status. */
static int read_options(int argc, char **argv, Options *o) {
    *o = (Options){.seconds = 1, .rtol = -1, .atol = -1, .dims = run_alloc((size_t)argc, sizeof(char *))};
    for (int c; (c = getopt_long(argc, argv, ":o:D:", long_options, NULL)) != -1;) {
        if (c == O_HELP || c == O_VERSION) return fputs(c == O_HELP ? help : version, stdout), DONE;
        if (!read_option(o, c, argv)) return USAGE;
    }
    if (optind == argc) return usage("%s", "no library given"), USAGE;
    o->library = argv[optind++];
    o->files = argv + optind;
    o->n_files = argc - optind;
    if (o->profile && !o->bench) return usage("%s goes with --bench", "--profile"), USAGE;
    if (!is_apart(o, o->output) || !is_apart(o, o->profile)) return USAGE;
    return -1;
}

/* ---- inputs */

typedef struct {
    Npz *files;
    const NpzArray **in; /* in the order of the program's inputs */
    int32_t n;
} Inputs;

/* Array i of a file: in0 …, arr_0 …, out0 … of another call, or the input's own name. */
static const NpzArray *pick(const Npz *z, uint32_t i, const char *name) {
    static const char *const usual[] = {"in%u", "arr_%u", "out%u"};
    const NpzArray *a = NULL;
    char text[32];
    for (unsigned k = 0; k < 3 && !a; k++) {
        snprintf(text, sizeof text, usual[k], i);
        a = npz_find(z, text);
    }
    return a || !name ? a : npz_find(z, name);
}

static bool is_npy(const Npz *z) { return z->n == 1 && !*z->at[0].name; }

static bool add_file(Inputs *x, const jaxcc_program *p, const char *path, const Npz *z) {
    const NpzArray **more = run_alloc((size_t)x->n + z->n, sizeof *more);
    if (x->n) memcpy(more, x->in, (size_t)x->n * sizeof *more);
    free(x->in);
    x->in = more;
    for (uint32_t i = 0; i < z->n; i++) {
        const char *name = x->n < p->n_in ? p->in[x->n].name : NULL;
        const NpzArray *a = is_npy(z) ? z->at : pick(z, i, name);
        if (!a) return run_error("'%s' has %u array%s, but no 'in%u'", path, z->n, plural(z->n), i);
        x->in[x->n++] = a;
    }
    return true;
}

static bool check_input(const jaxcc_type *t, const NpzArray *a) {
    char is[400], wanted[400];
    const NpzType *numpy = npz_type(t->dtype);
    if (!numpy) return run_error("input '%s': type '%s' is unknown", t->name, t->dtype);
    uint32_t rank = (uint32_t)t->rank + (numpy->words ? 1 : 0);
    bool words = !numpy->words || (a->rank && a->dims[a->rank - 1] == numpy->words);
    if (npz_holds(a, numpy) && a->rank == rank && words) return true;
    size_t n = (size_t)snprintf(wanted, sizeof wanted, "%s[", t->dtype);
    for (int32_t i = 0; i < t->rank && n < sizeof wanted; i++)
        n += (size_t)snprintf(wanted + n, sizeof wanted - n, "%s%s", i ? "," : "", t->extents[i]);
    print_type(is, sizeof is, t->dtype, a);
    bool converts = !npz_holds(a, numpy);
    return run_error("input '%s' must be %s], but is %s%s%s%s", t->name, wanted, is,
                     converts ? "; convert it: .astype(" : "", converts ? numpy->python : "", converts ? ")" : "");
}

static bool read_inputs(const Options *o, const jaxcc_program *p, Inputs *x) {
    NpzError e;
    x->files = run_alloc((size_t)o->n_files, sizeof *x->files);
    for (int i = 0; i < o->n_files; i++) {
        if (!npz_read(o->files[i], &x->files[i], &e)) return run_error("%s", e.text);
        if (!add_file(x, p, o->files[i], &x->files[i])) return false;
    }
    if (x->n != p->n_in)
        return run_error("%s takes %d input%s, but %d %s given", p->name, p->n_in, plural(p->n_in), x->n,
                         x->n == 1 ? "is" : "are");
    for (int32_t i = 0; i < x->n; i++)
        if (!check_input(&p->in[i], x->in[i])) return false;
    return true;
}

/* ---- dimensions */

static bool set_dims(const Options *o, const jaxcc_program *p, jaxcc_rt_variables *v) {
    for (int i = 0; i < o->n_dims; i++) {
        const char *text = o->dims[i];
        size_t n = (size_t)(strchr(text, '=') - text);
        int32_t k = 0;
        while (k < p->n_dims && (strlen(p->dims[k]) != n || memcmp(p->dims[k], text, n))) k++;
        if (k == p->n_dims) return run_error("-D %s: the program has no such dimension", text);
        v->at[k].known = true;
        dim_option(text, &v->at[k].value);
    }
    return true;
}

/* The program's dimensions; the inputs that are integer scalars too, where there are inputs. */
static bool variables_new(const Options *o, const jaxcc_program *p, const Inputs *x, jaxcc_rt_variables *v) {
    size_t most = (size_t)p->n_dims + (size_t)p->n_in;
    *v = (jaxcc_rt_variables){run_alloc(most, sizeof *v->at), 0};
    for (int32_t i = 0; i < p->n_dims; i++) {
        assert((size_t)v->n < most);
        v->at[v->n++].name = p->dims[i];
    }
    for (int32_t i = 0; x && i < x->n; i++)
        if (p->in[i].rank == 0 && strchr("iu", x->in[i]->kind) && strchr("iu", p->in[i].dtype[0]))
            v->at[v->n++] = (jaxcc_rt_variable){p->in[i].name, true, (int64_t)element(x->in[i], p->in[i].dtype, 0, 0)};
    return set_dims(o, p, v);
}

/* ---- the call */

typedef struct {
    const jaxcc_program *p;
    int64_t *dims;
    const void **in;
    void **out;
    NpzArray *arrays;      /* the outputs; `data` of exactly their size */
    jaxcc_array *computed; /* those that the library allocates */
    bool *is_computed;
} Call;

static bool count_bytes(NpzArray *a, const jaxcc_type *t) {
    a->bytes = a->size;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dims[i] == 0) return a->bytes = 0, true;
    for (uint32_t i = 0; i < a->rank; i++)
        if (__builtin_mul_overflow(a->bytes, a->dims[i], &a->bytes))
            return run_error("output '%s' is too large", t->name);
    return true;
}

static bool output_new(Call *c, int32_t i, const jaxcc_rt_variables *v) {
    const jaxcc_type *t = &c->p->out[i];
    const NpzType *numpy = npz_type(t->dtype);
    NpzArray *a = &c->arrays[i];
    a->name = run_alloc(32, 1);
    sprintf(a->name, "out%d", i);
    if (!numpy || t->rank >= NPZ_RANK) return run_error("output '%s': type '%s' is unknown", t->name, t->dtype);
    a->kind = numpy->kind;
    a->size = numpy->size;
    a->rank = (uint32_t)t->rank;
    if (numpy->words) a->dims[a->rank++] = numpy->words;
    c->out[i] = &c->computed[i];
    if (!dims_of(t, v, a->dims, &c->is_computed[i])) return c->is_computed[i];
    if (!count_bytes(a, t)) return false;
    if (posix_memalign(&a->data, 64, (size_t)a->bytes + !a->bytes))
        return run_error("no memory for output '%s' of %lld byte%s", t->name, (long long)a->bytes, plural(a->bytes));
    c->out[i] = a->data;
    return true;
}

static bool call_new(const jaxcc_program *p, const Inputs *x, const jaxcc_rt_variables *v, Call *c) {
    size_t n_out = (size_t)p->n_out;
    *c = (Call){.p = p};
    c->dims = run_alloc((size_t)p->n_dims, sizeof *c->dims);
    c->in = run_alloc((size_t)p->n_in, sizeof *c->in);
    c->out = run_alloc(n_out, sizeof *c->out);
    c->arrays = run_alloc(n_out, sizeof *c->arrays);
    c->computed = run_alloc(n_out, sizeof *c->computed);
    c->is_computed = run_alloc(n_out, sizeof *c->is_computed);
    for (int32_t i = 0; i < p->n_dims; i++) c->dims[i] = v->at[i].value;
    assert(x->in || !p->n_in);
    for (int32_t i = 0; i < p->n_in; i++) c->in[i] = x->in[i]->data;
    for (int32_t i = 0; i < p->n_out; i++)
        if (!output_new(c, i, v)) return false;
    return true;
}

/* Frees what the library allocated for the outputs. */
static void release_computed(Call *c) {
    for (int32_t i = 0; c->computed && i < c->p->n_out; i++) {
        if (c->computed[i].release) c->computed[i].release(&c->computed[i]);
        if (c->is_computed[i]) c->arrays[i].data = NULL;
        c->computed[i] = (jaxcc_array){0};
    }
}

static void call_free(Call *c) {
    release_computed(c);
    for (int32_t i = 0; c->arrays && i < c->p->n_out; i++) {
        free(c->arrays[i].name);
        free(c->arrays[i].data);
    }
    free(c->dims);
    free(c->in);
    free(c->out);
    free(c->arrays);
    free(c->computed);
    free(c->is_computed);
}

static bool call_once(Call *c) {
    int32_t status = c->p->call(c->dims, c->in, c->out);
    return !status || run_error("%s failed with status %d: %s", c->p->name, status, c->p->error());
}

/* The outputs that the library allocated, as arrays. */
static bool adopt_computed(Call *c) {
    for (int32_t i = 0; i < c->p->n_out; i++) {
        const jaxcc_array *from = &c->computed[i];
        NpzArray *a = &c->arrays[i];
        if (!c->is_computed[i]) continue;
        if (from->rank != c->p->out[i].rank) return run_error("output '%s' has a wrong rank", c->p->out[i].name);
        for (int32_t k = 0; k < from->rank; k++) a->dims[k] = from->dims[k];
        a->data = from->data;
        if (!count_bytes(a, &c->p->out[i])) return false;
    }
    return true;
}

/* ---- --info */

static void info_types(const char *what, int32_t n, const jaxcc_type *t) {
    for (int32_t i = 0; i < n; i++) {
        printf("  %s%-3d %-8s %s[", what, i, t[i].name, t[i].dtype);
        for (int32_t k = 0; k < t[i].rank; k++) printf("%s%s", k ? "," : "", t[i].extents[k]);
        printf("]\n");
    }
}

static bool info(const Options *o, const jaxcc_program *p) {
    jaxcc_rt_variables v;
    if (!variables_new(o, p, NULL, &v)) return false;
    int64_t *dims = run_alloc(v.n, sizeof *dims);
    printf("%s\n", p->name);
    bool known = true;
    for (uint32_t i = 0; i < v.n; i++) {
        printf("  dim%-2u %s", i, v.at[i].name);
        printf(v.at[i].known ? " = %lld\n" : "\n", (long long)v.at[i].value);
        known &= v.at[i].known;
        dims[i] = v.at[i].value;
    }
    info_types("in", p->n_in, p->in);
    info_types("out", p->n_out, p->out);
    if (known)
        printf("  workspace %lld bytes\n", (long long)p->workspace(dims));
    else
        printf("  workspace depends on the dimensions; give them by -D\n");
    free(dims);
    free(v.at);
    return true;
}

/* ---- --bench */

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static const char *time_text(double seconds, char *to) {
    static const char *const unit[] = {"ns", "us", "ms", "s"};
    int u = 0;
    for (seconds *= 1e9; seconds >= 1000 && u < 3; u++) seconds /= 1000;
    sprintf(to, "%.4g %s", seconds, unit[u]);
    return to;
}

/* Large arrays get huge pages, as the workspace of a library has them, if the system has some. */
static void in_huge_pages(const void *array, int64_t bytes) {
    enum { HUGE_PAGE = 2 << 20, COLLAPSE = 25 /* MADV_COLLAPSE, since Linux 6.1 */ };
    uintptr_t from = ((uintptr_t)array + HUGE_PAGE - 1) & -(uintptr_t)HUGE_PAGE;
    uintptr_t to = ((uintptr_t)array + (size_t)bytes) & -(uintptr_t)HUGE_PAGE;
    if (!array || from >= to) return;
    void *pages = (char *)array + (from - (uintptr_t)array);
    madvise(pages, to - from, MADV_HUGEPAGE);
    madvise(pages, to - from, COLLAPSE);
}
/* One sample of `calls` calls: the seconds of one; negative after an error. */
static double sample(Call *c, long calls, clockid_t clock) {
    double start = now(clock);
    for (long i = 0; i < calls; i++) {
        if (!call_once(c)) return -1;
        release_computed(c);
    }
    return (now(clock) - start) / (double)calls;
}

enum { SAMPLES = 100000 };

/* One thread: the time that it had a CPU, which other programs change less. */
static bool bench(const Options *o, const Inputs *x, Call *c) {
    clockid_t clock = o->threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    for (int32_t i = 0; i < c->p->n_in; i++) in_huge_pages(x->in[i]->data, x->in[i]->bytes);
    for (int32_t i = 0; i < c->p->n_out; i++) in_huge_pages(c->arrays[i].data, c->arrays[i].bytes);
    double *times = run_alloc(SAMPLES, sizeof *times), t = sample(c, 1, clock);
    char median[32], least[32];
    long calls = 1;
    for (int i = 0; i < 3 && t >= 0; i++) { /* a sample takes 10 µs or more, where the clock is exact */
        calls = t > 1e-5 ? 1 : (long)(1e-5 / (t + 1e-10)) + 1;
        t = sample(c, calls, clock);
    }
    int n = 0;
    if (o->profile && !profile_begin()) t = -1;
    double end = now(CLOCK_MONOTONIC) + o->seconds;
    for (; t >= 0 && n < SAMPLES && (n < 3 || now(CLOCK_MONOTONIC) < end); n++) times[n] = t = sample(c, calls, clock);
    qsort(times, (size_t)n, sizeof *times, by_value);
    if (t >= 0)
        printf("%s: %s%s a call (median; least %s; %d sample%s of %ld)\n", c->p->name, time_text(times[n / 2], median),
               o->threads == 1 ? " of CPU time" : "", time_text(times[0], least), n, plural(n), calls);
    bool good = t >= 0 && (!o->profile || profile_end(o->profile, o->library, c->p, times[n / 2]));
    free(times);
    return good;
}

/* ---- --expect */

static bool compare_all(const Options *o, const Call *c) {
    Npz want;
    NpzError e;
    if (!npz_read(o->expect, &want, &e)) return run_error("%s", e.text);
    bool good = (int64_t)want.n == c->p->n_out ||
                run_error("%d output%s instead of %u", c->p->n_out, plural(c->p->n_out), want.n);
    for (int32_t i = 0, n = good ? c->p->n_out : 0; i < n; i++) {
        const NpzArray *w = is_npy(&want) ? want.at : npz_find(&want, c->arrays[i].name);
        good &= w ? compare_arrays(c->p->out[i].dtype, o->rtol, o->atol, &c->arrays[i], w)
                  : run_error("'%s' has no '%s'", o->expect, c->arrays[i].name);
    }
    npz_free(&want);
    return good;
}

/* ---- main */

static bool deliver(const Options *o, const Call *c) {
    NpzError e;
    if (o->output && !npz_write(o->output, ends_with(o->output, ".npy"), c->arrays, (uint32_t)c->p->n_out, &e))
        return run_error("%s", e.text);
    if (o->expect) return compare_all(o, c);
    for (int32_t i = 0; i < c->p->n_out && !o->output && !o->bench; i++) {
        char type[400];
        print_type(type, sizeof type, c->p->out[i].dtype, &c->arrays[i]);
        printf("%s: %s\n", c->arrays[i].name, type);
        print_array(&c->arrays[i], c->p->out[i].dtype);
    }
    return true;
}

static bool run_with(const Options *o, const jaxcc_program *p, const Inputs *x, jaxcc_rt_variables *v) {
    Call c;
    if (o->output && ends_with(o->output, ".npy") && p->n_out != 1)
        return run_error("%s has %d outputs; write an .npz", p->name, p->n_out);
    if (!dims_solve(p, x->in, v)) return false;
    if (o->threads) p->set_num_threads(o->threads);
    bool good = call_new(p, x, v, &c);
    bool computes = false;
    for (int32_t i = 0; good && i < p->n_out; i++) computes |= c.is_computed[i];
    if (good && o->guard && !computes)
        good = run_guarded(p, c.dims, x->in, c.arrays);
    else if (good && o->guard)
        good = run_on_stack(p, c.dims, c.in, c.out) && adopt_computed(&c);
    else
        good = good && call_once(&c) && adopt_computed(&c);
    good = good && deliver(o, &c);
    if (good && o->bench) {
        release_computed(&c);
        good = bench(o, x, &c);
    }
    call_free(&c);
    return good;
}

static bool run_program(const Options *o, const jaxcc_program *p) {
    Inputs x = {0};
    jaxcc_rt_variables v = {0};
    bool good = read_inputs(o, p, &x) && variables_new(o, p, &x, &v) && run_with(o, p, &x, &v);
    for (int i = 0; x.files && i < o->n_files; i++) npz_free(&x.files[i]);
    free(x.files);
    free(x.in);
    free(v.at);
    return good;
}

static bool run_library(const Options *o, const Library *l) {
    uint32_t i = 0;
    while (o->entry && i < l->n && strcmp(l->at[i]->name, o->entry)) i++;
    if (i == l->n) return run_error("'%s' has no program '%s'", o->library, o->entry);
    if (!o->info) return run_program(o, l->at[i]);
    bool good = true;
    for (uint32_t k = 0; k < l->n; k++)
        if (!o->entry || k == i) good &= info(o, l->at[k]);
    return good;
}

int main(int argc, char **argv) {
    Options o;
    Library l;
    int status = read_options(argc, argv, &o);
    if (status < 0) {
        status = FAILED;
        end_cleanly();
        if (library_open(o.library, &l)) {
            if (run_library(&o, &l)) status = DONE;
            library_close(&l);
        }
    }
    free(o.dims);
    if ((fflush(stdout) || ferror(stdout)) && status == DONE) {
        run_error("cannot write standard output: %s", strerror(errno));
        status = FAILED;
    }
    return status;
}
