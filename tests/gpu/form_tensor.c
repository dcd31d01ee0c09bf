/* Matrices and asynchronous copies: the forms. */
#include "bulk.h"
#include "convert.h"
#include <stdio.h>

static void all_lanes(Ins *i, Run *run) { i->run = run, i->flow = FLOW_SYNC, i->members = NO_SLOT; }
Element element_of(Parser *p, const Parts *x, Str s) {
    for (Element e = 0; e < ELEMENTS; e++)
        if (str_is(s, element_info[e].name)) return e;
    wrong(p, "%.*s: elements of type .%.*s", SF(x->all), SF(s));
}
/* mNnNkN */
static void shape_of(Parser *p, const Parts *x, Str s, MmaShape *shape) {
    unsigned m, n, k;
    char text[32];
    snprintf(text, sizeof text, "%.*s", SF(s));
    if (sscanf(text, "m%un%uk%u", &m, &n, &k) != 3 || (m != 8 && m != MAX_M) || n != MAX_N || k == 0 || k > MAX_K)
        wrong(p, "%.*s: shape %s", SF(x->all), text);
    shape->m = m, shape->k = k;
}
static void matrix_registers(Parser *p, const Parts *x, Element e, uint32_t expected) {
    Ins list = {0};
    uint32_t width = element_info[e].register_bytes;
    list_operand(p, &list, &width);
    if (list.n != expected || width != element_info[e].register_bytes)
        wrong(p, "%.*s: %u registers of %u bits, not %u of %u", SF(x->all), list.n, 8 * width, expected,
              8 * element_info[e].register_bytes);
}
/* mma.sync.aligned.SHAPE.row.col[.satfinite].D.A.B.C */
void form_mma(Parser *p, Ins *i, const Parts *x) {
    MmaShape s;
    if (x->n < 10 || !has(x, "sync") || !has(x, "row") || !has(x, "col")) wrong(p, "%.*s is not known", SF(x->all));
    shape_of(p, x, x->at[3], &s);
    s.d = element_of(p, x, x->at[x->n - 4]), s.a = element_of(p, x, x->at[x->n - 3]);
    s.b = element_of(p, x, x->at[x->n - 2]), s.c = element_of(p, x, x->at[x->n - 1]);
    if (a_registers(&s) == 0 || b_registers(&s) == 0) wrong(p, "%.*s: shape", SF(x->all));
    all_lanes(i, run_mma);
    i->kind = has(x, "satfinite"), i->target = mma_encoded(s), i->list = p->f->lists.n;
    matrix_registers(p, x, s.d, c_registers(&s, s.d));
    expect(p, ",");
    matrix_registers(p, x, s.a, a_registers(&s));
    expect(p, ",");
    matrix_registers(p, x, s.b, b_registers(&s));
    expect(p, ",");
    matrix_registers(p, x, s.c, c_registers(&s, s.c));
    i->n = p->f->lists.n - i->list;
}

static const char *const counts[] = {"x1", "x2", "x4", NULL};
static void matrix_modifiers(Parser *p, Ins *i, const Parts *x) {
    int k = which_of(x, counts);
    if (k < 0 || !has(x, "m8n8") || !has(x, "b16")) wrong(p, "%.*s is not known", SF(x->all));
    i->space = (uint8_t)space_of(x), i->sign = has(x, "trans");
}
static void matrix_list(Parser *p, Ins *i, const Parts *x) {
    uint32_t width = 4;
    list_operand(p, i, &width);
    if (width != 4 || i->n != 1u << which_of(x, counts)) wrong(p, "%.*s: %u registers", SF(x->all), i->n);
}
void form_ldmatrix(Parser *p, Ins *i, const Parts *x) {
    all_lanes(i, run_ldmatrix);
    matrix_modifiers(p, i, x);
    matrix_list(p, i, x);
    expect(p, ",");
    address_operand(p, i, &i->o[0], &i->offset);
}
void form_stmatrix(Parser *p, Ins *i, const Parts *x) {
    all_lanes(i, run_stmatrix);
    matrix_modifiers(p, i, x);
    address_operand(p, i, &i->o[0], &i->offset);
    expect(p, ",");
    matrix_list(p, i, x);
}

/* cp.async.ca.shared.global [to], [from], bytes[, bytes that are read] */
static void copy(Parser *p, Ins *i, const Parts *x) {
    i->run = run_cp_async;
    address_operand(p, i, &i->o[0], &i->offset);
    bool short_to = i->short_address;
    expect(p, ",");
    address_operand(p, i, &i->o[1], &i->offset2);
    if (short_to != i->short_address) wrong(p, "%.*s with addresses of 32 and 64 bits", SF(x->all));
    expect(p, ",");
    uint32_t bytes = small_number(p);
    if (bytes != 16 && (has(x, "cg") || (bytes != 4 && bytes != 8))) wrong(p, "%.*s of %u bytes", SF(x->all), bytes);
    i->bytes = (uint8_t)bytes;
    i->o[2] = accept(p, ",") ? operand(p, 4) : NO_SLOT;
}
void form_cp(Parser *p, Ins *i, const Parts *x) {
    if (has(x, "bulk"))
        form_bulk(p, i, x);
    else if (has(x, "commit_group"))
        i->run = run_cp_commit;
    else if (has(x, "wait_group"))
        i->run = run_cp_wait, i->target = small_number(p);
    else if (has(x, "wait_all"))
        i->run = run_cp_wait, i->kind = true;
    else if (has(x, "shared") || has(x, "shared::cta"))
        copy(p, i, x);
    else
        wrong(p, "%.*s is not known", SF(x->all));
}
