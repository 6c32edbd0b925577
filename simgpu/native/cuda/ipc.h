/* What one process passes to another about its memory. Everything here is locked. */
#pragma once

#include "memory.h"

enum parcel_kind { PARCEL_IPC = 1, PARCEL_POOL, PARCEL_POOL_POINTER, PARCEL_VMM };

/* Passes through other programs and may return modified: validated before use. */
struct parcel {
    u32 magic, kind;         /* enum parcel_kind */
    struct sim_token token;  /* of the piece */
    u64 offset;              /* of the piece's data in the exporter's file */
    u64 inside, bytes;       /* position in the piece, and size */
    u64 process;             /* identifies the exporter */
    u32 card, pad;
};

_Static_assert(sizeof(struct parcel) == 64, "as long as what programs pass on");

struct parcel parcel_new(enum parcel_kind kind, const struct device *device);
bool parcel_valid(const struct parcel *parcel, enum parcel_kind kind);

/* The device for this card of the node, or CUDA_ERROR_INVALID_DEVICE. */
CUresult device_with_card(u32 card, struct device **device);

/* Opens the piece of a parcel, for its device, and gives it an address that maps the parcel's data if there are any.
 * The piece is held until piece_give. */
CUresult parcel_open(const struct parcel *parcel, struct device **device, struct sim_reply *piece, u64 *address);

/* Fills in a parcel for this range of a chunk's memory. */
CUresult parcel_of_range(const struct range *range, enum parcel_kind kind, struct parcel *parcel);

/* Imports memory of another process, at an address of its own. */
CUresult import_new(const struct parcel *parcel, enum range_kind kind, struct cuda_context *context,
                    CUdeviceptr *address);
