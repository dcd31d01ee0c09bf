#include "shards.h"
#include "../../crash.h"
#include "../cost.h"
#include "metadata.h"
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static const char mark[] = "jaxcc-shard"; /* attribute of a function: the number of its object */

typedef struct {
    Writer w;
    LLVMMemoryBufferRef object;
} Shard;
struct Shards {
    Emit *e;
    uint32_t n, nthreads;
    _Atomic uint32_t next;      /* the first that nobody makes */
    LLVMMemoryBufferRef module; /* all of it, as bitcode */
    Shard at[MOST_SHARDS];      /* the first one is the caller's */
    pthread_t threads[MOST_SHARDS];
};

/* ---- which function is where */

typedef struct {
    LLVMValueRef f;
    uint32_t place, length; /* in the module; instructions */
} Piece;
typedef struct {
    Piece *at;
    uint32_t n;
    uint64_t length;
} Pieces;

static uint32_t length_of(LLVMValueRef f) {
    uint32_t n = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) n++;
    return n;
}
static Pieces pieces_of(const Writer *w) {
    Pieces p = {0};
    for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f)) p.n += !LLVMIsDeclaration(f);
    p.at = arena_new(w->e->arena, Piece, p.n + 1);
    p.n = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f)) continue;
        p.at[p.n] = (Piece){f, p.n, length_of(f)};
        p.length += p.at[p.n++].length;
    }
    return p;
}
static int longer(const void *x, const void *y) {
    const Piece *a = x, *b = y;
    return a->length != b->length ? (a->length < b->length ? 1 : -1) : (a->place > b->place) - (a->place < b->place);
}
static void put(const Writer *w, LLVMValueRef f, uint32_t object) {
    char number = (char)('0' + object);
    LLVMAttributeRef a = LLVMCreateStringAttribute(w->context, mark, sizeof mark - 1, &number, 1);
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, a);
}
/* The library's symbols are other names of the entries, which are in the same object. */
static void put_entries(const Writer *w, Programs programs) {
    for (uint32_t i = 0; i < programs.n; i++) put(w, metadata_entry(w->e->cx, w->module, programs.at[i].name), 0);
}
static bool is_put(LLVMValueRef f) {
    return LLVMGetStringAttributeAtIndex(f, LLVMAttributeFunctionIndex, mark, sizeof mark - 1);
}
/* The longest first, each to the object that is shortest. */
static void share_out(const Writer *w, Programs programs, Pieces p, uint32_t n) {
    uint64_t length[MOST_SHARDS] = {0};
    put_entries(w, programs);
    qsort(p.at, p.n, sizeof *p.at, longer);
    for (const Piece *piece = p.at; piece < p.at + p.n; piece++) {
        uint32_t least = 0;
        for (uint32_t i = 1; i < n && !is_put(piece->f); i++)
            if (length[i] < length[least]) least = i;
        length[least] += piece->length;
        if (!is_put(piece->f)) put(w, piece->f, least);
    }
}
static uint32_t number_of(LLVMValueRef f) {
    unsigned n;
    LLVMAttributeRef a = LLVMGetStringAttributeAtIndex(f, LLVMAttributeFunctionIndex, mark, sizeof mark - 1);
    return (uint32_t)(*LLVMGetStringAttributeValue(a, &n) - '0');
}

/* May a symbol of a program's interface have the name? Then metadata_emit renames the function. */
static bool is_public(Programs programs, const char *name) {
    for (uint32_t i = 0; i < programs.n; i++) {
        size_t n = strlen(programs.at[i].name);
        if (!strncmp(name, programs.at[i].name, n) && (!name[n] || name[n] == '_')) return true;
    }
    return false;
}
uint32_t shards_of(const Writer *w, Programs programs) {
    if (w->target->device) return 1; /* the host's code is short */
    Pieces p = pieces_of(w);
    uint64_t n = p.length / SHARD_LENGTH;
    size_t length;
    for (LLVMValueRef g = LLVMGetFirstGlobal(w->module); g; g = LLVMGetNextGlobal(g))
        if (is_public(programs, LLVMGetValueName2(g, &length))) return 1;
    for (const Piece *piece = p.at; piece < p.at + p.n; piece++)
        if (is_public(programs, LLVMGetValueName2(piece->f, &length))) return 1;
    if (n > p.n) n = p.n;
    return n < 2 ? 1 : n < MOST_SHARDS ? (uint32_t)n : MOST_SHARDS;
}

