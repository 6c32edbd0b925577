/* Entries of the hooked names, called by programs: they lead to the hook, or to the driver (core/hook.h). Names without
 * a hook are in real.S.
 *
 * An entry needs no types: it leaves all arguments in place and jumps. Built twice, for libcuda and libnvidia-ml: NAMES
 * and HOOKS are their lists.
 */
#include "entries.inc"
#if defined(SHORT_LAUNCHES) && defined(__x86_64__)
#include "launches_x86_64.inc"
#endif

#define GATED_HOOK(name) .set .Lgated_##name, 1;
#include HOOKS

.macro entry name
    .ifdef .Lhooked_\name
    .hidden real_\name, hook_\name
    .ifdef .Lgated_\name
    .p2align 4
.Lunseen_\name: /* a copy of real_name, within reach of a short jump */
    to_slot
    .endif
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
    .hidden entry_\name
    .globl entry_\name
    .set entry_\name, \name
    .endif
    .set .Lplace_of_\name, .Lplace
    .set .Lplace, .Lplace + 1
.endm

.text

#define NAME(name) entry name;
#include NAMES

/* Tables of offsets, which need no relocations; frame/entries.h has their types. */
.section .rodata
.p2align 2
.hidden entry_hooks, entry_routes, entry_end
.globl entry_hooks, entry_routes, entry_end
entry_hooks:
#define HOOK(name) .long entry_##name - entry_hooks, .Lplace_of_##name;
#include HOOKS

entry_routes:
.macro route name, version, per_thread, symbol
    .ifdef .Lhooked_\symbol
    .long entry_\symbol - entry_hooks
    .else
    .long 0
    .endif
    .long .Lplace_of_\name, \version, \per_thread, .Lplace_of_\symbol
.endm
#define ROUTE(name, version, per_thread, symbol) route name, version, per_thread, symbol;
#include NAMES
entry_end:

.section .note.GNU-stack, "", %progbits
