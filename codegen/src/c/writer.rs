//! Indented lines, and escaping of text in comments and string literals.

/// Generated lines, with the current indentation.
#[derive(Debug, Default)]
pub(super) struct Writer {
    lines: Vec<String>,
    depth: usize,
}

impl Writer {
    pub fn line(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref();
        self.lines.push(if text.is_empty() { String::new() } else { format!("{}{text}", "    ".repeat(self.depth)) });
    }

    /// Adds a line that contains its indentation.
    pub fn raw(&mut self, text: &str) {
        self.lines.push(text.to_string());
    }

    /// Increases the indentation of the following lines.
    pub fn indent(&mut self) {
        self.depth += 1;
    }

    /// Adds a preprocessor line, at the margin.
    pub fn pragma(&mut self, text: &str) {
        self.lines.push(format!("#pragma {text}"));
    }

    /// Adds a line that opens a block.
    pub fn open(&mut self, text: impl AsRef<str>) {
        self.line(text);
        self.depth += 1;
    }

    pub fn close(&mut self, text: &str) {
        self.depth -= 1;
        self.line(text);
    }

    /// Leaves one block and enters the next (`} else {`).
    pub fn reopen(&mut self, text: &str) {
        self.depth -= 1;
        self.open(text);
    }

    /// Adds a label, one step to the left of the following lines.
    pub fn label(&mut self, name: &str) {
        self.depth -= 1;
        self.line(format!("{name}:;"));
        self.depth += 1;
    }

    /// Returns the position of the next line.
    pub fn position(&self) -> usize {
        self.lines.len()
    }

    /// Inserts a line at `position`, with the current indentation.
    pub fn insert(&mut self, position: usize, text: &str) {
        self.lines.insert(position, format!("{}{text}", "    ".repeat(self.depth)));
    }

    /// Returns the lines from a position on.
    pub fn since(&self, position: usize) -> Vec<String> {
        self.lines[position..].to_vec()
    }

    /// Wraps the lines from a position on into the else branch of `cond`, with the lines `then` as its first branch.
    pub fn close_branch(&mut self, position: usize, cond: &str, then: Vec<String>) {
        let margin = "    ".repeat(self.depth);
        // Preprocessor lines stay at the margin.
        for line in self.lines[position..].iter_mut().filter(|l| !l.starts_with('#') && !l.is_empty()) {
            line.insert_str(0, "    ");
        }
        let then = then.into_iter();
        let (head, other) = (format!("{margin}{cond}"), format!("{margin}}} else {{"));
        self.lines.splice(position..position, [head].into_iter().chain(then).chain([other]));
        self.lines.push(format!("{margin}}}"));
    }

    /// Inserts text before a line's content.
    pub fn prefix(&mut self, position: usize, text: &str) {
        let line = &mut self.lines[position];
        let start = line.len() - line.trim_start().len();
        line.insert_str(start, text);
    }

    pub fn finish(self) -> String {
        let mut text = self.lines.join("\n");
        text.push('\n');
        text
    }
}

/// Returns `text` as a comment.
pub fn comment(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("/* {} */", clean.replace("*/", "* /").replace("/*", "/ *").trim())
}

/// Returns `text` as a string literal. Characters other than printable ASCII are octal escapes, which end after three
/// digits.
pub fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for b in text.bytes() {
        match b {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            // A question mark could start a trigraph.
            b'?' => out.push_str("\\?"),
            b' '..=b'~' => out.push(b as char),
            _ => out.push_str(&format!("\\{b:03o}")),
        }
    }
    out.push('"');
    out
}

/// Returns `text` as a piece of a format string, still to be quoted.
pub fn format_text(text: &str) -> String {
    text.replace('%', "%%")
}
