//! Temporary folders and their registry.

use std::os::unix::fs::PermissionsExt;
use taffeta_codegen::temporary::Folder;
use taffeta_codegen::testing::{remove_temporary, temporary_paths};

#[test]
fn folders_are_private_and_listed_until_removed() {
    let folder = Folder::new("taffeta-test-").expect("a folder");
    let path = folder.path().to_path_buf();
    let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(temporary_paths().get(&path), Some(&std::process::id()));
    drop(folder);
    assert!(!path.exists() && !temporary_paths().contains_key(&path));
}

#[test]
fn folders_of_other_processes_stay() {
    let (ours, theirs) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    std::fs::write(ours.path().join("file"), "").expect("a file");
    let id = std::process::id();
    remove_temporary(&[(ours.path().to_path_buf(), id), (theirs.path().to_path_buf(), id + 1)].into_iter().collect());
    assert!(!ours.path().exists() && theirs.path().exists());
}
