/* Measures the times of instructions, memory and threads on this machine, and prints them, one per line: a name and
   numbers in nanoseconds. `machine.h` defines VECTOR (bytes), THREADS, and AREAS: for each cache level behind the first
   one, and for memory, the bytes that one thread traverses alone, and the bytes of each thread if all run.

   Each measurement is the fastest of several runs, since other load only makes runs slower. Operands are volatile, so
   that the compiler knows none of them. */
#define _POSIX_C_SOURCE 200112L
#include "machine.h"
#include "taffeta_runtime.h"

#include <time.h>

enum { N = 2048, RUNS = 7, LANES = VECTOR / 4, VECTORS = N / LANES };

typedef float vector __attribute__((vector_size(VECTOR)));
typedef float shortest __attribute__((vector_size(16)));

TAFFETA_SIMD float expf(float);

static float x[N] TAFFETA_ALIGNED, y[N] TAFFETA_ALIGNED;
static double u[N] TAFFETA_ALIGNED, v[N] TAFFETA_ALIGNED;
static int32_t far[N], same[N];
static volatile float sink, one = 1.0f, tiny = 1e-6f;

static double of_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double now(void) { return of_clock(CLOCK_MONOTONIC); }

/* Returns the time of one of the `count` operations of `work`. */
static double fastest(void (*work)(void), double count) {
    double least = 1e300;
    for (int run = 0; run < RUNS; run++) {
        const double start = now();
        work();
        const double time = now() - start;
        if (time < least) least = time;
    }
    return least / count;
}

/* Independent multiply-adds. */
enum { MULTIPLY_ADDS = 12 * 10000 };
#define MULTIPLY(type)                                                                                                 \
    const float m = one, b = tiny;                                                                                     \
    const type zero = {0};                                                                                             \
    type a0 = zero + one, a1 = zero + one, a2 = zero + one, a3 = zero + one, a4 = zero + one, a5 = zero + one,         \
         a6 = zero + one, a7 = zero + one, a8 = zero + one, a9 = zero + one, a10 = zero + one, a11 = zero + one;       \
    for (int t = 0; t < MULTIPLY_ADDS / 12; t++) {                                                                     \
        a0 = a0 * m + b, a1 = a1 * m + b, a2 = a2 * m + b, a3 = a3 * m + b, a4 = a4 * m + b, a5 = a5 * m + b;          \
        a6 = a6 * m + b, a7 = a7 * m + b, a8 = a8 * m + b, a9 = a9 * m + b, a10 = a10 * m + b, a11 = a11 * m + b;      \
    }                                                                                                                  \
    a0 += a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;                                                      \
    for (int k = 0; k < (int)(sizeof(type) / sizeof(float)); k++) sink = a0[k]

static void multiply_adds(void) { MULTIPLY(vector); }

static void shortest_multiply_adds(void) { MULTIPLY(shortest); }

/* Chain of dependent additions of independent products, which a compiler may move out of the loop. If a chain of
   multiply-adds is slower than one of additions, gcc forms no chains of multiply-adds. */
enum { ADDITIONS = 40000 };
static void additions_in_a_chain(void) {
    const float b = tiny, c[4] = {one, tiny, one, tiny};
    float sum = one;
    for (int t = 0; t < ADDITIONS; t++) sum += b * c[t & 3];
    sink = sum;
}

/* Loads from the first-level cache, added to different sums. */
enum { TIMES = 100 };
static TAFFETA_KERNEL void load(const vector *p) {
    vector a = p[0], b = a, c = a, d = a, e = a, f = a, g = a, h = a;
    for (int i = 0; i < VECTORS; i += 8)
        a += p[i], b += p[i + 1], c += p[i + 2], d += p[i + 3], e += p[i + 4], f += p[i + 5], g += p[i + 6], h += p[i + 7];
    a += b + c + d + e + f + g + h;
    sink = a[0];
}

static void loads(void) {
    for (int t = 0; t < TIMES; t++) load((const vector *)x);
}

static TAFFETA_KERNEL void store(vector *p, vector value) {
    for (int i = 0; i < VECTORS; i++) p[i] = value;
}

static void stores(void) {
    const vector zero = {0};
    for (int t = 0; t < TIMES; t++) store((vector *)y, zero + one);
}

