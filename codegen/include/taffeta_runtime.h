/*
 * taffeta_runtime.h: run-time library of generated code. Included by generated C only; callers include taffeta.h.
 *
 * All functions are static, except taffeta_ctx_release and taffeta_free, which are weak, so that any number of
 * generated files link into one program. The functions that are not inlined take most of the time of a compilation, so
 * Taffeta compiles them once (TAFFETA_RUNTIME_OBJECT), and links the programs that it runs itself with the object file:
 * with TAFFETA_LINKED, this header defines inlined functions alone.
 */
#ifndef TAFFETA_RUNTIME_H
#define TAFFETA_RUNTIME_H

/* Adjacent conditional loads: gcc before 12.4 and 13.3 gives lanes of its masked loads the masks of other lanes
   (https://gcc.gnu.org/PR114375). Set before all functions, so that they can be inlined into each other. */
#if defined(TAFFETA_CONDITIONAL_LOADS) && defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ < 12 || (__GNUC__ == 12 && __GNUC_MINOR__ < 4) || (__GNUC__ == 13 && __GNUC_MINOR__ < 3)
#pragma GCC optimize("no-tree-loop-if-convert")
#endif
#endif

/* Selections of floats, as in `max` and in the clamps of `exp`: gcc would duplicate all computations on the result in
   two branches (partial redundancy elimination, jump threading), and vectorise them with a selection each. */
#if defined(TAFFETA_SELECTIONS) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-pre", "no-thread-jumps")
#endif

#include "taffeta.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* Returns whether the compiler knows the value. */
#ifdef __GNUC__
#define taf_is_known(x) __builtin_constant_p(x)
#else
#define taf_is_known(x) 0
#endif
#define TAFFETA_UNUSED __attribute__((unused))
#define TAFFETA_COLD __attribute__((cold, noinline, unused))

/* Declare functions and variables that are defined at the end of this header. */
#ifdef TAFFETA_LINKED
#define TAFFETA_RUNTIME extern __attribute__((visibility("hidden")))
#define TAFFETA_STATE extern __attribute__((visibility("hidden")))
#else
#define TAFFETA_RUNTIME static TAFFETA_UNUSED
#define TAFFETA_STATE static TAFFETA_UNUSED
#endif

/* Maximum size: larger arrays exceed any memory, and 64-bit index arithmetic cannot overflow below it. */
#define TAFFETA_MAX_SIZE (INT64_C(1) << 47)

/* Vector versions of mathematical functions (glibc's libmvec, at most 4 ulp), declared here because glibc declares them
   only for -ffast-math. */
#define TAFFETA_SIMD
#define TAFFETA_SIMD_2_35
#if !defined(TAFFETA_NO_LIBMVEC) && defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 22)
#undef TAFFETA_SIMD
#define TAFFETA_SIMD __attribute__((simd("notinbranch"), const, nothrow))
#define TAFFETA_LIBMVEC 1
#endif
#if __GLIBC_PREREQ(2, 35)
#undef TAFFETA_SIMD_2_35
#define TAFFETA_SIMD_2_35 TAFFETA_SIMD
#endif
#endif
#ifndef TAFFETA_LIBMVEC
#define TAFFETA_LIBMVEC 0
#endif

/* Kernels are separate functions, so that `restrict` of their parameters takes effect and profiles show them. */
#define TAFFETA_KERNEL __attribute__((noinline))

/* Whether the compiler supports shuffles of vectors (gcc 12, clang). */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define TAFFETA_SHUFFLES 1
#endif
#endif
#ifndef TAFFETA_SHUFFLES
#define TAFFETA_SHUFFLES 0
#endif

/* Whether the processor converts single 16-bit floats, and the compiler has the builtins. */
#if defined(__F16C__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_vcvtph2ps) && __has_builtin(__builtin_ia32_vcvtps2ph)
#define TAFFETA_F16C 1
#endif
#endif

/* Body of a parallel loop: a function for the sake of `restrict`, inlined at no cost. */
#define TAFFETA_BODY inline __attribute__((always_inline))

#define TAFFETA_ALIGNED __attribute__((aligned(64)))

/* Records the first error of a call; threads of a parallel loop may call it concurrently. */
TAFFETA_RUNTIME TAFFETA_COLD __attribute__((format(printf, 5, 6))) int taf_fail(taffeta_ctx *ctx, int status,
                                                            int site, int line,
                                                                                const char *format, ...);

/* Returns the recorded error, possibly of another thread. */
static inline TAFFETA_UNUSED int taf_failed(taffeta_ctx *ctx) {
    int status;
#pragma omp atomic read
    status = ctx->status;
    return status;
}

/* Returns whether the caller cancelled the call. */
static inline TAFFETA_UNUSED bool taf_cancelled(const taffeta_ctx *ctx) {
    return __builtin_expect(ctx->cancel != NULL, 0) && *ctx->cancel != 0;
}

/* Records that the caller cancelled the call. */
static inline TAFFETA_UNUSED int taf_cancel(taffeta_ctx *ctx) {
    return taf_fail(ctx, TAFFETA_ERROR_CANCELLED, -1, 0, "the caller cancelled the call");
}

/* Maximum number of threads of a parallel loop: OpenMP run-time libraries keep teams on the stack, and crash
   beyond it. */
#define TAFFETA_MAX_THREADS 1024

/* A forked child has only the thread that forked it, but OpenMP's library waits forever for the threads of its team.
   Therefore loops run on one thread in a child whose parent had several threads of any kind. */
#ifdef _OPENMP
TAFFETA_STATE int taf_lost_threads;
#endif

/* Returns the number of threads of a parallel loop. */
static inline TAFFETA_UNUSED int taf_threads(const taffeta_ctx *ctx) {
#ifdef _OPENMP
    if (taf_lost_threads) return 1;
    const int threads = ctx->threads > 0 ? ctx->threads : omp_get_max_threads();
    return threads < TAFFETA_MAX_THREADS ? threads : TAFFETA_MAX_THREADS;
#else
    (void)ctx;
    return 1;
#endif
}

/* Maximum bytes of the partial results of all threads but the first; a loop that would need more runs on fewer
   threads. */
#define TAFFETA_PARTIAL_BYTES ((size_t)1 << 28)

/* Returns the number of threads of a parallel loop in which each thread but the first needs `bytes`. */
static inline TAFFETA_UNUSED int taf_team(const taffeta_ctx *ctx, size_t bytes) {
    int threads = taf_threads(ctx);
    if (bytes > 0 && (size_t)(threads > 1 ? threads - 1 : 0) > TAFFETA_PARTIAL_BYTES / bytes)
        threads = 1 + (int)(TAFFETA_PARTIAL_BYTES / bytes);
    return threads;
}

