/* Barriers in memory, copies of boxes, products of a warpgroup. The places of elements in shared memory are counted
   here from the manual's core matrices: 8 rows of 16 bytes. */
#include "ptx_kernel.h"
#include "runtime/float.h"

enum { THREADS = 128, ROWS = 64, IMAGE = 16384, MOST_COLUMNS = 32, SUMS = MOST_COLUMNS / 2 };

/* ---- products */
typedef struct {
    const char *types; /* D.A.B */
    char type;         /* h f16, g bf16, t tf32, s u integers, 3 e4m3, 2 e5m2 */
    uint32_t bytes;    /* of an element of A and B */
    bool half;         /* D is f16 */
} Types;
static const Types all_types[] = {{"f32.bf16.bf16", 'g', 2, false}, {"f32.f16.f16", 'h', 2, false},
                                  {"f16.f16.f16", 'h', 2, true},    {"f32.tf32.tf32", 't', 4, false},
                                  {"f32.e4m3.e4m3", '3', 1, false}, {"f32.e5m2.e5m2", '2', 1, false},
                                  {"s32.s8.s8", 's', 1, false},     {"s32.u8.u8", 'u', 1, false}};
static const FloatFormat f16 = {5, 10, 15, FLOAT_IEEE}, e4m3 = {4, 3, 7, FLOAT_FN}, e5m2 = {5, 2, 15, FLOAT_IEEE};
static uint32_t bits_of(const Types *t, double x) {
    float f = (float)x;
    uint32_t b;
    memcpy(&b, &f, 4);
    switch (t->type) {
    case 'h': return float_encode(&f16, x);
    case 'g': return b >> 16;
    case 't': return b;
    case '3': return float_encode(&e4m3, x);
    case '2': return float_encode(&e5m2, x);
    default: return (uint32_t)(int32_t)x & 255;
    }
}
static double small(const Types *t, uint32_t k) {
    int v = (int)(k * 2654435761u >> 28); /* 0 to 15 */
    return t->type == 'u' ? v : t->type == '2' ? v % 7 - 3 : v - 8;
}
/* How a matrix lies in shared memory. */
typedef struct {
    uint32_t swizzle;
    bool across; /* neighbours are rows (of A; columns of B), not terms */
} Layout;
/* A core matrix is 128 bytes. Along lines of `line` bytes they follow each other; groups of 8 lines follow groups. */
static uint32_t place(Layout y, uint32_t bytes, uint32_t rows, uint32_t terms, uint32_t r, uint32_t k) {
    uint32_t line = y.swizzle ? y.swizzle : 16, in_line = line / bytes, along = y.across ? r : k,
             other = y.across ? k : r;
    uint32_t lines = y.across ? terms : rows;
    uint32_t at = along / in_line * lines * line + other * line + along % in_line * bytes;
    uint32_t chunk = at / 16 % (line / 16), number = at / 128 % (line / 16);
    return at - chunk * 16 + (chunk ^ number) * 16;
}
/* Distances: of 8 lines, and of all lines. Which is which: the manual's leading and stride dimensions. */
static uint64_t descriptor(Layout y, uint32_t rows, uint32_t terms, uint32_t address) {
    uint32_t line = y.swizzle ? y.swizzle : 16, eight = 8 * line, all = (y.across ? terms : rows) * line;
    uint32_t leading = y.swizzle || !y.across ? all : eight, stride = y.swizzle || !y.across ? eight : all;
    uint64_t mode = y.swizzle == 128 ? 1 : y.swizzle == 64 ? 2 : y.swizzle == 32 ? 3 : 0;
    return address >> 4 | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 | mode << 62;
}
static void put_list(char *text, uint32_t n) {
    strcat(text, "{");
    for (uint32_t k = 0; k < n; k++) sprintf(text + strlen(text), "%s$r%u", k ? ", " : "", k);
    strcat(text, "}");
}
/* The image of shared memory is copied there; then the product; then its registers are stored behind the image. */
static char *product_text(const Types *t, uint32_t columns, uint64_t a, uint64_t b, const char *before,
                          const char *modifiers) {
    static char text[4 * KERNEL_TEXT];
    uint32_t n = columns / 2 / (t->half ? 2 : 1);
    sprintf(text, "%s.extern .shared .align 1024 .b8 s[];\n.visible .entry k(.param .u64 out) {\n%s", HEAD, BEGIN(4));
    strcat(text, "mov.u64 $x1, s; mad.wide.u32 $x1, $t, 4, $x1;\n");
    for (uint32_t k = 0; k < IMAGE; k += 4 * THREADS)
        sprintf(text + strlen(text), "ld.global.b32 $r0, [$o+%u]; st.shared.b32 [$x1+%u], $r0;\n", k, k);
    sprintf(text + strlen(text), "%s\nmov.u64 $x2, %llu; mov.u64 $x3, %llu; setp.eq.u32 $p1, $t, $t;\n", before,
            (unsigned long long)a, (unsigned long long)b);
    for (uint32_t k = 0; k < n; k++) sprintf(text + strlen(text), "mov.b32 $r%u, 0;\n", k);
    sprintf(text + strlen(text), "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n%uk%u.%s ", columns,
            32 / t->bytes, t->types);
    put_list(text, n);
    sprintf(text + strlen(text),
            ", $x2, $x3, $p1%s;\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n", modifiers);
    for (uint32_t k = 0; k < n; k++)
        sprintf(text + strlen(text), "st.global.b32 [$o+%u], $r%u;\n", IMAGE + 4 * THREADS * k, k);
    return strcat(text, "ret; }");
}
#define VISIBLE "fence.proxy.async.shared::cta; bar.sync 0;"
static double sum_of(const Types *t, const uint8_t *words, uint32_t row, uint32_t column) {
    uint32_t lane = row % 8 * 4 + column % 8 / 2, e = column / 8 * 4 + row / 8 % 2 * 2 + column % 2, warp = row / 16;
    uint32_t thread = 32 * warp + lane, word;
    memcpy(&word, words + 4 * THREADS * (t->half ? e / 2 : e) + 4 * thread, 4);
    float f;
    memcpy(&f, &word, 4);
    return t->half ? float_decode(&f16, word >> 16 * (e % 2) & 0xffff) : t->types[0] == 's' ? (int32_t)word : f;
}
static void put_element(const Types *t, uint8_t *image, uint32_t at, double x) {
    uint32_t bits = bits_of(t, x);
    memcpy(image + at, &bits, t->bytes);
}
static void try_product(const Types *t, Layout ya, Layout yb, uint32_t columns, bool minus) {
    static uint8_t data[IMAGE + 4 * THREADS * SUMS];
    uint32_t terms = 32 / t->bytes, second = IMAGE / 2;
    memset(data, 0, sizeof data);
    for (uint32_t k = 0; k < terms; k++) {
        for (uint32_t r = 0; r < ROWS; r++)
            put_element(t, data, place(ya, t->bytes, ROWS, terms, r, k), small(t, 40 * r + k));
        for (uint32_t c = 0; c < columns; c++)
            put_element(t, data + second, place(yb, t->bytes, columns, terms, c, k), small(t, 9000 + 40 * c + k));
    }
    char modifiers[32] = "";
    if (t->types[0] != 's') sprintf(modifiers, ", 1, %s", minus ? "-1" : "1");
    if (t->bytes == 2) sprintf(modifiers + strlen(modifiers), ", %d, %d", ya.across, yb.across);
    const char *text = product_text(t, columns, descriptor(ya, ROWS, terms, 0), descriptor(yb, columns, terms, second),
                                    VISIBLE, modifiers);
    ptx_options.races = 3, ptx_options.uninitialised = true;
    bool good = run_threads(text, THREADS, data, sizeof data, IMAGE);
    ptx_options.races = 0, ptx_options.uninitialised = false;
    cr_assert(good, "%s", ptx_fault());
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < columns; c++) {
            double want = 0, got = sum_of(t, data + IMAGE, r, c);
            for (uint32_t k = 0; k < terms; k++) want += small(t, 40 * r + k) * small(t, 9000 + 40 * c + k);
            cr_assert_eq(got, minus ? -want : want, "%s, swizzles %u %u, across %d %d: row %u, column %u: %g, not %g",
                         t->types, ya.swizzle, yb.swizzle, ya.across, yb.across, r, c, got, want);
        }
}
Test(ptx_bulk, products_of_a_warpgroup) {
    static const uint32_t swizzles[] = {0, 32, 64, 128};
    for (size_t k = 0; k < sizeof all_types / sizeof *all_types; k++)
        for (uint32_t j = 0; j < 4; j++) {
            const Types *t = &all_types[k];
            try_product(t, (Layout){swizzles[j], false}, (Layout){swizzles[3 - j], false}, 24, false);
            if (t->bytes != 2) continue;
            try_product(t, (Layout){swizzles[j], true}, (Layout){swizzles[j], false}, 8, false);
            try_product(t, (Layout){swizzles[j], false}, (Layout){0, true}, 32, true);
            if (swizzles[j] <= 64) try_product(t, (Layout){0, false}, (Layout){swizzles[j], true}, 32, false);
        }
}
/* A in registers, as mma.sync has it: products of the identity. */
Test(ptx_bulk, rows_in_registers) {
    static uint8_t data[IMAGE + 4 * THREADS * SUMS];
    const Types *t = &all_types[0];
    Layout y = {0, false};
    memset(data, 0, sizeof data);
    for (uint32_t c = 0; c < 16; c++)
        for (uint32_t k = 0; k < 16; k++) put_element(t, data, place(y, 2, 16, 16, c, k), small(t, 16 * c + k));
    char text[4 * KERNEL_TEXT], *at;
    strcpy(text, product_text(t, 16, 0, descriptor(y, 16, 16, 0), VISIBLE, ", 1, 1, 0"));
    at = strstr(text, ", $x2, $x3");
    char rest[KERNEL_TEXT];
    strcpy(rest, at + strlen(", $x2"));
    sprintf(at, ", {$r30, $r31, $r32, $r33}%s", rest);
    /* lane l has the rows l / 4 and l / 4 + 8, the terms 2 (l % 4) and the next, and those 8 further */
    at = strstr(text, "wgmma.fence");
    strcpy(rest, at);
    strcpy(
        at,
        "mov.u32 $r34, %laneid; and.b32 $r35, $r34, 3; shr.u32 $r34, $r34, 2; shr.u32 $r36, $r34, 1; and.b32 $r34, "
        "$r34, 1;\n"
        "setp.eq.u32 $p2, $r36, $r35; mov.b32 $r37, 0x3f80; setp.eq.u32 $p3, $r34, 1; @$p3 mov.b32 $r37, 0x3f800000;\n"
        "mov.b32 $r30, 0; mov.b32 $r31, 0; mov.b32 $r32, 0; mov.b32 $r33, 0; @$p2 mov.b32 $r30, $r37; @$p2 mov.b32 "
        "$r33, $r37;\n");
    strcat(text, rest);
    cr_assert(run_threads(text, THREADS, data, sizeof data, IMAGE), "%s", ptx_fault());
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < 16; c++) cr_assert_eq(sum_of(t, data + IMAGE, r, c), small(t, 16 * c + r % 16));
}
/* What hardware would do wrong silently. */
static const struct {
    const char *was, *instead, *says;
} mistakes[] = {
    {"fence.proxy.async.shared::cta; ", "", "no fence.proxy.async is between"},
    {"bar.sync 0;", "", "was never written"},
    {"wgmma.fence.sync.aligned;", "", "no wgmma.fence"},
    {"wgmma.wait_group.sync.aligned 0;", "", "is used by the product"},
    {"wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;", "is used by the product"},
    {"wgmma.commit_group.sync.aligned;", "", "is used by the product"},
};
Test(ptx_bulk, mistakes_with_products) {
    for (size_t k = 0; k < sizeof mistakes / sizeof *mistakes; k++) {
        static uint8_t data[IMAGE + 4 * THREADS * SUMS];
        char text[4 * KERNEL_TEXT], rest[4 * KERNEL_TEXT];
        Layout y = {128, false};
        memset(data, 0, sizeof data);
        strcpy(text, product_text(&all_types[0], 8, descriptor(y, ROWS, 16, 0), descriptor(y, 8, 16, IMAGE / 2),
                                  VISIBLE, ", 1, 1, 0, 0"));
        char *at = strstr(text, mistakes[k].was);
        strcpy(rest, at + strlen(mistakes[k].was));
        sprintf(at, "%s%s", mistakes[k].instead, rest);
        ptx_options.races = 1;
        bool good = run_threads(text, THREADS, data, sizeof data, IMAGE);
        ptx_options.races = 0;
        cr_assert(!good && strstr(ptx_fault(), mistakes[k].says), "%s: %s", mistakes[k].was,
                  good ? "nothing is found" : ptx_fault());
    }
}

