/* Linear algebra with large matrices on GPUs, by NVIDIA's cuSOLVER and cuBLAS where they are installed. Each function
   is called as jaxcc_rt_cuda_host is, which computes what they do not: small matrices, or without these libraries. */
#ifndef JAXCC_CUDA_SOLVER_H
#define JAXCC_CUDA_SOLVER_H
#include "cuda.h"

enum { JAXCC_RT_SOLVER_LEAST = 128 }; /* rows or columns: fewer stay on the host */

typedef void jaxcc_rt_cuda_solver(jaxcc_rt_heap *, jaxcc_rt_function *host, void *const *arrays, const int64_t *bytes,
                                  int64_t n_in, int64_t n_out, const int64_t *sizes);
#define JAXCC_RT_BY_TYPE(f) f##_f32, f##_f64, f##_c64, f##_c128
jaxcc_rt_cuda_solver JAXCC_RT_BY_TYPE(jaxcc_rt_cuda_cholesky), JAXCC_RT_BY_TYPE(jaxcc_rt_cuda_lu),
    JAXCC_RT_BY_TYPE(jaxcc_rt_cuda_geqrf), JAXCC_RT_BY_TYPE(jaxcc_rt_cuda_orgqr),
    JAXCC_RT_BY_TYPE(jaxcc_rt_cuda_triangular);
jaxcc_rt_cuda_solver jaxcc_rt_cuda_eigh, jaxcc_rt_cuda_svd;

#endif
