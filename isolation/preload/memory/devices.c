/* Which of the container's cards a driver device is, by UUID. */
#include "memory.h"

REAL_CALL(cuDeviceGetUuid, CUuuid *uuid, CUdevice device);
REAL_CALL(cuDeviceGetUuid_v2, CUuuid *uuid, CUdevice device);
REAL_CALL(cuDeviceGet, CUdevice *device, int ordinal);
REAL_CALL(cuDeviceGetCount, int *count);
REAL_CALL(cuCtxGetDevice, CUdevice *device);
REAL_CALL(cuDeviceGetAttribute, int *value, int attribute, CUdevice device);
REAL_CALL(cuCtxPushCurrent_v2, CUcontext context);
REAL_CALL(cuCtxPopCurrent_v2, CUcontext *context);

enum { MOST_DEVICES = 64 };

static _Atomic unsigned known[MOST_DEVICES]; /* 1 + the card's number; 0: not looked up yet */

/* The second form returns a MIG instance's own UUID; drivers before 11.4 have only the first. */
static bool uuid_of(CUdevice device, CUuuid *uuid) {
    return DRIVER(REAL(cuDeviceGetUuid_v2)(uuid, device)) == CUDA_SUCCESS ||
           DRIVER(REAL(cuDeviceGetUuid)(uuid, device)) == CUDA_SUCCESS;
}

unsigned card_of(CUdevice device) {
    const unsigned before = device >= 0 && device < MOST_DEVICES ? atomic_load(&known[device]) : 0;
    if (before) return before - 1;
    CUuuid uuid;
    if (!session_cards() && !session_start()) return NO_CARD;
    if (!uuid_of(device, &uuid)) return NO_CARD;
    const unsigned card = session_card_of((const unsigned char *)uuid.bytes);
    if (device >= 0 && device < MOST_DEVICES) atomic_store(&known[device], card + 1);
    return card;
}

CUdevice device_of(unsigned card) {
    int count = 0;
    if (DRIVER(REAL(cuDeviceGetCount)(&count)) != CUDA_SUCCESS) return -1;
    for (int ordinal = 0; ordinal < count; ordinal++) {
        CUdevice device;
        if (DRIVER(REAL(cuDeviceGet)(&device, ordinal)) == CUDA_SUCCESS && card_of(device) == card) return device;
    }
    return -1;
}

/* If the driver does not tell, NVML is assumed not to show it. */
bool managed_is_hidden(void) {
    enum { CONCURRENT_MANAGED_ACCESS = 89 };
    CUdevice device;
    int is_paged = 1;
    if (DRIVER(REAL(cuCtxGetDevice)(&device)) == CUDA_SUCCESS)
        DRIVER(REAL(cuDeviceGetAttribute)(&is_paged, CONCURRENT_MANAGED_ACCESS, device));
    return is_paged;
}

bool device_of_context(CUcontext context, CUdevice *device) {
    CUcontext popped;
    if (!context || DRIVER(REAL(cuCtxPushCurrent_v2)(context)) != CUDA_SUCCESS) return false;
    const bool found = DRIVER(REAL(cuCtxGetDevice)(device)) == CUDA_SUCCESS;
    DRIVER(REAL(cuCtxPopCurrent_v2)(&popped));
    return found;
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

static unsigned card_of_managed(void) {
    CUdevice device;
    return DRIVER(REAL(cuCtxGetDevice)(&device)) == CUDA_SUCCESS ? card_of(device) : 0;
}

unsigned card_at(const CUmemLocation *location, unsigned type) {
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: return card_of(location->id);
    case CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN: return card_of(location->id & 0xff);
    case CU_MEM_LOCATION_TYPE_NONE:
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return type == CU_MEM_ALLOCATION_TYPE_PINNED ? HOST_MEMORY : card_of_managed();
    default: return NO_CARD;
    }
}

void devices_forget(void) {
    for (int device = 0; device < MOST_DEVICES; device++) atomic_store(&known[device], 0);
}
