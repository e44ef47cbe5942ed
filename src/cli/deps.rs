//! `taffeta deps`: dependences between statement instances that access the same element, and the loops that carry them.

use super::args::EntryArgs;
use super::output::{Failure, print, print_json};
use super::session;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use taffeta::Program;
use taffeta::analysis::query::depend::{Dependence, DependenceQuery, Dependences, Relation};
use taffeta::analysis::query::reference::Reference;
use taffeta::ast::span::FileId;
use taffeta::ast::{Func, SourceMap, Span, Stmt, StmtId, StmtKind, Symbol, Tensor, print as show};
use taffeta::schedule::{selector, show as words};

/// Print the dependences of a program, and the loops that carry them
#[derive(clap::Args)]
#[command(after_help = "\
Two instances of statements depend on each other if both access the same element and at least one writes it: RAW (a \
read after a write), WAR (a write after a read), WAW (a write after a write). A loop that carries no dependence may \
run its iterations in any order. Reductions of one operator into one element commute, and are listed with their loops \
only.

Transitive dependences are left out: if three statements overwrite an element one after the other in the same \
iterations, the dependence of the third on the first. The list of the loops accounts for all dependences.

Examples:
  taffeta deps f.ft
  taffeta deps f.ft --all
  taffeta deps f.ft main --set w=3
  taffeta deps f.ft --json")]
pub struct Args {
    #[command(flatten)]
    pub of: EntryArgs,
    /// List every dependence, including transitive ones
    #[arg(long)]
    pub all: bool,
    /// Print machine-readable dependences and diagnostics on standard output
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let program = Program::open(&args.of.file)?;
    let entry = program.entry(args.of.entry.as_deref())?;
    let options = session::options(&args.of)?;
    let options = program.with_inputs(&entry, &options, &args.of.inputs, &args.of.sizes)?;
    let func = program.sized(&entry, &options)?;
    let found = DependenceReport::new(&func, &options.sizes, program.sources(), args.all);
    if args.json { print_json(&found.json()) } else { print(&found.text()) }
}

/// Results of the dependence analysis.
struct DependenceReport<'a> {
    func: &'a Func,
    sources: &'a SourceMap,
    /// File that contains the program's first statement.
    main_file: FileId,
    /// Dependences, with their distances in the common loops.
    listed: Vec<(Dependence, Vec<Option<i64>>)>,
    /// Whether there are transitive dependences that are not listed.
    has_transitive: bool,
    loops: Vec<LoopDependences>,
    /// Selectors of the loops in schedules.
    names: HashMap<StmtId, String>,
}

/// Loop, with the names of the tensors of which it carries dependences and reductions, each once.
struct LoopDependences {
    stmt: Stmt,
    carries: Vec<String>,
    reduces: Vec<String>,
}

