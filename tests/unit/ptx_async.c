/* What is asynchronous since sm_90, used rightly and wrongly. A row is the body of a kernel of 64 threads, whose
   thread 0 begins a barrier in memory and asks for a copy that all wait for; and what is said of it. */
#include "ptx_kernel.h"

enum { THREADS = 64, GROUP = 128, WORDS = 1024 };
typedef struct {
    const char *body, *says; /* says: the fault, or NULL */
} Row;

/* $x1: two barriers; $x2: shared memory, $x3: a word of each thread in it; $x9: the array; $p1: is this thread 0? */
#define PLACES                                                                                                         \
    ".shared .align 8 .b64 b[2]; .shared .align 1024 .b8 s[4096]; mov.u64 $x1, b; mov.u64 $x2, s; mad.wide.u32 $x3, "  \
    "$t, 4, $x2; ld.param.u64 $x9, [out]; setp.eq.u32 $p1, $t, 0; mov.b32 $r9, 0;\n"
#define FENCE "@$p1 fence.mbarrier_init.release.cluster; "
#define OPEN "@$p1 mbarrier.init.shared.b64 [$x1], 1; " FENCE "bar.sync 0;\n"
#define EXPECT(bytes) "@$p1 mbarrier.arrive.expect_tx.shared.b64 _, [$x1], " bytes ";\n"
#define COPY_OF(to, from, bytes)                                                                                       \
    "@$p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [" to "], [" from "], " bytes ", [$x1];\n"
#define COPY COPY_OF("$x2", "$x9", "256")
#define WAIT "W: mbarrier.try_wait.parity.shared.b64 $p3, [$x1], 0; @!$p3 bra W;\n"
#define READ "ld.shared.b32 $r1, [$x3]; st.global.b32 [$o], $r1;\n"

static bool run_row(const char *body, uint32_t threads, int order) {
    static uint32_t words[WORDS];
    char text[KERNEL_TEXT];
    for (uint32_t k = 0; k < WORDS; k++) words[k] = 100 + k;
    snprintf(text, sizeof text, "%s%sret; }", HEAD ".visible .entry k(.param .u64 out) {\n" BEGIN(4) PLACES, body);
    ptx_options = (PtxOptions){.races = 3, .uninitialised = true, .order = order};
    bool good = run_threads(text, threads, words, sizeof words, 0);
    ptx_options = (PtxOptions){0};
    for (uint32_t k = 0; good && k < WORDS; k++) cr_assert_eq(words[k], 100 + k, "%s\nword %u: %u", body, k, words[k]);
    return good;
}
static void try_rows(const Row *rows, size_t n, uint32_t threads) {
    for (size_t k = 0; k < n; k++)
        for (int order = 0; order < 2; order++) {
            bool good = run_row(rows[k].body, threads, order);
            cr_expect(good == !rows[k].says && (good || strstr(ptx_fault(), rows[k].says)), "%s\norder %d: %s",
                      rows[k].body, order, good ? "nothing is found" : ptx_fault());
        }
}
#define TRY(rows, threads) try_rows(rows, sizeof rows / sizeof *rows, threads)

