/* Lifetime of the library: nvmlInit, nvmlShutdown, and the entry code of all other functions.
 *
 * There is one session at a time. It ends with the last nvmlShutdown, but its memory stays until every thread inside
 * has left; waiting threads notice within STEP_NS. A session that outlives its driver returns UNKNOWN; the next
 * nvmlInit opens another one.
 */
#define _GNU_SOURCE
#include "library.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STEP_NS (SIM_NS_PER_S / 20)

enum { INIT_NO_GPUS = 1, INIT_NO_ATTACH = 2, INIT_FORCE = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gone = PTHREAD_COND_INITIALIZER;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static struct session session;
static bool is_open;
static bool in_child; /* a fork happened while the session was open: the connection is not ours */
static u32 opened;    /* number of nvmlInit minus nvmlShutdown */
static u64 latest_boot;
static u32 generation;

static bool driver_lives(void) {
    return atomic_load(&session.file->state) == SIM_RUNNING && (session.unconnected || sim_alive(session.node));
}

static int64_t epoch_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * (int64_t)SIM_NS_PER_S + now.tv_nsec - (int64_t)sim_now();
}

static void find_cards(bool wanted) {
    u32 visible[SIM_CARDS];
    const u32 count = wanted ? sim_visible(session.node, visible) : 0;
    session.cards = 0;
    for (u32 i = 0; i < count; i++)
        if (!is_instance(&session, visible[i])) session.card[session.cards++] = visible[i];
}

/* The caller holds the lock. */
static nvml_result open_session(bool with_cards) {
    struct sim_node *node;
    if (sim_connect(&node) != SIM_OK) return NVML_DRIVER_NOT_LOADED;
    session = (struct session){.node = node, .file = node->file, .users = 1, .epoch_ns = epoch_ns()};
    if (node->file->boot != latest_boot) generation++;
    latest_boot = node->file->boot;
    session.generation = generation;
    find_cards(with_cards);
    in_child = false;
    is_open = true;
    return NVML_OK;
}

/* Removes one user; the caller holds the lock. */
static void release(void) {
    if (--session.users > 0) return;
    sim_disconnect();
    pthread_cond_broadcast(&gone);
}

static void close_session(void) {
    is_open = false;
    atomic_store(&session.closed, true);
    release();
    event_sets.forget();
}

/* ---- Forks ------------------------------------------------------------------------------------------------------- */

static void before_fork(void) {
    pthread_mutex_lock(&lock);
    event_sets.lock();
}

