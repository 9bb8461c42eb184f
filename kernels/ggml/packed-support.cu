// Which matrices are packed, which operations may take them, and what was counted.
#include "packed.cuh"

#include "ggml-backend-impl.h"
#include "packed-layout.cuh"

#include <atomic>

static std::atomic<uint64_t> products[3], wide, tensors, bytes;

void ggml_cuda_packed_count_product(int64_t columns) {
    products[columns == 1 ? 0 : columns <= GGML_CUDA_PACKED_PASS ? 1 : 2]++;
}
void ggml_cuda_packed_count_wide() { wide++; }
void ggml_cuda_packed_count_tensor(size_t size) { tensors++, bytes += size; }

void ggml_cuda_packed_get_counts(ggml_cuda_packed_counts * c) {
    *c = { products[0], products[1], products[2], wide, tensors, bytes };
}

int ggml_cuda_packed_format(const ggml_type type) {
    switch (type) {
        case GGML_TYPE_Q8_0: return packed::Q8_0;
        case GGML_TYPE_Q6_K: return packed::Q6_K;
        case GGML_TYPE_Q5_K: return packed::Q5_K;
        case GGML_TYPE_Q4_K: return packed::Q4_K;
        default:             return -1;
    }
}

bool ggml_cuda_packed_supports(const ggml_tensor * t) {
    return ggml_cuda_packed_format(t->type) >= 0 && t->ne[2] == 1 && t->ne[3] == 1 &&
        t->ne[1] % packed::TILE_ROWS == 0 && t->ne[0] % packed::TILE_COLS == 0 && ggml_is_contiguous(t);
}

bool ggml_cuda_is_packed(const ggml_tensor * t) {
    return t->view_src == nullptr && t->buffer && ggml_backend_buft_is_cuda_packed(t->buffer->buft) &&
        ggml_cuda_packed_supports(t);
}

int64_t ggml_cuda_packed_columns(const ggml_tensor * t) { return t->ne[1] * t->ne[2] * t->ne[3]; }

int64_t ggml_cuda_packed_stride(const ggml_tensor * t) {
    if (t->type != GGML_TYPE_F32 || t->nb[0] != sizeof(float)) {
        return 0;
    }
    const bool in_a_row = (t->ne[2] == 1 && t->ne[3] == 1) ||
        (t->ne[3] == 1 && t->ne[1] == 1) ||  // one token of each sequence: recurrent layers
        (t->nb[2] == t->nb[1] * t->ne[1] && (t->ne[3] == 1 || t->nb[3] == t->nb[2] * t->ne[2]));
    if (!in_a_row) {
        return 0;
    }
    const size_t distance = t->ne[1] > 1 || t->ne[2] == 1 ? t->nb[1] : t->nb[2];
    return distance % sizeof(float) == 0 ? int64_t(distance / sizeof(float)) : 0;
}

bool ggml_cuda_packed_can_fuse(const ggml_tensor * op) {
    return op->op == GGML_OP_MUL_MAT && ggml_cuda_is_packed(op->src[0]) &&
        ggml_cuda_packed_columns(op->src[1]) <= GGML_CUDA_PACKED_PASS && ggml_cuda_packed_stride(op->src[1]) > 0 &&
        ggml_cuda_packed_stride(op) > 0;
}

bool ggml_cuda_packed_supports_op(const ggml_tensor * op) {
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        const ggml_tensor * src = op->src[i];
        if (!src || !src->buffer || !ggml_backend_buft_is_cuda_packed(src->buffer->buft)) {
            continue;
        }
        const ggml_tensor * root = src->view_src ? src->view_src : src;
        if (!ggml_cuda_packed_supports(root)) {
            // As in the file. The loader, which asks with an empty buffer, is sent to the default buffer type.
            if (ggml_backend_buffer_get_size(src->buffer) == 0) {
                return false;
            }
            continue;
        }
        switch (op->op) {
            case GGML_OP_NONE:
            case GGML_OP_VIEW:
            case GGML_OP_RESHAPE:
            case GGML_OP_PERMUTE:
            case GGML_OP_TRANSPOSE:
                break;
            case GGML_OP_MUL_MAT:
                if (i != 0 || src != root || op->type != GGML_TYPE_F32 || op->src[1]->type != GGML_TYPE_F32) {
                    return false;
                }
                break;
            default:
                return false;
        }
    }
    return true;
}
