/* Memory that several processes hold. The maker reports what others can open and what it has freed; a process that
 * opens it reports that before asking the driver, and reports the release afterwards. From this the broker knows who
 * has what: memory that its maker freed while others have it open is charged to the container until they close it.
 *
 * Both sides derive the name of a piece without communicating: it is a hash of the handle that programs exchange. 64
 * bits are enough: two of a container's 4096 names collide once in 10^12 containers, the driver chooses the hashed
 * bytes, and a program that could choose them would only corrupt its own container's accounting.
 */
#pragma once

#include "memory.h"

/* Numbers of the pieces that this process makes: addresses, virtual memory, pools. */
enum shared_kind { SHARED_HELD = 1, SHARED_VIRTUAL, SHARED_POOL };
static inline uint64_t shared_number(enum shared_kind kind, uint64_t number) { return (uint64_t)kind << 56 | number; }

HIDDEN uint64_t shared_name(const void *handle, size_t bytes);
/* False: the descriptor is of a device file, the same for everything that the device exports. */
HIDDEN bool shared_name_of_descriptor(int descriptor, uint64_t *name);

/* The program may now get the handle. An error: it may not, since the broker has no room for another name. */
HIDDEN CUresult shared_export(unsigned card, uint64_t number, uint64_t name, uint64_t size);
/* The same for memory without a name: anyone may open it. */
HIDDEN CUresult shared_export_to_anybody(unsigned card, uint64_t number, uint64_t size);

/* The driver is about to be asked for memory of that name. *size: its size, or 0 if no process of the container made
 * it. Followed by shared_close once the driver has released it or failed to open it. */
HIDDEN CUresult shared_open(unsigned card, uint64_t name, uint64_t *size);
/* Reports the actual size. An error: that much is not allowed. */
HIDDEN CUresult shared_size(unsigned card, uint64_t name, uint64_t size);
HIDDEN void shared_close(unsigned card, uint64_t name);

/* Records that the memory at that address was opened under that name. False: there is no room for the record. */
HIDDEN bool shared_note(CUdeviceptr address, unsigned card, uint64_t name);
/* Removes one record, if there is one, before the driver is asked to release the memory. Followed by shared_taken. */
HIDDEN bool shared_take(CUdeviceptr address, struct entry *what);
/* Whether the driver released it. */
HIDDEN void shared_taken(const struct entry *what, bool done);
