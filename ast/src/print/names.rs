//! Names of symbols in the printed text: their own, numbered where two would collide.

use crate::dtype::DType;
use crate::op::Op;
use crate::symbol::Symbol;
use rustc_hash::{FxHashMap, FxHashSet};

/// Words of Python and Taffeta that the text uses or the grammar reserves, besides operators and types.
const RESERVED: [&str; 56] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield", "assume", "cast", "coalesce", "count",
    "d", "empty", "format", "gallop", "inf", "inout", "label", "len", "locate", "nan", "ndrange", "pi", "print",
    "range", "reals", "static", "walk",
];

/// Symbols that are visible at one point of the text.
#[derive(Default)]
pub struct Names {
    texts: FxHashMap<Symbol, String>,
    visible: FxHashSet<String>,
    /// For each requested name, the first number (0 for none) that may be free; smaller ones are taken.
    free: FxHashMap<String, usize>,
}

impl Names {
    /// Makes a symbol visible under a name that no other visible symbol has. Loop iterators may have dots in their
    /// names (`T.d0`).
    pub fn bind(&mut self, symbol: &Symbol, dots: bool) {
        let wanted = identifier(symbol.name(), dots);
        let numbered = |number: usize| if number == 0 { wanted.clone() } else { format!("{wanted}_{number}") };
        let mut number = self.free.get(&wanted).copied().unwrap_or(0);
        let mut text = numbered(number);
        while self.visible.contains(&text) || is_reserved(&text) {
            number += 1;
            text = numbered(number);
        }
        self.free.insert(wanted, number + 1);
        self.visible.insert(text.clone());
        self.texts.insert(symbol.clone(), text);
    }

    /// Makes a symbol visible under its own name, numbered on collision, for text that is displayed only.
    pub fn bind_shown(&mut self, symbol: &Symbol) {
        let mut text = symbol.name().to_string();
        let mut number = 1;
        while self.visible.contains(&text) {
            text = format!("{}_{number}", symbol.name());
            number += 1;
        }
        self.visible.insert(text.clone());
        self.texts.insert(symbol.clone(), text);
    }

    /// Makes a symbol of the interface visible. Callers depend on its name, so it is changed only if the text needs the
    /// word itself.
    pub fn bind_interface(&mut self, symbol: &Symbol) {
        let wanted = identifier(symbol.name(), false);
        if is_written(&wanted) {
            return self.bind(symbol, false);
        }
        let text = wanted;
        self.visible.insert(text.clone());
        self.texts.insert(symbol.clone(), text);
    }

    /// Makes a result visible under its name, unless a parameter has that name.
    pub fn bind_result(&mut self, symbol: &Symbol) {
        if self.visible.contains(&identifier(symbol.name(), false)) {
            self.bind(symbol, false);
        } else {
            self.bind_interface(symbol);
        }
    }

    /// Ends a symbol's scope.
    pub fn unbind(&mut self, symbol: &Symbol) {
        let Some(text) = self.texts.remove(symbol) else { return };
        self.visible.remove(&text);
        if let Some(free) = self.free.get_mut(&text) {
            *free = 0;
        }
        if let Some((wanted, number)) = text.rsplit_once('_')
            && let (Some(free), Ok(number)) = (self.free.get_mut(wanted), number.parse::<usize>())
        {
            *free = number.min(*free);
        }
    }

    /// Returns the symbol's name; unbound symbols have their own, as schedules accept them (`i~o`).
    pub fn text(&self, symbol: &Symbol) -> String {
        self.texts.get(symbol).cloned().unwrap_or_else(|| symbol.name().to_string())
    }
}

fn is_reserved(text: &str) -> bool {
    RESERVED.contains(&text) || DType::parse(text).is_some() || Op::from_call(text).is_some()
}

/// Returns whether the text of a function calls the word, or uses it as a value or a type, so that a parameter, size or
/// entry of that name would hide it. All other reserved words occur where no name can be meant, or in text that is not
/// parsed again.
fn is_written(text: &str) -> bool {
    const WRITTEN: [&str; 11] =
        ["cast", "empty", "format", "gallop", "inf", "inout", "locate", "nan", "range", "reals", "walk"];
    WRITTEN.contains(&text) || DType::parse(text).is_some() || Op::from_call(text).is_some()
}

/// Returns the printed name of an entry: its own, unless the text needs that word.
pub(super) fn entry(name: &str) -> String {
    if is_written(name) { format!("{name}_1") } else { name.to_string() }
}

/// Replaces characters that an identifier cannot contain.
fn identifier(name: &str, dots: bool) -> String {
    let fits = |c: char| c.is_alphanumeric() || c == '_' || (dots && c == '.');
    let text: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if text.is_empty() || text.starts_with(|c: char| c.is_numeric()) { format!("_{text}") } else { text }
}