/* Return the number of this thread in its team, and the size of the team. */
static inline TAFFETA_UNUSED int taf_thread(void) {
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

static inline TAFFETA_UNUSED int taf_team_size(void) {
#ifdef _OPENMP
    return omp_get_num_threads();
#else
    return 1;
#endif
}

/* Adaptation of parallel regions to busy cores.

   The threads of a team begin and end each region together, and wait for each other by spinning, for milliseconds. If
   other programs or thread pools occupy cores, a descheduled thread delays all others, and two threads on one core
   delay each other by a time slice (about 4 ms) per barrier: loops of microseconds take a hundred times as long.
   Therefore each region measures its stall: the time until the last thread has arrived, and from the end of the last
   thread's work until all continue. Load imbalance is not counted. If stalls cost more than threads gain, later regions
   run on half as many threads, and the others are tried again after a pause. Partial results do not depend on it
   (`taf_part`). */
typedef struct taf_region {
    int threads;     /* of the team */
    double forked;   /* time of the fork in seconds; 0: not measured */
    double last_in;  /* arrival of the last thread, if one was late */
    double last_out; /* end of the last thread's work, unless it was early */
    /* Of a region around a sequential loop: */
    double until;           /* time after which it pauses; 0: not measured */
    double met[2];          /* last arrival at the latest even and odd barrier */
    double still, still_at; /* total stall at barriers, and the end of the last one */
    int64_t pause, failed;  /* barrier at which it pauses, or fails; 0: none */
} taf_region;

#ifdef _OPENMP
/* Measurements of the regions that a thread opened, in seconds. */
typedef struct taf_crowd {
    int halvings;        /* number of halvings of the team */
    double lost;         /* recent stalls minus the gain by threads */
    double pause, until; /* duration of the current halving, and its end */
} taf_crowd;
TAFFETA_STATE __thread taf_crowd taf_crowded;

/* Delay beyond that of a sleeping or new thread. */
#define TAF_LATE 0.2e-3
/* Loss at which the team is halved. */
#define TAF_PATIENCE 5e-3
/* Assumed gain of a region per second of progress, and the maximum gain that offsets later losses. */
#define TAF_GAIN 3.0
#define TAF_MOST_GAINED 10e-3
/* Length of the first pause relative to the stall; each later pause is twice as long, up to the maximum. */
#define TAF_FIRST_PAUSE 8.0
#define TAF_LONGEST_PAUSE 0.5

/* Time after which a region around a sequential loop ends, so that the next one may have another team. */
#define TAF_SPAN 1e-3

/* Starts a region of at most `threads` threads. */
TAFFETA_RUNTIME taf_region taf_fork(int threads);

static inline TAFFETA_UNUSED void taf_latest(double *at, double now) {
    double seen;
    __atomic_load(at, &seen, __ATOMIC_RELAXED);
    while (seen < now && !__atomic_compare_exchange(at, &seen, &now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

/* Marks the arrival of a thread. */
static inline TAFFETA_UNUSED void taf_enter(taf_region *region) {
    if (region->forked == 0) return;
    const double now = omp_get_wtime();
    if (now - region->forked > TAF_LATE) taf_latest(&region->last_in, now);
}

/* Marks the end of a thread's work. */
static inline TAFFETA_UNUSED void taf_leave(taf_region *region) {
    if (region->forked == 0) return;
    const double now = omp_get_wtime();
    if (now - region->forked > TAF_LATE) taf_latest(&region->last_out, now);
}

/* Adds the stall between the last arrival at a barrier and the continuation of a thread. Stalls may overlap. */
TAFFETA_RUNTIME TAFFETA_COLD void taf_stood_still(taf_region *region, double from, double now);

/* Barrier of the threads of a region; each thread counts its barriers. */
static inline TAFFETA_UNUSED void taf_meet(taf_region *region, int64_t *meetings) {
    const int64_t meeting = ++*meetings;
    if (region->until == 0) {
#pragma omp barrier
        return;
    }
    double came = omp_get_wtime(), last;
    /* The last arrival overwrites the others. No thread reaches the next barrier but one before all have left this
       one. */
    __atomic_store(&region->met[meeting & 1], &came, __ATOMIC_RELAXED);
    if (came > region->until && taf_thread() == 0 && region->pause == 0)
        __atomic_store_n(&region->pause, meeting, __ATOMIC_RELAXED);
#pragma omp barrier
    const double now = omp_get_wtime();
    if (now - came <= TAF_LATE) return;
    __atomic_load(&region->met[meeting & 1], &last, __ATOMIC_RELAXED);
    if (now - last > TAF_LATE) taf_stood_still(region, last, now);
}

/* Returns whether a region ends with this iteration, equally for all threads: a pause that a faster thread sets at the
   next barrier is not counted. A cancelled call ends it with the next iteration. */
static inline TAFFETA_UNUSED bool taf_pauses(const taffeta_ctx *ctx, taf_region *region, int64_t meetings) {
    const int64_t pause = __atomic_load_n(&region->pause, __ATOMIC_RELAXED);
    if (pause == 0 && taf_thread() == 0 && taf_cancelled(ctx))
        __atomic_store_n(&region->pause, meetings + 1, __ATOMIC_RELAXED);
    return pause != 0 && pause <= meetings;
}

/* Ends a region: all threads are done. */
TAFFETA_RUNTIME void taf_join(const taf_region *region);
#else
static inline TAFFETA_UNUSED taf_region taf_fork(int threads) {
    taf_region region = {.threads = threads};
    return region;
}
static inline TAFFETA_UNUSED void taf_enter(taf_region *region) { (void)region; }
static inline TAFFETA_UNUSED void taf_leave(taf_region *region) { (void)region; }
static inline TAFFETA_UNUSED void taf_join(const taf_region *region) { (void)region; }
static inline TAFFETA_UNUSED void taf_meet(taf_region *region, int64_t *meetings) {
    (void)region;
    ++*meetings;
}
static inline TAFFETA_UNUSED bool taf_pauses(const taffeta_ctx *ctx, taf_region *region, int64_t meetings) {
    (void)region;
    (void)meetings;
    return taf_cancelled(ctx);
}
#endif

/* Barrier after statements that may fail: returns whether one failed, equally for all threads. */
static inline TAFFETA_UNUSED bool taf_meet_failed(taffeta_ctx *ctx, taf_region *region, int64_t *meetings) {
    /* A thread that failed arrives here as well. */
    if (taf_failed(ctx) != TAFFETA_OK) __atomic_store_n(&region->failed, *meetings + 1, __ATOMIC_RELAXED);
    taf_meet(region, meetings);
    const int64_t failed = __atomic_load_n(&region->failed, __ATOMIC_RELAXED);
    return failed != 0 && failed <= *meetings;
}

/* Starts a region of exactly `threads` threads, for results that depend on their number. */
static inline TAFFETA_UNUSED taf_region taf_fork_all(int threads) {
    taf_region region = {.threads = threads};
    return region;
}

/* Returns the begin of part `k` of `parts` of the iterations; the first parts take the remainder. */
static inline TAFFETA_UNUSED int64_t taf_part(int64_t iterations, int k, int parts) {
    const int64_t each = iterations / parts, more = iterations % parts;
    return each * k + (k < more ? k : more);
}

/* Returns the trip count of range(begin, end, step), for a nonzero step. */
static inline TAFFETA_UNUSED uint64_t taf_trips(int64_t begin, int64_t end, int64_t step) {
    if (step > 0) return begin < end ? ((uint64_t)end - (uint64_t)begin - 1) / (uint64_t)step + 1 : 0;
    return begin > end ? ((uint64_t)begin - (uint64_t)end - 1) / (0 - (uint64_t)step) + 1 : 0;
}

/* Formats a float for a message: with the fewest digits, but at least 6, that read back as the same number. */
TAFFETA_RUNTIME TAFFETA_COLD const char *taf_show(char *text, double value, bool is_f32);

/* Line that is being assembled. */
typedef struct taf_line {
    char *text;
    size_t length, capacity;
} taf_line;

/* Appends text; without memory for it, does nothing. */
TAFFETA_RUNTIME TAFFETA_COLD void taf_line_text(taf_line *line, const char *text, size_t length);

/* Appends a value. */
TAFFETA_RUNTIME TAFFETA_COLD __attribute__((format(printf, 2, 3))) void taf_line_value(taf_line *line,
                                                            const char *format, ...);

/* Converts the bits of an f16 to its number. */
TAFFETA_RUNTIME TAFFETA_COLD double taf_half(uint16_t bits);

/* Appends element `k` of an array. */
TAFFETA_RUNTIME TAFFETA_COLD void taf_line_element(taf_line *line, const void *data, int dtype, int64_t k);

/* Larger tensors are abbreviated to this many elements at either end of each dimension. */
#define TAFFETA_MOST_SHOWN 1000
#define TAFFETA_EDGE 3

/* Appends the part of a tensor at element `start`, from dimension `d` on. */
TAFFETA_RUNTIME TAFFETA_COLD void taf_line_below(taf_line *line, const void *data, int dtype, int n_dims,
                                                 const int64_t *dims, int d,
                                                 int64_t start, bool all);

/* Appends a tensor, formatted as by the interpreter. */
TAFFETA_RUNTIME TAFFETA_COLD void taf_line_tensor(taf_line *line, const void *data, int dtype, int n_dims,
                                                  const int64_t *dims);

/* Prints the line. Threads of a parallel loop may call it concurrently. */
TAFFETA_RUNTIME TAFFETA_COLD void taf_print(taffeta_ctx *ctx, taf_line *line);

/* Arithmetic on sizes, in which INT64_MIN marks an overflow. */
static inline TAFFETA_UNUSED int64_t taf_dim_if(int64_t operand, int64_t value) {
    return operand == INT64_MIN ? INT64_MIN : value;
}

static inline TAFFETA_UNUSED int64_t taf_dim_add(int64_t a, int64_t b) {
    int64_t c;
    return a == INT64_MIN || b == INT64_MIN || __builtin_add_overflow(a, b, &c) ? INT64_MIN : c;
}

static inline TAFFETA_UNUSED int64_t taf_dim_sub(int64_t a, int64_t b) {
    int64_t c;
    return a == INT64_MIN || b == INT64_MIN || __builtin_sub_overflow(a, b, &c) ? INT64_MIN : c;
}

static inline TAFFETA_UNUSED int64_t taf_dim_mul(int64_t a, int64_t b) {
    int64_t c;
    return a == INT64_MIN || b == INT64_MIN || __builtin_mul_overflow(a, b, &c) ? INT64_MIN : c;
}

/* Local tensors are padded to multiples of this, so that the next one in the arena is aligned. With AddressSanitizer,
   separate allocations end with their elements, so that it detects accesses one element beyond. */
#if defined(__SANITIZE_ADDRESS__)
#define TAFFETA_LOCAL_UNIT ((size_t)1)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TAFFETA_LOCAL_UNIT ((size_t)1)
#endif
#endif
#ifndef TAFFETA_LOCAL_UNIT
#define TAFFETA_LOCAL_UNIT ((size_t)64)
#endif

/* Computes the bytes of a tensor, rounded up to the unit. Returns false if a size is negative or there are more than
   TAFFETA_MAX_SIZE elements, counting sizes of 0 as 1; index arithmetic relies on that. */
static inline TAFFETA_UNUSED bool taf_room(const int64_t *dims, int n_dims, size_t size, size_t *bytes) {
    int64_t count = 1;
    bool empty = false;
    *bytes = 0;
    for (int d = 0; d < n_dims; d++) {
        if (dims[d] < 0) return false;
        empty |= dims[d] == 0;
        if (__builtin_mul_overflow(count, dims[d] == 0 ? 1 : dims[d], &count) || count > TAFFETA_MAX_SIZE) return false;
    }
    if (!empty) *bytes = ((size_t)count * size + TAFFETA_LOCAL_UNIT - 1) & ~(TAFFETA_LOCAL_UNIT - 1);
    return true;
}

/* Checks that the sizes of a local tensor are not negative and their product fits. */
static inline TAFFETA_UNUSED bool taf_local(taffeta_ctx *ctx, int site, int line, const char *where, const char *name,
                                            const int64_t *dims, int n_dims, size_t size, size_t *bytes) {
    size_t ignored;
    if (taf_room(dims, n_dims, size, bytes ? bytes : &ignored)) return true;
    for (int d = 0; d < n_dims; d++) {
        if (dims[d] < 0 && dims[d] != INT64_MIN) {
            taf_fail(ctx, TAFFETA_ERROR_SIZE, site, line, "%s: dimension %d of `%s` has the negative size %" PRId64, where, d,
                      name, dims[d]);
            return false;
        }
    }
    taf_fail(ctx, TAFFETA_ERROR_SIZE, site, line, "%s: the size of `%s` overflows: a tensor has at most 2^47 elements", where, name);
    return false;
}

/* Places a local tensor of these sizes at `start` of the arena, which grows to hold it. Returns its end. */
static inline TAFFETA_UNUSED size_t taf_put(size_t start, const int64_t *dims, int n_dims, size_t size, size_t *arena) {
    size_t bytes, end;
    taf_room(dims, n_dims, size, &bytes);
    bytes = (bytes + 63) & ~(size_t)63;
    if (__builtin_add_overflow(start, bytes, &end)) end = SIZE_MAX;
    if (end > *arena) *arena = end;
    return end;
}

/* Places a part of `bytes` for each thread of a parallel loop at `start` of the arena. Returns the end of the last. */
static inline TAFFETA_UNUSED size_t taf_put_threads(const taffeta_ctx *ctx, size_t start, size_t bytes) {
    size_t all, end;
    if (__builtin_mul_overflow((size_t)taf_threads(ctx), bytes, &all)) return SIZE_MAX;
    if (__builtin_add_overflow(start, all, &end)) return SIZE_MAX;
    return end;
}

/* Allocates memory aligned to 64 bytes; returns NULL on failure. */
TAFFETA_RUNTIME __attribute__((malloc, alloc_size(1))) void *taf_aligned(size_t bytes);

/* Makes room for `bytes` in the arena. */
TAFFETA_RUNTIME int taf_reserve(taffeta_ctx *ctx, size_t bytes);

/* Local tensor in the arena: location of its declaration, name, and bytes. */
typedef struct {
    int site, line;
    const char *where, *name;
    size_t bytes;
} taf_arena_slot;

/* Returns the bytes of a tensor with these sizes. */
static inline TAFFETA_UNUSED size_t taf_bytes(const int64_t *dims, int n_dims, size_t size) {
    size_t bytes;
    return taf_room(dims, n_dims, size, &bytes) ? bytes : 0;
}

/* Reports that an arena of `needed` bytes cannot be allocated, with the largest tensor in it. */
TAFFETA_RUNTIME TAFFETA_COLD int taf_no_memory(taffeta_ctx *ctx, const taf_arena_slot *slots, int n_slots,
                                               size_t needed);

/* Allocates memory for a tensor whose size is known only at its declaration; returns NULL on failure. */
TAFFETA_RUNTIME __attribute__((malloc, alloc_size(2))) void *taf_heap_take(taffeta_ctx *ctx, size_t bytes);

TAFFETA_RUNTIME void taf_heap_give(taffeta_ctx *ctx, void *p, size_t bytes);

/* Starts a call: checks the context and the number of arguments. */
TAFFETA_RUNTIME int taf_begin(taffeta_ctx *ctx, const taffeta_tensor *args, size_t n_args, size_t expected);

TAFFETA_RUNTIME const char *taf_dtype_name(int32_t dtype);

TAFFETA_RUNTIME size_t taf_dtype_size(int32_t dtype);

/* Requirements of an entry on an argument, besides its sizes. */
typedef struct taf_spec {
    const char *name;
    int32_t dtype;
    int32_t ndim;
    char passing; /* 'i' in, 'x' inout, 'r' result, 'm' array that the program makes */
} taf_spec;

/* Checks the type and number of dimensions of an argument, and the sizes of a parameter. */
TAFFETA_RUNTIME int taf_check_tensor(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *t);

/* Checks all arguments, which must be dense. */
TAFFETA_RUNTIME int taf_check_args(taffeta_ctx *ctx, const taf_spec *specs, const taffeta_tensor *args, size_t n_args);

/* Determines a size: from `sizes` if given there, else `fixed`, which is -1 if no parameter determines it. */
TAFFETA_RUNTIME int taf_bind_size(taffeta_ctx *ctx, const char *name, const int64_t *sizes, size_t k, int64_t fixed,
                                  int64_t *value);

/* Checks a size that is compiled in. */
TAFFETA_RUNTIME int taf_known_size(taffeta_ctx *ctx, const char *name, int64_t value, int64_t known);

/* Checks that a dimension of an argument has size `expected`, written `what` in the program. For a result without data,
   and if the call is only planned, writes the dimension. */
TAFFETA_RUNTIME int taf_check_dim(taffeta_ctx *ctx, const taf_spec *s, taffeta_tensor *t, bool planned, int32_t d,
                                  int64_t expected, const char *what);

/* Computes the bytes of arguments whose shapes are checked. */
TAFFETA_RUNTIME int taf_check_extents(taffeta_ctx *ctx, const taf_spec *specs, const taffeta_tensor *args,
                                      size_t n_args,
                                      size_t *bytes);

/* Checks that the data of arguments is not NULL, aligned, row-major and contiguous, and that outputs share no memory
   with other arguments. `bytes` may be rounded up, so the check for sharing computes exact sizes. */
TAFFETA_RUNTIME int taf_check_data(taffeta_ctx *ctx, const taf_spec *specs, const taffeta_tensor *args, size_t n_args,
                                   const size_t *bytes);

/* Allocates, resizes or frees memory of results, as taffeta_alloc_fn does. */
TAFFETA_RUNTIME void *taf_result_memory(taffeta_alloc_fn *alloc, void *alloc_data, void *old, size_t old_bytes,
                                        size_t bytes, size_t align);

/* Changes the length of an array of elements of `size` bytes, which has `*bytes`; `result`: whether it is made for the
   caller. Returns the array. If there is no memory, it stays, and so do `*bytes`. */
TAFFETA_RUNTIME void *taf_resize(taffeta_ctx *ctx, bool result, void *data, size_t *bytes, int64_t length, size_t size);

/* Returns the length of an array after it has grown to at least `least` elements. */
static inline TAFFETA_UNUSED int64_t taf_grown(int64_t length, int64_t least) {
    const int64_t twice = length > TAFFETA_MAX_SIZE / 2 ? TAFFETA_MAX_SIZE : 2 * length;
    return least > twice ? least : twice;
}

/* Gives an array that the program has made to the caller. */
TAFFETA_RUNTIME void taf_hand_over(const taffeta_ctx *ctx, taffeta_tensor *to, void *data, int64_t length);

/* Allocates the results without data; `made` marks them, and arrays that the program makes. */
TAFFETA_RUNTIME int taf_make_results(taffeta_ctx *ctx, const taf_spec *specs, taffeta_tensor *args, size_t n_args,
                                     const size_t *bytes, bool *made);

/* Frees the results that the callee allocated, after an error. */
TAFFETA_RUNTIME void taf_drop_results(const taffeta_ctx *ctx, const taf_spec *specs, taffeta_tensor *args,
                                      size_t n_args,
                                      const bool *made);

/* Sorts the integers, which are not negative, from `begin` up to `end`: short lists by insertion, others by digits, and
   in place if there is no memory. */
TAFFETA_RUNTIME void taf_sort_u8(uint8_t *list, int64_t begin, int64_t end);
TAFFETA_RUNTIME void taf_sort_u16(uint16_t *list, int64_t begin, int64_t end);
TAFFETA_RUNTIME void taf_sort_i32(int32_t *list, int64_t begin, int64_t end);
TAFFETA_RUNTIME void taf_sort_i64(int64_t *list, int64_t begin, int64_t end);

/* Sorts the integers of a type, which are not negative, from `begin` up to `end`, and moves the values, of `size` bytes,
   with them; equal ones stay in order. Returns whether there was memory for it. */
TAFFETA_RUNTIME bool taf_sort_with(void *list, int32_t type, void *values, size_t size, int64_t begin, int64_t end);

/* Sets `numbers` to the numbers from 0 to `n` in the order of their keys, integers that are not negative: the first key
   counts most, and numbers with equal keys stay in order. Returns whether there was memory for it. */
TAFFETA_RUNTIME bool taf_order(int64_t *numbers, int64_t n, const void *const *keys, const int32_t *types, int n_keys);

/* Definitions of the functions declared above. */
#if !defined(TAFFETA_LINKED) || defined(TAFFETA_RUNTIME_OBJECT)
#include <stdarg.h>
#ifdef _OPENMP
#include <pthread.h>
#include <sys/stat.h>

#ifdef TAFFETA_RUNTIME_OBJECT
int taf_lost_threads;
__thread taf_crowd taf_crowded;
#endif

static int taf_has_threads;

/* The link count of a directory is 2 plus its number of subdirectories; other counts are taken for several threads. */
static TAFFETA_COLD void taf_before_fork(void) {
    struct stat tasks;
    taf_has_threads = stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink != 3;
}

static TAFFETA_COLD void taf_after_fork(void) {
    if (taf_has_threads) taf_lost_threads = 1;
}

__attribute__((constructor)) static TAFFETA_COLD void taf_expect_forks(void) {
    pthread_atfork(taf_before_fork, NULL, taf_after_fork);
}

taf_region taf_fork(int threads) {
    taf_region region = {.threads = threads};
    if (threads <= 1 || omp_in_parallel()) return region;
    taf_crowd *crowd = &taf_crowded;
    const double now = omp_get_wtime();
    if (crowd->halvings > 0) {
        if (now >= crowd->until) {
            /* Trial of a larger team: any further loss halves it again. */
            crowd->halvings--;
            crowd->lost = TAF_PATIENCE;
            crowd->until = now + crowd->pause;
        }
        region.threads = threads >> crowd->halvings > 1 ? threads >> crowd->halvings : 1;
    }
    if (region.threads > 1) region.forked = now;
    region.until = now + TAF_SPAN;
    return region;
}

void taf_stood_still(taf_region *region, double from, double now) {
#pragma omp critical(taf_still)
    {
        if (from < region->still_at) from = region->still_at;
        if (from < now) {
            region->still += now - from;
            region->still_at = now;
        }
    }
}

void taf_join(const taf_region *region) {
    if (region->forked == 0) return;
    taf_crowd *crowd = &taf_crowded;
    const double now = omp_get_wtime(), all = now - region->forked;
    double still = region->still;
    if (region->last_in != 0) still += region->last_in - region->forked;
    if (region->last_out != 0) still += now - region->last_out;
    if (still > all) still = all;
    crowd->lost += still - TAF_GAIN * (all - still);
    if (crowd->lost < 0) crowd->pause = 0;
    if (crowd->lost < -TAF_MOST_GAINED) crowd->lost = -TAF_MOST_GAINED;
    if (still <= TAF_LATE || crowd->lost <= TAF_PATIENCE) return;
    crowd->pause = crowd->pause == 0 ? TAF_FIRST_PAUSE * still : 2 * crowd->pause;
    if (crowd->pause > TAF_LONGEST_PAUSE) crowd->pause = TAF_LONGEST_PAUSE;
    crowd->until = now + crowd->pause;
    crowd->halvings++;
    crowd->lost = 0;
}
#endif

int taf_fail(taffeta_ctx *ctx, int status, int site, int line,
             const char *format, ...) {
#pragma omp critical(taf_fail)
    if (ctx->status == TAFFETA_OK) {
        va_list values;
        va_start(values, format);
        vsnprintf(ctx->message, sizeof ctx->message, format, values);
        va_end(values);
        ctx->line = line;
        ctx->site = site;
#pragma omp atomic write
        ctx->status = status;
    }
    return status;
}

const char *taf_show(char *text, double value, bool is_f32) {
    if (value != value) return "nan";
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value);
        if (is_f32 ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value) break;
    }
    return text;
}

void taf_line_text(taf_line *line, const char *text, size_t length) {
    if (length > line->capacity - line->length) {
        size_t capacity = 2 * line->capacity + length + 64;
        char *grown = (char *)realloc(line->text, capacity);
        if (grown == NULL) return;
        line->text = grown;
        line->capacity = capacity;
    }
    memcpy(line->text + line->length, text, length);
    line->length += length;
}

void taf_line_value(taf_line *line, const char *format, ...) {
    char text[64];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    taf_line_text(line, text, strlen(text));
}

double taf_half(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits >> 15 ? -1.0 : 1.0;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    return sign * (exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25));
}

void taf_line_element(taf_line *line, const void *data, int dtype, int64_t k) {
    char text[32];
    float wide;
    uint32_t bits;
    switch (dtype) {
    case TAFFETA_BOOL: taf_line_value(line, "%s", ((const bool *)data)[k] ? "True" : "False"); break;
    case TAFFETA_I8: taf_line_value(line, "%d", ((const int8_t *)data)[k]); break;
    case TAFFETA_I16: taf_line_value(line, "%d", ((const int16_t *)data)[k]); break;
    case TAFFETA_I32: taf_line_value(line, "%" PRId32, ((const int32_t *)data)[k]); break;
    case TAFFETA_I64: taf_line_value(line, "%" PRId64, ((const int64_t *)data)[k]); break;
    case TAFFETA_U8: taf_line_value(line, "%u", ((const uint8_t *)data)[k]); break;
    case TAFFETA_U16: taf_line_value(line, "%u", ((const uint16_t *)data)[k]); break;
    case TAFFETA_U32: taf_line_value(line, "%" PRIu32, ((const uint32_t *)data)[k]); break;
    case TAFFETA_U64: taf_line_value(line, "%" PRIu64, ((const uint64_t *)data)[k]); break;
    case TAFFETA_F16: taf_line_value(line, "%s", taf_show(text, taf_half(((const uint16_t *)data)[k]), true)); break;
    case TAFFETA_BF16:
        bits = (uint32_t)((const uint16_t *)data)[k] << 16;
        memcpy(&wide, &bits, sizeof wide);
        taf_line_value(line, "%s", taf_show(text, wide, true));
        break;
    case TAFFETA_F32: taf_line_value(line, "%s", taf_show(text, ((const float *)data)[k], true)); break;
    default: taf_line_value(line, "%s", taf_show(text, ((const double *)data)[k], false)); break;
    }
}

void taf_line_below(taf_line *line, const void *data, int dtype, int n_dims, const int64_t *dims, int d,
                    int64_t start, bool all) {
    if (d == n_dims) {
        taf_line_element(line, data, dtype, start);
        return;
    }
    int64_t stride = 1;
    for (int e = d + 1; e < n_dims; e++) stride *= dims[e];
    taf_line_text(line, "[", 1);
    for (int64_t k = 0; k < dims[d]; k++) {
        if (k > 0) {
            for (int e = d + 1; e < n_dims; e++) taf_line_text(line, "\n", 1);
            for (int e = 0; e < (d + 1 < n_dims ? d + 1 : 1); e++) taf_line_text(line, " ", 1);
        }
        if (!all && k == TAFFETA_EDGE && dims[d] > 2 * TAFFETA_EDGE) {
            taf_line_text(line, "...", 3);
            k = dims[d] - TAFFETA_EDGE - 1;
            continue;
        }
        taf_line_below(line, data, dtype, n_dims, dims, d + 1, start + k * stride, all);
    }
    taf_line_text(line, "]", 1);
}

void taf_line_tensor(taf_line *line, const void *data, int dtype, int n_dims, const int64_t *dims) {
    int64_t count = 1;
    for (int d = 0; d < n_dims; d++) {
        if (dims[d] <= 0) {
            taf_line_text(line, "[]", 2);
            return;
        }
        count = count > TAFFETA_MOST_SHOWN ? count : count * dims[d];
    }
    taf_line_below(line, data, dtype, n_dims, dims, 0, 0, count <= TAFFETA_MOST_SHOWN);
}

void taf_print(taffeta_ctx *ctx, taf_line *line) {
    if (ctx->print == NULL) taf_line_text(line, "\n", 1);
#pragma omp critical(taf_print)
    if (ctx->print != NULL)
        ctx->print(ctx->print_data, line->text != NULL ? line->text : "", line->length);
    else
        fwrite(line->text, 1, line->length, stdout);
    free(line->text);
}

void *taf_aligned(size_t bytes) {
    void *p = NULL;
    return posix_memalign(&p, 64, bytes ? bytes : 64) == 0 ? p : NULL;
}

int taf_reserve(taffeta_ctx *ctx, size_t bytes) {
    if (bytes > ctx->arena_capacity) {
        if (ctx->arena != NULL && ctx->arena_owner == TAFFETA_OWNER_CALLER)
            return taf_fail(ctx, TAFFETA_ERROR_MEMORY, -1, 0, "the arena has %zu bytes, but this call needs %zu",
                             ctx->arena_capacity, bytes);
        free(ctx->arena);
        ctx->arena_capacity = 0;
        ctx->arena_owner = TAFFETA_OWNER_CALLEE;
        ctx->arena = taf_aligned(bytes);
        if (ctx->arena == NULL)
            return taf_fail(ctx, TAFFETA_ERROR_MEMORY, -1, 0, "no memory for %zu bytes of local tensors", bytes);
        ctx->arena_capacity = bytes;
    }
    if (((uintptr_t)ctx->arena & 63) != 0)
        return taf_fail(ctx, TAFFETA_ERROR_LAYOUT, -1, 0, "the arena is not aligned to 64 bytes");
    ctx->memory_used = bytes;
    ctx->memory_peak = bytes;
    return TAFFETA_OK;
}

int taf_no_memory(taffeta_ctx *ctx, const taf_arena_slot *slots, int n_slots,
                  size_t needed) {
    if (ctx->status != TAFFETA_ERROR_MEMORY) return ctx->status;
    const taf_arena_slot *most = &slots[0];
    for (int k = 1; k < n_slots; k++)
        if (slots[k].bytes > most->bytes) most = &slots[k];
    const size_t given = ctx->arena_capacity;
    /* Replaces the recorded error, since this one is more specific. */
    ctx->status = TAFFETA_OK;
    const char *colon = most->where[0] != 0 ? ": " : "";
    if (given > 0)
        return taf_fail(ctx, TAFFETA_ERROR_MEMORY, most->site, most->line,
                         "%s%sno memory for the %zu bytes of `%s`: the arena has %zu bytes, but this call needs %zu",
                         most->where, colon, most->bytes, most->name, given, needed);
    return taf_fail(ctx, TAFFETA_ERROR_MEMORY, most->site, most->line,
                     "%s%sno memory for the %zu bytes of `%s`, of %zu bytes of local tensors", most->where, colon,
                     most->bytes, most->name, needed);
}

void *taf_heap_take(taffeta_ctx *ctx, size_t bytes) {
    void *p = taf_aligned(bytes);
    if (p != NULL) {
#pragma omp critical(taf_heap)
        {
            ctx->memory_used += bytes;
            if (ctx->memory_used > ctx->memory_peak) ctx->memory_peak = ctx->memory_used;
        }
    }
    return p;
}

void taf_heap_give(taffeta_ctx *ctx, void *p, size_t bytes) {
    free(p);
#pragma omp critical(taf_heap)
    ctx->memory_used -= bytes;
}

int taf_begin(taffeta_ctx *ctx, const taffeta_tensor *args, size_t n_args, size_t expected) {
    if (ctx == NULL || ctx->abi != TAFFETA_ABI) return TAFFETA_ERROR_CALL;
    ctx->status = TAFFETA_OK;
    ctx->line = 0;
    ctx->site = -1;
    ctx->memory_used = 0;
    ctx->memory_peak = 0;
    ctx->message[0] = 0;
    if (n_args != expected)
        return taf_fail(ctx, TAFFETA_ERROR_CALL, -1, 0, "%zu arguments given, %zu expected (parameters, then results)", n_args,
                         expected);
    if (args == NULL && expected != 0) return taf_fail(ctx, TAFFETA_ERROR_CALL, -1, 0, "args is NULL");
    return TAFFETA_OK;
}

const char *taf_dtype_name(int32_t dtype) {
    static const char *const names[] = {"bool", "i8",  "i16", "i32",  "i64", "u8", "u16",
                                        "u32",  "u64", "f16", "bf16", "f32", "f64"};
    return dtype >= 0 && dtype <= TAFFETA_F64 ? names[dtype] : "an unknown type";
}

size_t taf_dtype_size(int32_t dtype) {
    static const unsigned char sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};
    return sizes[dtype];
}

