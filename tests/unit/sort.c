/* The runtime's sorting against insertion by a comparison that follows sort.h to the letter. */
#include "runtime/rt.h"
#include "runtime/sort.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

jaxcc_rt_function jaxcc_rt_sort, jaxcc_rt_top_k, jaxcc_rt_sort_narrow, jaxcc_rt_top_k_narrow;

static const int64_t kinds[][2] = {{1, ORDER_UNSIGNED}, {1, ORDER_SIGNED},   {2, ORDER_SIGNED},      {2, 0x7c00},
                                   {2, 0x7f80},         {4, ORDER_UNSIGNED}, {4, ORDER_TOTAL},       {4, 0x7f800000},
                                   {8, ORDER_SIGNED},   {8, ORDER_TOTAL},    {8, 0x7ff0000000000000}};
enum { KINDS = sizeof kinds / sizeof *kinds, MOST = 150000 };
static const int64_t shapes[][2] = {{0, 5},   {5, 0},   {1, 1},    {3, 2},   {1, 9},   {17, 8},
                                    {40, 33}, {2, 255}, {16, 256}, {3, 257}, {1, 3000}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static uint64_t state = 1;
static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
static uint64_t load(const char *x, int64_t i, int64_t bytes) {
    uint64_t v = 0;
    memcpy(&v, x + i * bytes, (size_t)bytes);
    return v;
}
/* Many equal ones, zeros of either sign and NaNs among them. */
static void fill(char *x, int64_t n, const int64_t *kind) {
    int shift = (int)(draw() % 3) * 20;
    for (int64_t i = 0; i < n; i++) {
        uint64_t v = draw() >> shift, sign = (uint64_t)1 << (8 * kind[0] - 1);
        if (draw() % 4 == 0) v = draw() % 2 ? 0 : sign;
        if (draw() % 8 == 0 && kind[1] > ORDER_TOTAL) v = ((uint64_t)kind[1] + draw() % 3) | (draw() % 2 ? sign : 0);
        memcpy(x + i * kind[0], &v, (size_t)kind[0]);
    }
}
static bool less(uint64_t x, uint64_t y, const int64_t *kind) {
    uint64_t sign = (uint64_t)1 << (8 * kind[0] - 1), mx = x & (sign - 1), my = y & (sign - 1);
    if (kind[1] == ORDER_UNSIGNED) return x < y;
    if (kind[1] == ORDER_SIGNED) return (x ^ sign) < (y ^ sign);
    if (kind[1] > ORDER_TOTAL) {
        if (mx > (uint64_t)kind[1]) return false;
        if (my > (uint64_t)kind[1]) return true;
        if (mx == 0) x = 0;
        if (my == 0) y = 0;
    }
    if ((x & sign) != (y & sign)) return x & sign;
    return x & sign ? mx > my : mx < my;
}

/* ---- the reference: merging of positions */
typedef struct {
    const char *x[2];
    const int64_t *kind[2];
    int64_t keys;
    bool largest;
} Keys;
static bool before(const Keys *k, int64_t i, int64_t j) {
    for (int64_t o = 0; o < k->keys; o++) {
        uint64_t x = load(k->x[o], i, k->kind[o][0]), y = load(k->x[o], j, k->kind[o][0]);
        if (less(x, y, k->kind[o])) return !k->largest;
        if (less(y, x, k->kind[o])) return k->largest;
    }
    return false;
}
static void sorted_positions(const Keys *k, int64_t lo, int64_t hi, int64_t *at, int64_t *spare) {
    if (hi - lo < 2) return;
    int64_t mid = (lo + hi) / 2, i = lo, j = mid;
    sorted_positions(k, lo, mid, at, spare);
    sorted_positions(k, mid, hi, at, spare);
    for (int64_t o = lo; o < hi; o++) spare[o] = j == hi || (i < mid && !before(k, at[j], at[i])) ? at[i++] : at[j++];
    memcpy(at + lo, spare + lo, (size_t)(hi - lo) * sizeof *at);
}

static char x[2][MOST * 8], y[2][MOST * 8];
static _Alignas(64) char scratch[MOST * 40];
static int64_t at[MOST], spare[MOST];
static void reference(Keys *k, int64_t row, int64_t n) {
    for (int o = 0; o < 2; o++) k->x[o] = x[o] + row * n * k->kind[o][0];
    for (int64_t i = 0; i < n; i++) at[i] = i;
    sorted_positions(k, 0, n, at, spare);
}
static void check_sort(jaxcc_rt_function *sort, int64_t rows, int64_t n, const int64_t *a, const int64_t *b,
                       int64_t operands, int64_t keys) {
    Keys k = {.kind = {a, b}, .keys = keys};
    for (int o = 0; o < 2; o++) fill(x[o], rows * n, k.kind[o]);
    sort(NULL, operands == 1 ? (void *[]){x[0], y[0], scratch} : (void *[]){x[0], x[1], y[0], y[1], scratch},
         (int64_t[]){rows, n, 1, 0, operands, keys, a[0], a[1], b[0], b[1]});
    for (int64_t r = 0; r < rows; r++) {
        reference(&k, r, n);
        for (int64_t o = 0; o < operands; o++)
            for (int64_t i = 0; i < n; i++)
                cr_assert_eq(load(y[o], r * n + i, k.kind[o][0]), load(k.x[o], at[i], k.kind[o][0]),
                             "%d bytes, order %lx, [%d,%d], %d operands, at %d", (int)a[0], (long)a[1], (int)rows,
                             (int)n, (int)operands, (int)i);
    }
}
static void check_top_k(jaxcc_rt_function *top_k, int64_t rows, int64_t n, const int64_t *kind, int64_t few,
                        bool largest) {
    Keys k = {.kind = {kind, kind}, .keys = 1, .largest = largest};
    fill(x[0], rows * n, kind);
    top_k(NULL, (void *[]){x[0], y[0], y[1], scratch}, (int64_t[]){rows, n, 1, 0, few, largest, kind[0], kind[1]});
    for (int64_t r = 0; r < rows; r++) {
        reference(&k, r, n);
        for (int64_t i = 0; i < few; i++)
            cr_assert(load(y[1], r * few + i, 4) == (uint64_t)at[i] &&
                          load(y[0], r * few + i, kind[0]) == load(k.x[0], at[i], kind[0]),
                      "%d bytes, order %lx, [%d,%d], %d of them, at %d", (int)kind[0], (long)kind[1], (int)rows, (int)n,
                      (int)few, (int)i);
    }
}

Test(sort, one_operand) {
    for (int s = 0; s < SHAPES; s++)
        for (int k = 0; k < KINDS; k++) {
            check_sort(jaxcc_rt_sort, shapes[s][0], shapes[s][1], kinds[k], kinds[0], 1, 1);
            check_sort(jaxcc_rt_sort_narrow, shapes[s][0], shapes[s][1], kinds[k], kinds[0], 1, 1);
        }
}
Test(sort, two_operands) {
    for (int s = 0; s < SHAPES; s++)
        for (int k = 0; k < KINDS; k++)
            for (int keys = 1; keys <= 2; keys++)
                check_sort(keys == 1 ? jaxcc_rt_sort_narrow : jaxcc_rt_sort, shapes[s][0], shapes[s][1], kinds[k],
                           kinds[(k + s) % KINDS], 2, keys);
}
Test(sort, threads_change_nothing) {
    jaxcc_rt_set_num_threads(3);
    check_sort(jaxcc_rt_sort, 1, 150000, kinds[7], kinds[0], 1, 1);
    check_sort(jaxcc_rt_sort, 1, 150000, kinds[10], kinds[5], 2, 2);
}
Test(sort, the_first_of_the_order) {
    for (int s = 0; s < SHAPES; s++)
        for (int k = 0; k < KINDS; k++)
            for (int64_t few = 0; few <= shapes[s][1]; few = few * 7 + 1) {
                check_top_k(jaxcc_rt_top_k, shapes[s][0], shapes[s][1], kinds[k], few, draw() % 2);
                check_top_k(jaxcc_rt_top_k_narrow, shapes[s][0], shapes[s][1], kinds[k], few, true);
            }
}
/* Lengths and counts around those from which the result is bounded first, by all of a row or by an eighth. */
Test(sort, the_first_of_long_rows) {
    static const int64_t lengths[] = {511, 512, 1023, 1024, 1025, 4096, 8191, 8192, 9000};
    static const int64_t few[] = {1, 3, 4, 16, 17, 32, 33};
    for (size_t s = 0; s < sizeof lengths / sizeof *lengths; s++)
        for (int k = 0; k < KINDS; k++)
            for (size_t f = 0; f < sizeof few / sizeof *few; f++) {
                check_top_k(jaxcc_rt_top_k, 1, lengths[s], kinds[k], few[f], draw() % 2);
                check_top_k(jaxcc_rt_top_k_narrow, 1, lengths[s], kinds[k], few[f], draw() % 2);
            }
}
