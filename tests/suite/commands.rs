//! Every command that a text tells to type, run by a shell as it stands: those at the heads of examples, in `README.md`
//! and `examples/README.md`, and those of the book that its own test (`docs.rs`) does not run.
//!
//! Each file has a folder of its own, with the repository's `examples`, the programs that the text shows, and small
//! stand-ins, made here, for the published data that commands name. The only changes are smaller sizes and numbers of
//! steps.

use crate::programs::{FLAGS, cache, for_each, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Text with its commands.
struct Text {
    path: PathBuf,
    commands: Vec<String>,
    /// Programs that the text shows: name and source.
    programs: Vec<(String, String)>,
}

/// Collects the files below a folder with this extension.
fn below(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut folders = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.expect("an entry of the folder").path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|e| e == ending) => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

/// Splits a text into lines, and joins those that end in `\`.
fn lines(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let part = line.strip_suffix('\\').map(str::trim_end);
        match all.last_mut().filter(|_| open) {
            Some(last) => *last += &format!(" {}", part.unwrap_or(line).trim()),
            None => all.push(part.unwrap_or(line).to_string()),
        }
        open = part.is_some();
    }
    all
}

/// Returns the command on a line: commands are indented by four, or stand in a block of their own. A line with a
/// placeholder (`FILE.ft`, `[ENTRY]`, `…`) describes the syntax of commands.
fn command(line: &str) -> Option<&str> {
    let command = line.strip_prefix("    ").unwrap_or(line);
    let placeholder = ["FILE.ft", " [", "…", "NAME", "DIR"].iter().any(|p| command.contains(p));
    let word = command.strip_prefix("taffeta ")?.split_whitespace().next()?;
    // (A sentence may begin with the name.)
    let known = ["run", "show", "grad", "bench", "build", "check", "deps", "doc", "doctor", "explain", "check-grad"];
    (!placeholder && known.contains(&word)).then_some(command)
}

fn read(path: PathBuf) -> Text {
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let commands = lines(&text).iter().filter_map(|l| command(l)).map(str::to_string).collect();
    let mut programs = Vec::new();
    for block in text.split("```").skip(1).step_by(2) {
        let Some((language, program)) = block.split_once('\n') else { continue };
        let name = program.lines().next().and_then(|l| l.strip_prefix("# ")).filter(|n| n.ends_with(".ft"));
        match (language, name) {
            ("taffeta" | "python", Some(name)) => programs.push((name.to_string(), program.to_string())),
            // The text of README.md gives the file name of its one program.
            ("python", None) if path.ends_with("README.md") => programs.push(("subdivnet.ft".into(), program.into())),
            _ => {}
        }
    }
    Text { path, commands, programs }
}

/// Returns the command with small sizes and numbers of steps.
fn small(command: &str) -> String {
    const LARGE: u64 = 64;
    let mut words: Vec<String> = command.split(' ').map(str::to_string).collect();
    for k in 1..words.len() {
        let counts = words[k - 1] == "--size" || words[k].starts_with("steps=");
        if let Some((name, n)) = words[k].split_once('=').filter(|_| counts)
            && n.parse::<u64>().is_ok_and(|n| n > LARGE)
        {
            words[k] = format!("{name}={LARGE}");
        }
    }
    words.join(" ")
}

