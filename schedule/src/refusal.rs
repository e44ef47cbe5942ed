//! Why a step is refused: what stands against it, where, and what would work.

use crate::show;
use taffeta_analysis::query::depend::Dependence;
use taffeta_ast::{Diagnostic, Func, Span};

/// A step that cannot be taken, for a [`Reason`]. The program is what it was before.
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

/// What stands against a step.
#[derive(Clone, Debug)]
pub struct Reason {
    /// A stable, documented code.
    pub code: &'static str,
    /// The number of the condition in the primitive's documentation that does not hold; 0 where the call itself is
    /// wrong.
    pub condition: u32,
    /// Whether the call means nothing whatever the program is: an unknown method, an argument that is missing or of the
    /// wrong kind, a name that stands for several things.
    pub misuse: bool,
    /// What was found and what was expected, in one sentence.
    pub message: String,
    /// Where, with a word on why it is shown.
    pub labels: Vec<(Span, String)>,
    /// The two statement instances that would be reordered.
    pub dependence: Option<Dependence>,
    /// What to write instead.
    pub help: Option<String>,
    /// Further facts.
    pub notes: Vec<String>,
}

impl Refusal {
    /// The condition of every step: loops that run in any order since an earlier step may still do so.
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

    /// A step whose result breaks a rule of the tree: a mistake in the primitive.
    pub(crate) fn internal(d: Diagnostic) -> Refusal {
        let mut r = Refusal::new(d.code, 0, d.message);
        (r.notes, r.help) = (d.notes, d.help);
        r
    }

    /// A call that means nothing: wrong arguments.
    pub fn usage(message: impl Into<String>) -> Refusal {
        Refusal::value(message).misused()
    }

    /// An argument of the right kind with a value that cannot be: a negative shift, a dimension that is not there.
    pub fn value(message: impl Into<String>) -> Refusal {
        Refusal::new("schedule::argument", 0, message.into())
    }

    /// The same as a call that means nothing whatever the program is.
    #[must_use]
    pub fn misused(mut self) -> Refusal {
        self.misuse = true;
        self
    }

    /// A selector or handle that points at nothing, or at the wrong kind of thing.
    pub fn target(message: impl Into<String>) -> Refusal {
        Refusal::new("schedule::target", 0, message.into())
    }

    /// A condition of the primitive that does not hold.
    pub fn illegal(condition: u32, message: impl Into<String>) -> Refusal {
        Refusal::new("schedule::illegal", condition, message.into())
    }

    /// A dependence that the step would not keep.
    pub fn dependence(condition: u32, message: impl Into<String>, d: Dependence) -> Refusal {
        let mut r = Refusal::new("schedule::dependence", condition, message.into());
        r.labels = show::labels(&d);
        r.dependence = Some(d);
        r
    }

    /// The refusal with what its dependence is like: which loop carries it, and the element. `func` is the program
    /// whose loops are named.
    #[must_use]
    pub(crate) fn explained(mut self, func: &Func) -> Refusal {
        if let Some(d) = &self.dependence {
            let notes = show::notes(func, d);
            self.notes.splice(0..0, notes);
        }
        self
    }

    /// Something that is not there yet.
    pub fn unsupported(condition: u32, message: impl Into<String>) -> Refusal {
        Refusal::new("schedule::unsupported", condition, message.into())
    }

    /// Adds a place.
    #[must_use]
    pub fn at(self, span: Span) -> Refusal {
        self.label(span, "")
    }

    /// Adds a place with a word on why it is shown.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Refusal {
        if !span.is_none() {
            self.labels.push((span, text.into()));
        }
        self
    }

    /// Says what to write instead.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Refusal {
        self.help = Some(help.into());
        self
    }

    /// Adds a further fact.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Refusal {
        self.notes.push(note.into());
        self
    }

    /// As a diagnostic, for a step that was asked for at `call`. `primitive` is the step's name.
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
