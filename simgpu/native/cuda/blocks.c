/* Heaps: chunks of a card, and the segments of them that programs get.
 *
 * A chunk's segments cover it, in address order. Free neighbours are merged; a segment that was freed in stream order
 * stays separate until its free completes, since only that stream may reuse it before.
 */
#include "heap.h"

#include <stdlib.h>

/* ---- the order in which streams' frees complete ------------------------------------------------------------------ */

static struct order *orders;

struct order *order_known(u64 stream) {
    struct order *order = orders;
    while (order && order->stream != stream) order = order->next;
    return order;
}

struct order *order_of(u64 stream) {
    struct order *order = order_known(stream);
    if (order) return order;
    order = malloc(sizeof *order);
    if (!order) return NULL;
    *order = (struct order){.stream = stream, .next = orders};
    orders = order;
    return order;
}

void order_drop(struct order *order) {
    if (!order || --order->references) return;
    UNLINK(orders, order, next);
    free(order);
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

static void order_forget(struct segment *segment) {
    order_drop(segment->order);
    segment->order = NULL;
}

static bool usable(const struct segment *segment, u64 bytes, const struct order *order) {
    if (segment->used || segment->bytes < bytes) return false;
    return !segment->order || segment->order == order || segment->order->done >= segment->number;
}

/* Merges with the next segment, if both are free under the same conditions. */
static bool merge(struct segment *segment) {
    struct segment *behind = segment->next;
    if (!behind || segment->used || behind->used || segment->order != behind->order) return false;
    if (behind->number > segment->number) segment->number = behind->number;
    segment->bytes += behind->bytes;
    segment->next = behind->next;
    if (behind->next) behind->next->previous = segment;
    order_forget(behind);
    free(behind);
    return true;
}

/* Neighbours of one kind are always merged already, so once per side is enough. */
static struct segment *merge_around(struct segment *segment) {
    struct segment *before = segment->previous;
    merge(segment);
    return before && merge(before) ? before : segment;
}

/* Shortens the segment to `bytes`; the rest becomes a separate free segment. */
static bool split(struct segment *segment, u64 bytes) {
    if (segment->bytes == bytes) return true;
    struct segment *rest = malloc(sizeof *rest);
    if (!rest) return false;
    *rest = *segment;
    rest->start += bytes;
    rest->bytes -= bytes;
    rest->previous = segment;
    if (rest->next) rest->next->previous = rest;
    if (rest->order) rest->order->references++;
    segment->bytes = bytes;
    segment->next = rest;
    return true;
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

static u32 kind_of(const struct heap *heap, bool whole) { return whole ? SIM_LARGE : heap->kind; }

static void chunk_link(struct chunk *chunk) {
    struct heap *heap = chunk->heap;
    chunk->next = heap->chunks;
    if (heap->chunks) heap->chunks->previous = chunk;
    heap->chunks = chunk;
    heap->reserved += chunk->bytes;
    if (heap->reserved > heap->reserved_high) heap->reserved_high = heap->reserved;
}

static void chunk_unlink(struct chunk *chunk) {
    struct heap *heap = chunk->heap;
    if (chunk->next) chunk->next->previous = chunk->previous;
    if (chunk->previous)
        chunk->previous->next = chunk->next;
    else
        heap->chunks = chunk->next;
    heap->reserved -= chunk->bytes;
}

static CUresult chunk_new(struct heap *heap, u64 bytes, bool whole, struct chunk **made) {
    struct chunk *chunk = calloc(1, sizeof *chunk);
    struct segment *all = calloc(1, sizeof *all);
    const u64 address = chunk && all ? arena_take(bytes, 0) : 0;
    u64 piece = 0;
    CUresult result =
        address ? piece_take(heap->device, kind_of(heap, whole), bytes, &piece) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && heap->exposed && !arena_expose(address, bytes)) {
        piece_give(piece);
        arena_restore(address, bytes);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        if (address) arena_give(address, bytes);
        free(chunk);
        free(all);
        return result;
    }
    *all = (struct segment){.chunk = chunk, .start = address, .bytes = bytes};
    *chunk = (struct chunk){
        .heap = heap, .piece = piece, .address = address, .bytes = bytes, .largest = bytes, .whole = whole};
    chunk->first = all;
    chunk_link(chunk);
    *made = chunk;
    return CUDA_SUCCESS;
}

/* ---- extending chunks -------------------------------------------------------------------------------------------- */

static struct segment *last_of(const struct chunk *chunk) {
    struct segment *segment = chunk->first;
    while (segment->next) segment = segment->next;
    return segment;
}

/* A chunk that other processes may have stays one piece. */
static bool may_grow(const struct chunk *chunk) {
    const struct segment *last = last_of(chunk);
    return chunk->heap->pool && !chunk->heap->pool->handle_types && !last->used && !last->order;
}

static void resized(struct chunk *chunk, u64 more, u64 less) {
    struct heap *heap = chunk->heap;
    chunk->bytes += more - less;
    heap->reserved += more - less;
    if (heap->reserved > heap->reserved_high) heap->reserved_high = heap->reserved;
}

/* Lengthens its last segment, which must be free. */
static CUresult chunk_grow(struct chunk *chunk, u64 more) {
    struct heap *heap = chunk->heap;
    const u64 address = chunk->address + chunk->bytes;
    struct extension *extension = malloc(sizeof *extension);
    if (!extension || !arena_take_at(address, more)) return free(extension), CUDA_ERROR_NOT_FOUND;
    *extension = (struct extension){.bytes = more, .before = chunk->extensions};
    chunk->grows = true; /* on a full card the unused memory of pools is returned first */
    CUresult result = piece_take(heap->device, heap->kind, more, &extension->piece);
    chunk->grows = false;
    if (result == CUDA_SUCCESS && heap->exposed && !arena_expose(address, more)) {
        piece_give(extension->piece);
        arena_restore(address, more);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        arena_give(address, more);
        free(extension);
        return result;
    }
    struct segment *last = last_of(chunk);
    last->bytes += more;
    if (last->bytes > chunk->largest) chunk->largest = last->bytes;
    chunk->extensions = extension;
    resized(chunk, more, 0);
    return CUDA_SUCCESS;
}

/* Returns the last extension; its addresses too, unless the chunk goes with them. */
static void extension_drop(struct chunk *chunk) {
    struct extension *extension = chunk->extensions;
    chunk->extensions = extension->before;
    piece_give(extension->piece);
    free(extension);
}

/* Returns extensions behind everything in use. True if there were any. */
static bool chunk_shrink(struct chunk *chunk, u64 keep) {
    bool gone = false;
    for (const struct extension *last; (last = chunk->extensions); gone = true) {
        struct segment *segment = last_of(chunk);
        const u64 less = last->bytes, address = chunk->address + chunk->bytes - less;
        if (segment->used || segment->order || segment->bytes <= less) break;
        if (chunk->heap->reserved < keep + less) break;
        segment->bytes -= less;
        resized(chunk, 0, less);
        if (chunk->heap->exposed) arena_restore(address, less);
        extension_drop(chunk);
        arena_give(address, less);
    }
    return gone;
}

static void chunk_drop(struct chunk *chunk) {
    chunk_unlink(chunk);
    while (chunk->extensions) extension_drop(chunk);
    piece_give(chunk->piece);
    if (chunk->heap->exposed) arena_restore(chunk->address, chunk->bytes);
    if (chunk->shared)
        arena_retire(chunk->address, chunk->bytes);
    else
        arena_give(chunk->address, chunk->bytes);
    for (struct segment *segment = chunk->first, *next; segment; segment = next) {
        next = segment->next;
        order_forget(segment);
        free(segment);
    }
    free(chunk);
}

/* Makes completed frees available to all streams. */
static void chunk_settle(struct chunk *chunk) {
    for (struct segment *segment = chunk->first; segment; segment = segment->next)
        if (segment->order && segment->order->done >= segment->number) order_forget(segment);
    for (struct segment *segment = chunk->first; segment; segment = segment->next) {
        while (merge(segment)) {
        }
        if (!segment->used && segment->bytes > chunk->largest) chunk->largest = segment->bytes;
    }
}

static struct segment *chunk_search(struct chunk *chunk, u64 bytes, const struct order *order) {
    if (chunk->whole || chunk->largest < bytes) return NULL;
    u64 largest = 0;
    for (struct segment *segment = chunk->first; segment; segment = segment->next) {
        if (usable(segment, bytes, order)) return segment;
        if (!segment->used && segment->bytes > largest) largest = segment->bytes;
    }
    chunk->largest = largest;
    return NULL;
}

/* ---- heaps ------------------------------------------------------------------------------------------------------- */

static struct segment *heap_search(struct heap *heap, u64 bytes, const struct order *order) {
    for (struct chunk *chunk = heap->chunks; chunk; chunk = chunk->next) {
        struct segment *found = chunk_search(chunk, bytes, order);
        if (found) return found;
    }
    return NULL;
}

static struct segment *heap_search_settled(struct heap *heap, u64 bytes, const struct order *order) {
    struct segment *found = heap_search(heap, bytes, order);
    if (found || !heap->pool) return found;
    for (struct chunk *chunk = heap->chunks; chunk; chunk = chunk->next) chunk_settle(chunk);
    return heap_search(heap, bytes, order);
}

static bool has_bound(const struct heap *heap, u64 more) { return heap->most && heap->reserved + more > heap->most; }

/* A pool grows by the missing bytes behind what it has. CUDA_ERROR_NOT_FOUND: no chunk can grow. */
static CUresult heap_lengthen(struct heap *heap, u64 bytes, struct segment **found) {
    for (struct chunk *chunk = heap->chunks; chunk; chunk = chunk->next) {
        if (!may_grow(chunk)) continue;
        const u64 more = round_up(bytes - last_of(chunk)->bytes, heap->growth);
        const CUresult result = has_bound(heap, more) ? CUDA_ERROR_OUT_OF_MEMORY : chunk_grow(chunk, more);
        *found = last_of(chunk);
        if (result != CUDA_ERROR_NOT_FOUND) return result;
    }
    return CUDA_ERROR_NOT_FOUND;
}

static CUresult heap_grow(struct heap *heap, u64 bytes, struct segment **found) {
    const CUresult lengthened = heap_lengthen(heap, bytes, found);
    if (lengthened != CUDA_ERROR_NOT_FOUND) return lengthened;
    const u64 chunk_bytes = round_up(bytes, heap->growth);
    if (has_bound(heap, chunk_bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    struct chunk *chunk;
    TRY(chunk_new(heap, chunk_bytes, bytes >= heap->whole_from, &chunk));
    *found = chunk->first;
    return CUDA_SUCCESS;
}

CUresult heap_take(struct heap *heap, u64 bytes, const struct order *order, struct segment **taken) {
    if (bytes == 0 || bytes > ARENA_BYTES) return bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    const u64 asked = bytes;
    bytes = round_up(bytes, ALIGNMENT);
    struct segment *segment = bytes < heap->whole_from ? heap_search_settled(heap, bytes, order) : NULL;
    if (!segment) TRY(heap_grow(heap, bytes, &segment));
    split(segment, bytes); /* without memory for that the segment stays larger */
    order_forget(segment);
    segment->used = true;
    segment->asked = asked;
    segment->chunk->used += segment->bytes;
    heap->used += asked;
    if (heap->used > heap->used_high) heap->used_high = heap->used;
    *taken = segment;
    return CUDA_SUCCESS;
}

void heap_give(struct segment *segment, struct order *order) {
    struct chunk *chunk = segment->chunk;
    struct heap *heap = chunk->heap;
    heap->used -= segment->asked;
    chunk->used -= segment->bytes;
    if (!heap->pool && chunk->used == 0) return chunk_drop(chunk);
    segment->used = false;
    segment->order = order;
    segment->number = order ? order->last : 0;
    if (order) order->references++;
    segment = merge_around(segment);
    if (segment->bytes > chunk->largest) chunk->largest = segment->bytes;
}

bool heap_trim(struct heap *heap, u64 keep) {
    bool gone = false;
    for (struct chunk *chunk = heap->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        if (chunk->grows) continue;
        if (chunk->extensions) {
            chunk_settle(chunk);
            gone |= chunk_shrink(chunk, keep);
        }
        if (heap->reserved < keep + chunk->bytes || chunk->used) continue;
        chunk_settle(chunk);
        if (chunk->first->next || chunk->first->order) continue;
        chunk_drop(chunk);
        gone = true;
    }
    return gone;
}

void heap_empty(struct heap *heap) {
    while (heap->chunks) chunk_drop(heap->chunks);
    heap->used = 0;
}

static void segment_end(struct range *range) {
    struct segment *segment = range->owner;
    range_remove(range);
    heap_give(segment, NULL);
}

CUresult segment_range(struct segment *segment, u64 bytes, enum range_kind kind, CUdeviceptr *address) {
    const struct heap *heap = segment->chunk->heap;
    char *const kept = keeps_data(heap->device, bytes) ? arena_data(segment->start) : NULL;
    char *const data = heap->exposed ? (char *)segment->start : kept;
    const struct range like = {
        .start = segment->start,
        .bytes = bytes,
        .kind = kind,
        .device = heap->device,
        .context = heap->context,
        .data = data,
        .owner = segment,
        .gone = segment_end,
    };
    if (!range_add(&like)) {
        heap_give(segment, NULL);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = segment->start;
    return CUDA_SUCCESS;
}