/* ---- one object */

/* Objects refer to each other's symbols, but nothing else does. */
static void share_symbols(LLVMModuleRef m) {
    for (LLVMValueRef g = LLVMGetFirstGlobal(m); g; g = LLVMGetNextGlobal(g)) {
        LLVMSetLinkage(g, LLVMExternalLinkage);
        LLVMSetVisibility(g, LLVMHiddenVisibility);
    }
    for (LLVMValueRef f = LLVMGetFirstFunction(m); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f)) continue;
        LLVMSetLinkage(f, LLVMExternalLinkage);
        LLVMSetVisibility(f, LLVMHiddenVisibility);
    }
}
/* Only declares what is in other objects. */
static void keep(Writer *w, uint32_t number) {
    for (LLVMValueRef g = LLVMGetFirstGlobal(w->module); g && number; g = LLVMGetNextGlobal(g))
        if (!LLVMIsDeclaration(g)) LLVMSetLinkage(g, LLVMAvailableExternallyLinkage);
    for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f)) continue;
        if (number_of(f) != number) LLVMSetLinkage(f, LLVMAvailableExternallyLinkage);
    }
    writer_passes(w, "elim-avail-extern");
}
/* The module without the functions of other objects, whose bodies are never read. */
static void read_part(Shards *all, Writer *w, uint32_t number) {
    const char *at = LLVMGetBufferStart(all->module);
    LLVMMemoryBufferRef bytes = LLVMCreateMemoryBufferWithMemoryRange(at, LLVMGetBufferSize(all->module), "", false);
    w->context = LLVMContextCreate();
    if (LLVMGetBitcodeModuleInContext2(w->context, bytes, &w->module)) /* it takes `bytes` */
        writer_failed(all->e, "LLVM", "a module cannot be read again");
    keep(w, number);
    LLVMPassManagerRef none = LLVMCreateFunctionPassManagerForModule(w->module);
    for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f)) LLVMRunFunctionPassManager(none, f); /* reads the body */
    LLVMDisposePassManager(none);
}
static void make(Shards *all, uint32_t number) {
    Shard *s = &all->at[number];
    read_part(all, &s->w, number);
    writer_optimise(&s->w);
    writer_amend(&s->w);
    s->object = writer_code(&s->w, LLVMObjectFile);
    writer_close(&s->w);
}
static void work(Shards *s) {
    for (uint32_t i; (i = s->next++) < s->n;) make(s, i);
}
static void *work_apart(void *shards) {
    crash_thread();
    work(shards);
    return NULL;
}

/* ---- all */

static int cpus_to_use(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}
static void start_threads(Shards *s) {
    uint32_t cpus = (uint32_t)cpus_to_use();
    pthread_attr_t a;
    if (pthread_attr_init(&a)) return;
    bool good = pthread_attr_setstacksize(&a, MAIN_STACK) == 0;
    for (uint32_t i = 0; good && i < MOST_SHARDS - 1 && i + 1 < s->n && i + 1 < cpus; i++)
        if ((good = pthread_create(&s->threads[i], &a, work_apart, s) == 0)) s->nthreads++;
    pthread_attr_destroy(&a);
}
Shards *shards_start(Writer *w, Programs programs, uint32_t n) {
    Emit *e = w->e;
    Shards *s = arena_new(e->arena, Shards, 1);
    assert(2 <= n && n <= MOST_SHARDS);
    s->e = e, s->n = n, s->next = 1;
    share_out(w, programs, pieces_of(w), n);
    share_symbols(w->module);
    s->module = LLVMWriteBitcodeToMemoryBuffer(w->module);
    for (uint32_t i = 1; i < n; i++) {
        s->at[i].w = (Writer){.e = e, .target = w->target};
        writer_machine(&s->at[i].w, w->target->machine->open); /* here: LLVM registers its targets */
    }
    start_threads(s);
    keep(w, 0);
    return s;
}
void shards_wait(Shards *s) {
    work(s);
    for (uint32_t i = 0; i < s->nthreads; i++) pthread_join(s->threads[i], NULL);
    LLVMDisposeMemoryBuffer(s->module);
}
bool shards_write(Shards *s, const char *path, const char *const *files) {
    bool good = true;
    for (uint32_t i = 1; i < s->n; i++) {
        good = good && writer_write(s->e, s->at[i].object, &(Output){path, files[i]});
        LLVMDisposeMemoryBuffer(s->at[i].object);
    }
    return good;
}
