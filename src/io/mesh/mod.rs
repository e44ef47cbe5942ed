//! Triangle meshes: `mesh.obj:vertices` (`f32[n, 3]`), `:faces` (`i32[n_faces, 3]`) and `:adjacency`.
//!
//! Polygons are split into fans of triangles. `adjacency` lists the neighbours of each face across its three edges:
//! edge `j` connects corners `j` and `(j + 1) % 3`; across a boundary edge, the neighbour is the face itself. An edge
//! with more than two faces is refused, with its line.

mod obj;
mod off;

use super::convert;
use super::file::{file_error, line_error};
use super::want::Want;
use std::collections::HashMap;
use std::path::Path;
use taffeta_ast::{Buffer, Diagnostic, Value};

/// Triangle mesh.
#[derive(Debug, Default, PartialEq)]
struct Mesh {
    vertices: Vec<[f64; 3]>,
    faces: Vec<[usize; 3]>,
    /// Line of each face.
    lines: Vec<usize>,
}

const PARTS: [&str; 3] = ["vertices", "faces", "adjacency"];

/// Reads a part of a mesh.
pub fn read(path: &Path, part: Option<&str>, want: &Want) -> Result<Value, Diagnostic> {
    let part = match part {
        Some(part) if PARTS.contains(&part) => part,
        Some(part) => {
            let d = file_error("input::part", path, format!("a mesh has no part `{part}`"));
            return Err(match taffeta_ast::spelling::nearest(part, PARTS) {
                Some(near) => d.help(format!("did you mean `{}:{near}`?", path.display())),
                None => d.help("its parts are `vertices`, `faces` and `adjacency`"),
            });
        }
        None => {
            return Err(file_error("input::part", path, "expected the name of a part of the mesh")
                .help(format!("write `{p}:vertices`, `{p}:faces` or `{p}:adjacency`", p = path.display())));
        }
    };
    let text = super::file::read_text(path)?;
    let mesh = match super::source::extension(path).as_str() {
        "off" => off::parse(&text, path)?,
        _ => obj::parse(&text, path)?,
    };
    let (rows, data) = match part {
        "vertices" => (mesh.vertices.len(), Buffer::F64(mesh.vertices.into_iter().flatten().collect())),
        "faces" => (mesh.faces.len(), indices(mesh.faces)),
        _ => (mesh.faces.len(), indices(adjacency(&mesh, path)?)),
    };
    let value =
        Value::new(vec![rows, 3], data).ok_or_else(|| file_error("data::format", path, "shape and data disagree"))?;
    convert::to(value, want, &format!("{}:{part}", path.display()))
}

fn indices(rows: Vec<[usize; 3]>) -> Buffer {
    Buffer::I64(rows.into_iter().flatten().map(|i| i as i64).collect())
}

/// Computes the neighbours of each face across its edges.
fn adjacency(mesh: &Mesh, path: &Path) -> Result<Vec<[usize; 3]>, Diagnostic> {
    let edge = |f: &[usize; 3], j: usize| {
        let (a, b) = (f[j], f[(j + 1) % 3]);
        (a.min(b), a.max(b))
    };
    // First and second face of each edge.
    let mut faces_of: HashMap<(usize, usize), (usize, Option<usize>)> = HashMap::with_capacity(mesh.faces.len() * 2);
    for (i, f) in mesh.faces.iter().enumerate() {
        for j in 0..3 {
            let e = edge(f, j);
            if e.0 == e.1 {
                return Err(line_error(
                    path,
                    mesh.lines[i],
                    format!("the face has vertex {} twice: its neighbours are not defined", e.0 + 1),
                ));
            }
            match faces_of.get_mut(&e) {
                None => {
                    faces_of.insert(e, (i, None));
                }
                Some((_, second @ None)) => *second = Some(i),
                Some((first, Some(second))) => {
                    return Err(line_error(
                        path,
                        mesh.lines[i],
                        format!(
                            "the edge between vertices {} and {} has a third face: adjacency is defined for at most two",
                            e.0 + 1,
                            e.1 + 1
                        ),
                    )
                    .note(format!("the others are on lines {} and {}", mesh.lines[*first], mesh.lines[*second]))
                    .help("split the vertices of that edge"));
                }
            }
        }
    }
    let across = |i: usize, e: (usize, usize)| match faces_of.get(&e) {
        Some((first, Some(second))) => first + second - i,
        _ => i,
    };
    Ok(mesh.faces.iter().enumerate().map(|(i, f)| [0, 1, 2].map(|j| across(i, edge(f, j)))).collect())
}

/// Adds a polygon as a fan of triangles around its first corner.
fn add_polygon(mesh: &mut Mesh, corners: &[usize], line: usize) {
    for pair in corners[1..].windows(2) {
        mesh.faces.push([corners[0], pair[0], pair[1]]);
        mesh.lines.push(line);
    }
}

