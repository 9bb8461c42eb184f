// mul_mat_q with packed matrices.
#include "mmq.cuh"

#if GGML_CUDA_PACKED_AVAILABLE

template void mul_mat_q_case<GGML_TYPE_Q8_0, GGML_CUDA_PREC_PACKED>(ggml_backend_cuda_context &, const mmq_args &, cudaStream_t);
template void mul_mat_q_case<GGML_TYPE_Q6_K, GGML_CUDA_PREC_PACKED>(ggml_backend_cuda_context &, const mmq_args &, cudaStream_t);
template void mul_mat_q_case<GGML_TYPE_Q5_K, GGML_CUDA_PREC_PACKED>(ggml_backend_cuda_context &, const mmq_args &, cudaStream_t);
template void mul_mat_q_case<GGML_TYPE_Q4_K, GGML_CUDA_PREC_PACKED>(ggml_backend_cuda_context &, const mmq_args &, cudaStream_t);

void ggml_cuda_mul_mat_q_packed(ggml_backend_cuda_context & ctx, const mmq_args & args, cudaStream_t stream) {
    switch (args.type_x) {
        case GGML_TYPE_Q8_0: mul_mat_q_case<GGML_TYPE_Q8_0, GGML_CUDA_PREC_PACKED>(ctx, args, stream); break;
        case GGML_TYPE_Q6_K: mul_mat_q_case<GGML_TYPE_Q6_K, GGML_CUDA_PREC_PACKED>(ctx, args, stream); break;
        case GGML_TYPE_Q5_K: mul_mat_q_case<GGML_TYPE_Q5_K, GGML_CUDA_PREC_PACKED>(ctx, args, stream); break;
        case GGML_TYPE_Q4_K: mul_mat_q_case<GGML_TYPE_Q4_K, GGML_CUDA_PREC_PACKED>(ctx, args, stream); break;
        default:             GGML_ABORT("no packed layout of this type"); break;
    }
}

#else

void ggml_cuda_mul_mat_q_packed(ggml_backend_cuda_context &, const mmq_args &, cudaStream_t) {
    GGML_ABORT("no packed layout here");
}

#endif  // GGML_CUDA_PACKED_AVAILABLE
