/*
 * taffeta_gemm.h: matrix products of generated code, `C += alpha * A * B`. Included where a loop nest is one.
 *
 * A BLAS library that is there when the program runs does them, if it knows the processor and the matrices are ones
 * that it takes; otherwise the kernel at the end of this file. Nothing has to be there when a program is compiled or
 * started.
 *
 * TAFFETA_BLAS=libmkl_rt.so.2   names the library to load (or its path); TAFFETA_BLAS=none leaves only our own kernel.
 *
 * The file includes itself, once for each type: what stands below `#else` is for elements of type WF_T.
 */
#ifndef WF_T
#ifndef TAFFETA_GEMM_H
#define TAFFETA_GEMM_H

#include "taffeta_runtime.h"
#include <dlfcn.h>
#include <limits.h>

/* A matrix: the element in row i and column k is `at[i * rows + k * columns]`. */
#define WF_MATRIX(T)                                                                                                     \
    {                                                                                                                    \
        T *at;                                                                                                           \
        int64_t rows, columns;                                                                                           \
    }
typedef struct WF_MATRIX(float) wf_matrix_f32;
typedef struct WF_MATRIX(double) wf_matrix_f64;

/* CBLAS with integers of 32 bits. */
enum { WF_ROW_MAJOR = 101, WF_PLAIN = 111, WF_TRANSPOSED = 112 };
typedef void wf_gemm_fn_f32(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void wf_gemm_fn_f64(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *,
                            int);
typedef void wf_gemv_fn_f32(int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void wf_gemv_fn_f64(int, int, int, int, double, const double *, int, const double *, int, double, double *, int);

typedef struct wf_blas {
    int known; /* 1 once it was looked for */
    int used; /* 1 once it has done a product */
    const char *name; /* NULL if there is none */
    wf_gemm_fn_f32 *gemm_f32;
    wf_gemm_fn_f64 *gemm_f64;
    wf_gemv_fn_f32 *gemv_f32;
    wf_gemv_fn_f64 *gemv_f64;
    void (*set_threads)(int);
} wf_blas;

/* Copies an address: C does not convert pointers to functions. */
static TAFFETA_COLD bool wf_symbol(void *library, const char *name, void *to) {
    void *found = dlsym(library, name);
    memcpy(to, &found, sizeof found);
    return found != NULL;
}

/* Whether the library computes what we expect: small numbers, rows with a gap behind them, and 0 * NaN, which is
   NaN. */
static TAFFETA_COLD bool wf_blas_works(const wf_blas *blas) {
    float a[6] = {1, 2, 9, 3, 0, 9}, b[6] = {5, 6, 9, 7, NAN, 9}, c[6] = {1, 1, 4, 1, 1, 4}, y[2] = {1, 1};
    blas->gemm_f32(WF_ROW_MAJOR, WF_PLAIN, WF_PLAIN, 2, 1, 2, 2, a, 3, b, 3, 1, c, 3);
    blas->gemm_f32(WF_ROW_MAJOR, WF_PLAIN, WF_PLAIN, 2, 1, 2, 1, a, 3, b + 1, 3, 1, c + 1, 3);
    blas->gemv_f32(WF_ROW_MAJOR, WF_TRANSPOSED, 2, 2, 1, a, 3, b, 3, 1, y, 1);
    if (c[0] != 39 || c[1] == c[1] || c[2] != 4 || c[3] != 31 || c[4] == c[4] || y[0] != 27 || y[1] != 11) return false;
    double d[4] = {1, 2, 3, 4}, e[4] = {5, 6, 7, 8}, f[4] = {1, 1, 1, 1}, z[2] = {1, 1};
    blas->gemm_f64(WF_ROW_MAJOR, WF_TRANSPOSED, WF_PLAIN, 2, 2, 2, 1, d, 2, e, 2, 1, f, 2);
    blas->gemv_f64(WF_ROW_MAJOR, WF_PLAIN, 2, 2, 1, d, 2, e, 1, 1, z, 1);
    return f[0] == 27 && f[1] == 31 && f[2] == 39 && f[3] == 45 && z[0] == 18 && z[1] == 40;
}

/* Whether OpenBLAS knows less of this processor than our own kernel, which is faster then: a library that is older than
   the processor takes it for one without AVX-512, or without AVX. */
static TAFFETA_COLD bool wf_blas_is_behind(void *library) {
#ifdef __AVX__
    static const char behind[] =
        " Katmai Coppermine Northwood Prescott Banias Core2 Penryn Dunnington Nehalem Atom Nano"
        " Athlon Opteron Opteron_SSE3 Barcelona Bobcat Generic generic"
#ifdef __AVX512F__
        " Sandybridge Haswell Bulldozer Piledriver Steamroller Excavator Zen"
#endif
        " ";
    const char *(*core)(void);
    if (!wf_symbol(library, "openblas_get_corename", &core)) return false;
    char name[32];
    snprintf(name, sizeof name, " %s ", core());
    return strstr(behind, name) != NULL;
#else
    (void)library;
    return false;
#endif
}

/* Loads a library. One that was not asked for by name must be one that is known to be fast: the reference BLAS is
   slower than our own kernel. */
static TAFFETA_COLD bool wf_blas_open(wf_blas *blas, const char *name, bool asked) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return false;
    int (*layer)(int);
    /* MKL's threads are to be those of OpenMP that this program has already. */
    if (wf_symbol(library, "MKL_Set_Threading_Layer", &layer)) layer(3);
    bool whole = wf_symbol(library, "cblas_sgemm", &blas->gemm_f32) && wf_symbol(library, "cblas_dgemm", &blas->gemm_f64) &&
                 wf_symbol(library, "cblas_sgemv", &blas->gemv_f32) && wf_symbol(library, "cblas_dgemv", &blas->gemv_f64);
    if (!wf_symbol(library, "openblas_set_num_threads", &blas->set_threads) &&
        !wf_symbol(library, "MKL_Set_Num_Threads", &blas->set_threads))
        wf_symbol(library, "bli_thread_set_num_threads", &blas->set_threads);
    const bool fast = asked || (blas->set_threads != NULL && !wf_blas_is_behind(library));
    if (!whole || !fast || !wf_blas_works(blas)) {
        /* It stays in memory: libraries with threads of their own do not like to be unloaded. */
        memset(blas, 0, sizeof *blas);
        return false;
    }
    return true;
}

/* What is known of the library by now. */
static TAFFETA_UNUSED wf_blas *wf_blas_known(void) {
    static wf_blas blas;
    return &blas;
}

/* The library, which the first product for it looks for; its name is NULL if there is none. */
static TAFFETA_UNUSED wf_blas *wf_blas_get(void) {
    wf_blas *blas = wf_blas_known();
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so", "libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so",
                                        "libblis.so.4", "libcblas.so.3", "libblas.so.3", "libopenblas.dylib"};
    if (__atomic_load_n(&blas->known, __ATOMIC_ACQUIRE)) return blas;
#pragma omp critical(wf_blas)
    if (!blas->known) {
        const char *wish = getenv("TAFFETA_BLAS");
        if (wish != NULL) {
            if (strcmp(wish, "none") != 0 && wf_blas_open(blas, wish, true)) blas->name = wish;
        } else {
            for (size_t k = 0; k < sizeof names / sizeof *names && blas->name == NULL; k++)
                if (wf_blas_open(blas, names[k], false)) blas->name = names[k];
        }
        __atomic_store_n(&blas->known, 1, __ATOMIC_RELEASE);
    }
    return blas;
}

