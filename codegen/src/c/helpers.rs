//! Operators that C lacks, as `static inline` functions. Only those that a program uses are printed.
//!
//! Each translates the definition in `ast/src/scalar.rs`. `min` and `max` are a comparison and a test for NaN joined by
//! `|`, which gcc turns into vector blends; with a constant operand that is not NaN, the comparison alone, in the
//! direction that is false for NaN.

use super::half::{self, Conversion};
use super::types;
use std::collections::BTreeMap;
use taffeta_ast::{DType, Op};

/// Helpers used so far, with their text. Ordered by name, so that equal programs print equally.
#[derive(Debug, Default)]
pub(super) struct Helpers {
    /// Vector types.
    vectors: BTreeMap<String, String>,
    /// Declarations of mathematical functions with vector versions.
    simd: BTreeMap<String, String>,
    /// Conversions of 16-bit floats, which other helpers call.
    conversions: BTreeMap<String, String>,
    functions: BTreeMap<String, String>,
    /// Reductions that OpenMP lacks, which call functions.
    reductions: BTreeMap<String, String>,
}

/// `expf` with the polynomial of Cephes; within 2 units in the last place. The power of two is multiplied in two steps,
/// since a single factor may be out of range where the result is not.
const EXPONENTIAL: &str = "\
static inline float taf_pow2_f32(int32_t n) {
    int32_t bits = (n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}
static inline float taf_exp_f32(float x) {
    float n = rintf(x * 1.44269504f);
    n = n < 128.0f ? n : 128.0f;
    n = n > -150.0f ? n : -150.0f;
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t whole = (int32_t)n, half = whole >> 1;
    p = p * taf_pow2_f32(half) * taf_pow2_f32(whole - half);
    return x < -104.0f ? 0.0f : p;
}";

impl Helpers {
    /// Returns the text of all used helpers, for the head of the file.
    pub fn text(&self) -> String {
        let groups = [&self.vectors, &self.simd, &self.conversions, &self.functions, &self.reductions];
        let mut out = String::new();
        for group in groups.into_iter().filter(|g| !g.is_empty()) {
            for text in group.values() {
                out.push_str(text);
                out.push('\n');
            }
            out.push('\n');
        }
        out
    }

    /// Returns whether a used helper selects between floats; gcc compiles such code better without some of its passes.
    pub fn selects(&self) -> bool {
        let selecting = ["taf_min_f", "taf_max_f", "taf_sign_f", "taf_exp_f"];
        self.functions.keys().any(|name| selecting.iter().any(|s| name.starts_with(s)))
    }

    /// Returns the operator's function of `math.h`, declared with its vector versions where libmvec has them.
    pub fn math(&mut self, op: Op, dtype: DType) -> String {
        let info = op.info();
        let Some(name) = info.c_name else { unreachable!("`{}` is a function of math.h", info.name) };
        let c_name = if dtype == DType::F64 { name.to_string() } else { format!("{name}f") };
        let attribute = match info.libmvec.map(|v| v.since) {
            None => return c_name,
            Some(..=22) => "TAFFETA_SIMD",
            Some(_) => "TAFFETA_SIMD_2_35",
        };
        let t = types::value(dtype);
        let args = vec![t; info.arity].join(", ");
        self.simd.insert(c_name.clone(), format!("extern {t} {c_name}({args}) {attribute};"));
        c_name
    }

    /// Declares a vector type of `lanes` lanes, and the type of such a vector in memory, aligned to an element only.
    pub fn vector(&mut self, dtype: DType, lanes: usize) -> String {
        let (t, name, bytes) = (types::stored(dtype), format!("taf_{}x{lanes}", dtype.name()), lanes * dtype.size());
        let text = format!(
            "typedef {t} {name} __attribute__((vector_size({bytes})));\n\
             typedef {t} {name}_at __attribute__((vector_size({bytes}), aligned({})));",
            dtype.size()
        );
        self.vectors.insert(name.clone(), text);
        name
    }

    /// Declares e^x in f32 without branches: 2^n e^r with |r| <= ln 2 / 2, e^r by a polynomial.
    pub fn exponential(&mut self) -> String {
        self.functions.insert("taf_exp_f32".to_string(), EXPONENTIAL.to_string());
        "taf_exp_f32".to_string()
    }

