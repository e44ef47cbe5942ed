/* Calls spmv of products.ft on arrays of its own: a matrix in CSR, as any other library keeps it. Nothing is copied.
 *
 *   taffeta build examples/sparse/products.ft spmv -o out
 *   cc examples/sparse/main.c -I out out/libtaffeta_spmv.a -fopenmp -lm -o main && ./main
 */
#include "taffeta_spmv.h"

#include <stdio.h>

int main(void) {
    /*  1 0 2 0
     *  0 0 0 0
     *  0 3 0 4 */
    int64_t shape[2] = {3, 4};
    int32_t indptr[4] = {0, 2, 2, 4};
    int32_t indices[4] = {0, 2, 1, 3};
    double values[4] = {1, 2, 3, 4};
    double x[4] = {10, 20, 30, 40}, y[3];
    int64_t rows = 3, columns = 4;

    /* taffeta_spmv.h lists levels and arrays. Those of CSR are made from its pointers by taffeta_csr. */
    taffeta_csr_levels levels;
    taffeta_tensor args[3] = {
        taffeta_csr(&levels, shape, indptr, indices, TAFFETA_I32, values, TAFFETA_F64, 4),
        {.dtype = TAFFETA_F64, .ndim = 1, .shape = &columns, .data = x},
        {.dtype = TAFFETA_F64, .ndim = 1, .shape = &rows, .data = y},
    };
    taffeta_ctx ctx = TAFFETA_CTX_INIT;
    if (taffeta_spmv(&ctx, args, 3, NULL) != TAFFETA_OK) {
        fprintf(stderr, "spmv: %s\n", ctx.message);
        return 1;
    }
    printf("%g %g %g\n", y[0], y[1], y[2]);

    /* Who calls often, and knows that the arrays are right, saves the look at them. */
    ctx.flags = TAFFETA_TRUST_ARRAYS;
    values[0] = 5;
    if (taffeta_spmv(&ctx, args, 3, NULL) == TAFFETA_OK) printf("%g %g %g\n", y[0], y[1], y[2]);
    ctx.flags = 0;

    /* A mistake is an error code with a message, before anything is computed. */
    indices[3] = 4;
    int status = taffeta_spmv(&ctx, args, 3, NULL);
    printf("error %d: %s\n", status, ctx.message);
    taffeta_ctx_release(&ctx);
    return 0;
}