/* What has done matrix products, for people: the library's name, or an empty text. */
__attribute__((weak)) const char *taffeta_products(void);
__attribute__((weak)) const char *taffeta_products(void) {
    const wf_blas *blas = wf_blas_known();
    return __atomic_load_n(&blas->used, __ATOMIC_RELAXED) ? blas->name : "";
}

/* Products of less work than this are done by our own kernel, on the threads that this program has already: those of a
 * library would be started, and wait for cores that ours still look for work on. */
#define WF_WORTH_LIBRARY (640.0 * 640.0 * 640.0)

/* Whether a library is to do a product of so many multiply-adds: one that was asked for does all of them. */
static inline TAFFETA_UNUSED bool wf_for_library(double work) {
    return work >= WF_WORTH_LIBRARY || getenv("TAFFETA_BLAS") != NULL;
}

/* Whether threads of ours run already: then a product is one of many, and done by the thread that asks for it. */
static inline TAFFETA_UNUSED bool wf_in_parallel(void) {
#ifdef _OPENMP
    return omp_in_parallel();
#else
    return false;
#endif
}

static inline TAFFETA_UNUSED int64_t wf_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* As a leading dimension or an increment: at least `least`, and CBLAS's integers hold it. One row has none. */
static inline TAFFETA_UNUSED bool wf_leading(int64_t *stride, int64_t rows, int64_t least) {
    if (rows == 1) *stride = least;
    return *stride >= least && *stride <= INT_MAX;
}

