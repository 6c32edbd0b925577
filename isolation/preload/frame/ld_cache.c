/* Parser for the dynamic linker's cache, /etc/ld.so.cache: a header, entries, text. Every value is checked against the
 * total size before use. Old systems put an older table in front. */
#include "entries.h"

#include <string.h>

static const char magic[] = "glibc-ld.so.cache1.1", old_magic[] = "ld.so-1.7.0";

struct header {
    char magic[20];
    uint32_t entries, text_bytes;
    uint32_t reserved[5];
};

struct entry {
    int32_t flags;
    uint32_t name, path; /* offsets from the header */
    uint32_t system;
    uint64_t hardware;
};

struct old_header {
    char magic[12]; /* without the terminating byte */
    uint32_t entries;
};

enum { OLD_ENTRY_BYTES = 12 };
enum { FOR_GLIBC = 3, FOR_X86_64 = 0x300, FOR_AARCH64 = 0xa00 };

#ifdef __x86_64__
enum { FLAGS = FOR_GLIBC | FOR_X86_64 };
#else
enum { FLAGS = FOR_GLIBC | FOR_AARCH64 };
#endif

_Static_assert(sizeof(struct header) == 48 && sizeof(struct entry) == 24 && sizeof(struct old_header) == 16, "layout");

/* The text at an offset, if it ends within the cache. */
static const char *text_at(const char *cache, size_t bytes, uint32_t offset) {
    if (offset >= bytes || !memchr(cache + offset, 0, bytes - offset)) return NULL;
    return cache + offset;
}

/* Size of the older table in bytes. */
static size_t old_table(const char *cache, size_t bytes) {
    struct old_header old;
    if (bytes < sizeof old || memcmp(cache, old_magic, sizeof old_magic - 1) != 0) return 0;
    memcpy(&old, cache, sizeof old);
    return (sizeof old + (size_t)old.entries * OLD_ENTRY_BYTES + 7) & ~(size_t)7;
}

bool ld_cache_find(const void *cache, size_t bytes, const char *file, bool (*found)(const char *path, void *argument),
                   void *argument) {
    size_t start = old_table(cache, bytes);
    struct header header;
    if (start > bytes || bytes - start < sizeof header) return false;
    const char *table = (const char *)cache + start;
    bytes -= start;
    memcpy(&header, table, sizeof header);
    if (memcmp(header.magic, magic, sizeof header.magic) != 0) return false;
    if (header.entries > (bytes - sizeof header) / sizeof(struct entry)) return false;
    for (uint32_t i = 0; i < header.entries; i++) {
        struct entry entry;
        memcpy(&entry, table + sizeof header + i * sizeof entry, sizeof entry);
        const char *name = text_at(table, bytes, entry.name), *path = text_at(table, bytes, entry.path);
        if (entry.flags == FLAGS && name && path && !strcmp(name, file) && found(path, argument)) return true;
    }
    return false;
}
