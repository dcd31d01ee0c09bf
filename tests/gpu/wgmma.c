/* wgmma.mma_async: D = A B + D of four warps, 64 by N. Warp w of them has the rows from 16 w on: register r of lane l
   begins at row l / 4 + 8 (r / 2 % 2), column 8 (r / 4) + 2 (l % 4). B is in shared memory, A there or in registers,
   as mma.sync has it. What a product reads in shared memory is checked where it begins, and read where it is waited
   for. The descriptor of a matrix: its address, two distances between groups of its core matrices (8
   rows of 16 bytes), and how its places are exchanged (swizzled). Layouts: PTX ISA, "Matrices in shared memory for
   wgmma". */
#include "bulk.h"
#include "lanes.h"
#include "race.h"
#include <stdlib.h>

enum { ROWS = 16, CORE = 8, GROUP_ROWS = 64 };
#define UNUSED_BITS 0x3ff1c000c000c000
typedef struct {
    u64 start, leading, stride; /* bytes */
    u32 swizzle;
    bool across; /* neighbours are along rows of A, columns of B, not along the sum */
    Element element;
} Operand;
static Operand operand_of(Warp *w, u64 descriptor, bool across, Element e) {
    static const u32 swizzles[] = {0, 128, 64, 32};
    if (descriptor >> 49 & 7) fault(w, 0, "a descriptor with a base offset");
    if (descriptor & UNUSED_BITS) fault(w, 0, "a descriptor %#llx with unknown bits", (unsigned long long)descriptor);
    return (Operand){(descriptor & 0x3fff) << 4,
                     (descriptor >> 16 & 0x3fff) << 4,
                     (descriptor >> 32 & 0x3fff) << 4,
                     swizzles[descriptor >> 62],
                     across,
                     e};
}
/* Where row r of A, or column r of B, has its k-th term. */
static u64 place_in(const Operand *o, u32 r, u32 k) {
    u32 bytes = element_info[o->element].bits / 8, t = CHUNK / bytes, line = o->swizzle ? o->swizzle : CHUNK;
    if (!o->across) {
        u64 along = o->swizzle ? (u64)k * bytes : k / t * o->leading + k % t * bytes;
        return swizzled(o->start + r / CORE * o->stride + r % CORE * line + along, o->swizzle);
    }
    u32 in_line = line / bytes, groups = r / in_line;
    u64 group = o->swizzle ? groups * o->leading : groups * o->stride, terms = o->swizzle ? o->stride : o->leading;
    return swizzled(o->start + group + r % in_line * bytes + k % CORE * line + k / CORE * terms, o->swizzle);
}
static void check_visible(Warp *w, u64 at, u32 bytes) {
    const u8 *written = w->block->shared_written + at;
    for (u32 k = 0; k < bytes; k++)
        if (!(written[k] & 2))
            fault(w, 0, "byte %llu of shared memory was %s", (unsigned long long)at + k,
                  written[k] ? "written by a thread, and no fence.proxy.async is between" : "never written");
}
static f64 element_at(Warp *w, const Operand *o, u32 r, u32 k) {
    u64 bits = 0;
    memcpy(&bits, w->block->shared + place_in(o, r, k), element_info[o->element].bits / 8);
    return element_value(o->element, bits, 0);
}
/* Rows of A from `first` on, or columns of B, are in shared memory, and what copies or threads have written there may
   be read. */
static void check_operand(Warp *w, const View *v, const Operand *o, u32 first, u32 rows, u32 terms) {
    u32 t = CHUNK * 8 / element_info[o->element].bits, chunks = o->across ? rows / t : terms / t;
    for (u32 line = 0; line < (o->across ? terms : rows); line++)
        for (u32 c = 0; c < chunks; c++) {
            u64 at = o->across ? place_in(o, first + c * t, line) : place_in(o, first + line, c * t);
            place_of(w, SPACE_SHARED, 0, at, CHUNK, TOUCH_NOT);
            check_visible(w, at, CHUNK);
            if (v) touched_factor(w, v, at, CHUNK);
        }
}

/* ---- one product */
uint32_t wgmma_encoded(const WgmmaShape *s) {
    return s->columns / CORE | (u32)s->a << 6 | (u32)s->b << 10 | (u32)s->d << 14 | (u32)s->registers << 18 |
           (u32)s->across[0] << 19 | (u32)s->across[1] << 20 | (u32)s->negative[0] << 21 | (u32)s->negative[1] << 22;
}
static WgmmaShape decoded(u32 v) {
    return (WgmmaShape){.columns = (v & 63) * CORE,
                        .a = v >> 6 & 15,
                        .b = v >> 10 & 15,
                        .d = v >> 14 & 15,
                        .registers = v >> 18 & 1,
                        .across = {v >> 19 & 1, v >> 20 & 1},
                        .negative = {v >> 21 & 1, v >> 22 & 1}};
}
u32 wgmma_terms(const WgmmaShape *s) { return 256 / element_info[s->a].bits; }
u32 wgmma_sums(const WgmmaShape *s) { return s->columns / 2 * element_info[s->d].bits / 32; }

