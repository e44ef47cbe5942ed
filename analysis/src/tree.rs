//! Finding and replacing statements by their ids.

use taffeta_ast::{Expr, Func, Stmt, StmtId};

/// The statements from the root to the one with this id, both included.
pub fn path(root: &Stmt, id: StmtId) -> Option<Vec<Stmt>> {
    let mut path = upwards(root, id)?;
    path.reverse();
    Some(path)
}

fn upwards(root: &Stmt, id: StmtId) -> Option<Vec<Stmt>> {
    let mut path = match root.id() == id {
        true => Vec::new(),
        false => root.kind().inside().find_map(|c| upwards(c, id))?,
    };
    path.push(root.clone());
    Some(path)
}

/// The statement with this id.
pub fn find(root: &Stmt, id: StmtId) -> Option<Stmt> {
    if root.id() == id {
        return Some(root.clone());
    }
    root.kind().inside().find_map(|c| find(c, id))
}

/// The program with `new` in the place of the statement with this id.
pub fn replace(func: &Func, id: StmtId, new: &Stmt) -> Func {
    func.with_body(replaced(&func.body, id, new))
}

/// The statement, likewise. What does not hold the one that is replaced stays the same node.
pub fn replaced(root: &Stmt, id: StmtId, new: &Stmt) -> Stmt {
    replaced_inside(root, id, new).unwrap_or_else(|| root.clone())
}

fn replaced_inside(root: &Stmt, id: StmtId, new: &Stmt) -> Option<Stmt> {
    if root.id() == id {
        return Some(new.clone());
    }
    let (k, child) = root.kind().inside().enumerate().find_map(|(k, c)| Some((k, replaced_inside(c, id, new)?)))?;
    let mut position = 0;
    let child = &mut |s: &Stmt| {
        position += 1;
        if position == k + 1 { child.clone() } else { s.clone() }
    };
    Some(root.map(child, &mut Expr::clone))
}