/// Writes minimal stand-ins for the published data: a closed mesh, a graph, matrices, a tensor, a picture.
fn data(folder: &Path) {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    let (points, faces) = (["0 0 0", "1 0 0", "0 1 0", "0 0 1"], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]);
    let faces = |before: &str, from: i32| {
        faces.map(|f| format!("{before} {} {} {}\n", f[0] + from, f[1] + from, f[2] + from)).concat()
    };
    write("meshes/libigl_bunny.off", &format!("OFF\n4 4 0\n{}\n{}", points.join("\n"), faces("3", 0)));
    let vertices = points.map(|p| format!("v {p}\n")).concat();
    write("meshes/softras_spot_triangulated.obj", &(vertices + &faces("f", 1)));
    let matrix = |kind: &str, lines: &str| format!("%%MatrixMarket matrix coordinate {kind}\n{lines}");
    write("graphs/cora_edges.mtx", &matrix("pattern symmetric", "4 4 4\n2 1\n3 1\n3 2\n4 3\n"));
    write("graphs/cora_features.mtx", &matrix("real general", "4 3 4\n1 1 1\n2 2 0.5\n3 3 1\n4 1 2\n"));
    write("matrices/memplus.mtx", &matrix("real general", "4 4 5\n1 1 1\n2 2 0.5\n3 3 1\n4 1 2\n4 4 1\n"));
    write("tensors/openflights_routes.tns", "1 1 1 1\n2 3 1 1\n1 2 3 1\n");
    let picture = ["run", "examples/conv/conv.ft", "test_card", "--set", "size=512", "--out"];
    let output = Command::new(env!("CARGO_BIN_EXE_taffeta"))
        .args(picture)
        .arg(format!("card={}", folder.join("images/skimage_camera.png").display()))
        .current_dir(root())
        .env("TAFFETA_CACHE_DIR", cache())
        .output()
        .expect("taffeta runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs the commands of a text; returns those that fail, with their error messages.
fn failures(text: &Text, data: &Path) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::os::unix::fs::symlink(root().join("examples"), folder.path().join("examples")).expect("a link");
    for (name, program) in &text.programs {
        std::fs::write(folder.path().join(name), program).expect("a file");
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_taffeta")).parent().expect("its folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let run = |command: &String| {
        let output = Command::new("sh")
            .args(["-c", &small(command)])
            .current_dir(folder.path())
            .env("PATH", format!("{}:{path}", binary.display()))
            .env("TAFFETA_DATA", data)
            .env("TAFFETA_CACHE_DIR", cache())
            .env("CFLAGS", FLAGS)
            .output()
            .expect("a shell");
        let failed = !output.status.success();
        let name = text.path.strip_prefix(root()).unwrap_or(&text.path).display();
        failed.then(|| format!("{name}: {command}\n{}", String::from_utf8_lossy(&output.stderr)))
    };
    text.commands.iter().filter_map(run).collect()
}

#[test]
fn every_documented_command_runs() {
    let mut paths = below("examples", "ft");
    paths.extend(below("docs/src", "md"));
    paths.extend(["README.md", "examples/README.md"].map(|name| root().join(name)));
    let mut texts: Vec<Text> = paths.into_iter().map(read).collect();
    // A page of the book may use a program of another one.
    let book: Vec<(String, String)> = texts.iter().flat_map(|t| t.programs.clone()).collect();
    for text in &mut texts {
        let own = std::mem::take(&mut text.programs);
        text.programs = book.iter().cloned().chain(own).collect();
    }
    texts.retain(|t| !t.commands.is_empty());
    assert!(texts.iter().map(|t| t.commands.len()).sum::<usize>() >= 35, "too few commands are found");
    let published = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(published.path().join("images")).expect("a folder");
    data(published.path());
    let failed = for_each(&texts, |text| failures(text, published.path())).concat();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Checks that brackets and parentheses are quoted: shells interpret them, zsh in the middle of a word too.
#[test]
fn literals_and_generators_are_quoted_in_documentation() {
    let mut paths = below("examples", "ft");
    for folder in ["docs/src", "schedule/src", "ast/src"] {
        paths.extend(below(folder, "md"));
    }
    paths.extend(below("src/cli", "rs"));
    paths.extend(["README.md", "examples/README.md"].map(|name| root().join(name)));
    let mut bare = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        // (Commands for the tests are not typed.)
        for line in text.lines().filter(|l| !l.starts_with("# taffeta: ")) {
            let value = |after: &str| {
                let word = after.split([' ', '`']).next().unwrap_or_default();
                word.contains('=') && !word.contains(['\'', '"']) && word.contains(['[', '('])
            };
            if ["--in ", "--set "].iter().any(|flag| line.split(flag).skip(1).any(value)) {
                bare.push(format!("{}: {line}", path.display()));
            }
        }
    }
    assert!(bare.is_empty(), "put quotes around these ('x=[1, 2]'):\n{}", bare.join("\n"));
}
