//! The usual layout of programs, as `weft fmt` writes it.
//!
//! *Does*: four blanks for each block, one blank around operators and after commas, two before a comment, at most two empty
//! lines in a row and exactly two between functions at the top level. *Leaves alone*: how lines are broken (inside brackets,
//! lines keep their breaks and their indentation relative to the statement), comments and strings.
//!
//! It works on tokens, which are the same before and after, so what a program means cannot change: the result is checked
//! for exactly that, and a file that does not parse is refused.

use weft_ast::{Diagnostic, FileId, Span};
use weft_frontend::parse;
use weft_frontend::parse::token::{Token, TokenKind, tokens};

/// The program in the usual layout.
///
/// # Errors
///
/// What is wrong with its syntax.
pub fn format(text: &str, file: FileId) -> Result<String, Vec<Diagnostic>> {
    let (_, problems) = parse::parse(text, file);
    if !problems.is_empty() {
        return Err(problems);
    }
    let bom = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let all = tokens(&text[bom..], bom);
    let mut writer =
        Writer { text, out: String::with_capacity(text.len()), indents: vec![0], depth: 0, blank_lines: 0, shift: 0 };
    for line in lines(&all) {
        writer.line(line);
    }
    if words(&writer.out, &tokens(&writer.out, 0)) != words(text, &all) {
        let d = Diagnostic::new("internal::format", "formatting would change the program").at(Span::new(file, 0, 0));
        return Err(vec![d]);
    }
    Ok(writer.out)
}

/// The tokens that mean something, comments included, as text.
fn words<'t>(text: &'t str, tokens: &[Token]) -> Vec<&'t str> {
    let kept = tokens.iter().filter(|t| !matches!(t.kind, TokenKind::Newline | TokenKind::Continuation));
    kept.map(|t| t.text(text).trim_end()).collect()
}

/// Physical lines; a string of several lines belongs to the line on which it starts.
fn lines(tokens: &[Token]) -> impl Iterator<Item = &[Token]> {
    tokens.split_inclusive(|t| matches!(t.kind, TokenKind::Newline | TokenKind::Continuation))
}

struct Writer<'t> {
    text: &'t str,
    out: String,
    /// The columns of the blocks around, in the old layout.
    indents: Vec<usize>,
    /// Open brackets, and whether the line before went on with a backslash.
    depth: usize,
    blank_lines: usize,
    /// By how much the statement's first line moved to the right.
    shift: isize,
}

