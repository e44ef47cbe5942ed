//! Published files below `TAFFETA_DATA`, where present: the readers must reproduce the published counts.

use super::Folder;

const PROGRAM: &str = r#"
def mesh(v: f32[n, 3], f: i32[m, 3], adj: i32[m, 3]) -> (i64, i64):
    """Edges on the boundary, and neighbours that do not know of each other."""
    boundary: i64 = 0
    alone: i64 = 0
    for i in range(m):
        for j in range(3):
            assert f[i, j] >= 0 and f[i, j] < n
            if adj[i, j] == i:
                boundary += 1
            else:
                mutual: i64 = 0
                for k in range(3):
                    if adj[adj[i, j], k] == i:
                        mutual += 1
                if mutual == 0:
                    alone += 1
    return boundary, alone


def edges(rows: i32[e], cols: i32[e], indptr: i32[k], shape: i64[2]) -> (i64, i64, i64):
    """Number of edges, of places where the row index goes back, and of vertices."""
    back: i64 = 0
    for i in range(e - 1):
        if rows[i + 1] < rows[i]:
            back += 1
    for i in range(e):
        assert indptr[rows[i]] <= i and i < indptr[rows[i] + 1]
        assert cols[i] < shape[1]
    count = indptr[k - 1]
    return count, back, shape[0]


def picture(x: u8[512, 512]) -> i64:
    total: i64 = 0
    for i, j in ndrange(512, 512):
        total += x[i, j]
    return total
"#;

/// Returns the path of a published data file; if it is missing, prints that the test is skipped.
fn file(name: &str) -> Option<String> {
    let path = std::env::var_os("TAFFETA_DATA").map(|d| std::path::PathBuf::from(d).join(name));
    match path.filter(|p| p.is_file()) {
        Some(p) => Some(p.display().to_string()),
        None => {
            eprintln!("skipped: {name} is not below TAFFETA_DATA");
            None
        }
    }
}

#[test]
fn published_meshes() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    for (name, faces) in
        [("libigl_bunny.off", 6966), ("softras_spot_triangulated.obj", 5856), ("subdivnet_airplane.obj", 500)]
    {
        let Some(path) = file(&format!("meshes/{name}")) else { continue };
        let inputs = ["vertices", "faces", "adjacency"].map(|p| format!("{path}:{p}"));
        let args = [
            "run",
            "f.ft",
            "mesh",
            "--in",
            &format!("v={}", inputs[0]),
            "--in",
            &format!("f={}", inputs[1]),
            "--in",
            &format!("adj={}", inputs[2]),
        ];
        let args = [&args[..], &["--json"]].concat();
        let json: serde_json::Value = serde_json::from_str(&folder.succeeds(&args)).expect("JSON");
        assert_eq!(json["sizes"]["m"], faces, "{name}");
        // Closed meshes: every edge has two faces.
        assert_eq!(
            (&json["results"][0]["values"][0], &json["results"][1]["values"][0]),
            (&0.into(), &0.into()),
            "{name}"
        );
    }
}

#[test]
fn published_graphs_and_pictures() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    if let Some(path) = file("graphs/cora_edges.mtx") {
        let input = |name: &str| format!("{name}={path}:{name}");
        let out = folder.succeeds(&[
            "run",
            "f.ft",
            "edges",
            "--in",
            &input("rows"),
            "--in",
            &input("cols"),
            "--in",
            &input("indptr"),
            "--in",
            &input("shape"),
        ]);
        assert_eq!(out, "count: i64 = 10556\nback: i64 = 0\nout2: i64 = 2708\n");
    }
    if let Some(path) = file("images/skimage_camera.png") {
        let out = folder.succeeds(&["run", "f.ft", "picture", "--in", &format!("x={path}")]);
        assert_eq!(out, "total: i64 = 33832495\n");
    }
}
