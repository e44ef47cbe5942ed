/*
 * Races generated C against loops.c, and measures what the machine can do at most.
 *
 *     race PAIRS        prints one JSON object per line: seconds of each pair, and how far the results differ
 *
 * The two run in turn, and who goes first changes from pair to pair, so that both see the same drift of the clock. The
 * entries are called through the public interface, results given by the caller, as an application would in a loop.
 */
#define _POSIX_C_SOURCE 200809L

#include "loops.h"
#include "taffeta.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int taffeta_matmul(taffeta_ctx *ctx, taffeta_tensor *args, size_t n_args, const int64_t *sizes);
int taffeta_jacobi_2d(taffeta_ctx *ctx, taffeta_tensor *args, size_t n_args, const int64_t *sizes);
int taffeta_softmax_rows(taffeta_ctx *ctx, taffeta_tensor *args, size_t n_args, const int64_t *sizes);
int taffeta_circular_diff(taffeta_ctx *ctx, taffeta_tensor *args, size_t n_args, const int64_t *sizes);

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *take(size_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes) != 0) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    memset(p, 0, bytes);
    return p;
}

/* xorshift64: the same numbers in every run. */
static uint64_t state = 88172645463325252u;
static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
static float uniform(void) { return (float)(next() >> 40) / 16777216.0f; }

static void check(int status, const taffeta_ctx *ctx) {
    if (status != TAFFETA_OK) {
        fprintf(stderr, "taffeta: error %d: %s\n", status, ctx->message);
        exit(1);
    }
}

static taffeta_tensor tensor(int32_t dtype, int32_t ndim, int64_t *shape, void *data) {
    taffeta_tensor t = {0};
    t.dtype = dtype;
    t.ndim = ndim;
    t.shape = shape;
    t.data = data;
    return t;
}

enum { MATMUL = 512, GRID = 1000, STEPS = 5, ROWS = 4096, COLS = 1024, FACES = 10240, FEATS = 64 };

/* What all races work on; made once. */
static float *a, *b, *c, *c_hand, *x, *y, *y_hand, *e, *d, *d_hand;
static double *A, *B, *A_hand, *B_hand;
static int32_t *adj;
static int32_t steps = STEPS;
static taffeta_ctx ctx = TAFFETA_CTX_INIT;

static void taffeta_side_matmul(void) {
    int64_t s[2] = {MATMUL, MATMUL};
    taffeta_tensor t[3] = {tensor(TAFFETA_F32, 2, s, a), tensor(TAFFETA_F32, 2, s, b), tensor(TAFFETA_F32, 2, s, c)};
    check(taffeta_matmul(&ctx, t, 3, NULL), &ctx);
}
static void hand_side_matmul(void) { hand_matmul(MATMUL, MATMUL, MATMUL, a, b, c_hand); }

static void taffeta_side_jacobi(void) {
    int64_t s[2] = {GRID, GRID};
    taffeta_tensor t[3] = {tensor(TAFFETA_I32, 0, NULL, &steps), tensor(TAFFETA_F64, 2, s, A), tensor(TAFFETA_F64, 2, s, B)};
    check(taffeta_jacobi_2d(&ctx, t, 3, NULL), &ctx);
}
static void hand_side_jacobi(void) { hand_jacobi_2d(steps, GRID, A_hand, B_hand); }

static void taffeta_side_softmax(void) {
    int64_t s[2] = {ROWS, COLS};
    taffeta_tensor t[2] = {tensor(TAFFETA_F32, 2, s, x), tensor(TAFFETA_F32, 2, s, y)};
    check(taffeta_softmax_rows(&ctx, t, 2, NULL), &ctx);
}
static void hand_side_softmax(void) { hand_softmax_rows(ROWS, COLS, x, y_hand); }

static void taffeta_side_circdiff(void) {
    int64_t s[2] = {FACES, FEATS}, sa[2] = {FACES, 3};
    taffeta_tensor t[3] = {tensor(TAFFETA_F32, 2, s, e), tensor(TAFFETA_I32, 2, sa, adj), tensor(TAFFETA_F32, 2, s, d)};
    check(taffeta_circular_diff(&ctx, t, 3, NULL), &ctx);
}
static void hand_side_circdiff(void) { hand_circular_diff(FACES, FEATS, e, adj, d_hand); }

static double difference(const void *p, const void *q, size_t n, int is_double) {
    double worst = 0.0;
    for (size_t i = 0; i < n; i++) {
        double u = is_double ? ((const double *)p)[i] : ((const float *)p)[i];
        double v = is_double ? ((const double *)q)[i] : ((const float *)q)[i];
        double gap = fabs(u - v) / fmax(1.0, fabs(v));
        if (!(gap <= worst)) worst = gap;
    }
    return worst;
}

static double seconds(void (*f)(void), int calls) {
    double start = now();
    for (int i = 0; i < calls; i++) f();
    return (now() - start) / calls;
}

