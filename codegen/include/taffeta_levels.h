/*
 * taffeta_levels.h: structured arguments of generated code. Included by generated C only, where an entry has
 * structured parameters.
 *
 * The kernel of such an entry takes arrays. These functions extract the arrays from the levels of a `taffeta_tensor`,
 * and check the invariants of the levels, on which the kernel relies. All checks take time proportional to the number
 * of stored elements.
 */
#ifndef TAFFETA_LEVELS_H
#define TAFFETA_LEVELS_H

#include "taffeta_runtime.h"

/* Declares checks with an instance for each type of the index arrays: the one that is called, or all in the object
   file of the runtime. */
#ifdef TAFFETA_LINKED
#define TAF_CHECK TAFFETA_RUNTIME
#define TAF_TYPED(check) check##_of_type
#else
#define TAF_CHECK static TAFFETA_BODY
#define TAF_TYPED(check) check
#endif

/* Level that an entry expects. */
typedef struct taf_level {
    int32_t kind;
    int32_t n_arrays;
} taf_level;

/* Storage that an entry expects of an argument. */
typedef struct taf_storage {
    const taf_level *levels;
    int32_t n_levels;
    const void *fill; /* of the argument's element type */
} taf_storage;

TAFFETA_RUNTIME TAFFETA_COLD const char *taf_level_name(int32_t kind);

/* Checks the type, length and address of one array of a structured argument. */
TAFFETA_RUNTIME int taf_check_array(taffeta_ctx *ctx, const taf_spec *s, const void *data, int32_t dtype,
                                    size_t length);

/* Extracts the arrays of a structured argument as dense tensors: those of its levels, outermost first, then its
   elements. `flat` specifies each array; `lengths` receives their shapes. */
TAFFETA_RUNTIME int taf_arrays_of(taffeta_ctx *ctx, const taf_spec *s, const taf_storage *storage, const taf_spec *flat,
                                  const taffeta_tensor *t, taffeta_tensor *arrays, int64_t *lengths);

/* Checks a result that the callee makes: its type and number of dimensions, and that it has no memory yet. */
TAFFETA_RUNTIME int taf_check_made(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *t, bool planned);

/* Initialises an array that the callee makes. */
TAFFETA_RUNTIME void taf_empty_array(taffeta_tensor *array, int32_t dtype, int64_t *length);

/* Moves arrays that the callee has made to the levels of a tensor, which are allocated as one block with them. */
TAFFETA_RUNTIME int taf_levels_of(taffeta_ctx *ctx, const taf_storage *storage, taffeta_tensor *arrays,
                                  taffeta_tensor *t);

/* Frees arrays that the callee has made and no tensor has taken. */
TAFFETA_RUNTIME void taf_drop_arrays(taffeta_tensor *arrays, size_t n_arrays);

/* Reads an element of an index array. Inlined where the type is known, so that a loop tests the type once. */
static TAFFETA_BODY int64_t taf_index(const void *data, int32_t dtype, int64_t k) {
    switch (dtype) {
    case TAFFETA_U8: return ((const uint8_t *)data)[k];
    case TAFFETA_U16: return ((const uint16_t *)data)[k];
    case TAFFETA_I32: return ((const int32_t *)data)[k];
    default: return ((const int64_t *)data)[k];
    }
}

/* Reads the last element, the number of positions. */
TAFFETA_RUNTIME int taf_last(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *a, int32_t dtype,
                             int64_t *count);

/* Checks that `pos` begins with 0, does not decrease, and ends with `total`. */
TAF_CHECK int taf_check_partition(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *pos, int32_t dtype,
                                  int64_t total);

TAFFETA_RUNTIME TAFFETA_COLD int taf_twice(taffeta_ctx *ctx, const taf_spec *s, int64_t coordinate, int64_t part);

TAFFETA_RUNTIME int taf_compare(const void *a, const void *b);

