/* Arrays that are not what their levels promise, one call for each: what every call says. `kept` are blocks of the heap,
   so that the sanitizers see one element beyond. */
#include "taffeta_sum_band.h"
#include "taffeta_sum_blocks.h"
#include "taffeta_sum_both.h"
#include "taffeta_sum_coo.h"
#include "taffeta_sum_csr.h"
#include "taffeta_sum_deep.h"
#include "taffeta_sum_diagonals.h"
#include "taffeta_sum_hashed.h"
#include "taffeta_sum_map.h"
#include "taffeta_sum_packbits.h"
#include "taffeta_sum_point.h"
#include "taffeta_sum_ragged.h"
#include "taffeta_sum_rle.h"
#include "taffeta_sum_slots.h"
#include "taffeta_sum_vbl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int entry(taffeta_ctx *, taffeta_tensor *, size_t, const int64_t *);
typedef int plan(taffeta_ctx *, taffeta_tensor *, size_t, const int64_t *, size_t *);

typedef struct matrix {
    int64_t shape[2];
    taffeta_array arrays[4];
    taffeta_level levels[4];
    taffeta_tensor args[2];
    double sum;
} matrix;

static void *block(const void *from, size_t bytes) { return memcpy(malloc(bytes), from, bytes); }

#define LIST(type, number, ...) \
    (taffeta_array){block((const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__})), number, 0, \
                    sizeof((const type[]){__VA_ARGS__}) / sizeof(type)}
#define U8(...) LIST(uint8_t, TAFFETA_U8, __VA_ARGS__)
#define I32(...) LIST(int32_t, TAFFETA_I32, __VA_ARGS__)
#define I64(...) LIST(int64_t, TAFFETA_I64, __VA_ARGS__)

static void start(matrix *a, int32_t kind, int64_t rows, int64_t columns, size_t stored) {
    memset(a, 0, sizeof *a);
    a->shape[0] = rows;
    a->shape[1] = columns;
    a->levels[0].kind = TAFFETA_LEVEL_DENSE;
    a->levels[1] = (taffeta_level){kind, kind == TAFFETA_LEVEL_RAGGED ? 1 : 2, a->arrays};
    a->args[0] = (taffeta_tensor){.dtype = TAFFETA_F64, .ndim = 2, .shape = a->shape, .levels = a->levels, .n_levels = 2,
                                  .data = calloc(stored, sizeof(double)), .n_stored = stored};
    a->args[1] = (taffeta_tensor){.dtype = TAFFETA_F64, .data = &a->sum};
    for (size_t k = 0; k < stored; k++) ((double *)a->args[0].data)[k] = (double)(k + 1);
}

static void finish(const char *what, entry *f, plan *p, matrix *a) {
    taffeta_ctx ctx = TAFFETA_CTX_INIT;
    size_t bytes;
    p(&ctx, a->args, 2, NULL, &bytes);
    int status = f(&ctx, a->args, 2, NULL);
    if (status == TAFFETA_OK)
        printf("%s: %g\n", what, a->sum);
    else
        printf("%s: %d %s\n", what, status, ctx.message);
    for (int k = 0; k < 4; k++) free(a->arrays[k].data);
    free(a->args[0].data);
    taffeta_ctx_release(&ctx);
}

