/* The laws of derivatives, over programs of tests/laws/.

       laws [--filter REGEX] [--part R] [--jobs N] [--brief] [--verbose] FILE...

   A file has blocks, which blank lines part; a line that begins with # is a comment:

       NAME: LO:HI LO:HI …        where the inputs are drawn, the last pair for all that remain; then, if need be, n=4 …,
                                  `once` for a program without second derivatives, `forward` for one without transpose,
                                  `loop` for one whose loops may be kept in other ways,
                                  `batches` for a program of which that law alone is tried, with each of its inputs alone
                                  in a batch, each alone not, and all
       { lambda ; … }             the program, over symbols; each is 3 unless the first line says otherwise

   Floats are f64 and c128, in which differences are accurate. For each program, once with numbers and once with symbols:
     jvp      the tangents are those of central differences (complex numbers along a complex direction);
     adjoint  ⟨c, J g⟩ = ⟨Jᵀ c, g⟩, unconjugated, the real part of it;
     primals  the results of --vjp are those of the program;
     split    --jvp divided at drawn tangents, and put together again, computes the same (divide.h);
     twice    transposing the transpose gives J again;
     hessian  --vjp --jvp is symmetric;
     loop     --vjp gives the same however its loops are kept (ways_of);
     batch    --vmap of drawn subsets of the inputs computes for 0, 1 and 3 examples, a number or a symbol, what the program
              does for each; so do --jvp and --vjp before it and, with sums over the examples, after it;
     symbols  a library that takes the sizes computes what one with fixed sizes does (first derivatives).
   The compiler verifies the output of every pass. Every row of prims.def that has a rule for its tangents occurs in some
   program. */
#include "../compiler/ir.h"
#include "../runtime/jaxcc.h"
#include "divide.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int jaxcc_main(int argc, char **argv);

enum { MOST_INPUTS = 32, MOST_VALUES = 128, MOST_DIMS = 8, MOST_LAWS = 4096, WHY = 300, SECONDS = 60 };

enum { PLAIN, JVP, VJP, HESSIAN, TWICE, NFLAGS, NSYMBOLIC = HESSIAN /* compiled with symbols, too */ };
static const char *const flags_of[NFLAGS] = {"", "--jvp", "--vjp", "--vjp --jvp", "--vjp --vjp"};
enum { NWAYS = 5 };
static const char *const ways_of[NWAYS] = {"--vjp --tape=bound:256", "--vjp --remat=all", "--vjp --remat=dots",
                                           "--vjp --remat=sqrt", "--vjp --remat=levels:3"};
typedef struct {
    char *name, *text;
    struct {
        double lo, hi;
    } range[MOST_INPUTS];
    int nranges;
    struct {
        char *name;
        int value;
    } dims[MOST_DIMS];
    int ndims;
    int flags;    /* how many of flags_of: fewer if it has no transpose, or no second derivative */
    bool loop;    /* are there loops to be kept in other ways? */
    bool batches; /* is it only tried with batches, of each input and of all others? */
} Law;
static bool verbose;    /* what the compiler says is shown */
static bool brief;      /* fewer batches */
static double part = 1; /* of the programs, this part is tried */
static Law laws[MOST_LAWS];
static int nlaws;

/* ---- reading */
static const struct {
    const char *word;
    int flags;
} fewer[] = {{"batches", JVP}, {"forward", VJP}, {"once", HESSIAN}};
static void head(Law *law, char *line) {
    char *rest = strchr(line, ':');
    *rest++ = 0;
    law->name = strdup(line);
    for (char *word = strtok(rest, " \t\n"); word; word = strtok(NULL, " \t\n")) {
        char *equals = strchr(word, '='), *colon = strchr(word, ':');
        for (size_t i = 0; i < sizeof fewer / sizeof *fewer; i++)
            if (strcmp(word, fewer[i].word) == 0) law->flags = fewer[i].flags;
        law->loop |= strcmp(word, "loop") == 0;
        law->batches |= strcmp(word, "batches") == 0;
        if (equals && law->ndims < MOST_DIMS) {
            *equals = 0;
            law->dims[law->ndims].name = strdup(word);
            law->dims[law->ndims++].value = atoi(equals + 1);
        } else if (colon && law->nranges < MOST_INPUTS) {
            law->range[law->nranges].lo = atof(word);
            law->range[law->nranges++].hi = atof(colon + 1);
        }
    }
}
static void read_laws(const char *path) {
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    Law *law = NULL;
    if (!f) perror(path), exit(2);
    while (getline(&line, &cap, f) > 0) {
        if (line[0] == '#') continue;
        if (line[strspn(line, " \t\r\n")] == 0) {
            law = NULL;
        } else if (!law) {
            if (nlaws == MOST_LAWS || !strchr(line, ':')) fprintf(stderr, "%s: not a law: %s", path, line), exit(2);
            laws[nlaws].flags = NFLAGS, head(law = &laws[nlaws++], line);
        } else {
            char *text = NULL;
            if (asprintf(&text, "%s%s", law->text ? law->text : "", line) < 0) abort();
            law->text = text;
        }
    }
    fclose(f);
}

