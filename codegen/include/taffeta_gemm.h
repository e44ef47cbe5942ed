/*
 * taffeta_gemm.h: matrix products of generated code, `C += alpha * A * B`. Included where a loop nest is one.
 *
 * A BLAS library found at run time computes them, if it supports the processor and the layout of the matrices;
 * otherwise the kernel at the end of this file does. No library is needed to compile or start a program.
 *
 * TAFFETA_BLAS=libmkl_rt.so.2   selects the library to load (name or path); TAFFETA_BLAS=none selects our own kernel.
 *
 * The file includes itself once for each type: the part below `#else` is for elements of type TAF_T.
 */
#ifndef TAF_T
#ifndef TAFFETA_GEMM_H
#define TAFFETA_GEMM_H

#include "taffeta_runtime.h"
#include <dlfcn.h>
#include <limits.h>

/* Matrix: the element in row i and column k is `at[i * rows + k * columns]`. */
#define TAF_MATRIX(T)                                                                                                     \
    {                                                                                                                    \
        T *at;                                                                                                           \
        int64_t rows, columns;                                                                                           \
    }
typedef struct TAF_MATRIX(float) taf_matrix_f32;
typedef struct TAF_MATRIX(double) taf_matrix_f64;

/* CBLAS with 32-bit integers. */
enum { TAF_ROW_MAJOR = 101, TAF_PLAIN = 111, TAF_TRANSPOSED = 112 };
typedef void taf_gemm_fn_f32(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void taf_gemm_fn_f64(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *,
                            int);
typedef void taf_gemv_fn_f32(int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void taf_gemv_fn_f64(int, int, int, int, double, const double *, int, const double *, int, double, double *, int);

typedef struct taf_blas {
    int known; /* 1 after the search for it */
    int used; /* 1 after its first product */
    const char *name; /* NULL if there is none */
    taf_gemm_fn_f32 *gemm_f32;
    taf_gemm_fn_f64 *gemm_f64;
    taf_gemv_fn_f32 *gemv_f32;
    taf_gemv_fn_f64 *gemv_f64;
    void (*set_threads)(int);
} taf_blas;

/* Looks up a function. The address is copied, since C does not convert object pointers to function pointers. */
static TAFFETA_COLD bool taf_symbol(void *library, const char *name, void *to) {
    void *found = dlsym(library, name);
    memcpy(to, &found, sizeof found);
    return found != NULL;
}

/* Tests the library: small numbers, rows with gaps between them, and 0 * NaN, which is NaN. */
static TAFFETA_COLD bool taf_blas_works(const taf_blas *blas) {
    float a[6] = {1, 2, 9, 3, 0, 9}, b[6] = {5, 6, 9, 7, NAN, 9}, c[6] = {1, 1, 4, 1, 1, 4}, y[2] = {1, 1};
    blas->gemm_f32(TAF_ROW_MAJOR, TAF_PLAIN, TAF_PLAIN, 2, 1, 2, 2, a, 3, b, 3, 1, c, 3);
    blas->gemm_f32(TAF_ROW_MAJOR, TAF_PLAIN, TAF_PLAIN, 2, 1, 2, 1, a, 3, b + 1, 3, 1, c + 1, 3);
    blas->gemv_f32(TAF_ROW_MAJOR, TAF_TRANSPOSED, 2, 2, 1, a, 3, b, 3, 1, y, 1);
    if (c[0] != 39 || c[1] == c[1] || c[2] != 4 || c[3] != 31 || c[4] == c[4] || y[0] != 27 || y[1] != 11) return false;
    double d[4] = {1, 2, 3, 4}, e[4] = {5, 6, 7, 8}, f[4] = {1, 1, 1, 1}, z[2] = {1, 1};
    blas->gemm_f64(TAF_ROW_MAJOR, TAF_TRANSPOSED, TAF_PLAIN, 2, 2, 2, 1, d, 2, e, 2, 1, f, 2);
    blas->gemv_f64(TAF_ROW_MAJOR, TAF_PLAIN, 2, 2, 1, d, 2, e, 1, 1, z, 1);
    return f[0] == 27 && f[1] == 31 && f[2] == 39 && f[3] == 45 && z[0] == 18 && z[1] == 40;
}

/* Returns whether OpenBLAS does not support the processor's AVX-512 or AVX, as a library older than the processor; our
   own kernel is faster then. */
static TAFFETA_COLD bool taf_blas_is_behind(void *library) {
#ifdef __AVX__
    static const char behind[] =
        " Katmai Coppermine Northwood Prescott Banias Core2 Penryn Dunnington Nehalem Atom Nano"
        " Athlon Opteron Opteron_SSE3 Barcelona Bobcat Generic generic"
#ifdef __AVX512F__
        " Sandybridge Haswell Bulldozer Piledriver Steamroller Excavator Zen"
#endif
        " ";
    const char *(*core)(void);
    if (!taf_symbol(library, "openblas_get_corename", &core)) return false;
    char name[32];
    snprintf(name, sizeof name, " %s ", core());
    return strstr(behind, name) != NULL;
#else
    (void)library;
    return false;
#endif
}

/* Loads a library. Unless requested by name, it must be known to be fast: the reference BLAS is slower than our own
   kernel. */
static TAFFETA_COLD bool taf_blas_open(taf_blas *blas, const char *name, bool asked) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return false;
    int (*layer)(int);
    /* MKL uses the OpenMP threads of this program. */
    if (taf_symbol(library, "MKL_Set_Threading_Layer", &layer)) layer(3);
    bool whole = taf_symbol(library, "cblas_sgemm", &blas->gemm_f32) && taf_symbol(library, "cblas_dgemm", &blas->gemm_f64) &&
                 taf_symbol(library, "cblas_sgemv", &blas->gemv_f32) && taf_symbol(library, "cblas_dgemv", &blas->gemv_f64);
    if (!taf_symbol(library, "openblas_set_num_threads", &blas->set_threads) &&
        !taf_symbol(library, "MKL_Set_Num_Threads", &blas->set_threads))
        taf_symbol(library, "bli_thread_set_num_threads", &blas->set_threads);
    const bool fast = asked || (blas->set_threads != NULL && !taf_blas_is_behind(library));
    if (!whole || !fast || !taf_blas_works(blas)) {
        /* Not unloaded: libraries with threads of their own do not support it. */
        memset(blas, 0, sizeof *blas);
        return false;
    }
    return true;
}

/* Returns the state of the library, without a search. */
static TAFFETA_UNUSED taf_blas *taf_blas_known(void) {
    static taf_blas blas;
    return &blas;
}

/* Returns the library, after a search at the first call; its name is NULL if there is none. */
static TAFFETA_UNUSED taf_blas *taf_blas_get(void) {
    taf_blas *blas = taf_blas_known();
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so", "libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so",
                                        "libblis.so.4", "libcblas.so.3", "libblas.so.3", "libopenblas.dylib"};
    if (__atomic_load_n(&blas->known, __ATOMIC_ACQUIRE)) return blas;
#pragma omp critical(taf_blas)
    if (!blas->known) {
        const char *wish = getenv("TAFFETA_BLAS");
        if (wish != NULL) {
            if (strcmp(wish, "none") != 0 && taf_blas_open(blas, wish, true)) blas->name = wish;
        } else {
            for (size_t k = 0; k < sizeof names / sizeof *names && blas->name == NULL; k++)
                if (taf_blas_open(blas, names[k], false)) blas->name = names[k];
        }
        __atomic_store_n(&blas->known, 1, __ATOMIC_RELEASE);
    }
    return blas;
}