/* ---- barriers in memory: 64 threads, of which the second 32 store what the first read */
#define BARRIER                                                                                                        \
    ".shared .align 8 .b64 b; .shared .align 16 .b8 s[256]; mov.u64 $x1, b; mov.u64 $x2, s; setp.eq.u32 $p1, $t, 0; "  \
    "mov.b32 $r1, 32;\n"                                                                                               \
    "@$p1 mbarrier.init.shared.b64 [$x1], $r1; bar.sync 0; and.b32 $r2, $t, 31; mad.wide.u32 $x3, $r2, 4, $x2;\n"      \
    "setp.ge.u32 $p2, $t, 32; @$p2 bra STORE;\n"
#define AFTER "mov.b32 $r3, 0;\nAGAIN: mbarrier.try_wait.parity.shared.b64 $p3, [$x1], 0; @!$p3 bra AGAIN;\n"
#define LOAD "ld.shared.b32 $r3, [$x3]; st.global.b32 [$o], $r3; ret;\n"
static const struct {
    const char *body, *says; /* says: the fault, or NULL */
} barriers[] = {
    {BARRIER AFTER LOAD "STORE: st.shared.b32 [$x3], $t; mbarrier.arrive.shared.b64 $x4, [$x1];", NULL},
    {BARRIER AFTER LOAD "STORE: st.shared.b32 [$x3], $t; mbarrier.arrive.shared.b64 _, [$x1], 1;", NULL},
    {BARRIER LOAD "STORE: st.shared.b32 [$x3], $t; mbarrier.arrive.shared.b64 $x4, [$x1];", "race: shared byte"},
    {BARRIER AFTER LOAD "STORE: mbarrier.arrive.shared.b64 $x4, [$x1]; st.shared.b32 [$x3], $t;", "race: shared byte"},
    {BARRIER AFTER LOAD "STORE: st.shared.b32 [$x3], $t; mbarrier.arrive.shared.b64 $x4, [$x1]; "
                        "mbarrier.arrive.shared.b64 $x4, [$x1], 33;",
     "arrivals at an mbarrier"},
    {BARRIER AFTER LOAD "STORE: st.shared.b32 [$x3], $t; setp.ne.u32 $p4, $t, 32; @$p4 bra DONE; "
                        "mbarrier.inval.shared.b64 [$x1]; mbarrier.arrive.shared.b64 $x4, [$x1]; DONE:",
     "there is no mbarrier"},
    /* nobody goes on: the arrivals are too few, the phase is another one, who should arrive waits at a barrier */
    {BARRIER AFTER LOAD "STORE: st.shared.b32 [$x3], $t; setp.ne.u32 $p4, $t, 32; @$p4 mbarrier.arrive.shared.b64 $x4, "
                        "[$x1];",
     "waits for 1 arrivals and 0 bytes"},
    {BARRIER AFTER LOAD "STORE: st.shared.b32 [$x3], $t; mbarrier.arrive.shared.b64 $x4, [$x1]; MORE: "
                        "mbarrier.test_wait.parity.shared.b64 $p4, [$x1], 1; nanosleep.u32 20; @!$p4 bra MORE;\n"
                        "REST: mbarrier.test_wait.shared.b64 $p4, [$x1], $x4; @!$p4 bra REST; "
                        "LAST: mbarrier.try_wait.parity.shared.b64 $p4, [$x1], 1; @!$p4 bra LAST;",
     "deadlock"},
    {BARRIER AFTER LOAD "STORE: bar.sync 1, 64; st.shared.b32 [$x3], $t; mbarrier.arrive.shared.b64 $x4, [$x1];",
     "deadlock"},
    /* lanes of one warp wait for others of it, which are behind them in the program */
    {BARRIER AFTER LOAD "STORE: st.shared.b32 [$x3], $t; setp.lt.u32 $p4, $t, 40; @$p4 bra OTHERS; "
                        "mbarrier.arrive.shared.b64 $x4, [$x1]; MORE: mbarrier.try_wait.parity.shared.b64 $p4, [$x1], "
                        "0; @!$p4 bra MORE; bra DONE; OTHERS: mbarrier.arrive.shared.b64 $x4, [$x1]; DONE:",
     NULL},
};
Test(ptx_bulk, barriers_in_memory) {
    for (size_t k = 0; k < sizeof barriers / sizeof *barriers; k++) {
        uint32_t data[64] = {0};
        char text[KERNEL_TEXT];
        snprintf(text, sizeof text, "%s%s%s", HEAD ".visible .entry k(.param .u64 out) {\n" BEGIN(4), barriers[k].body,
                 "ret; }");
        ptx_options.races = 3, ptx_options.uninitialised = true;
        bool good = run_threads(text, 64, data, sizeof data, 0);
        ptx_options.order = 1; /* the readers come first */
        good = good && run_threads(text, 64, data, sizeof data, 0);
        ptx_options.races = ptx_options.order = 0, ptx_options.uninitialised = false;
        cr_assert_eq(good, !barriers[k].says, "%zu: %s", k, good ? "nothing is found" : ptx_fault());
        if (good)
            for (uint32_t l = 0; l < 32; l++) cr_assert_eq(data[l], 32 + l);
        else
            cr_assert(strstr(ptx_fault(), barriers[k].says), "%zu: %s", k, ptx_fault());
    }
}

