/* The library's free list of workspaces. A slot holds an unused block or NULL. Whoever takes a block out of its slot
   owns it, so that no lock is needed. A block that is too small is replaced by a larger one: after a few calls every
   block serves every program of the library. */
#include "rt.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { SLOTS = 64, ALIGN = 64, HUGE_PAGE = 2 << 20 };
typedef struct {
    _Alignas(ALIGN) int64_t bytes; /* of the workspace, which follows this header */
} Block;

static Block *_Atomic slots[SLOTS];

static Block *take(int i) {
    if (!atomic_load_explicit(&slots[i], memory_order_relaxed)) return NULL;
    return atomic_exchange_explicit(&slots[i], NULL, memory_order_acquire);
}

static void give(Block *b) {
    for (int i = 0; i < SLOTS; i++) {
        Block *empty = NULL;
        if (!atomic_load_explicit(&slots[i], memory_order_relaxed) &&
            atomic_compare_exchange_strong_explicit(&slots[i], &empty, b, memory_order_release, memory_order_relaxed))
            return;
    }
    free(b);
}

/* Large blocks use huge pages if the system has them. */
static void *block_new(int64_t bytes) {
    if (bytes < 0 || bytes > INT64_MAX - 2 * HUGE_PAGE) return NULL;
    size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : ALIGN;
    size_t whole = ((size_t)bytes + sizeof(Block) + align - 1) / align * align;
    Block *b = aligned_alloc(align, whole);
    if (!b) return NULL;
    if (align == HUGE_PAGE) madvise(b, whole, MADV_HUGEPAGE);
    b->bytes = (int64_t)(whole - sizeof *b);
    return b + 1;
}

void *jaxcc_rt_workspace_get(int64_t bytes) {
    Block *small = NULL;
    for (int i = 0; i < SLOTS; i++) {
        Block *b = take(i);
        if (!b) continue;
        if (b->bytes >= bytes) {
            if (small) give(small);
            return b + 1;
        }
        if (small) give(small);
        small = b;
    }
    free(small);
    return block_new(bytes);
}

void jaxcc_rt_workspace_put(void *workspace) {
    if (workspace) give((Block *)workspace - 1);
}

__attribute__((destructor)) static void release_all(void) {
    for (int i = 0; i < SLOTS; i++) free(take(i));
}