/* Returns the name of the library that computed matrix products, or an empty string. */
__attribute__((weak)) const char *taffeta_products(void);
__attribute__((weak)) const char *taffeta_products(void) {
    const taf_blas *blas = taf_blas_known();
    return __atomic_load_n(&blas->used, __ATOMIC_RELAXED) ? blas->name : "";
}

/* Smaller products are computed by our own kernel, on the threads of this program: threads of a library would be
 * started, and wait for cores on which ours still spin. */
#define TAF_WORTH_LIBRARY (640.0 * 640.0 * 640.0)

/* Returns whether a library computes a product of this many multiply-adds; a requested one computes all. */
static inline TAFFETA_UNUSED bool taf_for_library(double work) {
    return work >= TAF_WORTH_LIBRARY || getenv("TAFFETA_BLAS") != NULL;
}

/* Returns whether the call is inside a parallel region: the calling thread computes the product alone then. */
static inline TAFFETA_UNUSED bool taf_in_parallel(void) {
#ifdef _OPENMP
    return omp_in_parallel();
#else
    return false;
#endif
}

static inline TAFFETA_UNUSED int64_t taf_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Checks a leading dimension or increment: from `least` to the largest integer of CBLAS. One row needs none. */
static inline TAFFETA_UNUSED bool taf_leading(int64_t *stride, int64_t rows, int64_t least) {
    if (rows == 1) *stride = least;
    return *stride >= least && *stride <= INT_MAX;
}