typedef struct {
    f64 a[ROWS][MAX_K], b[MOST_COLUMNS][MAX_K];
} Factors;
static void read_a(Warp *w, const Product *p, const WgmmaShape *s, Factors *f) {
    Operand o = operand_of(w, p->a, s->across[0], s->a);
    u32 row = w->index % WARPGROUP * ROWS;
    if (s->registers) {
        MmaShape shape = {.m = ROWS, .k = wgmma_terms(s), .a = s->a};
        mma_rows(w, &shape, w->top->f->lists.at + p->at->list + wgmma_sums(s), f->a);
        return;
    }
    for (u32 r = 0; r < ROWS; r++)
        for (u32 k = 0; k < wgmma_terms(s); k++) f->a[r][k] = element_at(w, &o, row + r, k);
}
static void read_b(Warp *w, const Product *p, const WgmmaShape *s, Factors *f) {
    Operand o = operand_of(w, p->b, s->across[1], s->b);
    for (u32 c = 0; c < s->columns; c++)
        for (u32 k = 0; k < wgmma_terms(s); k++) f->b[c][k] = element_at(w, &o, c, k);
}
/* The sum that is element e of a lane's registers. */
static void add_sum(Warp *w, const Product *p, const WgmmaShape *s, const Factors *f, u32 e, u32 lane) {
    u32 bits = element_info[s->d].bits, in_word = 32 / bits;
    u32 *word = (u32 *)(w->frame + w->top->f->lists.at[p->at->list + e / in_word]) + lane;
    u32 row = lane / 4 + CORE * (e / 2 % 2), column = CORE * (e / 4) + 2 * (lane % 4) + e % 2;
    f64 x = p->add ? element_value(s->d, *word, e % in_word) : 0;
    f64 sign = s->negative[0] != s->negative[1] ? -1 : 1;
    for (u32 k = 0; k < wgmma_terms(s); k++) x += sign * f->a[row][k] * f->b[column][k];
    u32 shift = e % in_word * bits, mask = bits == 32 ? ALL_LANES : 0xffffu << shift;
    *word = (*word & ~mask) | (u32)mma_bits(s->d, x) << shift;
}
static void multiply(Warp *w, const Product *p) {
    static Factors f;
    WgmmaShape s = decoded(p->at->target);
    read_a(w, p, &s, &f);
    read_b(w, p, &s, &f);
    for (u32 e = 0; e < s.columns / 2; e++)
        for (u32 l = 0; l < LANES; l++) add_sum(w, p, &s, &f, e, l);
}
uint32_t product_registers(const Product *p) {
    WgmmaShape s = decoded(p->at->target);
    MmaShape a = {.m = ROWS, .k = wgmma_terms(&s), .a = s.a};
    return wgmma_sums(&s) + (s.registers ? a_registers(&a) : 0);
}
static void check_operands(Warp *w, const Product *p) {
    WgmmaShape s = decoded(p->at->target);
    Operand a = operand_of(w, p->a, s.across[0], s.a), b = operand_of(w, p->b, s.across[1], s.b);
    View view, *v = NULL;
    if (ptx_options.races & 1) view = clocks_warp_view(w), v = &view;
    if (!s.registers) check_operand(w, v, &a, w->index % WARPGROUP * ROWS, ROWS, wgmma_terms(&s));
    check_operand(w, v, &b, 0, s.columns, wgmma_terms(&s));
}

/* ---- instructions */
#define NOT_COMMITTED UINT32_MAX
/* o: the descriptors of A and B, whether to add; list: D, and A if it is in registers. */
void run_wgmma(Warp *w, const Ins *i, u32 mask) {
    Products *x = &w->products;
    whole_warp(w, mask);
    if (!x->fenced) fault(w, 0, "no wgmma.fence since the registers were last waited for");
    if (w->depth) fault(w, 0, "a product of a warpgroup in a function that is called");
    if (x->n == x->cap) {
        x->cap = x->cap ? 2 * x->cap : 16;
        Product *more = realloc(x->at, x->cap * sizeof *more);
        if (!more) fault(w, 0, "no memory for products");
        x->at = more;
    }
    Product p = {i, SLOT(u64, 0)[0], SLOT(u64, 1)[0], *SLOT(u32, 2) & 1, NOT_COMMITTED, race_epoch};
    for (u32 l = 1; l < LANES; l++)
        if (SLOT(u64, 0)[l] != p.a || SLOT(u64, 1)[l] != p.b || (*SLOT(u32, 2) >> l & 1) != p.add)
            fault(w, l, "lanes differ in the operands of a product");
    product_begins(w, &p);
    check_operands(w, &p);
    x->at[x->n++] = p;
}
void run_wgmma_fence(Warp *w, const Ins *i, u32 mask) {
    whole_warp(w, mask);
    w->products.fenced = true;
    products_fence(w);
}
void run_wgmma_commit(Warp *w, const Ins *i, u32 mask) {
    Products *x = &w->products;
    whole_warp(w, mask);
    for (u32 k = 0; k < x->n; k++)
        if (x->at[k].group == NOT_COMMITTED) x->at[k].group = x->groups;
    x->groups++, race_epoch += clocks_on;
}
static void end_product(Warp *w, const Product *p) {
    multiply(w, p);
    product_ends(w, p);
    if (clocks_on) clocks_products_done(w, p->when);
}
/* target: how many groups may be pending */
void run_wgmma_wait(Warp *w, const Ins *i, u32 mask) {
    Products *x = &w->products;
    u32 kept = 0;
    whole_warp(w, mask);
    for (u32 k = 0; k < x->n; k++) {
        Product p = x->at[k];
        if (p.group != NOT_COMMITTED && x->groups > i->target && p.group < x->groups - i->target)
            end_product(w, &p);
        else
            x->at[kept++] = p;
    }
    x->n = kept;
    if (!kept) x->fenced = false;
}
void wgmma_end(Warp *w) {
    products_end(w);
    if (!w->products.n) return;
    w->at = w->products.at[0].at;
    fault(w, 0, "nobody has waited for this product");
}
