/* A BLAS that says that it knows the processor in FAKE_CORE, as OpenBLAS does: loops. */
#include <stdint.h>
#include <stdlib.h>

const char *openblas_get_corename(void) { return getenv("FAKE_CORE"); }
void openblas_set_num_threads(int threads) { (void)threads; }

#define BLAS(NAME, T)                                                                                                  \
    void cblas_##NAME##gemm(int order, int turn_a, int turn_b, int m, int n, int k, T alpha, const T *a, int lead_a,   \
                            const T *b, int lead_b, T beta, T *c, int lead_c) {                                        \
        (void)order, (void)beta;                                                                                       \
        for (int64_t i = 0; i < m; i++)                                                                                \
            for (int64_t p = 0; p < k; p++)                                                                            \
                for (int64_t j = 0; j < n; j++)                                                                        \
                    c[i * lead_c + j] += alpha * (turn_a == 112 ? a[p * lead_a + i] : a[i * lead_a + p]) *             \
                                         (turn_b == 112 ? b[j * lead_b + p] : b[p * lead_b + j]);                      \
    }                                                                                                                  \
    void cblas_##NAME##gemv(int order, int turn, int m, int n, T alpha, const T *a, int lead, const T *x, int by_x,    \
                            T beta, T *y, int by_y) {                                                                  \
        (void)order, (void)beta;                                                                                       \
        for (int64_t i = 0; i < m; i++)                                                                                \
            for (int64_t j = 0; j < n; j++)                                                                            \
                y[(turn == 112 ? j : i) * by_y] += alpha * a[i * lead + j] * x[(turn == 112 ? i : j) * by_x];          \
    }

BLAS(s, float)
BLAS(d, double)
