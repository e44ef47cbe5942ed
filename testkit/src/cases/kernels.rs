//! Kernels that people run, with operands in all formats.

use super::generate::{FORMATS, NAMES, REMAPPED};
use super::program::{Case, Data, Kind, Outcome, Param, Sort, Stmt, Text};
use crate::random::Random;
use taffeta_ast::format::Format;
use taffeta_ast::{DType, Literal};

/// Operands and results, each with its dimensions, and loops.
pub struct Kernel {
    pub name: &'static str,
    pub operands: &'static [(&'static str, &'static str)],
    results: &'static [(&'static str, &'static str)],
    /// Whether the kernel is a product of matrices over `min` and `+`.
    tropical: bool,
    loops: &'static str,
}

const fn kernel(
    name: &'static str,
    operands: &'static [(&'static str, &'static str)],
    results: &'static [(&'static str, &'static str)],
    loops: &'static str,
) -> Kernel {
    Kernel { name, operands, results, tropical: false, loops }
}

pub const KERNELS: &[Kernel] = &[
    kernel("dot", &[("A", "n"), ("B", "n")], &[("s", "")], "for i n\n s += A[i] * B[i]"),
    kernel("sum", &[("A", "n"), ("B", "n")], &[("y", "n")], "for i n\n y[i] = A[i] + B[i]"),
    kernel("triple", &[("A", "n"), ("B", "n"), ("C", "n")], &[("s", "")], "for i n\n s += A[i] * B[i] * C[i]"),
    kernel("mixed", &[("A", "n"), ("B", "n"), ("C", "n")], &[("s", "")], "for i n\n s += A[i] * (B[i] + C[i])"),
    kernel(
        "most",
        &[("A", "n"), ("B", "n"), ("C", "n")],
        &[("s", ""), ("y", "n")],
        "for i n\n s = max(s, A[i] - B[i])\n if C[i] > 0.5\n  y[i] += A[i]",
    ),
    kernel("spmv", &[("A", "nm"), ("B", "m")], &[("y", "n")], "for i n\n for j m\n  y[i] += A[i, j] * B[j]"),
    kernel("columns", &[("A", "nm"), ("B", "n")], &[("y", "m")], "for j m\n for i n\n  y[j] += A[i, j] * B[i]"),
    kernel(
        "spmm",
        &[("A", "nm"), ("B", "ml")],
        &[("y", "nl")],
        "for i n\n for j m\n  for k l\n   y[i, k] += A[i, j] * B[j, k]",
    ),
    kernel(
        "sddmm",
        &[("A", "nm"), ("B", "nl"), ("C", "ml")],
        &[("y", "nm")],
        "for i n\n for j m\n  for k l\n   y[i, j] += A[i, j] * B[i, k] * C[j, k]",
    ),
    kernel(
        "add",
        &[("A", "nm"), ("B", "nm")],
        &[("y", "nm")],
        "for i n\n for j m\n  y[i, j] = A[i, j] + 0.5 * B[i, j]",
    ),
    kernel(
        "scores",
        &[("A", "nm"), ("B", "nm"), ("C", "nm")],
        &[("s", ""), ("y", "n")],
        "for i n\n for j m\n  s += A[i, j] * B[i, j] * C[i, j]\n  y[i] = max(y[i], A[i, j] + C[i, j])",
    ),
    kernel(
        "triangles",
        &[("A", "nn"), ("B", "nn"), ("C", "nn")],
        &[("s", "")],
        "for i n\n for j n\n  for k n\n   s += A[i, j] * B[i, k] * C[j, k]",
    ),
    Kernel {
        tropical: true,
        ..kernel(
            "paths",
            &[("A", "nm"), ("B", "n")],
            &[("y", "m")],
            "for i n\n for j m\n  y[j] = min(y[j], B[i] + A[i, j])",
        )
    },
    kernel(
        "vector",
        &[("A", "nml"), ("B", "l")],
        &[("y", "nm")],
        "for i n\n for j m\n  for k l\n   y[i, j] += A[i, j, k] * B[k]",
    ),
    kernel(
        "inner",
        &[("A", "nml"), ("B", "nml")],
        &[("s", "")],
        "for i n\n for j m\n  for k l\n   s += A[i, j, k] * B[i, j, k]",
    ),
    kernel(
        "mttkrp",
        &[("A", "nml"), ("B", "mn"), ("C", "ln")],
        &[("y", "nn")],
        "for i n\n for j m\n  for k l\n   for r n\n    y[i, r] += A[i, j, k] * B[j, r] * C[k, r]",
    ),
];