/* Checks the coordinates of each part of the partition `pos`: below `size`, and ordered and unique where required. */
TAF_CHECK int taf_check_coordinates(taffeta_ctx *ctx, const taffeta_tensor *pos, int32_t pos_dtype, const taf_spec *s,
                                    const taffeta_tensor *crd, int32_t dtype, int64_t size, bool ordered,
                                    bool unique);

/* Checks that each part of the partition `pos`, a block of coordinates from `start` (NULL: from 0), is in range. */
TAF_CHECK int taf_check_blocks(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *pos, int32_t pos_dtype,
                               const taffeta_tensor *start, int32_t dtype, int64_t size);

/* Checks that each element is from 0 to `most`. */
TAF_CHECK int taf_check_range(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *a, int32_t dtype, int64_t most,
                              int64_t size);

/* Checks that the elements increase. */
TAF_CHECK int taf_check_rises(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *a, int32_t dtype);

/* Checks that the coordinates of each fibre increase from slot to slot, up to the unused slots, which hold the size. */
TAF_CHECK int taf_check_slots(taffeta_ctx *ctx, const taffeta_tensor *pos, const taf_spec *s, const taffeta_tensor *crd,
                              int32_t dtype, int64_t size);

/* Checks that coordinates in `crd` do not decrease (`unique`: increase) over consecutive positions of one part of `pos`
   that agree in all coordinates of the lists above. */
TAFFETA_RUNTIME int taf_check_tuples(taffeta_ctx *ctx, const taffeta_tensor *pos, const taffeta_tensor *const *lists,
                                     size_t n_lists, const taf_spec *s, const taffeta_tensor *crd, bool unique);

/* Checks the segments of each part of `pos`, whose ends are in `end`: each has at least one coordinate and, unless
   `ofs` is NULL, at most one position per coordinate. `full`: the segments cover the dimension, and each has one
   position or one per coordinate. */
TAFFETA_RUNTIME int taf_check_segments(taffeta_ctx *ctx, const taffeta_tensor *pos, const taf_spec *s,
                                       const taffeta_tensor *end, const taf_spec *ofs_spec, const taffeta_tensor *ofs,
                                       bool full, int64_t size);

/* Checks that `map`, `size` numbers for each part of the list, is nonzero exactly at the coordinates of the part. */
TAFFETA_RUNTIME int taf_check_map(taffeta_ctx *ctx, const taffeta_tensor *pos, const taffeta_tensor *crd,
                                  const taf_spec *s,
                                  const taffeta_tensor *map, int64_t size);

/* Returns the slot at which the search for a coordinate begins, in a table of `mask + 1` slots. */
static inline TAFFETA_UNUSED int64_t taf_slot(int64_t coordinate, int64_t mask) {
    const uint64_t scattered = (uint64_t)(coordinate ^ (coordinate >> 32)) * UINT64_C(0x9E3779B97F4A7C15);
    return ((int64_t)scattered >> 32) & mask;
}

/* Checks that `tbl` has a hash table for each part of the list, with a slot for each coordinate and a free slot. */
TAFFETA_RUNTIME int taf_check_table(taffeta_ctx *ctx, const taffeta_tensor *pos, const taffeta_tensor *crd,
                                    const taffeta_tensor *tpos, const taf_spec *s, const taffeta_tensor *tbl);

/* Definitions of the functions declared above. */
#if !defined(TAFFETA_LINKED) || defined(TAFFETA_LEVELS_OBJECT)
int taf_last(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *a, int32_t dtype, int64_t *count) {
    if (a->shape[0] == 0)
        return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0, "`%s` is empty, expected at least one element", s->name);
    *count = taf_index(a->data, dtype, a->shape[0] - 1);
    if (*count < 0)
        return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0, "`%s` ends with %" PRId64 ", which is negative", s->name, *count);
    return TAFFETA_OK;
}

