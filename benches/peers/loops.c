/* Peers by hand: the loops that an expert would write in C with OpenMP. Sizes are arguments. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void circular_difference(int64_t n, int64_t f, const float *restrict e, const int32_t *restrict adj, float *restrict y) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        const float *a = e + adj[3 * i] * f, *b = e + adj[3 * i + 1] * f, *c = e + adj[3 * i + 2] * f;
#pragma omp simd
        for (int64_t k = 0; k < f; k++) y[i * f + k] = fabsf(a[k] - b[k]) + fabsf(b[k] - c[k]) + fabsf(c[k] - a[k]);
    }
}

void longformer(int64_t heads, int64_t n, int64_t d, int64_t w, const float *restrict q, const float *restrict k,
                const float *restrict v, float *restrict y) {
    const float scale = 1.0f / sqrtf((float)d);
#pragma omp parallel
    {
        float *score = malloc(sizeof *score * (size_t)(2 * w + 1));
#pragma omp for schedule(static)
        for (int64_t t = 0; t < heads * n; t++) {
            const int64_t head = t / n, i = t % n;
            const int64_t first = i < w ? 0 : i - w, last = i + w >= n ? n - 1 : i + w;
            const float *qi = q + t * d;
            float peak = -INFINITY, total = 0;
            for (int64_t p = first; p <= last; p++) {
                const float *kp = k + (head * n + p) * d;
                float sum = 0;
                for (int64_t e = 0; e < d; e++) sum += qi[e] * kp[e];
                score[p - first] = sum * scale;
                peak = score[p - first] > peak ? score[p - first] : peak;
            }
            for (int64_t p = 0; p <= last - first; p++) {
                score[p] = expf(score[p] - peak);
                total += score[p];
            }
            float *yt = y + t * d;
            for (int64_t e = 0; e < d; e++) yt[e] = 0;
            for (int64_t p = first; p <= last; p++) {
                const float *vp = v + (head * n + p) * d, weight = score[p - first] / total;
                for (int64_t e = 0; e < d; e++) yt[e] += weight * vp[e];
            }
        }
        free(score);
    }
}

static void relax_2d(int64_t n, const double *restrict from, double *restrict to) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 1; i < n - 1; i++)
        for (int64_t j = 1; j < n - 1; j++)
            to[i * n + j] = 0.2 * (from[i * n + j] + from[i * n + j - 1] + from[i * n + j + 1] + from[(i + 1) * n + j] +
                                   from[(i - 1) * n + j]);
}

void jacobi_2d(int64_t steps, int64_t n, double *a, double *b) {
    for (int64_t t = 0; t < steps; t++) {
        relax_2d(n, a, b);
        relax_2d(n, b, a);
    }
}

static void relax_3d(int64_t n, const double *restrict from, double *restrict to) {
    const int64_t r = n, s = n * n;
#pragma omp parallel for schedule(static)
    for (int64_t i = 1; i < n - 1; i++)
        for (int64_t j = 1; j < n - 1; j++)
            for (int64_t k = 1; k < n - 1; k++) {
                const double *f = from + i * s + j * r + k;
                to[i * s + j * r + k] = 0.125 * (f[s] - 2.0 * f[0] + f[-s]) + 0.125 * (f[r] - 2.0 * f[0] + f[-r]) +
                                        0.125 * (f[1] - 2.0 * f[0] + f[-1]) + f[0];
            }
}

void heat_3d(int64_t steps, int64_t n, double *a, double *b) {
    for (int64_t t = 0; t < steps; t++) {
        relax_3d(n, a, b);
        relax_3d(n, b, a);
    }
}
