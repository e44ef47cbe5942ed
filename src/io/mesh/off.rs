//! OFF: the word `OFF` (or `COFF`, `NOFF`, `STOFF`…, or nothing), the numbers of vertices, faces and edges (on the same
//! line or the next), then a line for each vertex, then a line for each face: its number of corners and their vertices
//! from 0. Colours, normals and other trailing words of a line are ignored.

use super::{Mesh, add_polygon, coordinate, line_error};
use crate::io::file::truncated;
use std::path::Path;
use taffeta_ast::Diagnostic;

pub(super) fn parse(text: &str, path: &Path) -> Result<Mesh, Diagnostic> {
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(i, l)| (i + 1, l.split('#').next().unwrap_or("").trim()))
        .filter(|(_, l)| !l.is_empty());
    let (line, first) = lines.next().ok_or_else(|| truncated(path))?;
    let mut counts = (line, first);
    if let Some(rest) = header(first, path, line)? {
        counts = if rest.is_empty() { lines.next().ok_or_else(|| truncated(path))? } else { (line, rest) };
    }
    let mut numbers = counts.1.split_whitespace().map(|w| {
        w.parse::<usize>()
            .map_err(|_| line_error(path, counts.0, format!("`{w}` is not a number of vertices or faces")))
    });
    let (n, m) = match (numbers.next(), numbers.next()) {
        (Some(n), Some(m)) => (n?, m?),
        _ => return Err(line_error(path, counts.0, "expected the numbers of vertices and faces")),
    };
    let mut mesh = Mesh::default();
    for _ in 0..n {
        let (line, text) = lines.next().ok_or_else(|| truncated(path))?;
        let mut v = [0.0; 3];
        let mut words = text.split_whitespace();
        for x in &mut v {
            let word = words.next().ok_or_else(|| line_error(path, line, "a vertex needs three coordinates"))?;
            *x = coordinate(word, path, line)?;
        }
        mesh.vertices.push(v);
    }
    for _ in 0..m {
        let (line, text) = lines.next().ok_or_else(|| truncated(path))?;
        face(&mut mesh, text, n, path, line)?;
    }
    Ok(mesh)
}

/// Returns the rest of the line after the header word; `None` without such a word.
fn header<'a>(first: &'a str, path: &Path, line: usize) -> Result<Option<&'a str>, Diagnostic> {
    let word = first.split_whitespace().next().unwrap_or("");
    let Some(prefix) = word.strip_suffix("OFF") else {
        return Ok(None);
    };
    if prefix.contains(['4', 'n']) {
        return Err(line_error(path, line, format!("`{word}`: only meshes in three dimensions are supported")));
    }
    let rest = first[word.len()..].trim();
    if rest.eq_ignore_ascii_case("binary") {
        return Err(line_error(path, line, "binary OFF files are not supported"));
    }
    Ok(Some(rest))
}

fn face(mesh: &mut Mesh, text: &str, n: usize, path: &Path, line: usize) -> Result<(), Diagnostic> {
    let mut numbers = text
        .split_whitespace()
        .map(|w| w.parse::<usize>().map_err(|_| line_error(path, line, format!("`{w}` is not a vertex number"))));
    let count = numbers.next().unwrap_or(Ok(0))?;
    if count < 3 {
        return Err(line_error(path, line, format!("expected at least 3 vertices of a face, found {count}")));
    }
    let corners = numbers.take(count).collect::<Result<Vec<_>, _>>()?;
    if corners.len() < count {
        return Err(line_error(path, line, format!("expected {count} vertices of the face, found {}", corners.len())));
    }
    if let Some(missing) = corners.iter().find(|c| **c >= n) {
        return Err(line_error(path, line, format!("vertex {missing} does not exist: there are {n}, numbered from 0")));
    }
    add_polygon(mesh, &corners, line);
    Ok(())
}
