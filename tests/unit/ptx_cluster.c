/* Clusters: blocks of one that write to each other's shared memory, rightly and wrongly. Two clusters of four blocks of
   64 threads; a row is a body in which $r1 is the rank, $r2 that of the next block, $x1 the thread's word in shared
   memory and $x2 the same in the next block. What a thread has in $r3 at the end goes to its word. */
#include "ptx_kernel.h"

enum { RANKS = 4, THREADS = 64, BLOCKS = 2 * RANKS, WORDS = BLOCKS * THREADS };
typedef struct {
    const char *body, *says; /* says: the fault, or NULL */
} Row;
#define BEGIN_ROW                                                                                                      \
    ".visible .entry k(.param .u64 out) .reqntid 64 .explicitcluster .reqnctapercluster 4 {\n" REGISTERS               \
    ".shared .b32 s[64]; mov.u32 $t, %tid.x; mov.u32 $r1, %cluster_ctarank; add.u32 $r2, $r1, 1; and.b32 $r2, $r2, "   \
    "3;\nmov.u64 $x0, s; mad.wide.u32 $x1, $t, 4, $x0; mapa.shared::cluster.u64 $x2, $x1, $r2;\n"                      \
    "mad.lo.u32 $r4, $r1, 100, $t; mov.u32 $r3, 0;\n"
#define END_ROW                                                                                                        \
    "mov.u32 $r5, %ctaid.x; mad.lo.u32 $r5, $r5, 64, $t; ld.param.u64 $o, [out]; mad.wide.u32 $o, $r5, 4, $o;\n"       \
    "st.global.b32 [$o], $r3; ret; }"
#define MEET "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
#define GIVE "st.shared::cluster.b32 [$x2], $r4;\n"
#define TAKE "ld.shared.b32 $r3, [$x1];\n"

static bool run(const char *body, int order, uint32_t blocks, uint32_t *words) {
    char text[KERNEL_TEXT];
    snprintf(text, sizeof text, "%s%s%s%s", HEAD, BEGIN_ROW, body, END_ROW);
    PtxModule *m = loaded(text);
    uint64_t at = ptx_alloc(WORDS * sizeof *words);
    const void *params[] = {&at};
    ptx_options = (PtxOptions){.races = 3, .uninitialised = true, .order = order};
    bool good = ptx_launch(ptx_function(m, "k"), (PtxDim3){blocks, 1, 1}, (PtxDim3){THREADS, 1, 1}, 0, params);
    ptx_options = (PtxOptions){0};
    memcpy(words, ptx_host(at, WORDS * sizeof *words), WORDS * sizeof *words);
    ptx_free(at);
    ptx_unload(m);
    return good;
}
Test(ptx_cluster, neighbours) {
    static uint32_t words[WORDS];
    for (int order = 0; order < 3; order++) {
        cr_assert(run(MEET GIVE MEET TAKE, order, BLOCKS, words), "%s", ptx_fault());
        for (uint32_t k = 0; k < WORDS; k++) {
            uint32_t rank = k / THREADS % RANKS, before = (rank + RANKS - 1) % RANKS;
            cr_assert_eq(words[k], 100 * before + k % THREADS);
        }
    }
}
static const Row rows[] = {
    {"st.shared.b32 [$x1], $r4; bar.sync 0; " TAKE MEET, NULL},
    {"barrier.cluster.arrive.aligned; st.shared.b32 [$x1], $r4; barrier.cluster.wait.aligned; " TAKE, NULL},
    {GIVE MEET TAKE MEET GIVE MEET, NULL},
    {"st.shared.b32 [$x1], $r4; bar.sync 0; " GIVE MEET, "race: shared byte"},
    {GIVE MEET TAKE GIVE MEET, "race: shared byte"},
    {TAKE MEET, "are read and were never written"},
    {"barrier.cluster.wait.aligned;", "it has not arrived at the cluster's barrier"},
    {"barrier.cluster.arrive.aligned; barrier.cluster.arrive.aligned;",
     "it has arrived at the cluster's barrier already"},
    {"setp.eq.u32 $p1, $r1, 0; @$p1 bra OUT; " MEET "OUT: mov.u32 $r3, 1;", "wait at barrier"},
    {"mov.u32 $r2, 4; mapa.shared::cluster.u64 $x2, $x1, $r2;", "block 4 of a cluster of 4"},
    {"st.shared::cluster.b32 [$x2+256], $r4; st.shared::cluster.b32 [$x2+1024], $r4;", "are not in the 1024 bytes"},
};
Test(ptx_cluster, rows) {
    static uint32_t words[WORDS];
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int order = 0; order < 2; order++) {
            bool good = run(rows[k].body, order, BLOCKS, words);
            cr_expect(good == !rows[k].says && (good || strstr(ptx_fault(), rows[k].says)), "%s\norder %d: %s",
                      rows[k].body, order, good ? "nothing is found" : ptx_fault());
        }
    cr_assert(!run(MEET, 0, BLOCKS - 1, words) && strstr(ptx_fault(), "in clusters of 4"));
}
