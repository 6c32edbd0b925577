/* Every path by which a program allocates bytes of a card, each as a pair of functions to allocate and free. */
#pragma once

#include "calls.h"

struct kind;

/* One allocation. */
struct held {
    const struct kind *kind; /* NULL: nothing */
    u64 bytes, claimed;
    CUdeviceptr address;
    CUmemGenericAllocationHandle memory;
    union {
        CUmemoryPool pool;
        CUarray array;
        CUmipmappedArray mipmaps;
        CUgraphExec executable;
        CUcontext context;
    };
    CUstream stream; /* orders its allocation and free; set before it is allocated */
};

struct kind {
    const char *name;
    u64 (*worst)(u64 bytes); /* the most that must be free when `bytes` are requested */
    CUresult (*take)(struct held *held, u64 bytes); /* allocates nothing when it returns an error */
    void (*give)(struct held *held);
    bool kept; /* freed memory stays with the process until it is trimmed: worst() is the addition during a request */
    bool passing; /* allocates nothing in the end: worst() must be free during the request, by any number of threads */
};

extern const struct kind kinds[];
extern const unsigned kinds_count;

/* Called before the others; `context` is the size of one. */
void kinds_begin(int device, u64 context);

/* The current size of the process's default pool on the card. */
u64 pool_reserved(void);
