/* Launches: blocks one after the other, the warps of a block in turns. */
#include "bulk.h"
#include "memory.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { POISON = 0xA5, FAULT_TEXT = 1024 };
#define NO_LIMIT UINT64_MAX

static jmp_buf on_fault;
static char fault_text[FAULT_TEXT];

const char *ptx_fault(void) { return fault_text; }
void fault(Warp *w, uint32_t lane, const char *format, ...) {
    char what[FAULT_TEXT / 2];
    const PtxFunc *f = w->top->f;
    const Block *b = w->block;
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    snprintf(fault_text, sizeof fault_text, "%.*s: line %u (%.*s), block (%u,%u,%u), thread %u: %s", SF(f->name),
             w->at->line, SF(f->module->opcodes.at[w->at->opcode].name), b->id.x, b->id.y, b->id.z,
             w->index * LANES + lane, what);
    longjmp(on_fault, 1);
}
static bool refused(const PtxFunc *f, const char *format, ...) {
    char what[FAULT_TEXT / 2];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    snprintf(fault_text, sizeof fault_text, "%.*s: not launched: %s", SF(f->name), what);
    return false;
}

static uint64_t address_of(const Launch *x, const Symbol *s, uint64_t local_base) {
    if (s->space == SPACE_LOCAL) return s->address + local_base;
    return s->space == SPACE_SHARED && s->external ? dynamic_base(x->f) : s->address;
}
void fill_frame(const Launch *x, const PtxFunc *f, uint8_t *frame, uint64_t local_base) {
    each(const Constant, c, f->constants) {
        uint64_t v = c->value + (c->symbol ? address_of(x, c->symbol, local_base) : 0);
        uint8_t *d = frame + c->slot;
        switch (c->width) {
        case 2:
            for (uint32_t l = 0; l < LANES; l++) ((uint16_t *)d)[l] = (uint16_t)v;
            break;
        case 4:
            for (uint32_t l = 0; l < LANES; l++) ((uint32_t *)d)[l] = (uint32_t)v;
            break;
        case 8:
            for (uint32_t l = 0; l < LANES; l++) ((uint64_t *)d)[l] = v;
            break;
        default: *(uint32_t *)d = v ? ALL_LANES : 0;
        }
    }
}
static void set_special(uint8_t *frame, uint32_t which, uint32_t lane, uint32_t value) {
    ((uint32_t *)(frame + which * SPECIAL_BYTES))[lane] = value;
}
static void fill_special(Launch *x, Warp *w, uint32_t l) {
    PtxDim3 n = x->block, g = x->grid;
    uint32_t ranks = x->b.ranks, each = x->b.nwarps / ranks, t = w->index % each * LANES + l, one = 1u << l;
    const uint32_t values[SPECIAL_REGISTERS] = {[SR_TID] = t % n.x,
                                                [SR_TID + 1] = t / n.x % n.y,
                                                [SR_TID + 2] = t / n.x / n.y,
                                                [SR_NTID] = n.x,
                                                [SR_NTID + 1] = n.y,
                                                [SR_NTID + 2] = n.z,
                                                [SR_NCTAID] = g.x,
                                                [SR_NCTAID + 1] = g.y,
                                                [SR_NCTAID + 2] = g.z,
                                                [SR_LANEID] = l,
                                                [SR_WARPID] = w->index % each,
                                                [SR_NWARPID] = each,
                                                [SR_LANEMASK_EQ] = one,
                                                [SR_LANEMASK_LE] = one | (one - 1),
                                                [SR_LANEMASK_LT] = one - 1,
                                                [SR_LANEMASK_GE] = ~(one - 1),
                                                [SR_LANEMASK_GT] = ~(one | (one - 1)),
                                                [SR_DYNAMIC_SMEM] = x->dynamic_bytes,
                                                [SR_NCLUSTER] = g.x / ranks,
                                                [SR_RANK] = w->index / each,
                                                [SR_RANKS] = ranks,
                                                [SR_ONE] = 1};
    for (uint32_t k = 0; k < SPECIAL_REGISTERS; k++) set_special(w->frame, k, l, values[k]);
}