/* Bytes of a vector register, and the rows of C whose sums fit in registers, two vectors each. */
#if defined(__AVX512F__)
#define WF_VECTOR 64
#define WF_ROWS 12
#elif defined(__AVX__)
#define WF_VECTOR 32
#define WF_ROWS 6
#else
#define WF_VECTOR 16
#define WF_ROWS 6
#endif
/* Blocks of A, as many columns as a panel of B has rows: they stay in the second-level cache, the panel in the
   first. */
#define WF_DEPTH 256
#define WF_HEIGHT 192
#define WF_WIDTH 4096
/* Products of less work are not worth a second thread. */
#define WF_WORTH_THREADS (96.0 * 96.0 * 96.0)

/* How many blocks of a thread's rows are taken. */
typedef struct wf_taken {
    int64_t next;
    char apart[56]; /* a cache line each */
} wf_taken;

/* The next block of rows for a thread, -1 if all are taken. It gets its own ones first, which it has in static loops
   around the product too, so that they are in its cache; then it helps others with theirs (`helped` counts them). */
static inline TAFFETA_UNUSED int64_t wf_take(wf_taken *taken, int64_t blocks, int parts, int thread, int *helped) {
    for (; *helped < parts; ++*helped) {
        const int part = (thread + *helped) % parts;
        const int64_t block = __atomic_fetch_add(&taken[part].next, 1, __ATOMIC_RELAXED);
        if (block < wf_part(blocks, part + 1, parts)) return block;
    }
    return -1;
}

#define WF_T float
#define WF_(name) wf_##name##_f32
#define WF_GEMM gemm_f32
#define WF_GEMV gemv_f32
#include "taffeta_gemm.h"
#undef WF_T
#undef WF_
#undef WF_GEMM
#undef WF_GEMV
#define WF_T double
#define WF_(name) wf_##name##_f64
#define WF_GEMM gemm_f64
#define WF_GEMV gemv_f64
#include "taffeta_gemm.h"
#undef WF_T
#undef WF_
#undef WF_GEMM
#undef WF_GEMV

#endif
#else

typedef WF_T WF_(vector) __attribute__((vector_size(WF_VECTOR), may_alias));
typedef WF_T WF_(unaligned) __attribute__((vector_size(WF_VECTOR), aligned(sizeof(WF_T)), may_alias));
#define WF_LANES ((int64_t)(WF_VECTOR / sizeof(WF_T)))
#define WF_COLUMNS (2 * WF_LANES)