/* ---- one program, in a process of its own: what is wrong is written to `why` */
typedef struct {
    const Law *law;
    char *why; /* empty while all is well */
    const char *dir;
    int examples;
} Trial;
__attribute__((format(printf, 2, 3))) static bool wrong(Trial *t, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    if (!t->why[0]) vsnprintf(t->why, WHY, fmt, args);
    va_end(args);
    return false;
}

/* A compiled program; with sizes as parameters, or fixed. */
typedef struct {
    const jaxcc_program *program;
    const char *flags;
} Library;
static int size_of_dim(const Trial *t, const char *name) {
    if (strcmp(name, "batch") == 0) return t->examples;
    for (int i = 0; i < t->law->ndims; i++)
        if (strcmp(t->law->dims[i].name, name) == 0) return t->law->dims[i].value;
    return 3;
}
static bool compiled(Trial *t, const char *text, const char *flags, const Library *symbolic, Library *to) {
    static int count;
    char *argv[64] = {"jaxcc", "--verify", "--name=f", "--no-header", "-O1"}, *words = strdup(flags), *so = NULL,
         *in = NULL;
    int n = 5;
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) argv[n++] = word;
    for (int i = 0; symbolic && i < symbolic->program->n_dims; i++) {
        const char *dim = symbolic->program->dims[i];
        if (asprintf(&argv[n++], "-D%s=%d", dim, size_of_dim(t, dim)) < 0) abort();
    }
    if (symbolic && strstr(flags, "--vmap") && asprintf(&argv[n++], "-Dbatch=%d", t->examples) < 0) abort();
    if (asprintf(&in, "%s/%s", t->dir, text) < 0 || asprintf(&so, "%s/f%d.so", t->dir, count++) < 0) abort();
    argv[n++] = in, argv[n++] = "-o", argv[n++] = so;
    int status = 0;
    pid_t compiler = fork(); /* which compiles once in a process */
    if (!compiler) {
        status = jaxcc_main(n, argv);
        fflush(NULL);
        _exit(status);
    }
    waitpid(compiler, &status, 0);
    if (status != 0) return wrong(t, "'%s' does not compile", flags);
    void *library = dlopen(so, RTLD_NOW | RTLD_LOCAL);
    const jaxcc_program *(*get)(void) = library ? (const jaxcc_program *(*)(void))dlsym(library, "f_program") : NULL;
    if (!get) return wrong(t, "'%s' does not load", flags);
    *to = (Library){get(), flags};
    return true;
}

