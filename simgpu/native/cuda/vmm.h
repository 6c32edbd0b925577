/* Memory created separately from its addresses; shared by vmm.c and shareable_handles.c. Everything here is locked. */
#pragma once

#include "memory.h"

struct vmm {
    struct device *device;
    u64 piece, bytes;
    u64 address; /* arena address of its data */
    u64 offset;  /* of the data in the file of the process that created it */
    u32 handles, mappings;
    CUmemAllocationProp properties;
    bool shared, imported;
    struct sim_token token;
    struct vmm *next;
};

/* NULL: no such handle. */
struct vmm *vmm_valid(CUmemGenericAllocationHandle handle);
struct vmm *vmm_of_token(const struct sim_token *token);

/* NULL: no memory on the host. */
struct vmm *vmm_add(const struct vmm *like);
