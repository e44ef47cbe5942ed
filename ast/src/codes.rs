//! The codes of all diagnostics, and what each means: what `taffeta explain CODE` prints, and a page of the book.
//!
//! The texts are the Markdown files in `codes/`, one for each group: a title, an introduction perhaps, then a section
//! for each code. A test (`tests/suite/codes.rs`) holds the table and the codes that the sources use to each other.

/// The groups, in the order of the book.
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

/// Codes that have to do with each other.
#[derive(Clone, Debug)]
pub struct Group {
    /// What they are about.
    pub title: &'static str,
    /// What holds for all of them, in Markdown; may be empty.
    pub introduction: &'static str,
    /// The codes, sorted.
    pub codes: Vec<Code>,
}

/// The code of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The area and the problem: `shape::mismatch`; one has no area.
    pub name: &'static str,
    /// What it means and what to do, in Markdown.
    pub text: &'static str,
}

/// All codes, by group.
pub fn groups() -> impl Iterator<Item = Group> {
    GROUPS.into_iter().map(group)
}

/// What a code means, if there is such a code.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_there_once_in_order_and_says_something() {
        let mut all = Vec::new();
        for group in groups() {
            assert!(!group.title.is_empty() && !group.codes.is_empty());
            assert!(group.codes.is_sorted_by_key(|c| c.name), "{} is not sorted", group.title);
            for c in &group.codes {
                let parts = c.name.split_once("::").is_some_and(|(a, b)| !a.is_empty() && !b.is_empty());
                assert!(parts || c.name == "unsupported", "{}", c.name);
                assert!(c.text.len() > 20 && c.text.ends_with(['.', '`', ')']), "{}: {}", c.name, c.text);
                all.push(c.name);
            }
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "a code is explained twice");
    }

    #[test]
    fn a_code_is_found_by_its_name() {
        assert!(explain("schedule::dependence").is_some_and(|c| c.text.contains("witness")));
        assert_eq!(explain("schedule::nothing"), None);
    }
}
