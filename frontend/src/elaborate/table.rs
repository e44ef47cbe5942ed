//! Constant tables: a list of numbers that is indexed while the program runs (`W = [0.25, 0.5, 0.25]`, then `W[i]`).
//!
//! The list becomes a local tensor of the whole program, filled at its start; nested lists become dimensions. Its
//! elements are kept in 64 bits and stay weak, as the literals are that they come from: `W[i]` takes the type of the
//! typed operand that it meets.

use super::block::{Item, reads};
use super::value::{Lazy, Value, View};
use super::{Elab, R};
use crate::syntax::{self, ExprKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::spelling::counted;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Access, DType, Expr, Kind, Literal, Origin, Span, Stmt, StmtKind, Symbol, Tensor};

/// Maximum number of elements of a table: each is a store at the start of the program.
const MAX_ELEMENTS: usize = 4096;

/// Lengths of a table's dimensions, its type and its elements in order.
type Contents = (Vec<i64>, DType, Vec<Literal>);

/// Tables of a program.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    known: FxHashMap<Contents, Arc<Tensor>>,
    symbols: FxHashSet<Symbol>,
    /// Tables in order of creation, with the places of their first uses.
    all: Vec<(Arc<Tensor>, Vec<Literal>, Span)>,
}

impl Elab<'_> {
    /// Evaluates `of[items]` where `of` is a list or a tuple and an item is known only while the program runs.
    pub(crate) fn table_item(
        &mut self,
        values: &[Value],
        of_span: Span,
        items: &[syntax::Expr],
        span: Span,
    ) -> R<Value> {
        let tensor = self.table(values, of_span)?;
        let view = View::whole(&tensor, false);
        let ix = self.indexed((&view.shape, &vec![true; view.shape.len()]), of_span, items, span)?;
        let part = view.reindexed(&ix.at, ix.shape, ix.gathered);
        Ok(Value::Lazy(Lazy { expr: part.load(), shape: part.shape, weak: tensor.dtype.kind() != Kind::Bool }))
    }

    /// Returns whether an item of a subscript is known only while the program runs. The statements that its evaluation
    /// emits are rolled back: the subscript evaluates the item again.
    pub(crate) fn is_open_item(&mut self, item: &syntax::Expr) -> R<bool> {
        let parts: Vec<&syntax::Expr> = match &item.kind {
            ExprKind::Slice { lower, upper, .. } => [lower, upper].into_iter().flatten().map(|e| &**e).collect(),
            ExprKind::Ellipsis | ExprKind::None => return Ok(true),
            _ => vec![item],
        };
        let mark = self.mark();
        let mut open = false;
        for part in parts {
            let v = self.eval(part)?;
            open |= v.is_tensor() && v.dtype().is_some_and(|d| d.is_int());
        }
        self.roll_back(mark);
        Ok(open)
    }

    /// Returns the tensor of a list.
    fn table(&mut self, values: &[Value], span: Span) -> R<Arc<Tensor>> {
        let mut contents: Contents = (Vec::new(), DType::Bool, Vec::new());
        self.collect(values, 0, &mut contents, span)?;
        contents.1 = self.element_type(&contents.2, span)?;
        if contents.1 == DType::F64 {
            for e in &mut contents.2 {
                if let Literal::Int(i) = *e {
                    *e = Literal::Float(i as f64);
                }
            }
        }
        if let Some(known) = self.tables.known.get(&contents) {
            return Ok(known.clone());
        }
        let (shape, dtype, elements) = contents.clone();
        let text = self.program.sources().text(span);
        let name = super::report::base(text).unwrap_or("table");
        let shape = shape.iter().map(|n| Expr::int(*n)).collect();
        let tensor = Arc::new(Tensor::dense(Symbol::new(name), dtype, shape, Role::Local));
        self.tables.symbols.insert(tensor.symbol.clone());
        self.tables.known.insert(contents, tensor.clone());
        self.tables.all.push((tensor.clone(), elements, span));
        Ok(tensor)
    }

    /// Collects the elements of a list at some depth of nesting, and checks that the nesting is rectangular.
    fn collect(&mut self, values: &[Value], depth: usize, out: &mut Contents, span: Span) -> R<()> {
        let n = values.len() as i64;
        let ragged = |found: String| format!("cannot index this list at run time: {found}");
        match out.0.get(depth) {
            None if out.2.is_empty() => out.0.push(n),
            Some(first) if *first == n => {}
            Some(first) => {
                let (a, b) = (counted(*first, "item"), counted(n, "item"));
                return self.error_help(
                    "static::table",
                    span,
                    ragged(format!("its rows have {a} and {b}")),
                    "give all rows the same length",
                );
            }
            None => return self.mixed(span),
        }
        for v in values {
            let element = match v {
                Value::Int(i) => Literal::Int(*i),
                Value::Float(f) => Literal::Float(*f),
                Value::Bool(b) => Literal::Bool(*b),
                Value::List(inner) | Value::Tuple(inner) => {
                    if out.0.len() == depth + 1 && !out.2.is_empty() {
                        return self.mixed(span);
                    }
                    self.collect(&inner.clone(), depth + 1, out, span)?;
                    continue;
                }
                other => {
                    let found = ragged(format!("one of its items is {}", other.describe()));
                    let help = "use numbers known when compiling, index the list by a static value, or use a tensor";
                    return self.error_help("static::table", span, found, help);
                }
            };
            if out.0.len() > depth + 1 {
                return self.mixed(span);
            }
            out.2.push(element);
            if out.2.len() > MAX_ELEMENTS {
                let found = ragged(format!("it has more than {MAX_ELEMENTS} elements"));
                return self.error_help("static::table", span, found, "pass it to the program as a parameter");
            }
        }
        Ok(())
    }

    fn mixed<T>(&mut self, span: Span) -> R<T> {
        let message = "cannot index this list at run time: some of its items are lists, others are not";
        self.error_help("static::table", span, message, "nest all items to the same depth")
    }

    /// Returns the type in which a table's elements are kept.
    fn element_type(&mut self, elements: &[Literal], span: Span) -> R<DType> {
        let any = |f: fn(&Literal) -> bool| elements.iter().any(f);
        let bools = any(|e| matches!(e, Literal::Bool(_)));
        let floats = any(|e| matches!(e, Literal::Float(_)));
        let ints = any(|e| matches!(e, Literal::Int(_)));
        let wide = any(|e| matches!(e, Literal::Int(i) if i64::try_from(*i).is_err()));
        let message = match (bools, floats || ints) {
            (false, false) => "cannot index this list at run time: it is empty",
            (true, true) => "cannot index this list at run time: it mixes `bool` with numbers",
            (true, false) => return Ok(DType::Bool),
            (false, true) if wide && !floats => "an integer of this list does not fit in `i64`",
            (false, true) if floats => return Ok(DType::F64),
            (false, true) => return Ok(DType::I64),
        };
        self.error("static::table", span, message)
    }

    /// Returns whether an expression reads only tables, which are never written after the start.
    pub(crate) fn reads_tables_alone(&self, e: &Expr) -> bool {
        let mut read = FxHashSet::default();
        reads(e, &mut read);
        read.is_subset(&self.tables.symbols)
    }

    /// Returns whether a name may stand for the value, without a tensor: a scalar of literals, sizes, iterators and
    /// tables.
    pub(crate) fn is_nameable(&self, v: &Value) -> bool {
        v.is_weak_scalar()
            || matches!(v, Value::Lazy(l) if l.weak && l.shape.is_empty() && self.reads_tables_alone(&l.expr))
    }

    /// Puts the declarations of the tables that the program's items read, with the stores that fill them, before the
    /// items.
    pub(crate) fn with_tables(&mut self, items: Vec<Item>) -> Vec<Item> {
        let mut used = FxHashSet::default();
        for item in &items {
            if let Item::Stmt(s) = item {
                s.walk(&mut |s| s.kind().exprs().into_iter().for_each(|e| reads(e, &mut used)));
            }
        }
        let mut out = Vec::new();
        for (tensor, elements, span) in std::mem::take(&mut self.tables).all {
            if !used.contains(&tensor.symbol) {
                continue;
            }
            let origin = Origin::source(span);
            out.push(Item::Def(tensor.clone(), origin.clone()));
            let lengths: Vec<i64> = tensor.shape.iter().filter_map(Expr::as_int).collect();
            for (k, element) in elements.iter().enumerate() {
                let mut rest = k as i64;
                let mut at: Vec<Access> = lengths
                    .iter()
                    .rev()
                    .map(|n| {
                        let here = rest % n;
                        rest /= n;
                        Access::from(Expr::int(here))
                    })
                    .collect();
                at.reverse();
                let value = Expr::literal(*element, tensor.dtype);
                let kind = StmtKind::Store { tensor: tensor.symbol.clone(), indices: at, value };
                out.push(Item::Stmt(Stmt::new(kind, origin.clone())));
            }
        }
        out.extend(items);
        out
    }
}