const char *taf_level_name(int32_t kind) {
    static const char *const names[] = {"dense",     "compressed", "singleton",        "hashed",           "bytemap",
                                        "bitmap",    "banded",     "ragged",           "blocklist",        "runlength",
                                        "packbits",  "triangular", "triangular (upper)", "symmetric",        "point",
                                        "range",     "offset",     "squeezed",         "sliced"};
    return kind >= 0 && kind <= TAFFETA_LEVEL_SLICED ? names[kind] : "an unknown kind";
}

int taf_check_array(taffeta_ctx *ctx, const taf_spec *s, const void *data, int32_t dtype, size_t length) {
    if (dtype != s->dtype)
        return taf_fail(ctx, TAFFETA_ERROR_DTYPE, -1, 0, "`%s` has elements of type %s, expected %s", s->name,
                         taf_dtype_name(dtype), taf_dtype_name(s->dtype));
    if (length > (size_t)TAFFETA_MAX_SIZE)
        return taf_fail(ctx, TAFFETA_ERROR_SIZE, -1, 0, "`%s` has %zu elements: an array has at most 2^47", s->name, length);
    if (length > 0 && data == NULL) return taf_fail(ctx, TAFFETA_ERROR_CALL, -1, 0, "the data of `%s` is NULL", s->name);
    if (length > 0 && (uintptr_t)data % taf_dtype_size(dtype) != 0)
        return taf_fail(ctx, TAFFETA_ERROR_LAYOUT, -1, 0, "the data of `%s` is not aligned to its element type", s->name);
    return TAFFETA_OK;
}

int taf_arrays_of(taffeta_ctx *ctx, const taf_spec *s, const taf_storage *storage, const taf_spec *flat,
                  const taffeta_tensor *t, taffeta_tensor *arrays, int64_t *lengths) {
    int status = taf_check_tensor(ctx, s, t);
    if (status != TAFFETA_OK) return status;
    if (t->levels == NULL)
        return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0, "`%s` is a dense tensor, expected one of %d levels", s->name,
                         (int)storage->n_levels);
    if (t->n_levels != storage->n_levels)
        return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0, "`%s` has %d levels, expected %d", s->name, (int)t->n_levels,
                         (int)storage->n_levels);
    if (t->strides != NULL)
        return taf_fail(ctx, TAFFETA_ERROR_LAYOUT, -1, 0, "`%s` is structured and has strides", s->name);
    if (t->fill != NULL && memcmp(t->fill, storage->fill, taf_dtype_size(t->dtype)) != 0)
        return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0, "the fill of `%s` differs from that of its format", s->name);
    size_t at = 0;
    for (int32_t l = 0; l <= t->n_levels; l++) {
        const taffeta_array values = {t->data, t->dtype, TAFFETA_OWNER_CALLER, t->n_stored};
        const bool is_level = l < t->n_levels;
        const int32_t n_arrays = is_level ? t->levels[l].n_arrays : 1;
        const taffeta_array *given = is_level ? t->levels[l].arrays : &values;
        if (is_level && t->levels[l].kind != storage->levels[l].kind)
            return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0, "level %d of `%s` is %s, expected %s", (int)l, s->name,
                             taf_level_name(t->levels[l].kind), taf_level_name(storage->levels[l].kind));
        if (is_level && n_arrays != storage->levels[l].n_arrays)
            return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0, "level %d of `%s` has %d arrays, expected %d", (int)l, s->name,
                             (int)n_arrays, (int)storage->levels[l].n_arrays);
        if (n_arrays > 0 && given == NULL)
            return taf_fail(ctx, TAFFETA_ERROR_CALL, -1, 0, "the arrays of level %d of `%s` are NULL", (int)l, s->name);
        for (int32_t k = 0; k < n_arrays; k++, at++) {
            status = taf_check_array(ctx, &flat[at], given[k].data, given[k].dtype, given[k].length);
            if (status != TAFFETA_OK) return status;
            memset(&arrays[at], 0, sizeof arrays[at]);
            lengths[at] = (int64_t)given[k].length;
            arrays[at].dtype = given[k].dtype;
            arrays[at].ndim = 1;
            arrays[at].shape = &lengths[at];
            arrays[at].data = given[k].data;
        }
    }
    return TAFFETA_OK;
}