/* ---- arrays */
typedef enum { REAL, COMPLEX, OTHER } Kind;
typedef struct {
    Kind kind;
    size_t n, bytes; /* numbers, two for a complex one; of the array */
    union {
        double *at;
        void *data;
    };
} Array;
typedef struct {
    Array at[MOST_VALUES];
    int n;
} Arrays;
static size_t width(const char *dtype) {
    const char *digits = dtype + strcspn(dtype, "0123456789");
    size_t bits = strtoul(digits, NULL, 10);
    return strncmp(dtype, "key", 3) == 0 ? 8 : bits < 8 ? 1 : bits / 8;
}
/* Room for an array of fixed extents. */
static Array array_of(const jaxcc_type *type) {
    Array a = {.kind = strcmp(type->dtype, "f64") == 0    ? REAL
                       : strcmp(type->dtype, "c128") == 0 ? COMPLEX
                                                          : OTHER,
               .n = 1};
    for (int i = 0; i < type->rank; i++) a.n *= strtoul(type->extents[i], NULL, 10);
    a.bytes = a.n * (a.kind == COMPLEX ? 16 : width(type->dtype));
    a.n *= a.kind == COMPLEX ? 2 : 1;
    a.data = calloc(a.bytes + 16, 1);
    return a;
}
static Arrays room(int n, const jaxcc_type *types) {
    Arrays all = {.n = n};
    for (int i = 0; i < n; i++) all.at[i] = array_of(&types[i]);
    return all;
}
static double uniform(double lo, double hi) {
    static uint64_t state = 88172645463325252ull;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return lo + (hi - lo) * (double)(state >> 11) / 9007199254740992.0;
}
/* Integers and bools take whole numbers of their range. */
static void draw(Array *a, const char *dtype, double lo, double hi) {
    size_t bytes = a->kind == OTHER ? width(dtype) : 8, n = a->bytes / bytes;
    for (size_t i = 0; i < n; i++) {
        int64_t whole = (int64_t)floor(uniform(lo, hi + 1));
        if (a->kind != OTHER)
            a->at[i] = uniform(lo, hi);
        else
            memcpy((char *)a->data + i * bytes, &whole, bytes);
    }
}
static bool call(Trial *t, const Library *l, const int64_t *dims, const Arrays *in, Arrays *out) {
    const void *from[MOST_VALUES];
    void *to[MOST_VALUES];
    for (int i = 0; i < in->n; i++) from[i] = in->at[i].data;
    for (int i = 0; i < out->n; i++) to[i] = out->at[i].data;
    if (in->n != l->program->n_in || out->n != l->program->n_out)
        return wrong(t, "'%s': other inputs or outputs", l->flags);
    int status = l->program->call(dims, from, to);
    return status == 0 || wrong(t, "'%s' returns %d: %s", l->flags, status, l->program->error());
}
/* The real part of the unconjugated inner product. */
static double inner(const Array *x, const Array *y) {
    double sum = 0;
    for (size_t i = 0; i < x->n; i++) sum += x->kind == COMPLEX && i % 2 ? -x->at[i] * y->at[i] : x->at[i] * y->at[i];
    return sum;
}
static double size(const Array *x, const Array *y) {
    double sum = 0;
    for (size_t i = 0; i < x->n; i++) sum += fabs(x->at[i] * y->at[i]);
    return sum;
}
static bool same(Trial *t, const char *law, const Array *x, const Array *y, double tolerance) {
    for (size_t i = 0; i < x->n && x->kind != OTHER; i++) {
        bool close = fabs(x->at[i] - y->at[i]) <= tolerance * (1 + fabs(x->at[i]) + fabs(y->at[i]));
        if (!close && !(isnan(x->at[i]) && isnan(y->at[i])))
            return wrong(t, "%s: %.12g and %.12g at %zu", law, x->at[i], y->at[i], i);
    }
    return true;
}

