/* Conversions by hand, as the paper on generated conversions prints them: two passes over the rows. */
#include <stdint.h>
#include <stdlib.h>

/* (Seen from outside, so that nothing is optimised away.) */
void *volatile made[2];

void csr_to_ell(int64_t n, int32_t m, const int32_t *pos, const int32_t *crd, const double *val) {
    int32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t count = pos[i + 1] - pos[i];
        most = count > most ? count : most;
    }
    int32_t *crd_made = malloc(sizeof(int32_t) * (size_t)(most * n) + 1);
    double *val_made = calloc((size_t)(most * n) + 1, sizeof(double));
    for (int64_t q = 0; q < most * n; q++) {
        crd_made[q] = m;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t slot = i;
        for (int32_t p = pos[i]; p < pos[i + 1]; p++) {
            crd_made[slot] = crd[p];
            val_made[slot] = val[p];
            slot += n;
        }
    }
    made[0] = crd_made, made[1] = val_made;
    free(crd_made);
    free(val_made);
}
