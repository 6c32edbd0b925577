/* What libraries say to simgpud: one request, one reply, each one packet of a SOCK_SEQPACKET socket.
 *
 * The socket lies at SIM_SOCKET below the driver's root, where NVIDIA's own tools look for the persistence daemon and
 * mount it into containers by themselves. Who speaks is what the kernel says (SO_PEERCRED), never what a request says.
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
    /* First. id = SIM_PROTOCOL. The reply carries two descriptors: the node file and the timelines. */
    SIM_HELLO = 1,
    /* The process begins (or, again, nests) a context on `card`. Reply: row, and the piece that the context is.
     * The first one of a process takes the model's `context` bytes. */
    SIM_ATTACH,
    SIM_DETACH,
    /* Takes `bytes` (a multiple of the granularity) of `card`. Reply: id of a piece. `kind` is for the accounts. */
    SIM_TAKE,
    /* Gives back one hold of this process on piece `id`. The bytes return with the last hold of all processes. */
    SIM_GIVE,
    /* Another hold of this process on piece `id`. */
    SIM_HOLD,
    /* Makes piece `id` known under a token that other processes can open; a descriptor sent along is kept with it. */
    SIM_SHARE,
    /* Opens `token`: this process holds the piece, too. Reply: id, bytes, owner's pid as the caller's pid namespace has
     * it, its card in `count`, the kept descriptor if any. */
    SIM_OPEN,
    /* Processes with a context on `card` from row `id` on, with pids as the caller's pid namespace has them. Reply:
     * struct sim_processes, cut after the last one; if it is full there may be more. */
    SIM_PROCESSES,
    /* This process would like to know how much it, `card`, has: reply bytes = used by this process. */
    SIM_USED,
    /* From now on the processes of a control group together get at most `bytes` of `card`; UINT64_MAX: as much as there
     * is. The descriptor sent along is the group's folder. */
    SIM_LIMIT,
    /* A step (`kind`, enum sim_step) on the way of process `id`, as the caller's pid namespace has it, from its cards
     * or back. Reply: its state (enum sim_state) in `count`, what it holds in `bytes`, one of its cards in `row`. */
    SIM_CHECKPOINT,
    /* This process's managed memory of `card` is used there. Reply: bytes that came for it, and in id those that left.
     */
    SIM_PAGE,
};

enum sim_step {
    SIM_LOOK, /* only asks */
    SIM_LOCK, /* its calls wait from now on; locked once its work is done: to be asked again until then */
    SIM_UNLOCK,
    SIM_MAY_GO, /* whether SIM_GO could be now, which is the end of what takes time; so SIM_MAY_COME of SIM_COME */
    SIM_GO,
    SIM_MAY_COME,
    SIM_COME,
};

enum sim_state { SIM_IS_RUNNING, SIM_IS_LOCKED, SIM_IS_AWAY, SIM_LOCKING }; /* as the driver counts; the last is ours */

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
    SIM_NO_ROOM, /* no row or piece is free */
    SIM_MISUSED, /* the request makes no sense */
    SIM_MADE_TO_FAIL, /* an allocation failure was injected */
    SIM_WAIT, /* the process is locked: to be asked again. sim_call does. */
    SIM_REFUSED, /* of a process that holds what can't leave a card */
    SIM_BROKEN, /* no answer: simgpud is gone. Only connection.c says it. */
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
    u32 pid; /* 0: not to be seen from the caller's pid namespace */
    u32 row;
    u64 bytes;
    u64 busy_ns;
};

/* The reply to SIM_PROCESSES. */
struct sim_processes {
    struct sim_reply reply;
    struct sim_process process[SIM_PROCESSES_AT_ONCE / 2];
};
