// llama.cpp's own kernels, launched by llama.cpp's own code from its CUDA library, on our stream: mul_mat_vec_q and,
// apart from it, the quantisation of its activations. Needs the libraries of a llama.cpp build with CUDA; nothing of
// it is compiled in. Two functions of that library are C++ and are found by their mangled names.
#include <dlfcn.h>
#include <string.h>

#include "args.h"
#include "device.h"

#ifdef __HIP__
#define STREAM_NAME "P12ihipStream_t"
#else
#define STREAM_NAME "P11CUstream_st"
#endif

enum { TYPE_F32 = 0, TYPE_Q8_0 = 8, TYPE_Q5_K = 13, TYPE_Q6_K = 14 };

struct InitParams {
    size_t size;
    void *memory;
    bool no_alloc;
};

typedef void *(*Init)(InitParams);
typedef void *(*Tensor)(void *context, int type, int64_t ne0, int64_t ne1);
typedef void (*MulMatVecQ)(void *backend, const void *src0, const void *src1, void *dst, const char *weights,
                           const float *floats, const char *quantised, float *out, int64_t row_low, int64_t row_high,
                           int64_t columns, int64_t padded, cudaStream_t stream);
typedef void (*QuantiseRow)(const float *x, const int32_t *ids, void *out, int type, int64_t ne00, int64_t s01,
                            int64_t s02, int64_t s03, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3,
                            cudaStream_t stream);

static struct {
    void *context;
    Tensor tensor;
    MulMatVecQ mul;
    QuantiseRow quantise;
    const char *error;
    const char *commit;
    char backend[1 << 16];  // a backend context of zeros: the kernel's launcher reads its device number only
} peer;

// Columns are padded to a multiple of 512, as llama.cpp pads them.
static int64_t padded(int cols) { return (int64_t(cols) + 511) / 512 * 512; }

static int type_of(int format) { return format == Q8_0 ? TYPE_Q8_0 : format == Q6_K ? TYPE_Q6_K : TYPE_Q5_K; }

// The commit that the library says it was built from.
extern "C" const char *peer_commit() { return peer.commit; }

extern "C" const char *peer_error() { return peer.error ? peer.error : "unknown"; }

// base, cuda: paths of libggml-base and libggml-cuda. 0, or -1 with a sentence in peer_error().
extern "C" int peer_open(const char *base, const char *cuda) {
    peer.error = nullptr;
    void *lib_base = dlopen(base, RTLD_LAZY | RTLD_GLOBAL);
    void *lib = lib_base ? dlopen(cuda, RTLD_LAZY | RTLD_GLOBAL) : nullptr;
    if (!lib) {
        peer.error = dlerror();
        return -1;
    }
    Init init = (Init)dlsym(lib_base, "ggml_init");
    peer.tensor = (Tensor)dlsym(lib_base, "ggml_new_tensor_2d");
    peer.mul = (MulMatVecQ)dlsym(
        lib, "_Z26ggml_cuda_op_mul_mat_vec_qR25ggml_backend_cuda_contextPK11ggml_tensorS3_PS1_PKcPKfS6_Pfllll" STREAM_NAME);
    peer.quantise = (QuantiseRow)dlsym(lib, "_Z22quantize_row_q8_1_cudaPKfPKiPv9ggml_typellllllll" STREAM_NAME);
    if (!init || !peer.tensor || !peer.mul || !peer.quantise) {
        peer.error = "this build of llama.cpp does not export mul_mat_vec_q's launcher under the "
                     "name that is known here";
        return -1;
    }
    typedef const char *(*Commit)();
    Commit commit = (Commit)dlsym(lib_base, "ggml_commit");
    peer.commit = commit ? commit() : "unknown";
    peer.context = init(InitParams{size_t(1) << 20, nullptr, true});
    return 0;
}

extern "C" int64_t peer_activation_bytes(int cols, int n) { return padded(cols) / 32 * 36 * n; }

// x: [n][cols] floats, y: blocks of q8_1.
extern "C" int launch_peer_quantise(const Args *a, void *stream) {
    int64_t cols = a->cols, all = cols * a->n;
    peer.quantise((const float *)a->x, nullptr, a->y, type_of(a->format), cols, cols, all, all,
                  padded(a->cols), a->n, 1, 1, cudaStream_t(stream));
    return cudaGetLastError();
}

struct Shape {
    int rows, cols, n, format;
    void *src0, *src1, *dst;
};

// Tensors describe shapes only, so one set for each shape is made and kept.
static const Shape *shape_of(const Args *a) {
    static Shape known[256];
    static int count = 0;
    for (int i = 0; i < count; ++i)
        if (known[i].rows == a->rows && known[i].cols == a->cols && known[i].n == a->n && known[i].format == a->format)
            return known + i;
    if (count == 256) return nullptr;
    Shape s{a->rows, a->cols, a->n, a->format, nullptr, nullptr, nullptr};
    s.src0 = peer.tensor(peer.context, type_of(a->format), a->cols, a->rows);
    s.src1 = peer.tensor(peer.context, TYPE_F32, a->cols, a->n);
    s.dst = peer.tensor(peer.context, TYPE_F32, a->rows, a->n);
    known[count] = s;
    return known + count++;
}

// w: the file's blocks, x: what launch_peer_quantise wrote, y: [n][rows] floats.
extern "C" int launch_peer(const Args *a, void *stream) {
    const Shape *s = shape_of(a);
    if (!s || a->n > 8) return BAD_ARGUMENT;
    peer.mul(peer.backend, s->src0, s->src1, s->dst, (const char *)a->w, nullptr, (const char *)a->x, (float *)a->y, 0,
             a->rows, a->n, padded(a->cols), cudaStream_t(stream));
    return cudaGetLastError();
}
