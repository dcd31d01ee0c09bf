/* What a program does beside arithmetic: memory, control, calls, the lanes of a warp, barriers, atomic operations. */
#include "ptx_kernel.h"

enum { WARP = 32 };

static uint64_t cut(uint64_t v, uint32_t bytes) { return bytes == 8 ? v : v & (((uint64_t)1 << 8 * bytes) - 1); }
static uint64_t extended(uint64_t v, uint32_t from, uint32_t to) {
    return cut((uint64_t)((int64_t)(v << (64 - 8 * from)) >> (64 - 8 * from)), to);
}
static const struct {
    const char *type;
    uint32_t bytes;
    bool sign;
} types[] = {{"b8", 1, false},  {"u8", 1, false},  {"s8", 1, true},   {"b16", 2, false},
             {"u16", 2, false}, {"s16", 2, true},  {"b32", 4, false}, {"u32", 4, false},
             {"s32", 4, true},  {"f32", 4, false}, {"b64", 8, false}, {"f64", 8, false}};
static const struct {
    const char *name;
    uint32_t bytes;
} registers[] = {{"$h", 2}, {"$r", 4}, {"$x", 8}};
static const char *const spaces[] = {"", ".global", ".shared", ".local"};

/* Elements go from global memory through a space, both ways, into registers of every width. */
static void move_elements(size_t t, size_t r, uint32_t n, const char *space) {
    const char *reg = registers[r].name, *type = types[t].type, *v = n == 1 ? "" : n == 2 ? ".v2" : ".v4";
    char list[64], place[64];
    snprintf(list, sizeof list, n == 1 ? "%s1" : n == 2 ? "{%s1, %s2}" : "{%s1, %s2, %s3, %s4}", reg, reg, reg, reg);
    bool global = !*space || !strcmp(space, ".global");
    snprintf(place, sizeof place, "%s", global ? "$o+32" : "$x9");
    uint64_t data[WARP][8];
    for (uint32_t l = 0; l < WARP; l++)
        for (uint32_t k = 0; k < 8; k++) data[l][k] = 0x80f1a2b3c4d5e687 * (l + 1) + k;
    uint64_t was[WARP][8];
    memcpy(was, data, sizeof was);
    const char *text =
        format(HEAD ".shared .align 16 .b8 s[1024];\n.visible .entry k(.param .u64 out) {\n" FORMAT_BEGIN(
                   64) ".local .align 16 .b8 m[64];\n"
                       "mov.u64 $x9, %s; %s\n"
                       "ld.global%s.%s %s, [$o]; st%s%s.%s [%s], %s; ld%s%s.%s %s, [%s];\n",
               !strcmp(space, ".local") ? "m" : "s", !strcmp(space, ".shared") ? "mad.wide.u32 $x9, $t, 32, $x9;" : "",
               v, type, list, space, v, type, place, list, space, v, type, list, place);
    char whole[KERNEL_TEXT];
    int at = snprintf(whole, sizeof whole, "%s", text);
    for (uint32_t k = 0; k < n && n <= 2; k++)
        at += snprintf(whole + at, sizeof whole - (size_t)at, "st.global.b%u [$o+%u], %s%u;\n", 8 * registers[r].bytes,
                       16 + 8 * k, reg, k + 1);
    snprintf(whole + at, sizeof whole - (size_t)at, "ret; }\n");
    RUN(whole, WARP, data);
    for (uint32_t l = 0; l < WARP; l++)
        for (uint32_t k = 0; k < n; k++) {
            uint64_t want = 0, got = 0, through = 0;
            memcpy(&want, (uint8_t *)was[l] + k * types[t].bytes, types[t].bytes);
            memcpy(&through, (uint8_t *)(data[l] + 4) + k * types[t].bytes, types[t].bytes);
            if (global) cr_assert_eq(through, want, "st%s%s.%s", space, v, type);
            if (n > 2) continue;
            memcpy(&got, data[l] + 2 + k, registers[r].bytes);
            if (types[t].sign) want = extended(want, types[t].bytes, registers[r].bytes);
            cr_assert_eq(got, want, "ld%s%s.%s %s: %llx, not %llx", space, v, type, reg, (unsigned long long)got,
                         (unsigned long long)want);
        }
}
Test(ptx_run, loads_and_stores) {
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t r = 0; r < 3; r++)
            for (uint32_t n = 1; n <= 4; n *= 2)
                for (size_t s = 0; s < 4; s++)
                    if (registers[r].bytes >= types[t].bytes && n * types[t].bytes <= 16)
                        move_elements(t, r, n, spaces[s]);
}
Test(ptx_run, parameters_and_variables) {
    const char *text = HEAD
        ".const .align 4 .b32 c[3] = {10, 20, 30};\n.global .align 8 .u64 g = 7;\n.global .align 8 .u64 to[2] = {g, "
        "generic(g)+8};\n"
        ".visible .entry k(.param .u64 out, .param .u8 a, .param .align 16 .b8 b[24], .param .f32 c4) {\n" REGISTERS
        "ld.param.u64 $x1, [out]; ld.param.u8 $h1, [a]; ld.param.v2.u64 {$x2, $x3}, [b]; ld.param.b32 $r1, [c4];\n"
        "cvt.u64.u16 $x4, $h1; st.global.b64 [$x1], $x4; st.global.v2.b64 [$x1+16], {$x2, $x3}; st.global.b32 "
        "[$x1+32], $r1;\n"
        "mov.u64 $x5, b; cvta.param.u64 $x5, $x5; ld.u64 $x6, [$x5+16]; st.global.b64 [$x1+40], $x6;\n"
        "ld.const.b32 $r2, [c+8]; st.global.b32 [$x1+48], $r2; ld.global.u64 $x7, [to]; ld.u64 $x8, [$x7]; "
        "st.global.u64 [$x1+56], $x8;\n"
        "ld.global.u64 $x9, [to+8]; sub.u64 $x9, $x9, $x7; st.global.u64 [$x1+64], $x9; ret; }";
    PtxModule *m = loaded(text);
    PtxFunc *f = ptx_function(m, "k");
    uint64_t at = ptx_alloc(80), b[3] = {1, 2, 3};
    uint8_t a = 200;
    float c = 1.5f;
    const void *params[] = {&at, &a, b, &c};
    cr_assert_eq(ptx_param_count(f), 4);
    cr_assert_eq(ptx_param_size(f, 1), 1);
    cr_assert_eq(ptx_param_size(f, 2), 24);
    cr_assert(ptx_launch(f, (PtxDim3){1, 1, 1}, (PtxDim3){1, 1, 1}, 0, params), "%s", ptx_fault());
    const uint64_t *r = ptx_host(at, 80);
    const uint64_t want[] = {200, 0, 1, 2, 0x3fc00000, 3, 30, 7, 8};
    for (uint32_t k = 0; k < 9; k++)
        if (k != 1) cr_assert_eq(k == 4 || k == 6 ? (uint32_t)r[k] : r[k], want[k], "%u", k);
    size_t bytes = 0;
    uint64_t g = ptx_global(m, "c", &bytes);
    cr_assert_eq(bytes, 12);
    cr_assert_eq(((uint32_t *)ptx_host(g, 12))[1], 20);
    cr_assert_eq(ptx_global(m, "none", NULL), 0);
    cr_assert_eq(ptx_function(m, "none"), NULL);
    ptx_free(at);
    ptx_unload(m);
}