int taf_check_made(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *t, bool planned) {
    int status = taf_check_tensor(ctx, s, t);
    if (status != TAFFETA_OK || planned) return status;
    if (t->data != NULL || t->levels != NULL)
        return taf_fail(ctx, TAFFETA_ERROR_CALL, -1, 0,
                         "`%s` is made by the callee, but has data or levels: release it with taffeta_free first", s->name);
    return TAFFETA_OK;
}

void taf_empty_array(taffeta_tensor *array, int32_t dtype, int64_t *length) {
    memset(array, 0, sizeof *array);
    *length = 0;
    array->dtype = dtype;
    array->ndim = 1;
    array->shape = length;
}

int taf_levels_of(taffeta_ctx *ctx, const taf_storage *storage, taffeta_tensor *arrays, taffeta_tensor *t) {
    const size_t n_levels = (size_t)storage->n_levels;
    size_t n_arrays = 0;
    for (size_t l = 0; l < n_levels; l++) n_arrays += (size_t)storage->levels[l].n_arrays;
    const size_t bytes = n_levels * sizeof(taffeta_level) + n_arrays * sizeof(taffeta_array);
    taffeta_level *levels = (taffeta_level *)taf_result_memory(ctx->alloc, ctx->alloc_data, NULL, 0, bytes, sizeof(void *));
    if (levels == NULL)
        return taf_fail(ctx, TAFFETA_ERROR_MEMORY, -1, 0, "no memory for the %zu bytes of a result's levels", bytes);
    taffeta_array *next = (taffeta_array *)(void *)(levels + n_levels);
    for (size_t l = 0; l < n_levels; l++) {
        levels[l].kind = storage->levels[l].kind;
        levels[l].n_arrays = storage->levels[l].n_arrays;
        levels[l].arrays = next;
        for (int32_t a = 0; a < levels[l].n_arrays; a++, next++, arrays++) {
            next->data = arrays->data;
            next->dtype = arrays->dtype;
            next->owner = TAFFETA_OWNER_CALLEE;
            next->length = (size_t)arrays->shape[0];
            arrays->data = NULL;
        }
    }
    t->data = arrays->data;
    t->n_stored = (size_t)arrays->shape[0];
    arrays->data = NULL;
    t->strides = NULL;
    t->fill = NULL;
    t->levels = levels;
    t->n_levels = storage->n_levels;
    t->owner = TAFFETA_OWNER_CALLEE;
    t->alloc = ctx->alloc;
    t->alloc_data = ctx->alloc_data;
    return TAFFETA_OK;
}

void taf_drop_arrays(taffeta_tensor *arrays, size_t n_arrays) {
    for (size_t k = 0; k < n_arrays; k++) {
        const size_t size = taf_dtype_size(arrays[k].dtype);
        if (arrays[k].data == NULL) continue;
        taf_result_memory(arrays[k].alloc, arrays[k].alloc_data, arrays[k].data, (size_t)arrays[k].shape[0] * size, 0, size);
        arrays[k].data = NULL;
    }
}

int taf_twice(taffeta_ctx *ctx, const taf_spec *s, int64_t coordinate, int64_t part) {
    return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0, "`%s` repeats coordinate %" PRId64 " under position %" PRId64, s->name,
                     coordinate, part);
}