/* ---- the bytes that a phase expects, and the life of a barrier */
#define INIT(n) "@$p1 mbarrier.init.shared.b64 [$x1], " n "; "
static const Row phases[] = {
    {OPEN EXPECT("256") COPY WAIT READ, NULL},
    {OPEN "@$p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$x1], 256;\n" COPY
          "@$p1 mbarrier.arrive.shared.b64 _, [$x1];\n" WAIT READ,
     NULL},
    {OPEN COPY EXPECT("256") WAIT READ, NULL},
    {OPEN EXPECT("128") COPY WAIT, "128 bytes more than the mbarrier"},
    {OPEN EXPECT("512") COPY WAIT, "deadlock: the mbarrier at 0 waits for 0 arrivals and 256 bytes"},
    {OPEN EXPECT("256") COPY COPY_OF("$x2+256", "$x9", "256") WAIT, "256 bytes more than a phase"},
    {OPEN EXPECT("256"), "the block ends, and the mbarrier at 0 expects 256 bytes"},
    {OPEN EXPECT("1048576"), "an mbarrier that expects 1048576 bytes"},
    {OPEN "@$p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$x1], 1048575;\n" EXPECT("16"),
     "an mbarrier that expects 1048591 bytes"},
    {OPEN EXPECT("256") "@$p1 mbarrier.arrive.shared.b64 _, [$x1];", "1 arrivals at an mbarrier that expects 0"},
    {INIT("0"), "an mbarrier for 0 arrivals"},
    {INIT("1048576"), "an mbarrier for 1048576 arrivals"},
    {INIT("1048575"), NULL},
    {"@$p1 mbarrier.init.shared.b64 [$x1+4], 1;", "is not a multiple of 8"},
    /* it lives until it is ended */
    {INIT("1") INIT("1"), "an mbarrier is at 0 already"},
    {INIT("1") "@$p1 mbarrier.inval.shared.b64 [$x1]; " INIT("1"), NULL},
    {INIT("1") "@$p1 mbarrier.init.shared.b64 [$x1+8], 1; ", NULL},
    {INIT("1") "@$p1 mbarrier.inval.shared.b64 [$x1]; @$p1 mbarrier.inval.shared.b64 [$x1];", "there is no mbarrier"},
    {OPEN EXPECT("256") "@$p1 mbarrier.inval.shared.b64 [$x1];", "it ends, and the mbarrier at 0 expects 256 bytes"},
    {OPEN EXPECT("256") COPY "@$p1 mbarrier.inval.shared.b64 [$x1];", "ends before a copy that it waits for"},
    {OPEN EXPECT("256") COPY INIT("1"), "an mbarrier is at 0 already"},
    {OPEN EXPECT("256") COPY WAIT READ "bar.sync 0; @$p1 mbarrier.inval.shared.b64 [$x1];", NULL},
    {OPEN "@$p1 st.shared.b32 [$x1+4], $r9;\n" EXPECT("256") COPY WAIT, "the mbarrier at 0 was written to"},
    {OPEN EXPECT("256") COPY WAIT READ "bar.sync 0; @$p1 mbarrier.inval.shared.b64 [$x1]; @$p1 st.shared.b32 [$x1], "
                                       "$r9;",
     NULL},
    /* a copy sees it behind a fence */
    {INIT("1") "bar.sync 0;\n" EXPECT("256") COPY WAIT, "no fence shows the mbarrier"},
    {INIT("1") "@$p1 fence.proxy.async.shared::cta; bar.sync 0;\n" EXPECT("256") COPY WAIT READ, NULL},
    {INIT("1") "bar.sync 0; fence.proxy.async;\n" EXPECT("256") COPY WAIT READ, NULL},
    {INIT("1") "@!$p1 fence.proxy.async; bar.sync 0;\n" EXPECT("256") COPY WAIT, "no fence shows the mbarrier"},
    {INIT("1") "bar.sync 0; @!$p1 fence.mbarrier_init.release.cluster; bar.sync 0;\n" EXPECT("256") COPY WAIT,
     "no fence shows the mbarrier"},
};
Test(ptx_async, phases) { TRY(phases, THREADS); }

/* ---- where bytes are copied from and to */
static const Row copies[] = {
    {OPEN EXPECT("256") COPY_OF("$x2", "$x9", "16") COPY_OF("$x2+16", "$x9+16", "240") WAIT READ, NULL},
    {OPEN EXPECT("256") COPY_OF("$x2", "$x9", "8") WAIT, "a copy of 8 bytes, not of a multiple of 16"},
    {OPEN EXPECT("256") COPY_OF("$x2", "$x9+8", "256") WAIT, "a copy from address 0x"},
    {OPEN EXPECT("256") COPY_OF("$x2+8", "$x9", "256") WAIT, "is not a multiple of 16"},
    {OPEN EXPECT("256") COPY_OF("$x2+3856", "$x9", "256") WAIT, "shared memory"},
    {OPEN EXPECT("256") COPY_OF("$x2", "$x9+4080", "256") WAIT, "are not device memory"},
    {OPEN EXPECT("256") COPY, "nobody has waited for a copy"},
};
Test(ptx_async, places_of_copies) { TRY(copies, THREADS); }

/* ---- copies of 16 bytes by each thread; $x4: where its own goes, $x5: where that of the other warp's thread goes */
#define PIECES                                                                                                         \
    "mad.wide.u32 $x4, $t, 16, $x2; mad.wide.u32 $x6, $t, 16, $x9; xor.b32 $r2, $t, 32; mad.wide.u32 $x5, $r2, 16, "   \
    "$x2; st.shared.v4.b32 [$x4], {$r9, $r9, $r9, $r9}; bar.sync 0;\n"