int taf_check_tensor(taffeta_ctx *ctx, const taf_spec *s, const taffeta_tensor *t) {
    if (t->dtype != s->dtype)
        return taf_fail(ctx, TAFFETA_ERROR_DTYPE, -1, 0, "`%s` has elements of type %s, expected %s", s->name,
                         taf_dtype_name(t->dtype), taf_dtype_name(s->dtype));
    if (t->ndim != s->ndim)
        return taf_fail(ctx, TAFFETA_ERROR_SHAPE, -1, 0, "`%s` has %d dimensions, expected %d", s->name, (int)t->ndim,
                         (int)s->ndim);
    if (t->shape == NULL && t->ndim != 0)
        return taf_fail(ctx, TAFFETA_ERROR_CALL, -1, 0, "the shape of `%s` is NULL", s->name);
    for (int32_t d = 0; s->passing != 'r' && s->passing != 'm' && d < t->ndim; d++)
        if (t->shape[d] < 0 || t->shape[d] > TAFFETA_MAX_SIZE)
            return taf_fail(ctx, TAFFETA_ERROR_SIZE, -1, 0, "dimension %d of `%s` has size %" PRId64, (int)d, s->name,
                             t->shape[d]);
    return TAFFETA_OK;
}

int taf_check_args(taffeta_ctx *ctx, const taf_spec *specs, const taffeta_tensor *args, size_t n_args) {
    for (size_t k = 0; k < n_args; k++) {
        int status = taf_check_tensor(ctx, &specs[k], &args[k]);
        if (status == TAFFETA_OK && args[k].levels != NULL)
            status = taf_fail(ctx, TAFFETA_ERROR_LAYOUT, -1, 0, "`%s` is a structured tensor, expected a dense one",
                               specs[k].name);
        if (status != TAFFETA_OK) return status;
    }
    return TAFFETA_OK;
}

