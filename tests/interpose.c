/* A host that has functions under every name a library could take for its own. Usage: interpose FLAGS LIBRARY...: loads
   each library, which has a program `model` of f64[8] to f64[8], with FLAGS (global, local), calls it by its program
   and by its name, and prints what it gives. LINKED: a `model` is linked into this program too, and called first; else
   this program has its own. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "jaxcc.h"

#define WRONG(name)                                                                                                    \
    void name(void);                                                                                                   \
    void name(void) {                                                                                                  \
        static const char text[] = #name ": the host was called\n";                                                    \
        fwrite(text, 1, sizeof text - 1, stderr);                                                                      \
        abort();                                                                                                       \
    }
#ifdef LINKED
int32_t model(const double *, double *);
#else
WRONG(model)
WRONG(model_error)
WRONG(model_program)
WRONG(jaxcc_rt_error)
WRONG(jaxcc_rt_fail)
WRONG(jaxcc_rt_fmod)
WRONG(jaxcc_rt_workspace_get)
WRONG(jaxcc_rt_parallel_for)
WRONG(jaxcc_rt_cpu)
WRONG(look)
#endif
#ifdef HOSTILE
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
WRONG(floor)
WRONG(floorf)
WRONG(ceil)
WRONG(ceilf)
WRONG(trunc)
WRONG(truncf)
WRONG(round)
WRONG(roundf)
WRONG(roundeven)
WRONG(roundevenf)
WRONG(rint)
WRONG(nearbyint)
WRONG(fma)
WRONG(fmaf)
WRONG(fmod)
WRONG(fmodf)
WRONG(remainder)
WRONG(sqrt)
WRONG(sqrtf)
WRONG(cbrt)
WRONG(exp)
WRONG(expf)
WRONG(exp2)
WRONG(expm1)
WRONG(log)
WRONG(logf)
WRONG(log2)
WRONG(log1p)
WRONG(pow)
WRONG(powf)
WRONG(sin)
WRONG(cos)
WRONG(tan)
WRONG(tanh)
WRONG(tanhf)
WRONG(atan2)
WRONG(hypot)
WRONG(erf)
WRONG(lgamma)
WRONG(frexp)
WRONG(ldexp)
WRONG(scalbn)
WRONG(copysign)
WRONG(fabs)
WRONG(fmin)
WRONG(fmax)
#endif

static int show(const char *what, int32_t status, const double *out) {
    printf("%s", what);
    for (int i = 0; i < 8; i++) printf(" %016llx", (unsigned long long)((const uint64_t *)out)[i]);
    printf(" %d\n", status);
    return status != 0;
}

static const double in[8] = {-2.5, 0.75, 3.5, 1e300, 12.25, 0.1, -7.3, 5.0};

static int run(const char *path, int flags) {
    void *library = dlopen(path, flags);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    void *found = dlsym(library, "model_program"), *named = dlsym(library, "model");
    const jaxcc_program *(*get)(void);
    int32_t (*model_of)(const double *, double *);
    memcpy(&get, &found, sizeof get);
    memcpy(&model_of, &named, sizeof model_of);
    const jaxcc_program *p = get();
    double out[8] = {0}, again[8] = {0};
    const void *ins[] = {in};
    void *outs[] = {out};
    int bad = show("call", p->call(NULL, ins, outs), out) | show("name", model_of(in, again), again);
    ins[0] = NULL;
    bad |= p->call(NULL, ins, outs) != JAXCC_ARGUMENT || !strstr(p->error(), "NULL");
    printf("%s; %lld bytes\n", p->error(), (long long)p->workspace(NULL));
    return bad;
}

int main(int argc, char **argv) {
    int bad = 0;
#ifdef LINKED
    double out[8];
    bad |= show("linked", model(in, out), out);
#endif
    for (int i = 2; i < argc; i++)
        bad |= run(argv[i], RTLD_NOW | (strcmp(argv[1], "global") ? RTLD_LOCAL : RTLD_GLOBAL));
    return bad;
}