/* Bytes of a vector register, and number of rows of C whose sums, two vectors each, fit in registers. */
#if defined(__AVX512F__)
#define TAF_VECTOR 64
#define TAF_ROWS 12
#elif defined(__AVX__)
#define TAF_VECTOR 32
#define TAF_ROWS 6
#else
#define TAF_VECTOR 16
#define TAF_ROWS 6
#endif
/* Block sizes: a block of A stays in the second-level cache, a panel of B in the first. */
#define TAF_DEPTH 256
#define TAF_HEIGHT 192
#define TAF_WIDTH 4096
/* Smaller products run on one thread. */
#define TAF_WORTH_THREADS (96.0 * 96.0 * 96.0)

/* Number of the next block of a thread's rows. */
typedef struct taf_taken {
    int64_t next;
    char apart[56]; /* pads to a cache line */
} taf_taken;

/* Returns the next block of rows for a thread, or -1 if all are taken. A thread first takes its own blocks, the same as
   in static loops around the product, which are in its cache; then those of other threads (counted by `helped`). */
static inline TAFFETA_UNUSED int64_t taf_take(taf_taken *taken, int64_t blocks, int parts, int thread, int *helped) {
    for (; *helped < parts; ++*helped) {
        const int part = (thread + *helped) % parts;
        const int64_t block = __atomic_fetch_add(&taken[part].next, 1, __ATOMIC_RELAXED);
        if (block < taf_part(blocks, part + 1, parts)) return block;
    }
    return -1;
}

#define TAF_T float
#define TAF_(name) taf_##name##_f32
#define TAF_GEMM gemm_f32
#define TAF_GEMV gemv_f32
#include "taffeta_gemm.h"
#undef TAF_T
#undef TAF_
#undef TAF_GEMM
#undef TAF_GEMV
#define TAF_T double
#define TAF_(name) taf_##name##_f64
#define TAF_GEMM gemm_f64
#define TAF_GEMV gemv_f64
#include "taffeta_gemm.h"
#undef TAF_T
#undef TAF_
#undef TAF_GEMM
#undef TAF_GEMV

#endif
#else

typedef TAF_T TAF_(vector) __attribute__((vector_size(TAF_VECTOR), may_alias));
typedef TAF_T TAF_(unaligned) __attribute__((vector_size(TAF_VECTOR), aligned(sizeof(TAF_T)), may_alias));
#define TAF_LANES ((int64_t)(TAF_VECTOR / sizeof(TAF_T)))
#define TAF_COLUMNS (2 * TAF_LANES)

