/* Common parts of the hooks that take memory: which card a call concerns, and what the process holds where.
 *
 *   account.h   how many bytes            table.h     hash tables
 *   held        addresses and arrays      reserves    what pools and graphs keep
 *   growth      memory that no program requests
 *
 * Every hook that takes memory determines the card, calls account_begin with the most that may be taken, calls the
 * driver, records what it gave, and calls account_end. Every hook that frees memory removes the record, calls
 * account_begin_free, the driver, and account_end_free; if the driver refuses, the record is restored. Memory stays
 * counted until the driver has freed it. After that another thread may get the same address, and its record must not be
 * the one that is removed.
 *
 * Arguments that the driver will reject are passed to it unchanged, so that the error is the driver's.
 */
#pragma once

#include "../core/driver.h"
#include "account.h"
#include "driver/cuda_abi.h"
#include "table.h"

#define BLOCK_BYTES (2ull << 20)

static inline uint64_t round_up(uint64_t bytes, uint64_t step) { return (bytes + step - 1) / step * step; }

/* ---- which card: devices.c -------------------------------------------------------------------------------------- */

/* The container's number for the driver's device: NO_CARD if it was not granted. */
HIDDEN unsigned card_of(CUdevice device);

/* Which card the memory at a driver location belongs to. Managed memory moves: it counts in full at its preferred
 * location; without one, or on the host, on the current card or else the first. NO_CARD: the location's card was not
 * granted, or its type is unknown. */
enum { HOST_MEMORY = NO_CARD - 1 };
HIDDEN unsigned card_at(const CUmemLocation *location, unsigned type);

/* Whether managed memory of the current device is paged between card and host: then NVML attributes it to no
 * process. */
HIDDEN bool managed_is_hidden(void);

/* The device of a context. False: there is no such context. */
HIDDEN bool device_of_context(CUcontext context, CUdevice *device);

/* The device of that card; -1: not visible to this process. */
HIDDEN CUdevice device_of(unsigned card);

/* ---- which contexts are accounted: contexts.c ------------------------------------------------------------------- */

/* The current context and its card. False: there is none, so the driver rejects the call. */
HIDDEN bool current_card(unsigned *card, CUcontext *context);

/* Records a context whose room was requested, or that needs none. False: it was known before. If there is no room for
 * the record, the context is treated as new the next time. */
HIDDEN bool context_noted(unsigned card, CUcontext context);
HIDDEN void context_forgotten(CUcontext context);

/* Memory is about to be taken in this context: one created without our hooks is charged from now on. */
HIDDEN void context_met(unsigned card, CUcontext context);

/* ---- what is held: held.c --------------------------------------------------------------------------------------- */

/* Flag in an entry's bytes: managed memory, which NVML attributes to no process (account_hide). */
#define HELD_HIDDEN (1ull << 62)

enum held_kind { HELD_MEMORY, HELD_ARRAYS, HELD_GROWN, HELD_KINDS };

/* A timestamp, later than all records made so far. */
HIDDEN uint32_t held_now(void);

/* Records memory of a context at an address and returns how many bytes of the card it adds: all 2 MiB blocks that it
 * touches and no other record does or, for other kinds, the bytes given. False: there is no room for the record. The
 * charge of a stale record at that address is given back. */
HIDDEN bool held_note(enum held_kind kind, const struct entry *what, uint64_t *charged);

/* Removes the record, before the driver is asked to free the memory; every held_take is followed by held_end. */
HIDDEN bool held_take(enum held_kind kind, uint64_t key, struct entry *what);

/* Whether the driver freed it; `at_once`: by the time of the call's return, or some time later. */
HIDDEN void held_end(enum held_kind kind, const struct entry *what, bool freed, bool at_once);

/* From now on other processes can hold it under that name. */
HIDDEN CUresult held_export(uint64_t address, uint64_t name);

/* Everything that a context held before that moment was freed with it. */
HIDDEN void held_context_gone(CUcontext context, uint32_t before);

/* ---- for forked children ---------------------------------------------------------------------------------------- */

HIDDEN void devices_forget(void);
HIDDEN void contexts_forget(void);
HIDDEN void held_forget(void);
HIDDEN void shared_forget(void);
