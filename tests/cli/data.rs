//! Bad data: status 1, a diagnostic that names the fault, and no output file.

use super::{Folder, PROGRAM};
use expect_test::expect;

/// Runs a failing command line with an output file, and checks that no file is left behind.
fn check(folder: &Folder, args: &[&str]) -> String {
    let before = folder.files();
    let err = folder.fails(&[args, &["--out", "y=y.npy"]].concat());
    assert_eq!(folder.files(), before, "{args:?} leaves files behind");
    err
}

#[test]
fn missing_truncated_and_mistyped_files() {
    let folder =
        Folder::new(&[("f.ft", PROGRAM), ("text.npy", "not numbers"), ("x.xyz", ""), ("bad.csv", "1,2\n3,x\n")]);
    let header = b"\x93NUMPY\x01\x00\x40\x00{'descr': '<f8', 'fortran_order': False, 'shape': (9,), }        \n";
    folder.write("short.npy", &[&header[..], &[0; 16]].concat());
    let run = |x: &str| check(&folder, &["run", "f.ft", "pick", "--in", &format!("x={x}"), "--in", "index=[0]"]);
    expect![[r#"
        data::missing_file

          × nowhere.npy: there is no such file
          help: check the path; relative paths start from the current directory

        1 error
    "#]]
    .assert_eq(&run("nowhere.npy"));
    expect![[r#"
        data::format

          × text.npy: not a NumPy file (it does not start with \x93NUMPY)

        1 error
    "#]]
    .assert_eq(&run("text.npy"));
    expect![[r#"
        data::truncated

          × short.npy: the file ends before its data does
          help: the file is damaged or incomplete; write it again

        1 error
    "#]]
    .assert_eq(&run("short.npy"));
    expect![[r#"
        input::unknown

          × parameter `x`: x.xyz: cannot read files that end in `.xyz`
          help: files: .npy .npz .csv .tsv .txt .obj .off .mtx .mtx.gz .png .tns .tns.gz; generators: rand
                randn randint zeros ones arange sprand; literals: 3, 2.5, [1, 2, 3], true

        1 error
    "#]]
    .assert_eq(&run("x.xyz"));
    expect![[r#"
        data::format

          × bad.csv:2: column 2: `x` is not a number

        1 error
    "#]]
    .assert_eq(&run("bad.csv"));
    expect![[r#"
        input::literal

          × `[1, [2]]`, character 6: expected a number, found a list

        1 error
    "#]]
    .assert_eq(&run("[1, [2]]"));
    expect![[r#"
        data::rank

          × parameter `x` has 1 dimension, but `[[1, 2]]` has 2 dimensions (its shape is [1, 2])
            ╭─[f.ft:11:13]
         10 │ 
         11 │ def pick(x: f64[n], index: i32[m]) -> f64[m]:
            ·             ──────
         12 │     y = zeros((m,), f64)
            ╰────

        1 error
    "#]]
    .assert_eq(&run("[[1, 2]]"));
    let index = |i: &str| check(&folder, &["run", "f.ft", "pick", "--in", "x=[1]", "--in", &format!("index={i}")]);
    expect![[r#"
        data::dtype

          × the literal: expected an integer at [0] for parameter `index` of type i32, found 0.5

        1 error
    "#]]
    .assert_eq(&index("[0.5]"));
    expect![[r#"
        data::range

          × the literal: 3000000000 at [0] does not fit parameter `index` of type i32
          note: i32 holds -2147483648 to 2147483647

        1 error
    "#]]
    .assert_eq(&index("[3000000000]"));
    expect![[r#"
        data::truncated

          × short.npy: the file ends before its data does
          help: the file is damaged or incomplete; write it again

        1 error
    "#]]
    .assert_eq(&index("short.npy"));
    expect![[r#"
        data::range

          × the literal: 4294967296 at [0] does not fit parameter `index` of type i32
          note: i32 holds -2147483648 to 2147483647

        1 error
    "#]]
    .assert_eq(&index("[4294967296]"));
    expect![[r#"
        data::range

          × the literal: a number above 1.797e308 does not fit parameter `x` of type f64
          help: write `inf` for infinity

        1 error
    "#]]
    .assert_eq(&run("1e400"));
    folder.write("large.csv", b"\"a\"\n1\n-1e400\n");
    expect![[r#"
        data::range

          × large.csv: a number below -1.797e308 on line 3, column 1 does not fit parameter `x` of type
          │ f64
          help: write `-inf` for infinity

        1 error
    "#]]
    .assert_eq(&run("large.csv"));
    folder.write("empty.csv", b"");
    expect![[r#"
        data::empty

          × empty.csv: the table is empty: no numbers for parameter `x`
          help: if the parameter has no elements, give its sizes with --size

        1 error
    "#]]
    .assert_eq(&run("empty.csv"));
    let args =
        ["run", "f.ft", "pick", "--in", "x=empty.csv", "--in", "index=empty.csv", "--size", "n=0", "--size", "m=0"];
    assert_eq!(folder.succeeds(&args), "y: f64[0]\n  []\n");
}

#[test]
fn conflicting_unknown_and_too_large_sizes() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let axpy = |args: &[&str]| folder.fails(&[&["run", "f.ft", "axpy", "--in", "a=1"], args].concat());
    expect![[r#"
        size::mismatch

          × parameter `y`, dimension 0: expected 3 (`n`), found 2
           ╭─[f.ft:2:34]
         1 │ 
         2 │ def axpy(x: f32[n], y: inout[f32[n]], a: f32) -> f32:
           ·                                  ─
         3 │     """Adds a multiple of x to y, and sums it up."""
           ╰────
          note: `n` is 3 by dimension 0 of `x`

        1 error
    "#]]
    .assert_eq(&axpy(&["--in", "x=[1, 2, 3]", "--in", "y=[1, 2]"]));
    expect![[r#"
        size::mismatch

          × parameter `x`, dimension 0: expected 4 (`n`), found 3
           ╭─[f.ft:2:17]
         1 │ 
         2 │ def axpy(x: f32[n], y: inout[f32[n]], a: f32) -> f32:
           ·                 ─
         3 │     """Adds a multiple of x to y, and sums it up."""
           ╰────
          note: `n` is 4 by `--size n=4`

        1 error
    "#]]
    .assert_eq(&axpy(&["--in", "x=[1, 2, 3]", "--in", "y=zeros", "--size", "n=4"]));
    expect![[r#"
        size::unknown

          × no input fixes the size `n`
          help: give --size n=N

        1 error
    "#]]
    .assert_eq(&axpy(&["--in", "x=rand", "--in", "y=rand"]));
    expect![[r#"
        size::negative

          × size `n` is -1; sizes are 0 or more

        1 error
    "#]]
    .assert_eq(&axpy(&["--in", "x=rand", "--in", "y=rand", "--size", "n=-1"]));
    expect![[r#"
        data::too_large

          × parameter `x`: the number of bytes of f32[4611686018427387904] overflows

        1 error
    "#]]
    .assert_eq(&axpy(&["--in", "x=rand", "--in", "y=rand", "--size", "n=4611686018427387904"]));
    assert!(axpy(&["--in", "x=rand", "--in", "y=rand", "--size", "n=99999999999999"]).contains("do not fit in memory"));
    expect![[r#"
        size::mismatch

          × parameter `x`, dimension 0: no size satisfies `n * 2` = 3
            ╭─[f.ft:23:19]
         22 │ 
         23 │ def halves(x: f32[2 * n]) -> (f32[n], f32[n]):
            ·                   ─────
         24 │     a = x[:n]
            ╰────

        1 error
    "#]]
    .assert_eq(&folder.fails(&["run", "f.ft", "halves", "--in", "x=[1, 2, 3]"]));
    expect![[r#"
        size::mismatch

          × parameter `pairs`, dimension 1: expected 2, found 3
            ╭─[f.ft:29:51]
         28 │ 
         29 │ def made(x: f64[rows, columns], pairs: i32[edges, 2]) -> f64:
            ·                                                   ─
         30 │     s: f64 = 0.0
            ╰────

        1 error
    "#]]
    .assert_eq(&folder.fails(&["run", "f.ft", "made", "--in", "x=rand", "--in", "pairs=[[1, 2, 3]]"]));
}

#[test]
fn failed_runs_write_nothing() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    for backend in ["c", "interp"] {
        let err =
            check(&folder, &["run", "f.ft", "pick", "--in", "x=[1, 2]", "--in", "index=[0, 5]", "--backend", backend]);
        expect![[r#"
            run::index

              × index 5 is out of range for dimension 0 of `x`, which has size 2
                ╭─[f.ft:14:9]
             13 │     for i in range(m):
             14 │         y[i] = x[index[i]]
                ·         ──────────────────
             15 │     return y
                ╰────

            1 error
        "#]]
        .assert_eq(&err);
    }
}

#[test]
fn outputs_are_checked_before_anything_runs() {
    let folder = Folder::new(&[("f.ft", PROGRAM), ("dir/file", "")]);
    let run = |out: &[&str]| {
        let err = folder.fails(&[&["run", "f.ft", "pick", "--in", "x=[1]", "--in", "index=[0]"], out].concat());
        assert_eq!(folder.files(), ["dir", "f.ft"]);
        err
    };
    expect![[r#"
        output::directory

          × `nowhere/y.npy`: there is no directory `nowhere`
          help: make it first: mkdir -p nowhere

        1 error
    "#]]
    .assert_eq(&run(&["--out", "y=nowhere/y.npy"]));
    expect![[r#"
        output::format

          × `y.jpg`: cannot write files that end in `.jpg`
          help: use .npy .npz .csv .tsv .txt .png, or for a structured result also .mtx .tns

        1 error
    "#]]
    .assert_eq(&run(&["--out", "y=y.jpg"]));
    expect![[r#"
        output::format

          × `y.png`: a picture has the shape [height, width] or [height, width, channels], but the result
          │ has 1 dimension
          help: write a `.npy` file

        1 error
    "#]]
    .assert_eq(&run(&["--out", "y=y.png"]));
    expect![[r#"
        output::twice

          × `y.npy` is written twice

        1 error
    "#]]
    .assert_eq(&folder.fails(&[
        "run",
        "f.ft",
        "axpy",
        "--in",
        "x=[1]",
        "--in",
        "y=[1]",
        "--in",
        "a=1",
        "--out",
        "y=y.npy",
        "--out",
        "total=y.npy",
    ]));
    expect![[r#"
        output::directory

          × `dir/file` is not a directory

        1 error
    "#]]
    .assert_eq(&run(&["--out-dir", "dir/file"]));
}

#[test]
fn unreadable_programs() {
    let folder =
        Folder::new(&[("dir/x.ft", ""), ("bad.ft", "def f(x: f32[n]) -> f32[n]:\n    y = x +\n    return z\n")]);
    folder.write("binary.ft", &[0xff, 0xfe, 0, 1]);
    assert!(folder.fails(&["check", "/dev/zero"]).contains("more than 64 MB"));
    for command in ["run", "check", "show"] {
        assert!(folder.fails(&[command, "nowhere.ft"]).contains("nowhere.ft: there is no such file"));
        assert!(folder.fails(&[command, "dir"]).contains("dir: expected a file, found a directory"));
        assert!(folder.fails(&[command, "binary.ft"]).contains("binary.ft:1: not a text file"));
        assert!(folder.fails(&[command, "bad.ft"]).contains("bad.ft:2"));
    }
}
