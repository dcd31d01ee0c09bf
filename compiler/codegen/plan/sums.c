#include "sums.h"

uint32_t wide_values(Dtype d) { return d == DT_f32 ? 1 : d == DT_f64 ? 2 : 0; }
uint32_t wide_bytes(Dtype d, uint32_t lanes) { return 8 * wide_values(d) * lanes; }

void sum_blocks(Types *ts, const Dim *turns, uint32_t n, int64_t most, Dim *block) {
    Dim inner = 1; /* iterations of the innermost loop in one of loop i */
    for (uint32_t i = n; i-- > 0;) {
        Dim all = dim_mul(ts, inner, turns[i]);
        block[i] = 0;
        if (!dim_is_const(all) || all > most) block[i] = dim_max(ts, dim_floordiv(ts, most, dim_max(ts, inner, 1)), 1);
        if (block[i] && dim_is_const(block[i]) && dim_is_const(turns[i])) { /* equal ones */
            Dim blocks = (turns[i] + block[i] - 1) / block[i];
            if (blocks) block[i] = (turns[i] + blocks - 1) / blocks;
        }
        inner = dim_is_const(all) && all > most ? most + 1 : all;
    }
}
