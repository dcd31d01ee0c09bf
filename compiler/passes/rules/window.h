/* How windows move over an array, for the rules of reductions over windows and of convolutions. */
#ifndef JAXCC_WINDOW_H
#define JAXCC_WINDOW_H
#include "../build.h"

/* By axis; 1, and no padding, where the equation says nothing. The elements of the array come to stand `base` apart,
   with low and high more (negative: fewer) around them. */
typedef struct {
    uint32_t rank;
    Dim window[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK], base[MAX_RANK], low[MAX_RANK], high[MAX_RANK];
} Windows;

/* The list of a parameter, of n entries; `otherwise` in all of them where it is left out. */
void read_extents(const Eqn *, ParamKey, uint32_t n, Dim otherwise, Dim *out);
/* x as the windows find it: its elements apart, and `value` around and between them. */
Val b_spread_out(Builder *, Val x, const Windows *, Val value);
/* The windows of what b_spread_out gave, along the n axes that are listed: the axes of the result are those of x, then
   one of each window. */
Val b_windows(Builder *, Val x, const Windows *, uint32_t n, const int64_t *axes);

#endif
