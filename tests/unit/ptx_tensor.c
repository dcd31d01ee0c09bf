/* Matrices in registers of a warp against products of matrices; the places of the elements are the formulas of the PTX
   manual. Copies that are waited for, and copies that are not. */
#include "ptx_kernel.h"
#include "runtime/float.h"

enum { WARP = 32, MOST = 64, MAX_WORDS = 40 };

typedef struct {
    const char *shape, *types; /* mNnNkN; D.A.B.C */
    uint32_t m, k, bits;       /* of an element of A and B */
    char type;                 /* h f16, g bf16, t tf32, d f64, s u integers, 3 e4m3, 2 e5m2 */
    uint32_t na, nb, nc;       /* registers of a lane */
    uint32_t dbits;            /* of an element of C and D */
} Shape;
static const Shape shapes[] = {
    {"m16n8k16", "f32.bf16.bf16.f32", 16, 16, 16, 'g', 4, 2, 4, 32},
    {"m16n8k8", "f32.bf16.bf16.f32", 16, 8, 16, 'g', 2, 1, 4, 32},
    {"m16n8k16", "f32.f16.f16.f32", 16, 16, 16, 'h', 4, 2, 4, 32},
    {"m16n8k8", "f32.f16.f16.f32", 16, 8, 16, 'h', 2, 1, 4, 32},
    {"m16n8k16", "f16.f16.f16.f16", 16, 16, 16, 'h', 4, 2, 2, 16},
    {"m16n8k8", "f32.tf32.tf32.f32", 16, 8, 32, 't', 4, 2, 4, 32},
    {"m16n8k4", "f32.tf32.tf32.f32", 16, 4, 32, 't', 2, 1, 4, 32},
    {"m16n8k32", "s32.s8.s8.s32", 16, 32, 8, 's', 4, 2, 4, 32},
    {"m16n8k32", "s32.u8.u8.s32", 16, 32, 8, 'u', 4, 2, 4, 32},
    {"m16n8k16", "s32.s8.s8.s32", 16, 16, 8, 's', 2, 1, 4, 32},
    {"m8n8k16", "s32.s8.s8.s32", 8, 16, 8, 's', 1, 1, 2, 32},
    {"m16n8k64", "s32.s4.s4.s32", 16, 64, 4, 's', 4, 2, 4, 32},
    {"m16n8k64", "s32.u4.u4.s32", 16, 64, 4, 'u', 4, 2, 4, 32},
    {"m16n8k32", "s32.s4.s4.s32", 16, 32, 4, 's', 2, 1, 4, 32},
    {"m16n8k32", "f32.e4m3.e4m3.f32", 16, 32, 8, '3', 4, 2, 4, 32},
    {"m16n8k32", "f32.e5m2.e5m2.f32", 16, 32, 8, '2', 4, 2, 4, 32},
    {"m8n8k4", "f64.f64.f64.f64", 8, 4, 64, 'd', 1, 1, 2, 64},
    {"m16n8k4", "f64.f64.f64.f64", 16, 4, 64, 'd', 2, 1, 4, 64},
    {"m16n8k8", "f64.f64.f64.f64", 16, 8, 64, 'd', 4, 2, 4, 64},
    {"m16n8k16", "f64.f64.f64.f64", 16, 16, 64, 'd', 8, 4, 4, 64},
};
static uint32_t per_register(const Shape *s) { return s->bits == 64 ? 1 : 32 / s->bits; }
/* Element i of a lane: where it is in A. */
static void a_place(const Shape *s, uint32_t l, uint32_t i, uint32_t *row, uint32_t *column) {
    uint32_t n = per_register(s), g = l >> 2, t = l & 3, r = i / n, e = i % n;
    *row = s->m == 8 || r % 2 == 0 ? g : g + 8;
    *column = t * n + e + (s->m == 8 ? 0 : r / 2 * 4 * n);
}
static void b_place(const Shape *s, uint32_t l, uint32_t i, uint32_t *row, uint32_t *column) {
    uint32_t n = per_register(s);
    *row = (l & 3) * n + i % n + i / n * 4 * n, *column = l >> 2;
}
static void c_place(uint32_t l, uint32_t i, uint32_t *row, uint32_t *column) {
    *row = (l >> 2) + (i < 2 ? 0 : 8), *column = (l & 3) * 2 + (i & 1);
}
static const FloatFormat half = {5, 10, 15, FLOAT_IEEE}, e4m3 = {4, 3, 7, FLOAT_FN}, e5m2 = {5, 2, 15, FLOAT_IEEE};
static uint64_t element_bits(char type, uint32_t bits, double x) {
    float f = (float)x;
    uint32_t b;
    uint64_t d;
    memcpy(&b, &f, 4);
    memcpy(&d, &x, 8);
    switch (type) {
    case 'h': return float_encode(&half, x);
    case 'g': return b >> 16;
    case 't': return b | 0x1fff; /* what does not count */
    case '3': return float_encode(&e4m3, x);
    case '2': return float_encode(&e5m2, x);
    case 'd': return d;
    default: return (uint64_t)(int64_t)x & (((uint64_t)1 << bits) - 1);
    }
}
static double small(char type, uint32_t bits, uint32_t k) {
    int v = (int)(k * 2654435761u >> 27); /* 0 to 31 */
    if (type == 'u') return bits == 4 ? v % 16 : v * 8;
    if (type == 's') return bits == 4 ? v % 16 - 8 : v * 8 - 128;
    if (type == '2') return v % 7 - 3;
    return (v - 16) / 2.0;
}
static double result_value(const Shape *s, const uint8_t *at) {
    float f;
    double d;
    int32_t i;
    uint16_t h;
    if (s->dbits == 64) return memcpy(&d, at, 8), d;
    if (s->dbits == 16) return memcpy(&h, at, 2), float_decode(&half, h);
    memcpy(&f, at, 4), memcpy(&i, at, 4);
    return s->types[0] == 's' ? i : f;
}
static void put_result(const Shape *s, uint8_t *at, double x) {
    float f = (float)x;
    int32_t i = (int32_t)x;
    uint16_t h = (uint16_t)float_encode(&half, x);
    if (s->dbits == 64)
        memcpy(at, &x, 8);
    else if (s->dbits == 16)
        memcpy(at, &h, 2);
    else if (s->types[0] == 's')
        memcpy(at, &i, 4);
    else
        memcpy(at, &f, 4);
}
static void add_list(char *text, const char *name, uint32_t from, uint32_t n) {
    char part[32];
    strcat(text, "{");
    for (uint32_t k = 0; k < n; k++) {
        snprintf(part, sizeof part, "%s%s%u", k ? ", " : "", name, from + k);
        strcat(text, part);
    }
    strcat(text, "}");
}
/* Registers A, B, C in this order from memory; D in the place of C. */
static const char *mma_kernel(const Shape *s, const char *option) {
    static char text[KERNEL_TEXT];
    bool wide = s->bits == 64;
    const char *ab = wide ? "$x" : "$r";
    uint32_t n = s->na + s->nb + s->nc;
    strcpy(text, HEAD ".visible .entry k(.param .u64 out) {\n" BEGIN(320));
    for (uint32_t k = 0; k < n; k++)
        sprintf(text + strlen(text), "ld.global.b%d %s%u, [$o+%u];\n", wide ? 64 : 32, ab, k, 8 * k);
    sprintf(text + strlen(text), "mma.sync.aligned.%s.row.col%s.%s ", s->shape, option, s->types);
    add_list(text, ab, s->na + s->nb, s->nc);
    strcat(text, ", ");
    add_list(text, ab, 0, s->na);
    strcat(text, ", ");
    add_list(text, ab, s->na, s->nb);
    strcat(text, ", ");
    add_list(text, ab, s->na + s->nb, s->nc);
    strcat(text, ";\n");
    for (uint32_t k = s->na + s->nb; k < n; k++)
        sprintf(text + strlen(text), "st.global.b%d [$o+%u], %s%u;\n", wide ? 64 : 32, 8 * k, ab, k);
    return strcat(text, "ret; }");
}
static void or_element(uint64_t *word, uint32_t at, uint64_t bits) { *word |= bits << at; }
static void try_shape(const Shape *s) {
    static double a[16][MOST], b[MOST][8], c[16][8];
    static uint64_t words[WARP][MAX_WORDS];
    uint32_t n = per_register(s), row, column, per_c = s->dbits == 16 ? 2 : 1;
    memset(words, 0, sizeof words);
    for (uint32_t l = 0; l < WARP; l++) {
        for (uint32_t i = 0; i < s->na * n; i++) {
            a_place(s, l, i, &row, &column);
            a[row][column] = small(s->type, s->bits, 64 * row + column + 1);
            or_element(&words[l][i / n], i % n * s->bits, element_bits(s->type, s->bits, a[row][column]));
        }
        for (uint32_t i = 0; i < s->nb * n; i++) {
            b_place(s, l, i, &row, &column);
            b[row][column] = small(s->type, s->bits, 4000 + 8 * row + column);
            or_element(&words[l][s->na + i / n], i % n * s->bits, element_bits(s->type, s->bits, b[row][column]));
        }
        for (uint32_t i = 0; i < s->nc * per_c; i++) {
            c_place(l, i, &row, &column);
            c[row][column] = (double)(8 * row + column) - 50;
            put_result(s, (uint8_t *)&words[l][s->na + s->nb + i / per_c] + i % per_c * 2, c[row][column]);
        }
    }
    RUN(mma_kernel(s, ""), WARP, words);
    for (uint32_t l = 0; l < WARP; l++)
        for (uint32_t i = 0; i < s->nc * per_c; i++) {
            c_place(l, i, &row, &column);
            double want = c[row][column],
                   got = result_value(s, (uint8_t *)&words[l][s->na + s->nb + i / per_c] + i % per_c * 2);
            for (uint32_t k = 0; k < s->k; k++) want += a[row][k] * b[k][column];
            if (s->dbits == 16) want = float_decode(&half, float_encode(&half, want));
            cr_assert_eq(got, want, "%s %s: row %u, column %u: %g, not %g", s->shape, s->types, row, column, got, want);
        }
}
Test(ptx_tensor, products) {
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) try_shape(&shapes[k]);
}
/* Integers wrap, or stay at the ends of the range. */
Test(ptx_tensor, integers_saturate) {
    const Shape *s = &shapes[7];
    for (uint32_t saturate = 0; saturate < 2; saturate++) {
        static uint64_t words[WARP][MAX_WORDS];
        for (uint32_t l = 0; l < WARP; l++) {
            for (uint32_t k = 0; k < 6; k++) words[l][k] = 0x01010101;
            for (uint32_t k = 6; k < 10; k++) words[l][k] = INT32_MAX - 1;
        }
        RUN(mma_kernel(s, saturate ? ".satfinite" : ""), WARP, words);
        cr_assert_eq((int32_t)words[3][7], saturate ? INT32_MAX : (int32_t)((uint32_t)INT32_MAX - 1 + 32));
    }
}