#define CASE(name, f, kind, rows, columns, stored, ...) \
    do { \
        matrix a; \
        start(&a, kind, rows, columns, stored); \
        __VA_ARGS__; \
        finish(name, taffeta_sum_##f, taffeta_sum_##f##_plan, &a); \
    } while (0)
#define CSR(name, pos, crd, ...) \
    CASE(name, csr, TAFFETA_LEVEL_COMPRESSED, 3, 4, 4, a.arrays[0] = pos, a.arrays[1] = crd, ##__VA_ARGS__)
#define BAND(name, pos, first, ...) \
    CASE(name, band, TAFFETA_LEVEL_BANDED, 3, 4, 4, a.arrays[0] = pos, a.arrays[1] = first, ##__VA_ARGS__)
#define RAGGED(name, pos, ...) CASE(name, ragged, TAFFETA_LEVEL_RAGGED, 3, 4, 4, a.arrays[0] = pos, ##__VA_ARGS__)
#define MAP(name, ...) \
    CASE(name, map, TAFFETA_LEVEL_BYTEMAP, 3, 4, 12, a.levels[1].n_arrays = 3, a.arrays[0] = I32(0, 2, 2, 3), \
         a.arrays[1] = I32(1, 3, 0), a.arrays[2] = U8(__VA_ARGS__))
#define HASHED(name, table, ...) \
    CASE(name, hashed, TAFFETA_LEVEL_HASHED, 3, 4, 3, a.levels[1].n_arrays = 4, a.arrays[0] = I32(0, 2, 2, 3), \
         a.arrays[1] = I32(1, 3, 0), a.arrays[2] = table, a.arrays[3] = I32(__VA_ARGS__))
#define POINT(name, ...) \
    CASE(name, point, TAFFETA_LEVEL_POINT, 3, 4, 3, a.levels[1].n_arrays = 1, a.arrays[0] = I32(__VA_ARGS__))
#define RLE(name, pos, ends) \
    CASE(name, rle, TAFFETA_LEVEL_RUN_LENGTH, 3, 4, 4, a.arrays[0] = pos, a.arrays[1] = ends)
#define VBL(name, pos, ends, first) \
    CASE(name, vbl, TAFFETA_LEVEL_BLOCKLIST, 3, 4, 5, a.levels[1].n_arrays = 3, a.arrays[0] = pos, a.arrays[1] = ends, \
         a.arrays[2] = first)
#define PACKBITS(name, pos, ends, first) \
    CASE(name, packbits, TAFFETA_LEVEL_PACK_BITS, 3, 4, 5, a.levels[1].n_arrays = 3, a.arrays[0] = pos, \
         a.arrays[1] = ends, a.arrays[2] = first)
#define COO(name, pos, rows, columns) \
    CASE(name, coo, TAFFETA_LEVEL_SINGLETON, 3, 4, 4, a.arrays[0] = pos, a.arrays[1] = rows, a.arrays[2] = columns, \
         a.levels[0] = ((taffeta_level){TAFFETA_LEVEL_COMPRESSED, 2, a.arrays}), \
         a.levels[1] = ((taffeta_level){TAFFETA_LEVEL_SINGLETON, 1, a.arrays + 2}))

#define DIAGONALS(name, crd, stored) \
    CASE(name, diagonals, TAFFETA_LEVEL_RANGE, 3, 4, stored, a.arrays[0] = crd, a.args[0].n_levels = 3, \
         a.levels[0] = ((taffeta_level){TAFFETA_LEVEL_SQUEEZED, 1, a.arrays}), a.levels[1].n_arrays = 0, \
         a.levels[2].kind = TAFFETA_LEVEL_OFFSET)
#define SLOTS(name, count, crd, stored) \
    CASE(name, slots, TAFFETA_LEVEL_DENSE, 3, 4, stored, a.arrays[0] = count, a.arrays[1] = crd, a.args[0].n_levels = 3, \
         a.levels[0] = ((taffeta_level){TAFFETA_LEVEL_SLICED, 1, a.arrays}), a.levels[1].n_arrays = 0, \
         a.levels[2] = ((taffeta_level){TAFFETA_LEVEL_SINGLETON, 1, a.arrays + 1}))
#define BLOCKS(name, pos, crd, stored) \
    CASE(name, blocks, TAFFETA_LEVEL_COMPRESSED, 3, 4, stored, a.arrays[0] = pos, a.arrays[1] = crd, \
         a.args[0].n_levels = 4, a.levels[2].kind = TAFFETA_LEVEL_DENSE, a.levels[3].kind = TAFFETA_LEVEL_DENSE)

int main(void) {
    CSR("right", I32(0, 2, 2, 4), I32(0, 2, 1, 3));
    CSR("pos begins late", I32(1, 2, 2, 4), I32(0, 2, 1, 3));
    CSR("pos falls", I32(0, 3, 2, 4), I32(0, 2, 1, 3));
    CSR("pos far away", I32(0, 1000000, 1000000, 4), I32(0, 2, 1, 3));
    CSR("pos is negative", I32(0, -5, 2, 4), I32(0, 2, 1, 3));
    CSR("pos ends early", I32(0, 2, 2, 3), I32(0, 2, 1, 3));
    CSR("pos is short", I32(0, 2, 4), I32(0, 2, 1, 3));
    CSR("crd is short", I32(0, 2, 2, 4), I32(0, 2, 1));
    CSR("crd is out of range", I32(0, 2, 2, 4), I32(0, 2, 1, 4));
    CSR("crd is negative", I32(0, 2, 2, 4), I32(-1, 2, 1, 3));
    CSR("crd is not in order", I32(0, 2, 2, 4), I32(2, 0, 1, 3));
    CSR("crd twice", I32(0, 2, 2, 4), I32(2, 2, 1, 3));
    CSR("pos of another type", I64(0, 2, 2, 4), I32(0, 2, 1, 3));
    CSR("crd of another type", I32(0, 2, 2, 4), I64(0, 2, 1, 3));
    CSR("values too few", I32(0, 2, 2, 4), I32(0, 2, 1, 3), a.args[0].n_stored = 3);
    CSR("values NULL", I32(0, 2, 2, 4), I32(0, 2, 1, 3), free(a.args[0].data), a.args[0].data = NULL);
    CSR("values of another type", I32(0, 2, 2, 4), I32(0, 2, 1, 3), a.args[0].dtype = TAFFETA_F32);
    CSR("crd NULL", I32(0, 2, 2, 4), ((taffeta_array){NULL, TAFFETA_I32, 0, 4}));
    CSR("arrays NULL", I32(0, 2, 2, 4), I32(0, 2, 1, 3), a.levels[1].arrays = NULL);
    CSR("an array fewer", I32(0, 2, 2, 4), I32(0, 2, 1, 3), a.levels[1].n_arrays = 1);
    CSR("another kind", I32(0, 2, 2, 4), I32(0, 2, 1, 3), a.levels[1].kind = TAFFETA_LEVEL_HASHED);
    CSR("no kind", I32(0, 2, 2, 4), I32(0, 2, 1, 3), a.levels[1].kind = 99);
    CSR("a level fewer", I32(0, 2, 2, 4), I32(0, 2, 1, 3), a.args[0].n_levels = 1);
    CSR("dense", I32(0, 2, 2, 4), I32(0, 2, 1, 3), a.args[0].levels = NULL);
    CSR("three dimensions", I32(0, 2, 2, 4), I32(0, 2, 1, 3), a.args[0].ndim = 3);
    CSR("another shape", I32(0, 2, 2, 4), I32(0, 2, 1, 3), a.shape[0] = 4);
    CSR("a negative size", I32(0, 2, 2, 4), I32(0, 2, 1, 3), a.shape[1] = -1);
    double one = 1, zero = 0;
    CSR("another fill", I32(0, 2, 2, 4), I32(0, 2, 1, 3), a.args[0].fill = &one);
    CSR("its fill", I32(0, 2, 2, 4), I32(0, 2, 1, 3), a.args[0].fill = &zero);
    CSR("the result among the values", I32(0, 2, 2, 4), I32(0, 2, 1, 3), a.args[1].data = a.args[0].data);
    CASE("empty", csr, TAFFETA_LEVEL_COMPRESSED, 0, 0, 0, a.arrays[0] = I32(0), a.arrays[1].dtype = TAFFETA_I32);

    BAND("band", I32(0, 2, 2, 4), I32(2, 9, 0), a.shape[1] = 9);
    BAND("a band too far", I32(0, 2, 2, 4), I32(3, 0, 0));
    BAND("a band before", I32(0, 2, 2, 4), I32(-1, 0, 0));
    BAND("band falls", I32(0, 6, 2, 4), I32(0, 0, 0));
    BAND("band ends late", I32(0, 2, 2, 7), I32(0, 0, 0));
    BAND("band ends below", I32(0, 2, 2, -7), I32(0, 0, 0));
    BAND("starts too few", I32(0, 2, 2, 4), I32(0, 0));

    RAGGED("ragged", I32(0, 2, 2, 4));
    RAGGED("a row too long", I32(0, 0, 0, 4), a.shape[1] = 3);
    RAGGED("rows fall", I32(0, 3, 2, 4));
    RAGGED("no rows", ((taffeta_array){NULL, TAFFETA_I32, 0, 0}));

    MAP("map", 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0);
    MAP("one that is not marked", 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0);
    MAP("one that is not stored", 0, 1, 0, 1, 0, 7, 0, 0, 1, 0, 0, 0);
    MAP("map is short", 0, 1, 0, 1, 0, 0, 0, 0);

    HASHED("hashed", I32(0, 4, 5, 7), 2, 1, 0, 0, 0, 3, 0);
    HASHED("one that is not found", I32(0, 4, 5, 7), 0, 1, 0, 0, 0, 3, 0);
    HASHED("a slot of another table", I32(0, 4, 5, 7), 3, 1, 0, 0, 0, 3, 0);
    HASHED("a slot far away", I32(0, 4, 5, 7), 1000000, 1, 0, 0, 0, 3, 0);
    HASHED("no free slot", I32(0, 4, 5, 7), 2, 1, 1, 1, 0, 3, 0);
    HASHED("three slots", I32(0, 3, 5, 7), 2, 1, 0, 0, 0, 3, 0);
    HASHED("tables fall", I32(0, 5, 4, 7), 2, 1, 0, 0, 0, 3, 0);

    POINT("point", 1, 4, 0);
    POINT("a point too far", 1, 5, 0);
    POINT("a point before", 1, -1, 0);

    RLE("runs", I32(0, 2, 3, 4), I32(1, 4, 4, 4));
    RLE("runs end early", I32(0, 2, 3, 4), I32(1, 4, 3, 4));
    RLE("runs end late", I32(0, 2, 3, 4), I32(1, 5, 4, 4));
    RLE("an empty run", I32(0, 2, 3, 4), I32(0, 4, 4, 4));
    RLE("a row without runs", I32(0, 3, 3, 4), I32(1, 2, 4, 4));
    RLE("runs fall", I32(0, 2, 3, 4), I32(4, 1, 4, 4));

    VBL("blocks", I32(0, 2, 2, 3), I32(1, 4, 3), I32(0, 1, 3, 5));
    VBL("blocks overlap", I32(0, 2, 2, 3), I32(2, 3, 3), I32(0, 1, 3, 5));
    VBL("a block before", I32(0, 2, 2, 3), I32(1, 4, 1), I32(0, 1, 3, 5));
    VBL("a block too far", I32(0, 2, 2, 3), I32(1, 5, 3), I32(0, 1, 3, 5));
    VBL("an empty block", I32(0, 2, 2, 3), I32(1, 4, 3), I32(0, 1, 1, 5));
    VBL("blocks of other elements", I32(0, 2, 2, 3), I32(1, 4, 3), I32(0, 1, 3, 6));

    PACKBITS("packbits", I32(0, 2, 3, 4), I32(2, 4, 4, 4), I32(0, 1, 3, 4, 5));
    PACKBITS("a stretch too long", I32(0, 2, 3, 4), I32(3, 4, 4, 4), I32(0, 1, 3, 4, 5));
    PACKBITS("a stretch that falls", I32(0, 2, 3, 4), I32(2, 4, 4, 4), I32(0, 3, 1, 4, 5));

    DIAGONALS("diagonals", I32(2, 3, 5), 9);
    DIAGONALS("diagonals fall", I32(2, 5, 3), 9);
    DIAGONALS("a diagonal twice", I32(2, 2, 3), 9);
    DIAGONALS("a diagonal beyond", I32(2, 3, 6), 9);
    DIAGONALS("a diagonal before", I32(-1, 3, 5), 9);
    DIAGONALS("diagonals of other elements", I32(2, 3, 5), 8);

    SLOTS("slots", I32(2), I32(1, 4, 0, 3, 4, 4), 6);
    SLOTS("slots fall", I32(2), I32(3, 4, 0, 1, 4, 4), 6);
    SLOTS("a column twice in a row", I32(2), I32(1, 4, 0, 1, 4, 4), 6);
    SLOTS("a column behind what is left over", I32(2), I32(1, 4, 0, 3, 0, 4), 6);
    SLOTS("a column beyond", I32(2), I32(1, 4, 0, 5, 4, 4), 6);
    SLOTS("slots too many", I32(3), I32(1, 4, 0, 3, 4, 4), 6);
    SLOTS("fewer slots than none", I32(-2), I32(1, 4, 0, 3, 4, 4), 6);
    SLOTS("no count of slots", ((taffeta_array){NULL, TAFFETA_I32, 0, 0}), I32(1, 4, 0, 3, 4, 4), 6);

    BLOCKS("blocks of two by three", I32(0, 2, 3), I32(0, 1, 1), 18);
    BLOCKS("a block beyond", I32(0, 2, 3), I32(0, 2, 1), 18);
    BLOCKS("blocks of other elements", I32(0, 2, 3), I32(0, 1, 1), 17);

    COO("coo", I32(0, 4), I32(0, 0, 2, 2), I32(1, 3, 0, 2));
    COO("rows fall", I32(0, 4), I32(0, 2, 0, 2), I32(1, 3, 0, 2));
    COO("columns fall", I32(0, 4), I32(0, 0, 2, 2), I32(3, 1, 0, 2));
    COO("an element twice", I32(0, 4), I32(0, 0, 2, 2), I32(1, 1, 0, 2));
    COO("a row too far", I32(0, 4), I32(0, 0, 2, 3), I32(1, 3, 0, 2));
    COO("a column too far", I32(0, 4), I32(0, 0, 2, 2), I32(1, 3, 0, 4));
    COO("columns too few", I32(0, 4), I32(0, 0, 2, 2), I32(1, 3, 0));

    /* Who vouches for arrays is believed. */
    matrix a;
    start(&a, TAFFETA_LEVEL_COMPRESSED, 3, 4, 4);
    a.arrays[0] = I32(0, 2, 2, 4);
    a.arrays[1] = I32(2, 0, 1, 3);
    taffeta_ctx ctx = TAFFETA_CTX_INIT;
    ctx.flags = TAFFETA_TRUST_ARRAYS;
    int status = taffeta_sum_csr(&ctx, a.args, 2, NULL);
    printf("trusted: %d %g\n", status, a.sum);
    for (int k = 0; k < 2; k++) free(a.arrays[k].data);
    free(a.args[0].data);
    taffeta_ctx_release(&ctx);

    /* A number of positions that only an array says, below it a dense level. */
    taffeta_array lists[1] = {I32(0, 2, 3)};
    taffeta_level levels[3] = {{TAFFETA_LEVEL_DENSE, 0, NULL}, {TAFFETA_LEVEL_RAGGED, 1, lists}, {TAFFETA_LEVEL_DENSE, 0, NULL}};
    int64_t shape[3] = {2, 3, 2};
    double values[6] = {1, 2, 3, 4, 5, 6}, sum = 0;
    taffeta_tensor args[2] = {
        {.dtype = TAFFETA_F64, .ndim = 3, .shape = shape, .levels = levels, .n_levels = 3, .data = values, .n_stored = 6},
        {.dtype = TAFFETA_F64, .data = &sum},
    };
    status = taffeta_sum_deep(&ctx, args, 2, NULL);
    printf("deep: %d %g\n", status, sum);
    args[0].n_stored = 5;
    status = taffeta_sum_deep(&ctx, args, 2, NULL);
    printf("deep and short: %d %s\n", status, ctx.message);
    free(lists[0].data);

    /* Elements where another tensor is stored: as many as that one has, and no levels. */
    taffeta_array own[2] = {I32(0, 2, 2, 4), I32(0, 2, 1, 3)};
    taffeta_level rows[2] = {{TAFFETA_LEVEL_DENSE, 0, NULL}, {TAFFETA_LEVEL_COMPRESSED, 2, own}};
    int64_t sizes[2] = {3, 4}, stored = 4, other[2] = {3, 4};
    double *others = block((const double[]){1, 10, 100, 1000}, 4 * sizeof(double));
    taffeta_tensor both[3] = {
        {.dtype = TAFFETA_F64, .ndim = 2, .shape = sizes, .levels = rows, .n_levels = 2, .data = values, .n_stored = 4},
        {.dtype = TAFFETA_F64, .ndim = 1, .shape = &stored, .data = others},
        {.dtype = TAFFETA_F64, .data = &sum},
    };
    status = taffeta_sum_both(&ctx, both, 3, NULL);
    printf("both: %d %g\n", status, sum);
    stored = 3;
    status = taffeta_sum_both(&ctx, both, 3, NULL);
    printf("the other one has too few elements: %d %s\n", status, ctx.message);
    both[1] = (taffeta_tensor){.dtype = TAFFETA_F64, .ndim = 2, .shape = other, .data = others};
    status = taffeta_sum_both(&ctx, both, 3, NULL);
    printf("the other one is a matrix: %d %s\n", status, ctx.message);
    both[1] = (taffeta_tensor){.dtype = TAFFETA_F32, .ndim = 1, .shape = &stored, .data = others};
    status = taffeta_sum_both(&ctx, both, 3, NULL);
    printf("the other one is of another type: %d %s\n", status, ctx.message);
    stored = 4;
    both[1] = (taffeta_tensor){.dtype = TAFFETA_F64, .ndim = 1, .shape = &stored};
    status = taffeta_sum_both(&ctx, both, 3, NULL);
    printf("the other one is NULL: %d %s\n", status, ctx.message);
    free(others);
    for (int k = 0; k < 2; k++) free(own[k].data);
    taffeta_ctx_release(&ctx);
    return 0;
}
