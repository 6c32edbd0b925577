/* All functions that launch kernels: each launch passes the gate and is counted once the driver has it. Graphs are in
 * graphs.c. */
#include "hooks.h"

#define LIKELY(what) __builtin_expect(!!(what), 1)

/* ---- slow path -------------------------------------------------------------------------------------------------- */

/* A stream without a lane, for lack of room, is gated without a window, and drained like uncounted launches. */
static CUresult enter_unseen(struct gate *gate) {
    uint64_t word;
    if (!gate_enter(gate, &word)) return CUDA_ERROR_NOT_INITIALIZED;
    atomic_store(&gate->blind, true);
    return CUDA_SUCCESS;
}

/* A launch without a context is passed to the driver, which rejects it; so is one on a card that was not granted. But
 * without a broker nobody knows which cards were granted. */
static CUresult enter_elsewhere(void) { return session_cards() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED; }

static __attribute__((noinline)) CUresult enter(struct passage *passage, CUstream stream) {
    KEEP_ERRNO;
    unsigned card;
    uint64_t word;
    passage->lane = NULL;
    passage->caller = NULL;
    passage->is_captured = capture_enter(stream);
    if (passage->is_captured) return CUDA_SUCCESS;
    struct lane *lane = lane_of(stream, &card);
    if (card >= MOST_CARDS) return enter_elsewhere();
    if (!lane) return enter_unseen(&gates[card]);
    do {
        if (!gate_enter(lane->gate, &word)) return CUDA_ERROR_NOT_INITIALIZED;
    } while (!window_open(lane, word, passage->graph));
    atomic_fetch_add(&lane->inside, 1);
    passage->lane = lane;
    return CUDA_SUCCESS;
}

/* ---- fast path -------------------------------------------------------------------------------------------------- */

static inline uint64_t lane_word(const struct lane *lane) {
    return __atomic_load_n(atomic_load_explicit(&lane->word, memory_order_relaxed), __ATOMIC_ACQUIRE);
}

static inline bool passes(struct lane *lane, CUgraphExec graph) {
    if (!lane) return false;
    const struct gate *gate = atomic_load_explicit(&lane->gate, memory_order_relaxed);
    return lane_word(lane) == atomic_load_explicit(&gate->open, memory_order_relaxed) && lane_spend(lane, graph);
}

/* Counted once the driver has it, so that an event recorded afterwards covers it. Until then the thread counts as
 * inside. */
static inline void count(struct lane *lane) {
    const uint32_t launched = atomic_load_explicit(&lane->launched, memory_order_relaxed);
    atomic_store_explicit(&lane->launched, launched + 1, memory_order_release);
}

static inline void end(struct lane *lane, const _Atomic int32_t *credit) {
    if (!LIKELY(!is_spent(credit))) window_close(lane);
}

CUresult passage_begin_graph(struct passage *passage, CUgraphExec graph, CUstream stream, bool per_thread) {
    const CUstream into = stream_named(stream, per_thread);
    struct lane *lane = lane_cached(into);
    *passage = (struct passage){.lane = lane, .graph = graph};
    if (!LIKELY(passes(lane, graph))) return enter(passage, into);
    passage->caller = lane_cache.caller;
    atomic_store_explicit(&passage->caller->inside, lane, memory_order_relaxed);
    return CUDA_SUCCESS;
}

void passage_end(const struct passage *passage) {
    struct lane *const lane = passage->lane;
    if (passage->is_captured) capture_leave();
    if (!lane) return;
    count(lane);
    if (passage->caller)
        atomic_store_explicit(&passage->caller->inside, NULL, memory_order_release);
    else
        atomic_fetch_sub(&lane->inside, 1);
    end(lane, passage->graph ? &lane->graph_credit : &lane->credit);
}

/* `into` is the stream, the rest the call. The slow path is a separate function with the same arguments, so that the
 * fast path need not keep them. The fast path sets driver_depth itself, which equals DRIVER there: no hook runs inside
 * the driver, so it was 0. */