int taf_compare(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int taf_check_tuples(taffeta_ctx *ctx, const taffeta_tensor *pos, const taffeta_tensor *const *lists,
                     size_t n_lists, const taf_spec *s, const taffeta_tensor *crd, bool unique) {
    for (int64_t p = 0; p + 1 < pos->shape[0]; p++) {
        const int64_t begin = taf_index(pos->data, pos->dtype, p), end = taf_index(pos->data, pos->dtype, p + 1);
        for (int64_t k = begin + 1; k < end; k++) {
            bool same = true;
            for (size_t l = 0; same && l < n_lists; l++)
                same = taf_index(lists[l]->data, lists[l]->dtype, k) == taf_index(lists[l]->data, lists[l]->dtype, k - 1);
            if (!same) continue;
            const int64_t before = taf_index(crd->data, crd->dtype, k - 1), c = taf_index(crd->data, crd->dtype, k);
            if (c < before)
                return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                                 "`%s` is not in order: element %" PRId64 " is %" PRId64 ", after %" PRId64, s->name, k, c, before);
            if (unique && c == before)
                return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                                 "`%s` repeats coordinate %" PRId64 ": element %" PRId64 " equals the one before", s->name, c,
                                 k);
        }
    }
    return TAFFETA_OK;
}

int taf_check_segments(taffeta_ctx *ctx, const taffeta_tensor *pos, const taf_spec *s,
                       const taffeta_tensor *end, const taf_spec *ofs_spec, const taffeta_tensor *ofs,
                       bool full, int64_t size) {
    for (int64_t p = 0; p + 1 < pos->shape[0]; p++) {
        const int64_t first = taf_index(pos->data, pos->dtype, p), last = taf_index(pos->data, pos->dtype, p + 1);
        int64_t before = 0;
        for (int64_t b = first; b < last; b++) {
            const int64_t e = taf_index(end->data, end->dtype, b), room = e - before;
            if (e < 0 || e > size)
                return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                                 "element %" PRId64 " of `%s` is %" PRId64 ", out of range for a dimension of size %" PRId64, b, s->name,
                                 e, size);
            if (room <= 0)
                return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                                 "`%s` does not increase: element %" PRId64 " is %" PRId64 ", after %" PRId64, s->name, b, e, before);
            if (ofs != NULL) {
                const int64_t n = taf_index(ofs->data, ofs->dtype, b + 1) - taf_index(ofs->data, ofs->dtype, b);
                if (full ? n != 1 && n != room : n <= 0 || n > room)
                    return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                                     "`%s` has %" PRId64 " positions in segment %" PRId64 ", which has %" PRId64 " coordinates",
                                     ofs_spec->name, n, b, room);
            }
            before = e;
        }
        if (full && before != size)
            return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                             "`%s` ends with %" PRId64 " under position %" PRId64 ", expected the size %" PRId64, s->name,
                             before, p, size);
    }
    return TAFFETA_OK;
}

int taf_check_map(taffeta_ctx *ctx, const taffeta_tensor *pos, const taffeta_tensor *crd, const taf_spec *s,
                  const taffeta_tensor *map, int64_t size) {
    for (int64_t p = 0; p + 1 < pos->shape[0]; p++) {
        const int64_t begin = taf_index(pos->data, pos->dtype, p), end = taf_index(pos->data, pos->dtype, p + 1);
        for (int64_t k = begin; k < end; k++) {
            const int64_t c = taf_index(crd->data, crd->dtype, k);
            if (taf_index(map->data, map->dtype, p * size + c) == 0)
                return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                                 "`%s` does not mark coordinate %" PRId64 " under position %" PRId64 ", which is stored", s->name,
                                 c, p);
        }
        int64_t marked = 0;
        for (int64_t c = 0; c < size; c++) marked += taf_index(map->data, map->dtype, p * size + c) != 0;
        if (marked != end - begin)
            return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                             "`%s` marks %" PRId64 " coordinates under position %" PRId64 ", but %" PRId64 " are stored", s->name,
                             marked, p, end - begin);
    }
    return TAFFETA_OK;
}

