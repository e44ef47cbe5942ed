//! Finding and replacing statements by their ids.

use taffeta_ast::{Expr, Func, Stmt, StmtId};

/// The statements from the root to the one with this id, both included.
pub fn path(root: &Stmt, id: StmtId) -> Option<Vec<Stmt>> {
    if root.id() == id {
        return Some(vec![root.clone()]);
    }
    root.kind().children().into_iter().find_map(|c| {
        let mut rest = path(c, id)?;
        rest.insert(0, root.clone());
        Some(rest)
    })
}

/// The statement with this id.
pub fn find(root: &Stmt, id: StmtId) -> Option<Stmt> {
    if root.id() == id {
        return Some(root.clone());
    }
    root.kind().children().into_iter().find_map(|c| find(c, id))
}

/// The program with `new` in the place of the statement with this id.
pub fn replace(func: &Func, id: StmtId, new: &Stmt) -> Func {
    func.with_body(replaced(&func.body, id, new))
}

/// The statement, likewise.
pub fn replaced(root: &Stmt, id: StmtId, new: &Stmt) -> Stmt {
    if root.id() == id {
        return new.clone();
    }
    root.map(&mut |s| replaced(s, id, new), &mut Expr::clone)
}
