/* Protocol between the libraries and simgpud: one request, one reply, each one packet of a SOCK_SEQPACKET socket.
 *
 * The socket is at SIM_SOCKET below the driver's root, where NVIDIA's own tools look for the persistence daemon's
 * socket and mount it into containers. The kernel identifies the peer (SO_PEERCRED), never the request.
 */
#pragma once

#include "words.h"

#define SIM_SOCKET "/run/nvidia-persistenced/socket"

enum {
    SIM_PROTOCOL = 1,
    SIM_LARGEST_PACKET = 4096,
    SIM_PROCESSES_AT_ONCE = 100,
};

enum sim_ask {
    /* First request. id = SIM_PROTOCOL. The reply carries two descriptors: the node file and the timelines. */
    SIM_HELLO = 1,
    /* The process creates a context on `card`, possibly nested. Reply: row, and the piece of the context. A process's
     * first context takes the model's `context` bytes. */
    SIM_ATTACH,
    SIM_DETACH,
    /* Takes `bytes` (a multiple of the granularity) of `card`. Reply: id of a piece. `kind` is for accounting. */
    SIM_TAKE,
    /* Releases one hold of this process on piece `id`. The bytes are freed with the last hold of all processes. */
    SIM_GIVE,
    /* Adds a hold of this process on piece `id`. */
    SIM_HOLD,
    /* Publishes piece `id` under a token that other processes can open; a descriptor sent along is kept with it. */
    SIM_SHARE,
    /* Opens `token`: this process holds the piece too. Reply: id, bytes, the owner's pid in the caller's pid namespace,
     * its card in `count`, and the kept descriptor if any. */
    SIM_OPEN,
    /* Processes with a context on `card` from row `id` on, with pids of the caller's pid namespace. Reply: struct
     * sim_processes, cut after the last one; if it is full there may be more. */
    SIM_PROCESSES,
    /* How much of `card` this process uses. Reply: bytes. */
    SIM_USED,
    /* Limits the processes of a control group together to `bytes` of `card`; UINT64_MAX: no limit. The descriptor sent
     * along is the group's folder. */
    SIM_LIMIT,
    /* A step (`kind`, enum sim_step) in checkpointing or restoring process `id`, a pid of the caller's namespace.
     * Reply: its state (enum sim_state) in `count`, what it holds in `bytes`, one of its cards in `row`. */
    SIM_CHECKPOINT,
    /* This process's managed memory of `card` is used there. Reply: bytes paged in for it, and in id the bytes paged
     * out.
     */
    SIM_PAGE,
};

enum sim_step {
    SIM_LOOK, /* query only */
    SIM_LOCK, /* blocks its calls; locked once its work is done: to be repeated until then */
    SIM_UNLOCK,
    SIM_MAY_GO, /* checks whether SIM_GO is possible, before the slow part; likewise SIM_MAY_COME for SIM_COME */
    SIM_GO,
    SIM_MAY_COME,
    SIM_COME,
};

enum sim_state { SIM_IS_RUNNING, SIM_IS_LOCKED, SIM_IS_AWAY, SIM_LOCKING }; /* the driver's numbers; the last is ours */

enum sim_piece_kind {
    SIM_CONTEXT,
    SIM_BLOCK,
    SIM_LARGE,
    SIM_POOL,
    SIM_ARRAY,
    SIM_VMM,
    SIM_MANAGED,
    SIM_GRAPH,
    SIM_MODULE,
    SIM_LOCALS,
    SIM_EXECUTABLE,
};

enum sim_result {
    SIM_OK,
    SIM_NO_MEMORY,
    SIM_CARD_LOST,
    SIM_UNKNOWN, /* no such card, piece or token */
    SIM_NO_ROOM, /* no free row or piece */
    SIM_MISUSED, /* invalid request */
    SIM_MADE_TO_FAIL, /* injected allocation failure */
    SIM_WAIT, /* the process is locked: to be repeated, as sim_call does */
    SIM_REFUSED, /* the process holds something that cannot leave a card */
    SIM_BROKEN, /* no reply: simgpud is gone. Only returned by connection.c. */
};

struct sim_token {
    unsigned char bytes[16];
};

struct sim_request {
    u32 ask, card;
    u32 kind, pad;
    u64 id, bytes;
    struct sim_token token;
};

struct sim_reply {
    u32 result, row;
    u64 id, bytes;
    u32 pid, count;
    struct sim_token token;
};

struct sim_process {
    u32 pid; /* 0: not visible from the caller's pid namespace */
    u32 row;
    u64 bytes;
    u64 busy_ns;
};

/* The reply to SIM_PROCESSES. */
struct sim_processes {
    struct sim_reply reply;
    struct sim_process process[SIM_PROCESSES_AT_ONCE / 2];
};
