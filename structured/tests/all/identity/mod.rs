//! Stored values that several elements share (halves of symmetric matrices, runs): the facts of formats, the results of
//! dependence analysis and the steps of schedules are checked against brute force. Packed tensors show which elements
//! share a value, and runs show which instances access the value.

use taffeta_analysis::query::depend::{DependenceQuery, Dependences};
use taffeta_analysis::query::reference::Use;
use taffeta_ast::format::{Format, Identity};
use taffeta_ast::interp::Inputs;
use taffeta_ast::random::trace::{Event, Fault, Touch, Trace, trace};
use taffeta_ast::{Buffer, Expr, ExprKind, Func, Literal, Stmt, StmtKind, Tensor, Value, print};
use taffeta_structured::Stored;
use testkit::dependences as check;
use testkit::direct;
use testkit::{programs, random, steps};

mod kernels;
mod schedules;

use random::Random;
use std::collections::HashMap;
use std::sync::Arc;

/// Stored elements of a tensor, each with the number of its value.
type Numbered = HashMap<Vec<i64>, usize>;

/// Numbers the stored value of each element, by storing values that all differ.
fn numbered(stored: &Stored, format: &Format) -> Numbered {
    let count = stored.arrays().last().map_or(0, |v| v.data().len());
    let numbers = Buffer::F64((0..count).map(|k| k as f64).collect());
    let all = stored.clone().followed_by(format.clone(), Value::new(vec![count], numbers).expect("it fits")).elements();
    let places = all.places().expect("it is sparse");
    let ndim = all.shape().len();
    places.indices.chunks_exact(ndim).map(<[i64]>::to_vec).zip(all.numbers().iter().map(|v| *v as usize)).collect()
}

/// Returns whether the format allows two elements to share a value.
fn may_be_one(identity: &Identity, a: &[i64], b: &[i64]) -> bool {
    identity.same.iter().all(|k| a[*k] == b[*k])
        && identity.exchanged.is_none_or(|[p, q]| a[p] == b[p] && a[q] == b[q] || a[p] == b[q] && a[q] == b[p])
}

/// Checks that injective formats never store two elements as one value, and that other formats share values, but only
/// as their identity says.
#[test]
fn formats_identify_elements_with_shared_values() {
    let plain = [1, 2, 3].map(random::formats);
    let all = plain.iter().flatten().map(|f| (f, false)).collect::<Vec<_>>();
    let remapped = random::remapped();
    let (mut compared, mut several) = (0, 0);
    for (format, is_remapped) in all.into_iter().chain(remapped.iter().map(|f| (f, true))) {
        let seeds = if format.levels.len() > 2 && !is_remapped { 3 } else { 16 };
        let mut shares = false;
        for seed in 0..seeds {
            let drawn = if is_remapped { random::remapped_matrix(format, seed) } else { random::tensor(format, seed) };
            let (format, elements) = (&drawn.format, numbered(&drawn.stored, &drawn.format));
            let ndim = drawn.given.shape().len();
            let identity = format.identity(ndim);
            if format.is_injective() {
                assert_eq!(identity, Identity { same: (0..ndim).collect(), exchanged: None }, "{format}");
            }
            let mut by_value: HashMap<usize, Vec<&Vec<i64>>> = HashMap::new();
            for (at, value) in &elements {
                by_value.entry(*value).or_default().push(at);
            }
            for group in by_value.values() {
                for (a, b) in group.iter().flat_map(|a| group.iter().map(move |b| (*a, *b))).filter(|(a, b)| a != b) {
                    assert!(!format.is_injective(), "{format}: {a:?} and {b:?} share a value");
                    assert!(may_be_one(&identity, a, b), "{format}: {a:?} and {b:?} share a value");
                    shares = true;
                }
            }
            // For symmetric matrices the condition is exact.
            if identity.exchanged.is_some() {
                for (a, b) in elements.keys().flat_map(|a| elements.keys().map(move |b| (a, b))) {
                    assert!(!may_be_one(&identity, a, b) || elements[a] == elements[b], "{format}: {a:?}, {b:?}");
                }
            }
            compared += 1;
        }
        assert!(shares || format.is_injective() || format.levels.len() > 2, "{format} never shares a value");
        several += usize::from(shares);
    }
    assert!(compared > 2000 && several > 20, "{compared} tensors, {several} formats with shared values");
}

/// Makes all tensors of a program dense, and keeps the statements.
fn dense(func: &Func) -> Func {
    let plain = |t: &Arc<Tensor>| Arc::new(Tensor { format: Format::dense(t.ndim()), ..(**t).clone() });
    fn body(s: &Stmt, plain: &dyn Fn(&Arc<Tensor>) -> Arc<Tensor>) -> Stmt {
        let inner = s.map(&mut |s| body(s, plain), &mut Expr::clone);
        match inner.kind() {
            StmtKind::VarDef { tensor, body } => {
                inner.with_kind(StmtKind::VarDef { tensor: plain(tensor), body: body.clone() })
            }
            _ => inner,
        }
    }
    let mut out = func.with_body(body(&func.body, &plain));
    out.params.iter_mut().for_each(|p| p.tensor = plain(&p.tensor));
    out.results = func.results.iter().map(plain).collect();
    out
}

