/* Patches functions that it has looked up, as UCX does to observe a program's memory, and calls them:
 *
 *   patching MIB     allocates pieces of MIB until memory is exhausted; again once the functions are patched
 *
 * The first bytes of a function become a jump to our own function, which restores them while it calls the original. A
 * line of JSON has the number of pieces each time, and the number of calls seen.
 */
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_PIECES = 4096, LONGEST_JUMP = 16 };

static struct patch {
    char *function;
    unsigned char before[LONGEST_JUMP], jump[LONGEST_JUMP];
    unsigned seen;
} taking, giving;

static void jump_to(unsigned char *code, void *target) {
#if defined(__x86_64__)
    const unsigned char into_r11[] = {0x49, 0xbb}, jump[] = {0x41, 0xff, 0xe3};
    memcpy(code, into_r11, sizeof into_r11);
    memcpy(code + sizeof into_r11, &target, sizeof target);
    memcpy(code + sizeof into_r11 + sizeof target, jump, sizeof jump);
#else
    const uint32_t into_x16_and_jump[] = {0x58000050, 0xd61f0200}; /* ldr x16, #8; br x16 */
    memcpy(code, into_x16_and_jump, sizeof into_x16_and_jump);
    memcpy(code + sizeof into_x16_and_jump, &target, sizeof target);
#endif
}

static void write_code(const struct patch *patch, const unsigned char *code) {
    memcpy(patch->function, code, LONGEST_JUMP);
    __builtin___clear_cache(patch->function, patch->function + LONGEST_JUMP);
}

static void patch(struct patch *patch, void *function, void *instead) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)function & ~(page - 1);
    patch->function = function;
    memcpy(patch->before, function, LONGEST_JUMP);
    memcpy(patch->jump, function, LONGEST_JUMP);
    jump_to(patch->jump, instead);
    if (mprotect((void *)start, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC)) stop_with("code can't be written");
    write_code(patch, patch->jump);
}

static CUresult take(CUdeviceptr *address, size_t bytes) {
    taking.seen++;
    write_code(&taking, taking.before);
    const CUresult result = driver.cuMemAlloc_v2(address, bytes);
    write_code(&taking, taking.jump);
    return result;
}

static CUresult give(CUdeviceptr address) {
    giving.seen++;
    write_code(&giving, giving.before);
    const CUresult result = driver.cuMemFree_v2(address);
    write_code(&giving, giving.jump);
    return result;
}

int main(int count, char **words) {
    if (count != 2) stop_with("patching: see its first comment");
    const u64 bytes = number(words[1], 1 << 20) * MIB;
    open_card();
    const unsigned first = pieces_of(bytes);
    patch(&taking, (void *)driver.cuMemAlloc_v2, (void *)take);
    patch(&giving, (void *)driver.cuMemFree_v2, (void *)give);
    const unsigned second = pieces_of(bytes);
    printf("{\"pieces\":[%u,%u],\"taken\":%u,\"given\":%u}\n", first, second, taking.seen, giving.seen);
    return 0;
}
