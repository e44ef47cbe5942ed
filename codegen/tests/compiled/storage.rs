//! The cache and the compiler, where they are not as one would wish.

use crate::run::scratch_dir;
use std::os::unix::fs::PermissionsExt;
use taffeta_codegen::cache::{Cache, key};

fn make(dir: &std::path::Path) -> Result<(), taffeta_ast::Diagnostic> {
    std::fs::write(dir.join("a"), "text").expect("it can be written");
    Ok(())
}

#[test]
fn entries_are_made_once_and_again_when_they_are_broken() {
    let dir = scratch_dir().join("cache");
    let cache = Cache::open_at(&dir).expect("a new directory");
    assert_eq!(std::fs::metadata(&dir).expect("it is there").permissions().mode() & 0o777, 0o700);
    let entry = cache.get_or_make("k1", make).expect("it is made");
    assert_eq!(std::fs::read(entry.join("a")).expect("it is there"), b"text");
    let again = cache.get_or_make("k1", |_| panic!("it is there already")).expect("it is there");
    assert_eq!(again, entry);
    std::fs::write(entry.join("a"), "texT").expect("it can be written");
    assert_eq!(cache.get("k1"), None, "its checksum is wrong");
    cache.get_or_make("k1", make).expect("it is made again");
    assert_eq!(std::fs::read(entry.join("a")).expect("it is there"), b"text");
    std::fs::remove_file(entry.join("a")).expect("it can be removed");
    assert_eq!(cache.get("k1"), None, "a file is missing");
    std::fs::write(entry.join("entry.json"), "{").expect("it can be written");
    assert_eq!(cache.get("k1"), None, "its list is no list");
    // A key cannot leave the directory.
    let outside = cache.get_or_make("../../evil", make).expect("it is made");
    assert_eq!(outside.parent(), Some(dir.as_path()));
    assert_eq!(std::fs::read_dir(&dir).expect("it is there").count(), 2, "nothing is left behind");
}

#[test]
fn what_fails_to_be_made_is_no_entry() {
    let dir = scratch_dir().join("cache");
    let cache = Cache::open_at(&dir).expect("a new directory");
    let refused = cache.get_or_make("k", |_| Err(taffeta_ast::Diagnostic::new("test", "no")));
    assert_eq!(refused.expect_err("it was not made").code, "test");
    assert_eq!(cache.get("k"), None);
}

#[test]
fn a_directory_that_others_could_turn_elsewhere_is_refused() {
    let dir = scratch_dir();
    let real = dir.join("real");
    std::fs::create_dir(&real).expect("a directory");
    std::os::unix::fs::symlink(&real, dir.join("link")).expect("a link");
    let refused = Cache::open_at(&dir.join("link")).expect_err("it is a link");
    assert_eq!(refused.code, "cache::unusable");
    assert!(refused.message.ends_with("it is a symbolic link, which could be turned elsewhere"), "{refused}");
    std::fs::write(dir.join("file"), "").expect("a file");
    assert!(Cache::open_at(&dir.join("file")).is_err());
    assert!(Cache::open_at(&dir.join("file").join("inside")).is_err());
    // Open to others, but ours: closed.
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    Cache::open_at(&real).expect("it is ours");
    assert_eq!(std::fs::metadata(&real).expect("it is there").permissions().mode() & 0o777, 0o700);
}

#[test]
fn keys_tell_parts_apart() {
    assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
    assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    assert_eq!(key(&[]).len(), 32);
}
