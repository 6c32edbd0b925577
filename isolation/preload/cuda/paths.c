/* dlopen, for programs that locate the driver's file themselves and open it by path: they get what they would get by
 * name, which is this library.
 *
 * The dynamic linker searches the paths of the object that calls dlopen. So the entry preserves the return address, and
 * jumps on with another path.
 */
#include "../core/os.h"
#include "../frame/entries.h"

#include <stdatomic.h>
#include <string.h>

HIDDEN const char *paths_answer(const char *path);

/* The dynamic linker's own dlopen; set once paths_answer has returned. */
extern HIDDEN open_function *_Atomic paths_next;
open_function *_Atomic paths_next;

EXPORT open_function dlopen;

#ifdef __x86_64__
__asm__(".text\n"
        ".p2align 4\n"
        ".globl dlopen\n"
        ".type dlopen, %function\n"
        "dlopen:\n"
        "    .cfi_startproc\n"
        "    endbr64\n"
        "    pushq %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    call paths_answer\n"
        "    popq %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    movq %rax, %rdi\n"
        "    movq paths_next(%rip), %r11\n"
        "    jmp *%r11\n"
        "    .cfi_endproc\n"
        ".size dlopen, . - dlopen\n");
#else
__asm__(".text\n"
        ".p2align 4\n"
        ".globl dlopen\n"
        ".type dlopen, %function\n"
        "dlopen:\n"
        "    .cfi_startproc\n"
        "    hint #34\n"
        "    stp x29, x30, [sp, #-32]!\n"
        "    .cfi_def_cfa_offset 32\n"
        "    .cfi_offset x29, -32\n"
        "    .cfi_offset x30, -24\n"
        "    str x1, [sp, #16]\n"
        "    bl paths_answer\n"
        "    ldr x1, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    .cfi_def_cfa_offset 0\n"
        "    .cfi_restore x29\n"
        "    .cfi_restore x30\n"
        "    adrp x16, paths_next\n"
        "    ldr x16, [x16, :lo12:paths_next]\n"
        "    br x16\n"
        "    .cfi_endproc\n"
        ".size dlopen, . - dlopen\n");
#endif

static void *opens_nothing(const char *path, int flags) { return (void)path, (void)flags, NULL; }

static void find_next(void) {
    if (atomic_load_explicit(&paths_next, memory_order_relaxed)) return;
    open_function *const next = next_dlopen();
    atomic_store(&paths_next, next ? next : opens_nothing);
}

/* Whether `name` is `stem`, alone or with a version suffix. */
static bool is_of(const char *name, const char *stem) {
    const size_t length = strlen(stem);
    return !strncmp(name, stem, length) && (name[length] == '\0' || name[length] == '.');
}

/* Calls from inside the driver are left alone. A name without a path finds the object loaded first, which is ours; only
 * libnvidia-ml.so is no loaded object's name. A missing file stays missing. */
const char *paths_answer(const char *path) {
    KEEP_ERRNO;
    struct os_file file;
    find_next();
    if (!path || driver_depth) return path;
    const char *const slash = strrchr(path, '/'), *const name = slash ? slash + 1 : path;
    const bool is_cuda = is_of(name, "libcuda.so"), is_nvml = is_of(name, "libnvidia-ml.so");
    if (!slash) return strcmp(name, "libnvidia-ml.so") ? path : "libnvidia-ml.so.1";
    if ((!is_cuda && !is_nvml) || !os_look(path, &file)) return path;
    if (is_cuda) driver_hint(path);
    return is_cuda ? "libcuda.so.1" : "libnvidia-ml.so.1";
}
