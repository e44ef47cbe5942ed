//! Outlining of the bodies of parallel loops into functions.
//!
//! ```text
//! static TAFFETA_BODY void f_i(const float *restrict x, float *restrict y, int64_t i) { … }
//! ```
//!
//! OpenMP outlines a parallel loop into a function that takes all variables in a structure, where compilers lose their
//! `restrict` qualifiers: every store may then alias every array (gcc 12: half the speed of a gather). A function whose
//! parameters repeat `restrict` is inlined with that information.
//!
//! A scalar that threads reduce into is private to each of them: it is passed by address, and held in a variable of the
//! function.

use super::emitter::Loop;
use super::emitter::{Emitter, ErrorExit, Storage};
use super::writer::Writer;
use indexmap::IndexSet;
use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::{Sharing, Stmt, Symbol};

impl Emitter<'_> {
    /// Returns whether the body of a parallel loop may be outlined: not if the loop is vectorised too, since compilers
    /// must see the body, nor if the body assigns a scalar of the kernel other than a private partial result.
    pub fn can_outline(&self, l: &Loop<'_>) -> bool {
        let partial = |t: &Symbol| l.props.reductions.iter().any(|r| r.tensor == *t && r.sharing == Sharing::Partial);
        let outer = |t: &Symbol| self.dtypes.contains_key(t) && self.place(t) == Storage::Variable;
        l.props.vectorize.is_none() && effects::writes(l.body).iter().all(|t| !outer(t) || partial(t))
    }

    /// Prints a statement of a loop as a function, with a call of it. Returns whether it may fail.
    pub fn outlined(&mut self, i: &str, body: &Stmt) -> bool {
        let name = self.names.fresh(&format!("{}_{i}", self.lowered.signature().name));
        let mut written = effects::writes(body);
        written.retain(|t| self.dtypes.contains_key(t) && self.place(t) == Storage::Variable);
        let written: FxHashSet<String> = written.iter().map(|t| self.names.get(t)).collect();
        let around = self.scope.clone();
        let call_site = std::mem::take(&mut self.out);
        let leave = std::mem::replace(&mut self.error_exit, ErrorExit::Stop);
        let leaves = std::mem::take(&mut self.leaves);
        self.shown.clear();
        self.out.indent();
        self.stmt(body);
        let may_fail = self.leaves > 0;
        (self.error_exit, self.leaves) = (leave, leaves);
        self.shown.clear();
        let code = std::mem::replace(&mut self.out, call_site).finish();

        let mut used = identifiers(&code);
        if may_fail {
            used.insert("ctx");
        }
        let mut function = Writer::default();
        let (mut params, mut args, mut enter, mut exit) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for n in used {
            let Some(outer) = around.get(n) else { continue };
            match &outer.changes {
                Some(t) if written.contains(n) => {
                    let address = self.names.fresh(&format!("{n}_at"));
                    params.push(format!("{t} *restrict {address}"));
                    args.push(format!("&{n}"));
                    enter.push(format!("{t} {n} = *{address};"));
                    exit.push(format!("*{address} = {n};"));
                }
                _ => {
                    params.push(outer.declaration.clone());
                    args.push(n.to_string());
                }
            }
        }
        function.open(format!("static TAFFETA_BODY void {name}({}) {{", params.join(", ")));
        if may_fail {
            function.line("if (taf_failed(ctx)) return;");
        }
        enter.iter().for_each(|line| function.line(line));
        code.lines().for_each(|line| function.raw(line));
        exit.iter().for_each(|line| function.line(line));
        function.close("}");
        self.functions.push(function.finish());
        self.out.line(format!("{name}({});", args.join(", ")));
        may_fail
    }
}

/// Collects the variables in a piece of generated C, in order of appearance, without members, comments and strings.
pub fn identifiers(code: &str) -> IndexSet<&str> {
    let (mut found, mut at) = (IndexSet::new(), 0);
    while let Some(c) = code[at..].chars().next() {
        let rest = &code[at..];
        let length = match c {
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => string_length(rest),
            c if c.is_ascii_alphabetic() || c == '_' => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                if !code[..at].ends_with("->") && !code[..at].ends_with('.') {
                    found.insert(&rest[..end]);
                }
                end
            }
            // A number with its suffix: `0x1p-3`, `1.0f`.
            c if c.is_ascii_digit() => {
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        at += length;
    }
    found
}

/// Returns the length of the string literal at the start of `code`.
fn string_length(code: &str) -> usize {
    let mut escaped = false;
    for (k, c) in code.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return k + 1,
            _ => {}
        }
    }
    code.len()
}
