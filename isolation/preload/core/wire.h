/* The protocol between the library and the broker: packets of 64 bytes on two SOCK_SEQPACKET sockets per process.
 *
 * On the first socket, `calls`, the library sends requests and the broker responds, one request at a time. On the
 * second, `signals`, the broker sends notifications: losing one costs time, never correctness. No packet has a field
 * with which a client could set a limit. All amounts are absolute, so a request can be repeated after a broken
 * connection.
 *
 * Time slices of compute: whether a card may be used now is in the container's shared page, which only the broker
 * writes; its processes report back on `signals`, in order and without responses.
 *
 * `partage_isolation/wire/packets.py` implements the same in Python; a test compares the two.
 */
#pragma once

#include <stdint.h>

#define WIRE_PATH "/run/partage/broker"

enum { WIRE_VERSION = 1, WIRE_BYTES = 64, WIRE_ANSWER = 0x8000, WIRE_NO_CARD = 0xffff, WIRE_PROCESSES = 3 };

enum wire_what {
    /* First packet on either socket. hello.token: zeros for a new process, otherwise the token it was given. The
     * response has the token, the number of cards of the container and, if there is a shared page, its descriptor. */
    WIRE_HELLO = 1,
    /* Identity and limits of the container's card number `card`. Response: card. */
    WIRE_CARD,
    /* Requests that `amounts.lent` bytes of `card` be lent to the process: all that it holds and is about to take.
     * Response: the current amounts.lent, after amounts.returns: at least the requested amount with WIRE_OK, unchanged
     * with WIRE_NO. WIRE_AGAIN marks a retry of a refused request by the same program call, which is not counted as
     * another refusal. WIRE_NO with WIRE_SURE: at some moment since the request there was no room; without it, the
     * request may be retried. */
    WIRE_LEND,
    /* No response. Only `amounts.lent` of the lent bytes are still needed. Carries the number of the last WIRE_RECALL
     * if everything unused is returned. */
    WIRE_RETURN,
    /* A context is about to be created on `card`. Response: WIRE_OK if a context's usual memory fits. WIRE_AGAIN and
     * WIRE_SURE as above. */
    WIRE_CONTEXT,
    /* No response. The current amounts in use; WIRE_CONTEXT_MADE or _FAILED in flags ends what WIRE_CONTEXT began. Also
     * the reply to WIRE_REPORT, with its number. */
    WIRE_AMOUNTS,
    /* The state of `card` as the whole container sees it. Response: view. */
    WIRE_VIEW,
    /* The container's processes on `card` from index `words[0]` on, with pids of the caller's pid namespace. Response:
     * processes; `flags` is the total number. */
    WIRE_PROCESSES_OF,

    /* From now on other processes can hold memory of this one under the name `shared.name` (0: under its existing
     * names): piece number `shared.number`, which had `shared.size` bytes at its largest. Sent before the program gets
     * the handle to pass on. With WIRE_ANYBODY it is unknown who opens it. Response: WIRE_OK or WIRE_FULL. */
    WIRE_EXPORT,
    /* The driver has taken back `shared.size` bytes of piece `shared.number` in total, by which `shared.freed` bytes of
     * the used amount become free now. Response: the current amounts.lent, reduced by `shared.freed` if others have the
     * piece open; it is then charged to the container until they close it. */
    WIRE_LEAVE,
    /* The process is about to open `shared.name`, or has opened it; `shared.size` is its size, or 0 if unknown.
     * Response: the same, with the size known to the broker (0: none; the request must then be repeated with the size).
     * WIRE_NO if no process of the container made it and it does not fit, or there are too many. */
    WIRE_OPEN,
    /* The process has released everything that it opened under that name, or failed to open it. Response: WIRE_OK. */
    WIRE_CLOSE,

    /* Notifications from the broker, replied to on `calls`. Return all lent bytes that are unused: reply with
     * WIRE_RETURN and this number, even if nothing is returned. */
    WIRE_RECALL = 32,
    /* Send WIRE_AMOUNTS with this number. */
    WIRE_REPORT,

    /* On `calls`: the process is about to launch on `card` for the first time on this connection. Response: WIRE_OK
     * with the current timeslice.epoch, the idle time before WIRE_IDLE (timeslice.idle_us), and the behaviour when the
     * broker is unavailable: timeslice.loss (wire_loss) after timeslice.loss_after ns. WIRE_NO: this card's time is not
     * metered. */
    WIRE_JOIN = 64,
    /* On `signals`, from a process that has joined. A thread found the gate closed in timeslice.epoch, or launches in
     * an epoch in which IDLE was sent: the process is no longer idle. Sent once for each reason. */
    WIRE_WANT,
    /* All work launched on `card` was done at timeslice.at (ns of CLOCK_MONOTONIC), and no more will begin in
     * timeslice.epoch; timeslice.is_blocked: a thread waits to launch. */
    WIRE_DRAINED,
    /* As WIRE_DRAINED, and nothing was launched for timeslice.idle_us: the process does not need its time slice. */
    WIRE_IDLE,
    /* Reserved. */
    WIRE_PING,
    WIRE_PONG,
    /* Notification: the line of `card` has changed; its epoch is timeslice.epoch. */
    WIRE_LINE,