    /// Declares the function that sums the lanes of a vector by halves.
    ///
    /// Once the sum of halves would not fill 16 bytes, the upper half is rotated down within the register: gcc moves
    /// vectors of 8 bytes through memory if they are in a register that only AVX-512 has.
    pub fn horizontal_sum(&mut self, dtype: DType, lanes: usize) -> String {
        let of_type = self.vector(dtype, lanes);
        let base = dtype.name();
        let t = types::stored(dtype);
        let mut text = format!("static inline {t} taf_sum_{base}x{lanes}({of_type} v) {{\n");
        text.push_str("#if TAFFETA_SHUFFLES\n");
        // Invariant: the first `n` lanes of a vector of `width` lanes are still to be summed.
        let (mut name, mut width, mut n) = ("v".to_string(), lanes, lanes);
        while n > 2 {
            let half = n / 2;
            let sum = if half * dtype.size() < 16 {
                format!("{name} + {}", shuffle(&name, &name, (0..width).map(|k| (k + half) % width)))
            } else {
                width = half;
                [0, half].map(|from| shuffle(&name, &name, from..from + half)).join(" + ")
            };
            let of_sum = self.vector(dtype, width);
            text.push_str(&format!("    {of_sum} v{half} = {sum};\n"));
            (name, n) = (format!("v{half}"), half);
        }
        text.push_str(&format!("    return {name}[0] + {name}[1];\n#else\n    {t} sum = v[0];\n"));
        text.push_str(&format!("    for (int k = 1; k < {lanes}; k++) sum += v[k];\n    return sum;\n#endif\n}}"));
        let name = format!("taf_sum_{base}x{lanes}");
        self.functions.insert(name.clone(), text);
        name
    }

    /// Declares the function that sums the lanes of each of four vectors by halves, into one vector of four, with a
    /// third of the instructions of four separate sums.
    pub fn four_horizontal_sums(&mut self, dtype: DType, lanes: usize) -> String {
        let (of_type, of_four) = (self.vector(dtype, lanes), self.vector(dtype, 4));
        let name = format!("taf_sum4_{}x{lanes}", dtype.name());
        let (half, quarter) = (lanes / 2, lanes / 4);
        // Concatenates groups of `wide` lanes of two vectors, starting at the lanes `from`.
        let parts =
            |a: &str, b: &str, from: &[usize], wide: usize| shuffle(a, b, from.iter().flat_map(|k| *k..*k + wide));
        let mut text =
            format!("static inline {of_four} {name}({of_type} a, {of_type} b, {of_type} c, {of_type} d) {{\n");
        text.push_str("#if TAFFETA_SHUFFLES\n");
        for [to, a, b] in [["ab", "a", "b"], ["cd", "c", "d"]] {
            let [low, high] = [0, half].map(|k| parts(a, b, &[k, k + lanes], half));
            text.push_str(&format!("    {of_type} {to} = {low} + {high};\n"));
        }
        let [even, odd] = [0, quarter].map(|k| parts("ab", "cd", &[0, 1, 2, 3].map(|v| k + v * half), quarter));
        text.push_str(&format!("    {of_type} sums = {even} + {odd};\n"));
        let mut wide = quarter;
        while wide > 1 {
            wide /= 2;
            let swapped: Vec<usize> = (0..lanes).step_by(wide).map(|k| k ^ wide).collect();
            text.push_str(&format!("    sums += {};\n", parts("sums", "sums", &swapped, wide)));
        }
        let four = parts("sums", "sums", &[0, 1, 2, 3].map(|v| v * quarter), 1);
        let each = self.horizontal_sum(dtype, lanes);
        text.push_str(&format!("    return {four};\n#else\n"));
        text.push_str(&format!("    return ({of_four}){{{each}(a), {each}(b), {each}(c), {each}(d)}};\n#endif\n}}"));
        self.functions.insert(name.clone(), text);
        name
    }

    /// Declares a conversion of 16-bit floats; `scalar`: for code that is not vectorised.
    pub fn half_conversion(&mut self, what: Conversion, dtype: DType, scalar: bool) -> String {
        self.conversions.insert("_odd".to_string(), half::ROUND_TO_ODD.to_string());
        self.conversions.insert(dtype.name().to_string(), half::conversions(dtype).to_string());
        what.name(dtype, scalar)
    }

    /// Declares a reduction for OpenMP clauses: it starts from `start`, and combines `omp_out` with `omp_in` by a
    /// statement.
    pub fn reduction(&mut self, name: &str, dtype: DType, start: &str, combine: &str) {
        let c = types::stored(dtype);
        let text = format!("#pragma omp declare reduction({name} : {c} : {combine}) initializer(omp_priv = {start})");
        self.reductions.insert(name.to_string(), text);
    }

    /// Declares an atomic update of one element.
    pub fn atomic(&mut self, what: &str, dtype: DType, combine: &str) -> String {
        let name = format!("taf_atomic_{what}_{}", dtype.name());
        let text = ATOMIC.replace("NAME", &name).replace("COMBINE", combine);
        let text = text.replace("STORED", types::stored(dtype)).replace("VALUE", types::value(dtype));
        self.reductions.insert(name.clone(), text);
        name
    }

