//! Text of the generated C.

use crate::compiled::programs::{self, sources};
use expect_test::{Expect, expect};
use taffeta_codegen::{LowerOptions, c, lower};

/// Compares the kernel alone.
fn check(func: &taffeta_ast::Func, expected: Expect) {
    let lowered = lower(func, &LowerOptions::default()).expect("the program can be lowered");
    let code = c::emit(&lowered, &sources()).code;
    let start = code.find("static TAFFETA_KERNEL").expect("there is a kernel");
    let end = code[start..].find("\n}\n").expect("it ends") + start + 3;
    expected.assert_eq(&code[start..end]);
}

#[test]
fn matmul_reads_like_handwritten_code() {
    check(
        &programs::matmul(taffeta_ast::DType::F32),
        expect![[r#"
            static TAFFETA_KERNEL int matmul_kernel(taffeta_ctx *ctx, const matmul_plan *plan, char *arena, const float *restrict a, const float *restrict b, float *restrict y) {
                const int64_t n = plan->n;
                const int64_t p = plan->p;
                const int64_t m = plan->m;
                (void)ctx; (void)plan; (void)arena; (void)n; (void)p; (void)m;
                /* test.ft:1: x */
                for (int64_t i = 0; i < n; i++) {
                    if (taf_cancelled(ctx)) return taf_cancel(ctx);
                    /* test.ft:2: x */
                    for (int64_t j = 0; j < m; j++) {
                        /* test.ft:3: x */
                        y[i * m + j] = 0.0f;
                        /* test.ft:4: x */
                        for (int64_t k = 0; k < p; k++) {
                            /* test.ft:5: x */
                            y[i * m + j] += a[i * p + k] * b[k * m + j];
                        }
                    }
                }
                return TAFFETA_OK;
            }
        "#]],
    );
}

#[test]
fn circular_diff_checks_indices_outside_of_the_inner_loop() {
    check(
        &programs::circular_diff(),
        expect![[r#"
            static TAFFETA_KERNEL int circular_diff_kernel(taffeta_ctx *ctx, const circular_diff_plan *plan, char *arena, const float *restrict e, const int32_t *restrict adj, float *restrict y) {
                const int64_t n_faces = plan->n_faces;
                const int64_t feats = plan->feats;
                (void)ctx; (void)plan; (void)arena; (void)n_faces; (void)feats;
                /* test.ft:1: x */
                for (int64_t y_d0 = 0; y_d0 < n_faces; y_d0++) {
                    if ((y_d0 & 63) == 0 && taf_cancelled(ctx)) return taf_cancel(ctx);
                    for (int64_t y_d1 = 0; y_d1 < feats; y_d1++) {
                        y[y_d0 * feats + y_d1] = 0.0f;
                    }
                }
                /* test.ft:2: x */
                for (int64_t i = 0; i < n_faces; i++) {
                    if ((i & 63) == 0 && taf_cancelled(ctx)) return taf_cancel(ctx);
                    /* test.ft:3: x */
                    for (int64_t j = 0; j < 3; j++) {
                        /* test.ft:4: x */
                        if (!(feats <= 0 || (0 <= (int64_t)adj[i * 3 + j] && (int64_t)adj[i * 3 + j] < n_faces))) {
                            return taf_fail(ctx, TAFFETA_ERROR_INDEX, 0, 4, "test.ft:4: index %lld is out of range for dimension 0 of `e`, which has size %lld", (long long)(int64_t)adj[i * 3 + j], (long long)n_faces);
                        }
                        if (!(feats <= 0 || (0 <= (int64_t)adj[i * 3 + (j + 1) % 3] && (int64_t)adj[i * 3 + (j + 1) % 3] < n_faces))) {
                            return taf_fail(ctx, TAFFETA_ERROR_INDEX, 0, 4, "test.ft:4: index %lld is out of range for dimension 0 of `e`, which has size %lld", (long long)(int64_t)adj[i * 3 + (j + 1) % 3], (long long)n_faces);
                        }
                        for (int64_t y_d0_2 = 0; y_d0_2 < feats; y_d0_2++) {
                            y[i * feats + y_d0_2] += fabsf(e[(int64_t)adj[i * 3 + j] * feats + y_d0_2] - e[(int64_t)adj[i * 3 + (j + 1) % 3] * feats + y_d0_2]);
                        }
                    }
                }
                return TAFFETA_OK;
            }
        "#]],
    );
}

#[test]
fn stencils_and_softmax_have_no_checks_left() {
    for func in [programs::jacobi(), programs::softmax()] {
        let lowered = lower(&func, &LowerOptions::default()).expect("the program can be lowered");
        let code = c::emit(&lowered, &sources()).code;
        let kernel = &code[code.find("static TAFFETA_KERNEL").expect("there is a kernel")..];
        assert!(!kernel.contains("TAFFETA_ERROR"), "{kernel}");
    }
}
