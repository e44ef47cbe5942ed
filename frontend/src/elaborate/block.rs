//! The program under construction: a stack of blocks of statements and declarations. A declaration lives to the end of
//! its block, so that closing a block folds its items into nested `VarDef`s.

use super::Elab;
use super::annotation::TensorType;
use super::axis;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_ast::format::Format;
use taffeta_ast::stmt::{Extent, LoopProps};
use taffeta_ast::{Access, DType, Expr, ExprKind, Origin, Stmt, StmtKind, Symbol, Tensor};

/// Item of a block.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// Declaration, live to the end of the block.
    Def(Arc<Tensor>, Origin),
    /// Statement.
    Stmt(Stmt),
}

/// Block under construction.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) items: Vec<Item>,
    /// Number of declarations in the block.
    pub(crate) declared: usize,
    /// Pairs of sizes that an assertion in this block made equal.
    pub(crate) equal: Vec<(Expr, Expr)>,
    /// Integers that an assertion in this block made non-negative.
    pub(crate) nonnegative: Vec<Expr>,
}

/// Snapshot of the program under construction, to roll back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) depth: usize,
    pub(crate) items: usize,
    facts: (usize, usize),
    custom_vjp_calls: usize,
    declared: usize,
}

/// Folds items into one statement.
pub(crate) fn fold(items: Vec<Item>, origin: &Origin) -> Stmt {
    let mut after: Vec<Stmt> = Vec::new(); // in reverse
    for item in items.into_iter().rev() {
        match item {
            Item::Stmt(s) => after.push(s),
            Item::Def(tensor, origin) => {
                after.reverse();
                let body = Stmt::seq(std::mem::take(&mut after), origin.clone());
                after.push(Stmt::new(StmtKind::VarDef { tensor, body }, origin));
            }
        }
    }
    after.reverse();
    Stmt::seq(after, origin.clone())
}

/// Collects the tensors that a statement writes.
fn writes(s: &Stmt, out: &mut FxHashSet<Symbol>) {
    s.walk(&mut |s| {
        if let StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } = s.kind() {
            out.insert(tensor.clone());
        }
    });
}

/// Collects the tensors that an expression reads.
pub(crate) fn reads(e: &Expr, out: &mut FxHashSet<Symbol>) {
    e.walk(&mut |e| {
        if let ExprKind::Load(t, _) = e.kind() {
            out.insert(t.clone());
        }
    });
}