/* ---- the laws */
typedef struct {
    Library fixed[NFLAGS], symbolic[NFLAGS], ways[NWAYS];
    int64_t dims[MOST_DIMS];
    int closed;    /* inputs that are constants of the program: the first */
    Arrays x, y;   /* inputs and outputs of the program */
    Arrays g, jg;  /* tangents of the float inputs, of the float outputs */
    Arrays c, jtc; /* cotangents of the float outputs, of the float inputs */
    Arrays h;      /* other tangents */
} Laws;
static bool is_float(const Array *a) { return a->kind != OTHER; }
static void append(Arrays *to, const Arrays *more, bool floats) {
    for (int i = 0; i < more->n; i++)
        if (!floats || is_float(&more->at[i])) to->at[to->n++] = more->at[i];
}
/* Arrays like those that are floats, drawn. */
static Arrays like(const Arrays *of) {
    Arrays new = {0};
    for (int i = 0; i < of->n; i++) {
        Array a = of->at[i];
        if (!is_float(&a)) continue;
        a.data = calloc(a.bytes + 16, 1);
        draw(&a, "f64", -1, 1);
        new.at[new.n++] = a;
    }
    return new;
}
static Arrays zeros(const Arrays *of) {
    Arrays new = like(of);
    for (int i = 0; i < new.n; i++) memset(new.at[i].data, 0, new.at[i].bytes);
    return new;
}
static void moved(const Laws *l, double h, Arrays *to) {
    *to = (Arrays){.n = l->x.n};
    for (int i = 0, k = 0; i < l->x.n; i++) {
        Array a = l->x.at[i];
        to->at[i] = a;
        if (!is_float(&a)) continue;
        to->at[i].data = calloc(a.bytes + 16, 1);
        for (size_t e = 0; e < a.n; e++) to->at[i].at[e] = a.at[e] + h * l->g.at[k].at[e];
        k++;
    }
}
static double inner_all(const Arrays *x, const Arrays *y, double *scale) {
    double sum = 0;
    for (int i = 0; i < x->n; i++) sum += inner(&x->at[i], &y->at[i]), *scale += size(&x->at[i], &y->at[i]);
    return sum;
}
/* Runs with fixed sizes, and with sizes as parameters, and compares. */
static bool run(Trial *t, Laws *l, int k, const Arrays *in, Arrays *out) {
    const jaxcc_program *p = l->fixed[k].program;
    *out = room(p->n_out, p->out);
    Arrays again = room(p->n_out, p->out);
    if (!call(t, &l->fixed[k], NULL, in, out)) return false;
    if (k < NSYMBOLIC && !call(t, &l->symbolic[k], l->dims, in, &again)) return false;
    for (int i = 0; i < out->n && k < NSYMBOLIC; i++) same(t, "symbols", &out->at[i], &again.at[i], 1e-11);
    return !t->why[0];
}
/* The float results of `from`, leaving out the first `skip` results. */
static Arrays floats(const Arrays *from, int skip) {
    Arrays new = {0};
    for (int i = skip; i < from->n; i++)
        if (is_float(&from->at[i])) new.at[new.n++] = from->at[i];
    return new;
}
static bool law_jvp(Trial *t, Laws *l) {
    Arrays in = l->x, out;
    append(&in, &l->g, false);
    if (!run(t, l, JVP, &in, &out)) return false;
    l->jg = floats(&out, l->y.n);
    for (int i = 0; i < l->y.n; i++) same(t, "results of --jvp", &out.at[i], &l->y.at[i], 1e-12);
    Arrays d[4];
    static const double step[4] = {1e-3, -1e-3, 5e-4, -5e-4};
    for (int i = 0; i < 4; i++) {
        Arrays at;
        moved(l, step[i], &at);
        if (!run(t, l, PLAIN, &at, &d[i])) return false;
        d[i] = floats(&d[i], 0);
    }
    for (int i = 0; i < l->jg.n; i++) { /* Richardson: (4 D(h/2) - D(h)) / 3 */
        Array *e = &d[0].at[i];
        for (size_t k = 0; k < e->n; k++) {
            double wide = (d[0].at[i].at[k] - d[1].at[i].at[k]) / 2e-3;
            double narrow = (d[2].at[i].at[k] - d[3].at[i].at[k]) / 1e-3;
            e->at[k] = (4 * narrow - wide) / 3;
        }
        same(t, "jvp", &l->jg.at[i], e, 1e-6);
    }
    return !t->why[0];
}
static bool law_split(Trial *t, Laws *l) {
    char *from = NULL, *to = NULL;
    if (asprintf(&from, "%s/f.jaxpr", t->dir) < 0 || asprintf(&to, "%s/divided.jaxpr", t->dir) < 0) abort();
    Library both;
    Arrays in = l->x, whole;
    append(&in, &l->g, false);
    if (!divide(from, to, (uint64_t)uniform(0, 1ull << 53))) return wrong(t, "--jvp does not divide");
    if (!compiled(t, "divided.jaxpr", "", &l->symbolic[JVP], &both) || !run(t, l, JVP, &in, &whole)) return false;
    Arrays out = room(both.program->n_out, both.program->out);
    if (!call(t, &both, NULL, &in, &out)) return false;
    for (int i = 0; i < out.n; i++) same(t, "split", &out.at[i], &whole.at[i], 1e-12);
    return !t->why[0];
}
static bool law_adjoint(Trial *t, Laws *l) {
    Arrays in = l->x, out;
    append(&in, &l->c, false);
    if (!run(t, l, VJP, &in, &out)) return false;
    l->jtc = floats(&out, l->y.n);
    for (int i = 0; i < l->y.n; i++) same(t, "primals", &out.at[i], &l->y.at[i], 1e-12);
    double scale = 1, a = inner_all(&l->c, &l->jg, &scale), b = inner_all(&l->jtc, &l->g, &scale);
    return fabs(a - b) <= 1e-11 * scale || wrong(t, "adjoint: %.14g and %.14g", a, b);
}
static bool law_loop(Trial *t, Laws *l) {
    Arrays in = l->x, want, got;
    append(&in, &l->c, false);
    if (!run(t, l, VJP, &in, &want)) return false;
    for (int k = 0; k < NWAYS; k++) {
        l->fixed[VJP] = l->ways[k];
        if (!run(t, l, VJP, &in, &got)) return false;
        for (int i = 0; i < want.n; i++) same(t, ways_of[k], &got.at[i], &want.at[i], 1e-11);
    }
    return !t->why[0];
}
/* H w, the tangent of Jᵀ c along w. */
static bool hessian(Trial *t, Laws *l, const Arrays *w, Arrays *hw) {
    Arrays in = l->x, none = zeros(&l->c), out;
    append(&in, &l->c, false), append(&in, w, false), append(&in, &none, false);
    if (!run(t, l, HESSIAN, &in, &out)) return false;
    Arrays all = floats(&out, l->fixed[VJP].program->n_out);
    *hw = (Arrays){.n = l->g.n};
    for (int i = 0; i < l->g.n; i++) hw->at[i] = all.at[all.n - l->g.n + i];
    return true;
}
static bool law_hessian(Trial *t, Laws *l) {
    Arrays hg, hh;
    if (!hessian(t, l, &l->g, &hg) || !hessian(t, l, &l->h, &hh)) return false;
    double scale = 1, a = inner_all(&l->h, &hg, &scale), b = inner_all(&l->g, &hh, &scale);
    return fabs(a - b) <= 1e-9 * scale || wrong(t, "hessian: %.14g and %.14g", a, b);
}
/* The cotangent of c along g, a cotangent of Jᵀ c, is J g. */
static bool law_twice(Trial *t, Laws *l) {
    Arrays in = l->x, none = zeros(&l->y), out;
    append(&in, &l->c, false), append(&in, &none, false), append(&in, &l->g, false);
    if (!run(t, l, TWICE, &in, &out)) return false;
    Arrays all = floats(&out, l->fixed[VJP].program->n_out);
    for (int i = 0; i < l->jg.n; i++) same(t, "twice", &all.at[all.n - l->jg.n + i], &l->jg.at[i], 1e-10);
    return !t->why[0];
}
/* ---- batches: the inputs `batched`, and what is derived from them, have an axis of examples, the first */
typedef struct {
    int k;                     /* of flags_of */
    bool batched[MOST_VALUES]; /* of the inputs of that program */
    bool after;                /* is it differentiated after --vmap? */
    char flags[256];
} Batch;
static void draw_input(const Trial *t, Array *a, const char *dtype, int i) {
    int r = i < t->law->nranges ? i : t->law->nranges - 1;
    draw(a, dtype, r < 0 ? -1 : t->law->range[r].lo, r < 0 ? 1 : t->law->range[r].hi);
}
static Batch batch_of(const Laws *l, int k, bool after, const bool *inputs) {
    Batch b = {.k = k, .after = after};
    const jaxcc_program *p = l->fixed[k].program;
    char axes[2 * MOST_VALUES + 1] = "";
    int next = l->x.n;
    for (int i = 0; i < p->n_in; i++) b.batched[i] = i >= l->x.n || inputs[i]; /* cotangents always */
    for (int i = 0; i < l->x.n && k == JVP; i++)
        if (is_float(&l->x.at[i])) b.batched[next++] = inputs[i];
    for (int i = 0; i < (after ? l->x.n : p->n_in); i++)
        if (i >= l->closed) strcat(axes, b.batched[i] ? ",0" : ",_");
    snprintf(b.flags, sizeof b.flags, after ? "--vmap=%2$s %1$s" : "%1$s --vmap=%2$s", flags_of[k], axes + 1);
    return b;
}
static Array several(const Array *a, int examples) {
    Array all = *a;
    all.n *= (size_t)examples, all.bytes *= (size_t)examples;
    all.data = calloc(all.bytes + 16, 1);
    return all;
}
static Array example(const Array *all, int examples, int e) {
    Array a = *all;
    a.n /= (size_t)examples, a.bytes /= (size_t)examples;
    a.data = (char *)all->data + (size_t)e * a.bytes;
    return a;
}
/* What the program of one example computes for each; with --vjp after --vmap, cotangents of inputs that are not batched
   are sums over the examples. */
