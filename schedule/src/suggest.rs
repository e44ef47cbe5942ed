//! Suggestions for steps that a dependence prevents: preparatory steps, another loop, another cut. Every suggestion was
//! taken on a copy of the schedule first, and is given as code to write before the step or instead of it.

use crate::block::Block;
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::selector;
use crate::tree::{self, Loop};
use crate::value::{Arg, Handle, IndexMap, Value};
use taffeta_ast::{Span, Stmt, StmtId, StmtKind, Symbol, print};

/// Maximum number of steps tried for one refusal.
const MAX_TRIED: usize = 24;
/// Maximum number of tensors privatised for one step.
const MAX_PRIVATE: usize = 3;

/// Adds a suggestion to the refusal, if one is found.
pub(crate) fn add(s: &Schedule, method: &str, args: &[Arg], refusal: Refusal) -> Refusal {
    // Refusals of `reorder` have general advice; a suggestion that was tried replaces it.
    let general = method == "reorder" && refusal.condition > 1;
    if refusal.condition == 0 || !general && (refusal.help.is_some() || refusal.dependence.is_none()) {
        return refusal;
    }
    let mut search = StepSearch { s, method, args, left: MAX_TRIED };
    let found = match method {
        "parallelize" | "vectorize" | "reverse" | "blend" => search.order_free(&refusal),
        "reorder" | "permute" => search.other_order(),
        "fuse" => search.other_fusion(),
        "fission" => search.other_cut(),
        _ => None,
    };
    match found {
        Some(help) => refusal.help(help),
        None => refusal,
    }
}

struct StepSearch<'a> {
    s: &'a Schedule,
    method: &'a str,
    args: &'a [Arg],
    /// Remaining number of steps to try.
    left: usize,
}

/// Steps taken on a copy, with their code.
struct Attempt {
    s: Schedule,
    code: Vec<String>,
    /// Results of earlier steps, with their names in the code.
    named: Vec<(StmtId, &'static str)>,
    /// Statement that needs a label to be named.
    label: Option<String>,
}

fn stmt(id: StmtId) -> Arg {
    Arg::from(id)
}

fn handle(tensor: &Symbol) -> Arg {
    Arg { name: None, value: Value::Handle(Handle::Tensor(tensor.clone())), span: Span::NONE }
}

fn stmts(of: &[StmtId]) -> Arg {
    Arg::from(of.iter().map(|id| Value::from(*id)).collect::<Vec<Value>>())
}

impl StepSearch<'_> {
    fn begin(&self) -> Attempt {
        Attempt { s: self.s.trying(), code: Vec::new(), named: Vec::new(), label: None }
    }

