/* Kernels by hand, for tests without the compiler. Each takes one parameter by value, a struct of 8-byte words. */
#ifndef KERNELS_H
#define KERNELS_H

/* VERSION and TARGET as text: "7.0", "sm_80" */
#define KERNELS(VERSION, TARGET)                                                                                       \
    ".version " VERSION "\n.target " TARGET                                                                            \
    "\n.address_size 64\n" KERNEL_AXPY KERNEL_LOOKUP KERNEL_COUNT KERNEL_REVERSE KERNEL_FAULT KERNEL_TURN
/* One that sets a condition, for drivers that have them. */
#define KERNELS_LOOP ".version 7.0\n.target sm_80\n.address_size 64\n" KERNEL_LOOP

/* i = block * threads + thread; ends the thread if i >= n, which is in %rd9 */
#define KERNEL_INDEX                                                                                                   \
    "  mov.u32 %r1, %ctaid.x;\n  mov.u32 %r2, %ntid.x;\n  mov.u32 %r3, %tid.x;\n"                                      \
    "  mad.lo.s32 %r4, %r1, %r2, %r3;\n  cvt.u64.u32 %rd0, %r4;\n"                                                     \
    "  setp.ge.s64 %p1, %rd0, %rd9;\n  @%p1 bra DONE;\n"
#define KERNEL_REGISTERS "  .reg .b64 %rd<20>;\n  .reg .b32 %r<20>;\n  .reg .f32 %f<10>;\n  .reg .pred %p<4>;\n"

/* {x, y, out, n, a}: out[i] = *a * x[i] + y[i] in f32 */
#define KERNEL_AXPY                                                                                                    \
    ".visible .entry axpy(.param .align 8 .b8 axpy_param_0[40])\n{\n" KERNEL_REGISTERS                                 \
    "  ld.param.u64 %rd9, [axpy_param_0+24];\n" KERNEL_INDEX                                                           \
    "  ld.param.u64 %rd1, [axpy_param_0];\n  ld.param.u64 %rd2, [axpy_param_0+8];\n"                                   \
    "  ld.param.u64 %rd3, [axpy_param_0+16];\n  ld.param.u64 %rd4, [axpy_param_0+32];\n"                               \
    "  shl.b64 %rd5, %rd0, 2;\n  add.s64 %rd6, %rd1, %rd5;\n  add.s64 %rd7, %rd2, %rd5;\n"                             \
    "  add.s64 %rd8, %rd3, %rd5;\n  ld.global.f32 %f1, [%rd6];\n  ld.global.f32 %f2, [%rd7];\n"                        \
    "  ld.global.f32 %f3, [%rd4];\n  fma.rn.f32 %f4, %f3, %f1, %f2;\n  st.global.f32 [%rd8], %f4;\n"                   \
    "DONE:\n  ret;\n}\n"
/* {table, out, n}: out[i] += table[i mod 16] in f32 */
#define KERNEL_LOOKUP                                                                                                  \
    ".visible .entry lookup(.param .align 8 .b8 lookup_param_0[24])\n{\n" KERNEL_REGISTERS                             \
    "  ld.param.u64 %rd9, [lookup_param_0+16];\n" KERNEL_INDEX                                                         \
    "  ld.param.u64 %rd1, [lookup_param_0];\n  ld.param.u64 %rd2, [lookup_param_0+8];\n"                               \
    "  and.b64 %rd3, %rd0, 15;\n  shl.b64 %rd3, %rd3, 2;\n  add.s64 %rd3, %rd1, %rd3;\n"                               \
    "  shl.b64 %rd4, %rd0, 2;\n  add.s64 %rd4, %rd2, %rd4;\n  ld.global.f32 %f1, [%rd3];\n"                            \
    "  ld.global.f32 %f2, [%rd4];\n  add.rn.f32 %f3, %f1, %f2;\n  st.global.f32 [%rd4], %f3;\n"                        \
    "DONE:\n  ret;\n}\n"
