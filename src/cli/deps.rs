//! `taffeta deps`: which statement instances touch the same element, one of them writing it, and the loops that carry
//! that.

use super::args::EntryArgs;
use super::output::{Failure, print, print_json};
use super::session;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use taffeta::Program;
use taffeta::analysis::query::depend::{Ask, Dependence, Dependences, Relation};
use taffeta::analysis::query::reference::{Reference, Use};
use taffeta::ast::{Func, SourceMap, Span, Stmt, StmtId, StmtKind, Symbol, Tensor, print as show};
use taffeta::schedule::{selector, show as words};

/// Print the dependences of a program, and which loops carry them
#[derive(clap::Args)]
#[command(after_help = "\
Two instances of statements depend on each other if they touch one element and one of them writes it: RAW (a read after a
write), WAR (a write after a read), WAW (a write after a write). A loop that carries none may run its iterations in any
order. Reductions of one operator into one element commute, and are listed with their loops alone.

Examples:
  taffeta deps f.ft
  taffeta deps f.ft main --set w=3
  taffeta deps f.ft --json")]
pub struct Args {
    #[command(flatten)]
    pub of: EntryArgs,
    /// Machine-readable dependences and diagnostics on standard output
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
    let found = Found::new(&func, &options.sizes, program.sources());
    if args.json { print_json(&found.json()) } else { print(&found.text()) }
}

/// What the analysis says of a program.
struct Found<'a> {
    func: &'a Func,
    sources: &'a SourceMap,
    /// Dependences, with how far the sink is from the source in every loop around both.
    all: Vec<(Dependence, Vec<Option<i64>>)>,
    /// Reductions of one operator into one element.
    reductions: Vec<Dependence>,
    loops: Vec<Stmt>,
    /// What schedules call them.
    names: HashMap<StmtId, String>,
}

impl<'a> Found<'a> {
    fn new(func: &'a Func, known: &BTreeMap<String, i64>, sources: &'a SourceMap) -> Found<'a> {
        let analysis = Dependences::new(func);
        let all = analysis.all(&Ask::default());
        // Sizes that are compiled in stand nowhere in the program any more.
        let seen = |mut d: Dependence| {
            let distances = analysis.distances(&d);
            d.witness.sizes.retain(|(size, _)| !known.contains_key(size.name()));
            (d, distances)
        };
        let all = all.into_iter().map(seen).collect();
        let reduces = |r: &Reference| matches!(r.kind, Use::Reduce(_));
        let ask = Ask { source: &reduces, sink: &reduces, commute: false, ..Ask::default() };
        let reductions = analysis.all(&ask).into_iter().filter(|d| d.source.kind == d.sink.kind).collect();
        let mut loops = Vec::new();
        func.body.walk(&mut |s| {
            if matches!(s.kind(), StmtKind::For { .. } | StmtKind::While { .. }) {
                loops.push(s.clone());
            }
        });
        Found { func, sources, all, reductions, loops, names: selector::names(func).into_iter().collect() }
    }

    /// The tensors that carried dependences of a loop are about, each once.
    fn carried<'d>(list: impl Iterator<Item = &'d Dependence>, by: &Stmt) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for d in list.filter(|d| d.carrier().is_some_and(|c| c.id() == by.id())) {
            let name = d.source.tensor.name();
            if out.iter().all(|n| n != name) {
                out.push(name.to_string());
            }
        }
        out
    }

    /// What a loop carries: dependences, and reductions.
    fn loop_carries(&self, s: &Stmt) -> (Vec<String>, Vec<String>) {
        (Self::carried(self.all.iter().map(|(d, _)| d), s), Self::carried(self.reductions.iter(), s))
    }

    /// The line of a statement; of another file, with its name.
    fn line(&self, s: &Stmt) -> String {
        let span = s.origin().span();
        match self.sources.line_col(span) {
            Some(at) if span.file == self.main_file() => format!("line {}", at.line),
            Some(_) => self.sources.locate(span),
            None => "generated".to_string(),
        }
    }

    /// The file that most of the program stands in: that of its first statement with a place.
    fn main_file(&self) -> taffeta::ast::span::FileId {
        let mut first = Span::NONE;
        self.func.body.walk(&mut |s| {
            if first.is_none() {
                first = s.origin().chain().first().map_or(s.origin().span(), |c| c.span);
            }
        });
        first.file
    }

    // ---- for people

    fn text(&self) -> String {
        let mut out = String::new();
        let count = match self.all.len() {
            0 => "no dependences".to_string(),
            1 => "1 dependence".to_string(),
            n => format!("{n} dependences"),
        };
        let _ = writeln!(out, "{}: {count}", self.func.name);
        let mut tensors: Vec<&Tensor> = Vec::new();
        for (d, _) in &self.all {
            if tensors.iter().all(|t| t.symbol != d.source.tensor) {
                tensors.push(&d.source.declared);
            }
        }
        for t in tensors {
            let _ = write!(out, "\n{}\n", declaration(t));
            for (d, distances) in self.all.iter().filter(|(d, _)| d.source.tensor == t.symbol) {
                out.push_str(&self.dependence(d, distances));
            }
        }
        if !self.loops.is_empty() {
            out.push_str("\nloops\n");
        }
        for s in &self.loops {
            let (carries, reduces) = self.loop_carries(s);
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
            let _ = writeln!(out, "  {}, `{}` {what}", self.line(s), self.name(s));
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

    /// What schedules call a loop.
    fn name(&self, s: &Stmt) -> &str {
        self.names.get(&s.id()).map_or("while", String::as_str)
    }

    /// How far a sink is from its source in a loop: `i: +1`, or only which way.
    fn far(&self, s: &Stmt, relation: Relation, distance: Option<i64>) -> String {
        match distance {
            Some(0) => format!("{}: 0", self.name(s)),
            Some(k) => format!("{}: {k:+}", self.name(s)),
            None => format!("{}: {}", self.name(s), sign(relation)),
        }
    }

    // ---- for machines

    fn json(&self) -> Json {
        let loops: Vec<Json> = self
            .loops
            .iter()
            .map(|s| {
                let (carries, reduces) = self.loop_carries(s);
                let free = carries.is_empty() && reduces.is_empty();
                json!({ "loop": self.name(s), "line": self.line_number(s), "carries": carries, "reduces": reduces, "parallel": free })
            })
            .collect();
        let all: Vec<Json> = self.all.iter().map(|(d, k)| self.json_of(d, k)).collect();
        json!({ "status": "ok", "entry": self.func.name, "dependences": all, "loops": loops })
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
