//! Generation of a loop nest ([`Tree`]) by isl, from the statements' domains and an order of their instances (Grosser,
//! Verdoolaege, Cohen 2015).
//!
//! isl-rs has no bindings for `isl_ast_build_*` and `isl_version`; the few functions that are needed are declared here.
//! They are in the isl library that isl-rs builds and links.
#![allow(unsafe_code)]

use super::{bounded, text};
use crate::polyhedral::{Dimension, Region, Style, Term, Tree};
use isl_rs::{ASTExpr, ASTExprOpType, ASTExprType, ASTNode, Context, LibISLError, Set, UnionMap, UnionSet};
use std::collections::HashMap;
use taffeta_ast::{Expr, Symbol};

/// isl operations that loop generation may cost: about a second.
const MAX_OPERATIONS: u64 = 4_000_000;

unsafe extern "C" {
    fn isl_ast_build_from_context(set: usize) -> usize;
    fn isl_ast_build_set_options(build: usize, options: usize) -> usize;
    fn isl_ast_build_node_from_schedule_map(build: usize, schedule: usize) -> usize;
    fn isl_ast_build_free(build: usize) -> usize;
    fn isl_ast_node_get_type(node: usize) -> i32;
    fn isl_version() -> *const std::ffi::c_char;
}

/// Returns isl's version: `0.27-GMP`. A build outside of isl's repository does not know its version and is reported as
/// isl-rs's.
pub(crate) fn version() -> String {
    // SAFETY: the function takes no argument and returns a constant string of the library, NUL-terminated and never
    // freed.
    let text = unsafe { std::ffi::CStr::from_ptr(isl_version()) };
    text.to_string_lossy().trim().trim_start_matches("isl-").replace("UNKNOWN-", "of isl-rs, with ")
}

// Variants of `enum isl_ast_node_type`, which isl-rs counts from 0.
const FOR: i32 = 1;
const IF: i32 = 2;
const BLOCK: i32 = 3;
const USER: i32 = 5;

/// An `isl_ast_build`, freed on drop.
struct Build(usize);

impl Build {
    fn new(mut known: Set, mut options: UnionMap) -> Build {
        known.do_not_free_on_drop();
        options.do_not_free_on_drop();
        // SAFETY: both pointers are live isl objects owned by the wrappers, which give them up here: isl takes them
        // (`__isl_take`) even on failure. A null pointer from the first call makes the second one free `options` and
        // return null.
        Build(unsafe { isl_ast_build_set_options(isl_ast_build_from_context(known.ptr), options.ptr) })
    }

    /// Generates the loops for an order. The node is null if isl fails, with the error in the context.
    fn node(&self, mut order: UnionMap) -> ASTNode {
        order.do_not_free_on_drop();
        // SAFETY: isl keeps the build (`__isl_keep`; for null it returns an error), and the map is live and given up by
        // its wrapper. The returned node is owned by this function, or null, which isl's `free` accepts.
        let ptr = unsafe { isl_ast_build_node_from_schedule_map(self.0, order.ptr) };
        ASTNode { ptr, should_free_on_drop: true }
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        // SAFETY: the build is owned and not used afterwards; null is allowed.
        unsafe { isl_ast_build_free(self.0) };
    }
}

/// Implements [`crate::polyhedral::generate`].
pub(crate) fn generate(region: &Region, order: &[Vec<Term>], dimensions: &[Dimension]) -> Option<Tree> {
    bounded(MAX_OPERATIONS, |context| {
        let known = text::braces(region, &format!(": {}", text::condition(&region.known)));
        let build = Build::new(Set::read_from_str(context, &known)?, options(context, region, dimensions)?);
        let domain = UnionSet::read_from_str(context, &text::domains(region))?.coalesce()?;
        let order = UnionMap::read_from_str(context, &text::order(region, order))?.intersect_domain(domain)?;
        let root = build.node(order);
        if root.ptr == 0 {
            return Ok(None);
        }
        Walk { region, dimensions, iters: HashMap::new() }.node(&root)
    })
    .flatten()
}

