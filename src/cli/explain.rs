//! `taffeta explain`: meaning of a diagnostic's code.

use super::output::{Failure, print};
use taffeta::ast::codes::{self, Code};
use taffeta::ast::{Diagnostic, spelling};

/// Explain the code of a diagnostic
#[derive(clap::Args)]
#[command(after_help = "Examples:
  taffeta explain schedule::dependence     what it means, and what to do
  taffeta explain                          all codes, by subject")]
pub struct Args {
    /// The code, as shown in a diagnostic; lists all codes by default
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.code {
        None => print(&list()),
        // Users copy codes with brackets and colons.
        Some(text) => {
            let name = text.trim_matches(|c: char| !c.is_ascii_alphanumeric());
            let code = codes::explain(name).ok_or_else(|| unknown(name))?;
            print(&format!("{}\n\n{}\n", code.name, code.text))
        }
    }
}

fn list() -> String {
    let mut out = String::new();
    for group in codes::groups() {
        out.push_str(&format!("{}\n", group.title));
        for Code { name, text } in group.codes {
            out.push_str(&format!("  {name:<28}{}\n", summary(text)));
        }
        out.push('\n');
    }
    out.push_str("`taffeta explain CODE` says more.\n");
    out
}

/// Returns the first sentence on one line, cut to the available width.
fn summary(text: &str) -> String {
    const ROOM: usize = 74;
    let paragraph = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let end = paragraph.match_indices(['.', ':']).map(|(at, _)| at).find(|at| {
        // Dots inside inline code do not end a sentence.
        let outside = paragraph[..*at].matches('`').count().is_multiple_of(2);
        outside && (paragraph[at + 1..].is_empty() || paragraph[at + 1..].starts_with(' '))
    });
    let sentence = &paragraph[..end.unwrap_or(paragraph.len())];
    if sentence.chars().count() <= ROOM {
        return sentence.to_string();
    }
    let cut: String = sentence.chars().take(ROOM - 1).collect();
    let cut = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    format!("{cut} …")
}

fn unknown(name: &str) -> Diagnostic {
    let all: Vec<&str> = codes::groups().flat_map(|g| g.codes).map(|c| c.name).collect();
    let d = Diagnostic::new("command::code", format!("no diagnostic has the code `{name}`"));
    // A single word may be the area of a code, or its problem.
    let mut related = all.iter().filter(|c| c.split("::").any(|part| part == name)).peekable();
    if related.peek().is_some() {
        return d.help(format!("related codes: {}", related.map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", ")));
    }
    match spelling::nearest(name, all.iter().copied()) {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None => d.help("`taffeta explain` lists all codes"),
    }
}
