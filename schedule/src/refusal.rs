//! Refusals of steps: the reason, its source locations, and a legal alternative.

use crate::show;
use taffeta_analysis::query::depend::Dependence;
use taffeta_ast::{Diagnostic, Func, Span};

/// Refusal of a step, for a [`Reason`]. The program is unchanged.
#[derive(Clone, Debug)]
pub struct Refusal(Box<Reason>);

impl std::ops::Deref for Refusal {
    type Target = Reason;

    fn deref(&self) -> &Reason {
        &self.0
    }
}

impl std::ops::DerefMut for Refusal {
    fn deref_mut(&mut self) -> &mut Reason {
        &mut self.0
    }
}

/// Reason that a step is refused.
#[derive(Clone, Debug)]
pub struct Reason {
    /// Stable, documented code.
    pub code: &'static str,
    /// Number of the violated condition in the primitive's documentation; 0 if the call itself is wrong.
    pub condition: u32,
    /// Whether the call is meaningless for any program: an unknown method, a missing argument or one of the wrong kind,
    /// an ambiguous name.
    pub misuse: bool,
    /// Obstacle, in one sentence.
    pub message: String,
    /// Source locations, each with a short label.
    pub labels: Vec<(Span, String)>,
    /// The two statement instances that would be reordered.
    pub dependence: Option<Dependence>,
    /// Suggested alternative.
    pub help: Option<String>,
    /// Further facts.
    pub notes: Vec<String>,
}

impl Refusal {
    /// Number of the condition that every step has: loops marked by earlier steps to run in any order may still do so.
    pub const ORDER_FREE: u32 = 100;

    fn new(code: &'static str, condition: u32, message: String) -> Refusal {
        let (labels, notes) = (Vec::new(), Vec::new());
        Refusal(Box::new(Reason {
            code,
            condition,
            misuse: false,
            message,
            labels,
            dependence: None,
            help: None,
            notes,
        }))
    }

    /// Converts a violated invariant of the tree, which is a bug in the primitive.
    pub(crate) fn internal(d: Diagnostic) -> Refusal {
        let mut r = Refusal::new(d.code, 0, d.message);
        (r.notes, r.help) = (d.notes, d.help);
        r
    }

    /// Refuses a meaningless call: wrong arguments.
    pub fn usage(message: impl Into<String>) -> Refusal {
        Refusal::value(message).misused()
    }

    /// Refuses an argument of the right kind with an impossible value: a negative shift, a dimension out of range.
    pub fn value(message: impl Into<String>) -> Refusal {
        Refusal::new("schedule::argument", 0, message.into())
    }

    /// Marks the refusal as misuse: the call is meaningless for any program.
    #[must_use]
    pub fn misused(mut self) -> Refusal {
        self.misuse = true;
        self
    }

    /// Refuses a selector or handle that resolves to nothing, or to the wrong kind of entity.
    pub fn target(message: impl Into<String>) -> Refusal {
        Refusal::new("schedule::target", 0, message.into())
    }

    /// Refuses a step that violates a condition of the primitive.
    pub fn illegal(condition: u32, message: impl Into<String>) -> Refusal {
        Refusal::new("schedule::illegal", condition, message.into())
    }

    /// Refuses a step that would reverse a dependence.
    pub fn dependence(condition: u32, message: impl Into<String>, d: Dependence) -> Refusal {
        let mut r = Refusal::new("schedule::dependence", condition, message.into());
        r.labels = show::labels(&d);
        r.dependence = Some(d);
        r
    }

    /// Adds notes on the dependence: the loop that carries it, and the element. `func` is the program whose loops are
    /// named.
    #[must_use]
    pub(crate) fn explained(mut self, func: &Func) -> Refusal {
        if let Some(d) = &self.dependence {
            let notes = show::notes(func, d);
            self.notes.splice(0..0, notes);
        }
        self
    }

    /// Refuses a case that is not implemented.
    pub fn unsupported(condition: u32, message: impl Into<String>) -> Refusal {
        Refusal::new("schedule::unsupported", condition, message.into())
    }

    /// Adds a source location.
    #[must_use]
    pub fn at(self, span: Span) -> Refusal {
        self.label(span, "")
    }

    /// Adds a source location with a label.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Refusal {
        if !span.is_none() {
            self.labels.push((span, text.into()));
        }
        self
    }

    /// Sets the suggested alternative.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Refusal {
        self.help = Some(help.into());
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Refusal {
        self.notes.push(note.into());
        self
    }

    /// Converts the refusal to a diagnostic for the call at `call`. `primitive` is the name of the step.
    pub fn diagnostic(&self, primitive: &str, call: Span) -> Diagnostic {
        let message = match self.condition {
            0 => format!("`{primitive}`: {}", self.message),
            _ => format!("`{primitive}` is refused: {}", self.message),
        };
        let mut d = Diagnostic::new(self.code, message);
        let own =
            self.labels.first().is_some_and(|(s, _)| s.file == call.file && s.start >= call.start && s.end <= call.end);
        if !own {
            d = d.at(call);
        }
        for (span, text) in &self.labels {
            d = d.label(*span, text.clone());
        }
        for n in &self.notes {
            d = d.note(n.clone());
        }
        if let Some(h) = &self.help {
            d = d.help(h.clone());
        }
        d
    }
}