/* Lanes leave a loop after as many turns as 3n + 1 takes from their number: all kinds of divergence. */
Test(ptx_run, diverging_lanes_meet_again) {
    const char *text = KERNEL(8, "add.u32 $r1, $t, 1; mov.u32 $r2, 0; mov.u32 $r7, 0;\n"
                                 "LOOP: setp.eq.u32 $p1, $r1, 1; @$p1 bra DONE;\n"
                                 "and.b32 $r3, $r1, 1; setp.eq.u32 $p2, $r3, 0; @$p2 bra EVEN;\n"
                                 "mad.lo.u32 $r1, $r1, 3, 1; bra NEXT;\nEVEN: shr.u32 $r1, $r1, 1;\n"
                                 "NEXT: add.u32 $r2, $r2, 1; bra LOOP;\n"
                                 "DONE: vote.sync.ballot.b32 $r4, $p1, -1; st.global.v2.b32 [$o], {$r2, $r4};\n");
    uint32_t out[WARP][2];
    RUN(text, WARP, out);
    for (uint32_t l = 0; l < WARP; l++) {
        uint32_t turns = 0;
        for (uint32_t n = l + 1; n != 1; turns++) n = n % 2 ? 3 * n + 1 : n / 2;
        cr_assert_eq(out[l][0], turns);
        cr_assert_eq(out[l][1], UINT32_MAX);
    }
}
/* A shuffle behind a branch that is placed out of line: lanes wait for those that come later. */
Test(ptx_run, lanes_wait_at_sync) {
    const char *text = KERNEL(4, "mov.u32 $r1, $t; setp.eq.u32 $p1, $t, 0; @$p1 bra FIRST;\n"
                                 "BACK: shfl.sync.idx.b32 $r2, $r1, 0, 31, -1; st.global.b32 [$o], $r2; ret;\n"
                                 "FIRST: mov.u32 $r1, 77; bra BACK;\n");
    uint32_t out[WARP];
    RUN(text, WARP, out);
    for (uint32_t l = 0; l < WARP; l++) cr_assert_eq(out[l], 77);
}
/* A lane waits in a loop for another one of its warp: all get their turns. */
Test(ptx_run, spinning_lanes_do_not_starve_others) {
    const char *text = HEAD ".shared .align 4 .u32 flag;\n.visible .entry k(.param .u64 out) {\n" BEGIN(
        4) "mov.u32 $r1, 0; st.shared.u32 [flag], $r1; bar.warp.sync -1; setp.eq.u32 $p1, $t, 5; @$p1 bra SET;\n"
           "SPIN: ld.volatile.shared.u32 $r2, [flag]; setp.eq.u32 $p2, $r2, 0; @$p2 bra SPIN; bra OUT;\n"
           "SET: mov.u32 $r2, 9; st.volatile.shared.u32 [flag], $r2;\nOUT: st.global.u32 [$o], $r2; ret; }";
    uint32_t out[WARP];
    RUN(text, WARP, out);
    for (uint32_t l = 0; l < WARP; l++) cr_assert_eq(out[l], 9);
}
Test(ptx_run, switches) {
    const char *text = KERNEL(4, "rem.u32 $r1, $t, 3;\nT: .branchtargets A, B, C;\nbrx.idx $r1, T;\nA: mov.u32 $r2, "
                                 "10; bra E;\nB: mov.u32 $r2, 20; bra E;\n"
                                 "C: mov.u32 $r2, 30;\nE: st.global.b32 [$o], $r2;\n");
    uint32_t out[WARP];
    RUN(text, WARP, out);
    for (uint32_t l = 0; l < WARP; l++) cr_assert_eq(out[l], 10 * (l % 3 + 1));
}
/* f(n) = n < 2 ? n : f(n - 1) + f(n - 2), with an array of its own that the caller's call must not disturb. */
Test(ptx_run, functions_call_themselves) {
    const char *text =
        HEAD ".func (.param .b32 r) f(.param .b32 n);\n.func (.param .b32 r) f(.param .b32 n) {\n" REGISTERS
             ".local .align 4 .b8 m[8]; ld.param.b32 $r1, [n]; mov.u64 $x1, m; st.local.b32 [$x1], $r1; cvta.local.u64 "
             "$x2, $x1;\n"
             "setp.lt.u32 $p1, $r1, 2; @$p1 bra SMALL;\n"
             "sub.u32 $r2, $r1, 1;\n{ .param .b32 a; st.param.b32 [a], $r2; .param .b32 q; call.uni (q), f, (a); "
             "ld.param.b32 $r3, [q]; }\n"
             "ld.u32 $r4, [$x2]; sub.u32 $r4, $r4, 2;\n{ .param .b32 a; st.param.b32 [a], $r4; .param .b32 q; call.uni "
             "(q), f, (a); ld.param.b32 $r5, [q]; }\n"
             "add.u32 $r1, $r3, $r5;\nSMALL: st.param.b32 [r], $r1; ret; }\n"
             ".visible .entry k(.param .u64 out) {\n" BEGIN(
                 4) "rem.u32 $r1, $t, 9;\n"
                    "{ .param .b32 a; st.param.b32 [a], $r1; .param .b32 q; call.uni (q), f, (a); ld.param.b32 $r2, "
                    "[q]; } st.global.b32 [$o], $r2; ret; }";
    const uint32_t fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13, 21};
    uint32_t out[WARP];
    RUN(text, WARP, out);
    for (uint32_t l = 0; l < WARP; l++) cr_assert_eq(out[l], fibonacci[l % 9]);
}
Test(ptx_run, exit_in_a_function_ends_the_thread) {
    const char *text =
        HEAD ".func f(.param .b32 n) { " REGISTERS "ld.param.b32 $r1, [n]; setp.gt.u32 $p1, $r1, 3; @$p1 exit; ret; }\n"
             ".visible .entry k(.param .u64 out) {\n" BEGIN(4) "{ .param .b32 a; st.param.b32 [a], $t; call.uni f, "
                                                               "(a); } mov.u32 $r2, 1; st.global.b32 [$o], $r2; ret; }";
    uint32_t out[WARP] = {0};
    RUN(text, WARP, out);
    for (uint32_t l = 0; l < WARP; l++) cr_assert_eq(out[l], l <= 3);
}

