/* The names by place, as text without pointers, so that process start needs no relocations. */
#include "entries.h"

struct text {
#define NAME(name) char name[sizeof #name];
#include NAMES
};

static const struct text text = {
#define NAME(name) #name,
#include NAMES
};

static const uint16_t starts[] = {
#define NAME(name) offsetof(struct text, name),
#include NAMES
};

_Static_assert(sizeof text <= UINT16_MAX, "starts fit");

const uint32_t names_count = sizeof starts / sizeof *starts;

const char *name_at(uint32_t place) { return (const char *)&text + starts[place]; }
