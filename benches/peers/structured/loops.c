/* Peers by hand for sparse.py: what an expert writes in C with OpenMP for a matrix in CSR and a tensor in CSF. */
#include <stdint.h>
#include <string.h>

void spmv(int64_t n, const int32_t *restrict pos, const int32_t *restrict crd, const double *restrict val,
          const double *restrict x, double *restrict y) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        double s = 0;
        for (int32_t p = pos[i]; p < pos[i + 1]; p++) s += val[p] * x[crd[p]];
        y[i] = s;
    }
}

void spmm(int64_t n, int64_t k, const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict val,
          const float *restrict b, float *restrict c) {
#pragma omp parallel for schedule(dynamic, 256)
    for (int64_t i = 0; i < n; i++) {
        float *restrict row = c + i * k;
        for (int64_t l = 0; l < k; l++) row[l] = 0;
        for (int32_t p = pos[i]; p < pos[i + 1]; p++) {
            const float v = val[p], *from = b + crd[p] * k;
            for (int64_t l = 0; l < k; l++) row[l] += v * from[l];
        }
    }
}

void sddmm(int64_t n, int64_t k, const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict val,
           const float *restrict a, const float *restrict b, float *restrict to) {
#pragma omp parallel for schedule(dynamic, 256)
    for (int64_t i = 0; i < n; i++)
        for (int32_t p = pos[i]; p < pos[i + 1]; p++) {
            const float *u = a + i * k, *v = b + crd[p] * k;
            float dot = 0;
            for (int64_t l = 0; l < k; l++) dot += u[l] * v[l];
            to[p] = val[p] * dot;
        }
}

void sddmm_sums(int64_t n, int64_t k, const int32_t *restrict pos, const int32_t *restrict crd,
                const float *restrict val, const float *restrict a, const float *restrict b, float *restrict y) {
#pragma omp parallel for schedule(dynamic, 256)
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int32_t p = pos[i]; p < pos[i + 1]; p++) {
            const float *u = a + i * k, *v = b + crd[p] * k;
            float dot = 0;
            for (int64_t l = 0; l < k; l++) dot += u[l] * v[l];
            sum += val[p] * dot;
        }
        y[i] = sum;
    }
}

void mttkrp(int64_t n, int64_t r, int64_t n0, const int32_t *restrict crd0, const int32_t *restrict pos1,
            const int32_t *restrict crd1, const int32_t *restrict pos2, const int32_t *restrict crd2,
            const double *restrict val, const double *restrict b, const double *restrict c, double *restrict d) {
    for (int64_t i = 0; i < n * r; i++) d[i] = 0;
#pragma omp parallel for schedule(dynamic, 8)
    for (int64_t p = 0; p < n0; p++) {
        double *restrict row = d + crd0[p] * r;
        for (int32_t q = pos1[p]; q < pos1[p + 1]; q++) {
            /* What the second matrix is multiplied with is summed up first. */
            double sum[128];
            for (int64_t l = 0; l < r; l++) sum[l] = 0;
            for (int32_t s = pos2[q]; s < pos2[q + 1]; s++) {
                const double v = val[s], *from = c + crd2[s] * r;
                for (int64_t l = 0; l < r; l++) sum[l] += v * from[l];
            }
            const double *with = b + crd1[q] * r;
            for (int64_t l = 0; l < r; l++) row[l] += with[l] * sum[l];
        }
    }
}

double triangles(int64_t n, const int32_t *restrict pos, const int32_t *restrict crd, const double *restrict val) {
    double found = 0;
    for (int64_t i = 0; i < n; i++)
        for (int32_t e = pos[i]; e < pos[i + 1]; e++) {
            const int32_t j = crd[e], p_end = pos[i + 1], q_end = pos[j + 1];
            int32_t p = pos[i], q = pos[j];
            while (p < p_end && q < q_end) {
                const int32_t a = crd[p], b = crd[q];
                if (a == b) found += val[e] * val[p] * val[q];
                p += a <= b;
                q += b <= a;
            }
        }
    return found;
}

/* A matrix by columns times a sparse vector: its columns are scattered. */
void spmspv(int64_t n, const int32_t *restrict pos, const int32_t *restrict crd, const double *restrict val,
            int64_t n_x, const int32_t *restrict crd_x, const double *restrict val_x, double *restrict y) {
    memset(y, 0, n * sizeof *y);
    for (int64_t p = 0; p < n_x; p++) {
        const int32_t j = crd_x[p];
        for (int32_t q = pos[j]; q < pos[j + 1]; q++) y[crd[q]] += val[q] * val_x[p];
    }
}

/* What so many threads copy. */
void copy(int64_t threads, int64_t bytes, const char *from, char *to) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t k = 0; k < threads; k++) {
        const int64_t start = bytes * k / threads, end = bytes * (k + 1) / threads;
        memcpy(to + start, from + start, end - start);
    }
}