/// Inputs of a program, and the value number of each stored element of `A`.
struct Given {
    inputs: Inputs,
    values: Numbered,
}

/// Draws inputs at a size: whole numbers, so that sums do not depend on their order.
fn given(func: &Func, size: i64, seed: u64) -> Given {
    let mut random = Random(seed);
    random.next(2);
    let sizes = func.sizes.iter().map(|s| (s.name().to_string(), size)).collect();
    let (mut params, mut first, mut values) = (Vec::new(), None, HashMap::new());
    for p in &func.params {
        let extent = |e: &Expr| match e.kind() {
            ExprKind::Var(_) => size as usize,
            _ => e.as_int().expect("a size") as usize,
        };
        let shape: Vec<usize> = p.tensor.shape.iter().map(extent).collect();
        let mut numbers = |n: usize| Buffer::F64((0..n).map(|_| random.next(19) as f64 - 9.0).collect());
        if p.tensor.format.is_dense() {
            let count = shape.iter().product();
            params.push(Value::new(shape, numbers(count)).expect("it fits"));
            continue;
        }
        let stored: Stored = match &first {
            Some(stored) => Stored::clone(stored),
            None => random::of_shape(&p.tensor.format, &shape, &mut Random(seed ^ 0x5555)).stored,
        };
        values = numbered(&stored, &p.tensor.format);
        let count = stored.arrays().last().map_or(0, |v| v.data().len());
        let elements = Value::new(vec![count], numbers(count)).expect("it fits");
        first.get_or_insert(stored.clone());
        params.push(stored.followed_by(p.tensor.format.clone(), elements).elements());
    }
    Given { inputs: Inputs { sizes, params }, values }
}

/// Maximum number of events per run.
const MAX_EVENTS: usize = 4000;

/// Traces a run of the program. Elements of tensors over the pattern of `A` are replaced by their values, and accesses
/// to elements that are not stored are left out.
fn touches(func: &Func, given: &Given) -> Trace {
    let params = given.inputs.params.iter().map(|v| v.dense().map_or_else(|| v.clone(), |(dense, _)| dense)).collect();
    let inputs = Inputs { params, sizes: given.inputs.sizes.clone() };
    let mut run = trace(&dense(func), &inputs, Fault::Stops, MAX_EVENTS);
    let mut structured: Vec<_> = func.interface().filter(|t| !t.format.is_dense()).map(|t| t.symbol.clone()).collect();
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind()
            && !tensor.format.is_dense()
        {
            structured.push(tensor.symbol.clone());
        }
    });
    run.events.retain_mut(|e| {
        if !structured.contains(&e.tensor) {
            return true;
        }
        let value = given.values.get(&e.element);
        value.into_iter().for_each(|v| e.element = vec![*v as i64]);
        value.is_some()
    });
    run
}

/// Returns the constants that statements store.
fn constants(func: &Func) -> HashMap<taffeta_ast::StmtId, Literal> {
    let mut out = HashMap::new();
    func.body.walk(&mut |s| {
        if let StmtKind::Store { value, .. } = s.kind() {
            out.extend(value.as_literal().map(|v| (s.id(), v)));
        }
    });
    out
}

/// Returns whether two accesses commute: both reduce by one operator, or store one constant.
fn either_order(a: &Event, b: &Event, constants: &HashMap<taffeta_ast::StmtId, Literal>) -> bool {
    let constant = |e: &Event| constants.get(&e.instance.stmt).filter(|_| e.touch == Touch::Write);
    check::commutes(a, b) || constant(a).is_some() && constant(a) == constant(b)
}

/// Checks that two instances that access one stored value, at least one of them as a write, are in a dependence
/// unless they commute.
#[test]
fn conflicts_on_stored_values_are_dependences() {
    let (mut seen, mut between_elements) = (0, 0);
    for (name, func) in kernels::all() {
        let analysis = Dependences::new(&func);
        let answers = check::by_pair(&analysis.all(&DependenceQuery::default()));
        let wrong = direct::answers(&func, &mut direct::Counts::default());
        assert!(wrong.is_none(), "{name}: {}\n{}", wrong.unwrap_or_default(), print::func(&func));
        let constants = constants(&func);
        for (size, seed) in [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)] {
            let run = touches(&func, &given(&func, size, seed));
            check::pairs(&run, &mut |a, b| {
                if either_order(a, b, &constants) {
                    return;
                }
                let Some(relations) = check::relations(&a.instance, &b.instance) else { return };
                let text = || format!("{name}\n{}\n{a:?}\n{b:?}", print::func(&func));
                assert!(check::covered(&answers, a, b, &relations), "not found: {}", text());
                seen += 1;
                between_elements += usize::from(a.indices != b.indices);
            });
        }
        // Precision: without shared values there are as many dependences as in the dense program.
        if !func.interface().any(|t| !t.format.is_injective()) {
            assert_eq!(
                answers.len(),
                check::by_pair(&Dependences::new(&dense(&func)).all(&DependenceQuery::default())).len()
            );
        }
        let reads = |u: Use| u == Use::Read;
        assert!(analysis.references().iter().any(|r| !reads(r.kind)), "{name} writes nothing");
    }
    assert!(seen > 10_000 && between_elements > 1000, "{seen} conflicts, {between_elements} of different accesses");
}
