//! Sources for fuzzing: programs of the language in odd spacing, mutations of them, and token soup. Each is a function
//! of its seed, so that the seed in a failure's message reproduces it.

/// Pseudo-random number generator (SplitMix64).
pub struct Rng(u64);

impl Rng {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }
}

const NAMES: [&str; 12] = ["x", "y", "zz", "i", "adj", "n_faces", "feats", "f32", "range", "x1", "_t", "match"];
const NUMBERS: [&str; 14] =
    ["0", "1", "42", "1_000", "0xFF", "0b1", "0o17", "1.0", "1.", ".5", "1e-3", "1E+10", "1_0.0_1", "00"];
const STRINGS: [&str; 12] = [
    "\"a\"",
    "'b'",
    "\"i/j\"",
    "'\\n\\x41\\''",
    "r'\\d'",
    "\"\"\"l\no\"\"\"",
    "'é'",
    "f\"{x} faces\"",
    "f'{x[i]}{{'",
    "'a' \"b\"",
    "'a\\\nb'",
    "''",
];
const BINARY: [&str; 21] = [
    "+", "-", "*", "/", "//", "%", "@", "**", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", ">", "and", "or", "in",
];
const AUGMENTED: [&str; 13] = ["+=", "-=", "*=", "/=", "//=", "%=", "@=", "**=", "&=", "|=", "^=", "<<=", ">>="];

/// Writer of random programs.
struct Writer {
    rng: Rng,
    out: String,
    /// Number of open brackets; inside them line ends may stand between tokens.
    brackets: usize,
    indent: String,
}

/// Generates a program of the language.
pub fn program(seed: u64) -> String {
    let rng = Rng::new(seed);
    let mut w = Writer { rng, out: String::new(), brackets: 0, indent: String::new() };
    if w.rng.one_in(2) {
        w.out.push_str("\"\"\"What it does.\n\n    In two paragraphs.\n\"\"\"\n");
    }
    for _ in 0..1 + w.rng.below(4) {
        w.item();
    }
    w.out
}

impl Writer {
    fn item(&mut self) {
        self.noise();
        match self.rng.below(5) {
            0 => {
                let name = self.rng.pick(&["relu", "softmax as s", "a, b as c", "(a, b,)", "(a # c\n, b)"]);
                self.words(&["from", "libop", "import"]);
                self.out.push(' ');
                self.out.push_str(name);
                self.end();
            }
            1 => {
                self.name();
                self.gap();
                self.op("=");
                self.expr(3);
                self.end();
            }
            _ => self.function(),
        }
    }

    fn function(&mut self) {
        if self.rng.one_in(3) {
            self.out.push('@');
            self.gap();
            self.out.push_str("schedule(f)");
            self.end();
            self.noise();
        }
        self.words(&["def"]);
        self.out.push(' ');
        self.name();
        self.gap();
        self.open("(");
        let count = self.rng.below(4);
        for i in 0..count {
            self.out.push_str(&format!("p{i}"));
            self.gap();
            if self.rng.one_in(2) {
                self.op(":");
                self.annotation();
            }
            if i + 1 == count && self.rng.one_in(2) {
                self.op("=");
                self.expr(1);
            }
            if i + 1 < count || self.rng.one_in(4) {
                self.op(",");
            }
        }
        self.close(")");
        if self.rng.one_in(2) {
            self.op("->");
            self.annotation();
        }
        self.colon_and_block(3);
    }

    fn annotation(&mut self) {
        self.out.push_str(self.rng.pick(&[
            "f32",
            "f32[n, m]",
            "inout[f32[n]]",
            "f64[2*n] @ csr",
            "(f32[n], i32)",
            "static",
        ]));
        self.gap();
    }

    fn colon_and_block(&mut self, depth: usize) {
        self.op(":");
        if self.rng.one_in(5) {
            self.simple();
            while self.rng.one_in(3) {
                self.op(";");
                self.simple();
            }
            if self.rng.one_in(4) {
                self.op(";");
            }
            self.end();
            return;
        }
        self.end();
        let outer = self.indent.clone();
        self.indent.push_str(self.rng.pick(&["    ", "  ", "\t", " "]));
        if self.rng.one_in(4) {
            self.line_start();
            self.out.push_str(self.rng.pick(&["\"\"\"Doc.\"\"\"", "'doc'", "\"\"\"Long\n  doc.\n\"\"\""]));
            self.end();
        }
        for _ in 0..1 + self.rng.below(3) {
            self.stmt(depth);
        }
        self.indent = outer;
    }

    fn line_start(&mut self) {
        self.noise();
        self.out.push_str(&self.indent);
    }