int taf_check_table(taffeta_ctx *ctx, const taffeta_tensor *pos, const taffeta_tensor *crd,
                    const taffeta_tensor *tpos, const taf_spec *s, const taffeta_tensor *tbl) {
    for (int64_t p = 0; p + 1 < pos->shape[0]; p++) {
        const int64_t begin = taf_index(pos->data, pos->dtype, p), end = taf_index(pos->data, pos->dtype, p + 1);
        const int64_t first = taf_index(tpos->data, tpos->dtype, p), last = taf_index(tpos->data, tpos->dtype, p + 1);
        const int64_t slots = last - first, mask = slots - 1;
        bool is_free = false;
        if (slots <= 0 || (slots & mask) != 0)
            return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                             "`%s` has %" PRId64 " slots under position %" PRId64 ", which is not a power of two", s->name, slots, p);
        for (int64_t k = first; k < last; k++) {
            const int64_t t = taf_index(tbl->data, tbl->dtype, k);
            is_free |= t == 0;
            if (t != 0 && (t <= begin || t > end))
                return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                                 "`%s` has %" PRId64 " in slot %" PRId64 ", which is not a position under %" PRId64, s->name, t, k, p);
        }
        if (!is_free)
            return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0, "`%s` has no free slot under position %" PRId64, s->name, p);
        for (int64_t k = begin; k < end; k++) {
            const int64_t c = taf_index(crd->data, crd->dtype, k);
            int64_t slot = taf_slot(c, mask), found = taf_index(tbl->data, tbl->dtype, first + slot);
            while (found != 0 && found != k + 1) {
                slot = (slot + 1) & mask;
                found = taf_index(tbl->data, tbl->dtype, first + slot);
            }
            if (found == 0)
                return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                                 "`%s` does not find the coordinate %" PRId64 " under position %" PRId64, s->name, c, p);
        }
    }
    return TAFFETA_OK;
}

static TAFFETA_BODY int TAF_TYPED(taf_check_partition)(taffeta_ctx *ctx, const taf_spec *s,
                                                       const taffeta_tensor *pos, int32_t dtype,
                                                       int64_t total) {
    const int64_t last = pos->shape[0] - 1;
    int64_t before = taf_index(pos->data, dtype, 0);
    if (before != 0)
        return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0, "`%s` begins with %" PRId64 ", expected 0", s->name, before);
    for (int64_t k = 1; k <= last; k++) {
        const int64_t next = taf_index(pos->data, dtype, k);
        if (next < before)
            return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0, "`%s` falls from %" PRId64 " to %" PRId64 " at element %" PRId64,
                             s->name, before, next, k);
        before = next;
    }
    if (before != total)
        return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0, "`%s` ends with %" PRId64 ", but there are %" PRId64 " positions",
                         s->name, before, total);
    return TAFFETA_OK;
}

/* Checks that the coordinates of an unordered part are unique. */
static TAFFETA_BODY int taf_check_distinct(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *crd,
                                           int32_t dtype,
                                           int64_t part, int64_t begin, int64_t end) {
    if (end - begin < 2) return TAFFETA_OK;
    int status = TAFFETA_OK;
    int64_t *sorted = (int64_t *)malloc((size_t)(end - begin) * sizeof *sorted);
    if (sorted == NULL)
        return taf_fail(ctx, TAFFETA_ERROR_MEMORY, -1, 0, "no memory to check that the coordinates of `%s` are unique", s->name);
    for (int64_t k = begin; k < end; k++) sorted[k - begin] = taf_index(crd->data, dtype, k);
    qsort(sorted, (size_t)(end - begin), sizeof *sorted, taf_compare);
    for (int64_t k = 1; k < end - begin && status == TAFFETA_OK; k++)
        if (sorted[k] == sorted[k - 1]) status = taf_twice(ctx, s, sorted[k], part);
    free(sorted);
    return status;
}