int taf_bind_size(taffeta_ctx *ctx, const char *name, const int64_t *sizes, size_t k, int64_t fixed,
                  int64_t *value) {
    *value = sizes != NULL && sizes[k] != -1 ? sizes[k] : fixed;
    if (*value == -1 && fixed == -1)
        return taf_fail(ctx, TAFFETA_ERROR_SIZE, -1, 0, "the size `%s` is not given, and no parameter fixes it", name);
    if (*value < 0 || *value > TAFFETA_MAX_SIZE)
        return taf_fail(ctx, TAFFETA_ERROR_SIZE, -1, 0, "the size `%s` is %" PRId64, name, *value);
    return TAFFETA_OK;
}

int taf_known_size(taffeta_ctx *ctx, const char *name, int64_t value, int64_t known) {
    if (value != known)
        return taf_fail(ctx, TAFFETA_ERROR_SHAPE, -1, 0, "the size `%s` is %" PRId64 ", but %" PRId64 " is compiled in", name,
                         value, known);
    return TAFFETA_OK;
}

int taf_check_dim(taffeta_ctx *ctx, const taf_spec *s, taffeta_tensor *t, bool planned, int32_t d,
                  int64_t expected, const char *what) {
    if (expected == INT64_MIN)
        return taf_fail(ctx, TAFFETA_ERROR_SIZE, -1, 0, "the size of `%s` overflows: a tensor has at most 2^47 elements", s->name);
    if (s->passing == 'r') {
        if (expected < 0)
            return taf_fail(ctx, TAFFETA_ERROR_SIZE, -1, 0, "dimension %d of `%s` has the negative size %" PRId64, (int)d,
                             s->name, expected);
        if (planned || t->data == NULL) t->shape[d] = expected;
    }
    if (t->shape[d] != expected)
        return taf_fail(ctx, TAFFETA_ERROR_SHAPE, -1, 0, "dimension %d of `%s` has size %" PRId64 ", but `%s` is %" PRId64,
                         (int)d, s->name, t->shape[d], what, expected);
    return TAFFETA_OK;
}

