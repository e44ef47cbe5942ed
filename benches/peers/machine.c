/* What the machine can do at most, on all threads: multiply-adds per second, and bytes copied per second. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#ifdef __aarch64__
#define IN_REGISTER(a) "+w"(a)
#else
#define IN_REGISTER(a) "+v"(a)
#endif

/* Bytes of a vector register: longer vectors do not fit in the operands below. */
#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif

/* A value that the compiler must have in a register there, and may not know. */
#define KEPT(a, b, c, d) IN_REGISTER(a), IN_REGISTER(b), IN_REGISTER(c), IN_REGISTER(d)

#define PEAK(T, NAME)                                                                                                  \
    double NAME(void) {                                                                                                \
        enum { LANES = BYTES / sizeof(T), CHAINS = 12, TURNS = 4000000 };                                              \
        typedef T vector __attribute__((vector_size(BYTES)));                                                          \
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
                    a8 = a8 * scale + shift; a9 = a9 * scale + shift; a10 = a10 * scale + shift;                       \
                    a11 = a11 * scale + shift;                                                                         \
                    __asm__ volatile("" : KEPT(a0, a1, a2, a3), KEPT(a4, a5, a6, a7), KEPT(a8, a9, a10, a11));         \
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
