/* Common parts of this library's files.
 *
 * Every NVML function begins with one of the four entry macros below. They alone count the threads inside, apply
 * injected faults, preserve errno, and turn a handle into a card.
 */
#pragma once

#include "../common/connection.h"
#include "driver/nvml_abi.h"

#include <string.h>

/* Declares and defines an exported function. */
#define NVML(name, ...)                                                                                                \
    __attribute__((visibility("default"))) nvml_result name(__VA_ARGS__);                                              \
    __attribute__((visibility("default"))) nvml_result name(__VA_ARGS__)

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const nvml_result tried_ = (call);                                                                             \
        if (tried_ != NVML_OK) return tried_;                                                                          \
    } while (0)

/* Returns INVALID_ARGUMENT unless the condition holds. */
#define NEEDS(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) return NVML_INVALID_ARGUMENT;                                                                \
    } while (0)

/* State from the first nvmlInit to the last nvmlShutdown, kept for calls that are still inside then. */
struct session {
    struct sim_node *node;
    const struct sim_node_file *file;
    u32 generation;                /* of the handles; each driver has its own */
    u32 users;                     /* threads inside, plus one while open; guarded by library.c's lock */
    _Atomic bool closed;           /* set by the last nvmlShutdown; waiting threads give up */
    u32 cards;                     /* cards that this process may use, excluding MIG instances */
    u32 card[SIM_CARDS];           /* their indices in the node file */
    int64_t epoch_ns;              /* time of day at CLOCK_MONOTONIC's zero, to timestamp samples */
    bool unconnected;              /* of a forked child that can only read */
};

struct call {
    struct session *session;
    int saved_errno;
};

/* ---- Entries ----------------------------------------------------------------------------------------------------- */

#define CALL                                                                                                           \
    __attribute__((cleanup(call_leave))) struct call call = {0};                                                       \
    TRY(call_enter(&call))

/* As CALL; `card` is the card of the handle `device`: a whole card or a MIG instance. */
#define CALL_ANY                                                                                                       \
    CALL;                                                                                                              \
    u32 card;                                                                                                          \
    TRY(card_of(call.session, device, &card))

/* As CALL_ANY, with NOT_SUPPORTED for a MIG instance. `model` and `live` are the card's. */
#define CALL_CARD                                                                                                      \
    CALL_ANY;                                                                                                          \
    if (is_instance(call.session, card)) return NVML_NOT_SUPPORTED;                                                    \
    const struct sim_model *const model = &call.session->file->card[card].model;                                       \
    const struct sim_live *const live = &call.session->file->card[card].live;                                          \
    (void)model, (void)live

/* As CALL_CARD, for functions that only write through one pointer. */
#define CALL_CARD_OUT(pointer)                                                                                         \
    CALL_CARD;                                                                                                         \
    NEEDS((pointer) != NULL)

/* UNINITIALIZED, an injected fault, or UNKNOWN once simgpud is gone. */
nvml_result call_enter(struct call *call);
void call_leave(struct call *call);

/* Waits on a futex of the node file while it is `value`, at most `ns`, in steps short enough to notice that the session
 * is closed or the driver gone. OK when it may have changed; TIMEOUT; otherwise the result that the caller must
 * return. */
nvml_result session_wait(const struct session *session, const _Atomic u32 *word, u32 value, u64 ns);

/* ---- handles.c --------------------------------------------------------------------------------------------------- */

/* INVALID_ARGUMENT, or GPU_IS_LOST for a lost card and for handles of an earlier driver. */
nvml_result card_of(const struct session *session, nvmlDevice device, u32 *card);
nvmlDevice device_of(const struct session *session, u32 card);
nvml_result gpu_instance_of(const struct session *session, nvmlGpuInstance handle, u32 *card);
nvmlGpuInstance gpu_instance_handle(const struct session *session, u32 card);
nvml_result compute_instance_of(const struct session *session, nvmlComputeInstance handle, u32 *card);
nvmlComputeInstance compute_instance_handle(const struct session *session, u32 card);

static inline const struct sim_model *model_of(const struct session *session, u32 card) {
    return &session->file->card[card].model;
}

static inline bool is_instance(const struct session *session, u32 card) {
    return model_of(session, card)->parent != SIM_NO_PARENT;
}

/* The whole card that `card` is, or is part of. */
static inline u32 whole_card(const struct session *session, u32 card) {
    return is_instance(session, card) ? (u32)model_of(session, card)->parent : card;
}

static inline u32 blindness_of(const struct session *session, u32 card) {
    return atomic_load(&session->file->card[card].live.blind);
}

/* The next MIG instance of `parent` at or after `from`; `file->cards` if there is none. */
u32 next_instance(const struct session *session, u32 parent, u32 from);

/* ---- Common results ---------------------------------------------------------------------------------------------- */

/* Copies a string; INSUFFICIENT_SIZE if it does not fit with its terminator. */
nvml_result give_text(const char *text, char *buffer, u32 length);

/* NVML's convention for lists: *room is the caller's capacity, `count` the number of elements. OK to fill in `count`,
 * with *room = count; INSUFFICIENT_SIZE (with *room = count) if they do not fit. */
nvml_result give_count(u32 count, u32 *room, const void *list);

/* OK if a struct's version word equals `expected`. */
static inline nvml_result check_version(u32 word, u32 expected) {
    return word == expected ? NVML_OK : NVML_VERSION_MISMATCH;
}

static inline bool is_geforce(const struct sim_model *model) { return strstr(model->name, "GeForce") != NULL; }

static inline bool has_nvlink_to(const struct sim_model *model, u32 other) {
    for (u32 link = 0; link < model->nvlinks && link < SIM_LINKS; link++)
        if (model->link_to[link] == (int32_t)other) return true;
    return false;
}

/* ---- use.c ------------------------------------------------------------------------------------------------------- */

/* Recent utilization of a card, in thousandths; 0 if it was not sampled. */
struct use {
    u32 busy_milli, memory_milli;
};
struct use use_of(const struct session *session, u32 card);

/* Copies the samples after `since_us`, oldest first, with `wall` as time of day in microseconds; returns how many. */
u32 samples_since(const struct session *session, u32 card, u64 since_us, struct sim_sample samples[SIM_SAMPLES]);

/* ---- pci.c ------------------------------------------------------------------------------------------------------- */

void fill_pci(const struct sim_model *model, struct nvml_pci *pci);

/* PCIe generation of an architecture's cards. */
u32 pcie_generation(const struct sim_model *model);

/* ---- power.c ------------------------------------------------------------------------------------------- */

u32 power_mw(const struct session *session, u32 card);
u64 energy_mj(const struct session *session, u32 card);
bool threshold_of(const struct sim_model *model, u32 kind, u32 *celsius);

/* ---- parts.c ----------------------------------------------------------------------------------------------------- */

/* Callbacks of the files above library.c, for the session's end and for locking around a fork. */
struct part {
    void (*forget)(void), (*lock)(void), (*unlock)(void);
};

extern const struct part event_sets;

/* ---- events.c, for that table ------------------------------------------------------------------------------------ */

void events_forget_all(void);
void events_fork_lock(void);
void events_fork_unlock(void);