impl Writer<'_> {
    fn line(&mut self, line: &[Token]) {
        let (body, end) = match line.split_last() {
            Some((last, body)) if matches!(last.kind, TokenKind::Newline | TokenKind::Continuation) => {
                (body, Some(last.kind))
            }
            _ => (line, None),
        };
        let Some(first) = body.first() else {
            if self.depth == 0 {
                self.blank_lines += 1;
            } else {
                self.out.push('\n');
            }
            return;
        };
        let continued = self.depth > 0;
        let column = self.column(first);
        let indent = if continued { (column as isize + self.shift).max(0) as usize } else { self.block(first, column) };
        if !continued {
            self.separate(body, indent);
        }
        self.out.push_str(&" ".repeat(indent));
        self.tokens(body);
        if end == Some(TokenKind::Continuation) {
            self.out.push_str(" \\");
            // The next line belongs to this statement, whatever its brackets say.
            self.depth |= CONTINUED;
        } else {
            self.depth &= !CONTINUED;
        }
        self.out.push('\n');
    }

    /// The column of a token in the old layout; a tab counts to the next multiple of eight, as Python counts.
    fn column(&self, token: &Token) -> usize {
        let start = self.text[..token.start].rfind(['\n', '\r']).map_or(0, |i| i + 1);
        self.text[start..token.start].chars().fold(0, |c, ch| if ch == '\t' { (c / 8 + 1) * 8 } else { c + 1 })
    }

    /// The new indentation of a statement, from the blocks that are open.
    fn block(&mut self, first: &Token, column: usize) -> usize {
        if first.kind != TokenKind::Comment {
            while self.indents.len() > 1 && self.indents.last().is_some_and(|c| *c > column) {
                self.indents.pop();
            }
            if self.indents.last().is_some_and(|c| *c < column) {
                self.indents.push(column);
            }
        }
        // A comment belongs to the block whose column it stands at or before.
        let level = self.indents.iter().filter(|c| **c <= column).count().saturating_sub(1);
        let opens = self.out.trim_end().ends_with(':') && self.indents.last().is_some_and(|c| *c < column);
        let indent = 4 * (level + usize::from(first.kind == TokenKind::Comment && opens));
        self.shift = indent as isize - column as isize;
        indent
    }

    /// Empty lines before a statement.
    fn separate(&mut self, body: &[Token], indent: usize) {
        let wanted = std::mem::take(&mut self.blank_lines);
        if self.out.is_empty() {
            return;
        }
        let starts = |word: &str| body.first().is_some_and(|t| t.text(self.text) == word);
        let decorated = self.out.lines().next_back().is_some_and(|l| l.starts_with('@') || l.starts_with('#'));
        let top = indent == 0 && (starts("def") || starts("@"));
        let after_body = indent == 0 && self.out.lines().next_back().is_some_and(|l| l.starts_with(' '));
        let lines = match () {
            () if top && !decorated => 2,
            () if after_body => 2,
            () => wanted.min(if indent == 0 { 2 } else { 1 }),
        };
        self.out.push_str(&"\n".repeat(lines));
    }

    fn tokens(&mut self, body: &[Token]) {
        let mut stack: Vec<char> = Vec::new();
        for (k, token) in body.iter().enumerate() {
            let text = token.text(self.text);
            if k > 0 && self.gap(&body[..k], token, &stack) {
                self.out.push_str(if token.kind == TokenKind::Comment { "  " } else { " " });
            }
            match text {
                "(" | "[" | "{" => {
                    self.depth += 1;
                    stack.push(text.chars().next().unwrap_or('('));
                }
                ")" | "]" | "}" => {
                    // Also brackets that were opened on lines before.
                    self.depth = (self.depth & CONTINUED) | (self.depth & !CONTINUED).saturating_sub(1);
                    stack.pop();
                }
                _ => {}
            }
            // A comment's own trailing blanks are nobody's.
            self.out.push_str(if token.kind == TokenKind::Comment { text.trim_end() } else { text });
        }
    }

    /// Whether a blank stands before `token`.
    fn gap(&self, before: &[Token], token: &Token, stack: &[char]) -> bool {
        let text = token.text(self.text);
        let Some(last) = before.last() else { return false };
        let previous = last.text(self.text);
        if token.kind == TokenKind::Comment {
            return true;
        }
        if matches!(previous, "(" | "[" | "{" | "." | "~") || matches!(text, ")" | "]" | "}" | "," | ";" | ".") {
            return text == "." && previous == "from" || previous == "." && text == "import";
        }
        if previous == "," {
            return true;
        }
        let in_brackets = self.depth & !CONTINUED > 0;
        if text == ":" {
            return false;
        }
        if previous == ":" {
            // `x[a:b]` is tight; `x: f32`, `{a: b}` and `lambda i: i` are not.
            let slice = stack.last() == Some(&'[') && !before.iter().any(|t| t.text(self.text) == "lambda");
            return !slice;
        }
        let keyword_argument = in_brackets && (text == "=" || previous == "=");
        if keyword_argument {
            // `f(k=1)` is tight, `def f(k: i32 = 1)` is not.
            return self.annotated(before);
        }
        if previous == "@" && before.len() == 1 {
            return false;
        }
        if is_operator(last, previous) && self.unary(before) {
            return false;
        }
        if matches!(text, "(" | "[") {
            return last.kind == TokenKind::Op && !matches!(previous, ")" | "]" | "}") || is_keyword(previous);
        }
        if matches!(previous, "*" | "**") && before.len() >= 2 && self.opens(&before[..before.len() - 1]) {
            return false;
        }
        true
    }

    /// Whether the parameter or argument that ends here has an annotation.
    fn annotated(&self, before: &[Token]) -> bool {
        let mut depth = 0usize;
        for t in before.iter().rev() {
            match t.text(self.text) {
                ")" | "]" | "}" => depth += 1,
                "(" | "[" | "{" if depth == 0 => return false,
                "(" | "[" | "{" => depth -= 1,
                "," if depth == 0 => return false,
                ":" if depth == 0 => return true,
                _ => {}
            }
        }
        false
    }

    /// Whether the last of these is an operator with one operand.
    fn unary(&self, before: &[Token]) -> bool {
        let Some((last, rest)) = before.split_last() else { return false };
        matches!(last.text(self.text), "-" | "+" | "~") && (rest.is_empty() || self.opens(rest))
    }

    /// Whether an operand is expected after these tokens.
    fn opens(&self, before: &[Token]) -> bool {
        before.last().is_some_and(|t| {
            let text = t.text(self.text);
            is_operator(t, text) || is_keyword(text)
        })
    }
}

