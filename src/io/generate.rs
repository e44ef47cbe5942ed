//! Generators: inputs that are made, not read. The parameter gives shape and type.
//!
//! Random numbers come from ChaCha8 with a fixed seed, so that a run can be repeated. Without `seed=` the seed depends
//! on the parameter's name: two parameters that both say `rand` get different numbers.

use super::{Want, convert, fitting::fit, literal::Scalar, memory};
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::cell::RefCell;
use taffeta_ast::value::element_count;
use taffeta_ast::{Buffer, DType, Diagnostic, Literal, Value};

/// A generator with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Generator {
    kind: Kind,
    seed: Option<u64>,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Uniform in [0, 1).
    Rand,
    /// Standard normal.
    Randn,
    /// Uniform integers in lo..hi.
    Randint(i128, i128),
    Zeros,
    Ones,
    /// 0, 1, 2 … in row-major order.
    Arange,
    /// Uniform in [0, 1) (integers: 1) at random places, of which that part has elements.
    Sprand(f64),
}

impl Generator {
    /// All generators.
    pub const NAMES: [&'static str; 7] = ["rand", "randn", "randint", "zeros", "ones", "arange", "sprand"];

    /// The text it was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads `name` or `name(arguments)`; `None` if the name is not a generator's.
    pub fn parse(text: &str) -> Option<Result<Generator, Diagnostic>> {
        let (name, args) = match text.split_once('(') {
            Some((name, rest)) => (name.trim(), Some(rest.trim())),
            None => (text, None),
        };
        if !Generator::NAMES.contains(&name) {
            return None;
        }
        Some(Generator::with_args(name, args, text))
    }

    fn with_args(name: &str, args: Option<&str>, text: &str) -> Result<Generator, Diagnostic> {
        let bad = |what: String| Diagnostic::new("input::generator", format!("`{text}`: {what}"));
        let inner = match args {
            None => "",
            Some(a) => a.strip_suffix(')').ok_or_else(|| bad("the closing parenthesis is missing".into()))?,
        };
        let mut positional = Vec::new();
        let mut named: Vec<(&str, i128)> = Vec::new();
        let mut density = None;
        for arg in inner.split(',').map(str::trim).filter(|a| !a.is_empty()) {
            let (key, value) = match arg.split_once('=') {
                Some((k, v)) => (Some(k.trim()), v.trim()),
                None => (None, arg),
            };
            if let (Some("density"), "sprand") = (key, name) {
                density = value.parse::<f64>().ok().filter(|d| (0.0..=1.0).contains(d));
                if density.is_none() {
                    return Err(bad(format!("a density is a number from 0 to 1, and this is `{value}`")));
                }
                continue;
            }
            if let (None, "sprand", Ok(density)) = (key, name, value.parse::<f64>()) {
                return Err(bad("the number needs its name".into()).help(format!("write `sprand(density={density})`")));
            }
            let value = match Scalar::parse(value) {
                Some(Scalar::Int(v)) => v,
                _ => return Err(bad(format!("`{value}` is not an integer"))),
            };
            match key {
                Some(k) => named.push((k, value)),
                None => positional.push(value),
            }
        }
        let mut take = |key: &str| named.iter().position(|(k, _)| *k == key).map(|i| named.remove(i).1);
        let random = matches!(name, "rand" | "randn" | "randint" | "sprand");
        let seed = if random { take("seed") } else { None };
        let seed = match seed {
            None => None,
            Some(s) => Some(u64::try_from(s).map_err(|_| bad("the seed must be between 0 and 2^64 - 1".into()))?),
        };
        let kind = match name {
            "rand" => Kind::Rand,
            "randn" => Kind::Randn,
            "zeros" => Kind::Zeros,
            "ones" => Kind::Ones,
            "arange" => Kind::Arange,
            "sprand" => match density {
                Some(density) => Kind::Sprand(density),
                None => {
                    return Err(bad("how many elements there are is missing".into())
                        .help("write the part of them that is stored: `sprand(density=0.01)`"));
                }
            },
            _ => {
                let mut bound = |key: &str| match take(key) {
                    Some(v) => Some(v),
                    None if positional.is_empty() => None,
                    None => Some(positional.remove(0)),
                };
                match (bound("lo"), bound("hi")) {
                    (Some(lo), Some(hi)) if lo < hi => Kind::Randint(lo, hi),
                    (Some(lo), Some(hi)) => return Err(bad(format!("no integer is at least {lo} and below {hi}"))),
                    _ => return Err(bad("two bounds are needed: `randint(lo,hi)` gives lo <= x < hi".into())),
                }
            }
        };
        if let Some(extra) = named.first().map(|(k, _)| format!("{k}=")).or(positional.first().map(i128::to_string)) {
            let has = match kind {
                Kind::Rand | Kind::Randn => "`seed=`",
                Kind::Randint(..) => "two bounds and `seed=`",
                Kind::Sprand(_) => "`density=` and `seed=`",
                Kind::Zeros | Kind::Ones | Kind::Arange => "no arguments",
            };
            return Err(bad(format!("`{extra}` is not expected: `{name}` takes {has}")));
        }
        Ok(Generator { kind, seed, text: text.to_string() })
    }

    /// Makes a tensor of the wanted type.
    pub fn generate(&self, want: &Want, shape: &[usize]) -> Result<Value, Diagnostic> {
        memory::check_tensor(want.dtype, shape, &format!("parameter `{}`", want.name))?;
        if let Kind::Sprand(_) = self.kind {
            let (value, _) = self.sparse(want, shape)?.dense().ok_or_else(|| too_large(want))?;
            return Ok(value);
        }
        let n = element_count(shape).unwrap_or(0);
        let rng = RefCell::new(ChaCha8Rng::seed_from_u64(self.seed.unwrap_or_else(|| seed_of(&want.name))));
        let data = if want.dtype.is_float() { self.floats(want, n, &rng)? } else { self.integers(want, n, &rng)? };
        let made = Value::new(shape.to_vec(), data).ok_or_else(|| too_large(want))?;
        Ok(fitting(made, want, &mut rng.into_inner()))
    }

    /// Whether it makes some elements of a tensor.
    pub fn is_sparse(&self) -> bool {
        matches!(self.kind, Kind::Sprand(_))
    }

    /// Makes the elements of a sparse tensor: as many as the density says, rounded, at different places; of these, and
    /// across the diagonal of a symmetric matrix, what its format can hold.
    pub fn sparse(&self, want: &Want, shape: &[usize]) -> Result<Value, Diagnostic> {
        let density = if let Kind::Sprand(density) = self.kind { density } else { 1.0 };
        let total = shape.iter().try_fold(1u128, |n, d| n.checked_mul(*d as u128)).ok_or_else(|| too_large(want))?;
        let count = (density * total as f64).round() as u128;
        // Of each: its indices, a place in the set below, and the element.
        let bytes = count.saturating_mul(8 * shape.len() as u128 + 48);
        memory::check_bytes(bytes, &format!("parameter `{}`", want.name))?;
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed.unwrap_or_else(|| seed_of(&want.name)));
        // Of places that are more than half taken, those are drawn that are not.
        let (drawn, complement) = if count > total / 2 { (total - count, true) } else { (count, false) };
        let mut places = std::collections::BTreeSet::new();
        while (places.len() as u128) < drawn {
            places.insert(rng.random_range(0..total));
        }
        let places: Vec<u128> = match complement {
            true => (0..total).filter(|p| !places.contains(p)).collect(),
            false => places.into_iter().collect(),
        };
        let mut indices = vec![0i64; places.len() * shape.len()];
        for (e, place) in places.iter().enumerate() {
            let mut rest = *place;
            for (d, n) in shape.iter().enumerate().rev() {
                indices[e * shape.len() + d] = (rest % *n as u128) as i64;
                rest /= *n as u128;
            }
        }
        let elements = match want.dtype.is_float() {
            true => {
                let rng = RefCell::new(&mut rng);
                convert::floats(want.dtype, places.len(), |_| Ok(uniform(want.dtype, &mut rng.borrow_mut())))?
            }
            false => convert::integers(want.dtype, places.len(), |_| Ok(1))?,
        };
        let made = Value::sparse(shape.to_vec(), indices, elements, Literal::zero(want.dtype));
        Ok(fitting(made.ok_or_else(|| too_large(want))?, want, &mut rng))
    }

