/* ldmatrix and stmatrix: matrices of 8 by 8 elements of 16 bits. Lanes 8 k to 8 k + 7 have the addresses of the rows
   of matrix k; lane l holds two neighbours of row l / 4, or of a column with .trans. */
#include "lanes.h"
#include "memory.h"
#include "tensor.h"

enum { ROWS = 8, ROW_BYTES = 16, MAX_MATRICES = 4 };
typedef u16 Matrix[ROWS][ROWS];

static u32 rows_mask(u32 matrices) { return matrices == MAX_MATRICES ? ALL_LANES : (1u << ROWS * matrices) - 1; }
static void row_places(Warp *w, const Ins *i, u32 mask, Touch how, u8 *place[LANES]) {
    u64 room[LANES];
    whole_warp(w, mask);
    places(w, i->space, rows_mask(i->n), addresses(w, i, i->o[0], i->offset, room), ROW_BYTES, how, place);
}
static u16 *element(Matrix m, const Ins *i, u32 l, u32 k) {
    u32 row = l / 4, column = l % 4 * 2 + k;
    return i->sign ? &m[column][row] : &m[row][column];
}
void run_ldmatrix(Warp *w, const Ins *i, u32 mask) {
    u8 *p[LANES];
    const u32 *list = w->top->f->lists.at + i->list;
    row_places(w, i, mask, TOUCH_READ, p);
    for (u32 n = 0; n < i->n; n++) {
        Matrix m;
        u32 *d = (u32 *)(w->frame + list[n]);
        for (u32 r = 0; r < ROWS; r++) memcpy(m[r], p[ROWS * n + r], ROW_BYTES);
        for (u32 l = 0; l < LANES; l++) d[l] = *element(m, i, l, 0) | (u32)*element(m, i, l, 1) << 16;
    }
}
void run_stmatrix(Warp *w, const Ins *i, u32 mask) {
    u8 *p[LANES];
    const u32 *list = w->top->f->lists.at + i->list;
    row_places(w, i, mask, TOUCH_WRITE, p);
    for (u32 n = 0; n < i->n; n++) {
        Matrix m;
        const u32 *a = (const u32 *)(w->frame + list[n]);
        for (u32 l = 0; l < LANES; l++) *element(m, i, l, 0) = (u16)a[l], *element(m, i, l, 1) = (u16)(a[l] >> 16);
        for (u32 r = 0; r < ROWS; r++) memcpy(p[ROWS * n + r], m[r], ROW_BYTES);
    }
}
