/* Windows that move over an array, for reductions over windows and convolutions. */
#ifndef JAXCC_WINDOW_H
#define JAXCC_WINDOW_H
#include "../build.h"

/* By axis; 1 and no padding are the defaults. The elements of the array are spread `base` apart, with `low` and `high`
   more (negative: fewer) around them. */
typedef struct {
    uint32_t rank;
    Dim window[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK], base[MAX_RANK], low[MAX_RANK], high[MAX_RANK];
} Windows;

/* The n entries of a parameter's list; `otherwise` for all of them if it is missing. */
void read_extents(const Eqn *, ParamKey, uint32_t n, Dim otherwise, Dim *out);
/* x as the windows read it: its elements spread, with `value` around and between them. */
Val b_spread_out(Builder *, Val x, const Windows *, Val value);
/* The windows over the result of b_spread_out, along the n listed axes: the result has the axes of x, then one for each
   window. */
Val b_windows(Builder *, Val x, const Windows *, uint32_t n, const int64_t *axes);

#endif