    fn floats(&self, want: &Want, n: usize, rng: &RefCell<ChaCha8Rng>) -> Result<Buffer, Diagnostic> {
        let dtype = want.dtype;
        convert::floats(dtype, n, |i| {
            let v = match self.kind {
                Kind::Rand => uniform(dtype, &mut rng.borrow_mut()),
                Kind::Randn => normal(&mut rng.borrow_mut()),
                Kind::Randint(lo, hi) => rng.borrow_mut().random_range(lo..hi) as f64,
                Kind::Zeros => 0.0,
                Kind::Ones => 1.0,
                Kind::Arange => i as f64,
                Kind::Sprand(_) => unreachable!("it is not made element by element"),
            };
            Ok(v)
        })
    }

    fn integers(&self, want: &Want, n: usize, rng: &RefCell<ChaCha8Rng>) -> Result<Buffer, Diagnostic> {
        let (lo, hi) = want.dtype.int_range().unwrap_or((0, 0));
        let fits = match self.kind {
            Kind::Rand | Kind::Randn => {
                return Err(Diagnostic::new(
                    "input::generator",
                    format!("`{}` makes floats, but parameter `{}` is {}", self.text, want.name, want.dtype),
                )
                .help(if want.dtype == DType::Bool {
                    "use `randint(0,2)`"
                } else {
                    "use `randint(lo,hi)`"
                }));
            }
            Kind::Randint(a, b) => a >= lo && b - 1 <= hi,
            Kind::Arange => n as i128 <= hi.saturating_add(1),
            Kind::Zeros | Kind::Ones | Kind::Sprand(_) => true,
        };
        if !fits {
            return Err(Diagnostic::new(
                "data::range",
                format!(
                    "`{}` makes values that parameter `{}` of type {} cannot hold",
                    self.text, want.name, want.dtype
                ),
            )
            .note(format!("{} holds {lo} to {hi}", want.dtype)));
        }
        convert::integers(want.dtype, n, |i| {
            Ok(match self.kind {
                Kind::Randint(a, b) => rng.borrow_mut().random_range(a..b),
                Kind::Ones => 1,
                Kind::Arange => i as i128,
                Kind::Rand | Kind::Randn | Kind::Zeros | Kind::Sprand(_) => 0,
            })
        })
    }
}

