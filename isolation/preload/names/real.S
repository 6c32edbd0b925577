/* `real_<name>` for every name, which jumps to the driver's address in the name's slot. A name without a hook is an
 * alias of that function.
 *
 * Slots are initially zero, so they need no relocations; a function that finds zero jumps to entry_resolve, which saves
 * the argument registers and calls C.
 */
#define RESOLVES
#include "entries.inc"

.macro real name
    .hidden real_\name
    open_function real_\name
    to_slot
    close_function real_\name
    .ifndef .Lhooked_\name
    .globl \name
    .type \name, %function
    .set \name, real_\name
    .size \name, . - real_\name
    .endif
    .set .Lplace, .Lplace + 1
.endm

/* At equal distances, so that a spare's index follows from its address. */
.macro spare name
    .p2align 5
    open_function \name
    to_slot
    close_function \name
    .set .Lplace, .Lplace + 1
.endm

.text

#define NAME(name) real name;
#include NAMES

/* 256 placeholder exports with names of 63 bytes each: the installer renames them to names that a node's driver has and
 * these lists lack. */
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

.section .note.GNU-stack, "", %progbits
