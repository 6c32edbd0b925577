/* Texture and surface objects: numbers that remember what they show. Kernels here look at nothing. */
#include "arrays.h"

#include <stdlib.h>

struct texture {
    u64 number;
    bool surface, viewed;
    struct context *context;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC sampling;
    CUDA_RESOURCE_VIEW_DESC view;
    struct texture *next;
};

static struct texture *textures;
static u64 latest;

static bool shows_something(const CUDA_RESOURCE_DESC *resource, bool surface) {
    switch (resource->type) {
    case CU_RESOURCE_TYPE_ARRAY: return array_valid(resource->resource.array);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: return !surface && mipmaps_valid(resource->resource.mipmaps);
    case CU_RESOURCE_TYPE_LINEAR:
    case CU_RESOURCE_TYPE_PITCH2D: return !surface && range_at(resource->resource.address);
    default: return false;
    }
}

/* Locked. */
static struct texture **texture_link(u64 number, bool surface) {
    struct texture **link = &textures;
    while (*link && !((*link)->number == number && (*link)->surface == surface)) link = &(*link)->next;
    return link;
}

static CUresult texture_add(const struct texture *like, u64 *number) {
    LOCKED;
    if (!shows_something(&like->resource, like->surface)) return CUDA_ERROR_INVALID_VALUE;
    struct texture *texture = malloc(sizeof *texture);
    if (!texture) return CUDA_ERROR_OUT_OF_MEMORY;
    *texture = *like;
    texture->number = *number = ++latest;
    texture->next = textures;
    textures = texture;
    return CUDA_SUCCESS;
}

static CUresult texture_end(u64 number, bool surface) {
    LOCKED;
    struct texture **link = texture_link(number, surface), *texture = *link;
    if (!texture) return CUDA_ERROR_INVALID_VALUE;
    *link = texture->next;
    free(texture);
    return CUDA_SUCCESS;
}

void textures_context_gone(const struct context *context) {
    for (struct texture **link = &textures, *texture; (texture = *link);) {
        if (texture->context != context) {
            link = &texture->next;
            continue;
        }
        *link = texture->next;
        free(texture);
    }
}

CALL(cuTexObjectCreate, CUtexObject *made, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *sampling,
     const CUDA_RESOURCE_VIEW_DESC *view) {
    struct context *context;
    TRY(context_current(&context));
    if (!made || !resource || !sampling) return CUDA_ERROR_INVALID_VALUE;
    struct texture texture = {.context = context, .resource = *resource, .sampling = *sampling, .viewed = view};
    if (view) texture.view = *view;
    u64 number;
    TRY(texture_add(&texture, &number));
    *made = number;
    return CUDA_SUCCESS;
}

CALL(cuSurfObjectCreate, CUsurfObject *made, const CUDA_RESOURCE_DESC *resource) {
    struct context *context;
    TRY(context_current(&context));
    if (!made || !resource) return CUDA_ERROR_INVALID_VALUE;
    const struct texture surface = {.context = context, .resource = *resource, .surface = true};
    u64 number;
    TRY(texture_add(&surface, &number));
    *made = number;
    return CUDA_SUCCESS;
}

CALL(cuTexObjectDestroy, CUtexObject texture) {
    struct context *context;
    TRY(context_current(&context));
    return texture_end(texture, false);
}

CALL(cuSurfObjectDestroy, CUsurfObject surface) {
    struct context *context;
    TRY(context_current(&context));
    return texture_end(surface, true);
}

CALL(cuTexObjectGetResourceDesc, CUDA_RESOURCE_DESC *resource, CUtexObject number) {
    TRY(driver_ready());
    LOCKED;
    const struct texture *texture = *texture_link(number, false);
    if (!texture || !resource) return CUDA_ERROR_INVALID_VALUE;
    *resource = texture->resource;
    return CUDA_SUCCESS;
}

CALL(cuSurfObjectGetResourceDesc, CUDA_RESOURCE_DESC *resource, CUsurfObject number) {
    TRY(driver_ready());
    LOCKED;
    const struct texture *surface = *texture_link(number, true);
    if (!surface || !resource) return CUDA_ERROR_INVALID_VALUE;
    *resource = surface->resource;
    return CUDA_SUCCESS;
}

CALL(cuTexObjectGetTextureDesc, CUDA_TEXTURE_DESC *sampling, CUtexObject number) {
    TRY(driver_ready());
    LOCKED;
    const struct texture *texture = *texture_link(number, false);
    if (!texture || !sampling) return CUDA_ERROR_INVALID_VALUE;
    *sampling = texture->sampling;
    return CUDA_SUCCESS;
}

CALL(cuTexObjectGetResourceViewDesc, CUDA_RESOURCE_VIEW_DESC *view, CUtexObject number) {
    TRY(driver_ready());
    LOCKED;
    const struct texture *texture = *texture_link(number, false);
    if (!texture || !view || !texture->viewed) return CUDA_ERROR_INVALID_VALUE;
    *view = texture->view;
    return CUDA_SUCCESS;
}