#define LAUNCH_HOOK(name, into, parameters, arguments)                                                                 \
    DECLARE_REAL(CUresult, name, UNPACK parameters);                                                                   \
    static __attribute__((noinline)) CUresult enter_##name(UNPACK parameters) {                                        \
        struct passage passage = {0};                                                                                  \
        TRY(function_comes(f, into));                                                                                  \
        TRY(enter(&passage, into));                                                                                    \
        const CUresult result = DRIVER(REAL(name) arguments);                                                          \
        passage_end(&passage);                                                                                         \
        return result;                                                                                                 \
    }                                                                                                                  \
    HOOK_CALL(name, UNPACK parameters) {                                                                               \
        struct lane *lane = lane_cached(into);                                                                         \
        if (!LIKELY(passes(lane, NULL))) return enter_##name arguments;                                                \
        struct caller *const caller = lane_cache.caller;                                                               \
        atomic_store_explicit(&caller->inside, lane, memory_order_relaxed);                                            \
        driver_depth = 1;                                                                                              \
        const CUresult result = REAL(name) arguments;                                                                  \
        driver_depth = 0;                                                                                              \
        count(lane);                                                                                                   \
        atomic_store_explicit(&caller->inside, NULL, memory_order_release);                                            \
        end(lane, &lane->credit);                                                                                      \
        return result;                                                                                                 \
    }
#define UNPACK(...) __VA_ARGS__

/* ---- all of them ------------------------------------------------------------------------------------------------ */

#define SHAPE unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared
#define SHAPED gx, gy, gz, bx, by, bz, shared

LAUNCH_HOOK(cuLaunchKernel, stream_named(stream, false),
            (CUfunction f, SHAPE, CUstream stream, void **params, void **extra), (f, SHAPED, stream, params, extra))

LAUNCH_HOOK(cuLaunchKernel_ptsz, stream_named(stream, true),
            (CUfunction f, SHAPE, CUstream stream, void **params, void **extra), (f, SHAPED, stream, params, extra))

/* Without a configuration there is no stream. */
static inline CUstream stream_in(const CUlaunchConfig *config, bool per_thread) {
    return stream_named(config ? config->stream : NULL, per_thread);
}

LAUNCH_HOOK(cuLaunchKernelEx, stream_in(config, false),
            (const CUlaunchConfig *config, CUfunction f, void **params, void **extra), (config, f, params, extra))

LAUNCH_HOOK(cuLaunchKernelEx_ptsz, stream_in(config, true),
            (const CUlaunchConfig *config, CUfunction f, void **params, void **extra), (config, f, params, extra))

LAUNCH_HOOK(cuLaunchCooperativeKernel, stream_named(stream, false),
            (CUfunction f, SHAPE, CUstream stream, void **params), (f, SHAPED, stream, params))

LAUNCH_HOOK(cuLaunchCooperativeKernel_ptsz, stream_named(stream, true),
            (CUfunction f, SHAPE, CUstream stream, void **params), (f, SHAPED, stream, params))

LAUNCH_HOOK(cuLaunch, CU_STREAM_LEGACY, (CUfunction f), (f))

LAUNCH_HOOK(cuLaunchGrid, CU_STREAM_LEGACY, (CUfunction f, int width, int height), (f, width, height))

LAUNCH_HOOK(cuLaunchGridAsync, stream_named(stream, false), (CUfunction f, int width, int height, CUstream stream),
            (f, width, height, stream))

/* One kernel on each of several cards: passes all gates, then launches. None of it can be captured. */
HOOK_CALL(cuLaunchCooperativeKernelMultiDevice, CUDA_LAUNCH_PARAMS *each, unsigned many, unsigned flags) {
    struct passage passages[MOST_CARDS] = {{0}};
    const unsigned gated = each && many <= MOST_CARDS ? many : 0;
    CUresult result = CUDA_SUCCESS;
    unsigned entered = 0;
    for (; entered < gated && result == CUDA_SUCCESS; entered++) {
        result = enter(&passages[entered], stream_named(each[entered].stream, false));
        if (passages[entered].is_captured) capture_leave();
        passages[entered].is_captured = false;
    }
    if (result == CUDA_SUCCESS) result = DRIVER(REAL(cuLaunchCooperativeKernelMultiDevice)(each, many, flags));
    for (unsigned n = 0; n < entered; n++) passage_end(&passages[n]);
    return result;
}
