/*
 * taffeta.h: the C interface of programs compiled by Taffeta.
 *
 * An entry `f` of a program has two functions:
 *
 *   int taffeta_f(taffeta_ctx *ctx, taffeta_tensor *args, size_t n_args, const int64_t *sizes);
 *   int taffeta_f_plan(taffeta_ctx *ctx, taffeta_tensor *args, size_t n_args, const int64_t *sizes,
 *                      size_t *arena_bytes);
 *
 * `args` holds the parameters in order, then the results in order. `sizes` holds the entry's size parameters in order;
 * it may be NULL, and an element may be -1, where the shapes of the parameters determine the size.
 *
 * `taffeta_f_plan` writes the results' shapes into `args[k].shape` (room for `ndim` numbers) and the bytes of scratch
 * memory that the call needs, without running the program. `taffeta_f` runs the program. A result whose `data` is NULL
 * is allocated by the callee, which also writes its shape; release it with `taffeta_free`. Otherwise its shape must be
 * the planned one. A structured result with a pattern of its own is always allocated by the callee: the caller gives
 * room for `shape`, and zeros elsewhere; the callee also sets `levels`, with their arrays, and `n_stored`.
 *
 * Both return TAFFETA_OK or an error code; on an error, `ctx->message` describes it and `ctx->line` is the source line.
 * Calls do not exit, and print only the output of the program. They keep no state, with two exceptions: recent delays
 * of the parallel loops of each thread, so that they run on fewer threads while cores are busy, and whether the process
 * was forked from one with threads. (Calls in such a child run on one thread, since OpenMP has no others there. This
 * requires that the library was loaded before the fork.) One `taffeta_ctx` serves one call at a time; several threads
 * may use different contexts at the same time.
 */
#ifndef TAFFETA_H
#define TAFFETA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface: part of every context, so that a library refuses callers of another version. */
#define TAFFETA_ABI 3

/* Element types. f16 and bf16 are 16 bits of storage, bool is one byte that holds 0 or 1. */
typedef enum taffeta_dtype {
    TAFFETA_BOOL = 0,
    TAFFETA_I8 = 1,
    TAFFETA_I16 = 2,
    TAFFETA_I32 = 3,
    TAFFETA_I64 = 4,
    TAFFETA_U8 = 5,
    TAFFETA_U16 = 6,
    TAFFETA_U32 = 7,
    TAFFETA_U64 = 8,
    TAFFETA_F16 = 9,
    TAFFETA_BF16 = 10,
    TAFFETA_F32 = 11,
    TAFFETA_F64 = 12
} taffeta_dtype;

/* Status that a call returns. */
typedef enum taffeta_status {
    TAFFETA_OK = 0,
    TAFFETA_ERROR_ASSERT = 1,     /* an assertion of the program failed, or sizes disagree */
    TAFFETA_ERROR_INDEX = 2,      /* an index is out of range */
    TAFFETA_ERROR_ARITHMETIC = 3, /* division by zero, a cast of NaN … */
    TAFFETA_ERROR_CALL = 4,       /* invalid call: number of arguments, null pointer, other ABI version */
    TAFFETA_ERROR_DTYPE = 5,      /* an argument's element type */
    TAFFETA_ERROR_SHAPE = 6,      /* an argument's dimensions or sizes */
    TAFFETA_ERROR_LAYOUT = 7,     /* an argument is not row-major and contiguous, or misaligned */
    TAFFETA_ERROR_ALIAS = 8,      /* an output shares memory with another argument */
    TAFFETA_ERROR_MEMORY = 9,     /* out of memory */
    TAFFETA_ERROR_SIZE = 10,      /* a size, or the product of sizes, is out of range */
    TAFFETA_ERROR_NONFINITE = 11, /* a statement made a NaN or an infinity (only with this check compiled in) */
    TAFFETA_ERROR_STORAGE = 12,   /* the levels of a structured argument are not those of its format, or invalid */
    TAFFETA_ERROR_MISFIT = 13,    /* the format of a result or a local tensor cannot hold an element */
    TAFFETA_ERROR_CANCELLED = 14  /* the caller cancelled the call; outputs have any contents */
} taffeta_status;

