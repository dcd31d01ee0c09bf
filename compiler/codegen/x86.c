/* x86-64: which instructions and whose costs. Code is made for a level (x86-64, v2, v3, v4), so
   that what a library needs is known exactly; a CPU's name decides the level and tunes. */
#include "emit.h"
#include "../options.h"
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

typedef struct {
    const char *name;
    const char *const *features; /* more than the level below; ended by NULL */
} Level;
static const char *const v1[] = {NULL};
static const char *const v2[] = {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", NULL};
static const char *const v3[] = {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", NULL};
static const char *const v4[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", NULL};
static const Level levels[] = {{"x86-64", v1}, {"x86-64-v2", v2}, {"x86-64-v3", v3}, {"x86-64-v4", v4}};
enum { NLEVELS = 4 };

/* The CPUs by name, with the highest level they have. */
static const struct {
    const char *name;
    unsigned level;
} cpus[] = {
    {"x86-64", 0},
    {"k8", 0},
    {"core2", 0},
    {"penryn", 0},
    {"bonnell", 0},
    {"barcelona", 0},
    {"amdfam10", 0},
    {"btver1", 0},
    {"x86-64-v2", 1},
    {"nehalem", 1},
    {"corei7", 1},
    {"westmere", 1},
    {"sandybridge", 1},
    {"corei7-avx", 1},
    {"ivybridge", 1},
    {"core-avx-i", 1},
    {"silvermont", 1},
    {"slm", 1},
    {"goldmont", 1},
    {"goldmont-plus", 1},
    {"tremont", 1},
    {"btver2", 1},
    {"bdver1", 1},
    {"bdver2", 1},
    {"bdver3", 1},
    {"x86-64-v3", 2},
    {"bdver4", 2},
    {"haswell", 2},
    {"core-avx2", 2},
    {"broadwell", 2},
    {"skylake", 2},
    {"alderlake", 2},
    {"raptorlake", 2},
    {"meteorlake", 2},
    {"arrowlake", 2},
    {"arrowlake-s", 2},
    {"lunarlake", 2},
    {"pantherlake", 2},
    {"gracemont", 2},
    {"sierraforest", 2},
    {"grandridge", 2},
    {"clearwaterforest", 2},
    {"znver1", 2},
    {"znver2", 2},
    {"znver3", 2},
    {"knl", 2},
    {"knm", 2},
    {"x86-64-v4", 3},
    {"skylake-avx512", 3},
    {"skx", 3},
    {"cascadelake", 3},
    {"cooperlake", 3},
    {"cannonlake", 3},
    {"icelake-client", 3},
    {"icelake-server", 3},
    {"tigerlake", 3},
    {"rocketlake", 3},
    {"sapphirerapids", 3},
    {"emeraldrapids", 3},
    {"graniterapids", 3},
    {"graniterapids-d", 3},
    {"diamondrapids", 3},
    {"znver4", 3},
    {"znver5", 3},
};

static const char *const features[] = {
#define CPU(name, ...) name,
#include "../../runtime/cpu.def"
};

static uint64_t needs(unsigned level) {
    uint64_t bits = 0;
    for (unsigned l = 0; l <= level; l++)
        for (const char *const *f = levels[l].features; *f; f++)
            for (unsigned i = 0; i < sizeof features / sizeof *features; i++)
                if (!strcmp(features[i], *f)) bits |= (uint64_t)1 << i;
    return bits;
}

/* The highest level that the machine's features ("+avx,-avx512f,…") reach. */
static unsigned machine_level(const char *have) {
    for (unsigned l = 0; l < NLEVELS; l++)
        for (const char *const *f = levels[l].features; *f; f++) {
            size_t n = strlen(*f);
            const char *at = have;
            while (at && !(at[0] == '+' && !strncmp(at + 1, *f, n) && (at[n + 1] == ',' || !at[n + 1])))
                if ((at = strchr(at, ','))) at++;
            if (!at) return l ? l - 1 : 0;
        }
    return NLEVELS - 1;
}

static char *take(Arena *a, char *message) {
    char *copy = str_c(a, str(message));
    LLVMDisposeMessage(message);
    return copy;
}

static bool named_cpu(Ctx *cx, const char *name, Target *t, unsigned *level) {
    enum { LETTERS = 3 };
    for (unsigned i = 0; i < sizeof cpus / sizeof *cpus; i++)
        if (!strcmp(cpus[i].name, name)) {
            *level = cpus[i].level;
            t->tune = cpus[i].name;
            return true;
        }
    Similar near = similar_to(str(name), edits_of(str(name), LETTERS));
    for (unsigned i = 0; i < sizeof cpus / sizeof *cpus; i++) similar_offer(&near, str(cpus[i].name));
    return diag_plain(cx->diags, "unknown CPU '%s'%s%.*s%s", name, near.best.n ? "; did you mean '" : "", SF(near.best),
                      near.best.n ? "'?" : "");
}

bool target_from_options(Ctx *cx, Target *t) {
    const Options *o = cx->options;
    const char *name = o->march ? o->march : o->mcpu;
    unsigned level = 0;
    *t = (Target){.features = "", .tune = "generic"};
    t->triple = "x86_64-unknown-linux-gnu";
    if (o->target && (strncmp(o->target, "x86_64", 6) != 0 || !strstr(o->target, "linux")))
        return diag_plain(cx->diags, "--target=%s is not supported yet; x86_64-linux-gnu is", o->target);
    if (name) {
        if (!named_cpu(cx, name, t, &level)) return false;
    } else if (!o->target) {
        level = machine_level(take(cx->arena, LLVMGetHostCPUFeatures()));
        t->tune = take(cx->arena, LLVMGetHostCPUName());
    }
    t->cpu = levels[level].name;
    t->vector_bytes = level == 3 ? 64 : level == 2 ? 32 : 16;
    t->rounds = level >= 1;
    t->fma = level >= 2;
    t->masks = level == 3;
    t->need = needs(level);
    return true;
}
