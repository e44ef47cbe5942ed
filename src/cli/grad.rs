//! `taffeta grad`: the gradient of a program, as a program.

use super::args::EntryArgs;
use super::output::{Failure, print};
use super::session;
use std::fmt::Write as _;
use taffeta::{Explanation, FileId, Program, SourceMap, Span};

/// Print the gradient of a program
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub of: EntryArgs,
    /// Print a table of the tape instead of the program: sizes, decisions and reasons
    #[arg(long)]
    explain: bool,
}

const EXAMPLES: &str = "\
The printed program computes the results, then the gradients: `x.grad` for every requested parameter x, given a seed \
`y.grad` for every result y (and for the final value of every `inout` parameter, whose gradient replaces the seed). \
`t.tape` holds values of t for the backward pass, and `i~b` is the backward copy of loop i.

Examples:
  taffeta grad f.ft loss --wrt w,b
  taffeta grad f.ft loss --wrt w --tape none
  taffeta grad f.ft loss --wrt w --explain --size n=1000            kept values, and reasons
  taffeta grad f.ft loss --wrt w --memory 512MB --in steps=100000  within a budget
  taffeta run f.ft loss --grad w --in w=rand --in x=rand --size n=100   run it: seeds are ones";

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let program = Program::load(&args.of.file)?;
    let entry = program.entry(args.of.entry.as_deref())?;
    let options = session::options(&args.of)?.gradient(args.of.gradient_in_any_case());
    let options = program.with_inputs(&entry, &options, &args.of.inputs, &args.of.sizes)?;
    let (func, explanation) = program.explained(&entry, &options)?;
    if args.explain {
        let file = program.entries().iter().find(|e| e.name == entry).map_or(Span::NONE, |e| e.span).file;
        return print(&table(&entry, &explanation, program.sources(), file));
    }
    if let Some(excess) = &explanation.excess {
        eprintln!("note: {}\n  help: {}", excess.message, excess.help);
    }
    print(&taffeta::schedule::show::program(&func))
}

/// Renders the tape as a table. Lines refer to the file of the entry unless another is named (`<libop>/softmax.ft:31`).
fn table(entry: &str, of: &Explanation, sources: &SourceMap, file: FileId) -> String {
    let mut out = String::new();
    if of.rows.is_empty() {
        let _ = writeln!(out, "{entry}: the backward pass needs no value of the forward pass");
    } else {
        let _ = writeln!(out, "{entry}: values of the forward pass that the backward pass needs\n");
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::NOTHING);
        let right = |t: &str| comfy_table::Cell::new(t).set_alignment(comfy_table::CellAlignment::Right);
        let mut head: Vec<comfy_table::Cell> = ["tensor", "line"].map(comfy_table::Cell::new).into();
        head.extend(["versions", "bytes"].map(right));
        head.extend(["decision", "why"].map(comfy_table::Cell::new));
        table.add_row(head);
        for r in &of.rows {
            let line = match sources.line_col(r.span) {
                Some(at) if r.span.file == file => at.line.to_string(),
                Some(_) => sources.locate(r.span),
                None => String::new(),
            };
            let bytes = match r.amount {
                Some(_) if r.bytes.parse::<u64>().is_ok() => r.bytes.clone(),
                Some(n) => format!("{} = {n}", r.bytes),
                None => r.bytes.clone(),
            };
            let mut row = vec![comfy_table::Cell::new(&r.tensor), right(&line), right(&r.versions), right(&bytes)];
            row.extend([r.decision, &r.why].map(comfy_table::Cell::new));
            table.add_row(row);
        }
        table.to_string().lines().for_each(|l| out += &format!("{}\n", l.trim_end()));
    }
    for note in &of.notes {
        let _ = writeln!(out, "\n{note}");
    }
    let _ = match &of.peak {
        Ok(bytes) => writeln!(out, "\nlocal tensors take at most {} ({bytes} bytes)", taffeta::amount(*bytes)),
        Err(missing) => {
            writeln!(out, "\nthe memory of local tensors depends on {}: give sizes with --size", missing.join(", "))
        }
    };
    out
}
