//! Steps of a schedule as data: recorded, saved as JSON, and replayed on the same program.

use crate::refusal::Refusal;
use crate::selector;
use crate::value::{Arg, Handle, IndexMap, Value};
use crate::written;
use serde::{Deserialize, Serialize};
use std::fmt;
use taffeta_ast::{Func, Stmt, StmtId};

/// Version of the format.
const VERSION: u32 = 1;

/// Steps of a schedule, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Version of the format.
    pub version: u32,
    /// Name of the program's entry.
    pub entry: String,
    /// Steps taken.
    pub steps: Vec<Step>,
}

/// Step of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Name of the primitive.
    pub method: String,
    /// Arguments of the call.
    pub args: Vec<Argument>,
    /// Notes of the primitive on the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Argument of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Argument {
    /// Keyword, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Recorded value.
    pub value: Recorded,
}

/// Value with the same meaning in another process, on the same program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recorded {
    /// `None`
    None,
    /// Boolean.
    Bool(bool),
    /// Integer.
    Int(i64),
    /// Float.
    Float(f64),
    /// String.
    Str(String),
    /// List or tuple.
    List(Vec<Recorded>),
    /// Statement, by its position in a pre-order walk of the program at the time of the call, and its name.
    Stmt {
        /// Position in pre-order.
        place: usize,
        /// Iterator of a loop, for readers and as a check.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Notation in a schedule function, for readers: `"i~o"`, `s.writes("y")[1]`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        written: Option<String>,
    },
    /// Tensor, by its name and its position among the tensors of that name.
    Tensor {
        /// Name of the tensor.
        name: String,
        /// Position among the tensors of that name, counted from 0.
        place: usize,
        /// Notation in a schedule function, for readers: `"t#2"`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        written: Option<String>,
    },
    /// Affine index map, one row for each new index: coefficients of the old indices, then the constant.
    Map(Vec<Vec<i64>>),
}

impl Argument {
    /// Records an argument of a call on this program. `resolve` maps a handle to the current statement.
    pub fn of(arg: &Arg, func: &Func, resolve: &dyn Fn(StmtId) -> StmtId) -> Argument {
        Argument { name: arg.name.clone(), value: record(&arg.value, func, resolve) }
    }
}

fn record(value: &Value, func: &Func, resolve: &dyn Fn(StmtId) -> StmtId) -> Recorded {
    match value {
        Value::None => Recorded::None,
        Value::Bool(b) => Recorded::Bool(*b),
        Value::Int(i) => Recorded::Int(*i),
        Value::Float(f) => Recorded::Float(*f),
        Value::Str(s) => Recorded::Str(s.clone()),
        Value::List(v) => Recorded::List(v.iter().map(|v| record(v, func, resolve)).collect()),
        Value::Handle(Handle::Stmt(id)) => {
            let found = place(&func.body, resolve(*id), &mut 0);
            let name = found.as_ref().and_then(|(_, s)| selector::name(s)).map(str::to_string);
            let written = found.as_ref().and_then(|(_, s)| written::stmt(func, s));
            Recorded::Stmt { place: found.map_or(usize::MAX, |(place, _)| place), name, written }
        }
        Value::Handle(Handle::Tensor(t)) => {
            let same = tensors(func).into_iter().filter(|s| s.name() == t.name()).collect::<Vec<_>>();
            Recorded::Tensor {
                name: t.name().to_string(),
                place: same.iter().position(|s| s == t).unwrap_or(usize::MAX),
                written: written::tensor(func, t),
            }
        }
        Value::Map(m) => Recorded::Map(coefficients(m).unwrap_or_default()),
    }
}