#define PIECE PIECES "cp.async.cg.shared.global [$x4], [$x6], 16; cp.async.commit_group;\n"
#define DONE "cp.async.wait_group 0;\n"
#define OWN "ld.shared.b32 $r1, [$x4+12];\n"
#define OTHER "ld.shared.b32 $r1, [$x5+12];\n"
static const Row pieces[] = {
    {PIECE DONE OWN, NULL},
    {PIECE DONE "bar.sync 0;\n" OTHER, NULL},
    {PIECE DONE OTHER "bar.sync 0;", "race: shared byte"},
    {PIECE OWN DONE, "written by a copy, not waited for, of thread"},
    {PIECE "bar.sync 0;\n" OTHER "bar.sync 0;\n" DONE, "written by a copy, not waited for"},
    {PIECE "cp.async.wait_group 1;\n" OWN DONE, "written by a copy, not waited for"},
    {PIECE "setp.ne.u32 $p2, $t, 40; @$p2 " DONE "bar.sync 0;\n" OTHER DONE, "race: shared byte"},
    {PIECE "bar.sync 0; st.shared.b8 [$x5+3], 1; bar.sync 0;\n" DONE, "written by a copy, not waited for"},
    {PIECE "cp.async.ca.shared.global [$x4+8], [$x6], 8;\n", "written by a copy, not waited for"},
    {PIECE DONE "cp.async.ca.shared.global [$x4+8], [$x6], 8; cp.async.wait_all;\n", NULL},
    {PIECES "ld.shared.b32 $r1, [$x5]; cp.async.ca.shared.global [$x4], [$x6], 4; cp.async.wait_all;",
     "race: shared byte"},
    {PIECES "st.shared.b8 [$x4+1], 1; bar.sync 0;\n" PIECE DONE "bar.sync 0;\n" OTHER, NULL},
    {PIECE, "nobody has waited for a copy"},
};
Test(ptx_async, copies_by_threads) { TRY(pieces, THREADS); }

/* ---- products of a warpgroup: of 64 rows and 8 columns, whose terms are zeros; $x6, $x7: the descriptors */
#define MATRICES                                                                                                       \
    "mad.wide.u32 $x4, $t, 16, $x2; st.shared.v4.b32 [$x4], {$r9, $r9, $r9, $r9}; setp.lt.u32 $p2, $t, 16; @$p2 "      \
    "st.shared.v4.b32 [$x4+2048], {$r9, $r9, $r9, $r9}; fence.proxy.async.shared::cta; bar.sync 0;\n"
#define DESCRIPTORS                                                                                                    \
    "shr.u64 $x6, $x2, 4; or.b64 $x6, $x6, 0x0000000800400000; add.u64 $x7, $x2, 2048; shr.u64 $x7, $x7, 4; "          \
    "or.b64 $x7, $x7, 0x0000000800080000; mov.b32 $r1, 0; mov.b32 $r2, 0; mov.b32 $r3, 0; mov.b32 $r4, 0; "            \
    "mov.b32 $r5, 0; mov.b32 $r6, 0; mov.b32 $r7, 0; mov.b32 $r8, 0; setp.eq.u32 $p4, $t, $t;\n"