static TAFFETA_BODY int TAF_TYPED(taf_check_coordinates)(taffeta_ctx *ctx, const taffeta_tensor *pos,
                                                         int32_t pos_dtype, const taf_spec *s,
                                                         const taffeta_tensor *crd, int32_t dtype, int64_t size, bool ordered,
                                                         bool unique) {
    for (int64_t p = 0; p + 1 < pos->shape[0]; p++) {
        const int64_t begin = taf_index(pos->data, pos_dtype, p), end = taf_index(pos->data, pos_dtype, p + 1);
        int64_t before = -1;
        for (int64_t k = begin; k < end; k++) {
            const int64_t c = taf_index(crd->data, dtype, k);
            if (c < 0 || c >= size)
                return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                                 "element %" PRId64 " of `%s` is %" PRId64 ", out of range for a dimension of size %" PRId64, k, s->name,
                                 c, size);
            if (ordered && c < before)
                return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                                 "`%s` is not in order: element %" PRId64 " is %" PRId64 ", after %" PRId64, s->name, k, c, before);
            if (ordered && unique && c == before) return taf_twice(ctx, s, c, p);
            before = c;
        }
        if (!ordered && unique) {
            const int status = taf_check_distinct(ctx, s, crd, dtype, p, begin, end);
            if (status != TAFFETA_OK) return status;
        }
    }
    return TAFFETA_OK;
}

static TAFFETA_BODY int TAF_TYPED(taf_check_blocks)(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *pos,
                                                    int32_t pos_dtype,
                                                    const taffeta_tensor *start, int32_t dtype, int64_t size) {
    for (int64_t p = 0; p + 1 < pos->shape[0]; p++) {
        const int64_t first = start != NULL ? taf_index(start->data, dtype, p) : 0;
        const int64_t length = taf_index(pos->data, pos_dtype, p + 1) - taf_index(pos->data, pos_dtype, p);
        if (first < 0 || first > size || length > size - first)
            return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                             "`%s` has %" PRId64 " coordinates from %" PRId64 " under position %" PRId64
                             ", out of range for a dimension of size %" PRId64,
                             s->name, length, first, p, size);
    }
    return TAFFETA_OK;
}

static TAFFETA_BODY int TAF_TYPED(taf_check_range)(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *a,
                                                   int32_t dtype, int64_t most,
                                                   int64_t size) {
    for (int64_t k = 0; k < a->shape[0]; k++) {
        const int64_t c = taf_index(a->data, dtype, k);
        if (c < 0 || c > most)
            return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                             "element %" PRId64 " of `%s` is %" PRId64 ", out of range for a dimension of size %" PRId64, k, s->name, c,
                             size);
    }
    return TAFFETA_OK;
}

static TAFFETA_BODY int TAF_TYPED(taf_check_rises)(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *a,
                                                   int32_t dtype) {
    for (int64_t k = 1; k < a->shape[0]; k++) {
        const int64_t before = taf_index(a->data, dtype, k - 1), c = taf_index(a->data, dtype, k);
        if (c <= before)
            return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                             "`%s` does not increase: element %" PRId64 " is %" PRId64 ", after %" PRId64, s->name, k, c, before);
    }
    return TAFFETA_OK;
}

static TAFFETA_BODY int TAF_TYPED(taf_check_slots)(taffeta_ctx *ctx, const taffeta_tensor *pos, const taf_spec *s,
                                                   const taffeta_tensor *crd, int32_t dtype, int64_t size) {
    const int64_t parts = pos->shape[0] - 1, slots = taf_index(pos->data, pos->dtype, parts);
    const int64_t fibres = slots > 0 ? crd->shape[0] / slots : 0;
    for (int64_t p = 0; p < parts; p++) {
        const int64_t begin = taf_index(pos->data, pos->dtype, p), end = taf_index(pos->data, pos->dtype, p + 1);
        for (int64_t f = 0; f < fibres; f++) {
            int64_t before = -1;
            for (int64_t k = begin; k < end; k++) {
                const int64_t c = taf_index(crd->data, dtype, k * fibres + f);
                if (c < before || (c == before && c != size))
                    return taf_fail(ctx, TAFFETA_ERROR_STORAGE, -1, 0,
                                     "`%s` does not increase in fibre %" PRId64 ": slot %" PRId64
                                     " is %" PRId64 ", after %" PRId64,
                                     s->name, p * fibres + f, k - begin, c, before);
                before = c;
            }
        }
    }
    return TAFFETA_OK;
}