    fn stmt(&mut self, depth: usize) {
        self.line_start();
        match self.rng.below(if depth == 0 { 5 } else { 8 }) {
            0..5 => {
                self.simple();
                self.end();
            }
            5 | 6 => {
                self.words(&["for"]);
                self.out.push(' ');
                self.out.push_str(self.rng.pick(&["i", "i, j", "(i, j)", "y.d0", "i , j", "i, j,"]));
                self.words(&[" in"]);
                self.out.push(' ');
                self.expr(2);
                self.colon_and_block(depth - 1);
            }
            _ => {
                self.words(&["if"]);
                self.out.push(' ');
                self.expr(2);
                self.colon_and_block(depth - 1);
                while self.rng.one_in(3) {
                    self.line_start();
                    self.out.push_str("elif ");
                    self.expr(2);
                    self.colon_and_block(depth - 1);
                }
                if self.rng.one_in(2) {
                    self.line_start();
                    self.out.push_str("else");
                    self.gap();
                    self.colon_and_block(depth - 1);
                }
            }
        }
    }

    fn simple(&mut self) {
        match self.rng.below(9) {
            0 => self.out.push_str("pass"),
            1 => {
                self.out.push_str("return");
                if self.rng.one_in(2) {
                    self.out.push(' ');
                    self.exprs();
                }
            }
            2 => {
                self.out.push_str("assert ");
                self.expr(3);
                if self.rng.one_in(2) {
                    self.op(",");
                    self.out.push_str("f\"{n} of {m[0]}\"");
                }
            }
            3 | 4 => {
                self.target();
                self.op("=");
                self.exprs();
            }
            5 | 6 => {
                self.target();
                self.out.push_str(self.rng.pick(&AUGMENTED));
                self.gap();
                self.exprs();
            }
            7 => {
                self.name();
                self.gap();
                self.op(":");
                self.annotation();
                if self.rng.one_in(2) {
                    self.op("=");
                    self.expr(2);
                }
            }
            _ => {
                self.out.push_str("label");
                self.open("(");
                self.out.push_str("\"L1\"");
                self.close(")");
            }
        }
    }

    fn target(&mut self) {
        self.name();
        self.gap();
        if self.rng.one_in(2) {
            self.subscript(1);
        }
    }

    fn exprs(&mut self) {
        self.expr(3);
        while self.rng.one_in(4) {
            self.op(",");
            self.expr(2);
        }
    }

    fn expr(&mut self, depth: usize) {
        if depth == 0 {
            match self.rng.below(10) {
                0..5 => self.name(),
                5..8 => self.out.push_str(self.rng.pick(&NUMBERS)),
                8 => self.out.push_str(self.rng.pick(&STRINGS)),
                _ => self.out.push_str(self.rng.pick(&["True", "False", "None", "..."])),
            }
            self.out.push(' ');
            self.gap();
            return;
        }
        match self.rng.below(14) {
            0..5 => {
                self.operand(depth - 1);
                for _ in 0..1 + self.rng.below(3) {
                    self.out.push(' ');
                    self.out.push_str(self.rng.pick(&BINARY));
                    self.out.push(' ');
                    self.gap();
                    self.operand(depth - 1);
                }
            }
            5 => {
                let op = self.rng.pick(&["-", "+", "~", "not "]);
                self.out.push_str(op);
                if op == "not " { self.expr(depth - 1) } else { self.operand(depth - 1) }
            }
            6 => {
                self.operand(depth - 1);
                self.out.push_str(" if ");
                self.operand(depth - 1);
                self.out.push_str(" else ");
                self.operand(depth - 1);
            }
            7 | 8 => {
                self.name();
                self.gap();
                self.open("(");
                for _ in 0..self.rng.below(3) {
                    self.expr(depth - 1);
                    self.op(",");
                }
                if self.rng.one_in(2) {
                    self.out.push_str("axis");
                    self.op("=");
                    self.expr(depth - 1);
                }
                self.close(")");
            }
            9 | 10 => {
                self.name();
                self.subscript(depth - 1);
            }
            11 => {
                self.name();
                self.gap();
                self.out.push_str(".shape");
                self.gap();
            }
            12 => {
                let (open, close) = if self.rng.one_in(2) { ("(", ")") } else { ("[", "]") };
                self.open(open);
                for _ in 0..self.rng.below(4) {
                    self.expr(depth - 1);
                    self.op(",");
                }
                self.close(close);
            }
            _ => {
                self.open("[");
                self.operand(depth - 1);
                self.out.push_str(" for i, j in ");
                self.operand(depth - 1);
                if self.rng.one_in(2) {
                    self.out.push_str(" if ");
                    self.operand(depth - 1);
                }
                self.close("]");
            }
        }
    }

