//! Conversions between the storage of 16-bit floats and `float`, in C.
//!
//! The conversions are integer arithmetic without branches, so that every loop with them can be vectorised: with 16
//! lanes they cost less than the scalar instructions (F16C), which compilers do not vectorise, nor any loop around
//! them. A loop with a loop-carried dependence is not vectorised anyway, and there the instructions are faster: the
//! conversions with the suffix `_scalar` use them. The builtins for these instructions differ between compilers and
//! versions (clang 22 has no `__builtin_ia32_vcvtph2ps`), so both are tested for (`TAFFETA_F16C` in
//! `taffeta_runtime.h`); compilers without one of them get the arithmetic.
//!
//! Casts to `_Float16` are never printed: gcc 12 drops the rounding of `(float)(_Float16)x` in loops of known length
//! that it vectorises for AVX512-FP16, and elsewhere calls a library function for each number.

use taffeta_ast::DType;

/// Kind of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// From storage to `float`.
    Load,
    /// From `float` to storage, with rounding.
    Store,
    /// From `float` to the nearest `float` that the 16-bit type represents.
    Round,
    /// From `double` to the nearest `float` that the 16-bit type represents, with a single rounding.
    RoundF64,
}

impl Conversion {
    /// Returns the name of the conversion's function; `scalar`: for code that is not vectorised.
    pub fn name(self, dtype: DType, scalar: bool) -> String {
        let what = match self {
            Conversion::Load => "load",
            Conversion::Store => "store",
            Conversion::Round => "round",
            Conversion::RoundF64 => "round_f64",
        };
        // bf16 has one version only, since it is the upper half of a float.
        let kind = if scalar && dtype == DType::F16 { "_scalar" } else { "" };
        format!("taf_{}_{what}{kind}", dtype.name())
    }
}

/// Returns the conversion functions of a type, which are short and call each other.
pub(super) fn conversions(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => F16,
        DType::Bf16 => BF16,
        other => unreachable!("{other} is stored as it is computed"),
    }
}

/// Round-to-odd from `double` to `float`: the result retains the direction of rounding, so rounding it again, to fewer
/// bits, equals rounding the double directly.
pub(super) const ROUND_TO_ODD: &str = "\
static inline TAFFETA_UNUSED float taf_odd(double x) {
    float f = (float)x;
    uint32_t bits, odd;
    memcpy(&bits, &f, 4);
    odd = (bits - ((double)fabsf(f) > fabs(x) ? 1 : 0)) | 1;
    bits = (x == x) & ((double)f != x) ? odd : bits;
    memcpy(&f, &bits, 4);
    return f;
}";

const F16: &str = "\
static inline TAFFETA_UNUSED float taf_f16_load(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff, tiny, bits;
    float f = (float)(int32_t)rest * 0x1p-24f;
    memcpy(&tiny, &f, 4);
    bits = rest >= 0x7c00 ? rest << 13 | 0x7f800000 : rest >= 0x400 ? (rest << 13) + 0x38000000 : tiny;
    bits |= sign;
    memcpy(&f, &bits, 4);
    return f;
}
static inline TAFFETA_UNUSED uint16_t taf_f16_store(float f) {
    uint32_t bits, tiny, rest, h;
    memcpy(&bits, &f, 4);
    rest = bits & 0x7fffffff;
    /* Adding 0.5 rounds subnormal numbers to units of 2^-24. */
    float least = fabsf(f) + 0.5f;
    memcpy(&tiny, &least, 4);
    h = (rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13;
    h = rest < 0x38800000 ? tiny - 0x3f000000 : h;
    h = rest >= 0x477ff000 ? 0x7c00 : h;
    h = rest > 0x7f800000 ? 0x7e00 | (rest >> 13 & 0x1ff) : h;
    return (uint16_t)(h | (bits >> 16 & 0x8000));
}
#ifdef TAFFETA_F16C
typedef float taf_f16_floats __attribute__((vector_size(16)));
typedef short taf_f16_shorts __attribute__((vector_size(16)));
static inline TAFFETA_UNUSED float taf_f16_load_scalar(uint16_t h) {
    taf_f16_shorts v = {(short)h, 0, 0, 0, 0, 0, 0, 0};
    return ((taf_f16_floats)__builtin_ia32_vcvtph2ps(v))[0];
}
static inline TAFFETA_UNUSED uint16_t taf_f16_store_scalar(float f) {
    taf_f16_floats v = {f, 0.0f, 0.0f, 0.0f};
    return (uint16_t)((taf_f16_shorts)__builtin_ia32_vcvtps2ph(v, 0))[0];
}
#else
static inline TAFFETA_UNUSED float taf_f16_load_scalar(uint16_t h) { return taf_f16_load(h); }
static inline TAFFETA_UNUSED uint16_t taf_f16_store_scalar(float f) { return taf_f16_store(f); }
#endif
static inline TAFFETA_UNUSED float taf_f16_round(float f) { return taf_f16_load(taf_f16_store(f)); }
static inline TAFFETA_UNUSED float taf_f16_round_scalar(float f) { return taf_f16_load_scalar(taf_f16_store_scalar(f)); }
static inline TAFFETA_UNUSED float taf_f16_round_f64(double x) { return taf_f16_round(taf_odd(x)); }
static inline TAFFETA_UNUSED float taf_f16_round_f64_scalar(double x) { return taf_f16_round_scalar(taf_odd(x)); }";

const BF16: &str = "\
static inline TAFFETA_UNUSED float taf_bf16_load(uint16_t h) {
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static inline TAFFETA_UNUSED uint16_t taf_bf16_store(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}
static inline TAFFETA_UNUSED float taf_bf16_round(float f) { return taf_bf16_load(taf_bf16_store(f)); }
static inline TAFFETA_UNUSED float taf_bf16_round_f64(double x) { return taf_bf16_round(taf_odd(x)); }";
