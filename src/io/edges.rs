//! Edge lists, as SNAP publishes graphs (`file.txt:edges`): a line for each edge, with the numbers of its two vertices
//! from 0 and an optional weight, separated by blanks or commas. `#` begins a comment.
//!
//! ```text
//!   # a graph             Edge (i, j) is the element A[i, j]: 1, or the weight. Duplicate edges are summed. A size
//!   0 2                   that the program does not know is the largest number of a vertex plus 1.
//!   2 1
//! ```

use super::elements::{Elements, Numbers, TextNumbers};
use super::file::{file_error, line_error};
use super::want::{Want, dimensions};
use std::path::Path;
use taffeta_ast::spelling::counted;
use taffeta_ast::value::MAX_SIZE;
use taffeta_ast::{Diagnostic, Value};

/// Word after the path that selects this reader: `g.txt:edges`.
pub const PART: &str = "edges";

/// Reads the adjacency matrix as sparse elements.
pub fn read(path: &Path, want: &Want) -> Result<Value, Diagnostic> {
    if want.ndim != 2 {
        let found = dimensions(want.ndim);
        let what = format!("expected a parameter of 2 dimensions for an edge list, found `{}` with {found}", want.name);
        let help = format!("to read one column, write its number or name: `{}:0`", path.display());
        return Err(file_error("data::rank", path, what).help(help));
    }
    let text = super::file::read_text(path)?;
    let given = |d: usize| want.sizes.get(d).copied().flatten();
    let (mut indices, mut weights) = (Vec::new(), TextNumbers::default());
    // Number of columns, set by the first edge.
    let mut columns = 0;
    for (number, line) in text.lines().enumerate().map(|(k, l)| (k + 1, l)) {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split(|c: char| c == ',' || c.is_whitespace()).filter(|w| !w.is_empty()).collect();
        let bad = |what: String| line_error(path, number, what);
        match (words.len(), columns) {
            (0, _) => continue,
            (n @ 2..=3, 0) => columns = n,
            (n, columns) if n == columns => {}
            (n, 0) => {
                let found = counted(n, "word");
                return Err(bad(format!("expected two vertices and an optional weight, found {found}")));
            }
            (n, columns) => return Err(bad(format!("expected {columns} words as in the first edge, found {n}"))),
        }
        for (d, word) in words[..2].iter().enumerate() {
            let end = given(d).unwrap_or(MAX_SIZE as usize);
            match word.parse::<usize>() {
                Ok(vertex) if vertex < end => indices.push(vertex as i64),
                Ok(vertex) if end == 0 => return Err(bad(format!("expected no vertices, found {vertex}"))),
                Ok(vertex) => return Err(bad(format!("expected a vertex from 0 to {}, found {vertex}", end - 1))),
                Err(_) => return Err(bad(format!("expected a vertex number from 0, found `{word}`"))),
            }
        }
        if let Some(weight) = words.get(2) {
            weights
                .push(weight)
                .ok_or_else(|| bad(format!("expected a number in the range of f64, found `{weight}`")))?;
        }
    }
    let vertices = indices.iter().max().map(|most| *most as usize + 1);
    let shape: Option<Vec<usize>> = (0..2).map(|d| given(d).or(vertices)).collect();
    let none = || {
        file_error(
            "data::empty",
            path,
            format!("expected edges, which determine the sizes of `{}`, found none", want.name),
        )
        .help("give its sizes with --size")
    };
    let shape = shape.ok_or_else(none)?;
    let values = match columns {
        3 => Numbers::Typed(weights.buffer(want.dtype)),
        _ => Numbers::Ones(indices.len() / 2),
    };
    Elements { indices, values }.tensor(shape, want, path)
}

/// Creates the diagnostic for a table without a part. A table may be a dense matrix or an edge list, and a structured
/// parameter requires a choice.
pub fn ambiguous(path: &Path, want: &Want) -> Diagnostic {
    let what = format!("expected a sparse tensor for the structured parameter `{}`, found a dense table", want.name);
    let name = path.display();
    file_error("input::part", path, what).help(format!(
        "to read an edge list (two vertices in a line, from 0), write `{name}:{PART}`; save other matrices as .mtx, .npz or .npy"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use taffeta_ast::{Buffer, DType, Literal};

    fn check(text: &str, want: &Want) -> Result<Value, String> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("g.txt");
        std::fs::write(&path, text).expect("a file");
        let prefix = format!("{}/", dir.path().display());
        read(&path, want).map_err(|d| d.message.replace(&prefix, ""))
    }

    fn sparse(shape: &[usize], indices: &[i64], data: Buffer) -> Result<Value, String> {
        let zero = Literal::zero(data.dtype());
        Ok(Value::sparse(shape.to_vec(), indices.to_vec(), data, zero).expect("it is in order"))
    }

    #[test]
    fn edges_are_elements() {
        let want = Want::new("A", DType::F64, 2);
        let text = "# Nodes: 4 Edges: 3\n# FromNodeId\tToNodeId\n0\t3\n2 1\n\n0,3 # again\n";
        let expected = |n, m| sparse(&[n, m], &[0, 3, 2, 1], Buffer::F64(vec![2.0, 1.0]));
        assert_eq!(check(text, &want), expected(4, 4));
        let given = Want { sizes: vec![None, Some(9)], ..want.clone() };
        assert_eq!(check(text, &given), expected(4, 9));
        let flags = sparse(&[4, 4], &[0, 3, 2, 1], Buffer::Bool(vec![true; 2]));
        assert_eq!(check(text, &Want::new("A", DType::Bool, 2)), flags);
        let weights = sparse(&[2, 2], &[0, 1, 1, 0], Buffer::I32(vec![-7, 3]));
        assert_eq!(check("1 0 3\n0 1 -7\n", &Want::new("A", DType::I32, 2)), weights);
        let empty = Want { sizes: vec![Some(2), Some(2)], ..want };
        assert_eq!(check("# none\n", &empty), sparse(&[2, 2], &[], Buffer::F64(vec![])));
    }

    #[test]
    fn errors_name_the_line() {
        let want = Want { sizes: vec![Some(2), None], ..Want::new("A", DType::F64, 2) };
        for (text, says) in [
            ("0 1\n2 0\n", "g.txt:2: expected a vertex from 0 to 1, found 2"),
            ("0\n", "g.txt:1: expected two vertices and an optional weight, found 1 word"),
            ("0 1 2 3\n", "g.txt:1: expected two vertices and an optional weight, found 4 words"),
            ("0 1\n1 0 2\n", "g.txt:2: expected 2 words as in the first edge, found 3"),
            ("a b\n", "g.txt:1: expected a vertex number from 0, found `a`"),
            ("0 -1\n", "g.txt:1: expected a vertex number from 0, found `-1`"),
            ("0 1 x\n", "g.txt:1: expected a number in the range of f64, found `x`"),
            ("", "g.txt: expected edges, which determine the sizes of `A`, found none"),
        ] {
            assert_eq!(check(text, &want).unwrap_err(), says);
        }
        let vector = check("0 1\n", &Want::new("x", DType::F64, 1)).unwrap_err();
        assert_eq!(vector, "g.txt: expected a parameter of 2 dimensions for an edge list, found `x` with 1 dimension");
    }
}