    /// Writes an operand that binds tighter than every operator.
    fn operand(&mut self, depth: usize) {
        if depth == 0 {
            self.expr(0);
        } else {
            self.open("(");
            self.expr(depth);
            self.close(")");
        }
    }

    fn subscript(&mut self, depth: usize) {
        self.open("[");
        for i in 0..1 + self.rng.below(3) {
            if i > 0 {
                self.op(",");
            }
            match self.rng.below(6) {
                0 => self.op(":"),
                1 => {
                    self.expr(depth);
                    self.op(":");
                    self.expr(depth);
                }
                2 => {
                    self.op(":");
                    self.op(":");
                    self.out.push_str("-1");
                }
                _ => self.expr(depth),
            }
        }
        self.close("]");
    }

    fn name(&mut self) {
        self.out.push_str(self.rng.pick(&NAMES));
    }

    fn words(&mut self, words: &[&str]) {
        self.out.push_str(&words.join(" "));
    }

    fn op(&mut self, op: &str) {
        self.out.push_str(op);
        self.gap();
    }

    fn open(&mut self, bracket: &str) {
        self.out.push_str(bracket);
        self.brackets += 1;
        self.gap();
    }

    fn close(&mut self, bracket: &str) {
        self.out.push_str(bracket);
        self.brackets -= 1;
        self.gap();
    }

    /// Writes blanks, and inside brackets also line ends and comments.
    fn gap(&mut self) {
        match self.rng.below(12) {
            0..6 => {}
            6..9 => self.out.push(' '),
            9 => self.out.push_str("  "),
            10 if self.brackets > 0 => self.out.push_str("\n     "),
            11 if self.brackets > 0 && self.rng.one_in(3) => self.out.push_str(" # why\n"),
            11 if self.rng.one_in(6) => self.out.push_str(" \\\n  "),
            _ => {}
        }
    }

    fn end(&mut self) {
        if self.rng.one_in(8) {
            self.out.push_str("  # after");
        }
        self.out.push('\n');
    }

    /// Writes blank lines and comments between statements.
    fn noise(&mut self) {
        while self.rng.one_in(6) {
            self.out.push_str(self.rng.pick(&["\n", "# alone\n", "   \n", "      # far\n", "\n\n\n\n"]));
        }
    }
}

const SOUP: [&str; 84] = [
    "x", "y", "i", "1", "2.5", "'s'", "\"t\"", "f'{x}'", "(", ")", "(", ")", "[", "]", "{", "}", ",", ",", ":", ":",
    ";", ".", "=", "=", "+=", "-", "+", "*", "**", "/", "//", "%", "@", "&", "|", "^", "~", "<", ">", "<=", "==", "!=",
    ":=", "->", "...", "\n", "\n", "\n", "\n    ", "\n    ", "\n  ", "\n\t", "\\\n", "# c\n", "def", "for", "in", "if",
    "elif", "else", "return", "pass", "assert", "from", "import", "as", "not", "and", "or", "is", "lambda", "None",
    "True", "while", "class", "yield", "\"\"\"", "'", "\"", "é", "\0", "$", "\r\n", "0x",
];

/// Generates tokens in random order.
pub fn soup(seed: u64) -> String {
    let mut rng = Rng::new(seed ^ 0x500b);
    let mut out = String::new();
    if rng.one_in(2) {
        out.push_str("def f(x):\n    ");
    }
    for _ in 0..1 + rng.below(16) {
        out.push_str(rng.pick(&SOUP));
        if !rng.one_in(4) {
            out.push(' ');
        }
    }
    out
}

/// Generates a program with a few random edits.
pub fn mutant(seed: u64) -> String {
    let mut rng = Rng::new(seed ^ 0xedf7);
    let mut chars: Vec<char> = program(seed % 300).chars().collect();
    for _ in 0..1 + rng.below(3) {
        if chars.is_empty() {
            break;
        }
        let at = rng.below(chars.len());
        let end = (at + 1 + rng.below(6)).min(chars.len());
        match rng.below(5) {
            0 => {
                chars.drain(at..end);
            }
            1 => {
                let copy: Vec<char> = chars[at..end].to_vec();
                let to = rng.below(chars.len());
                chars.splice(to..to, copy);
            }
            2 | 3 => {
                let text: Vec<char> = rng.pick(&SOUP).chars().collect();
                chars.splice(at..at, text);
            }
            _ => {
                let text: Vec<char> = rng.pick(&SOUP).chars().collect();
                chars.splice(at..end, text);
            }
        }
    }
    chars.into_iter().collect()
}

/// Generates arbitrary characters.
pub fn noise(seed: u64) -> String {
    let mut rng = Rng::new(seed ^ 0xb17e);
    let bytes: Vec<u8> = (0..rng.below(200)).map(|_| (rng.next() >> 13) as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
