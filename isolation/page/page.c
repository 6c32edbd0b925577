/* Writes a line of a container's shared page, for a broker in Python, which has neither fences nor futexes.
 *
 * A line is 64 bytes: at offset 0 the word that processes read before each launch, at 8 a counter of its changes, which
 * is the futex for processes waiting for a change. A process may see the new word with the old counter, and then does
 * not sleep: so the counter is written second. The only writer is one thread of one process.
 */
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

struct line {
    _Atomic uint64_t word;
    _Atomic uint32_t wake;
    uint32_t reserved[13];
};

_Static_assert(sizeof(struct line) == 64, "layout");

__attribute__((visibility("default"))) void partage_line_write(void *line, uint64_t word, int wake);

/* `wake`: a process may be waiting. May change errno; waking nobody is no error. */
void partage_line_write(void *line, uint64_t word, int wake) {
    struct line *const to = line;
    atomic_store_explicit(&to->word, word, memory_order_release);
    atomic_fetch_add_explicit(&to->wake, 1, memory_order_release);
    if (wake) syscall(SYS_futex, &to->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
