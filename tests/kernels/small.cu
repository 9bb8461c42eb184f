// Two kernels for the tests of what compilers say: one with local memory, one a template.
#ifdef __HIP__
#include <hip/hip_runtime.h>
#endif

extern "C" __global__ void __launch_bounds__(256) add_up(const float *x, float *y) {
    __shared__ float held[256];
    held[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < 256; ++i) sum += held[i];
        y[blockIdx.x] = sum;
    }
}

template <int N> __global__ void scale(float *x) { x[threadIdx.x] *= N; }
template __global__ void scale<4>(float *);
