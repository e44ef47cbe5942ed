//! Output of the command line: results on standard output, diagnostics on standard error, instructions after a panic.

use serde_json::{Map, Value as Json, json};
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use taffeta::ast::Diagnostic;
use taffeta::render::{self, Style};
use taffeta::{Error, Report};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, format};
use tracing_subscriber::registry::LookupSpan;

/// Exit status for an internal error (`EX_SOFTWARE`).
pub const INTERNAL_ERROR: u8 = 70;

/// Failure of a command.
#[derive(Debug)]
pub enum Failure {
    /// Diagnostics about the program or its data: status 1.
    Report(Report),
    /// Diagnostics with partial results: additional fields of the `--json` document.
    With(Report, Map<String, Json>),
}

impl Failure {
    fn report(&self) -> &Report {
        match self {
            Failure::Report(report) | Failure::With(report, _) => report,
        }
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        Failure::Report(e.report().clone())
    }
}

impl From<Diagnostic> for Failure {
    fn from(d: Diagnostic) -> Failure {
        Failure::from(vec![d])
    }
}

impl From<Vec<Diagnostic>> for Failure {
    fn from(diagnostics: Vec<Diagnostic>) -> Failure {
        Failure::Report(Report::without_sources(diagnostics))
    }
}

/// Printer of failures, as text or as JSON.
pub struct Printer {
    /// Whether JSON output is requested.
    pub json: bool,
}

impl Printer {
    /// Prints a failure and returns the exit status.
    pub fn failure(&self, failure: &Failure) -> ExitCode {
        let report = failure.report();
        if self.json {
            let mut document = match failure {
                Failure::Report(_) => Map::new(),
                Failure::With(_, found) => found.clone(),
            };
            document.insert("status".into(), json!("error"));
            document.insert("diagnostics".into(), render::json(&report.diagnostics, &report.sources));
            if let Err(unwritten) = print_json(&Json::Object(document)) {
                let unwritten = unwritten.report();
                error_text(&render::text(&unwritten.diagnostics, &unwritten.sources, style()));
            }
        }
        error_text(&render::text(&report.diagnostics, &report.sources, style()));
        if report.diagnostics.iter().any(|d| d.code.starts_with("internal::")) {
            error_text(REPORT);
            return ExitCode::from(INTERNAL_ERROR);
        }
        ExitCode::FAILURE
    }
}

/// Prints to standard output. A closed pipe (`taffeta … | head`) is not an error; a full disk is one, since the user
/// would mistake a part of the output for all of it.
pub fn print(text: &str) -> Result<(), Failure> {
    // Written verbatim: `fmt` prints file contents, control characters included.
    let mut out = std::io::stdout();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Converts the outcome of writing to standard output; a closed pipe is not an error.
pub fn written(result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Diagnostic::new("output::write", format!("cannot write standard output: {e}")).into())
        }
        _ => Ok(()),
    }
}

/// Prints a JSON document on one line.
pub fn print_json(value: &Json) -> Result<(), Failure> {
    print(&format!("{value}\n"))
}

/// Prints to standard error.
pub fn error_text(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Returns whether FORCE_COLOR requests colours regardless of the terminal.
pub fn forced_color() -> bool {
    std::env::var_os("FORCE_COLOR").is_some_and(|v| !v.is_empty() && v != "0")
}

/// Returns the output style: colours on terminals unless NO_COLOR is set, or by FORCE_COLOR.
pub fn style() -> Style {
    let terminal = std::io::stderr().is_terminal();
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    Style {
        color: forced_color() || terminal && !no_color && !dumb,
        width: if terminal { terminal_width() } else { 100 },
    }
}

fn terminal_width() -> usize {
    std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(100)
}

const REPORT: &str = "\
This is a mistake in Taffeta, not in your program. To report it, keep the command line, the program, its inputs and the
output above, and give them to whoever gave you Taffeta. RUST_BACKTRACE=1 adds a backtrace.
";

/// Installs a panic hook that explains the panic and the information to keep, instead of a bare back-trace.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let version = env!("CARGO_PKG_VERSION");
        let mut text = format!("taffeta {version}: internal error: {info}\n");
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            text.push_str(&format!("{}\n", std::backtrace::Backtrace::force_capture()));
        }
        text.push_str(REPORT);
        error_text(&text);
    }));
}

/// Installs the log: warnings of the library on standard error. `TAFFETA_LOG=debug` shows the compiler's actions and
/// the duration of each step.
pub fn install_log() {
    let plain = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(style().color);
    match std::env::var("TAFFETA_LOG") {
        Ok(filter) => plain.with_env_filter(tracing_subscriber::EnvFilter::new(filter)).init(),
        Err(_) => plain.with_max_level(tracing::Level::WARN).event_format(Warning).init(),
    }
}

/// Event format `warning: …`, as in other compilers.
struct Warning;

impl<S, N> FormatEvent<S, N> for Warning
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: format::Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> std::fmt::Result {
        out.write_str("warning: ")?;
        context.format_fields(out.by_ref(), event)?;
        writeln!(out)
    }
}