fn options(context: &Context, region: &Region, dimensions: &[Dimension]) -> Result<UnionMap, LibISLError> {
    let tuple = text::names("c", dimensions.len());
    let whole = dimensions.iter().enumerate().filter(|(_, d)| d.style == Style::Whole);
    let each: Vec<String> = whole.map(|(k, _)| format!("[{tuple}] -> atomic[{k}]")).collect();
    UnionMap::read_from_str(context, &text::braces(region, &each.join("; ")))
}

/// Reader of isl's loop syntax tree. Its methods return `None` where a node has no counterpart.
struct Walk<'a> {
    region: &'a Region,
    dimensions: &'a [Dimension],
    iters: HashMap<String, Symbol>,
}

type Read<T> = Result<Option<T>, LibISLError>;

impl Walk<'_> {
    fn node(&mut self, n: &ASTNode) -> Read<Tree> {
        match kind(n) {
            FOR => self.loop_(n),
            IF => {
                let Some(cond) = self.expr(&n.if_get_cond()?)? else { return Ok(None) };
                let Some(then) = self.node(&n.if_get_then_node()?)? else { return Ok(None) };
                let otherwise = if n.if_has_else_node()? {
                    let Some(o) = self.node(&n.if_get_else_node()?)? else { return Ok(None) };
                    Some(Box::new(o))
                } else {
                    None
                };
                Ok(Some(Tree::Branch { cond, then: Box::new(then), otherwise }))
            }
            BLOCK => {
                let list = n.block_get_children()?;
                let mut all = Vec::new();
                for k in 0..list.size()? {
                    let Some(child) = self.node(&list.get_at(k)?)? else { return Ok(None) };
                    all.push(child);
                }
                Ok(Some(Tree::Block(all)))
            }
            USER => self.run(&n.user_get_expr()?),
            _ => Ok(None),
        }
    }

    fn loop_(&mut self, n: &ASTNode) -> Read<Tree> {
        let name = n.for_get_iterator()?.id_get_id()?.get_name()?.to_string();
        let Some(dimension) = name.strip_prefix('c').and_then(|k| k.parse::<usize>().ok()) else { return Ok(None) };
        let Some(of) = self.dimensions.get(dimension) else { return Ok(None) };
        let Some(begin) = self.expr(&n.for_get_init()?)? else { return Ok(None) };
        let Some(called) = first_statement(n)?.and_then(|k| of.names.get(k)) else { return Ok(None) };
        let iter = Symbol::new(called);
        let outer = self.iters.insert(name.clone(), iter.clone());
        let (step, end) = if n.for_is_degenerate()? {
            (1, begin.plus(&Expr::int(1)))
        } else {
            let Some(step) = self.expr(&n.for_get_inc()?)?.and_then(|e| e.as_int()) else { return Ok(None) };
            let Some(end) = self.end(&n.for_get_cond()?, &iter)? else { return Ok(None) };
            (step, end)
        };
        let Some(body) = self.node(&n.for_get_body()?)? else { return Ok(None) };
        match outer {
            Some(o) => self.iters.insert(name, o),
            None => self.iters.remove(&name),
        };
        Ok((step > 0).then(|| Tree::Loop { dimension, iter, begin, end, step, body: Box::new(body) }))
    }

    /// Reads a loop's exclusive end from its condition, `i <= e` or `i < e`.
    fn end(&self, cond: &ASTExpr, iter: &Symbol) -> Read<Expr> {
        if cond.get_type()? != ASTExprType::Op || cond.op_get_n_arg()? != 2 {
            return Ok(None);
        }
        let left = self.expr(&cond.op_get_arg(0)?)?;
        let (Some(left), Some(right)) = (left, self.expr(&cond.op_get_arg(1)?)?) else { return Ok(None) };
        Ok(match cond.op_get_type()? {
            _ if left != Expr::var(iter) => None,
            ASTExprOpType::Le => Some(right.plus(&Expr::int(1))),
            ASTExprOpType::Lt => Some(right),
            _ => None,
        })
    }

    fn run(&self, call: &ASTExpr) -> Read<Tree> {
        let Some(statement) = called(call)? else { return Ok(None) };
        let mut indices = Vec::new();
        for k in 1..call.op_get_n_arg()? {
            let Some(e) = self.expr(&call.op_get_arg(k)?)? else { return Ok(None) };
            indices.push(e);
        }
        Ok(Some(Tree::Run(statement, indices)))
    }

    fn expr(&self, e: &ASTExpr) -> Read<Expr> {
        match e.get_type()? {
            ASTExprType::Int => {
                // A number that does not fit is an error of isl.
                let value = e.int_get_val()?;
                Ok(Some(Expr::int(value.get_num_si()?)))
            }
            ASTExprType::Id => {
                let id = e.id_get_id()?;
                let name = id.get_name()?;
                if let Some(iter) = self.iters.get(name) {
                    return Ok(Some(Expr::var(iter)));
                }
                let number = name.strip_prefix('p').and_then(|k| k.parse::<usize>().ok());
                Ok(number.and_then(|k| self.region.parameters.get(k).cloned()))
            }
            ASTExprType::Op => {
                let mut args = Vec::new();
                for k in 0..e.op_get_n_arg()? {
                    let Some(arg) = self.expr(&e.op_get_arg(k)?)? else { return Ok(None) };
                    args.push(arg);
                }
                Ok(apply(e.op_get_type()?, &args))
            }
            ASTExprType::Error => Ok(None),
        }
    }
}