/* Kinds of levels. The manual shows the arrays of each kind. */
typedef enum taffeta_level_kind {
    TAFFETA_LEVEL_DENSE = 0,
    TAFFETA_LEVEL_COMPRESSED = 1,
    TAFFETA_LEVEL_SINGLETON = 2,
    TAFFETA_LEVEL_HASHED = 3,
    TAFFETA_LEVEL_BYTEMAP = 4,
    TAFFETA_LEVEL_BITMAP = 5,
    TAFFETA_LEVEL_BANDED = 6,
    TAFFETA_LEVEL_RAGGED = 7,
    TAFFETA_LEVEL_BLOCKLIST = 8,
    TAFFETA_LEVEL_RUN_LENGTH = 9,
    TAFFETA_LEVEL_PACK_BITS = 10,
    TAFFETA_LEVEL_LOWER_TRIANGULAR = 11,
    TAFFETA_LEVEL_UPPER_TRIANGULAR = 12,
    TAFFETA_LEVEL_SYMMETRIC = 13,
    TAFFETA_LEVEL_POINT = 14,
    TAFFETA_LEVEL_RANGE = 15,
    TAFFETA_LEVEL_OFFSET = 16,
    TAFFETA_LEVEL_SQUEEZED = 17,
    TAFFETA_LEVEL_SLICED = 18
} taffeta_level_kind;

/* Owner of the memory at `data`, who frees it. */
typedef enum taffeta_owner {
    TAFFETA_OWNER_CALLER = 0,
    TAFFETA_OWNER_CALLEE = 1 /* taffeta_free */
} taffeta_owner;

/* List of numbers: one of the arrays of a level (positions, coordinates …). */
typedef struct taffeta_array {
    void *data;     /* may be NULL if length is 0 */
    int32_t dtype;  /* taffeta_dtype */
    int32_t owner;  /* taffeta_owner */
    size_t length;  /* elements */
} taffeta_array;

/* Level of a structured tensor. */
typedef struct taffeta_level {
    int32_t kind;                /* taffeta_level_kind */
    int32_t n_arrays;            /* 0 for levels without arrays, such as dense ones */
    const taffeta_array *arrays; /* in the order in which the entry's header lists them */
} taffeta_level;

/* Allocates, resizes or frees memory of results, like realloc. `old` has `old_bytes` bytes, or is NULL. The new memory
   has `bytes` bytes, is aligned to `align`, a power of two, and starts with the contents of the old one; if `zeroed` is
   not 0 and `old` is NULL, it is zero. NULL: there is no memory, and the old one stays. `bytes` is 0: frees `old` and
   returns NULL. One thread calls it at a time. */
typedef void *taffeta_alloc_fn(void *data, void *old, size_t old_bytes, size_t bytes, size_t align, int zeroed);

/* Tensor. A dense tensor is one buffer: levels and fill are NULL, n_levels and n_stored are 0. */
typedef struct taffeta_tensor {
    int32_t dtype;               /* taffeta_dtype */
    int32_t ndim;                /* 0 for a scalar */
    int64_t *shape;              /* ndim sizes; may be NULL for a scalar */
    const int64_t *strides;      /* in elements; NULL: row-major and contiguous. NULL for structured tensors */
    void *data;                  /* elements; of a structured tensor the n_stored stored ones */
    const taffeta_level *levels; /* NULL: dense; else n_levels, outermost first */
    const void *fill;            /* value of elements that are not stored; NULL: the fill of the entry's format */
    int32_t n_levels;
    int32_t owner;               /* taffeta_owner, of data */
    size_t n_stored;             /* elements at data, for structured tensors only */
    taffeta_alloc_fn *alloc;     /* that of the context that made the tensor, for taffeta_free; else NULL */
    void *alloc_data;            /* its first argument */
} taffeta_tensor;

/* Receives a line that a program prints: `length` bytes of UTF-8, without the newline. Threads of a parallel loop call
   it one at a time. */
typedef void taffeta_print_fn(void *data, const char *text, size_t length);

