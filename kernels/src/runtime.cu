// What Python needs of the runtime, as plain C functions: memory, properties, and graphs of many launches with their
// time. Every function returns 0, or the runtime's error code.
#include <string.h>

#include "args.h"
#include "device.h"

#ifdef __HIP__
#define cudaDeviceGetAttribute hipDeviceGetAttribute
#define cudaDevAttrMultiProcessorCount hipDeviceAttributeMultiprocessorCount
#define cudaDevAttrL2CacheSize hipDeviceAttributeL2CacheSize
#define cudaDevAttrMemoryClockRate hipDeviceAttributeMemoryClockRate
#define cudaDevAttrGlobalMemoryBusWidth hipDeviceAttributeMemoryBusWidth
#define cudaDevAttrComputeCapabilityMajor hipDeviceAttributeComputeCapabilityMajor
#define cudaDevAttrComputeCapabilityMinor hipDeviceAttributeComputeCapabilityMinor
#define cudaDeviceProp hipDeviceProp_t
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaDriverGetVersion hipDriverGetVersion
#define cudaEventCreate hipEventCreate
#define cudaEventDestroy hipEventDestroy
#define cudaEventElapsedTime hipEventElapsedTime
#define cudaEventRecord hipEventRecord
#define cudaEventSynchronize hipEventSynchronize
#define cudaEvent_t hipEvent_t
#define cudaFree hipFree
#define cudaGetDeviceCount hipGetDeviceCount
#define cudaGetDeviceProperties hipGetDeviceProperties
#define cudaGetErrorString hipGetErrorString
#define cudaGraphDestroy hipGraphDestroy
#define cudaGraphExecDestroy hipGraphExecDestroy
#define cudaGraphExec_t hipGraphExec_t
#define cudaGraphLaunch hipGraphLaunch
#define cudaGraph_t hipGraph_t
#define cudaMalloc hipMalloc
#define cudaMemGetInfo hipMemGetInfo
#define cudaMemcpy hipMemcpy
#define cudaMemcpyDefault hipMemcpyDefault
#define cudaMemset hipMemset
#define cudaStreamBeginCapture hipStreamBeginCapture
#define cudaStreamCaptureModeRelaxed hipStreamCaptureModeRelaxed
#define cudaStreamCreate hipStreamCreate
#define cudaStreamEndCapture hipStreamEndCapture
#define cudaStreamSynchronize hipStreamSynchronize
#endif

typedef int (*Launcher)(const Args *, void *);

struct Timed {
    cudaGraphExec_t exec;
    cudaEvent_t begin, end;
};

static cudaStream_t work_stream() {
    static cudaStream_t stream = nullptr;
    if (!stream && cudaStreamCreate(&stream) != cudaSuccess) stream = nullptr;
    return stream;
}

#define TRY(call)                             \
    do {                                      \
        cudaError_t status_ = (call);         \
        if (status_ != cudaSuccess) return status_; \
    } while (0)

extern "C" {

const char *device_error(int code) {
    return code == BAD_ARGUMENT ? "arguments that no kernel of this family takes"
        : cudaGetErrorString(cudaError_t(code));
}

int device_count(int *count) { return cudaGetDeviceCount(count); }

// values: multiprocessors, L2 bytes, memory clock kHz, bus bits, major, minor, driver version
int device_facts(char *name, int size, int *values) {
    cudaDeviceProp properties;
    TRY(cudaGetDeviceProperties(&properties, 0));
    strncpy(name, properties.name, size - 1);
    TRY(cudaDeviceGetAttribute(values, cudaDevAttrMultiProcessorCount, 0));
    TRY(cudaDeviceGetAttribute(values + 1, cudaDevAttrL2CacheSize, 0));
    TRY(cudaDeviceGetAttribute(values + 2, cudaDevAttrMemoryClockRate, 0));
    TRY(cudaDeviceGetAttribute(values + 3, cudaDevAttrGlobalMemoryBusWidth, 0));
    TRY(cudaDeviceGetAttribute(values + 4, cudaDevAttrComputeCapabilityMajor, 0));
    TRY(cudaDeviceGetAttribute(values + 5, cudaDevAttrComputeCapabilityMinor, 0));
    return cudaDriverGetVersion(values + 6);
}

int device_memory(size_t *free_bytes, size_t *total) { return cudaMemGetInfo(free_bytes, total); }
int device_alloc(void **p, size_t bytes) { return cudaMalloc(p, bytes); }
int device_free(void *p) { return cudaFree(p); }
int device_copy(void *to, const void *from, size_t bytes) { return cudaMemcpy(to, from, bytes, cudaMemcpyDefault); }
int device_fill(void *p, int byte, size_t bytes) { return cudaMemset(p, byte, bytes); }
int device_sync() { return cudaDeviceSynchronize(); }

int run_once(Launcher launch, const Args *args) {
    int status = launch(args, work_stream());
    if (status != DONE) return status;
    return cudaStreamSynchronize(work_stream());
}

// One graph of `count` launches, args[i] for each.
int timed_create(Launcher launch, const Args *args, int count, Timed **out) {
    cudaGraph_t graph;
    Timed *t = new Timed();
    TRY(cudaStreamBeginCapture(work_stream(), cudaStreamCaptureModeRelaxed));
    int status = DONE;
    for (int i = 0; i < count && status == DONE; ++i) status = launch(args + i, work_stream());
    cudaError_t ended = cudaStreamEndCapture(work_stream(), &graph);
    if (status != DONE) return status;
    TRY(ended);
#ifdef __HIP__
    TRY(hipGraphInstantiate(&t->exec, graph, nullptr, nullptr, 0));
#else
    TRY(cudaGraphInstantiate(&t->exec, graph, 0));
#endif
    TRY(cudaGraphDestroy(graph));
    TRY(cudaEventCreate(&t->begin));
    TRY(cudaEventCreate(&t->end));
    *out = t;
    return DONE;
}

// Microseconds of one replay.
int timed_replay(Timed *t, float *us) {
    TRY(cudaEventRecord(t->begin, work_stream()));
    TRY(cudaGraphLaunch(t->exec, work_stream()));
    TRY(cudaEventRecord(t->end, work_stream()));
    TRY(cudaEventSynchronize(t->end));
    TRY(cudaEventElapsedTime(us, t->begin, t->end));
    *us *= 1000.0f;
    return DONE;
}

int timed_destroy(Timed *t) {
    cudaError_t status[3] = {cudaGraphExecDestroy(t->exec), cudaEventDestroy(t->begin), cudaEventDestroy(t->end)};
    delete t;
    for (cudaError_t s : status) TRY(s);
    return DONE;
}

}  // extern "C"
