// What every launcher takes. Python fills the same fields through ctypes (kernels/device.py): keep both in step.
#pragma once
#include <stdint.h>

struct Args {
    const void *w;       // weights
    const void *w2;      // scales of a flat layout, second matrix, or draft tokens
    const void *x;       // activations, floats or quantised
    const void *x2;      // scales of quantised activations, or the second stream
    void *y;             // output, column after column
    void *y2;            // second output
    void *work;          // of softmax and verify: 64 pairs of words for each row; of planes: sums of 16 activations
    int64_t bytes;       // of a plain read or copy
    int rows, cols, n;   // n: activation vectors
    int format;          // of `Format`
    int kind;            // which kernel of a family
    int grid, block;     // of a plain read or copy; packed: block
};

enum Format { Q8_0 = 0, Q6_K = 1, Q5_K = 2, Q4_K = 3 };
enum Status { DONE = 0, BAD_ARGUMENT = -1 };