static TAFFETA_KERNEL void gather(float *restrict to, const float *restrict from, const int32_t *restrict at) {
#pragma omp simd
    for (int i = 0; i < N; i++) to[i] = from[at[i]];
}

static void gathers(void) {
    for (int t = 0; t < TIMES; t++) gather(y, x, far);
}

/* Maximum of sums of a row and a column: gcc 12 assembles vectors of integers in memory, where a load of 32 bytes waits
   for stores of 8. (It does so for constant strides, as with compiled-in sizes.) */
enum { COLUMN = 128, APART = 300 };
static float floats[COLUMN * APART];
static int32_t integers[COLUMN * APART];

#define STRIDED(name, type, row, column)                                                                               \
    static TAFFETA_KERNEL type name##_of(const type *restrict along, const type *restrict across, int64_t n) {         \
        type most = 0;                                                                                                 \
        _Pragma("omp simd reduction(max: most)")                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const type sum = along[i] + across[i * APART];                                                             \
            most = most > sum ? most : sum;                                                                            \
        }                                                                                                              \
        return most;                                                                                                   \
    }                                                                                                                  \
    static void name(void) {                                                                                           \
        const int64_t n = (int64_t)(COLUMN * one);                                                                     \
        for (int t = 0; t < TIMES; t++) sink = (float)name##_of(row, column, n);                                       \
    }
STRIDED(strided_floats, float, x, floats)
STRIDED(strided_integers, int32_t, same, integers)

/* Stores at indices that are read, and may alias loads: compilers do not vectorise it. */
static TAFFETA_KERNEL void quotient(double *to, const double *from, const int32_t *at) {
    for (int i = 0; i < N; i++) to[at[i]] = 1.0 / from[at[i]];
}

static void quotients(void) {
    for (int t = 0; t < TIMES / 10; t++) quotient(v, u, same);
}

static TAFFETA_KERNEL void vector_quotient(double *restrict to, const double *restrict from) {
#pragma omp simd
    for (int i = 0; i < N; i++) to[i] = 1.0 / from[i];
}

static void vector_quotients(void) {
    for (int t = 0; t < TIMES / 10; t++) vector_quotient(v, u);
}

static TAFFETA_KERNEL void exponential(float *to, const float *from, const int32_t *at) {
    for (int i = 0; i < N; i++) to[at[i]] = expf(from[at[i]]);
}

static void exponentials(void) {
    for (int t = 0; t < TIMES / 10; t++) exponential(y, x, same);
}

static TAFFETA_KERNEL void vector_exponential(float *restrict to, const float *restrict from) {
#pragma omp simd
    for (int i = 0; i < N; i++) to[i] = expf(from[i]);
}

static void vector_exponentials(void) {
    for (int t = 0; t < TIMES / 10; t++) vector_exponential(y, x);
}

/* Parallel loops with some microseconds of sequential work between them, in which the other threads may go to
   sleep. */
enum { REGIONS = 20 };
static float of_threads[16 * THREADS];
static double region(void) {
    double least = 1e300;
    for (int run = 0; run < RUNS; run++) {
        double time = 0.0;
        for (int t = 0; t < REGIONS; t++) {
            additions_in_a_chain();
            const double start = now();
#pragma omp parallel for schedule(static) num_threads(THREADS)
            for (int k = 0; k < THREADS; k++) of_threads[16 * k] += 1.0f;
            time += now() - start;
        }
        if (time < least) least = time;
    }
    return least / REGIONS;
}

/* Load of bytes that another core has written. */
enum { TRANSFERS = 20 };
static double transfer(void) {
    double least = 1e300;
    for (int run = 0; run < RUNS; run++) {
        double time = 0.0;
        for (int t = 0; t < TRANSFERS; t++) {
#pragma omp parallel for schedule(static) num_threads(THREADS)
            for (int k = 0; k < THREADS; k++)
                if (k == THREADS - 1) store((vector *)y, (vector){0} + one);
            const double start = now();
            load((const vector *)y);
            time += now() - start;
        }
        if (time < least) least = time;
    }
    return least / TRANSFERS / sizeof y;
}

