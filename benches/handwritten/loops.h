/* The loops of loops.ft, by hand. */
#ifndef LOOPS_H
#define LOOPS_H

#include <stdint.h>

void hand_matmul(int64_t n, int64_t k, int64_t m, const float *restrict a, const float *restrict b, float *restrict c);
void hand_jacobi_2d(int32_t tsteps, int64_t n, double *restrict A, double *restrict B);
void hand_softmax_rows(int64_t n, int64_t m, const float *restrict x, float *restrict y);
void hand_circular_diff(int64_t n, int64_t f, const float *restrict e, const int32_t *restrict adj, float *restrict y);

#endif
