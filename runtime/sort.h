/* Sorting: the interface between runtime_call and sort.c. */
#ifndef JAXCC_SORT_H
#define JAXCC_SORT_H
/* The order of elements: one of these, or the bit pattern of infinity in a floating-point type, whose zeros are equal
   regardless of sign and whose NaNs come last. ORDER_TOTAL: sign and magnitude, as IEEE 754's totalOrder. */
enum { ORDER_UNSIGNED, ORDER_SIGNED, ORDER_TOTAL };

/* Rows of at most SHORT elements are sorted in groups of up to GROUP. A slot of scratch memory has, for each of the
   rows · extent elements of a group, rounded up to a multiple of 4: two records, and two positions of 4 bytes if
   positions are kept, as by top_k and by sorts of several operands. A record is as wide as the key, 4 or 8 bytes, or
   twice that with positions. */
enum { SHORT = 256, GROUP = 16 };

/* The functions, rt.h's jaxcc_rt_function:

   jaxcc_rt_sort    operands and results [rows, extent], scratch memory [slots, bytes]; stable. The first `keys`
                    operands are compared, in their order.
                    sizes: rows, extent, slots, bytes of a slot, operands, keys, then bytes and order of each operand
   jaxcc_rt_top_k   [rows, extent] → the first k of the order [rows, k], their positions [rows, k] of 4 bytes, scratch
                    memory
                    sizes: rows, extent, slots, bytes of a slot, k, whether the largest come first, bytes, order */
#endif