static bool each_example(Trial *t, const Laws *l, const Batch *b, const Arrays *in, Arrays *want) {
    const jaxcc_program *p = l->fixed[b->k].program;
    Arrays one = room(p->n_out, p->out), given = *in;
    bool sums[MOST_VALUES] = {false};
    for (int i = 0, o = l->y.n; i < l->x.n && b->after && b->k == VJP; i++)
        if (is_float(&l->x.at[i])) sums[o++] = !b->batched[i];
    *want = (Arrays){.n = one.n};
    for (int o = 0; o < one.n; o++) want->at[o] = several(&one.at[o], sums[o] ? 1 : t->examples);
    for (int e = 0; e < t->examples; e++) {
        for (int i = 0; i < in->n; i++)
            if (b->batched[i]) given.at[i] = example(&in->at[i], t->examples, e);
        if (!call(t, &l->fixed[b->k], NULL, &given, &one)) return false;
        for (int o = 0; o < one.n; o++) {
            Array to = sums[o] ? want->at[o] : example(&want->at[o], t->examples, e);
            for (size_t n = 0; sums[o] && n < to.n; n++) to.at[n] += one.at[o].at[n];
            if (!sums[o]) memcpy(to.data, one.at[o].data, to.bytes);
        }
    }
    return true;
}
static bool computes(Trial *t, const Library *library, const int64_t *dims, const Arrays *in, const Arrays *want) {
    Arrays got = *want;
    for (int o = 0; o < got.n; o++) got.at[o] = several(&want->at[o], 1);
    if (!call(t, library, dims, in, &got)) return false;
    for (int o = 0; o < got.n; o++) {
        if (want->at[o].kind == OTHER && memcmp(got.at[o].data, want->at[o].data, want->at[o].bytes) != 0)
            return wrong(t, "'%s' for %d: other integers", library->flags, t->examples);
        if (!same(t, library->flags, &got.at[o], &want->at[o], 1e-10)) return false;
    }
    return true;
}
static bool law_batch(Trial *t, const Laws *l, Batch b) {
    static const int sizes[] = {3, 1, 0};
    Library symbolic, fixed;
    const jaxcc_program *p = l->fixed[b.k].program;
    if (!compiled(t, "f.jaxpr", b.flags, NULL, &symbolic)) return false;
    int number = (int)uniform(0, 6); /* which size is a number, too, or none */
    for (int s = 0; s < 3 && !t->why[0]; s++) {
        Arrays in = l->x, want;
        int64_t dims[MOST_DIMS];
        t->examples = sizes[s];
        append(&in, b.k == JVP ? &l->g : &l->c, false);
        in.n = p->n_in;
        for (int i = 0; i < in.n; i++) {
            if (!b.batched[i]) continue;
            in.at[i] = several(&in.at[i], t->examples);
            if (i < l->x.n)
                draw_input(t, &in.at[i], p->in[i].dtype, i);
            else
                draw(&in.at[i], "f64", -1, 1);
        }
        for (int i = 0; i < symbolic.program->n_dims; i++) dims[i] = size_of_dim(t, symbolic.program->dims[i]);
        if (!each_example(t, l, &b, &in, &want) || !computes(t, &symbolic, dims, &in, &want)) return false;
        if (s == number &&
            (!compiled(t, "f.jaxpr", b.flags, &l->symbolic[PLAIN], &fixed) || !computes(t, &fixed, NULL, &in, &want)))
            return false;
    }
    return !t->why[0];
}
/* The constants of the program, which are inputs of the library, but not of --vmap. */
static int constants(const char *text) {
    const char *lambda = text, *next;
    int n = 0;
    while ((next = strstr(lambda + 1, "\n{ lambda ")))
        lambda = next + 1; /* the last is the program, others are shared */
    for (const char *at = lambda; *at && *at != ';'; at++) n += *at == ':';
    return n;
}
/* Up to three subsets of the inputs; a program is differentiated for the first. With --brief one, not
   differentiated. */
