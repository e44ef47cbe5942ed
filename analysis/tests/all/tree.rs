//! Search and replacement of statements.

use taffeta_analysis::tree::{find, path, replaced};
use taffeta_ast::build::{block, looped};
use taffeta_ast::{Expr, Stmt, StmtId, Symbol};

#[test]
fn finds_exactly_the_statements_of_the_tree() {
    let loops = |n: usize, body: &dyn Fn() -> Stmt| {
        block((0..n).map(|k| looped(&Symbol::new(format!("i{k}")), &Expr::int(3), body())))
    };
    // More statements than there are bits in `Stmt::may_hold`.
    let root = loops(5, &|| loops(5, &|| loops(5, &Stmt::nop)));
    let mut all = Vec::new();
    root.walk(&mut |s| all.push(s.clone()));
    assert!(all.len() > 200);
    for s in &all {
        assert!(root.may_hold(s.id()));
        assert!(find(&root, s.id()).is_some_and(|found| found.same_node(s)));
        let way = path(&root, s.id()).expect("it is there");
        assert!(way[0].same_node(&root) && way[way.len() - 1].same_node(s));
        let other = looped(&Symbol::new("other"), &Expr::int(3), Stmt::nop());
        let without = replaced(&root, s.id(), &other);
        assert!(all.iter().all(|t| find(&without, t.id()).is_none() == find(s, t.id()).is_some()));
        assert!(find(&without, other.id()).is_some());
    }
    let elsewhere = StmtId::fresh();
    assert!(find(&root, elsewhere).is_none() && path(&root, elsewhere).is_none());
    assert!(replaced(&root, elsewhere, &Stmt::nop()).same_node(&root));
}
