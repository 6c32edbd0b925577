/* Captures: what capture.c and capture_calls.c share. Everything here is guarded by captures_lock. */
#pragma once

#include "graphs.h"

struct capture {
    _Atomic u32 references;             /* one while it lasts, one for each event recorded in it */
    CUstreamCaptureStatus status;       /* CAPTURE_NONE: ended */
    CUstreamCaptureMode mode;
    const struct thread *thread;        /* that began it */
    struct cuda_stream *origin, *members;
    struct cuda_graph *graph;
    bool owns_graph;                    /* else it was given */
    u64 id;
    struct capture *next;
};

extern pthread_mutex_t captures_lock;

struct capture *capture_new(struct cuda_stream *origin, CUstreamCaptureMode mode, struct cuda_graph *graph);
void capture_enter(struct capture *capture, struct cuda_stream *stream);

/* All its streams do what they are told again. */
void capture_end(struct capture *capture);

/* The legacy stream, while a stream captures that it would wait for. */
bool stream_is_implicit(const struct cuda_stream *stream);