static void race(const char *name, double flop, double bytes, void (*taffeta)(void), void (*hand)(void), const void *p,
                 const void *q, size_t n, int is_double, int pairs) {
    for (int i = 0; i < 3; i++) {
        taffeta();
        hand();
    }
    double once = seconds(hand, 1);
    taffeta(); /* what works in place has been called as often on both sides */
    int calls = once > 0.01 ? 1 : (int)(0.01 / once) + 1;
    printf("{\"name\": \"%s\", \"flop\": %.0f, \"bytes\": %.0f, \"pairs\": [", name, flop, bytes);
    for (int i = 0; i < pairs; i++) {
        double w, h;
        if (i % 2 == 0) {
            w = seconds(taffeta, calls);
            h = seconds(hand, calls);
        } else {
            h = seconds(hand, calls);
            w = seconds(taffeta, calls);
        }
        printf("%s[%.9g, %.9g]", i ? ", " : "", w, h);
    }
    printf("], \"difference\": %.3g}\n", difference(p, q, n, is_double));
    fflush(stdout);
}

/* Independent multiply-adds on vector registers: nothing can be faster. */
#if defined(__AVX512F__)
#define VECTOR 64
#elif defined(__AVX__)
#define VECTOR 32
#else
#define VECTOR 16
#endif
typedef float f32v __attribute__((vector_size(VECTOR)));
typedef double f64v __attribute__((vector_size(VECTOR)));

#define PEAK(T, V, LANES)                                                                                              \
    static double peak_##T(void) {                                                                                     \
        enum { CHAINS = 12, TURNS = 2000000 };                                                                         \
        V acc[CHAINS], scale, shift;                                                                                   \
        for (int l = 0; l < LANES; l++) {                                                                              \
            scale[l] = (T)0.999999;                                                                                    \
            shift[l] = (T)1e-6;                                                                                        \
        }                                                                                                              \
        for (int k = 0; k < CHAINS; k++) acc[k] = shift;                                                               \
        double best = 0.0;                                                                                             \
        for (int t = 0; t < 5; t++) {                                                                                  \
            double start = now();                                                                                      \
            for (int i = 0; i < TURNS; i++)                                                                            \
                for (int k = 0; k < CHAINS; k++) acc[k] = acc[k] * scale + shift;                                      \
            double rate = 2.0 * LANES * CHAINS * TURNS / (now() - start);                                              \
            if (rate > best) best = rate;                                                                              \
        }                                                                                                              \
        volatile T sink = 0;                                                                                           \
        for (int k = 0; k < CHAINS; k++) sink += acc[k][0];                                                            \
        (void)sink;                                                                                                    \
        return best;                                                                                                   \
    }
PEAK(float, f32v, VECTOR / 4)
PEAK(double, f64v, VECTOR / 8)

/* Copying between two arrays of that many bytes together: bytes read and written per second. */
static double copy_rate(size_t bytes) {
    size_t half = bytes / 2;
    char *from = take(half), *to = take(half);
    int calls = (int)(2e8 / (double)bytes) + 1;
    double best = 0.0;
    for (int t = 0; t < 7; t++) {
        double start = now();
        for (int i = 0; i < calls; i++) {
            memcpy(to, from, half);
            __asm__ volatile("" : : "r"(to) : "memory");
        }
        double rate = 2.0 * (double)half * calls / (now() - start);
        if (rate > best) best = rate;
    }
    free(from);
    free(to);
    return best;
}

int main(int argc, char **argv) {
    int pairs = argc > 1 ? atoi(argv[1]) : 20;
    size_t mm = (size_t)MATMUL * MATMUL, g = (size_t)GRID * GRID, s = (size_t)ROWS * COLS, f = (size_t)FACES * FEATS;
    a = take(4 * mm), b = take(4 * mm), c = take(4 * mm), c_hand = take(4 * mm);
    A = take(8 * g), B = take(8 * g), A_hand = take(8 * g), B_hand = take(8 * g);
    x = take(4 * s), y = take(4 * s), y_hand = take(4 * s);
    e = take(4 * f), d = take(4 * f), d_hand = take(4 * f), adj = take(4 * 3 * (size_t)FACES);
    for (size_t i = 0; i < mm; i++) a[i] = uniform(), b[i] = uniform();
    for (size_t i = 0; i < g; i++) A[i] = A_hand[i] = B[i] = B_hand[i] = uniform();
    for (size_t i = 0; i < s; i++) x[i] = 4.0f * uniform() - 2.0f;
    for (size_t i = 0; i < f; i++) e[i] = uniform();
    for (size_t i = 0; i < 3 * (size_t)FACES; i++) adj[i] = (int32_t)(next() % FACES);

    race("matmul", 2.0 * MATMUL * MATMUL * MATMUL, 16.0 * (double)mm, taffeta_side_matmul, hand_side_matmul, c, c_hand, mm, 0, pairs);
    race("jacobi_2d", 10.0 * (double)g * STEPS, 32.0 * (double)g * STEPS, taffeta_side_jacobi, hand_side_jacobi, A, A_hand, g, 1, pairs);
    race("softmax", 4.0 * (double)s, 8.0 * (double)s, taffeta_side_softmax, hand_side_softmax, y, y_hand, s, 0, pairs);
    race("circular_diff", 9.0 * (double)f, 8.0 * (double)f, taffeta_side_circdiff, hand_side_circdiff, d, d_hand, f, 0, pairs);

    printf("{\"name\": \"machine\", \"f32\": %.6g, \"f64\": %.6g, \"copy\": {\"matmul\": %.6g, \"jacobi_2d\": %.6g, "
           "\"softmax\": %.6g, \"circular_diff\": %.6g}}\n",
           peak_float(), peak_double(), copy_rate(12 * mm), copy_rate(16 * g), copy_rate(8 * s), copy_rate(8 * f));
    taffeta_ctx_release(&ctx);
    return 0;
}
