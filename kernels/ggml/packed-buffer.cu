// The buffer type that holds packed matrices. It knows how tensors get in and out, and nothing of products.
#include "packed.cuh"

#include "ggml-backend-impl.h"
#include "ggml-cuda.h"

#include <cstdlib>
#include <mutex>
#include <string>

struct packed_buft_context {
    int         device;
    std::string name;
};

struct packed_buffer_context {
    int    device;
    void * data;
};

// The file's layout of one tensor, for as long as it is written or read.
struct packed_staging {
    void * data = nullptr;
    explicit packed_staging(size_t size) { CUDA_CHECK(cudaMalloc(&data, size)); }
    ~packed_staging() { CUDA_CHECK(cudaFree(data)); }
};

static void packed_buffer_free(ggml_backend_buffer_t buffer) {
    packed_buffer_context * ctx = (packed_buffer_context *) buffer->context;
    ggml_cuda_set_device(ctx->device);
    CUDA_CHECK(cudaFree(ctx->data));
    delete ctx;
}

static void * packed_buffer_base(ggml_backend_buffer_t buffer) {
    return ((packed_buffer_context *) buffer->context)->data;
}

static ggml_status packed_buffer_init_tensor(ggml_backend_buffer_t buffer, ggml_tensor * t) {
    if (t->view_src || ggml_cuda_packed_supports(t)) {
        return GGML_STATUS_SUCCESS;
    }
    const size_t bytes = ggml_nbytes(t), all = ggml_backend_buft_get_alloc_size(buffer->buft, t);
    if (all > bytes) {
        ggml_cuda_set_device(((packed_buffer_context *) buffer->context)->device);
        CUDA_CHECK(cudaMemset((char *) t->data + bytes, 0, all - bytes));
    }
    return GGML_STATUS_SUCCESS;
}