/* shfl in segments: against the definition. */
Test(ptx_run, shuffles) {
    const char *const kinds[] = {"up", "down", "bfly", "idx"};
    const uint32_t by[] = {0, 1, 3, 16, 31}, clamps[] = {0, 31, 0x1800, 0x181f, 0x1c03};
    for (uint32_t k = 0; k < 4; k++)
        for (uint32_t b = 0; b < 5; b++)
            for (uint32_t c = 0; c < 5; c++) {
                uint32_t out[WARP][2];
                RUN(format(HEAD ".visible .entry k(.param .u64 out) {\n" FORMAT_BEGIN(
                               8) "add.u32 $r1, $t, 100; shfl.sync.%s.b32 $r2|$p1, $r1, %u, %u, -1; selp.u32 "
                                  "$r3, 1, 0, $p1;\n"
                                  "st.global.v2.b32 [$o], {$r2, $r3}; ret; }",
                           kinds[k], by[b], clamps[c]),
                    WARP, out);
                for (uint32_t l = 0; l < WARP; l++) {
                    int segment = clamps[c] >> 8 & 31, clamp = clamps[c] & 31, lane = (int)l, low = lane & segment,
                        high = low | (clamp & ~segment), j;
                    j = k == 0   ? lane - (int)by[b]
                        : k == 1 ? lane + (int)by[b]
                        : k == 2 ? lane ^ (int)by[b]
                                 : low | ((int)by[b] & ~segment);
                    bool in = k == 0 ? j >= high : j <= high;
                    cr_assert_eq(out[l][1], in, "%s %u %x lane %u", kinds[k], by[b], clamps[c], l);
                    cr_assert_eq(out[l][0], 100 + (in ? (uint32_t)j : l));
                }
            }
}
Test(ptx_run, votes_matches_and_sums_of_lanes) {
    static const struct {
        const char *body; /* $r1: lane * 7 % 5, $p1: lane < 7; the result in $r2 */
        uint32_t want[2]; /* of lanes 0 and 9 */
    } rows[] = {
        {"vote.sync.ballot.b32 $r2, $p1, -1;", {0x7f, 0x7f}},
        {"vote.sync.any.pred $p2, $p1, -1; selp.u32 $r2, 1, 0, $p2;", {1, 1}},
        {"vote.sync.all.pred $p2, $p1, -1; selp.u32 $r2, 1, 0, $p2;", {0, 0}},
        {"vote.sync.uni.pred $p2, $p1, -1; selp.u32 $r2, 1, 0, $p2;", {0, 0}},
        {"match.any.sync.b32 $r2, $r1, -1;", {0x42108421, 0x21084210}},
        {"cvt.u64.u32 $x1, $r1; match.any.sync.b64 $r2, $x1, -1;", {0x42108421, 0x21084210}},
        {"match.all.sync.b32 $r2|$p2, $r1, -1;", {0, 0}},
        {"mov.u32 $r1, 4; match.all.sync.b32 $r2|$p2, $r1, -1;", {0xffffffff, 0xffffffff}},
        {"mov.u64 $x1, 4; match.all.sync.b64 $r2|$p2, $x1, -1;", {0xffffffff, 0xffffffff}},
        {"redux.sync.add.u32 $r2, $r1, -1;", {62, 62}},
        {"redux.sync.add.s32 $r2, $t, -1;", {496, 496}},
        {"redux.sync.min.u32 $r2, $r3, -1;", {0, 0}},
        {"redux.sync.max.u32 $r2, $r3, -1;", {0xffffffff, 0xffffffff}},
        {"redux.sync.min.s32 $r2, $r3, -1;", {0xfffffffb, 0xfffffffb}},
        {"redux.sync.max.s32 $r2, $r3, -1;", {26, 26}},
        {"redux.sync.and.b32 $r2, $r4, -1;", {0x100, 0x100}},
        {"redux.sync.or.b32 $r2, $r4, -1;", {0x11f, 0x11f}},
        {"redux.sync.xor.b32 $r2, $r4, -1;", {0, 0}},
        {"activemask.b32 $r2;", {0xffffffff, 0xffffffff}},
        {"elect.sync $r2|$p2, -1;", {0, 0}},
        {"mov.u32 $r2, %lanemask_lt;", {0, 0x1ff}},
        {"mov.u32 $r2, %lanemask_le;", {1, 0x3ff}},
        {"mov.u32 $r2, %lanemask_eq;", {1, 0x200}},
        {"mov.u32 $r2, %lanemask_ge;", {0xffffffff, 0xfffffe00}},
        {"mov.u32 $r2, %lanemask_gt;", {0xfffffffe, 0xfffffc00}},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        uint32_t out[WARP];
        const char *text = format(HEAD ".visible .entry k(.param .u64 out) {\n" FORMAT_BEGIN(
                                      4) "mul.lo.u32 $r1, $t, 7; rem.u32 $r1, $r1, 5; setp.lt.u32 $p1, $t, 7; "
                                         "sub.s32 $r3, $t, 5; or.b32 $r4, $t, 256;\n"
                                         "%s st.global.b32 [$o], $r2; ret; }",
                                  rows[k].body);
        RUN(text, WARP, out);
        cr_expect_eq(out[0], rows[k].want[0], "%s: %x", rows[k].body, out[0]);
        cr_expect_eq(out[9], rows[k].want[1], "%s: %x", rows[k].body, out[9]);
    }
}

