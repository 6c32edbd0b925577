/* NVML's numbers, handles and structures, as far as our libraries fill or filter them: interface facts in our own
 * words, 64-bit Linux. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef unsigned nvml_result;
typedef struct nvml_device *nvmlDevice;                    /* these are opaque and never dereferenced */
typedef struct nvml_gpu_instance *nvmlGpuInstance;
typedef struct nvml_compute_instance *nvmlComputeInstance;
typedef struct nvml_event_set *nvmlEventSet;

enum {
#define ERROR(name, value, words) name = value,
#include "nvml_errors.def"
};

enum { NVML_TURING = 6, NVML_AMPERE = 7, NVML_ADA = 8, NVML_HOPPER = 9 };
enum { NVML_ON = 1 };
enum { NVML_UUID_BYTES = 96 };
enum { NVML_MODE_COMPUTE = 0, NVML_MODE_ALL = 3 };
#define NVML_NO_INSTANCE UINT32_MAX                        /* gpu and compute instance ids outside of MIG */

/* The first word of versioned structures. */
#define NVML_VERSION_OF(type, version) ((uint32_t)sizeof(type) | (version) << 24)

struct nvml_pci {
    char legacy_bus_id[16];
    uint32_t domain, bus, device;
    uint32_t device_id, subsystem_id;
    char bus_id[32];
};

struct nvml_memory {
    uint64_t total, free, used;
};

struct nvml_memory_v2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};

/* Limits of a cgroup's memory on a card, from branch 615 on. */
struct nvml_memory_limits {
    const char *cgroup; /* its folder */
    uint64_t soft, hard;
};
#define NVML_NO_LIMIT UINT64_MAX

struct nvml_bar1 {
    uint64_t total, free, used;
};

struct nvml_utilization {
    uint32_t gpu, memory;
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

union nvml_value {
    double real;
    int32_t s32;
    uint32_t u32;
    uint64_t u64;
    int64_t s64;
};
enum { NVML_VALUE_U32 = 1, NVML_VALUE_U64 = 3 };

struct nvml_sample {
    uint64_t wall_us;
    union nvml_value value;
};

struct nvml_field {
    uint32_t id, scope;
    int64_t wall_us, latency_us;
    uint32_t type;
    nvml_result result;
    union nvml_value value;
};

struct nvml_event_v1 {
    nvmlDevice device;
    uint64_t type, data;
};

struct nvml_event {
    nvmlDevice device;
    uint64_t type, data;
    uint32_t gpu_instance, compute_instance;
};

struct nvml_attributes {
    uint32_t sms, copy_engines, decoders, encoders, jpegs, flows;
    uint32_t gpu_slices, compute_slices;
    uint64_t memory_mib;
};

struct nvml_placement {
    uint32_t start, size;
};

struct nvml_gpu_profile {
    uint32_t id, peer, slices, instances;
    uint32_t sms, copy_engines, decoders, encoders, jpegs, flows;
    uint64_t memory_mib;
};

struct nvml_gpu_profile_v2 {
    uint32_t version;
    uint32_t id, peer, slices, instances;
    uint32_t sms, copy_engines, decoders, encoders, jpegs, flows;
    uint64_t memory_mib;
    char name[96];
};

struct nvml_gpu_profile_v3 {
    uint32_t version;
    uint32_t id, slices, instances;
    uint32_t sms, copy_engines, decoders, encoders, jpegs, flows;
    uint64_t memory_mib;
    char name[96];
    uint32_t capabilities;
};

struct nvml_gpu_instance_info {
    nvmlDevice device;
    uint32_t id, profile;
    struct nvml_placement placement;
};

struct nvml_compute_profile {
    uint32_t id, slices, instances;
    uint32_t sms, copy_engines, decoders, encoders, jpegs, flows;
};

struct nvml_compute_instance_info {
    nvmlDevice device;
    nvmlGpuInstance gpu_instance;
    uint32_t id, profile;
    struct nvml_placement placement;
};

struct nvml_fabric {
    unsigned char cluster[16];
    uint32_t status, clique;
    unsigned char state;
};

/* Versions 2 and 3; the second ends before `summary`. */
struct nvml_fabric_v3 {
    uint32_t version;
    unsigned char cluster[16];
    uint32_t status, clique;
    unsigned char state;
    uint32_t health;
    unsigned char summary;
};

_Static_assert(sizeof(struct nvml_memory) == 24 && sizeof(struct nvml_memory_v2) == 40, "layout");
_Static_assert(sizeof(struct nvml_process_v1) == 16 && sizeof(struct nvml_process_v2) == 24, "layout");
_Static_assert(sizeof(struct nvml_process_detail) == 32 && sizeof(struct nvml_process_details) == 24, "layout");
_Static_assert(sizeof(struct nvml_process_use) == 32, "layout");
_Static_assert(sizeof(struct nvml_process_use_v1) == 40 && sizeof(struct nvml_process_uses) == 24, "layout");
