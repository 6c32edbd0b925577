/* Kernels that spin until their peers run, in any process and on any card, as a collective does.
 *
 * Peers share words of memory visible to the host. A kernel that begins writes its round into its own word, and ends
 * once every word has that round. Until then it occupies the card like any other kernel.
 */
#include "functions.h"

#include <stdlib.h>

struct meeting {
    CUdeviceptr words; /* 32 bits for each peer */
    u32 own, peers, round;
};

/* Freed words do not block a stream. */
static bool met(const void *argument) {
    const struct meeting *meeting = argument;
    size_t length = 0;
    u32 *word = memory_data(meeting->words, &length);
    if (!word || length < meeting->peers * sizeof *word) return true;
    __atomic_store_n(&word[meeting->own], meeting->round, __ATOMIC_RELEASE);
    for (u32 i = 0; i < meeting->peers; i++)
        if ((int32_t)(__atomic_load_n(&word[i], __ATOMIC_ACQUIRE) - meeting->round) < 0) return false;
    return true;
}

CUresult stream_meet(struct cuda_stream *stream, void *const *params) {
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    struct meeting *meeting = malloc(sizeof *meeting);
    if (!meeting) return CUDA_ERROR_OUT_OF_MEMORY;
    *meeting = (struct meeting){*(const u64 *)params[0], *(const u32 *)params[1], *(const u32 *)params[2],
                                *(const u32 *)params[3]};
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (meeting->own < meeting->peers)
        result = stream_hold(stream, &(struct held){.kind = HELD_SPIN, .ready = met, .argument = meeting});
    if (result) free(meeting);
    return result;
}
