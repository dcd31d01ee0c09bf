/* CPUs of x86-64: instruction sets and cost models. Code is generated for a level (x86-64, v2, v3, v4), so that there
   are few kinds of libraries and their needs are known exactly; a CPU's name selects the level and the cost model. LLVM
   has the list of CPUs, and the features of each CPU and level. */
#include "nvptx_machine.h"
#include "x86_machine.h"
#include "../../options.h"
#include <assert.h>
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <stdalign.h>
#include <stdlib.h>

/* ---- LLVM's list, which has no C interface */

/* llvm::StringRef; llvm::SmallVector<StringRef, MOST_NAMES>, which allocates beyond that. */
enum { MOST_NAMES = 256 };
typedef struct {
    const char *at;
    size_t n;
} Name;
typedef struct {
    Name *at;
    uint32_t n, cap;
    Name room[MOST_NAMES];
} Names;

/* llvm::StringMap<bool>: a hash table; free slots are NULL. */
typedef struct {
    size_t n;
    bool on;
} Entry; /* its name follows */
typedef struct {
    Entry **at;
    uint32_t n, entries, removed, size; /* slots; in use, removed; bytes of an entry without its name */
} Map;

/* llvm::X86::fillValidCPUArchList: the names of CPUs and levels. */
void cpu_names(Names *,
               bool only_64_bit) __asm__("_ZN4llvm3X8620fillValidCPUArchListERNS_15SmallVectorImplINS_9StringRefEEEb");
/* llvm::X86::getFeaturesForCPU: the features of a CPU or level of that list, without those that they imply. */
void cpu_features(Name cpu, Names *,
                  bool with_plus) __asm__("_ZN4llvm3X8617getFeaturesForCPUENS_9StringRefERNS_15SmallVectorImplIS1_EEb");
/* llvm::X86::updateImpliedFeatures: adds the features that a feature implies. */
void cpu_implied(Name feature, bool on, Map *) __asm__(
    "_ZN4llvm3X8621updateImpliedFeaturesENS_9StringRefEbRNS_9StringMapIbNS_15MallocAllocatorEEE");
/* llvm::deallocate_buffer: what frees an entry. */
void cpu_free(void *, size_t size, size_t align) __asm__("_ZN4llvm17deallocate_bufferEPvmm");

/* ---- features as bits of runtime/cpu.def; features that it lacks come together with others that it has */

static const char *const features[] = {
#define CPU(name, ...) name,
#include "../../../runtime/cpu.def"
};

static uint64_t bit(Str feature) {
    for (unsigned i = 0; i < sizeof features / sizeof *features; i++)
        if (str_is(feature, features[i])) return (uint64_t)1 << i;
    return 0;
}

static uint64_t bits_implied(Name feature) {
    Map map = {.size = sizeof(Entry)};
    cpu_implied(feature, true, &map);
    uint64_t bits = 0;
    for (uint32_t i = 0; i < map.n; i++) {
        Entry *e = map.at[i];
        if (!e) continue;
        if (e->on) bits |= bit((Str){(const char *)(e + 1), (uint32_t)e->n});
        cpu_free(e, sizeof *e + e->n + 1, alignof(Entry));
    }
    free(map.at);
    return bits;
}

static uint64_t bits_of_cpu(Str cpu) {
    Names all = {.at = all.room, .cap = MOST_NAMES};
    cpu_features((Name){cpu.at, cpu.n}, &all, false);
    assert(all.at == all.room);
    uint64_t bits = 0;
    for (uint32_t i = 0; i < all.n; i++)
        bits |= bit((Str){all.at[i].at, (uint32_t)all.at[i].n}) | bits_implied(all.at[i]);
    return bits;
}

/* The features of the machine, "+avx,-avx512f,…". */
static uint64_t bits_of_list(const char *list) {
    uint64_t bits = 0;
    for (const char *at = list; *at;) {
        uint32_t n = (uint32_t)strcspn(at, ",");
        if (*at == '+') bits |= bit((Str){at + 1, n - 1});
        at += n + (at[n] == ',');
    }
    return bits;
}

/* ---- the target */