/* Computes `C += alpha * A * B` by the library; returns false if there is none, or it does not support the layout. */
static TAFFETA_UNUSED bool TAF_(blas)(const taffeta_ctx *ctx, int64_t m, int64_t n, int64_t k, TAF_T alpha, TAF_(matrix) a, TAF_(matrix) b,
                                  TAF_(matrix) c) {
    if (taf_in_parallel() || m > INT_MAX || n > INT_MAX || k > INT_MAX) return false;
    if (!taf_for_library((double)m * (double)n * (double)k)) return false;
    taf_blas *blas = taf_blas_get();
    if (blas->name == NULL) return false;
    /* Elements are adjacent in rows of C, and in rows or columns of A and B. */
    bool turn_a = a.columns != 1 && k > 1, turn_b = b.columns != 1 && n > 1;
    if (turn_a && a.rows != 1 && m > 1) return false;
    int64_t lead_a = turn_a ? a.columns : a.rows;
    if (!taf_leading(&lead_a, turn_a ? k : m, turn_a ? m : k)) return false;
    int trans_a = turn_a ? TAF_TRANSPOSED : TAF_PLAIN;
    if (n == 1) {
        int64_t step_b = b.rows, step_c = c.rows;
        if (!taf_leading(&step_b, k, 1) || !taf_leading(&step_c, m, 1)) return false;
        __atomic_store_n(&blas->used, 1, __ATOMIC_RELAXED);
        if (blas->set_threads != NULL) blas->set_threads(taf_threads(ctx));
        blas->TAF_GEMV(TAF_ROW_MAJOR, trans_a, (int)(turn_a ? k : m), (int)(turn_a ? m : k), alpha, a.at, (int)lead_a, b.at,
                      (int)step_b, 1, c.at, (int)step_c);
        return true;
    }
    if (c.columns != 1 || (turn_b && b.rows != 1 && k > 1)) return false;
    int64_t lead_b = turn_b ? b.columns : b.rows, lead_c = c.rows;
    if (!taf_leading(&lead_b, turn_b ? n : k, turn_b ? k : n) || !taf_leading(&lead_c, m, n)) return false;
    __atomic_store_n(&blas->used, 1, __ATOMIC_RELAXED);
    if (blas->set_threads != NULL) blas->set_threads(taf_threads(ctx));
    blas->TAF_GEMM(TAF_ROW_MAJOR, trans_a, turn_b ? TAF_TRANSPOSED : TAF_PLAIN, (int)m, (int)n, (int)k, alpha, a.at, (int)lead_a, b.at,
                  (int)lead_b, 1, c.at, (int)lead_c);
    return true;
}
/* Packs rows `from` to `from + m` of A into panels of TAF_ROWS rows, with adjacent elements of a column. */
static TAFFETA_UNUSED void TAF_(pack_rows)(TAF_(matrix) a, int64_t from, int64_t m, int64_t column, int64_t k, TAF_T *to) {
    for (int64_t i = 0; i < m; i += TAF_ROWS) {
        const TAF_T *at = a.at + (from + i) * a.rows + column * a.columns;
        const int64_t rows = taf_least(TAF_ROWS, m - i);
        for (int64_t p = 0; p < k; p++, to += TAF_ROWS) {
            for (int64_t r = 0; r < rows; r++) to[r] = at[r * a.rows + p * a.columns];
            for (int64_t r = rows; r < TAF_ROWS; r++) to[r] = 0;
        }
    }
}

/* Packs a panel of B: `n` columns from `from`, with adjacent elements of a row. */
static TAFFETA_UNUSED void TAF_(pack_columns)(TAF_(matrix) b, int64_t row, int64_t k, int64_t from, int64_t n, TAF_T *to) {
    const TAF_T *at = b.at + row * b.rows + from * b.columns;
    for (int64_t p = 0; p < k; p++, to += TAF_COLUMNS, at += b.rows) {
        if (b.columns == 1 && n == TAF_COLUMNS) {
            memcpy(to, at, sizeof(TAF_T) * (size_t)TAF_COLUMNS);
            continue;
        }
        for (int64_t j = 0; j < n; j++) to[j] = at[j * b.columns];
        for (int64_t j = n; j < TAF_COLUMNS; j++) to[j] = 0;
    }
}

/* Computes a tile of C, of at most TAF_ROWS rows and TAF_COLUMNS columns, with its sums in registers. */
static TAFFETA_UNUSED __attribute__((noinline)) void TAF_(tile)(int64_t k, TAF_T alpha, const TAF_T *restrict a, const TAF_T *restrict b,
                                                          TAF_(matrix) c, int64_t m, int64_t n) {
    TAF_(vector) sums[TAF_ROWS][2];
#pragma GCC unroll 16
    for (int r = 0; r < TAF_ROWS; r++) sums[r][0] = sums[r][1] = (TAF_(vector)){0};
    for (int64_t p = 0; p < k; p++, a += TAF_ROWS, b += TAF_COLUMNS) {
        const TAF_(vector) left = *(const TAF_(vector) *)b, right = *(const TAF_(vector) *)(b + TAF_LANES);
#pragma GCC unroll 16
        for (int r = 0; r < TAF_ROWS; r++) {
            sums[r][0] += a[r] * left;
            sums[r][1] += a[r] * right;
        }
    }
    if (m == TAF_ROWS && n == TAF_COLUMNS && c.columns == 1) {
#pragma GCC unroll 16
        for (int r = 0; r < TAF_ROWS; r++) {
            TAF_(unaligned) *row = (TAF_(unaligned) *)(c.at + r * c.rows);
            row[0] += alpha * sums[r][0];
            row[1] += alpha * sums[r][1];
        }
        return;
    }
    TAF_T all[TAF_ROWS][TAF_COLUMNS];
    memcpy(all, sums, sizeof all);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) c.at[i * c.rows + j * c.columns] += alpha * all[i][j];
}

