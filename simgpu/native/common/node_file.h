/* Description and state of a simulated node: a memory file that simgpud writes and every library reads.
 *
 * Libraries map it read-only. Fields that never change while simgpud lives are plain; each field that changes is a
 * separately read atomic word; where several words belong together, `sequence` is odd while they are being written.
 */
#pragma once

#include "timeline.h"
#include "words.h"

enum {
    SIM_CARDS = 32,                /* cards plus MIG instances */
    SIM_EVENTS = 64,               /* number of latest events kept */
    SIM_LINKS = 18,                /* NVLinks of a card */
    SIM_SAMPLES = 64,              /* number of latest utilization samples kept */
    SIM_NODE_MAGIC = 0x5347504e,
    SIM_NODE_VERSION = 3,
    SIM_NO_PARENT = -1,
};

enum sim_node_state { SIM_STARTING, SIM_RUNNING, SIM_RELOADING, SIM_GONE };
enum sim_health { SIM_HEALTHY, SIM_LOST };

/* Properties of a card. MIG instances are cards with a parent, and with their own memory and time. */
struct sim_model {
    char name[96];                 /* as NVML reports it: NVIDIA H200 */
    char uuid[48];                 /* GPU-… or MIG-… */
    char serial[32];
    char board[32];
    char pci[32];                  /* 0000:18:00.0 */
    u32 domain, bus, device, pci_device_id, pci_subsystem_id;
    u32 minor;                     /* /dev/nvidia<minor> */
    u32 architecture;              /* NVML's number */
    u32 cc_major, cc_minor;
    u32 sms, threads_per_sm;
    u32 sm_clock_mhz, memory_clock_mhz, bus_width_bits;
    u32 power_limit_mw, power_idle_mw, temperature_c;
    u32 ecc;                       /* 1: supported and enabled */
    u64 memory;                    /* total bytes */
    u64 reserved;                  /* bytes of these reserved by the driver */
    u64 context;                   /* bytes taken by a process's first context */
    u64 module;                    /* bytes taken by the first launch from a module */
    u64 graph_node;                /* bytes taken by each node of an instantiated graph */
    u64 memory_rate, bus_rate;     /* bytes/s of copies within the card, and to and from the host */
    u64 fault_rate, evict_rate; /* bytes/s of paging managed memory: to the card by faults, and off it; 0: not paged */
    int32_t numa; /* -1: unknown */
    int32_t pcie_switch; /* -1: none */
    u64 cpus[16]; /* bit n: CPU n is local */
    u32 nvlinks; /* links in use */
    int32_t link_to[SIM_LINKS]; /* index of the card at the other end, -1: none */
    u32 nvlink_version;
    int32_t parent; /* index of the card that this MIG instance is part of, or SIM_NO_PARENT */
    u32 mig_capable, mig_enabled;
    u32 gpu_instance, compute_instance, mig_slices;
    char mig_profile[32]; /* 1g.18gb */
};

/* Information that NVML withholds about a card. */
enum sim_blindness {
    SIM_SEES,
    SIM_NO_BYTES, /* each process's bytes */
    SIM_NO_LISTS, /* process lists */
    SIM_NO_AMOUNT, /* memory size, as if shared with the host */
};

/* State of a card. Each field is a separate word. */
struct sim_live {
    _Atomic u32 health; /* enum sim_health */
    _Atomic u32 last_xid;
    _Atomic u64 used; /* bytes in pieces, including contexts; excludes the model's `reserved` */
    _Atomic u64 peak; /* maximum of `used` since simgpud started or was told to reset it */
    _Atomic u64 ecc_corrected, ecc_uncorrected;
    _Atomic u64 busy_ns; /* time during which any process ran, since simgpud started */
    _Atomic u64 copied_ns;
    _Atomic u32 fault[SIM_ROWS]; /* the CUresult that every call of the row's process returns; 0: none */
    _Atomic u32 locked[SIM_ROWS]; /* 1: the process's calls block; a futex */
    _Atomic u32 stuck[SIM_ROWS]; /* after each change, the next kernel launched by the process never ends */
    _Atomic u32 pid[SIM_ROWS]; /* host pid of the row's process; 0: unused */
    _Atomic u64 row_bytes[SIM_ROWS];
    _Atomic u64 row_peak[SIM_ROWS];
    _Atomic u32 blind; /* enum sim_blindness */
    u32 pad;
};

struct sim_sample {
    u64 wall;
    u32 busy_milli, memory_milli; /* of the time since the previous sample */
    u32 row_busy_milli[SIM_ROWS];
};

struct sim_card {
    struct sim_model model;
    struct sim_live live;
    _Atomic u64 samples; /* number ever taken; sample[n % SIM_SAMPLES] is the n-th */
    struct sim_sample sample[SIM_SAMPLES];
};

/* An event as NVML reports it. */
struct sim_event {
    u64 type; /* NVML's bit */
    u64 data; /* the XID */
    u32 card;
    u32 pad;
};

/* Injected faults of the whole driver. */
struct sim_trouble {
    _Atomic u64 nvml_delay_ns; /* added to every NVML call */
    _Atomic u32 nvml_hang; /* every NVML call blocks until this is 0; a futex */
    _Atomic u32 nvml_answer; /* every NVML call returns this; 0: normal operation */
};

struct sim_node_file {
    u32 magic, version;
    char driver[32]; /* 580.95.05 */
    u32 cuda; /* 13000 */
    u32 cards;
    u64 boot; /* identifies this run of simgpud */
    _Atomic u32 state; /* enum sim_node_state; a futex */
    _Atomic u32 sequence;
    _Atomic u32 events; /* number ever reported; a futex; event[n % SIM_EVENTS] is the n-th */
    u32 pad;
    struct sim_event event[SIM_EVENTS];
    struct sim_trouble trouble;
    struct sim_card card[SIM_CARDS];
};
