/* What a call costs from C: `call copy COUNT` and `call scratch COUNT` print the nanoseconds that so many calls
   take. */
#define _POSIX_C_SOURCE 200112L
#include "taffeta_copy.h"
#include "taffeta_scratch.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    double x[1] = {2}, y[1] = {0}, a = 3, total = 0;
    int64_t of_x[2] = {1, 1}, of_y[1] = {1};
    taffeta_ctx ctx = TAFFETA_CTX_INIT;
    taffeta_tensor copy[2] = {{.dtype = TAFFETA_F64, .ndim = 1, .shape = of_x, .data = x},
                              {.dtype = TAFFETA_F64, .ndim = 1, .shape = of_y, .data = y}};
    taffeta_tensor scratch[4] = {{.dtype = TAFFETA_F64, .ndim = 2, .shape = of_x, .data = x},
                                 {.dtype = TAFFETA_F64, .ndim = 0, .data = &a},
                                 {.dtype = TAFFETA_F64, .ndim = 1, .shape = of_y, .data = y},
                                 {.dtype = TAFFETA_F64, .ndim = 0, .data = &total}};
    const int is_copy = strcmp(argv[1], "copy") == 0;
    const long count = atol(argv[2]);
    int status = 0;
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long k = 0; k < count; k++)
        status |= is_copy ? taffeta_copy(&ctx, copy, 2, NULL) : taffeta_scratch(&ctx, scratch, 4, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    taffeta_ctx_release(&ctx);
    if (status != TAFFETA_OK || y[0] != (is_copy ? 2 : -6)) return 1;
    printf("%" PRId64 "\n", (int64_t)(end.tv_sec - start.tv_sec) * 1000000000 + (end.tv_nsec - start.tv_nsec));
    return 0;
}