#define MULTIPLY MATRICES DESCRIPTORS "wgmma.fence.sync.aligned;\n"
#define PRODUCT(sums) "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " sums ", $x6, $x7, $p4, 1, 1, 0, 0;\n"
#define FIRST PRODUCT("{$r1, $r2, $r3, $r4}")
#define SECOND PRODUCT("{$r5, $r6, $r7, $r8}")
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define PENDING(n) "wgmma.wait_group.sync.aligned " n ";\n"
static const Row products[] = {
    {MULTIPLY FIRST COMMIT PENDING("0") "mov.b32 $r1, $r2;\n", NULL},
    {MULTIPLY FIRST COMMIT "mov.b32 $r5, $r2;\n" PENDING("0"), "a register is used by the product"},
    {MULTIPLY FIRST COMMIT "mov.b32 $r3, $r5;\n" PENDING("0"), "a register is used by the product"},
    {MULTIPLY FIRST COMMIT "st.global.v2.b32 [$o], {$r9, $r4};\n" PENDING("0"), "a register is used by the product"},
    {MULTIPLY FIRST COMMIT
     "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {$r5, $r6, $r7, $r8}, {$r9, $r9}, {$r2}, "
     "{$r5, $r6, $r7, $r8};\n" PENDING("0"),
     "a register is used by the product"},
    {MULTIPLY FIRST COMMIT
     "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {$r5, $r6, $r7, $r8}, {$r9, $r9}, {$r9}, "
     "{$r5, $r6, $r7, $r8};\n" PENDING("0"),
     NULL},
    {MULTIPLY FIRST COMMIT "@!$p4 mov.b32 $r3, $r5; mov.b32 $r6, $r7;\n" PENDING("0"), NULL},
    {MULTIPLY FIRST FIRST COMMIT FIRST COMMIT PENDING("0"), NULL},
    {MULTIPLY FIRST PRODUCT("{$r2, $r1, $r3, $r4}") COMMIT PENDING("0"), "a register is used by the product"},
    {MULTIPLY FIRST
     "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {$r1, $r2, $r3, $r4}, $x6, $x7, $p4;\n" COMMIT PENDING("0"),
     "a register is used by the product"},
    {MULTIPLY FIRST COMMIT SECOND COMMIT PENDING("1") "mov.b32 $r9, $r1;\n" PENDING("0"), NULL},
    {MULTIPLY FIRST COMMIT SECOND COMMIT PENDING("1") "mov.b32 $r9, $r5;\n" PENDING("0"),
     "a register is used by the product"},
    {MULTIPLY FIRST COMMIT, "nobody has waited for this product"},
    /* fences */
    {MULTIPLY "mov.b32 $r2, 7;\n" FIRST COMMIT PENDING("0"), "a register of the product was written since"},
    {MULTIPLY "mov.b32 $r2, 7; wgmma.fence.sync.aligned;\n" FIRST COMMIT PENDING("0"), NULL},
    {MULTIPLY FIRST COMMIT SECOND COMMIT PENDING("1") "mov.b32 $r1, 7;\n" FIRST COMMIT PENDING("0"),
     "a register of the product was used since"},
    {MULTIPLY FIRST COMMIT SECOND COMMIT PENDING(
         "1") "mov.b32 $r1, 7; wgmma.fence.sync.aligned;\n" FIRST COMMIT PENDING("0"),
     NULL},
    {MULTIPLY FIRST COMMIT SECOND COMMIT PENDING("1") "mov.b32 $r9, $r1;\n" FIRST COMMIT PENDING("0"),
     "a register of the product was used since"},
    {MULTIPLY FIRST COMMIT SECOND COMMIT PENDING(
         "1") "mov.b32 $r9, $r1; wgmma.fence.sync.aligned;\n" FIRST COMMIT PENDING("0"),
     NULL},
    {MULTIPLY FIRST COMMIT PENDING("0") FIRST COMMIT PENDING("0"), "no wgmma.fence"},
    {MATRICES DESCRIPTORS FIRST COMMIT PENDING("0"), "no wgmma.fence"},
    /* matrices */
    {MULTIPLY "or.b64 $x7, $x7, 0x3fff;\n" FIRST COMMIT PENDING("0"), "of shared memory"},
    {MULTIPLY "add.u64 $x6, $x6, 0x20000000;\n" FIRST COMMIT PENDING("0"), "of shared memory"},
    {MULTIPLY "add.u64 $x7, $x7, 1;\n" FIRST COMMIT PENDING("0"), "never written"},
    {MULTIPLY "or.b64 $x7, $x7, 0x4000;\n" FIRST COMMIT PENDING("0"), "with unknown bits"},
    {MULTIPLY "or.b64 $x6, $x6, 0x0002000000000000;\n" FIRST COMMIT PENDING("0"), "a base offset"},
    /* a part of a warpgroup */
    {MULTIPLY "setp.ge.u32 $p2, $t, 96; @$p2 bra E;\n" FIRST COMMIT PENDING("0") "E:",
     "has not come to this product, others have"},
    {MULTIPLY "setp.ge.u32 $p2, $t, 96; @$p2 bra E;\n" FIRST "E:" FIRST COMMIT PENDING("0"), "of the warpgroup"},
    {MULTIPLY "setp.eq.u32 $p2, $t, 40; @$p2 bra E;\n" FIRST "E:" COMMIT PENDING("0"), "lanes that do not come"},
    {MULTIPLY "setp.eq.u32 $p2, $t, 40;\n@!$p2 " FIRST COMMIT PENDING("0"), "lanes differ in the predicate"},
    {MULTIPLY "setp.eq.u32 $p4, $t, 40;\n" FIRST COMMIT PENDING("0"), "lanes differ in the operands"},
    {MULTIPLY "shr.u32 $r9, $t, 5; cvt.u64.u32 $x8, $r9; shl.b64 $x8, $x8, 32; add.u64 $x7, $x7, $x8;\n" FIRST COMMIT
         PENDING("0"),
     "warps of the warpgroup differ in the operands"},
};
Test(ptx_async, products) { TRY(products, GROUP); }
Test(ptx_async, incomplete_warpgroups) {
    for (uint32_t warps = 1; warps <= 3; warps++) {
        cr_assert_not(run_row(MULTIPLY FIRST COMMIT PENDING("0"), 32 * warps, 0));
        cr_assert(strstr(ptx_fault(), format("a product of a warpgroup that has %u warps", warps)), "%s", ptx_fault());
    }
}

