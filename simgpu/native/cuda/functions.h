/* Modules, libraries and their functions: shared by modules.c, functions.c, launches.c and the graphs. */
#pragma once

#include "streams.h"

enum { IMAGE_MAGIC = 0x696d6167, FUNCTION_MAGIC = 0x66756e63 };

/* A module (of one context) or a library (of none). Any bytes load: an image's functions come into existence when they
 * are looked up.
 */
struct cuda_image {
    u32 magic;
    struct cuda_context *context; /* NULL: a library */
    _Atomic u32 loaded; /* bit n: its code is on device n, in piece[n] */
    u64 piece[SIM_CARDS];
    struct cuda_function *functions; /* newest first */
};

/* A function, or a kernel, which is the same without a context. Its name determines how long it runs:
 *   sim_<number><ns|us|ms|s>[_anything]    sim_forever    sim_arg: its first parameter, 64 bits, in nanoseconds
 *   sim_meet: until its peers run too. Parameters: the address of the peers' words (64 bits), the index of its own,
 *   how many there are, and the round, which increases (32 bits each)
 * Every other function runs for 10 us. With the suffix _locals_<number> it uses that many bytes of local memory per
 * thread. With _managed it touches all managed memory of its process before it runs. */
struct cuda_function {
    u32 magic;
    bool from_argument, meets, touches;
    struct cuda_image *image;
    u64 duration_ns, locals;
    struct cuda_function *next;
    struct cuda_function *in_contexts; /* a kernel's handle for contexts; NULL: not requested */
    bool is_in_contexts; /* it is such a handle */
    unsigned block[3], shared_bytes; /* for the launch functions of before CUDA 4 */
    unsigned char params[4096]; /* likewise */
    char name[];
};

CUresult function_of(CUfunction handle, struct cuda_function **found);

/* How long a launch with these parameters runs. */
CUresult function_duration(const struct cuda_function *function, void *const *params, void *const *extra,
                           u64 *duration_ns);

/* A kernel that spins until its peers do. */
CUresult stream_meet(struct cuda_stream *stream, void *const *params);

/* Before each launch: loads the function's code at the first one, and takes its local memory. */
CUresult function_load(const struct cuda_function *function, struct cuda_context *context);

/* Whether the shape can be launched on the device: by the function or (NULL) at all. */
CUresult shape_check(const struct cuda_function *function, const struct shape *shape);

CUresult image_new(struct cuda_context *context, struct cuda_image **made);
CUresult image_function(struct cuda_image *image, const char *name, struct cuda_function **found);
void image_drop(struct cuda_image *image);