fn dims(of: &str) -> Vec<&'static str> {
    let one = |c: char| NAMES.into_iter().find(|n| n.starts_with(c)).unwrap_or_else(|| panic!("unknown dimension {c}"));
    of.chars().map(one).collect()
}

/// Parses the lines that are indented by `depth` spaces, with deeper lines as their bodies; `square`: all dimensions
/// are `n`.
fn blocks(lines: &[&str], depth: usize, square: bool) -> Vec<Stmt> {
    let mut out = Vec::new();
    for (k, line) in lines.iter().enumerate() {
        let indent = |l: &str| l.len() - l.trim_start().len();
        if indent(line) != depth {
            continue;
        }
        let inside = lines[k + 1..].iter().take_while(|l| indent(l) > depth).count();
        let words: Vec<&str> = line.split_whitespace().collect();
        let text = match words[..] {
            ["for", i, n] => format!("for {i} in range({})", if square { "n" } else { n }),
            _ => line.trim().to_string(),
        };
        let text = Text::leaf(Sort::Line, text);
        out.push(match inside {
            0 => Stmt::Line(text),
            _ => Stmt::Block(text, blocks(&lines[k + 1..=k + inside], depth + 1, square)),
        });
    }
    out
}

impl Kernel {
    /// Builds the case of the kernel on operands in these formats.
    pub fn case(&self, formats: &[Format], seed: u64) -> Case {
        let kind = match (self.tropical, seed % 2) {
            (true, _) => Kind::Tropical { most: false },
            (false, 0) => Kind::Finite,
            _ => Kind::Any,
        };
        let fill = self.tropical.then_some(Literal::Float(f64::INFINITY));
        // Formats of matrix halves need square matrices, so all dimensions become one.
        let square = formats.iter().any(|f| f.squares().count() > 0);
        let dims = |of: &str| if square { vec!["n"; of.len()] } else { dims(of) };
        let param = |((name, of), format): (&(&str, &str), &Format)| {
            let format = Some(Format { fill, ..format.clone() });
            Param { name: name.to_string(), dtype: DType::F64, dims: dims(of), format, data: Data::Values, of: None }
        };
        let params = self.operands.iter().zip(formats).map(param).collect();
        let first = if self.tropical { "inf" } else { "0.0" };
        let result = |(name, of): &(&str, &str)| {
            let (name, first) = (name.to_string(), first.to_string());
            Outcome { name, dtype: DType::F64, dims: dims(of), first, format: None, of: None }
        };
        let results = self.results.iter().map(result).collect();
        let mut random = Random(seed);
        random.next(2);
        let most = if self.operands.iter().any(|o| o.1.len() > 2) { 4 } else { 7 };
        let mut size = || if random.next(12) == 0 { 0 } else { 1 + random.next(most) as i64 };
        let sizes = NAMES.into_iter().map(|n| (n, size())).collect();
        let body = blocks(&self.loops.lines().collect::<Vec<_>>(), 0, square);
        Case { seed, kind, params, results, body, sizes }
    }
}

/// Builds a case of a random kernel, with operands in random formats.
pub fn random(seed: u64) -> Case {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    random.next(2);
    let kernel = &KERNELS[random.next(KERNELS.len())];
    let formats: Vec<Format> = kernel.operands.iter().map(|(_, of)| any(of.len(), &mut random)).collect();
    kernel.case(&formats, seed)
}

/// Picks a format of `ndim` dimensions, in a random order of the dimensions one time in three.
pub fn any(ndim: usize, random: &mut Random) -> Format {
    if ndim == 2 && random.next(5) == 0 {
        return REMAPPED[random.next(REMAPPED.len())].clone();
    }
    let all = &FORMATS[ndim - 1];
    let mut order: Vec<usize> = (0..ndim).collect();
    (1..ndim).for_each(|k| order.swap(k, random.next(k + 1)));
    let format = all[random.next(all.len())].clone();
    if random.next(3) == 0 { format.ordered(&order) } else { format }
}
