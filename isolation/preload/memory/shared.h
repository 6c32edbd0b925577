/* Memory that several processes hold. Its maker says what others can open and what it has let go of; who opens it says
 * so before the driver is asked, and that it let go after. The broker knows by that who has what: what its maker let go
 * of while others have it open is charged to the container until they close it.
 *
 * Both sides know the name of a piece without talking to each other: it is a hash of what programs hand on. 64 bits of
 * it are enough: two of a container's 4096 names are the same once in 10^12 containers, the driver chooses what is
 * hashed, and a program that could choose it would only have its own container's books wrong.
 */
#pragma once

#include "memory.h"

/* Numbers of what this process makes: of addresses, of virtual memory, of pools. */
enum shared_kind { SHARED_HELD = 1, SHARED_VIRTUAL, SHARED_POOL };
static inline uint64_t shared_number(enum shared_kind kind, uint64_t number) { return (uint64_t)kind << 56 | number; }

HIDDEN uint64_t shared_name(const void *handle, size_t bytes);
/* False: the descriptor is a device's, which is the same for all that it hands out. */
HIDDEN bool shared_name_of_descriptor(int descriptor, uint64_t *name);

/* A program may now be given what it hands on. An error: it may not, for the broker has no room for another name. */
HIDDEN CUresult shared_export(unsigned card, uint64_t number, uint64_t name, uint64_t size);
/* The same of what has no name: everybody may have it. */
HIDDEN CUresult shared_export_to_anybody(unsigned card, uint64_t number, uint64_t size);

/* The driver is about to be asked for memory of that name; *size: how long it is, or 0: no process here made it.
 * Followed by shared_close, once the driver has let go of it or did not open it. */
HIDDEN CUresult shared_open(unsigned card, uint64_t name, uint64_t *size);
/* It turned out to be so long. An error: that may not be had. */
HIDDEN CUresult shared_size(unsigned card, uint64_t name, uint64_t size);
HIDDEN void shared_close(unsigned card, uint64_t name);

/* At that address lies what was opened by that name. False: there is no room for the note. */
HIDDEN bool shared_note(CUdeviceptr address, unsigned card, uint64_t name);
/* Takes one note away, if there is one, before the driver is asked to let go. Followed by shared_taken. */
HIDDEN bool shared_take(CUdeviceptr address, struct entry *what);
/* The driver did or did not. */
HIDDEN void shared_taken(const struct entry *what, bool done);
