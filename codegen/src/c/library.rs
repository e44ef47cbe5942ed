//! Loop nests that a schedule marked as a library call (`LoopProps::library`): the call, and the nest itself as a
//! fallback.
//!
//! ```text
//! for i in range(n):  # library          if (!(n > 0 && m > 0 && p > 0 && taf_product_f32(ctx, n, m, p, 1.0f,
//!     for j in range(m):                       (taf_matrix_f32){a, p, 1}, (taf_matrix_f32){b, m, 1}, (taf_matrix_f32){c, m, 1}))) {
//!         for k in range(p):         →         for (int64_t i = 0; i < n; i++) {
//!             c[i * m + j] += …                    …
//! ```
//!
//! Rows, columns and the sum are derived from the subscripts again, since passes may have changed the nest; a nest that
//! is not a product is printed as loops. The schedule has proved for this nest that the result does not overlap the
//! factors, and passes preserve its meaning. Loops of the nest other than the product's own run around the call.

use super::emitter::{Emitter, Shared};
use super::types;
use taffeta_analysis::query::product::{Operand, Product, product};
use taffeta_ast::{DType, Expr, ExprKind, LoopProps, ReduceOp, Stmt, StmtKind};

impl Emitter<'_> {
    /// Prints a nest as a matrix product; returns false if it is none.
    pub fn library(&mut self, nest: &Stmt) -> bool {
        // The reason is not reported.
        let Ok(p) = product(nest, &|_| String::new()) else { return false };
        if [&p.a, &p.b, &p.c].into_iter().any(|o| o.indices.len() != 1) {
            return false;
        }
        let c = match self.shared.get(&(p.c.tensor.clone(), ReduceOp::Add)) {
            Some(Shared::Atomic) => return false,
            Some(Shared::Copy(name)) => name.clone(),
            None => self.names.get(&p.c.tensor),
        };
        let around = p.around();
        if around.is_empty() {
            self.product(nest, &p, &c);
        } else {
            let inner = (0..p.loops.len()).filter(|l| !around.contains(l));
            let order: Vec<usize> = around.iter().copied().chain(inner).collect();
            self.stmt(&reordered(&p, &order, around.len()));
        }
        true
    }

    fn product(&mut self, nest: &Stmt, p: &Product, c: &str) {
        self.products = true;
        let count = |l: Option<usize>| l.map_or(Expr::int(1), |l| p.loops[l].count.clone());
        let counts = [count(p.row), count(p.column), count(Some(p.sum))].map(|e| self.expr(&e));
        let names = ["rows", "columns", "sums"].map(|n| self.names.fresh(n));
        let (suffix, element) = (if p.dtype == DType::F64 { "f64" } else { "f32" }, types::stored(p.dtype));
        let one = Expr::float(1.0, p.dtype);
        let alpha = self.expr(p.alpha.as_ref().unwrap_or(&one));
        let (a, b) = (self.names.get(&p.a.tensor), self.names.get(&p.b.tensor));
        let mut matrix = |name: &str, o: &Operand, rows: Option<usize>, columns: Option<usize>| {
            let at = first(&o.indices[0], p);
            let base = if at.as_int() == Some(0) { String::new() } else { format!(" + ({})", self.expr(&at)) };
            let mut stride = |l: Option<usize>| l.map_or("0".to_string(), |l| self.expr(&o.factors[0][l]));
            let (rows, columns) = (stride(rows), stride(columns));
            format!("(taf_matrix_{suffix}){{({element} *){name}{base}, {rows}, {columns}}}")
        };
        let sum = Some(p.sum);
        let [a, b, c] =
            [matrix(&a, &p.a, p.row, sum), matrix(&b, &p.b, sum, p.column), matrix(c, &p.c, p.row, p.column)];
        let [rows, columns, sums] = &names;
        self.out.open("{");
        for (name, count) in names.iter().zip(&counts) {
            self.out.line(format!("const int64_t {name} = {count};"));
        }
        self.out.line(format!("if (!({rows} > 0 && {columns} > 0 && {sums} > 0 &&"));
        self.out.line(format!("      taf_product_{suffix}(ctx, {rows}, {columns}, {sums}, {alpha},"));
        self.out.line(format!("                       {a},"));
        self.out.line(format!("                       {b},"));
        self.out.open(format!("                       {c}))) {{"));
        self.stmt(&unmarked(nest));
        self.out.close("}");
        self.out.close("}");
    }
}

/// Returns a subscript in the first iteration of the product's own loops.
fn first(index: &Expr, p: &Product) -> Expr {
    let own: Vec<usize> = [p.row, p.column, Some(p.sum)].into_iter().flatten().collect();
    let value = index.rewrite(&mut |e| match e.kind() {
        ExprKind::Var(s) => {
            own.iter().find(|l| p.loops[**l].iter == *s).map_or(e.clone(), |l| p.loops[*l].begin.clone())
        }
        _ => e,
    });
    taffeta_ast::poly::tidy(&value)
}

/// Reorders the loops of the nest; the loop with the number `library` is marked as the library's.
fn reordered(p: &Product, order: &[usize], library: usize) -> Stmt {
    order.iter().enumerate().rev().fold(p.update.clone(), |body, (k, l)| {
        let stmt = &p.loops[*l].stmt;
        let StmtKind::For { iter, extent, .. } = stmt.kind() else { return body };
        let props = LoopProps { library: k == library, ..LoopProps::default() };
        stmt.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body })
    })
}

/// Removes the library mark from the nest.
fn unmarked(nest: &Stmt) -> Stmt {
    let StmtKind::For { iter, extent, body, .. } = nest.kind() else { return nest.clone() };
    let props = LoopProps::default();
    nest.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() })
}
