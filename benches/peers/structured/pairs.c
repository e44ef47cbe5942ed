/* Dot products and sums of two sparse vectors as one writes them by hand: a merge of what each of them is made of.
 *
 * Formats that list elements (LIST, BYTEMAP) go from point to point, those that have elements in a row (DENSE, BAND,
 * RAGGED, VBL, RLE, PACKBITS) from piece to piece; BITMAP and HASHED are asked. All is inlined, so that each pair has
 * loops of its own, and the branches on formats are none. */
#include <stdbool.h>
#include <stdint.h>

enum { DENSE, LIST, HASHED, BYTEMAP, BITMAP, BAND, RAGGED, VBL, RLE, PACKBITS };

/* A vector: `one`, `two`, `three` and `four` are the arrays of its level, in the order of the level's page. */
typedef struct {
    int64_t n;
    const int32_t *one, *two, *three, *four;
    const uint8_t *bytes;
    const double *val;
} vector;

/* Elements in a row: `val[(j - begin) * step]`. */
typedef struct {
    int64_t begin, end, next, step;
    const double *val;
} piece;

#define INLINE static inline __attribute__((always_inline))

INLINE bool has_points(int kind) { return kind == LIST || kind == BYTEMAP; }
INLINE bool is_asked(int kind) { return kind == BITMAP || kind == HASHED; }
INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t most(int64_t a, int64_t b) { return a < b ? b : a; }
INLINE double at_point(int kind, const vector *v, int64_t p) { return v->val[kind == BYTEMAP ? v->two[p] : p]; }

/* The first piece, or the one after `p`; false: there is none. */
INLINE bool next_piece(int kind, const vector *v, piece *p) {
    int64_t k = p->next++;
    switch (kind) {
    case DENSE: *p = (piece){0, v->n, k + 1, 1, v->val}; return k == 0;
    case RAGGED: *p = (piece){0, v->one[1], k + 1, 1, v->val}; return k == 0;
    case BAND: *p = (piece){v->two[0], v->two[0] + v->one[1], k + 1, 1, v->val}; return k == 0;
    case RLE: {
        if (k >= v->one[1]) return false;
        *p = (piece){p->end, v->two[k], k + 1, 0, v->val + k};
        return true;
    }
    default: {
        if (k >= v->one[1]) return false;
        int64_t first = v->three[k], count = v->three[k + 1] - first, end = v->two[k];
        if (kind == VBL) *p = (piece){end - count, end, k + 1, 1, v->val + first};
        else *p = (piece){p->end, end, k + 1, count == 1 ? 0 : 1, v->val + first};
        return true;
    }
    }
}

INLINE bool found(int kind, const vector *v, int64_t j, double *value) {
    if (kind == BITMAP) {
        if (!(v->bytes[j >> 3] >> (j & 7) & 1)) return false;
        *value = v->val[j];
        return true;
    }
    int64_t mask = v->three[1] - 1, s = (int64_t)((uint64_t)(j ^ (j >> 32)) * 0x9E3779B97F4A7C15u) >> 32 & mask;
    for (; v->four[s]; s = (s + 1) & mask)
        if (v->two[v->four[s] - 1] == j) return *value = v->val[v->four[s] - 1], true;
    return false;
}

/* `s` and a piece of each over the same coordinates, in the order of these. */
INLINE double dot_pieces(double s, const piece *a, const piece *b, int64_t from, int64_t to) {
    if (a->step == 0 && b->step == 0) return s + a->val[0] * b->val[0] * (double)(to - from);
    const double *x = a->val + (from - a->begin) * a->step, *y = b->val + (from - b->begin) * b->step;
    for (int64_t j = 0; j < to - from; j++) s += x[j * a->step] * y[j * b->step];
    return s;
}

INLINE double sum_piece(double s, const piece *a, int64_t from, int64_t to) {
    if (a->step == 0) return s + a->val[0] * (double)(to - from);
    for (const double *x = a->val + (from - a->begin), *end = x + (to - from); x < end; x++) s += *x;
    return s;
}

INLINE double dot(int ka, const vector *a, int kb, const vector *b) {
    double s = 0, x;
    if (has_points(ka) && has_points(kb)) {
        int64_t p = 0, q = 0, p_end = a->one[1], q_end = b->one[1];
        while (p < p_end && q < q_end) {
            int32_t i = a->two[p], j = b->two[q];
            if (i == j) s += at_point(ka, a, p) * at_point(kb, b, q);
            p += i <= j;
            q += j <= i;
        }
    } else if (has_points(ka) && is_asked(kb)) {
        for (int64_t p = 0; p < a->one[1]; p++)
            if (found(kb, b, a->two[p], &x)) s += at_point(ka, a, p) * x;
    } else if (has_points(ka)) {
        piece y = {0};
        if (!next_piece(kb, b, &y)) return 0;
        for (int64_t p = 0; p < a->one[1]; p++) {
            int64_t j = a->two[p];
            while (y.end <= j)
                if (!next_piece(kb, b, &y)) return s;
            if (y.begin <= j) s += at_point(ka, a, p) * y.val[(j - y.begin) * y.step];
        }
    } else if (ka == HASHED) {
        for (int64_t p = 0; p < a->one[1]; p++)
            if (found(kb, b, a->two[p], &x)) s += a->val[p] * x;
    } else if (ka == BITMAP) {
        for (int64_t j = 0; j < a->n; j++)
            if (a->bytes[j >> 3] >> (j & 7) & 1 && found(kb, b, j, &x)) s += a->val[j] * x;
    } else if (is_asked(kb)) {
        for (piece y = {0}; next_piece(ka, a, &y);)
            for (int64_t j = y.begin; j < y.end; j++)
                if (found(kb, b, j, &x)) s += y.val[(j - y.begin) * y.step] * x;
    } else {
        piece y = {0}, z = {0};
        bool left = next_piece(ka, a, &y) && next_piece(kb, b, &z);
        while (left) {
            int64_t from = most(y.begin, z.begin), to = least(y.end, z.end);
            if (from < to) s = dot_pieces(s, &y, &z, from, to);
            int64_t end = y.end;
            if (y.end <= z.end) left = next_piece(ka, a, &y);
            if (z.end <= end) left &= next_piece(kb, b, &z);
        }
    }
    return s;
}