/* ---- who is ordered by a barrier in memory: the second warp stores what the first one loads; $x5: the other's word */
#define BEGIN_OF_TWO(arrivals)                                                                                         \
    "st.shared.b32 [$x3], $r9; xor.b32 $r2, $t, 32; mad.wide.u32 $x5, $r2, 4, $x2; @$p1 mbarrier.init.shared.b64 "     \
    "[$x1], " arrivals "; bar.sync 0; setp.ge.u32 $p2, $t, 32; @$p2 bra SECOND;\n"
#define LOAD "ld.shared.b32 $r1, [$x5];\n"
#define SECOND_WARP "bra END;\nSECOND: "
#define STORE "st.shared.b32 [$x3], $t;\n"
#define ARRIVE "mbarrier.arrive.shared.b64 _, [$x1];\n"
#define WAIT_OF(parity) "V: mbarrier.try_wait.parity.shared.b64 $p3, [$x1], " parity "; @!$p3 bra V;\n"
#define END "END:"
#define UNTIL_END SECOND_WARP STORE ARRIVE END
#define SIGNAL "bar.arrive 1, 64;\n" /* the second warp goes on: behind the first, not before it */
#define SIGNALLED "bar.sync 1, 64;\n"
#define GLOBAL_LOAD "ld.global.b32 $r1, [$o+128];\n"
#define GLOBAL_STORE "add.u32 $r1, $t, 100; st.global.b32 [$o], $r1;\n"
#define RELAXED(what) "mbarrier." what ".relaxed.cta.shared::cta.b64 "
static const Row orders[] = {
    {BEGIN_OF_TWO("32") WAIT LOAD UNTIL_END, NULL},
    {BEGIN_OF_TWO("32") LOAD WAIT UNTIL_END, "race: shared byte"},
    {BEGIN_OF_TWO("32") WAIT LOAD SECOND_WARP ARRIVE STORE END, "race: shared byte"},
    {BEGIN_OF_TWO("32") WAIT LOAD SECOND_WARP STORE RELAXED("arrive") "_, [$x1];" END, "race: shared byte"},
    {BEGIN_OF_TWO("32") "W: " RELAXED("try_wait.parity") "$p3, [$x1], 0; @!$p3 bra W;" LOAD UNTIL_END,
     "race: shared byte"},
    /* that a phase with the other parity has ended says nothing */
    {BEGIN_OF_TWO("32") WAIT_OF("1") SIGNAL LOAD SECOND_WARP SIGNALLED STORE ARRIVE END, "race: shared byte"},
    {BEGIN_OF_TWO("32") WAIT SIGNAL WAIT_OF("1") LOAD SECOND_WARP ARRIVE SIGNALLED STORE ARRIVE END, NULL},
    {BEGIN_OF_TWO("32") WAIT SIGNAL LOAD SECOND_WARP ARRIVE SIGNALLED STORE ARRIVE END, "race: shared byte"},
    /* an arrival is of one thread, and so is a wait */
    {BEGIN_OF_TWO("1") WAIT LOAD SECOND_WARP STORE "setp.eq.u32 $p4, $t, 40;\n@$p4 " ARRIVE END, "race: shared byte"},
    {BEGIN_OF_TWO("1") WAIT LOAD SECOND_WARP STORE "bar.warp.sync -1; setp.eq.u32 $p4, $t, 40;\n@$p4 " ARRIVE END,
     NULL},
    {BEGIN_OF_TWO("32") "@!$p1 bra PAST;\n" WAIT "PAST: " LOAD UNTIL_END, "race: shared byte"},
    {BEGIN_OF_TWO("32") "@!$p1 bra PAST;\n" WAIT "PAST: bar.warp.sync -1;\n" LOAD UNTIL_END, NULL},
    /* barriers of some threads of the block */
    {BEGIN_OF_TWO("32") SIGNALLED LOAD SECOND_WARP STORE ARRIVE SIGNALLED END, NULL},
    {BEGIN_OF_TWO("32") SIGNALLED LOAD SECOND_WARP SIGNAL STORE ARRIVE END, "race: shared byte"},
    {BEGIN_OF_TWO("32") SIGNALLED LOAD SECOND_WARP STORE SIGNAL ARRIVE END, NULL},
    {BEGIN_OF_TWO("32") SIGNAL LOAD SECOND_WARP STORE SIGNALLED ARRIVE END, "race: shared byte"},
    /* the same in global memory */
    {BEGIN_OF_TWO("32") WAIT GLOBAL_LOAD SECOND_WARP GLOBAL_STORE ARRIVE END, NULL},
    {BEGIN_OF_TWO("32") WAIT GLOBAL_LOAD SECOND_WARP ARRIVE GLOBAL_STORE END, "race: global byte"},
};
/* The same without any in memory: the third warp is at none of the barriers. */
static const Row parts[] = {
    {"st.shared.b32 [$x3], $r9; bar.sync 0;\n" STORE "setp.ge.u32 $p2, $t, 64; @$p2 bra END;\n" SIGNALLED
     "ld.shared.b32 $r1, [$x2+252];\n" END,
     NULL},
    {"st.shared.b32 [$x3], $r9; bar.sync 0;\n" STORE "setp.ge.u32 $p2, $t, 64; @$p2 bra END;\n" SIGNALLED
     "ld.shared.b32 $r1, [$x2+256];\n" END,
     "race: shared byte"},
};
Test(ptx_async, order_by_barriers_of_some_threads) { TRY(parts, 96); }
Test(ptx_async, order_by_barriers_in_memory) { TRY(orders, THREADS); }
/* What one thread knows of another it passes on: the third warp stores, the second waits for it, the first for that. */
#define BEGIN_OF_THREE                                                                                                 \
    "st.shared.b32 [$x3], $r9; mov.b32 $r2, 32; @$p1 mbarrier.init.shared.b64 [$x1], $r2; @$p1 "                       \
    "mbarrier.init.shared.b64 [$x1+8], $r2; bar.sync 0; setp.ge.u32 $p2, $t, 64; @$p2 bra THIRD; setp.ge.u32 $p2, "    \
    "$t, 32; @$p2 bra SECOND;\nU: mbarrier.try_wait.parity.shared.b64 $p3, [$x1+8], 0; @!$p3 bra U; ld.shared.b32 "    \
    "$r1, [$x3+256]; bra END;\nSECOND: "