void *launch_room(Launch *x, size_t bytes, size_t align) {
    void *p = aligned_alloc(align, (bytes + 2 * align - 1) & ~(align - 1));
    if (!p) abort();
    arena_adopt(x->arena, p);
    return p;
}
static void make_warp(Launch *x, uint32_t k) {
    PtxFunc *f = x->f;
    Warp *w = &x->b.warps[k];
    uint32_t left = x->b.threads - k * LANES;
    *w = (Warp){.block = &x->b, .index = k, .top = &w->entry, .local_bytes = f->stack_bytes};
    w->all = left >= LANES ? ALL_LANES : (1u << left) - 1;
    w->entry = (Activation){.f = f, .params = x->params, .params_bytes = f->param_bytes};
    w->entry.frame = w->frame = launch_room(x, f->frame_bytes, SLOT_ALIGN);
    w->entry.calls = launch_room(x, (size_t)LANES * f->call_bytes, SLOT_ALIGN);
    if (f->stack_bytes) {
        w->local = launch_room(x, (size_t)LANES * f->stack_bytes, SLOT_ALIGN);
        w->local_written = launch_room(x, (size_t)LANES * f->stack_bytes, SLOT_ALIGN);
    }
    fill_frame(x, f, w->frame, 0);
    for (uint32_t l = 0; l < LANES; l++) fill_special(x, w, l);
}
static void make_block(Launch *x) {
    Block *b = &x->b;
    b->launch = x;
    b->ranks = x->f->info.cluster > 1 ? x->f->info.cluster : 1;
    b->threads = x->block.x * x->block.y * x->block.z * b->ranks;
    b->nwarps = (b->threads + LANES - 1) / LANES;
    b->shared_bytes = shared_total(x->f, x->dynamic_bytes);
    if (b->ranks > 1) b->shared_bytes = (b->shared_bytes + SHARED_ALIGN - 1) / SHARED_ALIGN * SHARED_ALIGN;
    b->shared = launch_room(x, (size_t)b->ranks * b->shared_bytes, SHARED_ALIGN);
    b->shared_written = launch_room(x, (size_t)b->ranks * b->shared_bytes, SLOT_ALIGN);
    for (uint32_t k = 0; k < b->nwarps; k++) make_warp(x, k);
}
static void begin_warp(Warp *w) {
    Activation *a = &w->entry;
    PtxDim3 id = w->block->id;
    uint32_t ranks = w->block->ranks;
    const uint32_t place[] = {id.x + rank_of(w), id.y, id.z};
    a->started = a->live = w->all, a->exited = 0;
    a->groups[0] = (Group){0, w->all, LANES_READY, 0}, a->ngroups = 1, a->turn = a->slices = 0;
    w->top = a, w->depth = 0, w->syncs = 0, w->busy = 0, w->arrived = 0;
    w->copies.n = 0;
    memset(w->copies.groups, 0, sizeof w->copies.groups);
    products_reset(w);
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t l = 0; l < LANES; l++) set_special(a->frame, SR_CTAID + k, l, place[k]);
    for (uint32_t l = 0; l < LANES; l++) set_special(a->frame, SR_CLUSTER, l, id.x / ranks);
    if (w->local) {
        memset(w->local, POISON, (size_t)LANES * w->local_bytes);
        memset(w->local_written, 0, (size_t)LANES * w->local_bytes);
    }
}
static void begin_block(Launch *x, uint64_t number) {
    Block *b = &x->b;
    number *= b->ranks;
    b->id = (PtxDim3){(uint32_t)(number % x->grid.x), (uint32_t)(number / x->grid.x % x->grid.y),
                      (uint32_t)(number / x->grid.x / x->grid.y)};
    memset(b->shared, POISON, (size_t)b->ranks * b->shared_bytes);
    memset(b->shared_written, 0, (size_t)b->ranks * b->shared_bytes);
    memset(b->barriers, 0, b->ranks * MAX_BARRIERS * sizeof *b->barriers);
    b->barriers[CLUSTER_BARRIER] = (Barrier){0};
    b->atomics = b->acquired = false;
    b->nbulk = b->mbarriers.n = b->meets = b->failed_tests = 0;
    for (uint32_t k = 0; k < MAX_WARPS / WARPGROUP; k++) b->warpgroups[k].n = 0;
    touch_block(b);
    for (uint32_t k = 0; k < b->nwarps; k++) begin_warp(&b->warps[k]);
}