/* ---- boxes: 8 lines of 16 elements of 16 bits of an array with 20 × 12, whose rows are 48 bytes */
enum { WIDTH = 20, HEIGHT = 12, PITCH = 48, BOX_X = 16, BOX_Y = 8, BOX = 2 * BOX_X * BOX_Y };
#define BOX_KERNEL                                                                                                     \
    ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 x, .param .u32 y) {\n" REGISTERS    \
    ".shared .align 8 .b64 b; .shared .align 256 .b8 s[256]; mov.u32 $t, %tid.x; ld.param.u64 $o, [out]; "             \
    "mad.wide.u32 $o, $t, 8, $o;\n"                                                                                    \
    "mov.b64 $x1, map; cvta.param.u64 $x2, $x1; ld.param.b32 $r1, [x]; ld.param.b32 $r2, [y]; mov.u64 $x3, s; "        \
    "mad.wide.u32 $x4, $t, 8, $x3;\n"                                                                                  \
    "setp.eq.u32 $p1, $t, 0; mov.b32 $r3, 1; mov.b32 $r4, 256; @!$p1 bra WAIT;\n"                                      \
    "mbarrier.init.shared.b64 [b], $r3; fence.mbarrier_init.release.cluster; mbarrier.arrive.expect_tx.shared.b64 "    \
    "$x5, [b], $r4;\n"                                                                                                 \
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$x3], [$x2, {$r1, $r2}], "      \
    "[b];\n"                                                                                                           \
    "WAIT: bar.sync 0;\n"
#define BOX_WAIT "AGAIN: mbarrier.try_wait.parity.shared.b64 $p2, [b], 0; @!$p2 bra AGAIN;\n"
#define BOX_OUT "ld.shared.b64 $x6, [$x4]; st.global.b64 [$o], $x6; ret; }"
static PtxTensorMap box_map(uint64_t address, uint16_t swizzle) {
    return (PtxTensorMap){address, {WIDTH, HEIGHT}, {2, PITCH}, PTX_MAP_VALID, {BOX_X, BOX_Y}, swizzle, 2, 2};
}
static bool run_box(const char *text, PtxTensorMap map, int32_t x, int32_t y, uint16_t got[BOX / 2]) {
    uint8_t bytes[PTX_MAP_BYTES] = {0};
    uint64_t out = ptx_alloc(BOX);
    PtxModule *m = loaded(text);
    const void *params[] = {bytes, &out, &x, &y};
    memcpy(bytes, &map, sizeof map);
    bool good = ptx_launch(ptx_function(m, "k"), (PtxDim3){1, 1, 1}, (PtxDim3){32, 1, 1}, 0, params);
    memcpy(got, ptx_host(out, BOX), BOX);
    ptx_free(out);
    ptx_unload(m);
    return good;
}
static uint64_t box_array(void) {
    uint64_t at = ptx_alloc(PITCH * HEIGHT);
    uint16_t *host = ptx_host(at, PITCH * HEIGHT);
    for (uint32_t y = 0; y < HEIGHT; y++)
        for (uint32_t x = 0; x < WIDTH; x++) host[y * PITCH / 2 + x] = (uint16_t)(100 * y + x + 1);
    ptx_mark_written(at, PITCH * HEIGHT);
    return at;
}
Test(ptx_bulk, boxes) {
    uint64_t array = box_array();
    uint16_t got[BOX / 2];
    ptx_options.races = 3;
    for (int32_t k = 0; k < 16; k++) {
        int32_t x0 = k % 4 * 7 - 6, y0 = k / 4 * 5 - 6;
        uint16_t swizzle = k % 2 ? 32 : 0;
        cr_assert(run_box(HEAD BOX_KERNEL BOX_WAIT BOX_OUT, box_map(array, swizzle), x0, y0, got), "%s", ptx_fault());
        for (int32_t y = 0; y < BOX_Y; y++)
            for (int32_t x = 0; x < BOX_X; x++) {
                bool inside = x0 + x >= 0 && x0 + x < WIDTH && y0 + y >= 0 && y0 + y < HEIGHT;
                int32_t at = y * BOX_X + (swizzle && y / 4 % 2 ? x ^ 8 : x);
                cr_assert_eq(got[at], inside ? 100 * (y0 + y) + x0 + x + 1 : 0, "box %d, %d: %d, %d", x0, y0, x, y);
            }
    }
    ptx_options.races = 0;
    ptx_free(array);
}
/* A box that is not waited for is not there, and whoever reads its place races. */
Test(ptx_bulk, boxes_must_be_waited_for) {
    uint64_t array = box_array();
    uint16_t got[BOX / 2];
    cr_assert_not(run_box(HEAD BOX_KERNEL BOX_OUT, box_map(array, 0), 0, 0, got));
    cr_assert(strstr(ptx_fault(), "nobody has waited for a copy"), "%s", ptx_fault());
    PtxTensorMap none = box_map(array, 0);
    none.valid = 0;
    cr_assert_not(run_box(HEAD BOX_KERNEL BOX_WAIT BOX_OUT, none, 0, 0, got));
    cr_assert(strstr(ptx_fault(), "there is no tensor map"), "%s", ptx_fault());
    ptx_free(array);
}
/* A box begins at a multiple of 128 bytes, in shared memory. */
Test(ptx_bulk, places_of_boxes) {
    static const struct {
        const char *offset, *says;
    } places[] = {{"+0", NULL}, {"+64", "a box at 0x"}, {"+16", "a box at 0x"}, {"+128", "of shared memory"}};
    uint64_t array = box_array();
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        char text[KERNEL_TEXT], *at;
        uint16_t got[BOX / 2];
        strcpy(text, HEAD BOX_KERNEL);
        at = strstr(text, "[$x3], [$x2") + strlen("[$x3");
        sprintf(at, "%s%s%s", places[k].offset, strstr(HEAD BOX_KERNEL, "], [$x2"), BOX_WAIT BOX_OUT);
        bool good = run_box(text, box_map(array, 0), 0, 0, got);
        cr_assert_eq(good, !places[k].says, "%s: %s", places[k].offset, ptx_fault());
        if (!good) cr_assert(strstr(ptx_fault(), places[k].says), "%s", ptx_fault());
    }
    ptx_free(array);
}
