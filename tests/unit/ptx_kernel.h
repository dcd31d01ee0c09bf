/* Kernels of tests: a body with registers of every kind, run on words in device memory. */
#ifndef PTX_KERNEL_H
#define PTX_KERNEL_H
#include "tests/gpu/ptx.h"
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL_TEXT = 1 << 14, ERROR_TEXT = 512 };
#define HEAD ".version 8.0\n.target sm_90a\n.address_size 64\n"
#define REGISTERS ".reg .pred $p<9>; .reg .b16 $h<9>; .reg .b32 $r<40>; .reg .b64 $x<20>; .reg .b32 $t; .reg .b64 $o;\n"
/* In $t: the thread; in $o: the address of the thread's words in `out`, `stride` bytes each. */
#define BEGIN_OF(stride, tid)                                                                                          \
    REGISTERS "mov.u32 $t, " tid ".x; ld.param.u64 $o, [out]; mad.wide.u32 $o, $t, " #stride ", $o;\n"
#define BEGIN(stride) BEGIN_OF(stride, "%tid")
#define FORMAT_BEGIN(stride) BEGIN_OF(stride, "%%tid") /* in the text of format() */
#define KERNEL(stride, body) HEAD ".visible .entry k(.param .u64 out) {\n" BEGIN(stride) body "ret; }\n"

static inline PtxModule *loaded(const char *text) {
    char error[ERROR_TEXT];
    PtxModule *m = ptx_load(text, error, sizeof error);
    cr_assert(m, "%s\n%s", error, text);
    return m;
}
/* One block of `threads`, whose argument is the address of `bytes`; they are copied in and out. Does it end well? */
static inline bool run_threads(const char *text, uint32_t threads, void *bytes, size_t n, uint32_t shared) {
    PtxModule *m = loaded(text);
    uint64_t at = ptx_alloc(n);
    const void *params[] = {&at};
    memcpy(ptx_host(at, n), bytes, n);
    ptx_mark_written(at, n);
    bool good = ptx_launch(ptx_function(m, "k"), (PtxDim3){1, 1, 1}, (PtxDim3){threads, 1, 1}, shared, params);
    memcpy(bytes, ptx_host(at, n), n);
    ptx_free(at);
    ptx_unload(m);
    return good;
}
#define RUN(text, threads, array) cr_assert(run_threads(text, threads, array, sizeof(array), 0), "%s", ptx_fault())
__attribute__((format(printf, 1, 2))) static inline const char *format(const char *f, ...) {
    static char text[KERNEL_TEXT];
    va_list list;
    va_start(list, f);
    vsnprintf(text, sizeof text, f, list);
    va_end(list);
    return text;
}

#endif