#ifdef TAFFETA_LEVELS_OBJECT
/* Returns the outcome of the instance of TAF_CALL for the type of an index array. */
#define TAF_OF_TYPE(dtype) \
    switch (dtype) { \
    case TAFFETA_U8: return TAF_CALL(TAFFETA_U8); \
    case TAFFETA_U16: return TAF_CALL(TAFFETA_U16); \
    case TAFFETA_I32: return TAF_CALL(TAFFETA_I32); \
    default: return TAF_CALL(TAFFETA_I64); \
    }

int taf_check_partition(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *pos, int32_t dtype, int64_t total) {
#define TAF_CALL(TYPE) TAF_TYPED(taf_check_partition)(ctx, s, pos, TYPE, total)
    return dtype == TAFFETA_I32 ? TAF_CALL(TAFFETA_I32) : TAF_CALL(TAFFETA_I64);
#undef TAF_CALL
}

int taf_check_coordinates(taffeta_ctx *ctx, const taffeta_tensor *pos, int32_t pos_dtype, const taf_spec *s,
                          const taffeta_tensor *crd, int32_t dtype, int64_t size, bool ordered, bool unique) {
#define TAF_CALL_WITH(POS, TYPE) TAF_TYPED(taf_check_coordinates)(ctx, pos, POS, s, crd, TYPE, size, ordered, unique)
#define TAF_CALL(TYPE) pos_dtype == TAFFETA_I32 ? TAF_CALL_WITH(TAFFETA_I32, TYPE) : TAF_CALL_WITH(TAFFETA_I64, TYPE)
    TAF_OF_TYPE(dtype)
#undef TAF_CALL
#undef TAF_CALL_WITH
}

int taf_check_blocks(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *pos, int32_t pos_dtype,
                     const taffeta_tensor *start, int32_t dtype, int64_t size) {
#define TAF_CALL_WITH(POS, TYPE) TAF_TYPED(taf_check_blocks)(ctx, s, pos, POS, start, TYPE, size)
#define TAF_CALL(TYPE) pos_dtype == TAFFETA_I32 ? TAF_CALL_WITH(TAFFETA_I32, TYPE) : TAF_CALL_WITH(TAFFETA_I64, TYPE)
    TAF_OF_TYPE(dtype)
#undef TAF_CALL
#undef TAF_CALL_WITH
}

int taf_check_range(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *a, int32_t dtype, int64_t most,
                    int64_t size) {
#define TAF_CALL(TYPE) TAF_TYPED(taf_check_range)(ctx, s, a, TYPE, most, size)
    TAF_OF_TYPE(dtype)
#undef TAF_CALL
}

int taf_check_rises(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *a, int32_t dtype) {
#define TAF_CALL(TYPE) TAF_TYPED(taf_check_rises)(ctx, s, a, TYPE)
    TAF_OF_TYPE(dtype)
#undef TAF_CALL
}

int taf_check_slots(taffeta_ctx *ctx, const taffeta_tensor *pos, const taf_spec *s, const taffeta_tensor *crd,
                    int32_t dtype, int64_t size) {
#define TAF_CALL(TYPE) TAF_TYPED(taf_check_slots)(ctx, pos, s, crd, TYPE, size)
    TAF_OF_TYPE(dtype)
#undef TAF_CALL
}
#endif
#endif

#endif
