/* Formats of floats: patterns and values belong together, and what is between two values goes to
   the nearer one. */
#include "type.h"
#include <criterion/criterion.h>
#include <math.h>

static const Dtype small[] = {DT_f4_e2m1fn,  DT_f8_e3m4,     DT_f8_e4m3, DT_f8_e4m3b11fnuz,
                              DT_f8_e4m3fn,  DT_f8_e4m3fnuz, DT_f8_e5m2, DT_f8_e5m2fnuz,
                              DT_f8_e8m0fnu, DT_f16,         DT_bf16};
#define each_small(d) for (const Dtype *d = small; d < small + sizeof small / sizeof *small; d++)

Test(float, every_value_is_its_own_pattern) {
    each_small(d) {
        const FloatFormat *f = &float_format[*d];
        for (uint32_t i = 0; i < 1u << dtype_info[*d].width; i++) {
            double x = float_decode(f, i);
            if (!isnan(x)) cr_assert_eq(float_encode(f, x), i, "%s %x", dtype_info[*d].name, i);
        }
    }
}
Test(float, ties_go_to_even_patterns) {
    each_small(d) {
        const FloatFormat *f = &float_format[*d];
        if (f->special == FLOAT_POWER) continue;
        for (uint32_t i = 0; i < float_most(f); i++) {
            double low = float_decode(f, i), high = float_decode(f, i + 1), middle = (low + high) / 2;
            cr_assert_eq(float_encode(f, middle), i + i % 2, "%s %x", dtype_info[*d].name, i);
            cr_assert_eq(float_encode(f, nextafter(middle, low)), i);
            cr_assert_eq(float_encode(f, nextafter(middle, high)), i + 1);
        }
    }
}
Test(float, beyond_the_largest) {
    const struct {
        Dtype d;
        double x;
        uint32_t bits;
    } rows[] = {
        {DT_f8_e5m2, 61439, 0x7b},       {DT_f8_e5m2, 61440, 0x7c},   {DT_f8_e5m2, -INFINITY, 0xfc},
        {DT_f8_e4m3fn, 464, 0x7e},       {DT_f8_e4m3fn, 464.1, 0x7f}, {DT_f8_e4m3fn, -INFINITY, 0xff},
        {DT_f8_e4m3fnuz, 247.9, 0x7f},   {DT_f8_e4m3fnuz, 248, 0x80}, {DT_f8_e4m3fnuz, -0.0, 0},
        {DT_f4_e2m1fn, 1e9, 7},          {DT_f4_e2m1fn, -1e9, 15},    {DT_f4_e2m1fn, NAN, 8},
        {DT_f8_e8m0fnu, 0x1.7p127, 254}, {DT_f8_e8m0fnu, 3e38, 255},  {DT_f8_e8m0fnu, 0, 255},
        {DT_f8_e8m0fnu, -1, 255},        {DT_f8_e8m0fnu, 1.5, 128},   {DT_f8_e8m0fnu, 0x1p-140, 0},
        {DT_f16, 65519, 0x7bff},         {DT_f16, 65520, 0x7c00},     {DT_bf16, 3.4e38, 0x7f80},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(float_encode(&float_format[rows[i].d], rows[i].x), rows[i].bits, "%s of %g",
                     dtype_info[rows[i].d].name, rows[i].x);
}
