/* Prints who does a product that is large enough for a library. */
#define _POSIX_C_SOURCE 200112L
#include "taffeta_gemm.h"

enum { N = 640 };

int main(void) {
    static taffeta_ctx ctx;
    ctx.abi = TAFFETA_ABI;
    ctx.threads = 2;
    static double a[N * N], b[N * N], c[N * N];
    for (int i = 0; i < N * N; i++) a[i] = 1, b[i] = i % N;
    const taf_matrix_f64 of[3] = {{a, N, 1}, {b, N, 1}, {c, N, 1}};
    const bool done = taf_product_f64(&ctx, N, N, N, 1, of[0], of[1], of[2]);
    for (int i = 0; i < N * N; i++)
        if (c[i] != (double)N * (i % N)) return 1;
    printf("%s\n", *taffeta_products() ? taffeta_products() : "own kernel");
    return !done;
}
