// What differs between nvcc and hipcc, and nothing else: names of the runtime, dot products, shuffles, loads.
// Every kernel thinks in groups of 32 lanes; a wave of 64 on AMD holds two such groups.
#pragma once
#include <stdint.h>

#ifdef __HIP__
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#define cudaStream_t hipStream_t
#define cudaSuccess hipSuccess
#define cudaGetLastError hipGetLastError
#define cudaError_t hipError_t
#define __grid_constant__
#else
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define HAS_MMA 1
#else
#define HAS_MMA 0
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define HAS_BULK 1
#else
#define HAS_BULK 0
#endif

static constexpr int LANES = 32;

// What stands before it is issued before what stands behind it: a compiler for AMD else puts each use right behind its
// load, and a wait between them.
#if defined(__HIP_DEVICE_COMPILE__)
#define LOADS_FIRST() __builtin_amdgcn_sched_barrier(0)
#else
#define LOADS_FIRST()
#endif

__device__ __forceinline__ float shuffle_xor(float v, int mask) {
#ifdef __HIP__
    return __shfl_xor(v, mask, LANES);
#else
    return __shfl_xor_sync(0xffffffffu, v, mask, LANES);
#endif
}

__device__ __forceinline__ int shuffle_xor(int v, int mask) {
#ifdef __HIP__
    return __shfl_xor(v, mask, LANES);
#else
    return __shfl_xor_sync(0xffffffffu, v, mask, LANES);
#endif
}

__device__ __forceinline__ float group_sum(float v) {
#pragma unroll
    for (int m = LANES / 2; m > 0; m >>= 1) v += shuffle_xor(v, m);
    return v;
}

__device__ __forceinline__ float group_max(float v) {
#pragma unroll
    for (int m = LANES / 2; m > 0; m >>= 1) v = fmaxf(v, shuffle_xor(v, m));
    return v;
}

// The lower 24 bits of two ints: AMD multiplies whole words at a quarter of the rate.
__device__ __forceinline__ int product_24(int a, int b) {
#if defined(__HIP_DEVICE_COMPILE__)
    return __mul24(a, b);
#else
    return a * b;
#endif
}

// c + the sum of four products of signed bytes
__device__ __forceinline__ int dot4(int a, int b, int c) {
#if defined(__HIP_DEVICE_COMPILE__)
#if defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__)
    return __builtin_amdgcn_sdot4(a, b, c, false);
#else
#pragma unroll
    for (int i = 0; i < 4; ++i) c += int(int8_t(a >> (8 * i))) * int(int8_t(b >> (8 * i)));
    return c;
#endif
#elif defined(__CUDA_ARCH__)
    return __dp4a(a, b, c);
#else
    return c;
#endif
}

// Weights are read once: on NVIDIA they do not stay in the L1.
__device__ __forceinline__ uint4 load_once(const void *p) {
#ifdef __CUDA_ARCH__
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
#else
    return *reinterpret_cast<const uint4 *>(p);
#endif
}

#ifdef __CUDA_ARCH__
__device__ __forceinline__ uint2 load_once_8(const void *p) {
    uint2 v;
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
    return v;
}

__device__ __forceinline__ uint32_t load_once_4(const void *p) {
    uint32_t v;
    asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}
#endif

// The blocks of Q8_0 and Q6_K are aligned to two bytes only.
__device__ __forceinline__ int load_int_2(const uint8_t *p) {
    const uint16_t *h = reinterpret_cast<const uint16_t *>(p);
    return int(uint32_t(h[0]) | uint32_t(h[1]) << 16);
}

__device__ __forceinline__ int load_int(const void *p) { return *reinterpret_cast<const int *>(p); }

__device__ __forceinline__ float load_half(const void *p) {
    return __half2float(*reinterpret_cast<const __half *>(p));
}
