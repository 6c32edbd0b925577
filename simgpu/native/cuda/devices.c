/* The cards that this process may use. */
#define _GNU_SOURCE
#include "streams.h"
#include "visible.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;

static struct sim_node *node;
static struct device devices[SIM_CARDS];
static int device_count;

/* The result of every function: CUDA_ERROR_NOT_INITIALIZED until cuInit, and permanently in a forked child. */
static _Atomic u32 answer = CUDA_ERROR_NOT_INITIALIZED;
static _Atomic bool forked;

struct sim_node *driver_node(void) { return node; }

/* At process exit the driver shuts down. A call by a thread that still runs may then fail arbitrarily: with
 * SIMGPU_ABORTS_LATE_CALLS set it aborts the process. */
static pthread_t exiting;
static bool aborts_late_calls;

static void take_down(void) {
    exiting = pthread_self();
    aborts_late_calls = getenv("SIMGPU_ABORTS_LATE_CALLS") != NULL;
    atomic_store(&answer, CUDA_ERROR_DEINITIALIZED);
}

static CUresult not_ready(CUresult why) {
    if (why == CUDA_ERROR_DEINITIALIZED && aborts_late_calls && !pthread_equal(pthread_self(), exiting)) abort();
    return why;
}

CUresult driver_ready(void) {
    CUresult now = atomic_load_explicit(&answer, memory_order_acquire);
    if (now) return not_ready(now);
    if (thread_here()->serves) return CUDA_ERROR_NOT_PERMITTED;
    return atomic_load_explicit(&node->file->state, memory_order_relaxed) == SIM_RUNNING ? CUDA_SUCCESS
                                                                                         : CUDA_ERROR_UNKNOWN;
}

void driver_lost(void) { atomic_store(&answer, CUDA_ERROR_UNKNOWN); }

CUresult driver_result(int sim_result) {
    switch (sim_result) {
    case SIM_OK: return CUDA_SUCCESS;
    case SIM_NO_MEMORY:
    case SIM_NO_ROOM:
    case SIM_MADE_TO_FAIL: return CUDA_ERROR_OUT_OF_MEMORY;
    case SIM_CARD_LOST: return CUDA_ERROR_DEVICE_UNAVAILABLE;
    case SIM_BROKEN: return CUDA_ERROR_UNKNOWN;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

static void in_child(void) {
    atomic_store(&forked, true);
    atomic_store(&answer, CUDA_ERROR_NOT_INITIALIZED);
}

/* Under driver_lock. */
static CUresult connect_once(void) {
    if (atomic_load(&forked)) return CUDA_ERROR_NOT_INITIALIZED;
    if (node) return CUDA_SUCCESS;
    if (sim_connect(&node)) {
        node = NULL;
        return CUDA_ERROR_NO_DEVICE;
    }
    pthread_atfork(NULL, NULL, in_child);
    atexit(take_down);
    return CUDA_SUCCESS;
}

static void add_device(u32 card) {
    struct device *device = &devices[device_count];
    *device = (struct device){
        .ordinal = device_count++,
        .card = card,
        .about = &node->file->card[card],
        .line = &node->timelines[card],
        .row = -1,
    };
    pthread_mutex_init(&device->advancing, NULL);
    ticks_begin(&device->ticks);
}

static CUresult find_devices(void) {
    u32 cards[SIM_CARDS];
    u32 count = visible_cards(node, cards);
    for (u32 i = 0; i < count; i++) add_device(cards[i]);
    return count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CALL(cuInit, unsigned flags) {
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&forked)) return CUDA_ERROR_NOT_INITIALIZED;
    HOLD(driver_lock);
    CUresult result = atomic_load(&answer);
    if (result == CUDA_ERROR_NOT_INITIALIZED) {
        result = connect_once();
        if (!result) result = find_devices();
        if (!result) atomic_store_explicit(&answer, CUDA_SUCCESS, memory_order_release);
    }
    return result;
}

/* Works without cuInit, since the runtime calls it first. */
CALL(cuDriverGetVersion, int *version) {
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = (int)driver_version();
    return CUDA_SUCCESS;
}

/* A forked child must not take the lock, which a thread that it does not have may hold. */
u32 driver_version(void) {
    enum { WITHOUT_A_NODE = 13000 };
    static _Atomic u32 version;
    u32 known = atomic_load_explicit(&version, memory_order_relaxed);
    if (known || atomic_load(&forked)) return known ? known : WITHOUT_A_NODE;
    pthread_mutex_lock(&driver_lock);
    if (!connect_once()) known = node->file->cuda;
    pthread_mutex_unlock(&driver_lock);
    atomic_store_explicit(&version, known, memory_order_relaxed);
    return known ? known : WITHOUT_A_NODE;
}

CUresult device_of(CUdevice ordinal, struct device **found) {
    TRY(driver_ready());
    if (ordinal < 0 || ordinal >= device_count) return CUDA_ERROR_INVALID_DEVICE;
    *found = &devices[ordinal];
    return CUDA_SUCCESS;
}

CUresult location_device(const CUmemLocation *location, struct device **device) {
    if (!location) return CUDA_ERROR_INVALID_VALUE;
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_NONE: return CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_DEVICE: return device_of(location->id, device);
    case CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN:
        return location->id >> 8 & 0xff ? CUDA_ERROR_INVALID_VALUE : device_of(location->id & 0xff, device);
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* Waits until another process unlocks this one, or simgpud is dead. A separate function, since every launch passes its
 * caller. */
static __attribute__((noinline, cold)) CUresult fault_once_unlocked(const struct device *device) {
    _Atomic u32 *const locked = (_Atomic u32 *)(uintptr_t)&device->about->live.locked[device->row];
    const int before = errno;
    const struct timespec look = {.tv_nsec = 100000000};
    while (atomic_load(locked) && sim_alive(node)) syscall(SYS_futex, locked, FUTEX_WAIT, 1, &look, NULL, 0);
    if (!sim_alive(node)) driver_lost();
    errno = before;
    return device_fault(device);
}

CUresult device_fault(const struct device *device) {
    TRY(driver_ready());
    const struct sim_live *live = &device->about->live;
    if (device->row < 0)
        return atomic_load_explicit(&live->health, memory_order_relaxed) == SIM_LOST ? CUDA_ERROR_DEVICE_UNAVAILABLE
                                                                                     : CUDA_SUCCESS;
    if (__builtin_expect(atomic_load_explicit(&live->locked[device->row], memory_order_relaxed), 0))
        return fault_once_unlocked(device);
    return atomic_load_explicit(&live->fault[device->row], memory_order_relaxed);
}

bool device_sticks(struct device *device) {
    if (device->row < 0) return false;
    u32 said = atomic_load_explicit(&device->about->live.stuck[device->row], memory_order_relaxed);
    return said != atomic_load_explicit(&device->stuck, memory_order_relaxed) &&
           said != atomic_exchange(&device->stuck, said);
}

CALL(cuDeviceGetCount, int *count) {
    TRY(driver_ready());
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = device_count;
    return CUDA_SUCCESS;
}

CALL(cuDeviceGet, CUdevice *found, int ordinal) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    *found = ordinal;
    return CUDA_SUCCESS;
}

CALL(cuDeviceGetName, char *name, int length, CUdevice ordinal) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    if (!name || length < 1) return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)length, "%s", device->about->model.name);
    return CUDA_SUCCESS;
}