static void packed_buffer_set_tensor(
        ggml_backend_buffer_t buffer, ggml_tensor * t, const void * data, size_t offset, size_t size) {
    ggml_cuda_set_device(((packed_buffer_context *) buffer->context)->device);
    cudaStream_t stream = cudaStreamPerThread;
    const ggml_tensor * root = t->view_src ? t->view_src : t;
    if (!ggml_cuda_packed_supports(root)) {
        CUDA_CHECK(cudaMemcpyAsync((char *) t->data + offset, data, size, cudaMemcpyHostToDevice, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
        return;
    }
    const size_t at = (char *) t->data - (char *) root->data + offset;
    packed_staging native(ggml_nbytes(root));
    const bool whole = at == 0 && size == ggml_nbytes(root);
    if (!whole) {
        ggml_cuda_packed_unpack_bytes(root, native.data, stream);
    }
    CUDA_CHECK(cudaMemcpyAsync((char *) native.data + at, data, size, cudaMemcpyHostToDevice, stream));
    ggml_cuda_packed_pack(root, native.data, stream);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    if (whole) {
        ggml_cuda_packed_count_tensor(size);
    }
}

static void packed_buffer_get_tensor(
        ggml_backend_buffer_t buffer, const ggml_tensor * t, void * data, size_t offset, size_t size) {
    ggml_cuda_set_device(((packed_buffer_context *) buffer->context)->device);
    cudaStream_t stream = cudaStreamPerThread;
    const ggml_tensor * root = t->view_src ? t->view_src : t;
    if (!ggml_cuda_packed_supports(root)) {
        CUDA_CHECK(cudaMemcpyAsync(data, (const char *) t->data + offset, size, cudaMemcpyDeviceToHost, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
        return;
    }
    const size_t at = (char *) t->data - (char *) root->data + offset;
    packed_staging native(ggml_nbytes(root));
    ggml_cuda_packed_unpack_bytes(root, native.data, stream);
    CUDA_CHECK(cudaMemcpyAsync(data, (const char *) native.data + at, size, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
}

static void packed_buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    packed_buffer_context * ctx = (packed_buffer_context *) buffer->context;
    ggml_cuda_set_device(ctx->device);
    CUDA_CHECK(cudaMemset(ctx->data, value, buffer->size));
}

// No cpy_tensor: copies go through the host, in the file's layout.
static const ggml_backend_buffer_i packed_buffer_interface = {
    /* .free_buffer   = */ packed_buffer_free,
    /* .get_base      = */ packed_buffer_base,
    /* .init_tensor   = */ packed_buffer_init_tensor,
    /* .memset_tensor = */ nullptr,
    /* .set_tensor    = */ packed_buffer_set_tensor,
    /* .get_tensor    = */ packed_buffer_get_tensor,
    /* .set_tensor_2d = */ nullptr,
    /* .get_tensor_2d = */ nullptr,
    /* .cpy_tensor    = */ nullptr,
    /* .clear         = */ packed_buffer_clear,
    /* .reset         = */ nullptr,
};

static const char * packed_buft_name(ggml_backend_buffer_type_t buft) {
    return ((packed_buft_context *) buft->context)->name.c_str();
}

bool ggml_backend_buft_is_cuda_packed(ggml_backend_buffer_type_t buft) {
    return buft->iface.get_name == packed_buft_name;
}

static ggml_backend_buffer_t packed_buft_alloc(ggml_backend_buffer_type_t buft, size_t size) {
    const int device = ((packed_buft_context *) buft->context)->device;
    ggml_cuda_set_device(device);
    void * data = nullptr;
    if (cudaMalloc(&data, size) != cudaSuccess) {
        (void) cudaGetLastError();
        GGML_LOG_ERROR("%s: allocating %.2f MiB on device %d failed\n", __func__, size / 1024.0 / 1024.0, device);
        return nullptr;
    }
    return ggml_backend_buffer_init(buft, packed_buffer_interface, new packed_buffer_context{ device, data }, size);
}

static size_t packed_buft_alignment(ggml_backend_buffer_type_t buft) {
    GGML_UNUSED(buft);
    return 128;
}

static size_t packed_buft_alloc_size(ggml_backend_buffer_type_t buft, const ggml_tensor * t) {
    if (ggml_cuda_packed_supports(t)) {
        return ggml_nbytes(t);
    }
    return ggml_backend_buft_get_alloc_size(ggml_backend_cuda_buffer_type(((packed_buft_context *) buft->context)->device), t);
}

static const ggml_backend_buffer_type_i packed_buft_interface = {
    /* .get_name       = */ packed_buft_name,
    /* .alloc_buffer   = */ packed_buft_alloc,
    /* .get_alignment  = */ packed_buft_alignment,
    /* .get_max_size   = */ nullptr,
    /* .get_alloc_size = */ packed_buft_alloc_size,
    /* .is_host        = */ nullptr,
};

ggml_backend_buffer_type_t * ggml_backend_cuda_packed_extra_bufts(ggml_backend_dev_t dev, int device) {
    static ggml_backend_buffer_type   types[GGML_CUDA_MAX_DEVICES];
    static ggml_backend_buffer_type_t lists[GGML_CUDA_MAX_DEVICES][2];
    static std::mutex mutex;
    std::lock_guard<std::mutex> lock(mutex);
#if GGML_CUDA_PACKED_AVAILABLE
    const char * env = getenv("GGML_CUDA_PACKED");
    const int    cc  = ggml_cuda_info().devices[device].cc;
    const bool   on  = (!env || atoi(env) != 0) && GGML_CUDA_CC_IS_NVIDIA(cc) &&
        ggml_cuda_highest_compiled_arch(cc) >= GGML_CUDA_CC_AMPERE;
#else
    const bool on = false;
#endif
    if (on && !types[device].context) {
        types[device] = { packed_buft_interface, dev,
            new packed_buft_context{ device, GGML_CUDA_NAME + std::to_string(device) + "_Packed" } };
    }
    lists[device][0] = on ? &types[device] : nullptr;
    lists[device][1] = nullptr;
    return lists[device];
}
