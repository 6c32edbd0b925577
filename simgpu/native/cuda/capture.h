/* Shared by capture.c and capture_calls.c. Everything here is guarded by captures_lock. */
#pragma once

#include "graphs.h"

struct capture {
    _Atomic u32 references;             /* one until it ends, one for each event recorded in it */
    CUstreamCaptureStatus status;       /* CAPTURE_NONE: ended */
    CUstreamCaptureMode mode;
    const struct thread *thread;        /* the thread that began it */
    struct cuda_stream *origin, *members;
    struct cuda_graph *graph;
    bool owns_graph;                    /* otherwise the graph was passed in */
    u64 id;
    struct capture *next;
};

extern pthread_mutex_t captures_lock;

struct capture *capture_new(struct cuda_stream *origin, CUstreamCaptureMode mode, struct cuda_graph *graph);
void capture_enter(struct capture *capture, struct cuda_stream *stream);

/* All its streams execute work again. */
void capture_end(struct capture *capture);

/* Whether it is the legacy stream, while a stream that it would wait for captures. */
bool stream_is_implicit(const struct cuda_stream *stream);