CALL(cuDeviceTotalMem_v2, size_t *bytes, CUdevice ordinal) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    *bytes = device->about->model.memory - device->about->model.reserved;
    return CUDA_SUCCESS;
}

/* Parses the hexadecimal digits of GPU-01234567-…, with any separators. */
static void uuid_bytes(const char *text, CUuuid *uuid) {
    memset(uuid, 0, sizeof *uuid);
    const char *digit = strchr(text, '-');
    for (unsigned n = 0; digit && *digit && n < 32; digit++) {
        unsigned value;
        if (*digit == '-' || sscanf((char[]){*digit, 0}, "%x", &value) != 1) continue;
        uuid->bytes[n / 2] = (char)((unsigned char)uuid->bytes[n / 2] << 4 | value);
        n++;
    }
}

static CUresult uuid_of(CUuuid *uuid, CUdevice ordinal, bool whole_card) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    const struct sim_model *model = &device->about->model;
    if (whole_card && model->parent >= 0) model = &node->file->card[model->parent].model;
    uuid_bytes(model->uuid, uuid);
    return CUDA_SUCCESS;
}

CALL(cuDeviceGetUuid, CUuuid *uuid, CUdevice ordinal) { return uuid_of(uuid, ordinal, true); }

/* The second version returns a MIG instance's own UUID. */
CALL(cuDeviceGetUuid_v2, CUuuid *uuid, CUdevice ordinal) { return uuid_of(uuid, ordinal, false); }

CALL(cuDeviceGetPCIBusId, char *text, int length, CUdevice ordinal) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    if (!text || length < 13) return CUDA_ERROR_INVALID_VALUE;
    const struct sim_model *model = &device->about->model;
    snprintf(text, (size_t)length, "%04x:%02x:%02x.0", model->domain, model->bus, model->device);
    return CUDA_SUCCESS;
}

CALL(cuDeviceGetByPCIBusId, CUdevice *found, const char *text) {
    TRY(driver_ready());
    unsigned domain = 0, bus, slot;
    if (!found || !text) return CUDA_ERROR_INVALID_VALUE;
    if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(text, "%x:%x", &bus, &slot) != 2) return CUDA_ERROR_INVALID_VALUE;
    }
    for (int i = 0; i < device_count; i++) {
        const struct sim_model *model = &devices[i].about->model;
        if (model->domain != domain || model->bus != bus || model->device != slot) continue;
        *found = i;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
}
