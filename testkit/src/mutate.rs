//! Random mistakes in programs; the tests here and the campaigns of `make fuzz` share them.

/// Random number generator with a fixed seed (Knuth's MMIX constants).
pub struct Random(pub u64);

impl Random {
    /// Returns a number below `n`; 0 if there is none.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// Splits a text into words, numbers and single signs, with the white space between them.
fn tokens(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let class = |c: char| {
        if c.is_alphanumeric() || c == '_' || c == '.' {
            0
        } else if c == ' ' {
            1
        } else {
            2
        }
    };
    for c in text.chars() {
        match out.last_mut() {
            Some(last) if class(c) < 2 && last.chars().last().map(class) == Some(class(c)) => last.push(c),
            _ => out.push(c.to_string()),
        }
    }
    out
}

/// Replacement tokens for mistakes.
pub const REPLACEMENTS: &[&str] = &[
    "0",
    "1",
    "-1",
    "3",
    "0.5",
    "True",
    "None",
    "n",
    "x",
    "y",
    "i",
    "j",
    "f32",
    "f64",
    "i32",
    "bool",
    "inf",
    "[]",
    "()",
    "...",
    ":",
    "::-1",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "<",
    "==",
    "and",
    "or",
    "not",
    "range",
    "static",
    "zeros",
    "empty",
    "sum",
    "max",
    "abs",
    "len",
    "cast",
    "shape",
    "dtype",
    "T",
    "\"a\"",
    "(0, 1)",
    "[0, 1]",
    "[1, x]",
    "9999999999999999999",
    "-9223372036854775808",
    "if",
    "else",
    "in",
    "is",
    "x[0]",
    "x[x]",
    "x.shape",
    "None, 0",
    "1e400",
    "255",
    "grad",
];

/// Returns the text with one to three mistakes.
pub fn mutate(text: &str, random: &mut Random) -> String {
    let mut all = tokens(text);
    for _ in 0..=random.below(3) {
        // White space and line ends are kept, or hardly any mutant would parse.
        let words: Vec<usize> = (0..all.len()).filter(|k| !all[*k].trim().is_empty()).collect();
        let at = words[random.below(words.len())];
        match random.below(4) {
            0 => all[at] = all[words[random.below(words.len())]].clone(),
            1 => {
                let other = words[random.below(words.len())];
                all.swap(at, other);
            }
            _ => all[at] = REPLACEMENTS[random.below(REPLACEMENTS.len())].to_string(),
        }
    }
    all.concat()
}
