/* Streams that wait for a word of memory. Both versions of the function do the same. */
#include "streams.h"

#include <stdlib.h>

enum { WAIT_GEQ, WAIT_EQ, WAIT_AND, WAIT_NOR, WAIT_KIND = 3, WAIT_FLUSH = 1 << 30 };

struct word {
    CUdeviceptr address;
    u64 value;
    unsigned bytes, flags;
};

static void *data_of(const struct word *word) {
    size_t length = 0;
    void *data = memory_data(word->address, &length);
    return length >= word->bytes ? data : NULL;
}

/* Differences are taken modulo the word's size, as counters wrap. A word that is gone stops no stream. */
static bool arrived(const void *argument) {
    const struct word *word = argument;
    const void *data = data_of(word);
    if (!data) return true;
    u64 now = word->bytes == 4 ? __atomic_load_n((const u32 *)data, __ATOMIC_ACQUIRE)
                               : __atomic_load_n((const u64 *)data, __ATOMIC_ACQUIRE);
    switch (word->flags & WAIT_KIND) {
    case WAIT_GEQ: return word->bytes == 4 ? (int32_t)(u32)(now - word->value) >= 0 : (int64_t)(now - word->value) >= 0;
    case WAIT_EQ: return now == word->value;
    case WAIT_AND: return (now & word->value) != 0;
    default: return (~(now | word->value) & (word->bytes == 4 ? UINT32_MAX : UINT64_MAX)) != 0;
    }
}

static CUresult hold(CUstream handle, const struct word *word, bool per_thread) {
    struct cuda_stream *stream;
    bool capturing;
    TRY(stream_of(handle, per_thread, &stream));
    TRY(stream_begin(stream, &capturing));
    if (capturing) return CUDA_ERROR_NOT_SUPPORTED;
    if (!data_of(word) || word->address % word->bytes) return CUDA_ERROR_INVALID_VALUE;
    struct word *kept = malloc(sizeof *kept);
    if (!kept) return CUDA_ERROR_OUT_OF_MEMORY;
    *kept = *word;
    CUresult result = stream_hold(stream, &(struct held){.kind = HELD_VALUE, .ready = arrived, .argument = kept});
    if (result) free(kept);
    return result;
}

static CUresult wait(CUstream stream, CUdeviceptr address, u64 value, unsigned bytes, unsigned flags, bool per_thread) {
    if (flags & ~(unsigned)(WAIT_KIND | WAIT_FLUSH)) return CUDA_ERROR_INVALID_VALUE;
    return hold(stream, &(struct word){address, value, bytes, flags}, per_thread);
}

#define BOTH_VERSIONS(name, does, type, per_thread, suffix)                                                            \
    CALL(name##suffix, CUstream stream, CUdeviceptr address, type value, unsigned flags) {                             \
        return does(stream, address, value, sizeof(type), flags, per_thread);                                          \
    }                                                                                                                  \
    CALL(name##_v2##suffix, CUstream stream, CUdeviceptr address, type value, unsigned flags) {                        \
        return does(stream, address, value, sizeof(type), flags, per_thread);                                          \
    }

BOTH_VERSIONS(cuStreamWaitValue32, wait, u32, false, )
BOTH_VERSIONS(cuStreamWaitValue32, wait, u32, true, _ptsz)