#define THIRD_WARP "mbarrier.arrive.shared.b64 _, [$x1+8]; bra END;\nTHIRD: "
static const Row chains[] = {
    {BEGIN_OF_THREE WAIT THIRD_WARP STORE ARRIVE END, NULL},
    {BEGIN_OF_THREE THIRD_WARP STORE ARRIVE END, "race: shared byte"},
    {BEGIN_OF_THREE WAIT_OF("1") SIGNAL THIRD_WARP SIGNALLED STORE ARRIVE END, "race: shared byte"},
};
Test(ptx_async, order_by_several_barriers) { TRY(chains, 96); }

/* ---- copies and products against threads */
#define ASK EXPECT("256") COPY
#define FILL "st.shared.b32 [$x3], $r9;\n"
#define SHOW "fence.proxy.async.shared::cta;\n"
#define MEET "bar.sync 0;\n"
#define SOME(condition) "setp." condition ";\n@$p2 "
static const Row against_copies[] = {
    {FILL SHOW OPEN ASK WAIT READ, NULL},
    {FILL SHOW OPEN ASK READ WAIT, "race: shared byte"},
    {FILL SHOW OPEN ASK "setp.lt.u32 $p2, $t, 32; @$p2 bra PAST;\n" WAIT "PAST:" READ, "race: shared byte"},
    {FILL SHOW OPEN ASK FILL WAIT, "race: shared byte"},
    {FILL SHOW OPEN ASK MEET READ WAIT, "race: shared byte"},
    {FILL SHOW OPEN ASK COPY_OF("$x2+128", "$x9", "256") WAIT, "race: shared byte"},
    /* once more to the same place, behind those who have read, or not */
    {OPEN ASK WAIT "ld.shared.b32 $r1, [$x3];\n" ASK WAIT_OF("1"), "race: shared byte"},
    {OPEN ASK WAIT "ld.shared.b32 $r1, [$x3];\n" MEET ASK WAIT_OF("1") READ, NULL},
    /* a fence of who wrote, or of who knows of it */
    {FILL OPEN ASK WAIT, "no fence.proxy.async is between"},
    {FILL OPEN SHOW ASK WAIT READ, NULL},
    {FILL SOME("lt.u32 $p2, $t, 32") SHOW OPEN ASK WAIT, "was written by thread 32, and no fence.proxy.async"},
    {FILL SOME("ge.u32 $p2, $t, 32") SHOW OPEN ASK WAIT, "was written by thread 0, and no fence.proxy.async"},
    {FILL MEET "@$p1 " SHOW OPEN ASK WAIT READ, NULL},
    {FILL MEET SOME("eq.u32 $p2, $t, 50") SHOW OPEN ASK WAIT READ, NULL},
    {FILL MEET OPEN SOME("eq.u32 $p2, $t, 50") SHOW ASK WAIT READ, "no fence.proxy.async is between"},
    /* so it is for the barrier */
    {INIT("1") MEET SOME("eq.u32 $p2, $t, 50") SHOW ASK WAIT, "no fence shows the mbarrier"},
    {INIT("1") MEET SOME("eq.u32 $p2, $t, 50") SHOW MEET ASK WAIT READ, NULL},
    {INIT("1") SOME("eq.u32 $p2, $t, 50") SHOW MEET ASK WAIT READ, "no fence shows the mbarrier"},
};
Test(ptx_async, copies_against_threads) { TRY(against_copies, THREADS); }

