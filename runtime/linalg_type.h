/* The types and operations for KIND (f32 0, f64 1, c64 2, c128 3): T the element type, R the real type, ACC the type of
   sums. */
#define ACC_R double
#if KIND % 2 == 0
#define R float
#define SQRT __builtin_sqrtf
#define SIGNBIT __builtin_signbitf
#define FABS __builtin_fabsf
#define EPS 0x1p-23f
#define FAR 0x1p40f   /* numbers in 1/FAR … FAR can be squared, */
#define SHIFT 0x1p90f /* others after multiplying or dividing by SHIFT */
#else
#define R double
#define SQRT __builtin_sqrt
#define SIGNBIT __builtin_signbit
#define FABS __builtin_fabs
#define EPS 0x1p-52
#define FAR 0x1p300
#define SHIFT 0x1p700
#endif
#if KIND < 2
#define T R
#define ACC double
#define RE(x) (x)
#define IM(x) ((R)0)
#define CONJ(x) (x)
#define DIV(x, y) ((x) / (y))
#define SIZE1 FABS
#define ABS FABS
#define NORM2(x) ((x) * (x))
#else
#define T R _Complex
#define ACC double _Complex
#define RE(x) (__real__(x))
#define IM(x) (__imag__(x))
#define CONJ(x) (~(x))
#define DIV(x, y) (KIND == 2 ? (T)div_c64((c64)(x), (c64)(y)) : (T)div_c128(x, y))
#define SIZE1(x) (FABS(RE(x)) + FABS(IM(x)))
#define NORM2(x) (RE(x) * RE(x) + IM(x) * IM(x))
#define ABS(x) (KIND == 2 ? (R)abs_c64((c64)(x)) : (R)abs_c128(x))
#endif
