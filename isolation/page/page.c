/* How a line of a container's page is written, for a broker in Python, which has neither fences nor futexes.
 *
 * A line is 64 bytes: at 0 the word that processes read before each launch, at 8 a number that counts its changes and
 * on which those sleep who wait for one. They may see the new word with the old number, and then don't sleep: so the
 * number comes second. Writers are one thread of one process. */
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

/* `wake`: somebody may be asleep. Leaves errno as it likes; waking nobody is no error. */
void partage_line_write(void *line, uint64_t word, int wake) {
    struct line *const to = line;
    atomic_store_explicit(&to->word, word, memory_order_release);
    atomic_fetch_add_explicit(&to->wake, 1, memory_order_release);
    if (wake) syscall(SYS_futex, &to->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