#define OVERWRITE(at) "@$p1 st.shared.b32 [$x2+" at "], $r9;\n"
#define MULTIPLIED FIRST COMMIT PENDING("0")
static const Row against_products[] = {
    {MULTIPLY MULTIPLIED OVERWRITE("0"), NULL},
    {MULTIPLY FIRST COMMIT OVERWRITE("0") PENDING("0"), "was read by a product of warp 0"},
    {MULTIPLY FIRST COMMIT MEET OVERWRITE("0") PENDING("0"), "was read by a product of warp 0"},
    {MULTIPLY FIRST COMMIT SECOND COMMIT PENDING("1") OVERWRITE("0") PENDING("0"), "was read by a product of warp 0"},
    {MULTIPLY MULTIPLIED OVERWRITE("2048") "@$p1 " SHOW, "race: shared byte"},
    {MULTIPLY MULTIPLIED MEET OVERWRITE("2048"), NULL},
    {MULTIPLY OVERWRITE("2048") MEET MULTIPLIED, "no fence.proxy.async is between"},
    {MULTIPLY OVERWRITE("2048") "@$p1 " SHOW MEET MULTIPLIED, NULL},
    {MULTIPLY OVERWRITE("2048") "@!$p1 " SHOW MEET MULTIPLIED, "no fence.proxy.async is between"},
    {MULTIPLY OVERWRITE("2048") MEET SHOW MULTIPLIED, NULL},
    {MULTIPLY OVERWRITE("2048") MEET SOME("lt.u32 $p2, $t, 32") SHOW MULTIPLIED, "no fence.proxy.async is between"},
    {OPEN MULTIPLY MULTIPLIED ASK WAIT, NULL},
    {OPEN MULTIPLY MULTIPLIED EXPECT("256") COPY_OF("$x2+256", "$x9", "256") WAIT, "race: shared byte"},
    {OPEN MULTIPLY MULTIPLIED MEET EXPECT("256") COPY_OF("$x2+256", "$x9", "256") WAIT, NULL},
    {OPEN MULTIPLY FIRST COMMIT MEET ASK PENDING("0") WAIT, "was read by a product of warp"},
    {OPEN MULTIPLY MEET ASK MULTIPLIED WAIT, "race: shared byte"},
    {OPEN MULTIPLY MEET ASK WAIT MULTIPLIED, NULL},
};
Test(ptx_async, products_against_threads) { TRY(against_products, GROUP); }