/* `C += alpha * A * B` by the library: false if there is none, or if it does not take these matrices. */
static TAFFETA_UNUSED bool WF_(blas)(const taffeta_ctx *ctx, int64_t m, int64_t n, int64_t k, WF_T alpha, WF_(matrix) a, WF_(matrix) b,
                                  WF_(matrix) c) {
    if (wf_in_parallel() || m > INT_MAX || n > INT_MAX || k > INT_MAX) return false;
    if (!wf_for_library((double)m * (double)n * (double)k)) return false;
    wf_blas *blas = wf_blas_get();
    if (blas->name == NULL) return false;
    /* Rows of C lie next to each other, and so do those of one of A's and B's dimensions each. */
    bool turn_a = a.columns != 1 && k > 1, turn_b = b.columns != 1 && n > 1;
    if (turn_a && a.rows != 1 && m > 1) return false;
    int64_t lead_a = turn_a ? a.columns : a.rows;
    if (!wf_leading(&lead_a, turn_a ? k : m, turn_a ? m : k)) return false;
    int trans_a = turn_a ? WF_TRANSPOSED : WF_PLAIN;
    if (n == 1) {
        int64_t step_b = b.rows, step_c = c.rows;
        if (!wf_leading(&step_b, k, 1) || !wf_leading(&step_c, m, 1)) return false;
        __atomic_store_n(&blas->used, 1, __ATOMIC_RELAXED);
        if (blas->set_threads != NULL) blas->set_threads(wf_threads(ctx));
        blas->WF_GEMV(WF_ROW_MAJOR, trans_a, (int)(turn_a ? k : m), (int)(turn_a ? m : k), alpha, a.at, (int)lead_a, b.at,
                      (int)step_b, 1, c.at, (int)step_c);
        return true;
    }
    if (c.columns != 1 || (turn_b && b.rows != 1 && k > 1)) return false;
    int64_t lead_b = turn_b ? b.columns : b.rows, lead_c = c.rows;
    if (!wf_leading(&lead_b, turn_b ? n : k, turn_b ? k : n) || !wf_leading(&lead_c, m, n)) return false;
    __atomic_store_n(&blas->used, 1, __ATOMIC_RELAXED);
    if (blas->set_threads != NULL) blas->set_threads(wf_threads(ctx));
    blas->WF_GEMM(WF_ROW_MAJOR, trans_a, turn_b ? WF_TRANSPOSED : WF_PLAIN, (int)m, (int)n, (int)k, alpha, a.at, (int)lead_a, b.at,
                  (int)lead_b, 1, c.at, (int)lead_c);
    return true;
}
/* Rows `from` to `from + m` of A in panels of WF_ROWS rows, the elements of one column next to each other. */
static TAFFETA_UNUSED void WF_(pack_rows)(WF_(matrix) a, int64_t from, int64_t m, int64_t column, int64_t k, WF_T *to) {
    for (int64_t i = 0; i < m; i += WF_ROWS) {
        const WF_T *at = a.at + (from + i) * a.rows + column * a.columns;
        const int64_t rows = wf_least(WF_ROWS, m - i);
        for (int64_t p = 0; p < k; p++, to += WF_ROWS) {
            for (int64_t r = 0; r < rows; r++) to[r] = at[r * a.rows + p * a.columns];
            for (int64_t r = rows; r < WF_ROWS; r++) to[r] = 0;
        }
    }
}

/* One panel of B: `n` columns from `from`, the elements of one row next to each other. */
static TAFFETA_UNUSED void WF_(pack_columns)(WF_(matrix) b, int64_t row, int64_t k, int64_t from, int64_t n, WF_T *to) {
    const WF_T *at = b.at + row * b.rows + from * b.columns;
    for (int64_t p = 0; p < k; p++, to += WF_COLUMNS, at += b.rows) {
        if (b.columns == 1 && n == WF_COLUMNS) {
            memcpy(to, at, sizeof(WF_T) * (size_t)WF_COLUMNS);
            continue;
        }
        for (int64_t j = 0; j < n; j++) to[j] = at[j * b.columns];
        for (int64_t j = n; j < WF_COLUMNS; j++) to[j] = 0;
    }
}