/* Multiplies a packed block of A by a panel of B, for rows of C from `i` on and columns from `j` on. */
static TAFFETA_UNUSED void TAF_(block)(int64_t rows, int64_t columns, int64_t deep, TAF_T alpha, const TAF_T *panel_a,
                                      const TAF_T *panel_b, TAF_(matrix) c, int64_t i, int64_t j) {
    for (int64_t jj = 0; jj < columns; jj += TAF_COLUMNS)
        for (int64_t ii = 0; ii < rows; ii += TAF_ROWS) {
            TAF_(matrix) at = c;
            at.at += (i + ii) * c.rows + (j + jj) * c.columns;
            TAF_(tile)(deep, alpha, panel_a + ii * deep, panel_b + jj * deep, at, taf_least(TAF_ROWS, rows - ii),
                      taf_least(TAF_COLUMNS, columns - jj));
        }
}

/* Computes `C += alpha * A * B` by panels that fit in caches (Goto and van de Geijn 2008); returns false without memory
   for them. */
static TAFFETA_UNUSED TAFFETA_KERNEL bool TAF_(own)(taffeta_ctx *ctx, int64_t m, int64_t n, int64_t k, TAF_T alpha, TAF_(matrix) a,
                                           TAF_(matrix) b, TAF_(matrix) c) {
    const bool alone = taf_in_parallel() || (double)m * (double)n * (double)k < TAF_WORTH_THREADS;
    const int threads = alone ? 1 : taf_threads(ctx);
    /* The number of blocks is a multiple of the number of threads. */
    int64_t blocks = (m + TAF_HEIGHT - 1) / TAF_HEIGHT;
    blocks = (blocks + threads - 1) / threads * threads;
    const int64_t height = ((m + blocks - 1) / blocks + TAF_ROWS - 1) / TAF_ROWS * TAF_ROWS;
    const int64_t depth = taf_least(k, TAF_DEPTH), width = taf_least((n + TAF_COLUMNS - 1) / TAF_COLUMNS * TAF_COLUMNS, TAF_WIDTH);
    const size_t bytes_a = ((size_t)(height * depth) * sizeof(TAF_T) + 63) / 64 * 64;
    const size_t bytes_taken = (size_t)threads * sizeof(taf_taken);
    const size_t bytes = bytes_taken + (size_t)threads * bytes_a + (size_t)(depth * width) * sizeof(TAF_T);
    char *memory = (char *)taf_heap_take(ctx, bytes);
    if (memory == NULL) return false;
    taf_taken *taken = (taf_taken *)memory;
    TAF_T *panel_b = (TAF_T *)(memory + bytes_taken + (size_t)threads * bytes_a);
    blocks = (m + height - 1) / height;
    taf_region region = taf_fork(threads);
    const int parts = region.threads;
#pragma omp parallel num_threads(region.threads)
    {
        taf_enter(&region);
        const int thread = threads > 1 ? taf_thread() : 0;
        TAF_T *panel_a = (TAF_T *)(memory + bytes_taken + (size_t)thread * bytes_a);
        for (int64_t j = 0; j < n; j += width) {
            const int64_t columns = taf_least(width, n - j);
            for (int64_t p = 0; p < k; p += depth) {
                const int64_t deep = taf_least(depth, k - p);
#pragma omp for schedule(static) nowait
                for (int part = 0; part < parts; part++) taken[part].next = taf_part(blocks, part, parts);
#pragma omp for schedule(static)
                for (int64_t jj = 0; jj < columns; jj += TAF_COLUMNS)
                    TAF_(pack_columns)(b, p, deep, j + jj, taf_least(TAF_COLUMNS, columns - jj), panel_b + jj * deep);
                int helped = 0;
                for (int64_t block; (block = taf_take(taken, blocks, parts, thread, &helped)) >= 0;) {
                    const int64_t i = block * height, rows = taf_least(height, m - i);
                    TAF_(pack_rows)(a, i, rows, p, deep, panel_a);
                    TAF_(block)(rows, columns, deep, alpha, panel_a, panel_b, c, i, j);
                }
#pragma omp barrier
            }
        }
        taf_leave(&region);
    }
    taf_join(&region);
    taf_heap_give(ctx, memory, bytes);
    return true;
}