    /// Takes a step; `None` if it is refused, or the budget is spent.
    fn take(&mut self, a: &mut Attempt, method: &str, args: &[Arg]) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        let code = a.spell(method, args);
        let made = a.s.call(method, args).ok()?;
        a.code.push(code);
        Some(made)
    }

    /// Takes a step that makes two loops, and names them `a` and `b` in the code.
    fn take_two(&mut self, a: &mut Attempt, method: &str, args: &[Arg]) -> Option<[StmtId; 2]> {
        let Value::List(made) = self.take(a, method, args)? else { return None };
        let [Value::Handle(Handle::Stmt(x)), Value::Handle(Handle::Stmt(y))] = made[..] else { return None };
        let last = a.code.last_mut()?;
        *last = format!("a, b = {last}");
        a.named = vec![(x, "a"), (y, "b")];
        Some([x, y])
    }

    fn loop_at(&self, position: usize) -> Option<Loop> {
        self.s.loop_(self.args.get(position)?).ok()
    }

    /// Suggests steps for a loop whose iterations would run in another order, or at the same time.
    fn order_free(&mut self, refusal: &Refusal) -> Option<String> {
        let l = self.loop_at(0)?;
        let tensor = &refusal.dependence.as_ref()?.source.tensor;
        let rest = self.args[1..].to_vec();
        let with = |id: StmtId| [&[stmt(id)], rest.as_slice()].concat();
        // Privatise a tensor.
        if let Some(text) = self.private(&l, tensor, &with) {
            return Some(text);
        }
        let concurrent = matches!(self.method, "parallelize" | "vectorize");
        // Only a reduction is in the way: stage it.
        if concurrent
            && refusal.condition == 3
            && let Some(text) = self.apart(&l, tensor, &with)
        {
            return Some(text);
        }
        // Cut the loop, and take the step on both halves, or on one of them.
        for at in cuts(&l.body) {
            let mut one = self.begin();
            let Some(halves) = self.take_two(&mut one, "fission", &[stmt(l.stmt.id()), Arg::named("after", at)]) else {
                continue;
            };
            let method = self.method;
            let taken = halves.map(|h| self.take(&mut one, method, &with(h)).is_some());
            if taken != [false, false] {
                return Some(one.said());
            }
        }
        if concurrent { self.another_loop(&l, &with) } else { None }
    }

    /// Suggests another loop of the nest: as it stands, after interchange, or along a wavefront.
    fn another_loop(&mut self, l: &Loop, with: &dyn Fn(StmtId) -> Vec<Arg>) -> Option<String> {
        let id = l.stmt.id();
        let inside = loops_in(&l.body);
        let around: Vec<StmtId> = self.s.around(id).iter().map(Stmt::id).collect();
        let method = self.method;
        for other in inside.iter().chain(around.iter().rev()) {
            let mut one = self.begin();
            if self.take(&mut one, method, &with(*other)).is_some() {
                return Some(one.said());
            }
        }
        if let (Some(outer), "vectorize") = (around.last(), self.method) {
            let mut one = self.begin();
            if self.take(&mut one, "reorder", &[stmts(&[id, *outer])]).is_some()
                && self.take(&mut one, method, &with(*outer)).is_some()
            {
                return Some(one.said());
            }
        }
        let (outer, inner) = match (inside.first(), around.last()) {
            (Some(inner), _) => (id, *inner),
            (None, Some(outer)) => (*outer, id),
            _ => return None,
        };
        let mut one = self.begin();
        let made = self.take_two(&mut one, "permute", &[stmts(&[outer, inner]), map([1, 1], [0, 1])])?;
        self.take(&mut one, method, &with(made[1])).map(|_| one.said())
    }

    /// Suggests staging the reduction in a tensor of the loop's own (`cache_reduction`).
    fn apart(&mut self, l: &Loop, tensor: &Symbol, with: &dyn Fn(StmtId) -> Vec<Arg>) -> Option<String> {
        let (tensor, method) = (handle(tensor), self.method);
        let inside = loops_in(&l.body);
        inside.into_iter().chain([l.stmt.id()]).find_map(|at| {
            let mut one = self.begin();
            self.take(&mut one, "cache_reduction", &[stmt(at), tensor.clone()])?;
            self.take(&mut one, method, &with(l.stmt.id())).map(|_| one.said())
        })
    }

    /// Suggests privatising tensors: the one of the dependence, then those that prevent the step after it.
    fn private(&mut self, l: &Loop, tensor: &Symbol, with: &dyn Fn(StmtId) -> Vec<Arg>) -> Option<String> {
        let (mut one, mut tensor) = (self.begin(), tensor.clone());
        let args = with(l.stmt.id());
        for _ in 0..MAX_PRIVATE {
            self.take(&mut one, "privatize", &[handle(&tensor), stmt(l.stmt.id())])?;
            match one.s.trying().call(self.method, &args) {
                Ok(_) => return self.take(&mut one, self.method, &args).map(|_| one.said()),
                Err(refusal) => tensor = refusal.dependence.as_ref()?.source.tensor.clone(),
            }
        }
        None
    }

    /// Suggests steps before an interchange of two loops: cutting off the statements beside the inner one, or skewing.
    fn other_order(&mut self) -> Option<String> {
        let Some(Value::List(given)) = self.args.first().map(|a| &a.value) else { return None };
        let given: Vec<Arg> = given.iter().map(|v| Arg { name: None, value: v.clone(), span: Span::NONE }).collect();
        let [x, y] = given.iter().map(|a| self.s.loop_(a).ok()).collect::<Option<Vec<Loop>>>()?.try_into().ok()?;
        let is_outer = tree::find(&x.stmt, y.stmt.id()).is_some();
        let (outer, inner) = if is_outer { (&x, &y) } else { (&y, &x) };
        if self.method == "reorder" {
            let block = Block::of(&outer.body);
            let at = block.position(inner.stmt.id())?;
            let before = Arg::named("before", block.items[at].id());
            let after = Arg::named("after", block.items[at].id());
            let cuts = [(at > 0, vec![before.clone()]), (at + 1 < block.items.len(), vec![after.clone()])];
            for (_, cut) in cuts.iter().filter(|(possible, _)| *possible) {
                let mut one = self.begin();
                let args = [&[stmt(outer.stmt.id())], cut.as_slice()].concat();
                if self.take_two(&mut one, "fission", &args).is_none() {
                    continue;
                }
                let Some(around) = one.s.around(inner.stmt.id()).last().map(Stmt::id) else { continue };
                if self.take(&mut one, "reorder", &[stmts(&[inner.stmt.id(), around])]).is_some() {
                    return Some(one.said());
                }
            }
        }
        let mut one = self.begin();
        self.take(&mut one, "permute", &[stmts(&[outer.stmt.id(), inner.stmt.id()]), map([1, 1], [1, 0])])?;
        Some(one.said())
    }

    /// Suggests putting the second loop first, reversing one of the loops, or fusing a part of one of them.
    fn other_fusion(&mut self) -> Option<String> {
        let (x, y) = (self.loop_at(0)?, self.loop_at(1)?);
        let (p, q) = (x.stmt.id(), y.stmt.id());
        let rest = self.args[2..].to_vec();
        let with = |a: StmtId, b: StmtId| [&[stmt(a), stmt(b)], rest.as_slice()].concat();
        for (first, args) in [
            (("swap", stmts(&[p, q])), with(q, p)),
            (("reverse", stmt(p)), with(p, q)),
            (("reverse", stmt(q)), with(p, q)),
        ] {
            let mut one = self.begin();
            if self.take(&mut one, first.0, &[first.1]).is_some() && self.take(&mut one, "fuse", &args).is_some() {
                return Some(one.said());
            }
        }
        for (l, is_first) in [(&x, true), (&y, false)] {
            for at in cuts(&l.body) {
                let mut one = self.begin();
                let cut = [stmt(l.stmt.id()), Arg::named("after", at)];
                let Some([a, b]) = self.take_two(&mut one, "fission", &cut) else { continue };
                let args = if is_first { with(b, q) } else { with(p, a) };
                if self.take(&mut one, "fuse", &args).is_some() {
                    return Some(one.said());
                }
            }
        }
        None
    }

    /// Suggests another place to cut a loop.
    fn other_cut(&mut self) -> Option<String> {
        let l = self.loop_at(0)?;
        cuts(&l.body).into_iter().find_map(|at| {
            let mut one = self.begin();
            self.take_two(&mut one, "fission", &[stmt(l.stmt.id()), Arg::named("after", at)]).map(|_| one.said())
        })
    }
}

