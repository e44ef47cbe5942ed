//! Docstrings of the library, for `taffeta doc` and for the page of the reference.

use crate::{files, format, names, schedule, source};

/// Documentation of an operator or a schedule, taken from its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Signature: `softmax(x, axis=-1)`.
    pub signature: String,
    /// Docstring without the indentation.
    pub text: String,
    /// File that defines it.
    pub file: &'static str,
}

impl Document {
    /// Returns the first sentence of the docstring.
    pub fn summary(&self) -> String {
        let first: Vec<&str> = self.text.lines().take_while(|l| !l.trim().is_empty()).map(str::trim).collect();
        let first = first.join(" ");
        match first.find(". ") {
            Some(end) => first[..end].to_string(),
            None => first.trim_end_matches('.').to_string(),
        }
    }

    /// Splits the docstring into text and example.
    pub fn parts(&self) -> (&str, &str) {
        match self.text.split_once("\nExample:\n") {
            Some((text, example)) => (text.trim_end(), example),
            None => (&self.text, ""),
        }
    }
}

/// Looks up the documentation of an operator or a schedule.
pub fn document(name: &str) -> Option<Document> {
    let (file, text) = source(name).filter(|_| !name.starts_with('_')).or_else(|| schedule(name))?;
    let start = text.find(&format!("\ndef {name}("))? + "\ndef ".len();
    let (signature, rest) = text[start..].split_once("\"\"\"")?;
    let (doc, _) = rest.split_once("\"\"\"")?;
    let signature = signature.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(Document { signature: signature.trim_end_matches(':').to_string(), text: dedented(doc), file })
}

/// Returns the docstring of a format's file.
pub fn about_format(name: &str) -> Option<&'static str> {
    let (_, text) = format(name)?;
    text.strip_prefix("\"\"\"")?.split_once("\"\"\"").map(|(doc, _)| doc.trim_end())
}

/// Returns the files of operators with their titles and their operators, in the order of the text.
pub fn families() -> Vec<(String, Vec<&'static str>)> {
    let family = |(_, text): (&'static str, &'static str)| {
        let title = text.trim_start_matches("\"\"\"").split("\"\"\"").next().unwrap_or_default();
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut of: Vec<(usize, &'static str)> =
            names().filter_map(|name| text.find(&format!("\ndef {name}(")).map(|at| (at, name))).collect();
        of.sort_unstable();
        (title, of.into_iter().map(|(_, name)| name).collect::<Vec<_>>())
    };
    files().map(family).filter(|(_, names)| !names.is_empty()).collect()
}

/// Removes the indentation of a docstring's lines after the first.
fn dedented(doc: &str) -> String {
    let indent = |l: &str| l.len() - l.trim_start().len();
    let depth = doc.lines().skip(1).filter(|l| !l.trim().is_empty()).map(indent).min().unwrap_or(0);
    let lines = doc.lines().enumerate().map(|(k, l)| if k == 0 { l } else { l.get(depth..).unwrap_or_default() });
    lines.map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule_names;

    #[test]
    fn every_operator_and_schedule_is_documented() {
        for name in names().chain(schedule_names()) {
            let d = document(name).unwrap_or_else(|| panic!("`{name}` has no docstring"));
            assert!(d.signature.starts_with(&format!("{name}(")) && d.signature.ends_with(')'), "{d:?}");
            assert!(!d.summary().is_empty() && !d.parts().1.is_empty(), "{d:?}");
        }
        let mut all: Vec<&str> = families().into_iter().flat_map(|(_, names)| names).collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(names()), "an operator is in no family, or in two");
        assert_eq!(document("_axes"), None);
        assert_eq!(document("softmax").map(|d| d.signature), Some("softmax(x, axis=-1)".to_string()));
    }
}