    /// Declares an operator on values of one type.
    pub fn operator(&mut self, what: &str, dtype: DType) -> String {
        let dtype = if types::is_narrow_float(dtype) { DType::F32 } else { dtype };
        let name = format!("taf_{what}_{}", dtype.name());
        if !self.functions.contains_key(&name) {
            let text = define(what, dtype)
                .replace("NAME", &name)
                .replace("UNSIGNED", types::stored(unsigned(dtype)))
                .replace("BITS", &(dtype.size() * 8).to_string())
                .replace("FMOD", if dtype == DType::F64 { "fmod" } else { "fmodf" })
                .replace("FLOOR", if dtype == DType::F64 { "floor" } else { "floorf" })
                .replace("COPYSIGN", if dtype == DType::F64 { "copysign" } else { "copysignf" })
                .replace('T', types::value(dtype));
            self.functions.insert(name.clone(), text);
        }
        name
    }
}

/// Compare-and-swap loop of an atomic update, retried until no other thread interferes.
const ATOMIC: &str = "static inline TAFFETA_UNUSED void NAME(STORED *at, VALUE value) {
    STORED seen, made;
    __atomic_load(at, &seen, __ATOMIC_RELAXED);
    do {
        made = seen;
        COMBINE
    } while (!__atomic_compare_exchange(at, &seen, &made, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}";

fn unsigned(dtype: DType) -> DType {
    match dtype {
        DType::I8 => DType::U8,
        DType::I16 => DType::U16,
        DType::I32 => DType::U32,
        DType::I64 => DType::U64,
        other => other,
    }
}

/// Returns the text of an operator; `T` is the value type.
fn define(what: &str, dtype: DType) -> &'static str {
    let float = dtype.is_float();
    match what {
        "min" if float => {
            "static inline T NAME(T a, T b) {
    if (taf_is_known(b) && b == b) return b <= a ? b : a;
    return (a < b) | (a != a) ? a : b;
}"
        }
        "max" if float => {
            "static inline T NAME(T a, T b) {
    if (taf_is_known(b) && b == b) return b >= a ? b : a;
    return (a > b) | (a != a) ? a : b;
}"
        }
        "min" => "static inline T NAME(T a, T b) { return a < b ? a : b; }",
        "max" => "static inline T NAME(T a, T b) { return a > b ? a : b; }",
        "abs" => "static inline T NAME(T a) { return (T)(a < 0 ? -a : a); }",
        "sign" if float => "static inline T NAME(T a) { return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a; }",
        "sign" => "static inline T NAME(T a) { return (T)((a > 0) - (a < 0)); }",
        "floordiv" if float => {
            "/* As NumPy: computed from the remainder, to agree with it where a / b would round up. */
static inline T NAME(T a, T b) {
    if (b == 0) return a / b;
    T r = FMOD(a, b);
    T q = (a - r) / b;
    if (r != 0 && (b < 0) != (r < 0)) q -= 1;
    if (q == 0) return COPYSIGN(0, a / b);
    T f = FLOOR(q);
    return q - f > (T)0.5 ? f + 1 : f;
}"
        }
        "mod" if float => {
            "/* As NumPy: the remainder has the sign of the divisor, even if it is zero. */
static inline T NAME(T a, T b) {
    T r = FMOD(a, b);
    if (b == 0 || r != r) return r;
    if (r == 0) return COPYSIGN(0, b);
    return (b < 0) != (r < 0) ? r + b : r;
}"
        }
        "floordiv" => {
            "/* As Python's //: rounds down. */
static inline T NAME(T a, T b) { return (T)(a / b - (a % b != 0 && (a < 0) != (b < 0))); }"
        }
        "mod" => {
            "/* As Python's %: has the sign of the divisor. */
static inline T NAME(T a, T b) {
    T r = (T)(a % b);
    return (T)(r != 0 && (r < 0) != (b < 0) ? r + b : r);
}"
        }
        "pow" => {
            "static inline T NAME(T base, T exponent) {
    uint64_t b = (uint64_t)base, product = 1;
    for (uint64_t e = (uint64_t)exponent; e != 0; e >>= 1) {
        if (e & 1) product *= b;
        b *= b;
    }
    return (T)product;
}"
        }
        "shl" => "static inline T NAME(T a, T count) { return count >= BITS ? 0 : (T)((uint64_t)a << count); }",
        // Right shifts of negative numbers keep the sign in every compiler that takes this code.
        "shr" => {
            "static inline T NAME(T a, T count) { return (T)(a >> (count >= BITS ? BITS - 1 : count) >> (count >= BITS)); }"
        }
        other => unreachable!("unknown helper `{other}`"),
    }
}

/// Prints a shuffle: a vector of lanes of two others, numbered through both.
fn shuffle(a: &str, b: &str, lanes: impl IntoIterator<Item = usize>) -> String {
    let lanes: Vec<String> = lanes.into_iter().map(|k| k.to_string()).collect();
    format!("__builtin_shufflevector({a}, {b}, {})", lanes.join(", "))
}
