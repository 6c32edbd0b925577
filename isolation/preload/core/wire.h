/* What the library and the broker say to each other: packets of 64 bytes, on two SOCK_SEQPACKET sockets of a process.
 *
 * On the first, `calls`, the library asks and the broker answers, one question at a time; on the second, `signals`, the
 * broker gives hints: one that is lost costs time and no truth. No packet has a field by which a client could set a
 * limit. All amounts are absolute, so that a question can be asked again after a broken connection.
 *
 * Leases of compute time: whether a card may be used now stands in the container's page, which the broker alone writes;
 * what its processes have to say about it goes over `signals`, in order and without answers.
 *
 * `partage_isolation/wire/packets.py` is the same in Python; a test compares the two.
 */
#pragma once

#include <stdint.h>

#define WIRE_PATH "/run/partage/broker"

enum { WIRE_VERSION = 1, WIRE_BYTES = 64, WIRE_ANSWER = 0x8000, WIRE_NO_CARD = 0xffff, WIRE_PROCESSES = 3 };

enum wire_what {
    /* First, on either socket. hello.token: zeros for a new process, else the one it was given. The answer has the
     * token, how many cards the container has, and with the page of lines (a descriptor) where there is one. */
    WIRE_HELLO = 1,
    /* What card number `card` of the container is. Answer: card. */
    WIRE_CARD,
    /* Asks that `amounts.lent` bytes of `card` be lent to the process: all that it holds and is about to take. Answer:
     * amounts.lent as it is then, after amounts.returns: at least what was asked for with WIRE_OK, as before with
     * WIRE_NO. With WIRE_AGAIN the same call of the program asked before, and was refused: it is not counted as refused
     * once more. WIRE_NO with WIRE_SURE: there was no room at some moment since; without: it may be asked again. */
    WIRE_LEND,
    /* Not answered: of what was lent only `amounts.lent` is still needed. With the number of the last WIRE_RECALL where
     * all goes back that is not in use. */
    WIRE_RETURN,
    /* A context is about to be made on `card`. Answer: WIRE_OK where there is room for what one usually takes.
     * WIRE_AGAIN and WIRE_SURE as above. */
    WIRE_CONTEXT,
    /* Not answered: how much is in use now; WIRE_CONTEXT_MADE or _FAILED in flags ends what WIRE_CONTEXT began. Also
     * the reply to WIRE_REPORT, with its number. */
    WIRE_AMOUNTS,
    /* How `card` looks to the whole container. Answer: view. */
    WIRE_VIEW,
    /* The container's processes on `card` from number `words[0]` on, pids as the caller's pid namespace has them.
     * Answer: processes; `flags` is how many there are in all. */
    WIRE_PROCESSES_OF,

    /* Other processes can hold memory of this one from now on, by the name `shared.name` (0: by those that it has) of
     * piece number `shared.number`, of which the process ever had `shared.size` bytes. Asked before the program has
     * what it may hand on. With WIRE_ANYBODY it is not known who opens it. Answer: WIRE_OK or WIRE_FULL. */
    WIRE_EXPORT,
    /* The driver has taken back `shared.size` bytes of piece `shared.number` in all so far, by which `shared.freed` of
     * what is used become free now. Answer: amounts.lent as it is then: less by `shared.freed` where others have the
     * piece open and it is charged to the container until they close it. */
    WIRE_LEAVE,
    /* The process is about to open `shared.name`, or has: how long it is, or 0 where it can't tell. Answer: the same,
     * shared.size being what the broker knows (0: nothing; then it is to be said again with its size); WIRE_NO where
     * no process here made it and it does not fit, or there are too many. */
    WIRE_OPEN,
    /* It has let go of all that it opened by that name, or did not get it. Answer: WIRE_OK. */
    WIRE_CLOSE,

    /* Hints of the broker, replied to on `calls`. Give back what is lent and not in use: WIRE_RETURN with this number,
     * also where that is nothing. */
    WIRE_RECALL = 32,
    /* Say WIRE_AMOUNTS with this number. */
    WIRE_REPORT,

