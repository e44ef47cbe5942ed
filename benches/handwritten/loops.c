/* The loops of loops.ft as a C programmer would write them: sizes as arguments, restrict, nothing clever. */
#include "loops.h"

#include <math.h>
#include <string.h>

void hand_matmul(int64_t n, int64_t k, int64_t m, const float *restrict a, const float *restrict b, float *restrict c) {
    memset(c, 0, (size_t)(n * m) * sizeof *c);
    for (int64_t i = 0; i < n; i++)
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < m; j++) c[i * m + j] += a[i * k + p] * b[p * m + j];
}

static void relax(int64_t n, const double *restrict from, double *restrict to) {
    for (int64_t i = 1; i < n - 1; i++)
        for (int64_t j = 1; j < n - 1; j++)
            to[i * n + j] = 0.2 * (from[i * n + j] + from[i * n + j - 1] + from[i * n + j + 1] + from[(i + 1) * n + j] +
                                   from[(i - 1) * n + j]);
}

void hand_jacobi_2d(int32_t tsteps, int64_t n, double *restrict A, double *restrict B) {
    for (int32_t t = 0; t < tsteps; t++) {
        relax(n, A, B);
        relax(n, B, A);
    }
}

void hand_softmax_rows(int64_t n, int64_t m, const float *restrict x, float *restrict y) {
    for (int64_t i = 0; i < n; i++) {
        float peak = -INFINITY;
        for (int64_t j = 0; j < m; j++) {
            /* As Taffeta's max does: a NaN stays. */
            float v = x[i * m + j];
            peak = v > peak || v != v ? v : peak;
        }
        float total = 0.0f;
        for (int64_t j = 0; j < m; j++) {
            y[i * m + j] = expf(x[i * m + j] - peak);
            total += y[i * m + j];
        }
        for (int64_t j = 0; j < m; j++) y[i * m + j] /= total;
    }
}

void hand_circular_diff(int64_t n, int64_t f, const float *restrict e, const int32_t *restrict adj, float *restrict y) {
    memset(y, 0, (size_t)(n * f) * sizeof *y);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < 3; j++) {
            const float *restrict p = e + (int64_t)adj[3 * i + j] * f;
            const float *restrict q = e + (int64_t)adj[3 * i + (j + 1) % 3] * f;
            for (int64_t k = 0; k < f; k++) y[i * f + k] += fabsf(p[k] - q[k]);
        }
}
