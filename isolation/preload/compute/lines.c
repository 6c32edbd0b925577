#include "lines.h"

#include <stdatomic.h>

enum { PAGE_BYTES = MOST_CARDS * WIRE_LINE_BYTES };

const struct wire_line line_shut = {.word = WIRE_CLOSED}, line_free = {.word = WIRE_FREE};
const struct wire_line line_alone = {.word = WIRE_SOLE};

static const struct wire_line *_Atomic page;

const struct wire_line *line_in_page(unsigned card) {
    const struct wire_line *lines = atomic_load(&page);
    return lines && card < MOST_CARDS ? lines + card : NULL;
}

/* A new page comes to where the old one is: whoever reads a line reads the one or the other. It must be as long as what
 * is read of it, and stays so: the broker has sealed it. */
bool compute_page(int descriptor) {
    struct os_file file;
    void *before = (void *)atomic_load(&page);
    if (!os_look_at(descriptor, &file) || file.size < PAGE_BYTES) return false;
    const void *mapped = os_map_shared(descriptor, PAGE_BYTES, before);
    if (mapped) atomic_store(&page, mapped);
    return mapped;
}