    /* On `calls`: the process is about to launch on `card` for the first time over this connection. Answer: WIRE_OK
     * with lease.epoch as it is now, how long to be quiet before WIRE_IDLE (lease.idle_us), and what holds when the
     * broker is away: lease.loss (wire_loss) from lease.loss_after ns on. WIRE_NO: this card's time is not metered. */
    WIRE_JOIN = 64,
    /* On `signals`, of a process that has joined. A thread found the gate closed in lease.epoch, or launches
     * in one in which IDLE was said: it is idle no more. Said once for each reason. */
    WIRE_WANT,
    /* All work that was launched on `card` is done, at lease.at (ns of CLOCK_MONOTONIC), and no more will begin in
     * lease.epoch; lease.is_blocked: a thread waits to launch. */
    WIRE_DRAINED,
    /* The same, and for lease.idle_us nothing was launched: the process has no need of the lease. */
    WIRE_IDLE,
    /* Reserved. */
    WIRE_PING,
    WIRE_PONG,
    /* A hint of the broker: the line of `card` has changed, and is of lease.epoch. */
    WIRE_LINE,

    /* A hint of the broker: of the memory that can move, place.resident bytes may be on the card from now on, by its
     * order place.order; all where that is UINT64_MAX. Said again until it was heard. */
    WIRE_PLACE = 96,
    /* On `signals`: how much of it is on the card, and how much on the host, by which order; place.waits threads wait
     * for it. While it is followed again and again, and at its end. */
    WIRE_PLACED,
};

enum wire_result {
    WIRE_OK,
    WIRE_NO, /* the limit does not allow it */
    WIRE_FULL, /* too many processes, or names of shared memory */
    WIRE_UNKNOWN, /* no such token or card */
    WIRE_WRONG, /* the packet makes no sense, or has another version */
    WIRE_OUT, /* there is no room on the card now: to be asked again once the process's memory is back there */
};

/* What a peer does not know it ignores: a flag may change what is counted or noted, never what is lent. */
enum wire_flags {
    WIRE_SIGNALS = 1,
    WIRE_CONTEXT_MADE = 2,
    WIRE_CONTEXT_FAILED = 4,
    WIRE_ANYBODY = 8,
    WIRE_AGAIN = 16,
    /* The process may hold more than before by what is not accounted, such as code: the card is looked at. The answer
     * to a question comes after that. */
    WIRE_GREW = 32,
    WIRE_SURE = 64,
    WIRE_MOVES = 256, /* of WIRE_HELLO: its memory moves, and it follows WIRE_PLACE */
    WIRE_PROMPT = 128, /* of WIRE_HELLO: WIRE_RECALL is replied to also while a question waits, and with its number */
};

enum wire_loss { WIRE_LOSS_CLOSED, WIRE_LOSS_FREE };

/* ---- The page: one line for each card, in the order of their numbers ---------------------------------------------
 *
 * word = state : 3 | epoch : 17 | deadline : 44, from the lowest bit on. The epoch rises by one with each change of
 * state, modulo 2^17: only whether two are the same means something. The deadline is in units of 16384 ns of
 * CLOCK_MONOTONIC. All zeros: closed, in epoch 0.
 */
enum wire_state {
    WIRE_CLOSED, /* nothing may be launched */
    WIRE_LEASE, /* until the deadline */
    WIRE_SOLE, /* no other container wants the card */
    WIRE_FREE, /* no other container has anything on the card */
};

enum { WIRE_LINE_BYTES = 64, WIRE_STATE_BITS = 3, WIRE_EPOCH_BITS = 17, WIRE_DEADLINE_SHIFT = 14 };

struct wire_line {
    uint64_t word;
    uint32_t wake; /* counts up after each change of `word`; a futex */
    uint32_t reserved[13];
};

struct wire_process {
    uint32_t pid, reserved;
    uint64_t bytes;
};

struct wire {
    uint16_t version, what, card, result;
    uint32_t number, flags; /* number: chosen by who asks, given back in the answer */
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
            uint32_t returns; /* how often the process said WIRE_RETURN of this card, modulo 2^32 */
            uint32_t reserved;
            uint64_t hidden; /* of `used`: what NVML shows as no process's, managed memory; 0 by those who don't know */
        } amounts;
        struct {
            uint64_t name; /* a hash of what programs hand each other; counts inside one container */
            uint64_t number; /* as its maker counts its pieces */
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
            uint64_t charged; /* to all its processes, contexts and all */
            uint64_t fixed; /* of them in contexts and the like, which no program asked for */
        } view;
        struct wire_process processes[WIRE_PROCESSES];
        struct {
            uint64_t at;
            uint32_t epoch, is_blocked, idle_us, loss;
            uint64_t loss_after;
        } lease;
        struct {
            uint64_t resident, moved; /* bytes */
            uint64_t spent; /* ns that it was on its way, in all */
            uint32_t order, waits;
        } place;
    };
};

_Static_assert(sizeof(struct wire) == WIRE_BYTES, "layout");
_Static_assert(sizeof(struct wire_line) == WIRE_LINE_BYTES, "layout");
