/* An entry for every name: what programs call, and `real_<name>`, by which hooks call the driver (core/hook.h).
 *
 * An entry needs no types: it leaves all arguments where they are and jumps to the address in the name's slot. Slots are
 * zeros at first, so they need no work of the dynamic linker; who finds a zero goes to entry_resolve, which saves what
 * holds arguments and asks C. Built twice, for libcuda and libnvidia-ml: NAMES and HOOKS are their lists.
 *
 * An architecture gives the macros `to_slot`, `to_hook` and `unless_seen`, and the routine behind them.
 */
#if defined(__x86_64__)
#include "x86_64.inc"
#ifdef SHORT_LAUNCHES
#include "launches_x86_64.inc"
#endif
#elif defined(__aarch64__)
#include "aarch64.inc"
#else
#error "no entries for this architecture"
#endif

/* The name is told apart by a symbol that stays in the assembler. */
#define HOOK(name) .set .Lhooked_##name, 1;
#include HOOKS
#undef HOOK

#ifdef GATES
#define GATE(name) .set .Lgated_##name, 1;
#include GATES
#undef GATE
#endif

.set .Lplace, 0

.macro open_function name
    .p2align 4
    .type \name, %function
\name:
    .cfi_startproc
    landing_pad
.endm

.macro close_function name
    .cfi_endproc
    .size \name, . - \name
.endm

.macro entry name
    .hidden real_\name
    .globl real_\name
    open_function real_\name
    to_slot
    close_function real_\name
    .globl \name
    .ifdef .Lhooked_\name
    .hidden entry_\name
    .globl entry_\name
    .set entry_\name, \name
    open_function \name
    .ifdef .Lgated_\name
    unless_seen \name
    .ifdef .Lwords_\name
    launch_shortly \name
.Llong_\name:
    .endif
    .endif
    to_hook \name
    close_function \name
    .else
    .type \name, %function
    .set \name, real_\name
    .size \name, . - real_\name
    .endif
    .set .Lplace_of_\name, .Lplace
    .set .Lplace, .Lplace + 1
.endm

/* At equal distances, for the one who needs to know which name an entry was given. */
.macro spare name
    .globl \name
    .p2align 5
    open_function \name
    to_slot
    close_function \name
    .set .Lplace, .Lplace + 1
.endm

.text

#define NAME(name) entry name;
#include NAMES
#undef NAME

/* 256 exports without a meaning, of 63 bytes each: the installer gives them names that a node's driver has and these
 * lists do not. */
.p2align 5
.hidden entry_spares
.globl entry_spares
entry_spares:
#define SPARE(number) spare partage_spare_##number##_______________________________________________;
#define SPARES(high)                                                                                                   \
    SPARE(high##0) SPARE(high##1) SPARE(high##2) SPARE(high##3) SPARE(high##4) SPARE(high##5) SPARE(high##6)           \
    SPARE(high##7) SPARE(high##8) SPARE(high##9) SPARE(high##a) SPARE(high##b) SPARE(high##c) SPARE(high##d)           \
    SPARE(high##e) SPARE(high##f)
SPARES(0) SPARES(1) SPARES(2) SPARES(3) SPARES(4) SPARES(5) SPARES(6) SPARES(7)
SPARES(8) SPARES(9) SPARES(a) SPARES(b) SPARES(c) SPARES(d) SPARES(e) SPARES(f)

.bss
.p2align 6
.hidden entry_slots
.globl entry_slots
.type entry_slots, %object
entry_slots:
    .zero 8 * .Lplace
.size entry_slots, . - entry_slots

/* Tables without addresses, so that they too need no work of the dynamic linker: frame/entries.h has their types. */
.section .rodata
.p2align 2
.hidden entry_hooks, entry_routes, entry_end
.globl entry_hooks, entry_routes, entry_end
entry_hooks:
#define HOOK(name) .long entry_##name - entry_hooks, .Lplace_of_##name;
#include HOOKS
#undef HOOK

entry_routes:
#ifdef ROUTES
.macro route name, version, per_thread, symbol
    .ifdef .Lhooked_\symbol
    .long entry_\symbol - entry_hooks
    .else
    .long 0
    .endif
    .long .Lplace_of_\name, \version, \per_thread
.endm
#define ROUTE(name, version, per_thread, symbol) route name, version, per_thread, symbol;
#include ROUTES
#undef ROUTE
#endif
entry_end:

.section .note.GNU-stack, "", %progbits
