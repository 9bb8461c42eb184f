// The device code that is shared with the project's own kernels (packed-src/), in a namespace of its own.
#pragma once
#include "common.cuh"

#include <cstring>

namespace packed {
#include "packed-src/quantise.h"
#include "packed-src/walk.h"
}  // namespace packed
