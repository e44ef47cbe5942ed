//! Wavefront OBJ: `v x y z` and `f a b c …`, where a corner is `v`, `v/vt`, `v//vn` or `v/vt/vn`, numbered from 1 or,
//! if negative, backwards from the latest vertex. Normals, textures, groups and materials are ignored.

use super::{Mesh, add_polygon, coordinate, line_error};
use std::path::Path;
use taffeta_ast::Diagnostic;

pub(super) fn parse(text: &str, path: &Path) -> Result<Mesh, Diagnostic> {
    let mut mesh = Mesh::default();
    let mut corners = Vec::new();
    // Faces may precede their vertices, so indices are checked at the end.
    let mut polygons: Vec<(usize, Vec<usize>)> = Vec::new();
    for (line, words) in logical_lines(text) {
        let mut words = words.split_whitespace();
        match words.next() {
            Some("v") => {
                let mut v = [0.0; 3];
                for x in &mut v {
                    let word =
                        words.next().ok_or_else(|| line_error(path, line, "a vertex needs three coordinates"))?;
                    *x = coordinate(word, path, line)?;
                }
                mesh.vertices.push(v);
            }
            Some("f") => {
                corners.clear();
                for word in words {
                    corners.push(corner(word, mesh.vertices.len(), path, line)?);
                }
                if corners.len() < 3 {
                    return Err(line_error(
                        path,
                        line,
                        format!("expected at least 3 vertices of a face, found {}", corners.len()),
                    ));
                }
                polygons.push((line, corners.clone()));
            }
            _ => {}
        }
    }
    let n = mesh.vertices.len();
    for (line, corners) in polygons {
        if let Some(missing) = corners.iter().find(|c| **c >= n) {
            return Err(line_error(path, line, format!("vertex {} does not exist: there are {n}", missing + 1)));
        }
        add_polygon(&mut mesh, &corners, line);
    }
    Ok(mesh)
}

/// Parses the vertex of a corner, from 0; `n` vertices precede it.
fn corner(word: &str, n: usize, path: &Path, line: usize) -> Result<usize, Diagnostic> {
    let number = word.split('/').next().unwrap_or("");
    let index: i64 =
        number.parse().map_err(|_| line_error(path, line, format!("`{number}` is not a vertex number")))?;
    match index {
        0 => Err(line_error(path, line, "vertices are numbered from 1")),
        i if i > 0 => Ok((i - 1) as usize),
        i => usize::try_from(i.unsigned_abs())
            .ok()
            .and_then(|back| n.checked_sub(back))
            .ok_or_else(|| line_error(path, line, format!("vertex {i} does not exist: there are {n}"))),
    }
}

/// Iterates over lines without comments, joining lines that end in `\`; each with its number.
fn logical_lines(text: &str) -> impl Iterator<Item = (usize, String)> + '_ {
    let mut lines = text.lines().enumerate();
    std::iter::from_fn(move || {
        let (i, first) = lines.next()?;
        let mut joined = without_comment(first).to_string();
        while joined.ends_with('\\') {
            joined.pop();
            joined.push(' ');
            match lines.next() {
                Some((_, next)) => joined.push_str(without_comment(next)),
                None => break,
            }
        }
        Some((i + 1, joined))
    })
}

fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or("").trim_end()
}
