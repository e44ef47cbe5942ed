/* Calls product of results.ft, whose result is sparse: the callee makes its arrays, here with an allocator of the
 * caller. Then calls it with allocators that fail, one allocation later each time, and lose nothing.
 *
 *   taffeta build examples/sparse/results.ft product -o out
 *   cc examples/sparse/product.c -I out out/libtaffeta_product.a -fopenmp -lm -o main && ./main
 */
#include "taffeta_product.h"

#include <stdio.h>
#include <stdlib.h>

/* Counts the bytes in use, and has no memory from the `fails`-th allocation on. */
typedef struct {
    size_t bytes;
    int allocations, fails;
} counter;

static void *counted(void *data, void *old, size_t old_bytes, size_t bytes, size_t align, int zeroed) {
    counter *c = data;
    (void)align; /* at most that of malloc, but for dense results */
    if (bytes == 0) {
        free(old);
        c->bytes -= old_bytes;
        return NULL;
    }
    if (c->fails > 0 && ++c->allocations >= c->fails) return NULL;
    void *memory = old == NULL && zeroed ? calloc(1, bytes) : realloc(old, bytes);
    if (memory != NULL) c->bytes += bytes - old_bytes;
    return memory;
}

int main(void) {
    /*  1 0 2     1 0 2
     *  0 0 0     0 5 0
     *  0 3 0     7 3 0 */
    int64_t shape[2] = {3, 3}, shape_of_c[2];
    int32_t a_pos[4] = {0, 2, 2, 3}, a_crd[3] = {0, 2, 1}, b_pos[4] = {0, 2, 3, 5}, b_crd[5] = {0, 2, 1, 0, 1};
    double a[3] = {1, 2, 3}, b[5] = {1, 2, 5, 7, 3};
    taffeta_csr_levels of_a, of_b;
    taffeta_tensor args[3] = {
        taffeta_csr(&of_a, shape, a_pos, a_crd, TAFFETA_I32, a, TAFFETA_F64, 3),
        taffeta_csr(&of_b, shape, b_pos, b_crd, TAFFETA_I32, b, TAFFETA_F64, 5),
        {.dtype = TAFFETA_F64, .ndim = 2, .shape = shape_of_c}, /* the callee sets the rest */
    };
    counter memory = {0, 0, 0};
    taffeta_ctx ctx = TAFFETA_CTX_INIT;
    ctx.alloc = counted;
    ctx.alloc_data = &memory;

    for (int call = 0; call < 2; call++) {
        if (taffeta_product(&ctx, args, 3, NULL) != TAFFETA_OK) {
            fprintf(stderr, "product: %s\n", ctx.message);
            return 1;
        }
        /* The arrays of a compressed level: where each row begins, and the columns. */
        const taffeta_level *rows = &args[2].levels[1];
        const int32_t *pos = rows->arrays[0].data, *crd = rows->arrays[1].data;
        const double *c = args[2].data;
        for (int i = 0; i < 3; i++)
            for (int k = pos[i]; k < pos[i + 1]; k++) printf("(%d, %d) %g  ", i, crd[k], c[k]);
        printf("%zu elements\n", args[2].n_stored);
        taffeta_free(&args[2]);
        b[0] = 10;
    }
    printf("%zu bytes left\n", memory.bytes);

    int status = TAFFETA_ERROR_MEMORY;
    for (memory.fails = 1; status == TAFFETA_ERROR_MEMORY; memory.fails++) {
        memory.allocations = 0;
        status = taffeta_product(&ctx, args, 3, NULL);
        if (status != TAFFETA_OK && memory.bytes != 0) printf("%zu bytes lost\n", memory.bytes);
    }
    taffeta_free(&args[2]);
    printf("status %d in the end, %zu bytes left\n", status, memory.bytes);
    taffeta_ctx_release(&ctx);
    return 0;
}