int taf_check_extents(taffeta_ctx *ctx, const taf_spec *specs, const taffeta_tensor *args, size_t n_args,
                      size_t *bytes) {
    for (size_t k = 0; k < n_args; k++) {
        if (specs[k].passing == 'm') {
            bytes[k] = 0;
            continue;
        }
        if (!taf_room(args[k].shape, args[k].ndim, taf_dtype_size(args[k].dtype), &bytes[k]))
            return taf_fail(ctx, TAFFETA_ERROR_SIZE, -1, 0, "the size of `%s` overflows: a tensor has at most 2^47 elements", specs[k].name);
    }
    return TAFFETA_OK;
}

int taf_check_data(taffeta_ctx *ctx, const taf_spec *specs, const taffeta_tensor *args, size_t n_args,
                   const size_t *bytes) {
    for (size_t k = 0; k < n_args; k++) {
        const taffeta_tensor *t = &args[k];
        if (bytes[k] == 0 || (t->data == NULL && specs[k].passing == 'r')) continue;
        if (t->data == NULL) return taf_fail(ctx, TAFFETA_ERROR_CALL, -1, 0, "the data of `%s` is NULL", specs[k].name);
        if ((uintptr_t)t->data % taf_dtype_size(t->dtype) != 0)
            return taf_fail(ctx, TAFFETA_ERROR_LAYOUT, -1, 0, "the data of `%s` is not aligned to its element type",
                             specs[k].name);
        int64_t stride = 1;
        for (int32_t d = t->ndim - 1; t->strides != NULL && d >= 0; d--) {
            if (t->shape[d] != 1 && t->strides[d] != stride)
                return taf_fail(ctx, TAFFETA_ERROR_LAYOUT, -1, 0,
                                 "`%s` is not row-major and contiguous: dimension %d has stride %" PRId64 ", expected %" PRId64,
                                 specs[k].name, (int)d, t->strides[d], stride);
            stride *= t->shape[d];
        }
    }
    for (size_t k = 0; k < n_args; k++) {
        for (size_t j = 0; specs[k].passing != 'i' && specs[k].passing != 'm' && j < n_args; j++) {
            if (specs[j].passing == 'm') continue;
            uintptr_t a = (uintptr_t)args[k].data, b = (uintptr_t)args[j].data;
            size_t a_bytes = taf_dtype_size(args[k].dtype), b_bytes = taf_dtype_size(args[j].dtype);
            for (int32_t d = 0; d < args[k].ndim; d++) a_bytes *= (size_t)args[k].shape[d];
            for (int32_t d = 0; d < args[j].ndim; d++) b_bytes *= (size_t)args[j].shape[d];
            if (j != k && a != 0 && b != 0 && a_bytes != 0 && b_bytes != 0 && a < b + b_bytes && b < a + a_bytes)
                return taf_fail(ctx, TAFFETA_ERROR_ALIAS, -1, 0, "`%s` is written and shares memory with `%s`", specs[k].name,
                                 specs[j].name);
        }
    }
    return TAFFETA_OK;
}