impl<'a> DependenceReport<'a> {
    fn new(func: &'a Func, known: &BTreeMap<String, i64>, sources: &'a SourceMap, every: bool) -> DependenceReport<'a> {
        let analysis = Dependences::new(func);
        let (mut listed, has_transitive) = match every {
            true => (analysis.all(&DependenceQuery::default()), false),
            false => {
                let direct = analysis.direct();
                (direct.dependences, direct.has_implied)
            }
        };
        let distances = analysis.distances(&listed);
        // Compiled-in sizes do not occur in the program.
        listed.iter_mut().for_each(|d| d.witness.sizes.retain(|(size, _)| !known.contains_key(size.name())));
        let mut carries = carried(&listed);
        let mut reduces = carried(&analysis.carried_reductions());
        let mut loops = Vec::new();
        func.body.walk(&mut |s| {
            if matches!(s.kind(), StmtKind::For { .. } | StmtKind::While { .. }) {
                let names = |of: &mut Carried| of.remove(&s.id()).unwrap_or_default();
                loops.push(LoopDependences {
                    stmt: s.clone(),
                    carries: names(&mut carries),
                    reduces: names(&mut reduces),
                });
            }
        });
        let listed = listed.into_iter().zip(distances).collect();
        let names = selector::names(func).into_iter().collect();
        DependenceReport { func, sources, main_file: main_file(func), listed, has_transitive, loops, names }
    }

    /// Formats the line of a statement, with the name of its file unless that is the main file.
    fn line(&self, s: &Stmt) -> String {
        let span = s.origin().span();
        match self.sources.line_col(span) {
            Some(at) if span.file == self.main_file => format!("line {}", at.line),
            Some(_) => self.sources.locate(span),
            None => "generated".to_string(),
        }
    }

    // ---- text output

    fn text(&self) -> String {
        let mut out = String::new();
        let count = match self.listed.len() {
            0 => "no dependences".to_string(),
            1 => "1 dependence".to_string(),
            n => format!("{n} dependences"),
        };
        let more = if self.has_transitive { ", and transitive ones (`--all` lists them)" } else { "" };
        let _ = writeln!(out, "{}: {count}{more}", self.func.name);
        let (mut places, mut tensors) = (HashMap::new(), Vec::new());
        for (d, distances) in &self.listed {
            let place = *places.entry(&d.source.tensor).or_insert_with(|| {
                tensors.push((&d.source.declared, Vec::new()));
                tensors.len() - 1
            });
            tensors[place].1.push((d, distances));
        }
        for (t, list) in tensors {
            let _ = write!(out, "\n{}\n", declaration(t));
            list.into_iter().for_each(|(d, distances)| out.push_str(&self.dependence(d, distances)));
        }
        if !self.loops.is_empty() {
            out.push_str("\nloops\n");
        }
        for LoopDependences { stmt, carries, reduces } in &self.loops {
            let what = match (carries.is_empty(), reduces.is_empty()) {
                (false, true) => format!("carries dependences on {}", carries.join(", ")),
                (false, false) => {
                    format!("carries dependences on {}, and reductions into {}", carries.join(", "), reduces.join(", "))
                }
                (true, false) => format!("carries nothing but reductions into {}", reduces.join(", ")),
                (true, true) => {
                    "has no loop-carried dependence: it can be parallel, vectorised or reversed".to_string()
                }
            };
            let _ = writeln!(out, "  {}, `{}` {what}", self.line(stmt), self.name(stmt));
        }
        out
    }

    fn dependence(&self, d: &Dependence, distances: &[Option<i64>]) -> String {
        let mut out = format!("  {}", d.kind.short());
        match d.carrier() {
            Some(s) => {
                let _ = write!(out, " carried by `{}` ({})", self.name(s), self.line(s));
                let far: Vec<String> = d.loops.iter().zip(distances).map(|((s, r), k)| self.far(s, *r, *k)).collect();
                let _ = write!(out, ", distance {}", far.join(", "));
            }
            None if d.loops.is_empty() => out.push_str(" carried by no loop"),
            None => {
                let names: Vec<String> = d.loops.iter().map(|(s, _)| format!("`{}`", self.name(s))).collect();
                let _ = write!(out, " within one iteration of {}", names.join(", "));
            }
        }
        for (r, instance) in [&d.source, &d.sink].into_iter().zip(words::instances(d)) {
            let text = self.sources.line_text(r.site.stmt.origin().span()).trim();
            let _ = write!(out, "\n    {} {instance}: {text}", self.line(&r.site.stmt));
        }
        if let Some(witness) = words::witness(d) {
            let _ = write!(out, "\n    {witness}");
        }
        out.push('\n');
        out
    }

    /// Returns the selector of a loop in schedules.
    fn name(&self, s: &Stmt) -> &str {
        self.names.get(&s.id()).map_or("while", String::as_str)
    }

    /// Formats the distance of a dependence in a loop: `i: +1`, or its sign if the distance varies.
    fn far(&self, s: &Stmt, relation: Relation, distance: Option<i64>) -> String {
        match distance {
            Some(0) => format!("{}: 0", self.name(s)),
            Some(k) => format!("{}: {k:+}", self.name(s)),
            None => format!("{}: {}", self.name(s), sign(relation)),
        }
    }

    // ---- JSON output

    fn json(&self) -> Json {
        let loop_ = |LoopDependences { stmt, carries, reduces }: &LoopDependences| {
            let free = carries.is_empty() && reduces.is_empty();
            let line = self.line_number(stmt);
            json!({ "loop": self.name(stmt), "line": line, "carries": carries, "reduces": reduces, "parallel": free })
        };
        let loops: Vec<Json> = self.loops.iter().map(loop_).collect();
        let listed: Vec<Json> = self.listed.iter().map(|(d, k)| self.json_of(d, k)).collect();
        json!({
            "status": "ok",
            "entry": self.func.name,
            "dependences": listed,
            "more": self.has_transitive,
            "loops": loops,
        })
    }

    fn line_number(&self, s: &Stmt) -> Option<usize> {
        self.sources.line_col(s.origin().span()).map(|at| at.line)
    }

    fn json_of(&self, d: &Dependence, distances: &[Option<i64>]) -> Json {
        let end = |r: &Reference| {
            let span = r.site.stmt.origin().span();
            json!({
                "file": self.sources.get(span.file).map(|f| f.name.clone()),
                "line": self.line_number(&r.site.stmt),
                "does": words::verb(r.kind),
                "element": words::element(r),
            })
        };
        let loops: Vec<Json> = d
            .loops
            .iter()
            .zip(distances)
            .map(|((s, r), k)| json!({ "loop": self.name(s), "line": self.line_number(s), "sink": sign(*r), "distance": k }))
            .collect();
        let values = |list: &[(Symbol, i64)]| -> Json {
            list.iter().map(|(s, v)| json!({ "name": s.name(), "value": v })).collect::<Vec<_>>().into()
        };
        let w = &d.witness;
        let assumed: Vec<Json> = w.assumed.iter().map(|(e, v)| json!({ "value_of": show::expr(e), "is": v })).collect();
        json!({
            "kind": d.kind.short(),
            "tensor": d.source.tensor.name(),
            "source": end(&d.source),
            "sink": end(&d.sink),
            "carrier": d.carrier().map(|s| json!({ "loop": self.name(s), "line": self.line_number(s) })),
            "loops": loops,
            "witness": {
                "sizes": values(&w.sizes),
                "source": values(&w.source),
                "sink": values(&w.sink),
                "element": w.element,
                "assumed": assumed,
                "exact": w.exact,
            },
        })
    }
}

