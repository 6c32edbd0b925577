/* NVML's numbers, handles and structures as far as hooks need them: interface facts in our own words. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef unsigned nvml_result;
typedef struct nvml_device *nvmlDevice;

enum {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_LIBRARY_NOT_FOUND = 12,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_VERSION_MISMATCH = 25,
    NVML_UNKNOWN = 999,
};

enum { NVML_UUID_BYTES = 96 };
#define NVML_NO_INSTANCE UINT32_MAX /* gpu and compute instance of what is no MIG device */

struct nvml_memory {
    uint64_t total, free, used;
};

struct nvml_memory_v2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};

struct nvml_process_v1 {
    uint32_t pid;
    uint64_t bytes;
};

struct nvml_process_v2 {
    uint32_t pid;
    uint64_t bytes;
    uint32_t gpu_instance, compute_instance;
};

struct nvml_process_detail {
    uint32_t pid;
    uint64_t bytes;
    uint32_t gpu_instance, compute_instance;
    uint64_t protected_bytes;
};

enum { NVML_MODE_COMPUTE = 0, NVML_MODE_ALL = 3 };

struct nvml_process_details {
    uint32_t version, mode, count;
    struct nvml_process_detail *processes;
};

struct nvml_process_use {
    uint32_t pid;
    uint64_t wall_us;
    uint32_t sm, memory, encoder, decoder;
};

struct nvml_process_use_v1 {
    uint64_t wall_us;
    uint32_t pid;
    uint32_t sm, memory, encoder, decoder, jpeg, flow;
};

struct nvml_process_uses {
    uint32_t version, count;
    uint64_t since_us;
    struct nvml_process_use_v1 *uses;
};

_Static_assert(sizeof(struct nvml_memory) == 24 && sizeof(struct nvml_memory_v2) == 40, "layout");
_Static_assert(sizeof(struct nvml_process_v1) == 16 && sizeof(struct nvml_process_v2) == 24, "layout");
_Static_assert(sizeof(struct nvml_process_detail) == 32 && sizeof(struct nvml_process_details) == 24, "layout");
_Static_assert(sizeof(struct nvml_process_use) == 32, "layout");
_Static_assert(sizeof(struct nvml_process_use_v1) == 40 && sizeof(struct nvml_process_uses) == 24, "layout");