/* A tile of C, of at most WF_ROWS rows and WF_COLUMNS columns: its sums stay in registers. */
static TAFFETA_UNUSED __attribute__((noinline)) void WF_(tile)(int64_t k, WF_T alpha, const WF_T *restrict a, const WF_T *restrict b,
                                                          WF_(matrix) c, int64_t m, int64_t n) {
    WF_(vector) sums[WF_ROWS][2];
#pragma GCC unroll 16
    for (int r = 0; r < WF_ROWS; r++) sums[r][0] = sums[r][1] = (WF_(vector)){0};
    for (int64_t p = 0; p < k; p++, a += WF_ROWS, b += WF_COLUMNS) {
        const WF_(vector) left = *(const WF_(vector) *)b, right = *(const WF_(vector) *)(b + WF_LANES);
#pragma GCC unroll 16
        for (int r = 0; r < WF_ROWS; r++) {
            sums[r][0] += a[r] * left;
            sums[r][1] += a[r] * right;
        }
    }
    if (m == WF_ROWS && n == WF_COLUMNS && c.columns == 1) {
#pragma GCC unroll 16
        for (int r = 0; r < WF_ROWS; r++) {
            WF_(unaligned) *row = (WF_(unaligned) *)(c.at + r * c.rows);
            row[0] += alpha * sums[r][0];
            row[1] += alpha * sums[r][1];
        }
        return;
    }
    WF_T all[WF_ROWS][WF_COLUMNS];
    memcpy(all, sums, sizeof all);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) c.at[i * c.rows + j * c.columns] += alpha * all[i][j];
}

/* `C += alpha * A * B` for rows of C from `i` on, and columns from `j` on: a block of A, packed, by a panel of B. */
static TAFFETA_UNUSED void WF_(block)(int64_t rows, int64_t columns, int64_t deep, WF_T alpha, const WF_T *panel_a,
                                      const WF_T *panel_b, WF_(matrix) c, int64_t i, int64_t j) {
    for (int64_t jj = 0; jj < columns; jj += WF_COLUMNS)
        for (int64_t ii = 0; ii < rows; ii += WF_ROWS) {
            WF_(matrix) at = c;
            at.at += (i + ii) * c.rows + (j + jj) * c.columns;
            WF_(tile)(deep, alpha, panel_a + ii * deep, panel_b + jj * deep, at, wf_least(WF_ROWS, rows - ii),
                      wf_least(WF_COLUMNS, columns - jj));
        }
}

/* `C += alpha * A * B` by panels that fit in caches (Goto and van de Geijn 2008): false if there is no memory
   for them. */
static TAFFETA_UNUSED TAFFETA_KERNEL bool WF_(own)(taffeta_ctx *ctx, int64_t m, int64_t n, int64_t k, WF_T alpha, WF_(matrix) a,
                                           WF_(matrix) b, WF_(matrix) c) {
    const bool alone = wf_in_parallel() || (double)m * (double)n * (double)k < WF_WORTH_THREADS;
    const int threads = alone ? 1 : wf_threads(ctx);
    /* As many blocks as give every thread the same number of them. */
    int64_t blocks = (m + WF_HEIGHT - 1) / WF_HEIGHT;
    blocks = (blocks + threads - 1) / threads * threads;
    const int64_t height = ((m + blocks - 1) / blocks + WF_ROWS - 1) / WF_ROWS * WF_ROWS;
    const int64_t depth = wf_least(k, WF_DEPTH), width = wf_least((n + WF_COLUMNS - 1) / WF_COLUMNS * WF_COLUMNS, WF_WIDTH);
    const size_t bytes_a = ((size_t)(height * depth) * sizeof(WF_T) + 63) / 64 * 64;
    const size_t bytes_taken = (size_t)threads * sizeof(wf_taken);
    const size_t bytes = bytes_taken + (size_t)threads * bytes_a + (size_t)(depth * width) * sizeof(WF_T);
    char *memory = (char *)wf_heap_take(ctx, bytes);
    if (memory == NULL) return false;
    wf_taken *taken = (wf_taken *)memory;
    WF_T *panel_b = (WF_T *)(memory + bytes_taken + (size_t)threads * bytes_a);
    blocks = (m + height - 1) / height;
    wf_region region = wf_fork(threads);
    const int parts = region.threads;
#pragma omp parallel num_threads(region.threads)
    {
        wf_enter(&region);
        const int thread = threads > 1 ? wf_thread() : 0;
        WF_T *panel_a = (WF_T *)(memory + bytes_taken + (size_t)thread * bytes_a);
        for (int64_t j = 0; j < n; j += width) {
            const int64_t columns = wf_least(width, n - j);
            for (int64_t p = 0; p < k; p += depth) {
                const int64_t deep = wf_least(depth, k - p);
#pragma omp for schedule(static) nowait
                for (int part = 0; part < parts; part++) taken[part].next = wf_part(blocks, part, parts);
#pragma omp for schedule(static)
                for (int64_t jj = 0; jj < columns; jj += WF_COLUMNS)
                    WF_(pack_columns)(b, p, deep, j + jj, wf_least(WF_COLUMNS, columns - jj), panel_b + jj * deep);
                int helped = 0;
                for (int64_t block; (block = wf_take(taken, blocks, parts, thread, &helped)) >= 0;) {
                    const int64_t i = block * height, rows = wf_least(height, m - i);
                    WF_(pack_rows)(a, i, rows, p, deep, panel_a);
                    WF_(block)(rows, columns, deep, alpha, panel_a, panel_b, c, i, j);
                }
#pragma omp barrier
            }
        }
        wf_leave(&region);
    }
    wf_join(&region);
    wf_heap_give(ctx, memory, bytes);
    return true;
}