/// Names of tensors by the loops that carry dependences or reductions on them.
type Carried = HashMap<StmtId, Vec<String>>;

fn carried(list: &[Dependence]) -> Carried {
    let (mut out, mut seen) = (Carried::new(), HashSet::new());
    for d in list {
        let Some(carrier) = d.carrier() else { continue };
        let name = d.source.tensor.name();
        if seen.insert((carrier.id(), name)) {
            out.entry(carrier.id()).or_default().push(name.to_string());
        }
    }
    out
}

/// Returns the file of the first statement that has a span.
fn main_file(func: &Func) -> FileId {
    let mut first = Span::NONE;
    func.body.walk(&mut |s| {
        if first.is_none() {
            first = s.origin().chain().first().map_or(s.origin().span(), |c| c.span);
        }
    });
    first.file
}

fn declaration(t: &Tensor) -> String {
    let role = match t.role {
        taffeta::ast::stmt::Role::Input => "parameter ",
        taffeta::ast::stmt::Role::InOut => "inout ",
        taffeta::ast::stmt::Role::Result => "result ",
        _ => "",
    };
    let shape: Vec<String> = t.shape.iter().map(show::expr).collect();
    let shape = if shape.is_empty() { String::new() } else { format!("[{}]", shape.join(", ")) };
    format!("{}: {role}{}{shape}", t.symbol, t.dtype)
}

fn sign(relation: Relation) -> &'static str {
    match relation {
        Relation::Same => "same",
        Relation::Later => "later",
        Relation::Earlier => "earlier",
        Relation::Any => "any",
    }
}
