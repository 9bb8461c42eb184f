// The file's layout to the packed one and back, on the device: when a tensor is written or read, and where a product has
// columns that lie in no row. Every bit is kept.
#include "packed.cuh"

#include "packed-layout.cuh"

// grid: (row tiles, superblocks). A block of threads packs one tile.
static __global__ void packed_pack(const uint8_t * native, uint8_t * out, const int format) {
    const int tiles = gridDim.x, superblocks = gridDim.y, bytes = packed::tile_bytes(format);
    const int64_t stride = int64_t(superblocks) * packed::native_bytes(format);
    const uint8_t * in = native + blockIdx.x * packed::TILE_ROWS * stride + blockIdx.y * packed::native_bytes(format);
    uint8_t * tile = out + packed::tile_index(blockIdx.x, tiles, blockIdx.y, superblocks) * bytes;
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) {
        tile[i] = packed::packed_byte(format, in, stride, i);
    }
}

// The inverse. Rows of a superblock are aligned to two bytes.
template <int FORMAT>
static __global__ void packed_unpack(const uint8_t * in, uint8_t * native) {
    constexpr int BYTES = packed::tile_bytes(FORMAT), ROW = packed::native_bytes(FORMAT);
    __shared__ uint4 staged[BYTES / 16];
    const int tiles = gridDim.x, superblocks = gridDim.y;
    const uint4 * from = reinterpret_cast<const uint4 *>(
        in + packed::tile_index(blockIdx.x, tiles, blockIdx.y, superblocks) * BYTES);
    for (int i = threadIdx.x; i < BYTES / 16; i += blockDim.x) {
        staged[i] = from[i];
    }
    __syncthreads();
    const uint8_t * tile = reinterpret_cast<const uint8_t *>(staged);
    const int64_t stride = int64_t(superblocks) * ROW;
    for (int i = threadIdx.x; i < BYTES / 2; i += blockDim.x) {
        const int row = i / (ROW / 2), byte = i % (ROW / 2) * 2;
        uint8_t * to = native + (blockIdx.x * packed::TILE_ROWS + row) * stride + int64_t(blockIdx.y) * ROW + byte;
        *reinterpret_cast<uint16_t *>(to) = uint16_t(
            packed::native_byte(FORMAT, tile, row, byte) | packed::native_byte(FORMAT, tile, row, byte + 1) << 8);
    }
}

template <int FORMAT> static void unpack(const ggml_tensor * t, void * native, cudaStream_t stream) {
    const dim3 grid(t->ne[1] / packed::TILE_ROWS, t->ne[0] / packed::TILE_COLS);
    packed_unpack<FORMAT><<<grid, 128, 0, stream>>>((const uint8_t *) t->data, (uint8_t *) native);
}

void ggml_cuda_packed_pack(const ggml_tensor * t, const void * native, cudaStream_t stream) {
    const dim3 grid(t->ne[1] / packed::TILE_ROWS, t->ne[0] / packed::TILE_COLS);
    packed_pack<<<grid, 256, 0, stream>>>(
        (const uint8_t *) native, (uint8_t *) t->data, ggml_cuda_packed_format(t->type));
    CUDA_CHECK(cudaGetLastError());
}

void ggml_cuda_packed_unpack_bytes(const ggml_tensor * t, void * native, cudaStream_t stream) {
    switch (ggml_cuda_packed_format(t->type)) {
        case packed::Q8_0: unpack<packed::Q8_0>(t, native, stream); break;
        case packed::Q6_K: unpack<packed::Q6_K>(t, native, stream); break;
        case packed::Q5_K: unpack<packed::Q5_K>(t, native, stream); break;
        default:           unpack<packed::Q4_K>(t, native, stream); break;
    }
    CUDA_CHECK(cudaGetLastError());
}

size_t ggml_cuda_packed_native_size(const ggml_tensor * t) {
    const int64_t over = t->ne[0] % MATRIX_ROW_PADDING;
    return ggml_nbytes(t) + (over ? ggml_row_size(t->type, MATRIX_ROW_PADDING - over) : 0);
}

void ggml_cuda_packed_unpack(const ggml_tensor * t, void * native, cudaStream_t stream) {
    ggml_cuda_packed_unpack_bytes(t, native, stream);
    const size_t bytes = ggml_nbytes(t), all = ggml_cuda_packed_native_size(t);
    if (all > bytes) {
        CUDA_CHECK(cudaMemsetAsync((char *) native + bytes, 0, all - bytes, stream));
    }
}
