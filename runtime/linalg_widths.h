/* One element type (KIND, V, LANES; see linalg_ops.h): code for a matrix at a time, and for LANES small ones or a large
   one at a time on three kinds of CPUs. */
#include "linalg_type.h"
#define J2(a, b) a##b
#define J1(a, b) J2(a, b)
#define N(f) J1(f##_, J1(V, SUFFIX))
#define PLAIN(f) J1(f##_, V) /* of one matrix, for any CPU */

#define W 1
#define SUFFIX
#include "linalg_small.h"
#define W LANES
#define SUFFIX _v2
#define WIDE 16
#include "linalg_blocks.h"
#include "linalg_small.h"
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define W LANES
#define SUFFIX _v3
#define WIDE 32
#include "linalg_blocks.h"
#include "linalg_small.h"
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,fma,prefer-vector-width=512")
#define W LANES
#define SUFFIX _v4
#define WIDE 64
#include "linalg_blocks.h"
#include "linalg_small.h"
#pragma GCC pop_options
#undef N
#undef PLAIN
#include "linalg_ops.h"