void *taf_result_memory(taffeta_alloc_fn *alloc, void *alloc_data, void *old, size_t old_bytes,
                        size_t bytes, size_t align) {
    if (alloc != NULL) return alloc(alloc_data, old, old_bytes, bytes, align, 0);
    if (bytes == 0) {
        free(old);
        return NULL;
    }
    /* Memory with more than malloc's alignment is never resized. */
    return align > 16 ? taf_aligned(bytes) : realloc(old, bytes);
}

void *taf_resize(taffeta_ctx *ctx, bool result, void *data, size_t *bytes, int64_t length, size_t size) {
    if (length < 0 || length > TAFFETA_MAX_SIZE) return data;
    const size_t wanted = (size_t)length * size;
    if (wanted == *bytes) return data;
    taffeta_alloc_fn *alloc = result ? ctx->alloc : NULL;
    void *p = taf_result_memory(alloc, ctx->alloc_data, data, *bytes, wanted, size);
    if (p == NULL && wanted != 0) return data;
    if (!result) {
#pragma omp critical(taf_heap)
        {
            ctx->memory_used += wanted - *bytes;
            if (ctx->memory_used > ctx->memory_peak) ctx->memory_peak = ctx->memory_used;
        }
    }
    *bytes = wanted;
    return p;
}

