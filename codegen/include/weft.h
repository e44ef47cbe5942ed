/*
 * weft.h: the C interface of programs that Weft compiled.
 *
 * An entry `f` of a program is two functions:
 *
 *   int weft_f(weft_ctx *ctx, weft_tensor *args, size_t n_args, const int64_t *sizes);
 *   int weft_f_plan(weft_ctx *ctx, weft_tensor *args, size_t n_args, const int64_t *sizes, size_t *arena_bytes);
 *
 * `args` holds the parameters in order, then the results in order. `sizes` holds the entry's size parameters in order;
 * it may be NULL, and an element may be -1, where the shapes of the parameters fix the size.
 *
 * `weft_f_plan` writes the results' shapes into `args[k].shape` (room for `ndim` numbers) and the bytes of scratch memory
 * that the call will need, and runs nothing. `weft_f` runs the program. A result whose `data` is NULL is allocated by the
 * callee, which also writes its shape; give it back with `weft_free`. Otherwise its shape must be the planned one.
 *
 * Both return WEFT_OK or an error code, and then `ctx->message` says what happened and `ctx->line` is the line of the
 * source. Nothing here exits, prints or keeps global state. One `weft_ctx` serves one call at a time; different contexts
 * may be used by different threads at once.
 */
#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: part of every context, so that a library refuses callers of another one. */
#define WEFT_ABI 1

/* Element types. f16 and bf16 are 16 bits of storage, bool is one byte that holds 0 or 1. */
typedef enum weft_dtype {
    WEFT_BOOL = 0,
    WEFT_I8 = 1,
    WEFT_I16 = 2,
    WEFT_I32 = 3,
    WEFT_I64 = 4,
    WEFT_U8 = 5,
    WEFT_U16 = 6,
    WEFT_U32 = 7,
    WEFT_U64 = 8,
    WEFT_F16 = 9,
    WEFT_BF16 = 10,
    WEFT_F32 = 11,
    WEFT_F64 = 12
} weft_dtype;

/* What a call returns. */
typedef enum weft_status {
    WEFT_OK = 0,
    WEFT_ERROR_ASSERT = 1,     /* an assert of the program failed, or sizes that must agree do not */
    WEFT_ERROR_INDEX = 2,      /* an index is out of range */
    WEFT_ERROR_ARITHMETIC = 3, /* division by zero, a cast of NaN … */
    WEFT_ERROR_CALL = 4,       /* the call is wrong: number of arguments, a null pointer, another ABI version */
    WEFT_ERROR_DTYPE = 5,      /* an argument's element type */
    WEFT_ERROR_SHAPE = 6,      /* an argument's dimensions or sizes */
    WEFT_ERROR_LAYOUT = 7,     /* an argument is not row-major and contiguous, or misaligned */
    WEFT_ERROR_ALIAS = 8,      /* an output shares memory with another argument */
    WEFT_ERROR_MEMORY = 9,     /* no memory */
    WEFT_ERROR_SIZE = 10       /* sizes whose product does not fit */
} weft_status;

/* How a dimension is stored. */
typedef enum weft_level_kind {
    WEFT_LEVEL_DENSE = 0,     /* every coordinate, in order */
    WEFT_LEVEL_COMPRESSED = 1 /* the coordinates pos[p] .. pos[p + 1] of crd */
} weft_level_kind;

/* One level of a structured tensor, outermost first. */
typedef struct weft_level {
    int32_t kind;      /* weft_level_kind */
    int32_t dimension; /* the dimension that it stores */
    void *pos;         /* positions, index_width bits each; NULL for dense levels */
    void *crd;         /* coordinates, index_width bits each; NULL for dense levels */
    size_t n_pos;
    size_t n_crd;
} weft_level;

/* Who frees `data`. */
typedef enum weft_owner {
    WEFT_OWNER_CALLER = 0,
    WEFT_OWNER_CALLEE = 1 /* weft_free */
} weft_owner;

/* A tensor. Dense is the case of one buffer: levels and fill are NULL. */
typedef struct weft_tensor {
    int32_t dtype;            /* weft_dtype */
    int32_t ndim;             /* 0 for a scalar */
    int64_t *shape;           /* ndim sizes; may be NULL for a scalar */
    const int64_t *strides;   /* in elements; NULL: row-major and contiguous */
    void *data;               /* the elements (of structured tensors: those that are stored) */
    const weft_level *levels; /* NULL: dense */
    const void *fill;         /* the value of elements that are not stored; NULL: 0 */
    int32_t index_width;      /* bits of pos and crd: 32 or 64; 0 for dense */
    int32_t owner;            /* weft_owner */
} weft_tensor;

/* What a call works with. Start with WEFT_CTX_INIT, end with weft_ctx_release. */
typedef struct weft_ctx {
    uint32_t abi;          /* WEFT_ABI */
    int32_t threads;       /* of parallel loops; 0: as OpenMP decides */
    int32_t status;        /* of the last call */
    int32_t line;          /* of the source, where the last call failed; 0 if there is none */
    int32_t site;          /* which check failed, for Weft itself; -1 if none */
    int32_t arena_owner;   /* WEFT_OWNER_CALLER: `arena` is the caller's and is never replaced */
    void *arena;           /* scratch memory, kept from call to call; NULL at first */
    size_t arena_capacity; /* its bytes */
    size_t memory_used;    /* bytes of scratch memory in use */
    size_t memory_peak;    /* the most that the last call used beyond its arguments */
    char message[512];     /* of the last error */
} weft_ctx;

#define WEFT_CTX_INIT {WEFT_ABI, 0, 0, 0, -1, WEFT_OWNER_CALLEE, NULL, 0, 0, 0, {0}}

/* Gives back the arena, unless it is the caller's. */
void weft_ctx_release(weft_ctx *ctx);

/* Gives back the elements of a result that the callee allocated; does nothing to others. */
void weft_free(weft_tensor *tensor);

#ifdef __cplusplus
}
#endif

#endif
