/* Calls with tensors of DLPack that are on a GPU. */
#include "cuda_driver.h"
#include "tensor.h"

static int32_t check(const jaxcc_rt_tensor *a) {
    DLDevice says = a->tensor->device;
    int ordinal;
    int32_t status = jaxcc_rt_cuda_open();
    if (!status) status = jaxcc_rt_cuda_gpu_of(a->data, &ordinal);
    if (status) return status;
    if (ordinal < 0) return jaxcc_rt_fail_tensor(a, "is not memory of a GPU");
    if (says.device_type == kDLCUDA && says.device_id != ordinal)
        return jaxcc_rt_fail_tensor(a, "has device id %d, but is memory of GPU %d", says.device_id, ordinal);
    return 0;
}
int32_t jaxcc_rt_dlpack_cuda(const jaxcc_program *p, DLTensor *const *in, DLTensor *const *out) {
    static const jaxcc_rt_memory gpu = {.usual = kDLCUDA, .also = kDLCUDAManaged, .align = 16, .check = check};
    return jaxcc_rt_dlpack_in(&gpu, p, in, out);
}
