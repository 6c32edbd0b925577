/* What of the driver API compute's hooks need beside core/abi.h: interface facts in our own words, 64-bit Linux. */
#pragma once

#include "../memory/abi.h"

typedef struct cuda_event *CUevent;
typedef struct cuda_function *CUfunction;

/* Handles that mean a default stream. NULL is one of the two, as a function's variant says. */
#define CU_STREAM_LEGACY ((CUstream)1)
#define CU_STREAM_PER_THREAD ((CUstream)2)

enum { CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2 };
enum { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };

typedef struct {
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
    void *attributes;
    unsigned attribute_count;
} CUlaunchConfig;

typedef struct {
    CUfunction function;
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
    void **params;
} CUDA_LAUNCH_PARAMS;

_Static_assert(sizeof(CUlaunchConfig) == 56 && offsetof(CUlaunchConfig, stream) == 32, "layout");
_Static_assert(sizeof(CUDA_LAUNCH_PARAMS) == 56 && offsetof(CUDA_LAUNCH_PARAMS, stream) == 40, "layout");
