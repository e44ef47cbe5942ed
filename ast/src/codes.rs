//! Codes of all diagnostics with their explanations: the text that `taffeta explain CODE` prints, and a page of the
//! book.
//!
//! The texts are the Markdown files in `codes/`, one per group: a title, an optional introduction, then one section per
//! code. A test (`tests/suite/codes.rs`) checks that this table and the codes used in the sources agree.

/// Texts of the groups, in the order of the book.
const GROUPS: [&str; 11] = [
    include_str!("codes/syntax.md"),
    include_str!("codes/python.md"),
    include_str!("codes/names.md"),
    include_str!("codes/types.md"),
    include_str!("codes/static.md"),
    include_str!("codes/storage.md"),
    include_str!("codes/schedule.md"),
    include_str!("codes/gradient.md"),
    include_str!("codes/data.md"),
    include_str!("codes/run.md"),
    include_str!("codes/compile.md"),
];

/// Group of related codes.
#[derive(Clone, Debug)]
pub struct Group {
    /// Topic of the codes.
    pub title: &'static str,
    /// Introduction that applies to all codes of the group, in Markdown; may be empty.
    pub introduction: &'static str,
    /// Codes, sorted.
    pub codes: Vec<Code>,
}

/// Code of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Area and problem, as in `shape::mismatch`; one code has no area.
    pub name: &'static str,
    /// Explanation and remedy, in Markdown.
    pub text: &'static str,
}

/// Returns all codes, by group.
pub fn groups() -> impl Iterator<Item = Group> {
    GROUPS.into_iter().map(group)
}

/// Looks up the explanation of a code; `None` if the code does not exist.
pub fn explain(name: &str) -> Option<Code> {
    groups().flat_map(|g| g.codes).find(|c| c.name == name)
}

fn group(text: &'static str) -> Group {
    let mut sections = text.split("\n## ");
    let head = sections.next().unwrap_or_default();
    let (title, introduction) = head.split_once('\n').unwrap_or((head, ""));
    let code = |section: &'static str| {
        let (name, text) = section.split_once('\n').unwrap_or((section, ""));
        Code { name, text: text.trim() }
    };
    Group {
        title: title.trim_start_matches("# "),
        introduction: introduction.trim(),
        codes: sections.map(code).collect(),
    }
}
