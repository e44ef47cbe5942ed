//! Search and replacement of statements by id, which skip subtrees that surely do not hold the statement; and scopes of
//! tensors.

use taffeta_ast::{Expr, Func, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Returns the statements from the root to the one with this id, both included.
pub fn path(root: &Stmt, id: StmtId) -> Option<Vec<Stmt>> {
    let mut path = upwards(root, id)?;
    path.reverse();
    Some(path)
}

fn upwards(root: &Stmt, id: StmtId) -> Option<Vec<Stmt>> {
    if !root.may_hold(id) {
        return None;
    }
    let mut path = match root.id() == id {
        true => Vec::new(),
        false => root.kind().inside().find_map(|c| upwards(c, id))?,
    };
    path.push(root.clone());
    Some(path)
}

/// Finds the statement with this id.
pub fn find(root: &Stmt, id: StmtId) -> Option<Stmt> {
    if root.id() == id {
        return Some(root.clone());
    }
    if !root.may_hold(id) {
        return None;
    }
    root.kind().inside().find_map(|c| find(c, id))
}

/// Replaces the statement with this id in a program by `new`.
pub fn replace(func: &Func, id: StmtId, new: &Stmt) -> Func {
    func.with_body(replaced(&func.body, id, new))
}

/// Replaces the statement with this id below `root` by `new`. Subtrees that do not hold it stay the same nodes.
pub fn replaced(root: &Stmt, id: StmtId, new: &Stmt) -> Stmt {
    replaced_inside(root, id, new).unwrap_or_else(|| root.clone())
}

fn replaced_inside(root: &Stmt, id: StmtId, new: &Stmt) -> Option<Stmt> {
    if root.id() == id {
        return Some(new.clone());
    }
    if !root.may_hold(id) {
        return None;
    }
    let (k, child) = root.kind().inside().enumerate().find_map(|(k, c)| Some((k, replaced_inside(c, id, new)?)))?;
    let mut position = 0;
    let child = &mut |s: &Stmt| {
        position += 1;
        if position == k + 1 { child.clone() } else { s.clone() }
    };
    Some(root.map(child, &mut Expr::clone))
}

/// Replaces the scope of `tensor`, a local tensor or a result of the function, by the statement that `make` returns for
/// the tensor and its scope.
pub fn in_scope(func: &Func, tensor: &Symbol, make: &mut dyn FnMut(&Tensor, &Stmt) -> Stmt) -> Func {
    fn inside(s: &Stmt, tensor: &Symbol, make: &mut dyn FnMut(&Tensor, &Stmt) -> Stmt) -> Stmt {
        match s.kind() {
            StmtKind::VarDef { tensor: t, body } if t.symbol == *tensor => {
                s.with_kind(StmtKind::VarDef { tensor: t.clone(), body: make(t, body) })
            }
            _ => s.map(&mut |s| inside(s, tensor, make), &mut Expr::clone),
        }
    }
    func.with_body(match func.results.iter().find(|t| t.symbol == *tensor) {
        Some(t) => make(t, &func.body),
        None => inside(&func.body, tensor, make),
    })
}