/* Context of a call. Start with TAFFETA_CTX_INIT, end with taffeta_ctx_release. */
typedef struct taffeta_ctx {
    uint32_t abi;          /* TAFFETA_ABI */
    int32_t threads;       /* of parallel loops, at most 1024; 0: OpenMP decides */
    int32_t status;        /* of the last call */
    int32_t line;          /* of the source, where the last call failed; 0 if there is none */
    int32_t site;          /* number of the failed check, for Taffeta itself; -1 if none */
    int32_t arena_owner;   /* TAFFETA_OWNER_CALLER: `arena` belongs to the caller and is never replaced */
    void *arena;           /* scratch memory, kept between calls; NULL at first */
    size_t arena_capacity; /* in bytes */
    size_t memory_used;    /* bytes of scratch memory in use */
    size_t memory_peak;    /* peak of the last call, without its arguments */
    taffeta_print_fn *print; /* receives the lines that the program prints; NULL: stdout */
    void *print_data;      /* its first argument */
    char message[512];     /* of the last error */
    uint32_t flags;        /* TAFFETA_TRUST_ARRAYS or 0 */
    int32_t device;        /* reserved: 0 */
    taffeta_alloc_fn *alloc; /* makes the memory of results; NULL: the C library's malloc */
    void *alloc_data;      /* its first argument */
    const volatile int32_t *cancel; /* outer loops stop once this is not 0; any thread may set it. NULL: never */
    void *stream;          /* reserved: NULL */
} taffeta_ctx;

/* Trusts the arrays of structured arguments: their lengths and types are checked, but not their contents. Without this
   flag every call first checks the contents (positions do not decrease, coordinates are in range and in order), in time
   proportional to the number of stored elements. With it, arrays that violate the invariants of their levels are
   undefined behaviour. */
#define TAFFETA_TRUST_ARRAYS 1u

/* The layout of structures is the same for all compilers and calling languages (checked where pointers have 64
   bits). */
#if UINTPTR_MAX == 0xffffffffffffffffu
#if defined(__cplusplus) && __cplusplus >= 201103L
#define TAFFETA_LAYOUT(name, condition) static_assert(condition, #name)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TAFFETA_LAYOUT(name, condition) _Static_assert(condition, #name)
#else
#define TAFFETA_LAYOUT(name, condition) typedef char taffeta_layout_of_##name[(condition) ? 1 : -1]
#endif
TAFFETA_LAYOUT(array, sizeof(taffeta_array) == 24);
TAFFETA_LAYOUT(array_data, offsetof(taffeta_array, data) == 0);
TAFFETA_LAYOUT(array_dtype, offsetof(taffeta_array, dtype) == 8);
TAFFETA_LAYOUT(array_owner, offsetof(taffeta_array, owner) == 12);
TAFFETA_LAYOUT(array_length, offsetof(taffeta_array, length) == 16);
TAFFETA_LAYOUT(level, sizeof(taffeta_level) == 16);
TAFFETA_LAYOUT(level_kind, offsetof(taffeta_level, kind) == 0);
TAFFETA_LAYOUT(level_n_arrays, offsetof(taffeta_level, n_arrays) == 4);
TAFFETA_LAYOUT(level_arrays, offsetof(taffeta_level, arrays) == 8);
TAFFETA_LAYOUT(tensor, sizeof(taffeta_tensor) == 80);
TAFFETA_LAYOUT(tensor_dtype, offsetof(taffeta_tensor, dtype) == 0);
TAFFETA_LAYOUT(tensor_ndim, offsetof(taffeta_tensor, ndim) == 4);
TAFFETA_LAYOUT(tensor_shape, offsetof(taffeta_tensor, shape) == 8);
TAFFETA_LAYOUT(tensor_strides, offsetof(taffeta_tensor, strides) == 16);
TAFFETA_LAYOUT(tensor_data, offsetof(taffeta_tensor, data) == 24);
TAFFETA_LAYOUT(tensor_levels, offsetof(taffeta_tensor, levels) == 32);
TAFFETA_LAYOUT(tensor_fill, offsetof(taffeta_tensor, fill) == 40);
TAFFETA_LAYOUT(tensor_n_levels, offsetof(taffeta_tensor, n_levels) == 48);
TAFFETA_LAYOUT(tensor_owner, offsetof(taffeta_tensor, owner) == 52);
TAFFETA_LAYOUT(tensor_n_stored, offsetof(taffeta_tensor, n_stored) == 56);
TAFFETA_LAYOUT(tensor_alloc, offsetof(taffeta_tensor, alloc) == 64);
TAFFETA_LAYOUT(tensor_alloc_data, offsetof(taffeta_tensor, alloc_data) == 72);
TAFFETA_LAYOUT(ctx, sizeof(taffeta_ctx) == 624);
TAFFETA_LAYOUT(ctx_abi, offsetof(taffeta_ctx, abi) == 0);
TAFFETA_LAYOUT(ctx_threads, offsetof(taffeta_ctx, threads) == 4);
TAFFETA_LAYOUT(ctx_status, offsetof(taffeta_ctx, status) == 8);
TAFFETA_LAYOUT(ctx_line, offsetof(taffeta_ctx, line) == 12);
TAFFETA_LAYOUT(ctx_site, offsetof(taffeta_ctx, site) == 16);
TAFFETA_LAYOUT(ctx_arena_owner, offsetof(taffeta_ctx, arena_owner) == 20);
TAFFETA_LAYOUT(ctx_arena, offsetof(taffeta_ctx, arena) == 24);
TAFFETA_LAYOUT(ctx_arena_capacity, offsetof(taffeta_ctx, arena_capacity) == 32);
TAFFETA_LAYOUT(ctx_memory_used, offsetof(taffeta_ctx, memory_used) == 40);
TAFFETA_LAYOUT(ctx_memory_peak, offsetof(taffeta_ctx, memory_peak) == 48);
TAFFETA_LAYOUT(ctx_print, offsetof(taffeta_ctx, print) == 56);
TAFFETA_LAYOUT(ctx_print_data, offsetof(taffeta_ctx, print_data) == 64);
TAFFETA_LAYOUT(ctx_message, offsetof(taffeta_ctx, message) == 72);
TAFFETA_LAYOUT(ctx_flags, offsetof(taffeta_ctx, flags) == 584);
TAFFETA_LAYOUT(ctx_device, offsetof(taffeta_ctx, device) == 588);
TAFFETA_LAYOUT(ctx_alloc, offsetof(taffeta_ctx, alloc) == 592);
TAFFETA_LAYOUT(ctx_alloc_data, offsetof(taffeta_ctx, alloc_data) == 600);
TAFFETA_LAYOUT(ctx_cancel, offsetof(taffeta_ctx, cancel) == 608);
TAFFETA_LAYOUT(ctx_stream, offsetof(taffeta_ctx, stream) == 616);
#undef TAFFETA_LAYOUT
#endif

