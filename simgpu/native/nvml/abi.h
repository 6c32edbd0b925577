/* NVML's numbers and layouts, as programs built against it use them (64-bit Linux). Only what this library fills. */
#pragma once

#include "../common/words.h"

typedef u32 nvml_result;
typedef struct nvml_device *nvmlDevice;                    /* these are opaque, and none is ever dereferenced */
typedef struct nvml_gpu_instance *nvmlGpuInstance;
typedef struct nvml_compute_instance *nvmlComputeInstance;
typedef struct nvml_event_set *nvmlEventSet;

enum {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_GPU_IS_LOST = 15,
    NVML_OUT_OF_MEMORY = 20,
    NVML_VERSION_MISMATCH = 25,
    NVML_UNKNOWN = 999,
};

enum { NVML_KEPLER = 2, NVML_TURING = 6, NVML_AMPERE = 7, NVML_ADA = 8, NVML_HOPPER = 9 };
enum { NVML_OFF = 0, NVML_ON = 1 };
#define NVML_NO_INSTANCE UINT32_MAX                        /* gpu and compute instance ids of what is no MIG device */

/* The first word of versioned structs. */
#define NVML_VERSION_OF(type, version) ((u32)sizeof(type) | (version) << 24)

struct nvml_pci {
    char legacy_bus_id[16];
    u32 domain, bus, device;
    u32 device_id, subsystem_id;
    char bus_id[32];
};

struct nvml_memory {
    u64 total, free, used;
};

struct nvml_memory_v2 {
    u32 version;
    u64 total, reserved, free, used;
};

struct nvml_bar1 {
    u64 total, free, used;
};

struct nvml_utilization {
    u32 gpu, memory;
};

struct nvml_process_v1 {
    u32 pid;
    u64 bytes;
};

struct nvml_process_v2 {
    u32 pid;
    u64 bytes;
    u32 gpu_instance, compute_instance;
};

struct nvml_process_detail {
    u32 pid;
    u64 bytes;
    u32 gpu_instance, compute_instance;
    u64 protected_bytes;
};

struct nvml_process_details {
    u32 version, mode, count;
    struct nvml_process_detail *processes;
};

struct nvml_process_use {
    u32 pid;
    u64 wall_us;
    u32 sm, memory, encoder, decoder;
};

struct nvml_process_use_v1 {
    u64 wall_us;
    u32 pid;
    u32 sm, memory, encoder, decoder, jpeg, flow;
};

struct nvml_process_uses {
    u32 version, count;
    u64 since_us;
    struct nvml_process_use_v1 *uses;
};

union nvml_value {
    double real;
    int32_t s32;
    u32 u32;
    u64 u64;
    int64_t s64;
};
enum { NVML_VALUE_U32 = 1, NVML_VALUE_U64 = 3, NVML_VALUE_S32 = 5 };

struct nvml_sample {
    u64 wall_us;
    union nvml_value value;
};

struct nvml_field {
    u32 id, scope;
    int64_t wall_us, latency_us;
    u32 type;
    nvml_result result;
    union nvml_value value;
};

struct nvml_event_v1 {
    nvmlDevice device;
    u64 type, data;
};

struct nvml_event {
    nvmlDevice device;
    u64 type, data;
    u32 gpu_instance, compute_instance;
};

struct nvml_attributes {
    u32 sms, copy_engines, decoders, encoders, jpegs, flows;
    u32 gpu_slices, compute_slices;
    u64 memory_mib;
};

struct nvml_placement {
    u32 start, size;
};

struct nvml_gpu_profile {
    u32 id, peer, slices, instances;
    u32 sms, copy_engines, decoders, encoders, jpegs, flows;
    u64 memory_mib;
};

struct nvml_gpu_profile_v2 {
    u32 version;
    u32 id, peer, slices, instances;
    u32 sms, copy_engines, decoders, encoders, jpegs, flows;
    u64 memory_mib;
    char name[96];
};

struct nvml_gpu_profile_v3 {
    u32 version;
    u32 id, slices, instances;
    u32 sms, copy_engines, decoders, encoders, jpegs, flows;
    u64 memory_mib;
    char name[96];
    u32 capabilities;
};

struct nvml_gpu_instance_info {
    nvmlDevice device;
    u32 id, profile;
    struct nvml_placement placement;
};

struct nvml_compute_profile {
    u32 id, slices, instances;
    u32 sms, copy_engines, decoders, encoders, jpegs, flows;
};

struct nvml_compute_instance_info {
    nvmlDevice device;
    nvmlGpuInstance gpu_instance;
    u32 id, profile;
    struct nvml_placement placement;
};

struct nvml_fabric {
    unsigned char cluster[16];
    u32 status, clique;
    unsigned char state;
};

/* Versions 2 and 3; the second ends before `summary`. */
struct nvml_fabric_v3 {
    u32 version;
    unsigned char cluster[16];
    u32 status, clique;
    unsigned char state;
    u32 health;
    unsigned char summary;
};