/* {turns, go, most}: ++*turns in s32, *go = *turns < most in u8; by one thread */
#define KERNEL_COUNT                                                                                                   \
    ".visible .entry count(.param .align 8 .b8 count_param_0[24])\n{\n" KERNEL_REGISTERS                               \
    "  ld.param.u64 %rd1, [count_param_0];\n  ld.param.u64 %rd2, [count_param_0+8];\n"                                 \
    "  ld.param.u32 %r3, [count_param_0+16];\n  ld.global.u32 %r1, [%rd1];\n  add.s32 %r2, %r1, 1;\n"                  \
    "  st.global.u32 [%rd1], %r2;\n  setp.lt.s32 %p1, %r2, %r3;\n  selp.u32 %r4, 1, 0, %p1;\n"                         \
    "  st.global.u8 [%rd2], %r4;\n  ret;\n}\n"
/* {x}: reverses 256 words in place, through dynamic shared memory; a block of 256 threads */
#define KERNEL_REVERSE                                                                                                 \
    ".extern .shared .align 16 .b8 room[];\n"                                                                          \
    ".visible .entry reverse(.param .align 8 .b8 reverse_param_0[8])\n{\n" KERNEL_REGISTERS                            \
    "  ld.param.u64 %rd1, [reverse_param_0];\n  mov.u32 %r1, %tid.x;\n  cvt.u64.u32 %rd2, %r1;\n"                      \
    "  shl.b64 %rd2, %rd2, 2;\n  add.s64 %rd3, %rd1, %rd2;\n  ld.global.u32 %r2, [%rd3];\n"                            \
    "  mov.u64 %rd4, room;\n  add.s64 %rd5, %rd4, %rd2;\n  st.shared.u32 [%rd5], %r2;\n  bar.sync 0;\n"                \
    "  sub.s64 %rd6, %rd4, %rd2;\n  ld.shared.u32 %r3, [%rd6+1020];\n  st.global.u32 [%rd3], %r3;\n  ret;\n}\n"
/* writes where there is no memory */
#define KERNEL_FAULT                                                                                                   \
    ".visible .entry fault()\n{\n" KERNEL_REGISTERS "  mov.u64 %rd1, 64;\n  mov.u32 %r1, 1;\n"                         \
    "  st.global.u32 [%rd1], %r1;\n  ret;\n}\n"
/* {turns, go, most, by}: *turns += by in s32 if *go, then *go = *turns < most in u8; by one thread */
#define KERNEL_TURN                                                                                                    \
    ".visible .entry turn(.param .align 8 .b8 turn_param_0[32])\n{\n" KERNEL_REGISTERS                                 \
    "  ld.param.u64 %rd1, [turn_param_0];\n  ld.param.u64 %rd2, [turn_param_0+8];\n"                                   \
    "  ld.param.u32 %r3, [turn_param_0+16];\n  ld.param.u32 %r5, [turn_param_0+24];\n"                                 \
    "  ld.global.u32 %r1, [%rd1];\n  ld.global.u8 %r6, [%rd2];\n  mul.lo.s32 %r5, %r5, %r6;\n"                         \
    "  add.s32 %r2, %r1, %r5;\n  st.global.u32 [%rd1], %r2;\n  setp.lt.s32 %p1, %r2, %r3;\n"                           \
    "  selp.u32 %r4, 1, 0, %p1;\n  st.global.u8 [%rd2], %r4;\n  ret;\n}\n"
/* {turns, most, handle}: ++*turns in s32, and sets the condition *turns < most */
#define KERNEL_LOOP                                                                                                    \
    ".extern .func cudaGraphSetConditional(.param .b64 a, .param .b32 b);\n"                                           \
    ".visible .entry loop(.param .align 8 .b8 loop_param_0[24])\n{\n" KERNEL_REGISTERS                                 \
    "  ld.param.u64 %rd1, [loop_param_0];\n  ld.param.u32 %r3, [loop_param_0+8];\n"                                    \
    "  ld.param.u64 %rd2, [loop_param_0+16];\n  ld.global.u32 %r1, [%rd1];\n  add.s32 %r2, %r1, 1;\n"                  \
    "  st.global.u32 [%rd1], %r2;\n  setp.lt.s32 %p1, %r2, %r3;\n  selp.u32 %r4, 1, 0, %p1;\n"                         \
    "  {\n  .param .b64 param0;\n  st.param.b64 [param0], %rd2;\n  .param .b32 param1;\n"                              \
    "  st.param.b32 [param1], %r4;\n  call.uni cudaGraphSetConditional, (param0, param1);\n  }\n  ret;\n}\n"

#endif
