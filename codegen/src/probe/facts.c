/* Prints facts about the compiler and the machine for `taffeta doctor`, one per line. */
#define _POSIX_C_SOURCE 200112L
#include "taffeta_gemm.h"

int main(void) {
    taffeta_ctx ctx = TAFFETA_CTX_INIT;
#ifdef _OPENMP
    printf("openmp %d\n", _OPENMP);
#else
    printf("openmp 0\n");
#endif
    printf("threads %d\n", taf_threads(&ctx));
    printf("libmvec %d\n", TAFFETA_LIBMVEC);
    printf("blas %s\n", taffeta_products());
#if defined(__clang__)
    printf("kind clang\n");
#elif defined(__GNUC__)
    printf("kind gcc\n");
#endif
#ifdef __VERSION__
    printf("version %s\n", __VERSION__);
#endif
    return 0;
}
