/* What the hooks that take memory share: which card a call means, and what the process holds where.
 *
 *   account.h   how many bytes            table.h     hash tables
 *   held        addresses and arrays      reserves    what pools and graphs keep
 *   growth      what no program asks for
 *
 * Every hook that takes memory: the card, account_begin with the most that may be taken, the driver, a note of what it
 * gave, account_end. Every hook that gives memory back: the note is taken away, account_begin_free, the driver,
 * account_end_free; where the driver refuses, the note comes back. Until the driver is done, what is freed stays
 * counted; and once it is done, another thread may get the same address, whose note must not be the one that goes.
 *
 * Arguments that the driver will not accept go to it unchanged, so that it says so.
 */
#pragma once

#include "../core/driver.h"
#include "account.h"
#include "driver/cuda_abi.h"
#include "table.h"

#define BLOCK_BYTES (2ull << 20)

static inline uint64_t round_up(uint64_t bytes, uint64_t step) { return (bytes + step - 1) / step * step; }

/* ---- which card: devices.c -------------------------------------------------------------------------------------- */

/* The container's number of the driver's device: NO_CARD for one that it was not granted. */
HIDDEN unsigned card_of(CUdevice device);

/* Whose memory there is at a place of the driver's. Managed memory moves: it counts in full where it prefers to be, and
 * without that, or on the host, on the current card or else the first. NO_CARD: of a card that was not granted, or at a
 * place of a kind that is not known here. */
enum { HOST_MEMORY = NO_CARD - 1 };
HIDDEN unsigned card_at(const CUmemLocation *location, unsigned type);

/* The card of the current context and the context. False: there is none, so the driver refuses whatever it is. */
HIDDEN bool current_card(unsigned *card, CUcontext *context);

/* Whether managed memory of the current device is paged between card and host: then NVML shows it as no process's. */
HIDDEN bool managed_is_hidden(void);

/* The device that a context is on. False: there is no such context. */
HIDDEN bool device_of_context(CUcontext context, CUdevice *device);

/* The device of that card; -1: this process sees none. */
HIDDEN CUdevice device_of(unsigned card);

/* One whose room was asked for, or that needs none of its own. False: it was known before. Without room for the note it
 * is met again. */
HIDDEN bool context_noted(unsigned card, CUcontext context);
HIDDEN void context_forgotten(CUcontext context);

/* Whatever is about to take memory is in this context: one that was made without us is charged from now on. */
HIDDEN void context_met(unsigned card, CUcontext context);

/* ---- what is held: held.c --------------------------------------------------------------------------------------- */

/* In an entry's bytes: it is managed memory, which NVML shows as no process's (account_hide). */
#define HELD_HIDDEN (1ull << 62)

enum held_kind { HELD_MEMORY, HELD_ARRAYS, HELD_GROWN, HELD_KINDS };

/* A point in time: what was noted before. */
HIDDEN uint32_t held_now(void);

/* Notes memory of a context at an address and says how many bytes of the card it is that no other note has: all 2 MiB
 * blocks that it touches, or, of all else, as many as given. False: there is no room for the note. What the note of
 * something that is long gone had is given back. */
HIDDEN bool held_note(enum held_kind kind, const struct entry *what, uint64_t *charged);

/* Takes the note away, before the driver is asked to free what it was of; every held_take is followed by held_end. */
HIDDEN bool held_take(enum held_kind kind, uint64_t key, struct entry *what);

/* The driver did or did not free it; `at_once`, or some time after it has said so. */
HIDDEN void held_end(enum held_kind kind, const struct entry *what, bool freed, bool at_once);

/* Other processes can hold it from now on, by that name. */
HIDDEN CUresult held_export(uint64_t address, uint64_t name);

/* All that a context had before that moment went with it. */
HIDDEN void held_context_gone(CUcontext context, uint32_t before);

/* ---- for the child of a fork ------------------------------------------------------------------------------------ */

HIDDEN void devices_forget(void);
HIDDEN void held_forget(void);
HIDDEN void shared_forget(void);