void taf_hand_over(const taffeta_ctx *ctx, taffeta_tensor *to, void *data, int64_t length) {
    to->data = data;
    to->shape[0] = length;
    to->strides = NULL;
    to->owner = TAFFETA_OWNER_CALLEE;
    to->alloc = ctx->alloc;
    to->alloc_data = ctx->alloc_data;
}

int taf_make_results(taffeta_ctx *ctx, const taf_spec *specs, taffeta_tensor *args, size_t n_args,
                     const size_t *bytes, bool *made) {
    memset(made, 0, n_args * sizeof *made);
    for (size_t k = 0; k < n_args; k++) {
        made[k] = specs[k].passing == 'm' || (specs[k].passing == 'r' && args[k].data == NULL);
        if (specs[k].passing == 'm') args[k].data = NULL;
        if (!made[k] || specs[k].passing == 'm') continue;
        args[k].data = taf_result_memory(ctx->alloc, ctx->alloc_data, NULL, 0, bytes[k] ? bytes[k] : 64, 64);
        args[k].alloc = ctx->alloc;
        args[k].alloc_data = ctx->alloc_data;
        if (args[k].data == NULL)
            return taf_fail(ctx, TAFFETA_ERROR_MEMORY, -1, 0, "no memory for the %zu bytes of `%s`", bytes[k], specs[k].name);
        args[k].owner = TAFFETA_OWNER_CALLEE;
        args[k].strides = NULL;
    }
    return TAFFETA_OK;
}

void taf_drop_results(const taffeta_ctx *ctx, const taf_spec *specs, taffeta_tensor *args, size_t n_args,
                      const bool *made) {
    for (size_t k = 0; k < n_args; k++) {
        if (!made[k]) continue;
        if (specs[k].passing != 'm') {
            taffeta_free(&args[k]);
        } else if (args[k].data != NULL) {
            const size_t size = taf_dtype_size(args[k].dtype);
            taf_result_memory(ctx->alloc, ctx->alloc_data, args[k].data, (size_t)args[k].shape[0] * size, 0, size);
            args[k].data = NULL;
        }
    }
}

/* Returns the bits of a digit by which `n` numbers below `2^bits` are sorted: longer ones need fewer passes, and more
   counts in each. */
static int taf_digit_bits(int bits, int64_t n) {
    const int most = n < 64 ? 5 : n < 1024 ? 8 : 11, passes = (bits + most - 1) / most;
    return (bits + passes - 1) / passes;
}

#define TAFFETA_SORT(name, type) \
    void taf_sort_##name(type *list, int64_t begin, int64_t end) { \
        type *a = list + begin; \
        const int64_t n = end - begin; \
        int64_t rising = 1; \
        while (rising < n && a[rising - 1] <= a[rising]) rising++; \
        if (rising >= n) return; \
        type few[512], *b = n <= 48 ? NULL : n <= 512 ? few : (type *)malloc((size_t)n * sizeof *b); \
        if (b == NULL) { \
            for (int64_t gap = n > 48 ? n / 2 : 1; gap > 0; gap = gap > 2 ? gap / 2 : gap - 1) { \
                for (int64_t k = gap; k < n; k++) { \
                    const type v = a[k]; \
                    int64_t at = k; \
                    for (; at >= gap && a[at - gap] > v; at -= gap) a[at] = a[at - gap]; \
                    a[at] = v; \
                } \
            } \
            return; \
        } \
        type least = a[0], largest = a[0], *from = a, *to = b; \
        for (int64_t k = 1; k < n; k++) { \
            least = a[k] < least ? a[k] : least; \
            largest = a[k] > largest ? a[k] : largest; \
        } \
        const int bits = 64 - __builtin_clzll((uint64_t)(largest - least)), digit = taf_digit_bits(bits, n); \
        const uint64_t mask = ((uint64_t)1 << digit) - 1; \
        for (int shift = 0; shift < bits; shift += digit) { \
            int64_t starts[2048], sum = 0; \
            memset(starts, 0, (size_t)(mask + 1) * sizeof *starts); \
            for (int64_t k = 0; k < n; k++) starts[((uint64_t)(from[k] - least) >> shift) & mask]++; \
            for (uint64_t d = 0; d <= mask; d++) { \
                const int64_t count = starts[d]; \
                starts[d] = sum; \
                sum += count; \
            } \
            for (int64_t k = 0; k < n; k++) to[starts[((uint64_t)(from[k] - least) >> shift) & mask]++] = from[k]; \
            type *const other = from; \
            from = to; \
            to = other; \
        } \
        if (from != a) memcpy(a, from, (size_t)n * sizeof *a); \
        if (b != few) free(b); \
    }
TAFFETA_SORT(u8, uint8_t)
TAFFETA_SORT(u16, uint16_t)
TAFFETA_SORT(i32, int32_t)
TAFFETA_SORT(i64, int64_t)

/* Elements of any type of one size. */
typedef uint8_t __attribute__((may_alias)) taf_element1;
typedef uint16_t __attribute__((may_alias)) taf_element2;
typedef uint32_t __attribute__((may_alias)) taf_element4;
typedef uint64_t __attribute__((may_alias)) taf_element8;