#define TAFFETA_CTX_INIT \
    {TAFFETA_ABI, 0, 0, 0, -1, TAFFETA_OWNER_CALLEE, NULL, 0, 0, 0, NULL, NULL, {0}, 0, 0, NULL, NULL, NULL, NULL}

/* Functions that every library defines have the version in their names, so that libraries of two versions can be linked
   to one program. */
#define taffeta_ctx_release taffeta_ctx_release_3
#define taffeta_free taffeta_free_3

/* Releases the arena, unless it belongs to the caller. */
void taffeta_ctx_release(taffeta_ctx *ctx);

/* Releases the elements, levels and arrays of a result that the callee allocated; does nothing to other tensors. */
void taffeta_free(taffeta_tensor *tensor);

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
/* Storage for the levels of a CSR matrix. */
typedef struct taffeta_csr_levels {
    taffeta_array arrays[2];
    taffeta_level levels[2];
} taffeta_csr_levels;

/* Describes a CSR matrix by the arrays that other libraries use: `indptr` (rows + 1 positions) and `indices` (n_stored
   columns), both of type `index`, and n_stored values. Nothing is copied: `levels`, `shape` (rows, columns) and the
   arrays must outlive the tensor. */
static inline taffeta_tensor taffeta_csr(taffeta_csr_levels *levels, int64_t *shape, void *indptr, void *indices,
                                         taffeta_dtype index, void *values, taffeta_dtype dtype, size_t n_stored) {
    const taffeta_array none = {NULL, 0, TAFFETA_OWNER_CALLER, 0};
    taffeta_tensor t;
    levels->arrays[0] = levels->arrays[1] = none;
    levels->arrays[0].data = indptr;
    levels->arrays[0].length = (size_t)shape[0] + 1;
    levels->arrays[1].data = indices;
    levels->arrays[1].length = n_stored;
    levels->arrays[0].dtype = levels->arrays[1].dtype = (int32_t)index;
    levels->levels[0].kind = TAFFETA_LEVEL_DENSE;
    levels->levels[0].n_arrays = 0;
    levels->levels[0].arrays = NULL;
    levels->levels[1].kind = TAFFETA_LEVEL_COMPRESSED;
    levels->levels[1].n_arrays = 2;
    levels->levels[1].arrays = levels->arrays;
    t.dtype = (int32_t)dtype;
    t.ndim = 2;
    t.shape = shape;
    t.strides = NULL;
    t.data = values;
    t.levels = levels->levels;
    t.fill = NULL;
    t.n_levels = 2;
    t.owner = TAFFETA_OWNER_CALLER;
    t.n_stored = n_stored;
    t.alloc = NULL;
    t.alloc_data = NULL;
    return t;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