/* Each operation of atom and red at each type: one lane, what is left and what it gives. */
static const struct {
    const char *op;
    uint64_t was, x, y, want;
} atomics[] = {
    {"add.u32", 0xfffffffe, 3, 0, 1},
    {"add.s32", 5, 0xffffffff, 0, 4},
    {"add.u64", 0xffffffffffffffff, 3, 0, 2},
    {"add.s64", 7, 0xffffffffffffffff, 0, 6},
    {"add.f32", 0x3f800000, 0x40000000, 0, 0x40400000},
    {"add.f64", 0x3ff0000000000000, 0x4000000000000000, 0, 0x4008000000000000},
    {"add.noftz.f16", 0x3c00, 0x4000, 0, 0x4200},
    {"add.noftz.bf16", 0x3f80, 0x4000, 0, 0x4040},
    {"add.noftz.f16x2", 0x3c003c00, 0x40003c00, 0, 0x42004000},
    {"add.noftz.bf16x2", 0x3f803f80, 0x40003f80, 0, 0x40404000},
    {"min.u32", 5, 0xffffffff, 0, 5},
    {"min.s32", 5, 0xffffffff, 0, 0xffffffff},
    {"max.u32", 5, 0xffffffff, 0, 0xffffffff},
    {"max.s32", 5, 0xffffffff, 0, 5},
    {"min.u64", 5, 0xffffffffffffffff, 0, 5},
    {"min.s64", 5, 0xffffffffffffffff, 0, 0xffffffffffffffff},
    {"max.u64", 5, 0xffffffffffffffff, 0, 0xffffffffffffffff},
    {"max.s64", 5, 0xffffffffffffffff, 0, 5},
    {"and.b32", 0xff0f, 0x0ff0, 0, 0x0f00},
    {"or.b32", 0xff0f, 0x0ff0, 0, 0xffff},
    {"xor.b32", 0xff0f, 0x0ff0, 0, 0xf0ff},
    {"and.b64", 0xff0f00000000, 0x0ff000000000, 0, 0x0f0000000000},
    {"or.b64", 0xff0f00000000, 0x0ff000000000, 0, 0xffff00000000},
    {"xor.b64", 0xff0f00000000, 0x0ff000000000, 0, 0xf0ff00000000},
    {"exch.b32", 1, 2, 0, 2},
    {"exch.b64", 1, 0x200000000, 0, 0x200000000},
    {"cas.b16", 4, 4, 9, 9},
    {"cas.b32", 4, 4, 9, 9},
    {"cas.b32", 5, 4, 9, 5},
    {"cas.b64", 4, 4, 0x900000000, 0x900000000},
    {"inc.u32", 4, 5, 0, 5},
    {"inc.u32", 5, 5, 0, 0},
    {"dec.u32", 4, 5, 0, 3},
    {"dec.u32", 0, 5, 0, 5},
    {"dec.u32", 7, 5, 0, 5},
};
Test(ptx_run, atomic_operations) {
    const char *const where[] = {".global", ".shared", ""};
    for (size_t k = 0; k < sizeof atomics / sizeof *atomics; k++)
        for (uint32_t s = 0; s < 3; s++) {
            const char *op = atomics[k].op;
            uint32_t bytes = strstr(op, "x2") || strstr(op, "32") ? 4 : strstr(op, "64") ? 8 : 2;
            char reg = bytes == 2 ? 'h' : bytes == 4 ? 'r' : 'x';
            bool cas = !strncmp(op, "cas", 3), red = !cas && strncmp(op, "exch", 4);
            char third[32] = "";
            if (cas) snprintf(third, sizeof third, ", $%c3", reg);
            char reds[256] = "";
            if (red) snprintf(reds, sizeof reds, "red.relaxed.gpu.global.%s [$o+32], $%c2;", op, reg);
            uint64_t out[8] = {atomics[k].was, atomics[k].x, atomics[k].y, 0, atomics[k].was, 0, 0, 0};
            const char *text = format(
                HEAD ".shared .align 8 .b64 s;\n.visible .entry k(.param .u64 out) {\n" FORMAT_BEGIN(
                    64) "ld.global.b%u $%c1, [$o]; ld.global.b%u $%c2, [$o+8]; ld.global.b%u "
                        "$%c3, [$o+16]; mov.u64 $x9, s; st.shared.b%u [s], $%c1;\n"
                        "mov.u64 $x8, %s; atom%s.%s $%c4, [$x8], $%c2%s;\n%s\nld.shared.b%u "
                        "$%c5, [s]; ld.global.b%u $%c6, [$o];\n"
                        "st.global.b%u [$o+24], $%c4; st.global.b%u [$o+40], $%c%d; ret; }",
                8 * bytes, reg, 8 * bytes, reg, 8 * bytes, reg, 8 * bytes, reg, s == 1 ? "$x9" : "$o", where[s], op,
                reg, reg, third, reds, 8 * bytes, reg, 8 * bytes, reg, 8 * bytes, reg, 8 * bytes, reg, s == 1 ? 5 : 6);
            RUN(text, 1, out);
            cr_expect_eq(cut(out[5], bytes), atomics[k].want, "atom%s.%s: %llx", where[s], op,
                         (unsigned long long)out[5]);
            cr_expect_eq(cut(out[3], bytes), atomics[k].was, "atom%s.%s: the old value", where[s], op);
            if (red) cr_expect_eq(cut(out[4], bytes), atomics[k].want, "red.%s", op);
        }
}
Test(ptx_run, carries) {
    const char *text = KERNEL(64, "ld.global.v2.b64 {$x1, $x2}, [$o]; ld.global.v2.b64 {$x3, $x4}, [$o+16];\n"
                                  "add.cc.u64 $x5, $x1, $x3; addc.cc.s64 $x6, $x2, $x4; addc.u64 $x7, 0, 0; "
                                  "st.global.v2.b64 [$o+32], {$x5, $x6};\n"
                                  "sub.cc.s64 $x5, $x1, $x3; subc.cc.u64 $x6, $x2, $x4; subc.s64 $x8, 0, 0; "
                                  "st.global.v2.b64 [$o+48], {$x5, $x6};\n"
                                  "st.global.v2.b64 [$o+16], {$x7, $x8};\n"
                                  "mov.b64 {$r1, $r2}, $x1; mov.b64 {$r3, $r4}, $x3; add.cc.s32 $r5, $r1, $r3; "
                                  "addc.cc.u32 $r6, $r2, $r4; addc.s32 $r7, 0, 0;\n"
                                  "sub.cc.u32 $r8, $r1, $r3; subc.cc.s32 $r9, $r2, $r4; subc.u32 $r10, 0, 0; "
                                  "st.global.v4.b32 [$o], {$r5, $r6, $r8, $r9};\n");
    typedef unsigned __int128 Wide;
    const Wide max = ~(Wide)0,
               values[] = {0, 1, UINT64_MAX, (Wide)UINT64_MAX + 1, max, max - 1, (Wide)5 << 64, ((Wide)1 << 127) + 3};
    for (uint32_t a = 0; a < 8; a++)
        for (uint32_t b = 0; b < 8; b++) {
            Wide x = values[a], y = values[b];
            uint64_t out[8] = {(uint64_t)x, (uint64_t)(x >> 64), (uint64_t)y, (uint64_t)(y >> 64)};
            RUN(text, 1, out);
            cr_assert(((Wide)out[5] << 64 | out[4]) == x + y);
            cr_assert(((Wide)out[7] << 64 | out[6]) == x - y);
            cr_assert_eq(out[2], x + y < x);
            cr_assert_eq(out[3], x < y ? UINT64_MAX : 0);
            cr_assert_eq(out[0], (uint64_t)x + (uint64_t)y);
            cr_assert_eq(out[1], (uint64_t)x - (uint64_t)y);
        }
}