/// What is made, as the parameter's format can hold it.
fn fitting(made: Value, want: &Want, rng: &mut ChaCha8Rng) -> Value {
    let Some(format) = &want.format else { return made };
    let fill = match made.places() {
        Some(places) => places.fill,
        None => want.fill.unwrap_or(Literal::zero(want.dtype)),
    };
    fit(made, format, fill, rng)
}

fn too_large(want: &Want) -> Diagnostic {
    Diagnostic::new("data::too_large", format!("parameter `{}` is too large", want.name))
}

/// As many random bits as the type's fraction has, so that rounding never gives 1.
fn uniform(dtype: DType, rng: &mut ChaCha8Rng) -> f64 {
    let bits = match dtype {
        DType::F16 => 11,
        DType::Bf16 => 8,
        DType::F32 => 24,
        _ => 53,
    };
    (rng.next_u64() >> (64 - bits)) as f64 / (1u64 << bits) as f64
}

/// Box and Muller's transform; one of its two numbers is enough here.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let u = 1.0 - uniform(DType::F64, rng); // in (0, 1]: its logarithm is finite
    let v = uniform(DType::F64, rng);
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// FNV-1a: the same on every machine and in every release of the standard library.
fn seed_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use taffeta_ast::format::Format;

    fn make(text: &str, name: &str, dtype: DType, shape: &[usize]) -> Result<Buffer, String> {
        let g = Generator::parse(text).expect("a generator").map_err(|d| d.message)?;
        let want = Want::new(name, dtype, shape.len());
        g.generate(&want, shape).map(|v| v.into_parts().1).map_err(|d| d.message)
    }

    #[test]
    fn generators_make_what_they_say() {
        assert_eq!(make("zeros", "x", DType::I8, &[2]), Ok(Buffer::I8(vec![0, 0])));
        assert_eq!(make("ones", "x", DType::Bool, &[2]), Ok(Buffer::Bool(vec![true, true])));
        assert_eq!(make("arange", "x", DType::F32, &[2, 2]), Ok(Buffer::F32(vec![0.0, 1.0, 2.0, 3.0])));
        let r = make("rand", "x", DType::F32, &[1000]).unwrap();
        assert!((0..1000).all(|i| (0.0..1.0).contains(&r.get_f64(i))));
        let mean = (0..1000).map(|i| r.get_f64(i)).sum::<f64>() / 1000.0;
        assert!((mean - 0.5).abs() < 0.05, "{mean}");
        let z = make("randn(seed=3)", "x", DType::F64, &[4000]).unwrap();
        let var = (0..4000).map(|i| z.get_f64(i).powi(2)).sum::<f64>() / 4000.0;
        assert!((var - 1.0).abs() < 0.1, "{var}");
        let i = make("randint(-2, 3)", "x", DType::I32, &[500]).unwrap();
        let seen: std::collections::BTreeSet<_> = (0..500).map(|k| i.get_int(k)).collect();
        assert_eq!(seen.into_iter().flatten().collect::<Vec<_>>(), [-2, -1, 0, 1, 2]);
    }

    #[test]
    fn seeds_decide() {
        let x = make("rand", "x", DType::F64, &[4]).unwrap();
        assert_eq!(x, make("rand()", "x", DType::F64, &[4]).unwrap());
        assert_ne!(x, make("rand", "y", DType::F64, &[4]).unwrap());
        let seeded = make("rand(seed=1)", "x", DType::F64, &[4]).unwrap();
        assert_eq!(seeded, make("rand(seed=1)", "y", DType::F64, &[4]).unwrap());
    }

    #[test]
    fn sparse_ones_have_as_many_elements_as_their_density_says() {
        let want = Want::new("A", DType::F64, 2);
        let sparse = |text: &str, shape: &[usize]| {
            Generator::parse(text).expect("a generator").expect("it makes sense").sparse(&want, shape).expect("it fits")
        };
        for (density, count) in [("0", 0), ("0.1", 6), ("0.5", 30), ("0.9", 54), ("1", 60)] {
            let a = sparse(&format!("sprand(density={density})"), &[6, 10]);
            assert_eq!(a.data().len(), count, "{density}");
            assert!(a.numbers().iter().all(|v| (0.0..1.0).contains(v)));
            let dense = make(&format!("sprand(density={density})"), "A", DType::F64, &[6, 10]).expect("it fits");
            assert_eq!(dense, a.dense().expect("it is small").0.into_parts().1);
        }
        assert_eq!(sparse("sprand(density=1e-15)", &[1 << 30, 1 << 30]).data().len(), 1153);
    }

    #[test]
    fn what_is_made_is_what_the_format_holds() {
        use taffeta_ast::format::{Level, LevelKind, Named};
        let matrices = [Named::Symmetric, Named::LowerTriangular, Named::UpperTriangular].map(|f| f.format(2));
        let matrices = matrices.map(|f| f.expect("of matrices")).into_iter();
        let point = Format::new([LevelKind::Dense, LevelKind::Point].map(Level::new).to_vec());
        let columns = Named::LowerTriangular.format(2).expect("of matrices").ordered(&[1, 0]);
        for format in matrices.chain([point, columns]) {
            for text in ["rand", "randn(seed=3)", "ones", "arange", "sprand(density=0.5)", "sprand(density=1)"] {
                let generator = Generator::parse(text).expect("a generator").expect("it makes sense");
                let (zero, plain) = (Literal::Float(0.0), Want::new("A", DType::F64, 2));
                let want = Want { fill: Some(zero), format: Some(format.clone()), ..plain.clone() };
                let made = match generator.is_sparse() {
                    true => generator.sparse(&want, &[7, 7]).expect("it fits"),
                    false => generator.generate(&want, &[7, 7]).expect("it fits").only(zero, |_| true),
                };
                let places = made.places().expect("it is sparse").indices.clone();
                let nonzero: Vec<usize> = (0..made.data().len()).filter(|k| made.data().get_f64(*k) != 0.0).collect();
                let mut data = Buffer::zeros(DType::F64, nonzero.len());
                for (to, k) in nonzero.iter().enumerate() {
                    data.set(to, made.data().get(*k));
                }
                let indices: Vec<i64> = nonzero.iter().flat_map(|k| [places[2 * k], places[2 * k + 1]]).collect();
                let stored = taffeta_structured::Stored::pack(&[7, 7], &format, &indices, &data);
                assert!(stored.is_ok(), "{text}, {format}: {stored:?}");
                // What is left is what would be there without the format.
                let whole = generator.generate(&plain, &[7, 7]).expect("it fits");
                let held = |k: usize| format.stored_for(&indices[2 * k..2 * k + 2]).expect("there is room");
                let kept = (0..data.len()).all(|k| {
                    let at = held(k);
                    whole.data().get(at[0] as usize * 7 + at[1] as usize) == data.get(k)
                });
                let least = if format.levels[1].kind == LevelKind::Point { 5 } else { 10 };
                assert!(kept && data.len() >= least, "{text}, {format}: {} elements", data.len());
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, says) in [
            ("rand(", "closing parenthesis"),
            ("rand(3)", "`3` is not expected: `rand` takes `seed=`"),
            ("zeros(seed=1)", "`seed=` is not expected: `zeros` takes no arguments"),
            ("randint(3)", "two bounds"),
            ("randint(3,3)", "no integer is at least 3 and below 3"),
            ("rand(seed=x)", "`x` is not an integer"),
            ("rand(seed=-1)", "between 0 and"),
            ("sprand", "how many elements there are is missing"),
            ("sprand(0.1)", "the number needs its name"),
            ("sprand(density=2)", "a density is a number from 0 to 1, and this is `2`"),
            ("sprand(density=0.5, hi=3)", "`hi=` is not expected: `sprand` takes `density=` and `seed=`"),
        ] {
            let e = make(text, "x", DType::F32, &[1]).unwrap_err();
            assert!(e.contains(says), "{text}: {e}");
        }
        assert!(make("rand", "x", DType::I32, &[1]).unwrap_err().contains("makes floats"));
        assert!(make("randint(0,300)", "x", DType::U8, &[1]).unwrap_err().contains("cannot hold"));
        assert!(make("arange", "x", DType::I8, &[129]).is_err());
        assert!(make("zeros", "x", DType::F32, &[usize::MAX, 3]).unwrap_err().contains("overflow"));
        assert!(make("zeros", "x", DType::F64, &[1 << 48]).unwrap_err().contains("do not fit in memory"));
    }

    proptest! {
        #[test]
        fn no_arguments_make_it_panic(args in "[a-z0-9=,() -]{0,20}") {
            for name in Generator::NAMES {
                let _ = make(&format!("{name}({args}"), "x", DType::I16, &[3]);
                let _ = make(&format!("{name}({args})"), "x", DType::F16, &[3]);
            }
        }
    }
}