/* Atomic additions of all threads to elements of one array. */
enum { ATOMICS = 20000 };
static void atomics(void) {
#pragma omp parallel for schedule(static) num_threads(THREADS)
    for (int k = 0; k < THREADS; k++) {
        uint32_t place = (uint32_t)k * 7919u;
        for (int t = 0; t < ATOMICS; t++) {
            place = place * 1664525u + 1013904223u;
#pragma omp atomic
            y[(place >> 16) % N] += 1.0f;
        }
    }
}

/* Two arrays that each thread traverses several times; one of them is also written. */
static float *area;
static size_t half;
static int threads, times;
/* Wall time of all threads together, and their CPU time; other load takes the rest. */
static double ran, had;

static TAFFETA_KERNEL void add(float *restrict to, const float *restrict from, float a) {
#pragma omp simd
    for (size_t i = 0; i < half; i++) to[i] += a * from[i];
}

static void bytes(void) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int k = 0; k < threads; k++) {
        float *own = area + (size_t)k * 2 * half;
        for (int t = 0; t < times; t++) add(own, own + half, tiny);
    }
}

/* Times one thread traversing `alone` bytes, and all threads traversing `each` bytes, alternately. */
static bool level(size_t alone, size_t each) {
    enum { TURNS = 10, PASS = 1 << 21, ENOUGH = 200000000 };
    const size_t all = alone > each * THREADS ? alone : each * THREADS;
    void *memory = NULL;
    if (posix_memalign(&memory, 64, all) != 0) return false;
    area = memory;
    /* Each thread writes its part first. */
#pragma omp parallel for schedule(static) num_threads(THREADS)
    for (int k = 0; k < THREADS; k++) {
        const size_t own = all / THREADS;
        memset((char *)memory + (size_t)k * own, 0, own);
    }
    double least[2] = {1e300, 1e300};
    const double begin = now();
    for (int turn = 0; turn < 2 * TURNS && (turn < 4 || now() - begin < ENOUGH); turn++) {
        const size_t own = turn % 2 == 0 ? alone : each;
        threads = turn % 2 == 0 ? 1 : THREADS;
        half = own / 2 / VECTOR * (VECTOR / sizeof(float));
        times = 1 + (int)(PASS / own);
        const double start = now(), busy = of_clock(CLOCK_PROCESS_CPUTIME_ID);
        bytes();
        const double wall = now() - start;
        const double time = wall / ((double)(half * 2 * sizeof(float)) * times * threads);
        if (threads == THREADS) ran += wall, had += of_clock(CLOCK_PROCESS_CPUTIME_ID) - busy;
        if (time < least[turn % 2]) least[turn % 2] = time;
    }
    printf("level %g %g\n", least[0], least[0] / least[1]);
    free(memory);
    return true;
}

int main(void) {
    for (int i = 0; i < N; i++) {
        x[i] = 0.5f + (float)i / N;
        u[i] = x[i];
        far[i] = (i * 797) % N;
        same[i] = i;
    }
    /* Warm-up: an idle core takes a while to reach its speed. */
    const double start = now();
    while (now() - start < 2e7) multiply_adds();

    printf("multiply_add %g %g\n", fastest(shortest_multiply_adds, MULTIPLY_ADDS), fastest(multiply_adds, MULTIPLY_ADDS));
    printf("latency %g\n", fastest(additions_in_a_chain, ADDITIONS));
    printf("load %g\n", fastest(loads, TIMES * VECTORS));
    printf("store %g\n", fastest(stores, TIMES * VECTORS));
    printf("gather %g\n", fastest(gathers, TIMES * N));
    printf("strided %g %g\n", fastest(strided_floats, TIMES * COLUMN), fastest(strided_integers, TIMES * COLUMN));
    printf("divide %g %g\n", fastest(quotients, TIMES / 10 * N), fastest(vector_quotients, TIMES / 10 * N / (VECTOR / 8)));
    printf("transcendental %g %g\n", fastest(exponentials, TIMES / 10 * N),
           fastest(vector_exponentials, TIMES / 10 * N / LANES));
    printf("region %g\n", region());
    printf("transfer %g\n", transfer());
    printf("atomic %g\n", fastest(atomics, ATOMICS));
    const size_t areas[][2] = {AREAS};
    for (size_t k = 0; k < sizeof areas / sizeof *areas; k++)
        if (!level(areas[k][0], areas[k][1])) return 1;
    printf("share %g\n", had / ran / THREADS);
    return fflush(stdout) == 0 ? 0 : 1;
}