/* No warp can run and some have not ended: says why. */
static _Noreturn void stuck(Block *b) {
    uint32_t ended = b->threads;
    Warp *at = NULL;
    Group g = {0};
    for (uint32_t k = 0; k < b->nwarps; k++) {
        const Activation *a = &b->warps[k].entry;
        ended -= (uint32_t)__builtin_popcount(a->live);
        for (uint32_t j = 0; j < a->ngroups; j++)
            if (!at || (a->groups[j].state == LANES_PARKED && g.state != LANES_PARKED))
                at = &b->warps[k], g = a->groups[j];
    }
    at->at = &at->entry.f->code.at[g.pc];
    if (g.state == LANES_PARKED)
        fault(at, first_lane(g.mask), "lanes %#x wait here for lanes that do not come (%#x have not ended)", g.mask,
              at->entry.live);
    const Barrier *x = &b->barriers[g.barrier];
    fault(at, first_lane(g.mask), "%u of %u threads wait at barrier %u, %u threads of the block have ended", x->arrived,
          x->expected, g.barrier, ended);
}
/* The k-th of n in the order that was asked for. */
static uint64_t in_order(const Launch *x, uint64_t k, uint64_t n) {
    if (ptx_options.order == 0) return k;
    if (ptx_options.order == 1) return n - 1 - k;
    uint64_t shifted = (k + x->seed) % n;
    return shifted % 2 ? n - 1 - shifted / 2 : shifted / 2; /* from both ends */
}
static void run_block(Launch *x) {
    Block *b = &x->b;
    for (bool live = true, ran = true; live;) {
        live = ran = false;
        for (uint32_t k = 0; k < b->nwarps; k++) {
            Warp *w = &b->warps[in_order(x, k, b->nwarps)];
            if (warp_ready(w)) run_warp(w), ran = true;
            live |= w->entry.live != 0;
        }
        if (live && !ran) stuck(b);
    }
    bulk_end(b);
    mbarriers_end(b);
    for (uint32_t k = 0; k < b->nwarps; k++) copies_end(&b->warps[k]), wgmma_end(&b->warps[k]);
}
static void run_blocks(Launch *x) {
    uint64_t n = (uint64_t)x->grid.x * x->grid.y * x->grid.z / x->b.ranks;
    for (uint64_t k = 0; k < n; k++) {
        begin_block(x, in_order(x, k, n));
        run_block(x);
    }
}

static bool suits(const PtxFunc *f, PtxDim3 grid, PtxDim3 block) {
    uint64_t threads = (uint64_t)block.x * block.y * block.z,
             most = (uint64_t)f->info.maxntid.x * f->info.maxntid.y * f->info.maxntid.z;
    PtxDim3 r = f->info.reqntid;
    if (!f->entry) return refused(f, "it is not an entry");
    if ((uint64_t)grid.x * grid.y * grid.z == 0)
        return refused(f, "a grid of %u x %u x %u blocks", grid.x, grid.y, grid.z);
    if (threads == 0 || threads > MAX_THREADS)
        return refused(f, "blocks of %u x %u x %u threads", block.x, block.y, block.z);
    if (most && threads > most)
        return refused(f, "%llu threads, its .maxntid is %llu", (unsigned long long)threads, (unsigned long long)most);
    uint32_t cluster = f->info.cluster;
    if (cluster > MAX_CLUSTER || cluster * threads > MAX_TOGETHER)
        return refused(f, "clusters of %u blocks of %llu threads", cluster, (unsigned long long)threads);
    if (cluster > 1 && (grid.x % cluster || grid.y * grid.z != 1 || threads % LANES))
        return refused(f, "%u x %u x %u blocks of %llu threads in clusters of %u", grid.x, grid.y, grid.z,
                       (unsigned long long)threads, cluster);
    if (r.x && (r.x != block.x || r.y != block.y || r.z != block.z))
        return refused(f, "blocks of %u x %u x %u threads, its .reqntid is %u x %u x %u", block.x, block.y, block.z,
                       r.x, r.y, r.z);
    return true;
}
static void copy_params(Launch *x, const void *const *params) {
    const PtxFunc *f = x->f;
    x->params = arena_alloc(x->arena, 1, SLOT_ALIGN, f->param_bytes + 1);
    for (uint32_t k = 0; k < f->params.n; k++)
        memcpy(x->params + f->params.at[k].offset, params[k], f->params.at[k].bytes);
}
static void end_launch(Launch *x) {
    for (uint32_t k = 0; k < x->b.nwarps; k++) {
        free_called(&x->b.warps[k]);
        free(x->b.warps[k].copies.at);
        free(x->b.warps[k].products.at);
    }
    for (uint32_t k = 0; k < MAX_WARPS / WARPGROUP; k++) free(x->b.warpgroups[k].at);
    free(x->b.bulk);
    free(x->b.mbarriers.at);
    touch_end();
    arena_close(x->arena);
}
bool ptx_launch(PtxFunc *f, PtxDim3 grid, PtxDim3 block, uint32_t shared, const void *const *params) {
    static Launch launch;
    Launch *x = &launch;
    if (!suits(f, grid, block)) return false;
    *x = (Launch){.f = f, .grid = grid, .block = block, .dynamic_bytes = shared, .arena = arena_open()};
    x->left = ptx_options.most ? ptx_options.most : NO_LIMIT;
    x->seed = ptx_options.order > 1 ? (uint64_t)ptx_options.order : 0;
    x->random = x->seed;
    ptx_counts.launches++;
    copy_params(x, params);
    make_block(x);
    touch_begin(x);
    bool good = !setjmp(on_fault);
    if (good) run_blocks(x);
    end_launch(x);
    return good;
}
