/* Runs the probe's program on its operands, and writes the results to standard output. */
#include <stdio.h>

int main(void) {
    taffeta_ctx ctx = TAFFETA_CTX_INIT;
    static int64_t shapes[N_ARGS][2];
    static taffeta_tensor args[N_ARGS];
    /* The sizes n and m. */
    const int64_t extents[] = {LENGTH, LENGTH / ROW};
    for (int k = 0; k < N_ARGS; k++) {
        shapes[k][0] = dimensions[k] == 1 ? LENGTH : LENGTH / ROW;
        shapes[k][1] = ROW;
        args[k].dtype = dtypes[k];
        args[k].ndim = dimensions[k];
        args[k].shape = shapes[k];
        if (k < N_INPUTS) args[k].data = (void *)inputs[k];
    }
    int status = taffeta_probe(&ctx, args, N_ARGS, extents);
    if (status != TAFFETA_OK) {
        fprintf(stderr, "%s\n", ctx.message);
        return status;
    }
    for (int k = N_INPUTS; k < N_ARGS; k++) {
        if (fwrite(args[k].data, sizes[k], LENGTH, stdout) != LENGTH) return 100;
        taffeta_free(&args[k]);
    }
    taffeta_ctx_release(&ctx);
    return fflush(stdout) == 0 ? 0 : 100;
}
