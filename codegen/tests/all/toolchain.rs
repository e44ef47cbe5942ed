//! The choice of a C compiler, its identity, its flags, and the paths of tools.

use std::path::Path;
use taffeta_codegen::testing::{find_compiler, tools};
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};

#[test]
fn missing_compilers_are_named() {
    let missing = find_compiler(Some("no-such-compiler -O2")).expect_err("no compiler has this name");
    assert_eq!(missing.code, "toolchain::missing");
    let expected = "cannot find the C compiler `no-such-compiler -O2`, named by the environment variable CC";
    assert_eq!(missing.message, expected);
    assert!(missing.help.is_some_and(|h| h.contains("apt-get install")));
}

/// Checks that tools are run by absolute path, since looking a name up in PATH forks.
#[test]
fn tools_are_run_by_absolute_path() {
    let compiler = find_compiler(None).expect("there is one");
    let [tool, ar] = tools(&compiler, &std::env::temp_dir()).expect("they are found");
    assert!(Path::new(tool.get_program()).is_absolute(), "{tool:?}");
    assert!(Path::new(ar.get_program()).is_absolute(), "{ar:?}");
    assert_eq!(ar.get_args().last(), Some(std::ffi::OsStr::new("crs")));
}

#[test]
fn identities_distinguish_compilers() {
    // Any two programs will do, since they are not run.
    let of = |cc: &str| find_compiler(Some(cc)).expect("it is there").identity().to_string();
    assert_ne!(of("/bin/sh"), of("/bin/ls"));
    assert_ne!(of("/bin/sh"), of("/bin/sh -m32"));
    assert_eq!(of("/bin/sh"), of("/bin/sh"));
}

#[test]
fn values_are_never_reassociated() {
    for options in [CompileOptions::default(), CompileOptions { sanitize: true, ..CompileOptions::default() }] {
        let flags = Toolchain::flags(&options);
        assert!(flags.contains(&"-fwrapv"));
        assert!(flags.iter().all(|f| !f.contains("fast-math") && !f.contains("associative") && !f.contains("finite")));
    }
}