/// Parses a coordinate of a vertex.
fn coordinate(text: &str, path: &Path, line: usize) -> Result<f64, Diagnostic> {
    super::file::float(text).ok_or_else(|| line_error(path, line, format!("`{text}` is not a coordinate")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use taffeta_ast::DType;

    fn check(name: &str, text: &str, part: &str) -> Result<(Vec<usize>, Buffer), String> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        let dtype = if part == "vertices" { DType::F32 } else { DType::I32 };
        let want = Want::new("x", dtype, 2);
        let prefix = format!("{}/", dir.path().display());
        read(&path, Some(part), &want).map(Value::into_parts).map_err(|d| d.message.replace(&prefix, ""))
    }

    const TETRAHEDRON: &str = "\
# a comment
mtllib t.mtl
v 0 0 0
v 1 0 0 1.0
v 0 1 0
v 0 0 1
vt 0.5 0.5
vn 0 0 1
usemtl m
f 1 3 2
f 1/1 2/1 4/1
f 2/1/1 3/1/1 4/1/1
f -4//1 -1//1 -2//1
";

    #[test]
    fn obj_faces_in_every_form() {
        assert_eq!(
            check("t.obj", TETRAHEDRON, "faces"),
            Ok((vec![4, 3], Buffer::I32(vec![0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2])))
        );
        assert_eq!(
            check("t.obj", TETRAHEDRON, "adjacency"),
            Ok((vec![4, 3], Buffer::I32(vec![3, 2, 1, 0, 2, 3, 0, 3, 1, 1, 2, 0])))
        );
        assert_eq!(check("t.obj", TETRAHEDRON, "vertices").map(|v| v.0), Ok(vec![4, 3]));
    }

    #[test]
    fn polygons_are_triangulated_and_boundary_faces_neighbour_themselves() {
        let square = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 \\\n 3 4\n";
        assert_eq!(check("s.obj", square, "faces"), Ok((vec![2, 3], Buffer::I32(vec![0, 1, 2, 0, 2, 3]))));
        assert_eq!(check("s.obj", square, "adjacency"), Ok((vec![2, 3], Buffer::I32(vec![0, 0, 1, 0, 1, 1]))));
    }

    #[test]
    fn off_files_in_all_variants() {
        let expected = Ok((vec![2, 3], Buffer::I32(vec![0, 1, 2, 0, 2, 3])));
        let body = "0 0 0\n1 0 0\n1 1 0\n0 1 0\n";
        assert_eq!(check("a.off", &format!("OFF\n4 2 0\n{body}3 0 1 2\n3 0 2 3\n"), "faces"), expected);
        assert_eq!(check("a.off", &format!("# c\nOFF 4 1 0\n\n{body}4 0 1 2 3 255 0 0\n"), "faces"), expected);
        assert_eq!(check("a.off", &format!("4 1\n{body}4 0 1 2 3\n"), "faces"), expected);
        let coloured = "COFF\n3 1 0\n0 0 0 255 0 0 255\n1 0 0 1 2 3 4\n0 1 0 1 2 3 4\n3 0 1 2\n";
        assert_eq!(check("a.off", coloured, "faces"), Ok((vec![1, 3], Buffer::I32(vec![0, 1, 2]))));
    }

    #[test]
    fn errors_name_the_line() {
        let three = "v 0 0 0\nv 1 0 0\nv 0 1 0\n";
        for (name, text, says) in [
            ("t.obj", format!("{three}f 1 2 4\n"), "t.obj:4: vertex 4 does not exist: there are 3"),
            ("t.obj", format!("{three}f 1 2 -4\n"), "t.obj:4: vertex -4 does not exist: there are 3"),
            ("t.obj", format!("{three}f 1 2 0\n"), "t.obj:4: vertices are numbered from 1"),
            ("t.obj", format!("{three}f 1 2\n"), "t.obj:4: expected at least 3 vertices of a face, found 2"),
            ("t.obj", format!("{three}f 1 a 2\n"), "t.obj:4: `a` is not a vertex number"),
            ("t.obj", "v 1 2\n".into(), "t.obj:1: a vertex needs three coordinates"),
            ("t.obj", "v 1 2 x\n".into(), "t.obj:1: `x` is not a coordinate"),
            ("t.off", "OFF\n3 1 0\n0 0 0\n".into(), "t.off: the file ends before its data does"),
            (
                "t.off",
                "OFF\n1 1 0\n0 0 0\n3 0 0 1\n".into(),
                "t.off:4: vertex 1 does not exist: there are 1, numbered from 0",
            ),
            ("t.off", "OFF\n99999999999999 1 0\n".into(), "t.off: the file ends before its data does"),
            ("t.off", "OFF BINARY\n".into(), "t.off:1: binary OFF files are not supported"),
        ] {
            assert_eq!(check(name, &text, "faces").unwrap_err(), says);
        }
        let fin = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 0 -1 0\nf 1 2 3\nf 2 1 4\nf 1 2 5\n";
        assert!(
            check("t.obj", fin, "adjacency")
                .unwrap_err()
                .starts_with("t.obj:8: the edge between vertices 1 and 2 has a third face")
        );
        assert!(check("t.obj", &format!("{three}f 1 1 2\n"), "adjacency").unwrap_err().contains("twice"));
        assert!(check("t.obj", three, "edges").unwrap_err().contains("no part `edges`"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn arbitrary_text_does_not_panic(lines in proptest::collection::vec("(v|f|OFF|COFF|vt|#)?( ?[-0-9./]{0,4}){0,5}\\\\?", 0..8)) {
            let text = lines.join("\n");
            for name in ["t.obj", "t.off"] {
                for part in PARTS {
                    let _ = check(name, &text, part);
                }
            }
        }
    }
}