/* `C += alpha * A * B` for one column: sums along rows of A, or a block of C's elements at once along its columns. */
static TAFFETA_UNUSED TAFFETA_KERNEL void WF_(own_column)(const taffeta_ctx *ctx, int64_t m, int64_t k, WF_T alpha, WF_(matrix) a,
                                                  WF_(matrix) b, WF_(matrix) c) {
    const int threads = wf_in_parallel() || (double)m * (double)k < WF_WORTH_THREADS ? 1 : wf_threads(ctx);
    const bool along_rows = llabs(a.columns) <= llabs(a.rows);
    wf_region region = wf_fork(threads);
#pragma omp parallel num_threads(region.threads)
    {
        wf_enter(&region);
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < m; i += WF_HEIGHT) {
            const int64_t rows = wf_least(WF_HEIGHT, m - i);
            WF_T sums[WF_HEIGHT] = {0};
            const WF_T *at = a.at + i * a.rows;
            if (along_rows) {
                for (int64_t r = 0; r < rows; r++, at += a.rows) {
                    WF_T sum = 0;
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
                    const WF_T x = b.at[p * b.rows];
                    if (a.rows == 1) {
                        for (int64_t r = 0; r < rows; r++) sums[r] += at[r] * x;
                    } else {
                        for (int64_t r = 0; r < rows; r++) sums[r] += at[r * a.rows] * x;
                    }
                }
            }
            for (int64_t r = 0; r < rows; r++) c.at[(i + r) * c.rows] += alpha * sums[r];
        }
        wf_leave(&region);
    }
    wf_join(&region);
}

/* `C += alpha * A * B` for A of m rows and k columns and B of n columns, none of which is 0. False if it was not done,
   and nothing was written: the loops that mean it then run. */
static TAFFETA_UNUSED bool WF_(product)(taffeta_ctx *ctx, int64_t m, int64_t n, int64_t k, WF_T alpha, WF_(matrix) a, WF_(matrix) b,
                                     WF_(matrix) c) {
    /* Libraries do not multiply by a zero, even if it meets an infinity. */
    if (alpha == 0) return false;
    /* Rows of C are the dimension that is farther apart; a column is no row. */
    if ((n > 1 && m == 1) || (n > 1 && llabs(c.columns) > llabs(c.rows))) {
        const int64_t rows = m;
        const WF_(matrix) left = a;
        m = n, n = rows;
        a = b, b = left;
        const int64_t steps[3] = {a.rows, b.rows, c.rows};
        a.rows = a.columns, a.columns = steps[0];
        b.rows = b.columns, b.columns = steps[1];
        c.rows = c.columns, c.columns = steps[2];
    }
    /* Every element of C is one sum. */
    if ((n > 1 && c.columns == 0) || (m > 1 && (c.rows == 0 || llabs(c.rows) / n < llabs(c.columns) * (n > 1)))) return false;
    if (WF_(blas)(ctx, m, n, k, alpha, a, b, c)) return true;
    if (n > 1) return WF_(own)(ctx, m, n, k, alpha, a, b, c);
    WF_(own_column)(ctx, m, k, alpha, a, b, c);
    return true;
}

#undef WF_LANES
#undef WF_COLUMNS
#endif