/* Computes `C += alpha * A * B` for one column: by sums along rows of A, or for a block of C along its columns. */
static TAFFETA_UNUSED TAFFETA_KERNEL void TAF_(own_column)(const taffeta_ctx *ctx, int64_t m, int64_t k, TAF_T alpha, TAF_(matrix) a,
                                                  TAF_(matrix) b, TAF_(matrix) c) {
    const int threads = taf_in_parallel() || (double)m * (double)k < TAF_WORTH_THREADS ? 1 : taf_threads(ctx);
    const bool along_rows = llabs(a.columns) <= llabs(a.rows);
    taf_region region = taf_fork(threads);
#pragma omp parallel num_threads(region.threads)
    {
        taf_enter(&region);
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < m; i += TAF_HEIGHT) {
            const int64_t rows = taf_least(TAF_HEIGHT, m - i);
            TAF_T sums[TAF_HEIGHT] = {0};
            const TAF_T *at = a.at + i * a.rows;
            if (along_rows) {
                for (int64_t r = 0; r < rows; r++, at += a.rows) {
                    TAF_T sum = 0;
                    if (a.columns == 1 && b.rows == 1) {
#pragma omp simd reduction(+ : sum)
                        for (int64_t p = 0; p < k; p++) sum += at[p] * b.at[p];
                    } else {
                        for (int64_t p = 0; p < k; p++) sum += at[p * a.columns] * b.at[p * b.rows];
                    }
                    sums[r] = sum;
                }
            } else {
                for (int64_t p = 0; p < k; p++, at += a.columns) {
                    const TAF_T x = b.at[p * b.rows];
                    if (a.rows == 1) {
                        for (int64_t r = 0; r < rows; r++) sums[r] += at[r] * x;
                    } else {
                        for (int64_t r = 0; r < rows; r++) sums[r] += at[r * a.rows] * x;
                    }
                }
            }
            for (int64_t r = 0; r < rows; r++) c.at[(i + r) * c.rows] += alpha * sums[r];
        }
        taf_leave(&region);
    }
    taf_join(&region);
}

/* Computes `C += alpha * A * B` for nonzero m, n and k. Returns false if nothing was computed; the original loops run
   then. */
static TAFFETA_UNUSED bool TAF_(product)(taffeta_ctx *ctx, int64_t m, int64_t n, int64_t k, TAF_T alpha, TAF_(matrix) a, TAF_(matrix) b,
                                     TAF_(matrix) c) {
    /* Libraries skip the product for alpha 0, even of infinities. */
    if (alpha == 0) return false;
    /* Rows of C are made the dimension with the larger stride; a single row becomes a column. */
    if ((n > 1 && m == 1) || (n > 1 && llabs(c.columns) > llabs(c.rows))) {
        const int64_t rows = m;
        const TAF_(matrix) left = a;
        m = n, n = rows;
        a = b, b = left;
        const int64_t steps[3] = {a.rows, b.rows, c.rows};
        a.rows = a.columns, a.columns = steps[0];
        b.rows = b.columns, b.columns = steps[1];
        c.rows = c.columns, c.columns = steps[2];
    }
    /* Elements of C must not overlap. */
    if ((n > 1 && c.columns == 0) || (m > 1 && (c.rows == 0 || llabs(c.rows) / n < llabs(c.columns) * (n > 1)))) return false;
    if (TAF_(blas)(ctx, m, n, k, alpha, a, b, c)) return true;
    if (n > 1) return TAF_(own)(ctx, m, n, k, alpha, a, b, c);
    TAF_(own_column)(ctx, m, k, alpha, a, b, c);
    return true;
}

#undef TAF_LANES
#undef TAF_COLUMNS
#endif
