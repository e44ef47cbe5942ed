/* What the machine can do at most, on all threads: multiply-adds per second, and bytes copied per second. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#ifdef __aarch64__
#define IN_REGISTER(a) "+w"(a)
#else
#define IN_REGISTER(a) "+v"(a)
#endif

#define PEAK(T, NAME)                                                                                                  \
    double NAME(void) {                                                                                                \
        enum { LANES = 64 / sizeof(T), CHAINS = 12, TURNS = 4000000 };                                                 \
        typedef T vector __attribute__((vector_size(64)));                                                             \
        double best = 0;                                                                                               \
        for (int t = 0; t < 5; t++) {                                                                                  \
            double start = omp_get_wtime();                                                                            \
            int threads = 0;                                                                                           \
            _Pragma("omp parallel") {                                                                                  \
                vector first[CHAINS], scale, shift;                                                                    \
                for (int l = 0; l < LANES; l++) scale[l] = (T)0.999999, shift[l] = (T)1e-6;                            \
                /* All differ: gcc computes equal chains once, and vectors of equal lanes as numbers. */               \
                for (int k = 0; k < CHAINS; k++)                                                                       \
                    for (int l = 0; l < LANES; l++) first[k][l] = (T)(k * LANES + l);                                  \
                vector a0 = first[0], a1 = first[1], a2 = first[2], a3 = first[3], a4 = first[4], a5 = first[5],       \
                       a6 = first[6], a7 = first[7], a8 = first[8], a9 = first[9], a10 = first[10], a11 = first[11];   \
                for (int i = 0; i < TURNS; i++) {                                                                      \
                    a0 = a0 * scale + shift; a1 = a1 * scale + shift; a2 = a2 * scale + shift; a3 = a3 * scale + shift;\
                    a4 = a4 * scale + shift; a5 = a5 * scale + shift; a6 = a6 * scale + shift; a7 = a7 * scale + shift;\
                    a8 = a8 * scale + shift; a9 = a9 * scale + shift; a10 = a10 * scale + shift; a11 = a11 * scale + shift;\
                    __asm__ volatile("" : IN_REGISTER(a0), IN_REGISTER(a1), IN_REGISTER(a2), IN_REGISTER(a3), IN_REGISTER(a4), IN_REGISTER(a5),                  \
                                          IN_REGISTER(a6), IN_REGISTER(a7), IN_REGISTER(a8), IN_REGISTER(a9), IN_REGISTER(a10), IN_REGISTER(a11));               \
                }                                                                                                      \
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