static void after_fork(void) {
    event_sets.unlock();
    pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void) {
    event_sets.unlock();
    in_child = is_open;
    session.users = is_open; /* the threads that were inside do not exist here */
    pthread_mutex_unlock(&lock);
    gone = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

static void prepare(void) { pthread_atfork(before_fork, after_fork, after_fork_in_child); }

/* A child continues with its parent's session and handles, as with the real NVML, on a connection of its own. If it
 * cannot get one it still reads the node file, which stays mapped, and only process lists fail. */
static void adopt_session(void) {
    in_child = false;
    sim_disconnect();
    if (open_session(session.cards > 0) != NVML_OK) session.unconnected = true;
}

/* ---- Entries ----------------------------------------------------------------------------------------------------- */

nvml_result session_wait(const struct session *of, const _Atomic u32 *word, u32 value, u64 ns) {
    const u64 began = sim_now();
    const u64 deadline = ns > UINT64_MAX - began ? UINT64_MAX : began + ns;
    for (;;) {
        if (atomic_load(word) != value) return NVML_OK;
        if (atomic_load(&of->closed)) return NVML_UNINITIALIZED;
        if (!driver_lives()) return NVML_UNKNOWN;
        const u64 now = sim_now();
        if (now >= deadline) return NVML_TIMEOUT;
        const u64 step = deadline - now < STEP_NS ? deadline - now : STEP_NS;
        const struct timespec wait = {.tv_sec = 0, .tv_nsec = (long)step};
        syscall(SYS_futex, word, FUTEX_WAIT, value, &wait, NULL, 0);
    }
}

/* Applies injected driver faults, for every call. */
static nvml_result obey(const struct session *of) {
    const struct sim_trouble *trouble = &of->file->trouble;
    const u64 delay_ns = atomic_load(&trouble->nvml_delay_ns);
    if (delay_ns > 0) {
        const nvml_result waited = session_wait(of, &of->file->state, SIM_RUNNING, delay_ns);
        if (waited != NVML_TIMEOUT && waited != NVML_OK) return waited;
    }
    u32 hang;
    while ((hang = atomic_load(&trouble->nvml_hang)) != 0) TRY(session_wait(of, &trouble->nvml_hang, hang, UINT64_MAX));
    if (!driver_lives()) return NVML_UNKNOWN;
    return atomic_load(&trouble->nvml_answer);
}

nvml_result call_enter(struct call *call) {
    call->saved_errno = errno;
    pthread_mutex_lock(&lock);
    if (is_open && in_child) adopt_session();
    if (is_open) {
        session.users++;
        call->session = &session;
    }
    pthread_mutex_unlock(&lock);
    return call->session != NULL ? obey(call->session) : NVML_UNINITIALIZED;
}

void call_leave(struct call *call) {
    if (call->session != NULL) {
        pthread_mutex_lock(&lock);
        release();
        pthread_mutex_unlock(&lock);
    }
    errno = call->saved_errno;
}

/* ---- Init and shutdown ------------------------------------------------------------------------------------------- */

static nvml_result join(bool with_cards) {
    pthread_once(&prepared, prepare);
    pthread_mutex_lock(&lock);
    if (is_open && in_child) adopt_session();
    if (is_open && !driver_lives()) close_session();
    while (!is_open && session.users > 0) pthread_cond_wait(&gone, &lock);
    const nvml_result result = is_open ? NVML_OK : open_session(with_cards);
    if (result == NVML_OK) opened++;
    pthread_mutex_unlock(&lock);
    return result;
}

static nvml_result part(void) {
    pthread_mutex_lock(&lock);
    const nvml_result result = opened > 0 ? NVML_OK : NVML_UNINITIALIZED;
    if (result == NVML_OK && --opened == 0 && is_open) close_session();
    pthread_mutex_unlock(&lock);
    return result;
}

static nvml_result enter_once(void) {
    CALL;
    return NVML_OK;
}

static nvml_result initialise(bool with_cards) {
    const int saved_errno = errno;
    nvml_result result = join(with_cards);
    if (result == NVML_OK && (result = enter_once()) != NVML_OK) part();
    errno = saved_errno;
    return result;
}

NVML(nvmlInitWithFlags, u32 flags) {
    NEEDS((flags & ~(u32)(INIT_NO_GPUS | INIT_NO_ATTACH | INIT_FORCE)) == 0);
    return initialise((flags & INIT_NO_GPUS) == 0);
}
NVML(nvmlInit_v2, void) { return initialise(true); }
NVML(nvmlInit, void) { return initialise(true); }

/* Works despite injected faults, so that a program can always start over. */
NVML(nvmlShutdown, void) {
    const int saved_errno = errno;
    const nvml_result result = part();
    errno = saved_errno;
    return result;
}

/* ---- Common results ---------------------------------------------------------------------------------------------- */

nvml_result give_text(const char *text, char *buffer, u32 length) {
    NEEDS(buffer != NULL);
    const size_t size = strlen(text) + 1;
    if (size > length) return NVML_INSUFFICIENT_SIZE;
    memcpy(buffer, text, size);
    return NVML_OK;
}

nvml_result give_count(u32 count, u32 *room, const void *list) {
    const u32 offered = *room;
    *room = count;
    if (count == 0) return NVML_OK;
    if (offered < count) return NVML_INSUFFICIENT_SIZE;
    NEEDS(list != NULL);
    return NVML_OK;
}