/// Returns the coefficients of an affine map, one row for each result: those of the parameters, then the constant.
pub(crate) fn coefficients(m: &IndexMap) -> Option<Vec<Vec<i64>>> {
    use taffeta_ast::poly::Poly;
    m.results
        .iter()
        .map(|e| {
            let mut row = vec![0i64; m.params.len() + 1];
            for (monomial, c) in Poly::of(e)?.terms() {
                let c = i64::try_from(c).ok()?;
                let at = match monomial {
                    [] => m.params.len(),
                    [v] => m.params.iter().position(|p| *v == taffeta_ast::Expr::var(p))?,
                    _ => return None,
                };
                row[at] = row[at].checked_add(c)?;
            }
            Some(row)
        })
        .collect()
}

/// Finds the statement with this id and its position in pre-order; `before` counts the statements before the root.
fn place(root: &Stmt, id: StmtId, before: &mut usize) -> Option<(usize, Stmt)> {
    if root.id() == id {
        return Some((*before, root.clone()));
    }
    *before += 1;
    root.kind().inside().find_map(|s| place(s, id, before))
}

fn statements(func: &Func) -> Vec<Stmt> {
    let mut all = Vec::new();
    func.body.walk(&mut |s| all.push(s.clone()));
    all
}

/// Lists the symbols of a program's tensors: its interface, then the declared ones in textual order.
fn tensors(func: &Func) -> Vec<taffeta_ast::Symbol> {
    selector::tensors(func).into_iter().map(|d| d.tensor.symbol.clone()).collect()
}

impl Trace {
    /// Creates an empty trace.
    pub fn new(entry: &str) -> Trace {
        Trace { version: VERSION, entry: entry.to_string(), steps: Vec::new() }
    }

    /// Serialises the trace as indented JSON.
    pub fn to_json(&self) -> String {
        // Numbers, strings and lists cannot fail to be serialised.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Parses a trace from JSON.
    ///
    /// # Errors
    /// If the text is not a trace, or has another version.
    pub fn from_json(text: &str) -> Result<Trace, Refusal> {
        let trace: Trace =
            serde_json::from_str(text).map_err(|e| Refusal::usage(format!("cannot read the schedule trace: {e}")))?;
        if trace.version != VERSION {
            return Err(Refusal::usage(format!(
                "expected a trace of version {VERSION}, found version {}",
                trace.version
            )));
        }
        Ok(trace)
    }

    /// Prints the steps as a schedule function of that name.
    ///
    /// # Errors
    /// A step with an argument that has no notation in schedule functions.
    pub fn function(&self, name: &str, doc: &str) -> Result<String, Refusal> {
        let mut out = format!("@schedule({})\ndef {name}(s):\n    \"\"\"{doc}\"\"\"\n", self.entry);
        for (k, step) in self.steps.iter().enumerate() {
            if let Some(arg) = step.argument_without_notation() {
                let message =
                    format!("cannot write step {} in a schedule function: {} has no notation", k + 1, arg.value);
                return Err(Refusal::target(message).help("save the steps with `--trace FILE.json`"));
            }
            out += &format!("    {step}\n");
        }
        Ok(out)
    }
}

impl Step {
    /// Returns the first argument without a notation in schedule functions.
    fn argument_without_notation(&self) -> Option<&Argument> {
        self.args.iter().find(|a| !a.value.has_notation())
    }
}

impl Recorded {
    /// Returns whether the displayed text denotes this value in a schedule function.
    fn has_notation(&self) -> bool {
        match self {
            Recorded::None | Recorded::Bool(_) | Recorded::Int(_) | Recorded::Str(_) => true,
            Recorded::Float(x) => x.is_finite(),
            Recorded::List(v) => v.iter().all(Recorded::has_notation),
            Recorded::Stmt { written, .. } | Recorded::Tensor { written, .. } => written.is_some(),
            // A map that is not affine has no rows.
            Recorded::Map(rows) => !rows.is_empty(),
        }
    }