/* Dot products of bytes. Those of bf16, +avx512bf16, take twice as long as f32 products on Zen 5. */
static const char word_features[] = "+avx512vnni";
void target_words(Target *t) {
    t->features = word_features;
    t->need |= bits_of_list(word_features);
}
/* Adds the highest level whose features the CPU has, if it is not there. */
static void add_level(Targets *ts, uint64_t have, const char *tune) {
    Target best = x86_levels[0];
    for (unsigned l = 0; l < X86_LEVELS; l++) {
        uint64_t need = bits_of_cpu(str(x86_levels[l].cpu));
        if (need & ~have) break;
        best = x86_levels[l];
        best.need = need;
    }
    best.tune = tune, best.machine = &x86_machine;
    best.words = best.masks && !(bits_of_list(word_features) & ~have);
    uint32_t at = ts->n;
    while (at && ts->at[at - 1].need & ~best.need) at--;
    if (at && ts->at[at - 1].need == best.need) return;
    assert(ts->n < X86_LEVELS);
    memmove(ts->at + at + 1, ts->at + at, (ts->n++ - at) * sizeof *ts->at);
    ts->at[at] = best;
}

static char *take(Arena *a, char *message) {
    char *copy = str_c(a, str(message));
    LLVMDisposeMessage(message);
    return copy;
}

static bool named_cpu(Ctx *cx, Str name, uint64_t *have) {
    enum { LETTERS = 3 };
    if (name.n > 3 && memcmp(name.at, "sm_", 3) == 0)
        return diag_plain(cx->diags, "'%.*s' is a GPU, which goes with --target=nvptx64", SF(name));
    Names all = {.at = all.room, .cap = MOST_NAMES};
    cpu_names(&all, true);
    assert(all.at == all.room);
    Similar near = similar_to(name, edits_of(name, LETTERS));
    for (uint32_t i = 0; i < all.n; i++) {
        Str cpu = {all.at[i].at, (uint32_t)all.at[i].n};
        if (str_eq(cpu, name)) return *have = bits_of_cpu(cpu), true;
        similar_offer(&near, cpu);
    }
    return diag_plain(cx->diags, "unknown CPU '%.*s'%s%.*s%s", SF(name), near.best.n ? "; did you mean '" : "",
                      SF(near.best), near.best.n ? "'?" : "");
}

/* ARCH[-VENDOR]-linux[-gnu] of x86-64: other environments have other types or another C library. */
static bool x86_64_linux_gnu(const char *triple) {
    enum { ARCH = sizeof "x86_64" - 1 };
    const char *system = strstr(triple, "-linux");
    if (strncmp(triple, "x86_64", ARCH) != 0 || !system) return false;
    const char *vendor = triple + ARCH, *environment = system + sizeof "-linux" - 1;
    bool one = vendor == system || (vendor[0] == '-' && vendor + 1 < system && strchr(vendor + 1, '-') == system);
    return one && (!*environment || strcmp(environment, "-gnu") == 0);
}

static void this_cpu(Ctx *cx, Targets *ts) {
    uint64_t have = bits_of_list(take(cx->arena, LLVMGetHostCPUFeatures()));
    add_level(ts, have, take(cx->arena, LLVMGetHostCPUName()));
}
/* NAME,NAME...; native: the machine's. */
static bool named_cpus(Ctx *cx, const char *names, Targets *ts) {
    for (const char *at = names; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        Str name = {at, (uint32_t)strcspn(at, ",")};
        uint64_t have = 0;
        if (str_is(name, "native")) {
            this_cpu(cx, ts);
            continue;
        }
        if (!named_cpu(cx, name, &have)) return false;
        add_level(ts, have, str_c(cx->arena, name));
    }
    return true;
}
bool targets_from_options(Ctx *cx, Targets *ts) {
    const Options *o = cx->options;
    ts->n = 0;
    if (o->target && nvptx_triple(o->target)) {
        if (!nvptx_target(cx, &ts->at[0])) return false;
        ts->at[ts->n++].machine = &nvptx_machine;
        return true;
    }
    if (o->target && !x86_64_linux_gnu(o->target))
        return diag_plain(cx->diags, "--target=%s is not supported yet; x86_64-linux-gnu and nvptx64 are", o->target);
    const char *names = o->march ? o->march : o->mcpu;
    if (names) return named_cpus(cx, names, ts);
    if (o->target)
        add_level(ts, 0, "generic");
    else
        this_cpu(cx, ts);
    return true;
}