/// Set in [`Writer::depth`] while a backslash goes on with a statement.
const CONTINUED: usize = 1 << (usize::BITS - 1);

fn is_operator(token: &Token, text: &str) -> bool {
    token.kind == TokenKind::Op && !matches!(text, ")" | "]" | "}" | "...")
}

fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "and"
            | "or"
            | "not"
            | "if"
            | "else"
            | "elif"
            | "in"
            | "is"
            | "return"
            | "for"
            | "assert"
            | "lambda"
            | "import"
            | "from"
            | "as"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: Expect) {
        let once = format(text, FileId(0)).expect("it parses");
        expected.assert_eq(&once);
        assert_eq!(format(&once, FileId(0)).as_deref(), Ok(once.as_str()), "formatting twice");
    }

    #[test]
    fn blanks_and_lines() {
        check(
            "\"\"\"Doc.\"\"\"\nN=3\ndef f( x:f32[n,m] ,k : static=2)->f32[n]:\n  # a comment\n  y=zeros( (n , ) ,f32 )#tail\n\n\n  for i in range(0,n,2):\n     y[i]+=x[i,-1]*- 2.0**-k\n     if  not (i<3)and i!=-1 :\n         y[ 1 : -1 ]=x[i , ... , None]\n  return y\n@schedule( f )\ndef s(t) :\n  t.split( \"i\",factor=4 )\n  t.permute([a],lambda i,j:(i+j,j))\n",
            expect![[r#"
                """Doc."""
                N = 3


                def f(x: f32[n, m], k: static = 2) -> f32[n]:
                    # a comment
                    y = zeros((n,), f32)  #tail

                    for i in range(0, n, 2):
                        y[i] += x[i, -1] * -2.0 ** -k
                        if not (i < 3) and i != -1:
                            y[1:-1] = x[i, ..., None]
                    return y


                @schedule(f)
                def s(t):
                    t.split("i", factor=4)
                    t.permute([a], lambda i, j: (i + j, j))
            "#]],
        );
    }

    #[test]
    fn broken_lines_keep_their_breaks() {
        check(
            "def f(x: f32[n],\n      y: f32[n]):\n   z = (x +\n        y)\n   w = x + \\\n       y\n   return z\n",
            expect![[r#"
                def f(x: f32[n],
                      y: f32[n]):
                    z = (x +
                         y)
                    w = x + \
                        y
                    return z
            "#]],
        );
    }

    #[test]
    fn what_does_not_parse_is_refused() {
        assert!(format("def f(:\n", FileId(0)).is_err());
    }

    #[test]
    fn programs_of_the_repository_keep_their_meaning() {
        for folder in ["examples", "tests/corpus/language", "tests/polybench", "libop"] {
            let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
            while let Some(folder) = folders.pop() {
                for entry in std::fs::read_dir(folder).expect("a folder") {
                    let path = entry.expect("an entry").path();
                    if path.is_dir() {
                        folders.push(path);
                    } else if path.extension().is_some_and(|e| e == "ft") {
                        let text = std::fs::read_to_string(&path).expect("a program");
                        let once = format(&text, FileId(0)).unwrap_or_else(|d| panic!("{}: {d:?}", path.display()));
                        assert_eq!(format(&once, FileId(0)).as_deref(), Ok(once.as_str()), "{}", path.display());
                    }
                }
            }
        }
    }
}