/* One after the other, up to where either ends; in the order of their coordinates. */
INLINE double add(int ka, const vector *a, int kb, const vector *b) {
    double s = 0;
    if (has_points(ka) && has_points(kb)) {
        int64_t p = 0, q = 0, p_end = a->one[1], q_end = b->one[1];
        while (p < p_end && q < q_end) {
            int32_t i = a->two[p], j = b->two[q];
            if (i <= j) s += at_point(ka, a, p);
            if (j <= i) s += at_point(kb, b, q);
            p += i <= j;
            q += j <= i;
        }
        for (; p < p_end; p++) s += at_point(ka, a, p);
        for (; q < q_end; q++) s += at_point(kb, b, q);
    } else if (kb == BITMAP) {
        int64_t p = 0;
        piece y = {0};
        bool left = !has_points(ka) && ka != BITMAP && next_piece(ka, a, &y);
        for (int64_t j = 0; j < b->n; j++) {
            if (has_points(ka)) {
                if (p < a->one[1] && a->two[p] == j) s += at_point(ka, a, p++);
            } else if (ka == BITMAP) {
                if (a->bytes[j >> 3] >> (j & 7) & 1) s += a->val[j];
            } else {
                while (left && y.end <= j) left = next_piece(ka, a, &y);
                if (left && y.begin <= j) s += y.val[(j - y.begin) * y.step];
            }
            if (b->bytes[j >> 3] >> (j & 7) & 1) s += b->val[j];
        }
    } else if (has_points(ka)) {
        int64_t p = 0;
        for (piece y = {0}; next_piece(kb, b, &y);) {
            for (; p < a->one[1] && a->two[p] < y.begin; p++) s += at_point(ka, a, p);
            int64_t from = y.begin;
            for (; p < a->one[1] && a->two[p] < y.end; p++) {
                int64_t j = a->two[p];
                s = sum_piece(s, &y, from, j);
                s += at_point(ka, a, p) + y.val[(j - y.begin) * y.step];
                from = j + 1;
            }
            s = sum_piece(s, &y, from, y.end);
        }
        for (; p < a->one[1]; p++) s += at_point(ka, a, p);
    } else {
        piece y = {0}, z = {0};
        int64_t from = 0;
        bool y_left = next_piece(ka, a, &y), z_left = next_piece(kb, b, &z);
        while (y_left || z_left) {
            int64_t to = !y_left ? z.end : !z_left ? y.end : least(y.end, z.end);
            if (y_left && most(from, y.begin) < to) s = sum_piece(s, &y, most(from, y.begin), to);
            if (z_left && most(from, z.begin) < to) s = sum_piece(s, &z, most(from, z.begin), to);
            if (y_left && y.end == to) y_left = next_piece(ka, a, &y);
            if (z_left && z.end == to) z_left = next_piece(kb, b, &z);
            from = to;
        }
    }
    return s;
}

/* What goes from point to point leads, and what is asked follows. */
INLINE int rank(int kind) { return has_points(kind) ? 0 : kind == HASHED ? 2 : kind == BITMAP ? 3 : 1; }

#define PAIR(A, B)                                                                                                      \
    void dot_##A##_##B(const vector *a, const vector *b, double *s) {                                                   \
        *s = rank(B) < rank(A) ? dot(B, b, A, a) : dot(A, a, B, b);                                                     \
    }                                                                                                                   \
    void add_##A##_##B(const vector *a, const vector *b, double *s) {                                                   \
        *s = rank(B) < rank(A) ? add(B, b, A, a) : add(A, a, B, b);                                                     \
    }
#define ROW(A)                                                                                                          \
    PAIR(A, DENSE) PAIR(A, LIST) PAIR(A, HASHED) PAIR(A, BYTEMAP) PAIR(A, BITMAP)                                       \
    PAIR(A, BAND) PAIR(A, RAGGED) PAIR(A, VBL) PAIR(A, RLE) PAIR(A, PACKBITS)
ROW(DENSE) ROW(LIST) ROW(HASHED) ROW(BYTEMAP) ROW(BITMAP) ROW(BAND) ROW(RAGGED) ROW(VBL) ROW(RLE) ROW(PACKBITS)
