/* Calls heat.ft from C. See heat.ft for how it is compiled and linked; nothing of Taffeta is needed but what
 * `taffeta build` made. */
#include "taffeta_heat.h"

#include <stdio.h>

int main(void) {
    double rod[8] = {0, 0, 0, 0, 100, 0, 0, 0};
    int64_t rod_shape[1] = {8};
    int32_t steps = 50;
    double k = 0.25;
    double average = 0;

    /* Parameters in order, then results in order. Scalars have no shape. */
    taffeta_tensor args[4] = {
        {.dtype = TAFFETA_F64, .ndim = 1, .shape = rod_shape, .data = rod},
        {.dtype = TAFFETA_I32, .data = &steps},
        {.dtype = TAFFETA_F64, .data = &k},
        {.dtype = TAFFETA_F64, .data = &average},
    };
    taffeta_ctx ctx = TAFFETA_CTX_INIT;
    int status = taffeta_heat(&ctx, args, 4, NULL); /* the size n is the length of the rod */
    if (status != TAFFETA_OK) {
        fprintf(stderr, "heat: %s\n", ctx.message);
        return 1;
    }
    for (int i = 0; i < 8; i++) printf("%.3f ", rod[i]);
    printf("mean %.3f\n", average);

    /* A mistake is an error code with a message, never an exit. */
    args[1].dtype = TAFFETA_I64;
    status = taffeta_heat(&ctx, args, 4, NULL);
    printf("error %d: %s\n", status, ctx.message);
    taffeta_ctx_release(&ctx);
    return 0;
}
