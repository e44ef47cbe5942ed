//! C names for the program's symbols: the names of the source, where these are valid and unused.

use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_ast::{Op, Symbol};

/// Words that generated code cannot use as variables: keywords of C and C++, macros and functions of the included
/// headers, and names that the emitter uses itself. (Functions of operators are in the operators' table.)
const RESERVED: &[&str] = &[
    // keywords of C, C++ and common extensions
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "constexpr",
    "continue",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "not",
    "nullptr",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    // macros
    "EOF",
    "FILE",
    "BUFSIZ",
    "FILENAME_MAX",
    "HUGE_VAL",
    "HUGE_VALF",
    "HUGE_VALL",
    "INFINITY",
    "NAN",
    "NULL",
    "RAND_MAX",
    "EXIT_FAILURE",
    "EXIT_SUCCESS",
    "MB_CUR_MAX",
    "SEEK_CUR",
    "SEEK_END",
    "SEEK_SET",
    "TMP_MAX",
    "L_tmpnam",
    "assert",
    "errno",
    "isfinite",
    "isinf",
    "isnan",
    "isnormal",
    "isgreater",
    "isless",
    "islessgreater",
    "isunordered",
    "fpclassify",
    "signbit",
    "linux",
    "offsetof",
    "stderr",
    "stdin",
    "stdout",
    "unix",
    "va_list",
    "va_start",
    "va_end",
    "math_errhandling",
    "i386",
    "DOMAIN",
    "OVERFLOW",
    "UNDERFLOW",
    "SING",
    "PLOSS",
    "TLOSS",
    // functions and names that generated code uses
    "abs",
    "calloc",
    "fmod",
    "free",
    "labs",
    "llabs",
    "main",
    "malloc",
    "memcpy",
    "memset",
    "printf",
    "round",
    "snprintf",
    "copysign",
    "arena",
    "args",
    "ctx",
    "n_args",
    "sizes",
    "status",
    "made",
    "plan",
    "arena_bytes",
    "slots",
    "bytes",
    "made",
    "planned",
    "P_tmpdir",
];

/// Converts `name` to a C identifier: other characters become `_` or their code point.
pub fn identifier(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '_' => out.push(c),
            '0'..='9' if !out.is_empty() => out.push(c),
            '0'..='9' => out.extend(['_', c]),
            c if c.is_ascii() => out.push('_'),
            c => out.push_str(&format!("u{:04x}", u32::from(c))),
        }
    }
    if out.is_empty() { "_".to_string() } else { out }
}

/// Names that `taffeta.h` declares with the prefix `taffeta_`.
const PUBLIC: &[&str] =
    &["array", "ctx", "ctx_release", "dtype", "free", "level", "level_kind", "owner", "status", "tensor"];

/// Returns the name of the C function of an entry.
pub fn entry(name: &str) -> String {
    let name = identifier(name);
    if PUBLIC.contains(&name.as_str()) { format!("taffeta_{name}_") } else { format!("taffeta_{name}") }
}

/// Returns the name of the C function of an entry on the arrays of its structured parameters. No header declares it.
pub fn arrays_entry(name: &str) -> String {
    format!("taf_arrays_{}", identifier(name))
}

fn is_reserved(name: &str) -> bool {
    // Compilers reserve `_X` and `__x`, the run-time headers `taffeta_x` and `taf_x`, POSIX `x_t`; `INT32_MAX`,
    // `PRId64`, `FP_NAN`, `M_PI` are macros.
    let shouted = name.len() > 2
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        && (name.contains('_') || name.starts_with("PRI") || name.starts_with("SCN"));
    name.starts_with('_')
        || name.starts_with("taffeta_")
        || name.starts_with("taf_")
        || name.starts_with("TAFFETA_")
        || name.starts_with("omp_")
        || name.starts_with("PRI")
        || name.ends_with("_t")
        || shouted
        // Mathematical functions with a suffix: expf, sinl.
        || (name.ends_with(['f', 'l']) && is_word(&name[..name.len() - 1]))
        || is_word(name)
}

fn is_word(name: &str) -> bool {
    RESERVED.contains(&name) || Op::ALL.iter().any(|op| op.info().c_name == Some(name))
}

/// Allocator of unique names for symbols.
#[derive(Debug, Default)]
pub struct Names {
    of: FxHashMap<Symbol, String>,
    taken: FxHashSet<String>,
    /// Last number tried for each name; the numbers before it are taken for good.
    numbered: FxHashMap<String, usize>,
}

impl Names {
    /// Returns the symbol's name in C.
    pub fn get(&mut self, symbol: &Symbol) -> String {
        if let Some(name) = self.of.get(symbol) {
            return name.clone();
        }
        let name = self.fresh(symbol.name());
        self.of.insert(symbol.clone(), name.clone());
        name
    }

    /// Returns a name like `wish` that is unused with each of these suffixes, and reserves these names.
    pub fn family(&mut self, wish: &str, suffixes: &[&str]) -> String {
        let mut base = identifier(wish);
        while suffixes.iter().any(|s| self.taken.contains(&format!("{base}{s}"))) {
            base.push('_');
        }
        self.taken.extend(suffixes.iter().map(|s| format!("{base}{s}")));
        base
    }

    /// Returns an unused name like `wish`, and reserves it.
    pub fn fresh(&mut self, wish: &str) -> String {
        let mut base = identifier(wish);
        if is_reserved(&base) {
            base = if base.starts_with('_') { format!("v{base}") } else { format!("{base}_") };
        }
        if self.taken.insert(base.clone()) {
            return base;
        }
        let n = self.numbered.entry(base.clone()).or_insert(1);
        loop {
            *n += 1;
            let name = format!("{base}_{n}");
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}
