#pragma once

#include "common.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)
#define GGML_CUDA_PACKED_AVAILABLE 1
#else
#define GGML_CUDA_PACKED_AVAILABLE 0
#endif

// Weights in the order in which the int8 matrix units take them, for decoding with 1 to 8 (by passes: 32) columns.
// More columns go through mul_mat_q, whose tile loaders for packed matrices are in packed-mmq.cuh.
//
// A buffer type of its own holds them. A tensor in such a buffer is packed if `ggml_cuda_packed_supports` says so,
// and as in the file otherwise: the layout follows from type and shape alone, there is no flag. Packing moves bits and
// loses none, so reading a tensor back gives the file's bytes.
//
// Offered to the loader (ggml_backend_dev_get_extra_bufts) where the chip is Ampere or later, unless GGML_CUDA_PACKED=0.

static constexpr int GGML_CUDA_PACKED_PASS = 8;  // columns of one launch

struct ggml_cuda_packed_counts {
    // Matrix products that were evaluated or captured: by columns; all others, through mul_mat_q or unpacked.
    uint64_t columns_1, columns_2_8, columns_9_32, wide;
    uint64_t tensors, bytes;                                  // packed so far
};

bool ggml_backend_buft_is_cuda_packed(ggml_backend_buffer_type_t buft);

// Null-terminated list of one, or an empty one.
ggml_backend_buffer_type_t * ggml_backend_cuda_packed_extra_bufts(ggml_backend_dev_t dev, int device);

// Type and shape are of the kind that this buffer type packs.
bool ggml_cuda_packed_supports(const ggml_tensor * t);

// The tensor's bytes are packed.
bool ggml_cuda_is_packed(const ggml_tensor * t);

// Whether the device may run `op`, which has a source in a packed buffer.
bool ggml_cuda_packed_supports_op(const ggml_tensor * op);

// Whether src0 (packed) times src1 can be fused with a bias or a gate: as many columns as one pass takes.
bool ggml_cuda_packed_can_fuse(const ggml_tensor * op);

// Columns of an activation tensor, and their distance in floats; 0 where they lie in no row.
int64_t ggml_cuda_packed_columns(const ggml_tensor * t);
int64_t ggml_cuda_packed_stride(const ggml_tensor * t);

// packed::Format of a type, -1 where it has none.
int ggml_cuda_packed_format(ggml_type type);

// dst = src0 (packed) x src1. False, with nothing done, where the columns are too many or lie too oddly.
bool ggml_cuda_mul_mat_packed(ggml_backend_cuda_context & ctx, const ggml_tensor * src0, const ggml_tensor * src1,
    ggml_tensor * dst, const ggml_cuda_mm_fusion_args_host * fusion);

// The file's layout, with the padding behind it that mul_mat_q reads.
size_t ggml_cuda_packed_native_size(const ggml_tensor * t);
void   ggml_cuda_packed_unpack(const ggml_tensor * t, void * native, cudaStream_t stream);

// As above without the padding, and its inverse into t->data.
void ggml_cuda_packed_unpack_bytes(const ggml_tensor * t, void * native, cudaStream_t stream);
void ggml_cuda_packed_pack(const ggml_tensor * t, const void * native, cudaStream_t stream);

// To be called before a graph is evaluated: quantised activations are not kept from one evaluation to the next.
void ggml_cuda_packed_new_graph();

void ggml_cuda_packed_get_counts(ggml_cuda_packed_counts * counts);

void ggml_cuda_packed_count_product(int64_t columns);
void ggml_cuda_packed_count_wide();
void ggml_cuda_packed_count_tensor(size_t size);
