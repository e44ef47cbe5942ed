//! `cache` in programs of the repository.

use crate::args;
use crate::primitives::common::{call, example};
use expect_test::expect;

#[test]
fn longformer() {
    example(
        "longformer/longformer.ft",
        "attention",
        &[("heads", 2), ("n", 70), ("d", 3)],
        |s| {
            // The window of keys and values of each token, and the row that it computes.
            call(s, "cache", args!["j#1", "k"])?;
            call(s, "cache", args!["j#2", "v"])?;
            call(s, "cache", args!["j#2", "y#1"]).map(drop)
        },
        expect![[r#"
            """Attention of each token to its window, with nothing stored but one row of scores."""
            y = empty((heads, n, d), f32)
            for y.d0 in range(heads):
                for y.d1 in range(n):
                    for y.d2 in range(d):
                        y[y.d0, y.d1, y.d2] = 0.0
            for h in range(heads):
                for i in range(n):
                    score = empty((65,), f32)
                    for score.d0 in range(65):
                        score[score.d0] = -inf
                    k_cache = empty((1, 65, d), f32)
                    for k.cache.d1 in range(65):
                        for k.cache.d2 in range(d):
                            if 0 <= i - 32 + k.cache.d1 and i - 32 + k.cache.d1 < n:
                                k_cache[0, k.cache.d1, k.cache.d2] = k[h, i - 32 + k.cache.d1, k.cache.d2]
                    for j in range(65):
                        if 0 <= i + j - 32 and i + j - 32 < n:
                            dot = empty((), f32)
                            dot = 0.0
                            for c in range(d):
                                dot += q[h, i, c] * k_cache[0, j, c]
                            score[j] = dot / cast(sqrt(1.0 * cast(d, f64)), f32)
                    del k_cache
                    weight = empty((65,), f32)
                    m = empty((), f32)
                    m = -inf
                    for k_1 in range(65):
                        m = max(m, score[k_1])
                    s = empty((), f64)
                    s = 0.0
                    for k_1 in range(65):
                        weight[k_1] = exp(score[k_1] - stop_gradient(m))
                        s += cast(weight[k_1], f64)
                    r = empty((), f32)
                    r = cast(1.0 / s, f32)
                    for k_1 in range(65):
                        weight[k_1] *= r
                    v_cache = empty((1, 65, d), f32)
                    for v.cache.d1 in range(65):
                        for v.cache.d2 in range(d):
                            if 0 <= i - 32 + v.cache.d1 and i - 32 + v.cache.d1 < n:
                                v_cache[0, v.cache.d1, v.cache.d2] = v[h, i - 32 + v.cache.d1, v.cache.d2]
                    y_cache = empty((1, 1, d), f32)
                    for y.cache.d2 in range(d):
                        y_cache[0, 0, y.cache.d2] = y[h, i, y.cache.d2]
                    for j in range(65):
                        if 0 <= i + j - 32 and i + j - 32 < n:
                            for y.d0 in range(d):
                                y_cache[0, 0, y.d0] += weight[j] * v_cache[0, j, y.d0]
                    for y.cache.back.d2 in range(d):
                        y[h, i, y.cache.back.d2] = y_cache[0, 0, y.cache.back.d2]
            return y
        "#]],
    );
}

#[test]
fn convolution() {
    example(
        "conv/conv.ft",
        "layer",
        &[("batch", 2), ("c", 3), ("h", 6), ("w", 7), ("channels", 2), ("kh", 3), ("kw", 2)],
        |s| {
            call(s, "cache", args!["ci", "x"])?;
            call(s, "cache", args!["ci", "kernel"])?;
            call(s, "cache_reduction", args!["ci", "y"]).map(drop)
        },
        expect![[r#"
            """A layer of a neural network: every output channel looks at every input channel. No padding."""
            y = empty((batch, channels, h - kh + 1, w - kw + 1), f32)
            for y.d0 in range(batch):
                for y.d1 in range(channels):
                    for y.d2 in range(h - kh + 1):
                        for y.d3 in range(w - kw + 1):
                            y[y.d0, y.d1, y.d2, y.d3] = 0.0
            for b in range(batch):
                for o in range(channels):
                    for i in range(h - kh + 1):
                        for j in range(w - kw + 1):
                            x_cache = empty((1, c, kh, kw), f32)
                            for x.cache.d1 in range(c):
                                for x.cache.d2 in range(kh):
                                    for x.cache.d3 in range(kw):
                                        x_cache[0, x.cache.d1, x.cache.d2, x.cache.d3] = x[b, x.cache.d1, i + x.cache.d2, j + x.cache.d3]
                            kernel_cache = empty((1, c, kh, kw), f32)
                            for kernel.cache.d1 in range(c):
                                for kernel.cache.d2 in range(kh):
                                    for kernel.cache.d3 in range(kw):
                                        kernel_cache[0, kernel.cache.d1, kernel.cache.d2, kernel.cache.d3] = kernel[o, kernel.cache.d1, kernel.cache.d2, kernel.cache.d3]
                            y_partial = empty((1, 1, 1, 1), f32)
                            y_partial[0, 0, 0, 0] = 0.0
                            for ci in range(c):
                                for ki in range(kh):
                                    for kj in range(kw):
                                        y_partial[0, 0, 0, 0] += x_cache[0, ci, ki, kj] * kernel_cache[0, ci, ki, kj]
                            y[b, o, i, j] += y_partial[0, 0, 0, 0]
            return y
        "#]],
    );
    example(
        "conv/conv.ft",
        "sobel",
        &[("h", 6), ("w", 7)],
        |s| call(s, "cache", args!["i#1", "image"]).map(drop),
        expect![[r#"
            """How fast the picture changes, and so where its edges are."""
            edges = empty((h, w), u8)
            across = empty((3, 3), f32)
            for across.d0 in range(3):
                for across.d1 in range(3):
                    across[across.d0, across.d1] = 0.0
            across[0, 0] = -1.0
            across[0, 2] = 1.0
            across[1, 0] = -2.0
            across[1, 2] = 2.0
            across[2, 0] = -1.0
            across[2, 2] = 1.0
            dx = empty((h, w), f32)
            for result.d0 in range(h):
                for result.d1 in range(w):
                    dx[result.d0, result.d1] = 0.0
            for y in range(h):
                for x in range(w):
                    image_cache = empty((min(y + 1, h - 1) + 1 - max(y - 1, 0), min(x + 1, w - 1) + 1 - max(x - 1, 0)), u8)
                    for image.cache.d0 in range(min(y + 1, h - 1) + 1 - max(y - 1, 0)):
                        for image.cache.d1 in range(min(x + 1, w - 1) + 1 - max(x - 1, 0)):
                            image_cache[image.cache.d0, image.cache.d1] = image[max(y - 1, 0) + image.cache.d0, max(x - 1, 0) + image.cache.d1]
                    for i in range(3):
                        for j in range(3):
                            dx[y, x] += across[i, j] * cast(image_cache[min(max(y + i - 1, 0), h - 1) - max(y - 1, 0), min(max(x + j - 1, 0), w - 1) - max(x - 1, 0)], f32)
            y = empty((3, 3), f32)
            for i in range(3):
                for i_1 in range(3):
                    y[i_1, i] = across[i, i_1]
            dy = empty((h, w), f32)
            for result.d0 in range(h):
                for result.d1 in range(w):
                    dy[result.d0, result.d1] = 0.0
            for y_1 in range(h):
                for x in range(w):
                    for i in range(3):
                        for j in range(3):
                            dy[y_1, x] += y[i, j] * cast(image[min(max(y_1 + i - 1, 0), h - 1), min(max(x + j - 1, 0), w - 1)], f32)
            values = empty((h, w), f32)
            for values.d0 in range(h):
                for values.d1 in range(w):
                    values[values.d0, values.d1] = sqrt(dx[values.d0, values.d1] * dx[values.d0, values.d1] + dy[values.d0, values.d1] * dy[values.d0, values.d1])
            for edges.d0 in range(h):
                for edges.d1 in range(w):
                    edges[edges.d0, edges.d1] = cast(min(max(round(values[edges.d0, edges.d1]), 0.0), 255.0), u8)
            return edges
        "#]],
    );
}