/// Builds the index map of two loops from its coefficients.
fn map(first: [i64; 2], second: [i64; 2]) -> Arg {
    let rows = [first, second].map(|r| vec![r[0], r[1], 0]);
    Arg { name: None, value: Value::Map(IndexMap::affine(&rows)), span: Span::NONE }
}

/// Lists the statements of a body after which it can be cut: those of its block, or of the body of its only loop.
fn cuts(body: &Stmt) -> Vec<StmtId> {
    let block = Block::of(body);
    if let [only] = block.items.as_slice() {
        return match only.kind() {
            StmtKind::For { body, .. } => cuts(body),
            _ => Vec::new(),
        };
    }
    let last = block.items.len().saturating_sub(1);
    block.items[..last].iter().map(Stmt::id).collect()
}

/// Lists the loops in a body, outermost first.
fn loops_in(body: &Stmt) -> Vec<StmtId> {
    let mut all = Vec::new();
    body.walk(&mut |s| all.extend(Loop::of(s).map(|l| l.stmt.id())));
    all
}

impl Attempt {
    /// Describes the attempt for the user.
    fn said(&self) -> String {
        let code: Vec<String> = self.code.iter().map(|c| format!("`{c}`")).collect();
        let label = self.label.as_ref().map(|of| format!(", with `label(\"here\")` before `{of}`")).unwrap_or_default();
        format!("write instead: {}{label}", code.join(", then "))
    }

    /// Writes a call as code, on the current program.
    fn spell(&mut self, method: &str, args: &[Arg]) -> String {
        let args: Vec<String> = args
            .iter()
            .map(|a| {
                let value = self.value(a, &a.value);
                a.name.as_ref().map_or(value.clone(), |n| format!("{n}={value}"))
            })
            .collect();
        format!("s.{method}({})", args.join(", "))
    }

    fn value(&mut self, arg: &Arg, value: &Value) -> String {
        match value {
            Value::List(of) => {
                let items: Vec<String> = of.iter().map(|v| self.value(arg, v)).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Handle(Handle::Stmt(id)) => self.statement(*id),
            other => self.s.recorded(&Arg { value: other.clone(), ..arg.clone() }).value.to_string(),
        }
    }

    /// Names a statement: by the name of an earlier result, by a selector that denotes it alone, or by a label to be
    /// added.
    fn statement(&mut self, id: StmtId) -> String {
        if let Some((_, name)) = self.named.iter().find(|(n, _)| *n == id) {
            return (*name).to_string();
        }
        let func = self.s.func();
        let Some(s) = tree::find(&func.body, id) else { return "…".into() };
        let labels = s.origin().labels().iter().map(|l| l.to_string());
        let loops = selector::name(&s).map(|_| selector::called(func, &s));
        let selects = |text: &String| selector::stmt(func, text).is_ok_and(|found| found.id() == id);
        match labels.chain(loops).find(selects) {
            Some(text) => format!("{text:?}"),
            None => {
                let text = print::stmt(&s);
                self.label = Some(text.lines().next().unwrap_or_default().to_string());
                "\"here\"".to_string()
            }
        }
    }
}