/// Returns the first statement in execution order below a node.
fn first_statement(n: &ASTNode) -> Read<usize> {
    match kind(n) {
        FOR => first_statement(&n.for_get_body()?),
        IF => first_statement(&n.if_get_then_node()?),
        BLOCK => first_statement(&n.block_get_children()?.get_at(0)?),
        USER => called(&n.user_get_expr()?),
        _ => Ok(None),
    }
}

/// Returns the statement number of a call `S3(…)`.
fn called(call: &ASTExpr) -> Read<usize> {
    if call.get_type()? != ASTExprType::Op || call.op_get_type()? != ASTExprOpType::Call {
        return Ok(None);
    }
    let id = call.op_get_arg(0)?.id_get_id()?;
    Ok(id.get_name()?.strip_prefix('S').and_then(|k| k.parse().ok()))
}

fn kind(n: &ASTNode) -> i32 {
    // SAFETY: the node is alive, or null, for which isl returns -1.
    unsafe { isl_ast_node_get_type(n.ptr) }
}

fn apply(op: ASTExprOpType, args: &[Expr]) -> Option<Expr> {
    use ASTExprOpType as Op;
    let join = |f: &dyn Fn(Expr, &Expr) -> Expr| {
        let (first, rest) = args.split_first()?;
        Some(rest.iter().fold(first.clone(), f))
    };
    Some(match (op, args) {
        (Op::And | Op::AndThen, _) => join(&|a, b| a.and(b))?,
        (Op::Or | Op::OrElse, _) => join(&|a, b| a.or(b))?,
        (Op::Max, _) => join(&|a, b| a.max_with(b))?,
        (Op::Min, _) => join(&|a, b| a.min_with(b))?,
        (Op::Minus, [a]) => Expr::int(0).minus(a),
        (Op::Add, [a, b]) => a.plus(b),
        (Op::Sub, [a, b]) => a.minus(b),
        (Op::Mul, [a, b]) => a.times(b),
        // The division is exact or its dividend is non-negative, so truncation equals the floor.
        (Op::Div | Op::FdivQ | Op::PdivQ, [a, b]) => a.floor_div(b),
        // The remainder is only compared with 0, or its dividend is non-negative.
        (Op::PdivR | Op::ZdivR, [a, b]) => a.modulo(b),
        (Op::Cond | Op::Select, [c, a, b]) => c.select(a, b),
        (Op::Eq, [a, b]) => a.equals(b),
        (Op::Le, [a, b]) => a.less_eq(b),
        (Op::Lt, [a, b]) => a.less(b),
        (Op::Ge, [a, b]) => b.less_eq(a),
        (Op::Gt, [a, b]) => b.less(a),
        _ => return None,
    })
}
