/* What the machine can do at most, on all threads: multiply-adds per second, and bytes copied per second. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define PEAK(T, NAME)                                                                                                  \
    double NAME(void) {                                                                                                \
        enum { LANES = 64 / sizeof(T), CHAINS = 12, TURNS = 4000000 };                                                 \
        typedef T vector __attribute__((vector_size(64)));                                                             \
        double best = 0;                                                                                               \
        for (int t = 0; t < 5; t++) {                                                                                  \
            double start = omp_get_wtime();                                                                            \
            int threads = 0;                                                                                           \
            _Pragma("omp parallel") {                                                                                  \
                vector acc[CHAINS], scale, shift;                                                                      \
                for (int l = 0; l < LANES; l++) scale[l] = (T)0.999999, shift[l] = (T)1e-6;                            \
                for (int k = 0; k < CHAINS; k++) acc[k] = shift;                                                       \
                for (int i = 0; i < TURNS; i++)                                                                        \
                    for (int k = 0; k < CHAINS; k++) acc[k] = acc[k] * scale + shift;                                  \
                volatile T sink = 0;                                                                                   \
                for (int k = 0; k < CHAINS; k++) sink += acc[k][0];                                                    \
                _Pragma("omp master") threads = omp_get_num_threads();                                                 \
            }                                                                                                          \
            double rate = 2.0 * LANES * CHAINS * TURNS * threads / (omp_get_wtime() - start);                          \
            if (rate > best) best = rate;                                                                              \
        }                                                                                                              \
        return best;                                                                                                   \
    }
PEAK(float, peak_f32)
PEAK(double, peak_f64)

/* Copying between two arrays of that many bytes together: bytes read and written per second. */
double copy_rate(size_t bytes) {
    size_t half = bytes / 2 + 64;
    char *from = malloc(half), *to = malloc(half);
    memset(from, 1, half);
    memset(to, 1, half);
    int calls = (int)(4e8 / (double)half) + 1;
    double best = 0;
    for (int t = 0; t < 7; t++) {
        double start = omp_get_wtime();
        for (int i = 0; i < calls; i++) {
#pragma omp parallel
            {
                size_t n = (size_t)omp_get_num_threads(), k = (size_t)omp_get_thread_num();
                memcpy(to + half * k / n, from + half * k / n, half * (k + 1) / n - half * k / n);
            }
        }
        double rate = 2.0 * (double)half * calls / (omp_get_wtime() - start);
        if (rate > best) best = rate;
    }
    free(from);
    free(to);
    return best;
}