/* Short lists by insertion, others by digits, of as many bits as pay for so many elements. */
#define TAFFETA_SORT_WITH(name, type, width, value) \
    static bool taf_sort_##name##_##width(type *a, value *x, int64_t n) { \
        type least = 0, largest = 0; \
        int64_t rising = 1; \
        if (n <= 16) { \
            for (int64_t k = 1; k < n; k++) { \
                const type own = a[k]; \
                const value with = x[k]; \
                int64_t at = k; \
                for (; at > 0 && a[at - 1] > own; at--) { \
                    a[at] = a[at - 1]; \
                    x[at] = x[at - 1]; \
                } \
                a[at] = own; \
                x[at] = with; \
            } \
            return true; \
        } \
        least = largest = a[0]; \
        for (int64_t k = 1; k < n; k++) { \
            least = a[k] < least ? a[k] : least; \
            largest = a[k] > largest ? a[k] : largest; \
            rising += a[k - 1] <= a[k]; \
        } \
        if (rising == n) return true; \
        const int bits = 64 - __builtin_clzll((uint64_t)(largest - least)), digit = taf_digit_bits(bits, n); \
        const uint64_t mask = ((uint64_t)1 << digit) - 1; \
        type short_a[256], *more_a = n <= 256 ? short_a : (type *)malloc((size_t)n * sizeof *a), *a_from = a, *a_to = more_a; \
        value short_x[256], *more_x = n <= 256 ? short_x : (value *)malloc((size_t)n * sizeof *x), *x_from = x, *x_to = more_x; \
        const bool has_memory = more_a != NULL && more_x != NULL; \
        for (int shift = 0; has_memory && shift < bits; shift += digit) { \
            int64_t starts[2048], sum = 0; \
            memset(starts, 0, (size_t)(mask + 1) * sizeof *starts); \
            for (int64_t k = 0; k < n; k++) starts[((uint64_t)(a_from[k] - least) >> shift) & mask]++; \
            for (uint64_t d = 0; d <= mask; d++) { \
                const int64_t count = starts[d]; \
                starts[d] = sum; \
                sum += count; \
            } \
            for (int64_t k = 0; k < n; k++) { \
                const int64_t at = starts[((uint64_t)(a_from[k] - least) >> shift) & mask]++; \
                a_to[at] = a_from[k]; \
                x_to[at] = x_from[k]; \
            } \
            type *const a_other = a_from; \
            value *const x_other = x_from; \
            a_from = a_to, x_from = x_to; \
            a_to = a_other, x_to = x_other; \
        } \
        if (a_from != a) { \
            memcpy(a, a_from, (size_t)n * sizeof *a); \
            memcpy(x, x_from, (size_t)n * sizeof *x); \
        } \
        if (n > 256) { \
            free(more_a); \
            free(more_x); \
        } \
        return has_memory; \
    }
#define TAFFETA_SORT_WITH_ALL(name, type) \
    TAFFETA_SORT_WITH(name, type, 1, taf_element1) \
    TAFFETA_SORT_WITH(name, type, 2, taf_element2) \
    TAFFETA_SORT_WITH(name, type, 4, taf_element4) \
    TAFFETA_SORT_WITH(name, type, 8, taf_element8) \
    static bool taf_sort_with_##name(type *a, char *x, size_t size, int64_t begin, int64_t end) { \
        a += begin; \
        x += (size_t)begin * size; \
        switch (size) { \
        case 1: return taf_sort_##name##_1(a, (taf_element1 *)x, end - begin); \
        case 2: return taf_sort_##name##_2(a, (taf_element2 *)x, end - begin); \
        case 4: return taf_sort_##name##_4(a, (taf_element4 *)x, end - begin); \
        default: return taf_sort_##name##_8(a, (taf_element8 *)x, end - begin); \
        } \
    }
TAFFETA_SORT_WITH_ALL(u8, uint8_t)
TAFFETA_SORT_WITH_ALL(u16, uint16_t)
TAFFETA_SORT_WITH_ALL(i32, int32_t)
TAFFETA_SORT_WITH_ALL(i64, int64_t)

bool taf_sort_with(void *list, int32_t type, void *values, size_t size, int64_t begin, int64_t end) {
    switch (type) {
    case TAFFETA_U8: return taf_sort_with_u8((uint8_t *)list, (char *)values, size, begin, end);
    case TAFFETA_U16: return taf_sort_with_u16((uint16_t *)list, (char *)values, size, begin, end);
    case TAFFETA_I32: return taf_sort_with_i32((int32_t *)list, (char *)values, size, begin, end);
    default: return taf_sort_with_i64((int64_t *)list, (char *)values, size, begin, end);
    }
}

static uint64_t taf_key(const void *key, int32_t type, int64_t k) {
    switch (type) {
    case TAFFETA_U8: return ((const uint8_t *)key)[k];
    case TAFFETA_U16: return ((const uint16_t *)key)[k];
    case TAFFETA_I32: return (uint64_t)((const int32_t *)key)[k];
    default: return (uint64_t)((const int64_t *)key)[k];
    }
}

/* Passes over digits of 11 bits, as far as they differ, of the last key first. */
bool taf_order(int64_t *numbers, int64_t n, const void *const *keys, const int32_t *types, int n_keys) {
    bool in_order = true;
    for (int64_t k = 0; k < n; k++) numbers[k] = k;
    for (int64_t k = 1; k < n && in_order; k++) {
        for (int key = 0; key < n_keys; key++) {
            const uint64_t before = taf_key(keys[key], types[key], k - 1), own = taf_key(keys[key], types[key], k);
            if (before != own) {
                in_order = before < own;
                break;
            }
        }
    }
    if (in_order) return true;
    int64_t *const more = (int64_t *)malloc((size_t)n * sizeof *more);
    if (more == NULL) return false;
    int64_t *from = numbers, *to = more;
    for (int key = n_keys - 1; key >= 0; key--) {
        uint64_t differ = 0;
        for (int64_t k = 1; k < n; k++) differ |= taf_key(keys[key], types[key], k) ^ taf_key(keys[key], types[key], 0);
        for (int shift = 0; shift < 64 && (differ >> shift) != 0; shift += 11) {
            int64_t starts[2048] = {0};
            if (((differ >> shift) & 2047) == 0) continue;
            for (int64_t k = 0; k < n; k++) starts[(taf_key(keys[key], types[key], k) >> shift) & 2047]++;
            for (int64_t d = 0, sum = 0; d < 2048; d++) {
                const int64_t count = starts[d];
                starts[d] = sum;
                sum += count;
            }
            for (int64_t k = 0; k < n; k++) {
                const int64_t own = from[k];
                to[starts[(taf_key(keys[key], types[key], own) >> shift) & 2047]++] = own;
            }
            int64_t *const other = from;
            from = to;
            to = other;
        }
    }
    if (from != numbers) memcpy(numbers, from, (size_t)n * sizeof *numbers);
    free(more);
    return true;
}

void taffeta_ctx_release(taffeta_ctx *ctx) __attribute__((weak));
void taffeta_ctx_release(taffeta_ctx *ctx) {
    if (ctx->arena_owner == TAFFETA_OWNER_CALLEE) free(ctx->arena);
    ctx->arena = NULL;
    ctx->arena_capacity = 0;
}

void taffeta_free(taffeta_tensor *tensor) __attribute__((weak));
void taffeta_free(taffeta_tensor *tensor) {
    if (tensor->owner != TAFFETA_OWNER_CALLEE) return;
    const size_t size = taf_dtype_size(tensor->dtype);
    size_t bytes = tensor->n_stored * size;
    if (tensor->levels == NULL) {
        taf_room(tensor->shape, tensor->ndim, size, &bytes);
        if (bytes == 0) bytes = 64;
    }
    if (tensor->data != NULL) taf_result_memory(tensor->alloc, tensor->alloc_data, tensor->data, bytes, 0, size);
    tensor->data = NULL;
    tensor->owner = TAFFETA_OWNER_CALLER;
    if (tensor->levels == NULL) return;
    /* Levels and arrays are one block. */
    size_t n_arrays = 0;
    for (int32_t l = 0; l < tensor->n_levels; l++) {
        for (int32_t a = 0; a < tensor->levels[l].n_arrays; a++) {
            const taffeta_array *array = &tensor->levels[l].arrays[a];
            const size_t of_array = array->length * taf_dtype_size(array->dtype);
            if (array->data != NULL)
                taf_result_memory(tensor->alloc, tensor->alloc_data, array->data, of_array, 0, taf_dtype_size(array->dtype));
        }
        n_arrays += (size_t)tensor->levels[l].n_arrays;
    }
    bytes = (size_t)tensor->n_levels * sizeof(taffeta_level) + n_arrays * sizeof(taffeta_array);
    taf_result_memory(tensor->alloc, tensor->alloc_data, (void *)tensor->levels, bytes, 0, sizeof(void *));
    tensor->levels = NULL;
    tensor->n_levels = 0;
    tensor->n_stored = 0;
}
#endif

#endif
