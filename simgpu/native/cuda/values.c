/* Streams that wait for a word of memory. Both versions of the functions are identical. */
#include "streams.h"

#include <stdlib.h>

enum { WAIT_GEQ, WAIT_EQ, WAIT_AND, WAIT_NOR, WAIT_KIND = 3, WAIT_FLUSH = 1 << 30 };

struct word {
    CUdeviceptr address;
    u32 value, flags;
};

static void *data_of(const struct word *word) {
    size_t length = 0;
    void *data = memory_data(word->address, &length);
    return length >= sizeof word->value ? data : NULL;
}

/* Differences are modulo 2^32, as counters wrap. A freed word does not block a stream. */
static bool arrived(const void *argument) {
    const struct word *word = argument;
    const u32 *data = data_of(word);
    if (!data) return true;
    const u32 now = __atomic_load_n(data, __ATOMIC_ACQUIRE);
    switch (word->flags & WAIT_KIND) {
    case WAIT_GEQ: return (int32_t)(now - word->value) >= 0;
    case WAIT_EQ: return now == word->value;
    case WAIT_AND: return (now & word->value) != 0;
    default: return ~(now | word->value) != 0;
    }
}

static CUresult wait(CUstream handle, const struct word *word, bool per_thread) {
    struct cuda_stream *stream;
    bool capturing;
    if (word->flags & ~(unsigned)(WAIT_KIND | WAIT_FLUSH)) return CUDA_ERROR_INVALID_VALUE;
    TRY(stream_of(handle, per_thread, &stream));
    TRY(stream_begin(stream, &capturing));
    if (capturing) return CUDA_ERROR_NOT_SUPPORTED;
    if (!data_of(word) || word->address % sizeof word->value) return CUDA_ERROR_INVALID_VALUE;
    struct word *kept = malloc(sizeof *kept);
    if (!kept) return CUDA_ERROR_OUT_OF_MEMORY;
    *kept = *word;
    CUresult result = stream_hold(stream, &(struct held){.kind = HELD_VALUE, .ready = arrived, .argument = kept});
    if (result) free(kept);
    return result;
}

#define WAIT_VALUE(name)                                                                                               \
    CALL_TWICE(name, _ptsz, wait(stream, &(struct word){address, value, flags}, per_thread), CUstream stream,          \
               CUdeviceptr address, u32 value, unsigned flags)

WAIT_VALUE(cuStreamWaitValue32)
WAIT_VALUE(cuStreamWaitValue32_v2)