    /// Resolves the recorded value on a program.
    ///
    /// # Errors
    /// If the program has no such statement or tensor.
    pub fn revive(&self, func: &Func) -> Result<Value, Refusal> {
        let changed =
            |what: &str| Refusal::target(format!("cannot find {what}: the trace was recorded on another program"));
        Ok(match self {
            Recorded::None => Value::None,
            Recorded::Bool(b) => Value::Bool(*b),
            Recorded::Int(i) => Value::Int(*i),
            Recorded::Float(f) => Value::Float(*f),
            Recorded::Str(s) => Value::Str(s.clone()),
            Recorded::List(v) => Value::List(v.iter().map(|v| v.revive(func)).collect::<Result<_, _>>()?),
            Recorded::Stmt { place, name, .. } => {
                let all = statements(func);
                let found = all.get(*place).filter(|s| selector::name(s) == name.as_deref());
                let id: StmtId = found.ok_or_else(|| changed(name.as_deref().unwrap_or("a statement")))?.id();
                id.into()
            }
            Recorded::Tensor { name, place, .. } => {
                let found = tensors(func).into_iter().filter(|t| t.name() == name).nth(*place);
                Value::Handle(Handle::Tensor(found.ok_or_else(|| changed(name))?))
            }
            Recorded::Map(rows) => Value::Map(IndexMap::affine(rows)),
        })
    }
}

impl IndexMap {
    /// Builds a map from rows of coefficients: those of the parameters, then the constant.
    pub fn affine(rows: &[Vec<i64>]) -> IndexMap {
        use taffeta_ast::{Expr, Symbol};
        let width = rows.first().map_or(0, |r| r.len().saturating_sub(1));
        let params: Vec<Symbol> = (0..width).map(|k| Symbol::new(format!("i{k}"))).collect();
        let sum = |row: &Vec<i64>| {
            let constant = Expr::int(row.last().copied().unwrap_or(0));
            params.iter().zip(row).fold(constant, |e, (p, c)| e.plus(&Expr::var(p).times(&Expr::int(*c))))
        };
        let results = rows.iter().map(sum).collect();
        IndexMap { params, results }
    }
}

impl fmt::Display for Step {
    /// Prints the call as in a schedule function.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let args: Vec<String> = self
            .args
            .iter()
            .map(|a| match &a.name {
                Some(n) => format!("{n}={}", a.value),
                None => a.value.to_string(),
            })
            .collect();
        write!(f, "s.{}({})", self.method, args.join(", "))
    }
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Recorded::None => f.write_str("None"),
            Recorded::Bool(b) => f.write_str(if *b { "True" } else { "False" }),
            Recorded::Int(i) => write!(f, "{i}"),
            Recorded::Float(x) => write!(f, "{x:?}"),
            Recorded::Str(s) => write!(f, "{s:?}"),
            Recorded::List(v) => {
                let items: Vec<String> = v.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Recorded::Stmt { written: Some(w), .. } | Recorded::Tensor { written: Some(w), .. } => f.write_str(w),
            Recorded::Stmt { name: Some(n), .. } => write!(f, "{n:?}"),
            Recorded::Stmt { place, name: None, .. } => write!(f, "<statement {place}>"),
            Recorded::Tensor { name, .. } => write!(f, "{name:?}"),
            Recorded::Map(rows) => {
                let width = rows.first().map_or(0, |r| r.len().saturating_sub(1));
                let params: Vec<String> = (0..width).map(|k| format!("i{k}")).collect();
                let sum = |row: &Vec<i64>| {
                    let mut terms: Vec<String> = params
                        .iter()
                        .zip(row)
                        .filter(|(_, c)| **c != 0)
                        .map(|(p, c)| if *c == 1 { p.clone() } else { format!("{c} * {p}") })
                        .collect();
                    match row.last() {
                        Some(c) if *c != 0 || terms.is_empty() => terms.push(c.to_string()),
                        _ => {}
                    }
                    terms.join(" + ")
                };
                let results: Vec<String> = rows.iter().map(sum).collect();
                write!(f, "lambda {}: ({})", params.join(", "), results.join(", "))
            }
        }
    }
}