/* One value of lane 5 of 64 threads each; $r1: the thread. */
Test(ptx_run, small_things) {
    static const struct {
        const char *body;
        uint64_t want; /* in $x2 */
    } rows[] = {
        {"setp.lt.u32 $p1, $t, 40; bar.red.popc.u32 $r2, 0, $p1; cvt.u64.u32 $x2, $r2;", 40},
        {"setp.lt.u32 $p1, $t, 40; bar.red.popc.u32 $r2, 1, 64, $p1; cvt.u64.u32 $x2, $r2;", 40},
        {"setp.lt.u32 $p1, $t, 40; bar.red.and.pred $p2, 0, $p1; selp.b64 $x2, 1, 2, $p2;", 2},
        {"setp.lt.u32 $p1, $t, 64; bar.red.and.pred $p2, 0, $p1; selp.b64 $x2, 1, 2, $p2;", 1},
        {"setp.eq.u32 $p1, $t, 40; bar.red.or.pred $p2, 0, $p1; selp.b64 $x2, 1, 2, $p2;", 1},
        {"setp.eq.u32 $p1, $t, 70; barrier.cta.red.or.pred $p2, 0, $p1; selp.b64 $x2, 1, 2, $p2;", 2},
        {"and.b32 $r2, $t, 1; setp.eq.u32 $p1, $r2, 0; @$p1 barrier.sync 0; @!$p1 barrier.sync 0; mov.u64 $x2, 3;", 3},
        {"mov.b64 $x2, {$r1, $r9};", 0x700000005},
        {"mov.b64 $x3, 0x0123456789abcdef; mov.b64 {$r2, $r3}, $x3; mov.b64 $x2, {$r3, $r2};", 0x89abcdef01234567},
        {"mov.b64 $x3, 0x0123456789abcdef; mov.b64 {$h1, $h2, $h3, $h4}, $x3; mov.b64 $x2, {$h4, $h3, $h2, $h1};",
         0xcdef89ab45670123},
        {"mov.b32 {$h1, $h2}, 0x12345678; mov.b32 $r2, {$h2, $h1}; cvt.u64.u32 $x2, $r2;", 0x56781234},
        {"mov.b64 $x3, 0x0123456789abcdef; mov.b64 {_, $r3}, $x3; cvt.u64.u32 $x2, $r3;", 0x01234567},
        {"mov.u64 $x3, s; cvta.shared.u64 $x4, $x3; cvta.to.shared.u64 $x5, $x4; sub.u64 $x2, $x5, $x3;", 0},
        {"mov.u64 $x3, s; cvta.shared.u64 $x4, $x3; isspacep.shared $p1, $x4; selp.b64 $x2, 1, 2, $p1;", 1},
        {"isspacep.shared $p1, $o; selp.b64 $x2, 1, 2, $p1;", 2},
        {"isspacep.global $p1, $o; selp.b64 $x2, 1, 2, $p1;", 1},
        {"mov.u64 $x3, m; cvta.local.u64 $x4, $x3; isspacep.local $p1, $x4; selp.b64 $x2, 1, 2, $p1;", 1},
        {"mov.u64 $x3, m; cvta.local.u64 $x4, $x3; st.local.u64 [m], 77; ld.u64 $x2, [$x4];", 77},
        {"mov.u32 $r2, %ntid.x; cvt.u64.u32 $x2, $r2;", 64},
        {"mov.u32 $r2, %nctaid.x; cvt.u64.u32 $x2, $r2;", 1},
        {"mov.u32 $r2, %nwarpid; cvt.u64.u32 $x2, $r2;", 2},
        {"mov.u32 $r2, %warpid; cvt.u64.u32 $x2, $r2;", 0},
        {"mov.u32 $r2, WARP_SZ; cvt.u64.u32 $x2, $r2;", 32},
        {"mov.u32 $r2, %dynamic_smem_size; cvt.u64.u32 $x2, $r2;", 0},
        {"mov.u64 $x2, %globaltimer;", 0},
        {"nanosleep.u32 20; membar.cta; membar.gl; membar.sys; fence.acq_rel.cta; fence.sc.gpu; mov.u64 $x2, 1;", 1},
        {"prefetch.global.L2 [$o]; .pragma \"nounroll\"; mov.u64 $x2, 1; // a comment\n/* and\nanother */", 1},
        {"setp.eq.u32 $p1, $t, 5; mov.u64 $x2, 1; @$p1 mov.u64 $x2, 2;", 2},
        {"setp.eq.u32 $p1, $t, 5; mov.u64 $x2, 1; @!$p1 mov.u64 $x2, 2;", 1},
        {"{ .reg .b64 $x2; mov.u64 $x2, 9; } mov.u64 $x3, 4; add.u64 $x2, $x3, -1;", 3},
        {"mov.b32 $r2, 0f40490fdb; cvt.u64.u32 $x2, $r2;", 0x40490fdb},
        {"mov.b64 $x2, 0d400921fb54442d18;", 0x400921fb54442d18},
        {"mov.u64 $x3, s; cvt.u32.u64 $r2, $x3; mad.lo.u32 $r2, $t, 4, $r2; st.shared.u32 [$r2], $t; ld.shared.u32 "
         "$r3, "
         "[$r2]; cvt.u64.u32 $x2, $r3;",
         5},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        uint64_t out[64] = {0};
        char text[KERNEL_TEXT];
        snprintf(text, sizeof text, "%s%s%s",
                 HEAD ".visible .entry k(.param .u64 out) {\n" BEGIN(
                     8) ".shared .align 16 .b8 s[512]; .local .align 8 .b8 m[8]; mov.u32 $r1, $t; mov.u32 $r9, 7;\n",
                 rows[k].body, " st.global.b64 [$o], $x2; ret; }");
        RUN(text, 64, out);
        cr_expect_eq(out[5], rows[k].want, "%s: %llx", rows[k].body, (unsigned long long)out[5]);
    }
}
/* Shared memory of the module, of functions, of the entry, and what is given at the launch, do not overlap. */
Test(ptx_run, shared_memory_has_places) {
    const char *text =
        HEAD ".extern .shared .align 64 .b8 d[];\n.shared .align 8 .b64 m;\n.shared .align 8 .b64 unused[100];\n"
             ".func f() { .shared .align 8 .b64 g[2]; .reg .b64 $x<4>; mov.u64 $x1, 2; st.shared.u64 [g+8], $x1; "
             "st.shared.u64 [m], $x1; ret; }\n"
             ".visible .entry k(.param .u64 out) {\n" BEGIN(
                 8) ".shared .align 16 .b64 e;\nmov.u64 $x1, 1; st.shared.u64 [e], $x1; mov.u64 $x1, 3; st.shared.u64 "
                    "[d+24], $x1;\n"
                    "call.uni f; ld.shared.u64 $x2, [e]; ld.shared.u64 $x3, [m]; ld.shared.u64 $x4, [d+24]; mad.lo.u64 "
                    "$x2, $x3, 16, $x2; mad.lo.u64 $x2, $x4, 256, $x2; st.global.u64 [$o], $x2; ret; }\n"
                    ".visible .entry none() { ret; }";
    uint64_t out[1] = {0};
    cr_assert(run_threads(text, 1, out, sizeof out, 32), "%s", ptx_fault());
    cr_assert_eq(out[0], 0x321);
    cr_assert(!run_threads(text, 1, out, sizeof out, 24));
    PtxModule *m = loaded(text);
    PtxInfo info;
    ptx_func_info(ptx_function(m, "none"), &info);
    cr_assert_eq(info.shared_bytes, 0);
    ptx_unload(m);
}
static uint64_t condition[2];
static void set_condition(uint64_t handle, uint32_t value) { condition[0] = handle, condition[1] = value; }
Test(ptx_run, functions_of_the_driver) {
    const char *text = HEAD
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.extern .func "
        "cudaGraphSetConditional(.param .b64 h, .param .b32 v);\n"
        ".global .align 1 .b8 f[17] = {37, 100, 32, 37, 103, 32, 37, 108, 108, 100, 32, 37, 115, 37, 37, 10, "
        "0};\n.global .align 1 .b8 w[3] = {104, 105, 0};\n"
        ".visible .entry k(.param .u64 out) {\n" BEGIN(
            8) ".local .align 8 .b8 m[32]; st.local.u32 [m], -3; st.local.u64 [m+8], 0d3FF8000000000000; st.local.u64 "
               "[m+16], -4;\n"
               "mov.u64 $x1, w; st.local.u64 [m+24], $x1; mov.u64 $x2, m; cvta.local.u64 $x2, $x2; mov.u64 $x3, f;\n"
               "{ .param .b64 a; .param .b64 b; .param .b32 q; st.param.b64 [a], $x3; st.param.b64 [b], $x2; call.uni "
               "(q), vprintf, (a, b); }\n"
               "{ .param .b64 a; .param .b32 b; st.param.b64 [a], 99; st.param.b32 [b], 1; call.uni "
               "cudaGraphSetConditional, (a, b); } ret; }";
    uint64_t out[1] = {0};
    char printed[64] = "";
    FILE *file = tmpfile(), *was = stdout;
    ptx_set_conditional = set_condition;
    stdout = file;
    bool good = run_threads(text, 1, out, sizeof out, 0);
    stdout = was;
    rewind(file);
    cr_assert(good, "%s", ptx_fault());
    cr_assert(fgets(printed, sizeof printed, file));
    cr_assert_str_eq(printed, "-3 1.5 -4 hi%\n");
    cr_assert(condition[0] == 99 && condition[1] == 1);
    fclose(file);
}