impl Elab<'_> {
    /// Returns the origin of statements emitted for the current source statement.
    pub(crate) fn origin(&mut self) -> Origin {
        Origin::Source { span: self.span, labels: Vec::new(), chain: self.chain_shared() }
    }

    pub(crate) fn mark(&self) -> Mark {
        let block = self.block();
        let facts = (block.equal.len(), block.nonnegative.len());
        Mark {
            depth: self.blocks.len(),
            items: block.items.len(),
            facts,
            custom_vjp_calls: self.custom_vjp_calls.len(),
            declared: block.declared,
        }
    }

    pub(crate) fn block(&self) -> &Block {
        self.blocks.last().expect("a block is open during elaboration")
    }

    pub(crate) fn block_mut(&mut self) -> &mut Block {
        self.blocks.last_mut().expect("a block is open during elaboration")
    }

    /// Returns whether items were emitted into the current block since `mark`.
    pub(crate) fn emitted_since(&self, mark: Mark) -> bool {
        self.block().items.len() > mark.items
    }

    /// Rolls back to `mark`.
    pub(crate) fn roll_back(&mut self, mark: Mark) {
        self.blocks.truncate(mark.depth);
        self.custom_vjp_calls.truncate(mark.custom_vjp_calls);
        let block = self.block_mut();
        block.items.truncate(mark.items);
        block.declared = mark.declared;
        block.equal.truncate(mark.facts.0);
        block.nonnegative.truncate(mark.facts.1);
    }

    /// Returns the tensors written since `mark`, in the block in which it was taken.
    pub(crate) fn written_since(&self, mark: Mark) -> FxHashSet<Symbol> {
        let mut out = FxHashSet::default();
        for item in &self.block().items[mark.items..] {
            if let Item::Stmt(s) = item {
                writes(s, &mut out);
            }
        }
        out
    }

    pub(crate) fn emit(&mut self, kind: StmtKind) {
        self.emitted += 1;
        let origin = self.origin();
        self.block_mut().items.push(Item::Stmt(Stmt::new(kind, origin)));
    }

    pub(crate) fn declare(&mut self, tensor: &Arc<Tensor>) {
        self.emitted += 1;
        let origin = self.origin();
        let block = self.block_mut();
        block.declared += 1;
        block.items.push(Item::Def(tensor.clone(), origin));
    }

    pub(crate) fn open_block(&mut self) {
        self.blocks.push(Block::default());
    }

    pub(crate) fn close_block(&mut self) -> Stmt {
        let origin = self.origin();
        let block = self.blocks.pop().expect("blocks are opened and closed in pairs");
        fold(block.items, &origin)
    }

    /// Emits a loop nest over `shape` whose loops are called `name.d0`, `name.d1` …; `body` gets their iterators.
    pub(crate) fn nest(&mut self, name: &str, shape: &[Expr], body: impl FnOnce(&[Expr]) -> StmtKind) {
        let iters: Vec<Symbol> = (0..shape.len()).map(|d| Symbol::new(format!("{name}.d{d}"))).collect();
        let vars: Vec<Expr> = iters.iter().map(Expr::var).collect();
        let origin = self.origin();
        let mut kind = body(&vars);
        for (iter, n) in iters.into_iter().zip(shape).rev() {
            let body = Stmt::new(kind, origin.clone());
            let extent = Extent::Range { begin: Expr::int(0), end: n.clone(), step: Expr::int(1) };
            kind = StmtKind::For { iter, extent, props: LoopProps::default(), body };
        }
        self.emit(kind);
    }

    /// Stores `value` (over the axes of `shape`) at `indices` (over the same axes) of a tensor. Protocols apply to
    /// reads only, so those of `indices` are dropped.
    pub(crate) fn store(&mut self, tensor: &Arc<Tensor>, shape: &[Expr], indices: &[Access], value: &Expr) {
        let symbol = tensor.symbol.clone();
        let name = self.renames.get(&symbol).unwrap_or(&symbol).name().to_string();
        self.nest(&name, shape, |at| StmtKind::Store {
            tensor: symbol,
            indices: indices.iter().map(|a| Access::from(axis::substitute(&a.index, at))).collect(),
            value: axis::substitute(value, at),
        });
    }

    /// Gives a local tensor another format, if an item of the current block from `before` on declares it.
    pub(crate) fn stored_as(&mut self, tensor: &Symbol, format: &Format, before: usize) -> Option<Arc<Tensor>> {
        let items = self.block_mut().items.get_mut(before..)?;
        items.iter_mut().find_map(|item| match item {
            Item::Def(own, _) if own.symbol == *tensor => {
                *own = Arc::new(Tensor { format: format.clone(), ..(**own).clone() });
                Some(own.clone())
            }
            _ => None,
        })
    }

    /// Declares a new dense local tensor.
    pub(crate) fn local(&mut self, name: &str, dtype: DType, shape: Vec<Expr>) -> Arc<Tensor> {
        let format = Format::dense(shape.len());
        self.stored_local(name, TensorType { dtype, shape, format })
    }

    /// Declares a new local tensor of a type with a storage format.
    pub(crate) fn stored_local(&mut self, name: &str, ty: TensorType) -> Arc<Tensor> {
        let TensorType { dtype, shape, format } = ty;
        let dense = Tensor::dense(Symbol::new(name), dtype, shape, taffeta_ast::stmt::Role::Local);
        let tensor = Arc::new(Tensor { format, ..dense });
        self.declare(&tensor);
        tensor
    }
}
