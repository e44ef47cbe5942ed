/*
 * Products of `taffeta_gemm.h` against three loops: random sizes, transposes, gaps, strides, directions and factors.
 * Elements are small integers, so that sums are exact in any order. Buffers end with their last elements, so that a
 * sanitizer sees the next one.
 */
#define _POSIX_C_SOURCE 200112L
#include "taffeta_gemm.h"

static uint64_t state = UINT64_C(88172645463325252);

static int64_t below(int64_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int64_t)((state >> 11) % (uint64_t)n);
}

/* Strides of a matrix of `rows` and `columns`: by rows, by columns, or neither; the number of elements from the first
   to the last. */
static int64_t strides(int64_t rows, int64_t columns, bool overlap, int64_t *by) {
    const int64_t gap = below(4), kind = below(5);
    if (kind < 2) {
        by[0] = columns + gap, by[1] = 1;
    } else if (kind < 4) {
        by[0] = 1, by[1] = rows + gap;
    } else {
        by[1] = 2 + below(2), by[0] = by[1] * columns + gap;
    }
    /* Windows of a signal. */
    if (overlap && below(10) == 0) by[0] = by[1] = 1;
    return (rows - 1) * by[0] + (columns - 1) * by[1] + 1;
}

#define TEST(S, T)                                                                                                       \
    static int wrong_##S(taffeta_ctx *ctx, int count) {                                                                     \
        int wrong = 0;                                                                                                   \
        for (int number = 0; number < count; number++) {                                                                 \
            const int64_t most = number % 40 == 0 ? 300 : 40;                                                            \
            const int64_t m = below(6) == 0 ? 1 : 1 + below(most), n = below(4) == 0 ? 1 : 1 + below(most);              \
            const int64_t k = below(10) == 0 ? 1 : 1 + below(2 * most);                                                  \
            const int64_t shapes[3][2] = {{m, k}, {k, n}, {m, n}};                                                       \
            taf_matrix_##S of[3];                                                                                         \
            T *data[3];                                                                                                  \
            int64_t size[3];                                                                                             \
            for (int x = 0; x < 3; x++) {                                                                                \
                int64_t by[2];                                                                                           \
                size[x] = strides(shapes[x][0], shapes[x][1], x == 0, by);                                               \
                data[x] = (T *)malloc((size_t)size[x] * sizeof(T));                                                      \
                for (int64_t i = 0; i < size[x]; i++) data[x][i] = (T)(below(9) - 4);                                    \
                of[x].at = data[x];                                                                                      \
                for (int d = 0; d < 2; d++) {                                                                            \
                    if (below(8) == 0) {                                                                                 \
                        of[x].at += (shapes[x][d] - 1) * by[d];                                                          \
                        by[d] = -by[d];                                                                                  \
                    }                                                                                                    \
                }                                                                                                        \
                of[x].rows = by[0], of[x].columns = by[1];                                                               \
            }                                                                                                            \
            const T alpha = (T)(below(5) - 2);                                                                           \
            T *expected = (T *)malloc((size_t)size[2] * sizeof(T));                                                      \
            memcpy(expected, data[2], (size_t)size[2] * sizeof(T));                                                      \
            T *c = expected + (of[2].at - data[2]);                                                                      \
            for (int64_t i = 0; i < m; i++)                                                                              \
                for (int64_t j = 0; j < n; j++)                                                                          \
                    for (int64_t p = 0; p < k; p++)                                                                      \
                        c[i * of[2].rows + j * of[2].columns] += alpha * of[0].at[i * of[0].rows + p * of[0].columns] *  \
                                                                 of[1].at[p * of[1].rows + j * of[1].columns];           \
            /* Only a factor of 0 is left to the loops. */                                                               \
            const bool done = taf_product_##S(ctx, m, n, k, alpha, of[0], of[1], of[2]);                                  \
            const bool same = memcmp(expected, data[2], (size_t)size[2] * sizeof(T)) == 0;                               \
            if (done != (alpha != 0) || (done && !same)) {                                                               \
                printf(#S ", number %d: %d x %d x %d is wrong\n", number, (int)m, (int)n, (int)k);                       \
                wrong++;                                                                                                 \
            }                                                                                                            \
            for (int x = 0; x < 3; x++) free(data[x]);                                                                   \
            free(expected);                                                                                              \
        }                                                                                                                \
        return wrong;                                                                                                    \
    }

TEST(f32, float)
TEST(f64, double)

int main(int argc, char **argv) {
    static taffeta_ctx ctx;
    ctx.abi = TAFFETA_ABI;
    ctx.threads = argc > 1 ? atoi(argv[1]) : 1;
    const int count = argc > 2 ? atoi(argv[2]) : 1000;
    const int wrong = wrong_f32(&ctx, count) + wrong_f64(&ctx, count);
    printf("%s: %d wrong\n", *taffeta_products() ? taffeta_products() : "own kernel", wrong);
    return wrong != 0;
}