/* Matrices to shared memory and back: element (r, c) of matrix m is 1000 m + 8 r + c. */
static void matrices(uint32_t n, bool trans_load, bool trans_store) {
    char text[KERNEL_TEXT], list[64] = "";
    uint16_t data[WARP][16];
    add_list(list, "$r", 1, n);
    snprintf(text, sizeof text,
             "%s.shared .align 16 .b8 s[1024];\nmov.u64 $x1, s; mad.wide.u32 $x2, $t, 16, $x1; ld.global.v4.b32 {$r10, "
             "$r11, $r12, $r13}, [$o]; st.shared.v4.b32 [$x2], {$r10, $r11, $r12, $r13};\n"
             "bar.sync 0; ldmatrix.sync.aligned.m8n8.x%u%s.shared.b16 %s, [$x2]; "
             "stmatrix.sync.aligned.m8n8.x%u%s.shared::cta.b16 [$x2+512], %s; bar.sync 0;\n"
             "ld.shared.v4.b32 {$r10, $r11, $r12, $r13}, [$x2+512]; st.global.v4.b32 [$o+16], {$r10, $r11, $r12, "
             "$r13}; ret; }",
             HEAD ".visible .entry k(.param .u64 out) {\n" BEGIN(32), n, trans_load ? ".trans" : "", list, n,
             trans_store ? ".trans" : "", list);
    for (uint32_t l = 0; l < WARP; l++)
        for (uint32_t c = 0; c < 8; c++) data[l][c] = (uint16_t)(1000 * (l / 8) + 8 * (l % 8) + c);
    ptx_options.races = 3;
    RUN(text, WARP, data);
    ptx_options.races = 0;
    for (uint32_t l = 0; l < 8 * n; l++)
        for (uint32_t c = 0; c < 8; c++)
            cr_assert_eq(data[l][8 + c], 1000 * (l / 8) + (trans_load != trans_store ? 8 * c + l % 8 : 8 * (l % 8) + c),
                         "x%u", n);
}
Test(ptx_tensor, matrices_of_shared_memory) {
    for (uint32_t n = 1; n <= 4; n *= 2)
        for (uint32_t k = 0; k < 4; k++) matrices(n, k & 1, k & 2);
}
/* Which element a lane holds. */
Test(ptx_tensor, a_lane_holds_neighbours) {
    for (uint32_t trans = 0; trans < 2; trans++) {
        uint32_t data[WARP][8];
        for (uint32_t l = 0; l < WARP; l++)
            for (uint32_t k = 0; k < 8; k++) data[l][k] = 2 * k + 16 * l + ((2 * k + 1 + 16 * l) << 16);
        RUN(format(HEAD ".visible .entry k(.param .u64 out) {\n" FORMAT_BEGIN(
                       32) ".shared .align 16 .b8 s[512];\nmov.u64 $x1, s; mad.wide.u32 $x2, $t, 16, $x1; "
                           "ld.global.v4.b32 {$r10, $r11, $r12, $r13}, [$o];\n"
                           "st.shared.v4.b32 [$x2], {$r10, $r11, $r12, $r13}; bar.sync 0; "
                           "ldmatrix.sync.aligned.m8n8.x1%s.shared.b16 {$r1}, [$x2]; st.global.b32 [$o], $r1; ret; }",
                   trans ? ".trans" : ""),
            WARP, data);
        for (uint32_t l = 0; l < WARP; l++) {
            uint32_t row = l / 4, column = l % 4 * 2;
            uint32_t low = trans ? 16 * column + row : 16 * row + column,
                     high = trans ? 16 * (column + 1) + row : low + 1;
            cr_assert_eq(data[l][0], low | high << 16);
        }
    }
}

