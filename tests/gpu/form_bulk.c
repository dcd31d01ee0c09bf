/* Barriers in memory, bulk copies, products of a warpgroup: the forms. */
#include "bulk.h"
#include <stdio.h>

static void shared_address(Parser *p, Ins *i, const Parts *x, uint32_t *slot, int64_t *offset) {
    address_operand(p, i, slot, offset);
    if (i->short_address) wrong(p, "%.*s with an address of 32 bits", SF(x->all));
}
static void begins_with(Parser *p, const Parts *x, bool known) {
    if (!known) wrong(p, "%.*s is not known", SF(x->all));
}
/* ---- mbarrier */
static void arrive(Parser *p, Ins *i, const Parts *x) {
    i->run = run_mbarrier_arrive, i->kind = has(x, "expect_tx") ? MBARRIER_BOTH : MBARRIER_ARRIVE;
    i->o[0] = accept(p, "_") ? sink_slot(p, 8) : operand(p, 8);
    expect(p, ",");
    shared_address(p, i, x, &i->o[1], &i->offset);
    begins_with(p, x, i->kind == MBARRIER_ARRIVE || peek(p) == ',');
    i->o[2] = accept(p, ",") ? operand(p, 4) : constant_slot(p, 4, 1, NULL);
}
/* mbarrier.try_wait.parity.shared.b64 p, [barrier], parity[, hint] */
static void wait(Parser *p, Ins *i, const Parts *x) {
    i->run = run_mbarrier_wait, i->flow = FLOW_POLL, i->kind = has(x, "parity");
    i->o[0] = operand(p, 1);
    expect(p, ",");
    shared_address(p, i, x, &i->o[1], &i->offset);
    expect(p, ",");
    i->o[2] = operand(p, i->kind ? 4 : 8);
    if (accept(p, ",")) operand(p, 4);
}
static void at_barrier(Parser *p, Ins *i, const Parts *x, Run *run, bool operand_follows) {
    i->run = run;
    shared_address(p, i, x, &i->o[1], &i->offset);
    if (!operand_follows) return;
    expect(p, ",");
    i->o[2] = operand(p, 4);
}
void form_mbarrier(Parser *p, Ins *i, const Parts *x) {
    i->space = (uint8_t)space_of(x), i->order = has(x, "relaxed") ? ORDER_RELAXED : ORDER_WEAK;
    p->f->clocks = true;
    begins_with(p, x, x->n > 2 && has(x, "b64"));
    if (has(x, "arrive"))
        arrive(p, i, x);
    else if (has(x, "try_wait") || has(x, "test_wait"))
        wait(p, i, x);
    else if (has(x, "init"))
        i->kind = MBARRIER_INIT, at_barrier(p, i, x, run_mbarrier_set, true);
    else if (has(x, "expect_tx")) {
        i->kind = MBARRIER_EXPECT, i->o[0] = sink_slot(p, 8);
        at_barrier(p, i, x, run_mbarrier_arrive, true);
    } else {
        begins_with(p, x, has(x, "inval"));
        i->kind = MBARRIER_INVAL, at_barrier(p, i, x, run_mbarrier_set, false);
    }
}