static bool law_batches(Trial *t, const Laws *l) {
    bool first = true;
    uint32_t inputs = (uint32_t)(l->x.n - l->closed), all = inputs < 32 ? (1u << inputs) - 1 : UINT32_MAX, last = 0;
    for (int turn = 0; turn < (brief ? 1 : 3) && all; turn++) {
        uint32_t subset = all <= 3 ? (uint32_t)turn + 1 : 1 + (uint32_t)uniform(0, all);
        bool batched[MOST_INPUTS] = {false};
        if (subset > all || subset == last) break;
        last = subset;
        for (uint32_t i = 0; i < inputs; i++) batched[(uint32_t)l->closed + i] = subset >> i & 1;
        if (!law_batch(t, l, batch_of(l, PLAIN, false, batched))) return false;
        for (int k = JVP; k <= VJP && first && !brief && k < t->law->flags; k++)
            if (!law_batch(t, l, batch_of(l, k, false, batched)) || !law_batch(t, l, batch_of(l, k, true, batched)))
                return false;
        first = false;
    }
    return true;
}
/* Each input alone, all others and all: a subset's bit is an input. */
static bool law_each_batched(Trial *t, const Laws *l) {
    uint32_t inputs = (uint32_t)(l->x.n - l->closed), all = (1u << inputs) - 1;
    for (uint32_t turn = brief ? 2 * inputs : 0; turn <= 2 * inputs && !t->why[0]; turn++) {
        uint32_t one = turn < 2 * inputs ? 1u << turn / 2 : 0, subset = turn % 2 ? one : all & ~one;
        bool batched[MOST_INPUTS] = {false}, again = inputs < 3 && turn % 2 == 0 && one;
        for (uint32_t i = 0; i < inputs; i++) batched[(uint32_t)l->closed + i] = subset >> i & 1;
        if (!again && subset) law_batch(t, l, batch_of(l, PLAIN, false, batched));
    }
    return !t->why[0];
}
static bool libraries(Trial *t, Laws *l) {
    for (int k = 0; k < t->law->flags; k++)
        if ((k < NSYMBOLIC && !compiled(t, "f.jaxpr", flags_of[k], NULL, &l->symbolic[k])) ||
            !compiled(t, "f.jaxpr", flags_of[k], &l->symbolic[PLAIN], &l->fixed[k]))
            return false;
    for (int k = 0; t->law->loop && k < NWAYS; k++)
        if (!compiled(t, "f.jaxpr", ways_of[k], &l->symbolic[PLAIN], &l->ways[k])) return false;
    const jaxcc_program *p = l->symbolic[PLAIN].program;
    if (p->n_dims > MOST_DIMS || p->n_in > MOST_INPUTS) return wrong(t, "too many inputs");
    for (int i = 0; i < p->n_dims; i++) l->dims[i] = size_of_dim(t, p->dims[i]);
    return true;
}
static void obeys(Trial *t) {
    static Laws l;
    if (!libraries(t, &l)) return;
    const jaxcc_program *p = l.fixed[PLAIN].program;
    l.x = room(p->n_in, p->in);
    l.closed = constants(t->law->text);
    for (int i = 0; i < p->n_in; i++) draw_input(t, &l.x.at[i], p->in[i].dtype, i);
    if (!run(t, &l, PLAIN, &l.x, &l.y)) return;
    l.g = like(&l.x), l.h = like(&l.x), l.c = like(&l.y);
    if (t->law->batches) {
        law_each_batched(t, &l);
        return;
    }
    if (law_jvp(t, &l) && t->law->flags > VJP && law_split(t, &l) && law_adjoint(t, &l) && t->law->flags > HESSIAN &&
        law_hessian(t, &l))
        law_twice(t, &l);
    if (t->law->loop && !t->why[0]) law_loop(t, &l);
    if (!t->why[0]) law_batches(t, &l);
}

