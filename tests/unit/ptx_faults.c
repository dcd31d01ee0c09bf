/* Programs that are wrong are stopped, and the message says what and where. Those that are right beside them are
   not. */
#include "ptx_kernel.h"

enum { NO_LIMIT = 0, SHARED = 1, GLOBAL = 2 };
typedef struct {
    const char *body;
    uint32_t threads;
    PtxOptions options;
    const char *want; /* in the message; NULL: it ends well */
} Case;
#define MEMORY                                                                                                         \
    ".shared .align 16 .b8 s[256]; .local .align 8 .b8 m[16]; mov.u64 $x9, s; mov.u64 $x8, m; mad.wide.u32 $x7, $t, "  \
    "4, $x9;\n"
static const Case cases[] = {
    /* bounds and alignment */
    {"ld.global.b32 $r1, [$o+256];", 32, {0}, "thread 0: 4 bytes at 0x"},
    {"setp.eq.u32 $p1, $t, 7; @$p1 ld.global.b32 $r1, [$o+1000];", 32, {0}, "thread 7: 4 bytes"},
    {"ld.global.b32 $r1, [$o+-4]; ", 32, {0}, "thread 0: 4 bytes"},
    {"st.global.v4.b32 [$o], {$r1, $r1, $r1, $r1};", 1, {0}, NULL},
    {"add.u64 $o, $o, 2; ld.global.b32 $r1, [$o];", 32, {0}, "not a multiple of 4"},
    {"ld.global.v2.b32 {$r1, $r2}, [$o+4];", 32, {0}, "not a multiple of 8"},
    {"mov.u64 $x1, 4096; ld.global.b32 $r1, [$x1];", 1, {0}, "address of the host?"},
    {"mov.u64 $x1, 4096; ld.b32 $r1, [$x1];", 1, {0}, "address of the host?"},
    {"ld.shared.b32 $r1, [s+256];", 1, {0}, "shared memory"},
    {"ld.shared.b32 $r1, [s+-4];", 1, {0}, "shared memory"},
    {"cvta.shared.u64 $x1, $x9; st.u32 [$x1+256], $t;", 1, {0}, "shared memory"},
    {"cvta.shared.u64 $x1, $x9; st.u32 [$x1+252], $t;", 1, {0}, NULL},
    {"st.local.u32 [m+16], $t;", 1, {0}, "local memory"},
    {"atom.global.add.u32 $r1, [$o+512], 1;", 1, {0}, "4 bytes"},
    {"ld.param.u64 $x1, [out+8];", 1, {0}, "parameter memory"},
    {"mov.u64 $x1, out; cvta.param.u64 $x1, $x1; st.u64 [$x1], $x1;", 1, {0}, "may be written"},
    /* memory that nobody wrote */
    {"ld.global.b32 $r1, [$o+128];", 1, {.uninitialised = true}, "never written"},
    {"ld.global.b32 $r1, [$o];", 32, {.uninitialised = true}, NULL},
    {"st.global.u32 [$o+128], $t; ld.global.b32 $r1, [$o+128];", 32, {.uninitialised = true}, NULL},
    {"st.global.u8 [$o+128], 1; ld.global.b32 $r1, [$o+128];", 1, {.uninitialised = true}, "never written"},
    {"ld.shared.b32 $r1, [$x7];", 32, {.uninitialised = true}, "shared memory are read and were never written"},
    {"st.shared.u32 [$x7], $t; ld.shared.b32 $r1, [$x7];", 32, {.uninitialised = true}, NULL},
    {"ld.local.b32 $r1, [m];", 32, {.uninitialised = true}, "local memory are read and were never written"},
    {"st.local.u32 [m+4], $t; ld.local.b32 $r1, [m+4];", 32, {.uninitialised = true}, NULL},
    /* races in shared memory */
    {"st.shared.u32 [s], $t;", 2, {.races = SHARED}, "race: shared byte 0 was written by thread 0"},
    {"st.shared.u32 [$x7], $t; xor.b32 $r1, $t, 32; mad.wide.u32 $x1, $r1, 4, $x9; ld.shared.u32 $r2, [$x1];",
     64,
     {.races = SHARED},
     "was read by thread"},
    {"st.shared.u32 [$x7], $t; bar.sync 0; xor.b32 $r1, $t, 32; mad.wide.u32 $x1, $r1, 4, $x9; ld.shared.u32 $r2, "
     "[$x1];",
     64,
     {.races = SHARED},
     NULL},
    {"st.shared.u32 [$x7], $t; xor.b32 $r1, $t, 1; mad.wide.u32 $x1, $r1, 4, $x9; ld.shared.u32 $r2, [$x1];",
     32,
     {.races = SHARED},
     "was written by thread"},
    {"st.shared.u32 [$x7], $t; bar.warp.sync -1; xor.b32 $r1, $t, 1; mad.wide.u32 $x1, $r1, 4, $x9; ld.shared.u32 $r2, "
     "[$x1];",
     32,
     {.races = SHARED},
     NULL},
    {"st.shared.u32 [$x7], $t; bar.warp.sync -1; xor.b32 $r1, $t, 32; mad.wide.u32 $x1, $r1, 4, $x9; ld.shared.u32 "
     "$r2, [$x1];",
     64,
     {.races = SHARED},
     "was read by thread"},
    {"ld.shared.u32 $r2, [s]; setp.eq.u32 $p1, $t, 40; @$p1 st.shared.u32 [s], $t;",
     64,
     {.races = SHARED},
     "was read by"},
    {"ld.shared.u32 $r2, [s]; bar.sync 0; setp.eq.u32 $p1, $t, 40; @$p1 st.shared.u32 [s], $t;",
     64,
     {.races = SHARED},
     NULL},
    {"ld.shared.u32 $r2, [s]; bar.warp.sync -1; setp.eq.u32 $p1, $t, 3; @$p1 st.shared.u32 [s], $t;",
     32,
     {.races = SHARED},
     NULL},
    {"add.u64 $x1, $x9, 1; cvt.u64.u32 $x2, $t; add.u64 $x2, $x2, $x9; st.shared.u8 [$x2], 1;",
     64,
     {.races = SHARED},
     NULL},
    {"cvt.u64.u32 $x2, $t; add.u64 $x2, $x2, $x9; st.shared.u8 [$x2], 1; setp.eq.u32 $p1, $t, 40; @$p1 ld.shared.u32 "
     "$r1, [s];",
     64,
     {.races = SHARED},
     "was written by thread"},
    {"cvt.u64.u32 $x2, $t; add.u64 $x2, $x2, $x9; st.shared.u8 [$x2], 1; shr.u32 $r1, $t, 1; cvt.u64.u32 $x2, $r1; "
     "add.u64 $x2, $x2, $x9; st.shared.u8 [$x2], 1;",
     64,
     {.races = SHARED},
     "was written by thread"},
    {"atom.shared.add.u32 $r1, [s], 1;", 64, {.races = SHARED}, NULL},
    {"setp.eq.u32 $p1, $t, 0; @$p1 st.shared.u32 [s], $t; atom.shared.add.u32 $r1, [s], 1;",
     64,
     {.races = SHARED},
     "was written by thread 0"},
    {"setp.eq.u32 $p1, $t, 0; @$p1 st.shared.u32 [s], $t; bar.sync 0; atom.shared.add.u32 $r1, [s], 1; bar.sync 0; "
     "ld.shared.u32 $r1, [s];",
     64,
     {.races = SHARED},
     NULL},
    {"atom.shared.add.u32 $r1, [s], 1; ld.shared.u32 $r1, [s];", 64, {.races = SHARED}, "was written by"},
    /* in global memory, of one block */
    {"ld.param.u64 $x1, [out]; st.global.u32 [$x1], $t;", 2, {.races = GLOBAL}, "race: global byte"},
    {"ld.param.u64 $x1, [out]; atom.global.add.u32 $r1, [$x1], $t;", 64, {.races = GLOBAL}, NULL},
    {"st.global.u32 [$o], $t; ld.param.u64 $x1, [out]; ld.global.u32 $r1, [$x1];",
     32,
     {.races = GLOBAL},
     "was written by thread"},
    {"st.global.u32 [$o], $t; bar.sync 0; ld.param.u64 $x1, [out]; ld.global.u32 $r1, [$x1];",
     32,
     {.races = GLOBAL},
     NULL},
    /* lanes and barriers */
    {"setp.eq.u32 $p1, $t, 9; @$p1 bra OUT; shfl.sync.bfly.b32 $r1, $t, 1, 31, -1; OUT: mov.u32 $r2, 0; bar.warp.sync "
     "-1;",
     32,
     {0},
     "wait here for lanes that do not come"},
    {"setp.eq.u32 $p1, $t, 9; @$p1 bra OUT; shfl.sync.bfly.b32 $r1, $t, 1, 31, -513; OUT: mov.u32 $r2, 0;",
     32,
     {0},
     "reads lane 9, which is not here"},
    {"setp.eq.u32 $p1, $t, 9; @$p1 shfl.sync.idx.b32 $r1, $t, 0, 31, -1;", 32, {0}, "lanes differ in the predicate"},
    {"vote.sync.ballot.b32 $r1, $p1, 1;", 32, {0}, "not named in the mask"},
    {"setp.eq.u32 $p1, $t, 40; @$p1 exit; bar.sync 0;",
     64,
     {0},
     "63 of 64 threads wait at barrier 0, 1 threads of the block have ended"},
    {"setp.gt.u32 $p1, $t, 31; @$p1 bra OUT; bar.sync 0; OUT: mov.u32 $r1, 0;", 64, {0}, "wait at barrier 0"},
    {"setp.gt.u32 $p1, $t, 15; @$p1 bra OUT; bar.sync 0; OUT: mov.u32 $r1, 0; bar.warp.sync -1;",
     32,
     {0},
     "wait here for lanes that do not come"},
    {"setp.gt.u32 $p1, $t, 31; @$p1 bra SECOND; bar.sync 1, 64; bra OUT; SECOND: bar.sync 1, 64; OUT: mov.u32 $r1, 0;",
     64,
     {0},
     NULL},
    {"setp.gt.u32 $p1, $t, 31; @$p1 bra SECOND; bar.sync 1, 64; bra OUT; SECOND: bar.sync 1, 32; OUT: mov.u32 $r1, 0;",
     64,
     {0},
     "waits for 64 threads, not for 32"},
    {"setp.gt.u32 $p1, $t, 31; @$p1 bra SECOND; bar.sync 1, 64; bra OUT; SECOND: bar.arrive 1, 64; OUT: mov.u32 $r1, "
     "0;",
     64,
     {0},
     NULL},
    {"bar.sync 16;", 32, {0}, "barrier 16"},
    /* loops without an end, traps */
    {"LOOP: bra LOOP;", 32, {.most = 100000}, "more than 100000 instructions"},
    {"LOOP: ld.volatile.global.u32 $r1, [$o]; setp.ne.u32 $p1, $r1, 12345; @$p1 bra LOOP;",
     32,
     {.most = 100000},
     "more than 100000 instructions"},
    {"trap;", 32, {0}, "trap"},
    {"mov.u32 $r1, 5;\nT: .branchtargets A;\nbrx.idx $r1, T;\nA: mov.u32 $r1, 0;", 32, {0}, "branch 5 of 1"},
};
Test(ptx_faults, wrong_programs_are_stopped) {
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const Case *c = &cases[k];
        char text[KERNEL_TEXT];
        uint32_t words[64] = {0};
        snprintf(text, sizeof text, "%s%s%s%s", HEAD ".visible .entry k(.param .u64 out) {\n" BEGIN(4), MEMORY, c->body,
                 "\nret; }");
        PtxModule *m = loaded(text);
        uint64_t at = ptx_alloc(sizeof words);
        const void *params[] = {&at};
        ptx_mark_written(at, sizeof words / 2);
        ptx_options = c->options;
        bool good = ptx_launch(ptx_function(m, "k"), (PtxDim3){1, 1, 1}, (PtxDim3){c->threads, 1, 1}, 0, params);
        if (!c->want)
            cr_expect(good, "%s\n%s", c->body, ptx_fault());
        else {
            cr_expect(!good, "no fault: %s", c->body);
            cr_expect(good || strstr(ptx_fault(), c->want), "%s\n%s", c->body, ptx_fault());
        }
        ptx_options = (PtxOptions){0};
        ptx_free(at);
        ptx_unload(m);
    }
}
/* Blocks are never ordered. */
static const Case between_blocks[] = {
    {"st.global.u32 [$o], $t;", 1, {.races = GLOBAL}, "was written by another block"},
    {"setp.eq.u32 $p1, $b, 0; @$p1 ld.global.u32 $r1, [$o]; setp.eq.u32 $p1, $b, 1; @$p1 st.global.u32 [$o], $t;",
     1,
     {.races = GLOBAL},
     "was read by another block"},
    {"setp.ne.u32 $p1, $b, 2; @$p1 ld.global.u32 $r1, [$o]; setp.eq.u32 $p1, $b, 2; @$p1 st.global.u32 [$o], $t;",
     1,
     {.races = GLOBAL},
     "was read by another block"},
    {"ld.global.u32 $r1, [$o]; setp.eq.u32 $p1, $b, 2; @$p1 st.global.u32 [$o], $t;",
     1,
     {.races = GLOBAL},
     "was read by another block"},
    {"mad.wide.u32 $o, $b, 4, $o; st.global.u32 [$o], $t; ld.global.u32 $r1, [$o];", 1, {.races = GLOBAL}, NULL},
    {"mad.wide.u32 $o, $b, 4, $o; st.global.u32 [$o], $t; ld.param.u64 $x1, [out]; fence.acq_rel.gpu; "
     "atom.global.add.u32 $r1, [$x1+64], 1;\n"
     "fence.acq_rel.gpu; setp.eq.u32 $p1, $r1, 2; @$p1 ld.global.v2.u32 {$r1, $r2}, [$x1];",
     1,
     {.races = GLOBAL},
     NULL},
    {"mad.wide.u32 $o, $b, 4, $o; st.global.u32 [$o], $t; ld.param.u64 $x1, [out]; fence.acq_rel.gpu; "
     "atom.global.add.u32 $r1, [$x1+64], 1;\n"
     "setp.eq.u32 $p1, $r1, 2; @$p1 ld.global.v2.u32 {$r1, $r2}, [$x1];",
     1,
     {.races = GLOBAL},
     "was written by another block"},
};
Test(ptx_faults, races_between_blocks) {
    for (size_t k = 0; k < sizeof between_blocks / sizeof *between_blocks; k++) {
        const Case *c = &between_blocks[k];
        char text[KERNEL_TEXT];
        snprintf(text, sizeof text, "%s%s%s",
                 HEAD ".visible .entry k(.param .u64 out) {\n" BEGIN(4) ".reg .b32 $b; mov.u32 $b, %ctaid.x;\n",
                 c->body, "\nret; }");
        PtxModule *m = loaded(text);
        uint64_t at = ptx_alloc(256);
        const void *params[] = {&at};
        memset(ptx_host(at, 256), 0, 256);
        ptx_options = c->options;
        bool good = ptx_launch(ptx_function(m, "k"), (PtxDim3){3, 1, 1}, (PtxDim3){c->threads, 1, 1}, 0, params);
        if (!c->want)
            cr_expect(good, "%s\n%s", c->body, ptx_fault());
        else
            cr_expect(!good && strstr(ptx_fault(), c->want), "%s\n%s", c->body, good ? "no fault" : ptx_fault());
        ptx_options = (PtxOptions){0};
        ptx_free(at);
        ptx_unload(m);
    }
}
/* The message names the function, the line of PTX, the block and the thread. */
Test(ptx_faults, a_message_names_the_place) {
    const char *text = HEAD ".visible .entry broken(.param .u64 out) {\n.reg .b64 $x<2>; .reg .b32 $r<3>; .reg .pred "
                            "$p;\nmov.u32 $r1, %ctaid.y;\nmov.u32 $r2, %tid.x;\nadd.u32 $r1, $r1, $r2;\n"
                            "setp.eq.u32 $p, $r1, 40;\n@$p trap;\nret; }";
    PtxModule *m = loaded(text);
    uint64_t at = 0;
    const void *params[] = {&at};
    cr_assert(!ptx_launch(ptx_function(m, "broken"), (PtxDim3){1, 2, 1}, (PtxDim3){64, 1, 1}, 0, params));
    cr_assert_str_eq(ptx_fault(), "broken: line 10 (trap), block (0,0,0), thread 40: trap");
    ptx_options.order = 1;
    cr_assert(!ptx_launch(ptx_function(m, "broken"), (PtxDim3){1, 2, 1}, (PtxDim3){64, 1, 1}, 0, params));
    cr_assert_str_eq(ptx_fault(), "broken: line 10 (trap), block (0,1,0), thread 39: trap");
    ptx_options.order = 0;
    ptx_unload(m);
}
Test(ptx_faults, launches_that_do_not_suit) {
    PtxModule *m = loaded(
        HEAD
        ".visible .entry a() .maxntid 64 { ret; }\n.visible .entry b() .reqntid 8, 4, 1 { ret; }\n.func f() { ret; }");
    PtxDim3 one = {1, 1, 1};
    cr_expect(ptx_launch(ptx_function(m, "a"), one, (PtxDim3){64, 1, 1}, 0, NULL));
    cr_expect(!ptx_launch(ptx_function(m, "a"), one, (PtxDim3){65, 1, 1}, 0, NULL));
    cr_expect(strstr(ptx_fault(), ".maxntid is 64"));
    cr_expect(!ptx_launch(ptx_function(m, "a"), (PtxDim3){0, 1, 1}, one, 0, NULL));
    cr_expect(!ptx_launch(ptx_function(m, "a"), one, (PtxDim3){1, 0, 1}, 0, NULL));
    cr_expect(ptx_launch(ptx_function(m, "b"), one, (PtxDim3){8, 4, 1}, 0, NULL));
    cr_expect(!ptx_launch(ptx_function(m, "b"), one, (PtxDim3){32, 1, 1}, 0, NULL));
    cr_expect_eq(ptx_function(m, "f"), NULL);
    PtxInfo info;
    ptx_func_info(ptx_function(m, "b"), &info);
    cr_expect_eq(info.reqntid.y, 4);
    ptx_unload(m);
}
Test(ptx_faults, texts_that_are_not_understood) {
    static const struct {
        const char *text, *want;
    } rows[] = {
        {".entry k() { frobnicate.b32 $r1; }", "line 1: instruction 'frobnicate.b32' is not known"},
        {".entry k() {\n.reg .b32 $r<2>;\nadd.u32 $r1, $r2, 1; }", "line 3: register $r2 is not declared"},
        {".entry k() {\n.reg .b32 $r<2>; .reg .b64 $x<2>;\nadd.u32 $r1, $x1, 1; }", "line 3: $x1 has 64 bits, not 32"},
        {".entry k() { .reg .b32 $r<2>; ld.global.frob.b32 $r1, [0]; }", "modifier '.frob' is not known"},
        {".entry k() { bra NOWHERE; }", "label 'NOWHERE' is not in this function"},
        {".entry k() { call.uni nobody; }", "function 'nobody' is not declared"},
        {".entry k() { .reg .b32 $r<2>; mov.b32 $r1, nothing; }", "'nothing' is not declared"},
        {".entry k() { ret;", "the text ends in a function"},
        {".entry k() { ret }", "';' is expected before '}'"},
        {".entry k() { ret; }\n.entry k() { ret; }", "line 2: function 'k' is defined twice"},
        {".global .b32 g[2] = {1, 2, 3};", "more initial values than 'g' has"},
        {"entry", "'.' is expected"},
        {".entry k() {\n.reg .b64 $x<4>;\nadd.rn.f64 $x1, $x2, $x3;\nst.global.b32 [0], $x1; }",
         "line 4: ptxas would convert the floating-point number of line 3 to an integer of 32 bits"},
        {".entry k() {\n.reg .b32 $r<4>;\nadd.rn.f32 $r1, $r2, $r3;\nst.global.v2.b16 [0], {$r2, $r1}; }",
         "line 4: ptxas would convert the floating-point number of line 3 to an integer of 16 bits"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char error[ERROR_TEXT] = "";
        cr_expect_eq(ptx_load(rows[k].text, error, sizeof error), NULL, "%s", rows[k].text);
        cr_expect(strstr(error, rows[k].want), "%s\n%s", rows[k].text, error);
    }
}
/* All orders of blocks and warps give the same; a sum over a block by shared memory. */
Test(ptx_faults, orders_give_the_same) {
    const char *text =
        HEAD ".visible .entry k(.param .u64 out) {\n.shared .align 4 .b32 s[256];\n" REGISTERS
             "mov.u32 $t, %tid.x; mov.u32 $r1, %ctaid.x; mov.u32 $r2, %ntid.x; mad.lo.u32 $r3, $r1, $r2, $t; "
             "mul.lo.u32 $r3, $r3, $r3;\n"
             "mov.u64 $x1, s; mad.wide.u32 $x2, $t, 4, $x1; st.shared.u32 [$x2], $r3; mov.u32 $r4, 128;\n"
             "LOOP: bar.sync 0; setp.ge.u32 $p1, $t, $r4; @$p1 bra NEXT; mad.wide.u32 $x3, $r4, 4, $x2; ld.shared.u32 "
             "$r5, [$x3]; ld.shared.u32 $r6, [$x2]; add.u32 $r6, $r6, $r5; st.shared.u32 [$x2], $r6;\n"
             "NEXT: shr.u32 $r4, $r4, 1; setp.ne.u32 $p1, $r4, 0; @$p1 bra LOOP;\n"
             "setp.eq.u32 $p1, $t, 0; ld.param.u64 $o, [out]; mad.wide.u32 $o, $r1, 4, $o; ld.shared.u32 $r7, [s]; "
             "@$p1 st.global.u32 [$o], $r7; ret; }";
    PtxModule *m = loaded(text);
    uint64_t at = ptx_alloc(40);
    const void *params[] = {&at};
    for (int order = 0; order < 6; order++) {
        ptx_options = (PtxOptions){.order = order, .races = order % 2 ? 0 : GLOBAL, .uninitialised = true};
        cr_assert(ptx_launch(ptx_function(m, "k"), (PtxDim3){10, 1, 1}, (PtxDim3){256, 1, 1}, 0, params), "%s",
                  ptx_fault());
        const uint32_t *sum = ptx_host(at, 40);
        for (uint32_t b = 0; b < 10; b++) {
            uint32_t want = 0;
            for (uint32_t k = 0; k < 256; k++) want += (256 * b + k) * (256 * b + k);
            cr_assert_eq(sum[b], want, "order %d, block %u", order, b);
        }
    }
    ptx_options = (PtxOptions){0};
    ptx_free(at);
    ptx_unload(m);
}
Test(ptx_faults, memory_is_known) {
    uint64_t a = ptx_alloc(100), b = ptx_alloc(1);
    cr_assert(ptx_host(a, 100) && ptx_host(a + 99, 1) && ptx_host(b, 1));
    cr_assert(!ptx_host(a, 101) && !ptx_host(a + 100, 1) && !ptx_host(a - 1, 1) && !ptx_host(b, 2) && !ptx_host(0, 1) &&
              !ptx_host(a, SIZE_MAX));
    cr_assert(!ptx_written(a, 1));
    ptx_mark_written(a + 10, 20);
    cr_assert(ptx_written(a + 10, 20) && !ptx_written(a + 9, 2) && !ptx_written(a + 29, 2));
    cr_assert_eq(*(uint8_t *)ptx_host(a, 1), 0xA5);
    cr_assert(!ptx_free(a + 1) && ptx_free(a) && !ptx_free(a) && !ptx_host(a, 1) && ptx_free(b));
    cr_assert_eq(ptx_alloc(SIZE_MAX / 2), 0);
}
/* What an earlier call left in local memory does not count as written by a later one. */
Test(ptx_faults, local_memory_of_a_call_is_new) {
    const char *text = HEAD
        ".func f(.param .b32 n) { " REGISTERS ".local .align 4 .b32 m; ld.param.b32 $r1, [n]; setp.eq.u32 $p1, $r1, 0; "
        "@$p1 st.local.b32 [m], $r1; @!$p1 ld.local.b32 $r2, [m]; ret; }\n.visible .entry k(.param .u64 out) {\n" BEGIN(
            4) "{ .param .b32 a; st.param.b32 [a], 0; call.uni f, (a); } { .param .b32 a; st.param.b32 [a], 1; "
               "call.uni f, (a); } ret; }";
    uint32_t out[32] = {0};
    cr_assert(run_threads(text, 32, out, sizeof out, 0), "%s", ptx_fault());
    ptx_options.uninitialised = true;
    cr_assert(!run_threads(text, 32, out, sizeof out, 0));
    cr_assert(strstr(ptx_fault(), "f: line 5 (ld.local.b32)") && strstr(ptx_fault(), "never written"), "%s",
              ptx_fault());
    ptx_options.uninitialised = false;
}
Test(ptx_faults, memory_of_the_host_may_be_allowed) {
    PtxModule *m = loaded(KERNEL(4, "st.global.b32 [$o], $t;"));
    uint32_t words[32] = {9};
    uint64_t at = (uint64_t)words;
    const void *params[] = {&at};
    cr_assert(!ptx_launch(ptx_function(m, "k"), (PtxDim3){1, 1, 1}, (PtxDim3){32, 1, 1}, 0, params));
    cr_assert(strstr(ptx_fault(), "an address of the host?"));
    ptx_options.host = true;
    cr_assert(ptx_launch(ptx_function(m, "k"), (PtxDim3){1, 1, 1}, (PtxDim3){32, 1, 1}, 0, params), "%s", ptx_fault());
    ptx_options.host = false;
    for (uint32_t k = 0; k < 32; k++) cr_assert_eq(words[k], k);
    ptx_unload(m);
}
/* Bytes of global memory, conflicts in shared memory, branches that part lanes. */
Test(ptx_faults, counts) {
    uint32_t words[64];
    ptx_counts = (PtxCounts){0};
    RUN(KERNEL(4, "ld.global.b32 $r1, [$o]; ld.global.b32 $r1, [$o]; st.global.b32 [$o], $r1; and.b32 $r2, $t, 1; "
                  "setp.eq.u32 $p1, $r2, 0; @$p1 bra E; mov.u32 $r3, 0; E:"),
        64, words);
    cr_assert_eq(ptx_counts.launches, 1);
    cr_assert_eq(ptx_counts.global_read, 512);
    cr_assert_eq(ptx_counts.global_written, 256);
    cr_assert_eq(ptx_counts.divergent_branches, 2);
    cr_assert_eq(ptx_counts.warp_instructions, 2 * 11);
    cr_assert_eq(ptx_counts.lane_instructions, 2 * (9 * 32 + 2 * 16));
    ptx_options.races = SHARED | GLOBAL;
    ptx_counts = (PtxCounts){0};
    RUN(KERNEL(4, "ld.global.b32 $r1, [$o]; ld.global.b32 $r1, [$o]; st.global.b32 [$o], $r1; .shared .align 4 .b32 "
                  "s[2048]; mov.u64 $x1, s; mad.wide.u32 $x2, $t, 8, $x1; st.shared.b32 [$x2], $t;\n"
                  "mad.wide.u32 $x3, $t, 128, $x1; mad.wide.u32 $x4, $t, 132, $x1; bar.sync 0; setp.lt.u32 $p1, $t, "
                  "32; @$p1 ld.shared.b32 $r1, [$x3]; @$p1 ld.shared.b32 $r1, [$x4];"),
        64, words);
    cr_assert_eq(ptx_counts.global_read, 256);
    cr_assert_eq(ptx_counts.global_written, 256);
    cr_assert_eq(ptx_counts.shared_conflicts, 2 * 1 + 31);
    ptx_options.races = 0;
}