/* Copies. */
#define COPY                                                                                                           \
    ".shared .align 16 .b8 s[1024]; mov.u64 $x1, s; mad.wide.u32 $x2, $t, 16, $x1; mov.u32 $r9, 7; st.shared.v4.b32 "  \
    "[$x2], {$r9, $r9, $r9, $r9};\n"
#define READ                                                                                                           \
    "ld.shared.v4.b32 {$r1, $r2, $r3, $r4}, [$x2]; st.global.v4.b32 [$o], {$r1, $r2, $r3, $r4}; cp.async.wait_all;"
static const struct {
    const char *body;
    uint32_t want[4]; /* of lane 1, whose words are 4 5 6 7 */
} copies[] = {
    {"cp.async.cg.shared.global [$x2], [$o], 16; cp.async.commit_group; cp.async.wait_group 0;" READ,
     {104, 105, 106, 107}},
    {"cp.async.ca.shared.global [$x2], [$o], 16; cp.async.wait_all;" READ, {104, 105, 106, 107}},
    {"cp.async.ca.shared::cta.global.L2::128B [$x2+4], [$o+8], 8; cp.async.wait_all;" READ, {7, 7, 7, 7}},
    {"cp.async.ca.shared.global [$x2+8], [$o+8], 8; cp.async.wait_all;" READ, {7, 7, 106, 107}},
    {"cp.async.ca.shared.global [$x2+4], [$o], 4; cp.async.wait_all;" READ, {7, 104, 7, 7}},
    {"mov.u32 $r5, 8; cp.async.cg.shared.global [$x2], [$o], 16, $r5; cp.async.wait_all;" READ, {104, 105, 0, 0}},
    {"mov.u64 $x5, 16; cp.async.cg.shared.global [$x2], [$x5], 16, 0; cp.async.wait_all;" READ, {0, 0, 0, 0}},
    /* not waited for, or not for this group */
    {"cp.async.cg.shared.global [$x2], [$o], 16; cp.async.commit_group;" READ, {7, 7, 7, 7}},
    {"cp.async.cg.shared.global [$x2], [$o], 16; cp.async.wait_group 0;" READ, {7, 7, 7, 7}},
    {"cp.async.cg.shared.global [$x2], [$o], 16; cp.async.commit_group; cp.async.wait_group 1;" READ, {7, 7, 7, 7}},
    {"cp.async.cg.shared.global [$x2], [$o], 16; cp.async.commit_group; cp.async.commit_group; cp.async.wait_group "
     "1;" READ,
     {104, 105, 106, 107}},
    {"and.b32 $r5, $t, 1; setp.eq.u32 $p1, $r5, 0; cp.async.cg.shared.global [$x2], [$o], 16; cp.async.commit_group; "
     "@$p1 cp.async.wait_group 0;" READ,
     {7, 7, 7, 7}},
};
Test(ptx_tensor, copies_are_done_when_they_are_waited_for) {
    for (size_t k = 0; k < sizeof copies / sizeof *copies; k++) {
        uint32_t data[WARP][4];
        char text[KERNEL_TEXT];
        for (uint32_t l = 0; l < WARP; l++)
            for (uint32_t j = 0; j < 4; j++) data[l][j] = 100 + 4 * l + j;
        snprintf(text, sizeof text, "%s%s%s", HEAD ".visible .entry k(.param .u64 out) {\n" BEGIN(16) COPY,
                 copies[k].body, "ret; }");
        bool good = run_threads(text, WARP, data, sizeof data, 0);
        if (strstr(copies[k].body, "[$x2+4], [$o+8], 8")) {
            cr_assert(!good && strstr(ptx_fault(), "not a multiple of 8"), "%s", ptx_fault());
            continue;
        }
        cr_assert(good, "%s\n%s", copies[k].body, ptx_fault());
        for (uint32_t j = 0; j < 4; j++)
            cr_expect_eq(data[1][j], copies[k].want[j], "%s: %u, not %u", copies[k].body, data[1][j],
                         copies[k].want[j]);
    }
}
Test(ptx_tensor, copies_must_be_waited_for) {
    uint32_t data[WARP][4] = {{0}};
    cr_assert_not(run_threads(HEAD ".visible .entry k(.param .u64 out) {\n" BEGIN(16) COPY
                              "cp.async.cg.shared.global [$x2], [$o], 16; cp.async.commit_group; ret; }",
                              WARP, data, sizeof data, 0));
    cr_assert(strstr(ptx_fault(), "nobody has waited for a copy"), "%s", ptx_fault());
}
/* What a copy writes races as a store where it is waited for. */
Test(ptx_tensor, copies_race) {
    const char *const tail[] = {"cp.async.wait_all; bar.sync 0;", "cp.async.wait_all;"};
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t data[64][4] = {{0}};
        char text[KERNEL_TEXT];
        snprintf(text, sizeof text,
                 "%s cp.async.cg.shared.global [$x2], [$o], 16; %s xor.b32 $r5, $t, 32; mad.wide.u32 $x3, $r5, 16, "
                 "$x1; ld.shared.b32 $r6, [$x3]; ret; }",
                 HEAD ".visible .entry k(.param .u64 out) {\n" BEGIN(
                     16) ".shared .align 16 .b8 s[1024]; mov.u64 $x1, s; mad.wide.u32 $x2, $t, 16, $x1;\n",
                 tail[k]);
        ptx_options.races = 1;
        bool good = run_threads(text, 64, data, sizeof data, 0);
        ptx_options.races = 0;
        cr_assert_eq(good, k == 0);
        if (!good) cr_assert(strstr(ptx_fault(), "race: shared byte"), "%s", ptx_fault());
    }
}