/* ---- all of them */
typedef struct {
    pid_t pid;
    int law, pipe;
} Job;
static Job start(int k, const char *tmp) {
    int ends[2];
    if (pipe(ends)) abort();
    pid_t pid = fork();
    if (pid) {
        close(ends[1]);
        return (Job){pid, k, ends[0]};
    }
    static char why[WHY];
    char *dir = NULL, *text = NULL;
    if (asprintf(&dir, "%s/%d", tmp, k) < 0 || asprintf(&text, "%s/f.jaxpr", dir) < 0) abort();
    setrlimit(RLIMIT_CPU, &(struct rlimit){SECONDS, SECONDS});
    if ((!verbose && freopen("/dev/null", "w", stderr) == NULL) || mkdir(dir, 0700)) abort();
    FILE *f = fopen(text, "w");
    if (!f || fputs(laws[k].text, f) < 0 || fclose(f)) abort();
    Trial t = {.law = &laws[k], .why = why, .dir = dir};
    obeys(&t);
    if (write(ends[1], why, strlen(why) + 1) < 0) abort();
    _exit(0);
}
static bool finish(const Job *j) {
    char why[WHY] = "";
    ssize_t n = read(j->pipe, why, sizeof why - 1);
    int status;
    waitpid(j->pid, &status, 0);
    close(j->pipe);
    bool ended = n > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ended) snprintf(why, sizeof why, "crash or time out (status %d)", status);
    if (why[0]) printf("FAIL laws %s: %s\n", laws[j->law].name, why);
    fflush(stdout);
    return !why[0];
}
/* Rows with a rule for tangents that no program has. */
static int rows_missing(void) {
    static const char *const rule[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) [P_##id] = #jvp,
#include "../compiler/prims.def"
    };
    static const char *const others = " custom_lin "                                     /* refused */
                                      " scaled_dot scaled_matmul scaled_matmul_wrapper " /* of narrow floats alone */
                                      " accum_grad_in_ref "                              /* of a reference */
                                      " select_and_scatter todense ";                    /* not differentiable in JAX */
    int missing = 0;
    for (int p = P_none + 1; p < NPRIMS; p++) {
        bool found = strcmp(rule[p], "none") == 0 || strcmp(rule[p], "zero") == 0 || strcmp(rule[p], "callback") == 0;
        char open[64], blank[64];
        snprintf(open, sizeof open, " %s[", prim_name[p]), snprintf(blank, sizeof blank, " %s ", prim_name[p]);
        found = found || strstr(others, blank);
        for (int k = 0; k < nlaws && !found; k++) found = strstr(laws[k].text, open) || strstr(laws[k].text, blank);
        if (!found) printf("FAIL laws: no program has %s\n", prim_name[p]);
        missing += !found;
    }
    return missing;
}
/* Programs that are left out lie evenly between the others. */
static bool is_in_part(int k) { return (int)(k * part) != (int)((k + 1) * part); }
int main(int argc, char **argv) {
    enum { MOST_JOBS = 64 };
    int passed = 0, failed = 0, jobs = (int)sysconf(_SC_NPROCESSORS_ONLN), running = 0;
    const char *filter = NULL;
    Job job[MOST_JOBS];
    char tmp[] = "/tmp/laws-XXXXXX";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--filter") == 0 && i + 1 < argc)
            filter = argv[++i];
        else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc)
            jobs = atoi(argv[++i]);
        else if (strcmp(argv[i], "--part") == 0 && i + 1 < argc)
            part = atof(argv[++i]);
        else if (strcmp(argv[i], "--verbose") == 0)
            verbose = true;
        else if (strcmp(argv[i], "--brief") == 0)
            brief = true;
        else
            read_laws(argv[i]);
    }
    regex_t regex;
    if (!mkdtemp(tmp) || (filter && regcomp(&regex, filter, REG_EXTENDED | REG_NOSUB))) return 2;
    if (!filter) failed += rows_missing();
    jobs = jobs < 1 ? 1 : jobs > MOST_JOBS ? MOST_JOBS : jobs;
    fflush(stdout);
    for (int k = 0, next = 0; k < nlaws || running;) {
        bool skip = k < nlaws && (!is_in_part(k) || (filter && regexec(&regex, laws[k].name, 0, NULL, 0)));
        if (skip) {
            k++;
        } else if (k < nlaws && running < jobs) {
            job[(next + running++) % jobs] = start(k++, tmp);
        } else if (running) {
            bool ok = finish(&job[next]);
            passed += ok, failed += !ok;
            next = (next + 1) % jobs, running--;
        }
    }
    char *remove = NULL;
    if (asprintf(&remove, "rm -rf %s", tmp) < 0 || system(remove) != 0) return 2;
    printf("laws: %d passed, %d failed\n", passed, failed);
    fflush(NULL);
    _exit(failed > 0); /* texts go with it */
}
