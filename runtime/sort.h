/* The order of elements as sort.c takes it, two numbers per operand: bytes of an element, and one of these, or the bits of
   infinity of a floating-point type: zeros are equal whatever their sign, NaN is last. */
#ifndef JAXCC_SORT_H
#define JAXCC_SORT_H
enum { ORDER_UNSIGNED, ORDER_SIGNED, ORDER_TOTAL /* sign and magnitude, as IEEE 754's totalOrder */ };
#endif
