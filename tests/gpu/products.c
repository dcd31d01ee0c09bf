/* What may be done while products of a warpgroup are not done: nobody touches their registers, but products of the same
   shape that add to the same ones; a wgmma.fence is between what threads do with registers and products; and all four
   warps begin the same products. */
#include "bulk.h"
#include "lanes.h"
#include <stdlib.h>

enum { REGISTER_BYTES = 4 * LANES };
static const u32 *registers_of(const Warp *w, const Product *p) { return w->entry.f->lists.at + p->at->list; }

/* ---- the warpgroup */
static void check_group(Warp *w, const Product *p) {
    Block *b = w->block;
    Warpgroup *g = &b->warpgroups[w->index / WARPGROUP];
    u32 here = b->nwarps - w->index / WARPGROUP * WARPGROUP, k = w->products.begun++;
    if (here < WARPGROUP) fault(w, 0, "a product of a warpgroup that has %u warps", here);
    if (k == g->n) {
        if (g->n == g->cap) {
            g->cap = g->cap ? 2 * g->cap : 64;
            Product *more = realloc(g->at, g->cap * sizeof *more);
            if (!more) fault(w, 0, "no memory for products");
            g->at = more;
        }
        g->at[g->n++] = *p;
    }
    const Product *q = &g->at[k];
    if (q->at != p->at)
        fault(w, 0, "another warp of the warpgroup begins the product of line %u in place of this one", q->at->line);
    if (q->a != p->a || q->b != p->b || q->add != p->add)
        fault(w, 0, "warps of the warpgroup differ in the operands of a product");
}
void products_end(Warp *w) {
    const Warpgroup *g = &w->block->warpgroups[w->index / WARPGROUP];
    if (w->products.begun == g->n) return;
    w->at = g->at[w->products.begun].at;
    fault(w, 0, "this warp of a warpgroup has not come to this product, others have");
}

/* ---- registers */
/* Registers of all products of the function. */
static void find_accumulators(Block *b) {
    const PtxFunc *f = b->launch->f;
    u32 cap = 0, slots = f->frame_bytes / SLOT_ALIGN + 1;
    each(const Ins, i, f->code)
        if (i->run == run_wgmma) cap += product_registers(&(Product){.at = i});
    b->accumulators.at = launch_room(b->launch, cap * sizeof(u32), SLOT_ALIGN);
    b->accumulators.number = launch_room(b->launch, slots * sizeof(u32), SLOT_ALIGN);
    memset(b->accumulators.number, 0, slots * sizeof(u32));
    each(const Ins, i, f->code) {
        u32 n = i->run == run_wgmma ? product_registers(&(Product){.at = i}) : 0;
        for (u32 k = 0; k < n; k++) {
            u32 slot = f->lists.at[i->list + k], *number = &b->accumulators.number[slot / SLOT_ALIGN];
            if (*number == 0) b->accumulators.at[b->accumulators.n++] = slot, *number = b->accumulators.n;
        }
    }
}
static u8 *kept_at(const Warp *w, u32 slot) {
    return w->products.kept + (w->block->accumulators.number[slot / SLOT_ALIGN] - 1) * (size_t)REGISTER_BYTES;
}
static void make_room(Warp *w) {
    Block *b = w->block;
    u32 slots = w->entry.f->frame_bytes / SLOT_ALIGN + 1;
    if (!b->accumulators.at) find_accumulators(b);
    if (w->products.used) return;
    w->products.used = launch_room(b->launch, slots, SLOT_ALIGN);
    w->products.touched = launch_room(b->launch, slots, SLOT_ALIGN);
    w->products.kept = launch_room(b->launch, b->accumulators.n * (size_t)REGISTER_BYTES, SLOT_ALIGN);
    memset(w->products.used, 0, slots);
    memset(w->products.touched, 0, slots);
}
void products_reset(Warp *w) {
    w->products.n = w->products.groups = w->products.begun = 0, w->products.fenced = false;
    if (!w->products.used) return;
    memset(w->products.used, 0, w->entry.f->frame_bytes / SLOT_ALIGN + 1);
    memset(w->products.touched, 0, w->entry.f->frame_bytes / SLOT_ALIGN + 1);
}
static _Noreturn void in_use(Warp *w) {
    fault(w, 0, "a register is used by the product of line %u, which is not waited for", w->products.at[0].at->line);
}
void products_fence(Warp *w) {
    make_room(w);
    for (u32 k = 0; k < w->block->accumulators.n; k++)
        memcpy(w->products.kept + k * (size_t)REGISTER_BYTES, w->frame + w->block->accumulators.at[k], REGISTER_BYTES);
    memset(w->products.touched, 0, w->entry.f->frame_bytes / SLOT_ALIGN + 1);
}
/* Products that are not done may have these sums, if all are the same and in the same order. */
static bool adds_to_same(const Warp *w, const Product *p) {
    for (u32 k = 0; k < w->products.n; k++) {
        const Product *q = &w->products.at[k];
        if (q->at->target == p->at->target && !memcmp(registers_of(w, q), registers_of(w, p), p->at->n * sizeof(u32)))
            return true;
    }
    return false;
}
void product_begins(Warp *w, const Product *p) {
    const u32 *slots = registers_of(w, p);
    bool same = adds_to_same(w, p);
    check_group(w, p);
    for (u32 k = 0; k < product_registers(p); k++) {
        u8 *used = &w->products.used[slots[k] / SLOT_ALIGN];
        if (*used && !(same && k < p->at->n)) in_use(w);
        if (!*used && w->products.touched[slots[k] / SLOT_ALIGN])
            fault(w, 0, "a register of the product was used since the wgmma.fence");
        if (!*used && memcmp(kept_at(w, slots[k]), w->frame + slots[k], REGISTER_BYTES))
            fault(w, 0, "a register of the product was written since the wgmma.fence");
    }
    for (u32 k = 0; k < product_registers(p); k++) w->products.used[slots[k] / SLOT_ALIGN]++;
}
void product_ends(Warp *w, const Product *p) {
    const u32 *slots = registers_of(w, p);
    for (u32 k = 0; k < product_registers(p); k++) {
        w->products.used[slots[k] / SLOT_ALIGN]--;
        memcpy(kept_at(w, slots[k]), w->frame + slots[k], REGISTER_BYTES);
    }
}
static void check_slot(Warp *w, u32 slot) {
    if (w->products.used[slot / SLOT_ALIGN]) in_use(w);
    if (w->block->accumulators.number[slot / SLOT_ALIGN]) w->products.touched[slot / SLOT_ALIGN] = 1;
}
/* An instruction while products are not done. */
void check_registers(Warp *w, const Ins *i) {
    if (w->depth || i->run == run_wgmma || i->flow == FLOW_CALL || i->flow == FLOW_SWITCH) return;
    for (u32 k = 0; k < MAX_OPERANDS; k++)
        if (i->o[k] != NO_SLOT) check_slot(w, i->o[k]);
    for (u32 k = 0; k < i->n; k++) check_slot(w, w->entry.f->lists.at[i->list + k]);
}
