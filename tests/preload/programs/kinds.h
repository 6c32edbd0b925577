/* Every path by which a program takes bytes of a card, each as: take so many, give them back. */
#pragma once

#include "calls.h"

struct kind;

/* What one allocation is. */
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
    CUstream stream; /* in whose order it is taken and freed; set before it is taken */
};

struct kind {
    const char *name;
    u64 (*worst)(u64 bytes); /* the most that must be free for it when asked for `bytes` */
    CUresult (*take)(struct held *held, u64 bytes); /* takes nothing where it answers an error */
    void (*give)(struct held *held);
    bool kept; /* what was freed stays with the process until it is trimmed: worst() tells what comes while it asks */
    bool passing; /* takes nothing in the end: worst() must be free while it is asked for, by however many threads */
};

extern const struct kind kinds[];
extern const unsigned kinds_count;

/* Before any of the others; a context takes so much. */
void kinds_begin(int device, u64 context);

/* What the process's default pool has of the card now. */
u64 pool_reserved(void);