/* ---- cp.async.bulk */
static void from_address(Parser *p, Ins *i, const Parts *x) {
    int64_t offset = 0;
    shared_address(p, i, x, &i->o[1], &offset);
    if (offset != (int32_t)offset) wrong(p, "%.*s: offset %lld", SF(x->all), (long long)offset);
    i->target = (uint32_t)(int32_t)offset;
}
/* [map, {coordinates}] */
static void box(Parser *p, Ins *i) {
    uint32_t width = 4;
    expect(p, "[");
    i->o[1] = operand(p, 8);
    expect(p, ",");
    list_operand(p, i, &width);
    expect(p, "]");
    if (width != 4 || i->n > PTX_MAP_RANK) wrong(p, "%u coordinates", i->n);
}
void form_bulk(Parser *p, Ins *i, const Parts *x) {
    bool tensor = has(x, "tensor");
    p->f->clocks = true;
    begins_with(p, x,
                has(x, "mbarrier::complete_tx::bytes") && has(x, "global") && !has(x, "im2col") &&
                    !has(x, "multicast::cluster"));
    i->run = tensor ? run_bulk_tensor : run_bulk;
    shared_address(p, i, x, &i->o[0], &i->offset);
    expect(p, ",");
    if (tensor)
        box(p, i);
    else {
        from_address(p, i, x);
        expect(p, ",");
        i->o[3] = operand(p, 4);
    }
    expect(p, ",");
    shared_address(p, i, x, &i->o[2], &i->offset2);
    if (accept(p, ",")) operand(p, 8); /* a policy of the cache */
}

/* ---- wgmma */
static void shape_of(Parser *p, const Parts *x, WgmmaShape *s) {
    unsigned m, k;
    char text[32];
    snprintf(text, sizeof text, "%.*s", SF(x->at[4]));
    s->d = element_of(p, x, x->at[5]), s->a = element_of(p, x, x->at[6]), s->b = element_of(p, x, x->at[7]);
    if (sscanf(text, "m%un%uk%u", &m, &s->columns, &k) != 3 || m != 64 || s->columns % MAX_N || s->columns == 0 ||
        s->columns > MOST_COLUMNS || k != wgmma_terms(s) || element_info[s->a].bits != element_info[s->b].bits)
        wrong(p, "%.*s: shape %s", SF(x->all), text);
}
/* 1 or -1: is it -1? */
static bool sign(Parser *p) {
    bool negative = accept(p, "-");
    if (small_number(p) != 1) wrong(p, "a factor other than 1 and -1");
    return negative;
}
/* D, A, B, add[, sign of A, sign of B[, A across, B across]] */
static void modifiers(Parser *p, WgmmaShape *s) {
    for (uint32_t k = 0; k < 2 && accept(p, ","); k++) s->negative[k] = sign(p);
    for (uint32_t k = s->registers; k < 2 && accept(p, ","); k++) s->across[k] = small_number(p) == 1;
    if ((s->across[0] || s->across[1]) && element_info[s->a].bits != 16)
        wrong(p, "only matrices of 16 bits are transposed");
}
static void mma_async(Parser *p, Ins *i, const Parts *x) {
    WgmmaShape s = {0};
    Ins a = {0};
    uint32_t width = 4;
    if (x->n != 8) wrong(p, "%.*s is not known", SF(x->all));
    shape_of(p, x, &s);
    list_operand(p, i, &width);
    if (i->n != wgmma_sums(&s) || width != 4) wrong(p, "%.*s: %u registers", SF(x->all), i->n);
    expect(p, ",");
    s.registers = peek(p) == '{';
    if (s.registers)
        list_operand(p, &a, &width), i->o[0] = constant_slot(p, 8, 0, NULL);
    else
        i->o[0] = operand(p, 8);
    expect(p, ",");
    i->o[1] = operand(p, 8);
    expect(p, ",");
    i->o[2] = operand(p, 1);
    modifiers(p, &s);
    i->run = run_wgmma, i->target = wgmma_encoded(&s);
}
void form_wgmma(Parser *p, Ins *i, const Parts *x) {
    i->flow = FLOW_SYNC, i->members = NO_SLOT;
    p->f->clocks = true;
    begins_with(p, x, has(x, "sync") && has(x, "aligned"));
    if (has(x, "mma_async"))
        mma_async(p, i, x);
    else if (has(x, "fence"))
        i->run = run_wgmma_fence;
    else if (has(x, "commit_group"))
        i->run = run_wgmma_commit;
    else {
        begins_with(p, x, has(x, "wait_group"));
        i->run = run_wgmma_wait, i->target = small_number(p);
    }
}