    /* Notification: from now on place.resident bytes of the movable memory may be on the card, by order number
     * place.order; all of it if UINT64_MAX. Repeated until acknowledged. */
    WIRE_PLACE = 96,
    /* On `signals`: how much movable memory is on the card and on the host, and under which order; place.waits threads
     * wait for it. Sent repeatedly while an order is carried out, and at its end. */
    WIRE_PLACED,
};

enum wire_result {
    WIRE_OK,
    WIRE_NO, /* the limit does not allow it */
    WIRE_FULL, /* too many processes, or names of shared memory */
    WIRE_UNKNOWN, /* no such token or card */
    WIRE_WRONG, /* the packet is invalid or has another version */
    WIRE_OUT, /* no room on the card now; to be retried once the process's memory is back there */
};

/* A peer ignores flags that it does not know: a flag may change what is counted or recorded, never what is lent. */
enum wire_flags {
    WIRE_SIGNALS = 1,
    WIRE_CONTEXT_MADE = 2,
    WIRE_CONTEXT_FAILED = 4,
    WIRE_ANYBODY = 8,
    WIRE_AGAIN = 16,
    /* The process may hold more than before in memory that is not accounted, such as code: the broker measures the card
     * before it responds. */
    WIRE_GREW = 32,
    WIRE_SURE = 64,
    WIRE_MOVES = 256, /* in WIRE_HELLO: its memory is movable and it follows WIRE_PLACE */
    WIRE_PROMPT = 128, /* in WIRE_HELLO: it replies to WIRE_RECALL, with its number, even while a request is pending */
};

enum wire_loss { WIRE_LOSS_CLOSED, WIRE_LOSS_FREE };

/* ---- The shared page: one line for each card, in the order of their numbers --------------------------------------
 *
 * word = state : 3 | epoch : 17 | deadline : 44, from the lowest bit on. The epoch increases by one with each change of
 * state, modulo 2^17; epochs may only be compared for equality. The deadline is in units of 16384 ns of
 * CLOCK_MONOTONIC. All zeros: closed, in epoch 0.
 */
enum wire_state {
    WIRE_CLOSED, /* nothing may be launched */
    WIRE_TIMESLICE, /* until the deadline */
    WIRE_SOLE, /* no other container needs the card */
    WIRE_FREE, /* no other container has a context or memory on the card */
};

enum { WIRE_LINE_BYTES = 64, WIRE_STATE_BITS = 3, WIRE_EPOCH_BITS = 17, WIRE_DEADLINE_SHIFT = 14 };

struct wire_line {
    uint64_t word;
    uint32_t wake; /* incremented after each change of `word`; a futex */
    uint32_t reserved[13];
};

struct wire_process {
    uint32_t pid, reserved;
    uint64_t bytes;
};

struct wire {
    uint16_t version, what, card, result;
    uint32_t number, flags; /* number: chosen by the sender, returned in the response */
    union {
        uint64_t words[6];
        struct {
            unsigned char token[16];
            uint32_t cards, reserved;
        } hello;
        struct {
            uint64_t used; /* bytes that the process holds, by its own account */
            uint64_t lent; /* bytes that it may hold without asking */
            uint32_t changes; /* how often `used` has changed, modulo 2^32 */
            uint32_t in_flight; /* calls of the driver that are changing it */
            uint32_t returns; /* how many WIRE_RETURN the process sent for this card, modulo 2^32 */
            uint32_t reserved;
            uint64_t hidden; /* part of `used`: managed memory, which NVML attributes to no process; 0 from peers that
                              * do not know */
        } amounts;
        struct {
            uint64_t name; /* hash of the handle that programs exchange; scoped to one container */
            uint64_t number; /* assigned by the maker of the piece */
            uint64_t size, freed; /* bytes */
        } shared;
        struct {
            unsigned char uuid[16];
            uint64_t memory; /* the limit, bytes */
            uint32_t share, limit; /* milli */
            uint32_t is_mig, reserved;
        } card_is;
        struct {
            uint64_t limit; /* bytes */
            uint64_t charged; /* to all its processes, including contexts */
            uint64_t fixed; /* part of `charged`: contexts and other memory that no program requested */
        } view;
        struct wire_process processes[WIRE_PROCESSES];
        struct {
            uint64_t at;
            uint32_t epoch, is_blocked, idle_us, loss;
            uint64_t loss_after;
        } timeslice;
        struct {
            uint64_t resident, moved; /* bytes */
            uint64_t spent; /* total ns spent moving */
            uint32_t order, waits;
        } place;
    };
};

_Static_assert(sizeof(struct wire) == WIRE_BYTES, "layout");
_Static_assert(sizeof(struct wire_line) == WIRE_LINE_BYTES, "layout");
