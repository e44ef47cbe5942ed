//! Cache of compiled libraries under adverse conditions, and the loading of its libraries.

use crate::compiled::programs::{self, sources};
use crate::compiled::run::scratch_dir;
use std::fs::{File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use taffeta_ast::Diagnostic;
use taffeta_codegen::cache::{Cache, key};
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};
use taffeta_codegen::{LowerOptions, c, lower};

fn make(dir: &Path) -> Result<(), Diagnostic> {
    std::fs::write(dir.join("a"), "text").expect("it can be written");
    Ok(())
}

/// Opens a cache without a warning.
fn open(dir: &Path) -> Cache {
    let (cache, warning) = Cache::open_at(dir).expect("a directory that can be used");
    assert!(warning.is_none(), "{warning:?}");
    cache
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

fn count(dir: &Path) -> usize {
    std::fs::read_dir(dir).expect("it is there").count()
}

#[test]
fn entries_are_made_once_and_remade_when_broken() {
    let dir = scratch_dir().join("cache");
    let cache = open(&dir);
    assert_eq!(mode(&dir), 0o700);
    let entry = cache.get_or_make("k1", make).expect("it is made");
    assert_eq!(std::fs::read(entry.join("a")).expect("it is there"), b"text");
    let again = cache.get_or_make("k1", |_| panic!("it is there already")).expect("it is there");
    assert_eq!(again, entry);
    // A key cannot leave the directory.
    let outside = cache.get_or_make("../../evil", make).expect("it is made");
    assert_eq!(outside.parent(), Some(dir.join("entries").as_path()));
    assert_eq!((count(&dir.join("entries")), count(&dir.join("making"))), (2, 0), "nothing is left behind");
}

/// Checks that any damage to an entry invalidates it, and that it is made again.
#[test]
fn entries_that_differ_from_their_list_are_remade() {
    let dir = scratch_dir().join("cache");
    let cache = open(&dir);
    let elsewhere = scratch_dir();
    std::fs::write(elsewhere.join("a"), "text").expect("it can be written");
    let list = |entry: &Path| std::fs::read_to_string(entry.join("entry.json")).expect("it is there");
    let rewrite = |entry: &Path, text: &str| std::fs::write(entry.join("entry.json"), text).expect("it is ours");
    let other = cache.get_or_make("other", make).expect("it is made");
    type Damage<'a> = (&'a str, &'a dyn Fn(&Path));
    let damage: &[Damage<'_>] = &[
        ("other contents", &|e| std::fs::write(e.join("a"), "texT").expect("it is ours")),
        ("a file that is missing", &|e| std::fs::remove_file(e.join("a")).expect("it is ours")),
        ("a file too many", &|e| std::fs::write(e.join("b"), "").expect("it is ours")),
        ("no list", &|e| std::fs::remove_file(e.join("entry.json")).expect("it is ours")),
        ("a list that is none", &|e| rewrite(e, "{")),
        ("an empty list", &|e| rewrite(e, r#"{"kind": "Data", "key": "k", "files": {}}"#)),
        ("an empty list of an empty entry", &|e| {
            std::fs::remove_file(e.join("a")).expect("it is ours");
            rewrite(e, r#"{"kind": "Data", "key": "k", "files": {}}"#);
        }),
        ("the list of another key", &|e| rewrite(e, &list(&other))),
        ("the list of another kind", &|e| rewrite(e, &list(e).replace("Data", "Library"))),
        ("a file that others can write", &|e| set_mode(&e.join("a"), 0o666)),
        ("a list that others can write", &|e| set_mode(&e.join("entry.json"), 0o620)),
        ("a directory that others can write", &|e| set_mode(e, 0o770)),
        ("a link to the same contents", &|e| {
            std::fs::remove_file(e.join("a")).expect("it is ours");
            symlink(elsewhere.join("a"), e.join("a")).expect("a link");
        }),
        ("a link to an entry", &|e| {
            let moved = elsewhere.join("moved");
            std::fs::rename(e, &moved).expect("it is ours");
            symlink(&moved, e).expect("a link");
        }),
    ];
    for (what, damage) in damage {
        let entry = cache.get_or_make("k", make).expect("it is made");
        assert!(cache.get("k").is_some(), "before: {what}");
        damage(&entry);
        assert_eq!(cache.get("k"), None, "{what}");
        cache.get_or_make("k", make).unwrap_or_else(|d| panic!("{what}: {d}"));
        assert_eq!(std::fs::read(entry.join("a")).expect("it is there"), b"text", "{what}");
        assert!(!entry.is_symlink(), "{what}");
    }
    assert_eq!((count(&dir.join("entries")), count(&dir.join("making"))), (2, 0));
}

#[test]
fn failed_entries_are_not_stored() {
    let dir = scratch_dir().join("cache");
    let cache = open(&dir);
    let refused = cache.get_or_make("k", |_| Err(Diagnostic::new("test", "no")));
    assert_eq!(refused.expect_err("it was not made").code, "test");
    assert_eq!(cache.get("k"), None);
    assert_eq!((count(&dir.join("entries")), count(&dir.join("making")), count(&dir.join("failed"))), (0, 0, 0));
    // An internal error keeps its files.
    let refused = cache.get_or_make("k", |dir| make(dir).and(Err(Diagnostic::new("internal::test", "no"))));
    let kept = refused.expect_err("it was not made").notes.join("");
    let kept = PathBuf::from(kept.strip_prefix("the generated files are in ").expect("a directory is named"));
    assert_eq!(kept.parent(), Some(dir.join("failed").as_path()));
    assert!(kept.join("a").is_file());
}

#[test]
fn symbolic_links_are_refused() {
    let dir = scratch_dir();
    let real = dir.join("real");
    std::fs::create_dir(&real).expect("a directory");
    symlink(&real, dir.join("link")).expect("a link");
    let refused = Cache::open_at(&dir.join("link")).expect_err("it is a link");
    assert_eq!(refused.code, "cache::unusable");
    assert!(refused.message.ends_with("it is a symbolic link, whose target may change"), "{refused}");
    std::fs::write(dir.join("file"), "").expect("a file");
    assert!(Cache::open_at(&dir.join("file")).is_err());
    assert!(Cache::open_at(&dir.join("file").join("inside")).is_err());
    // Links of our own on the path are as good as directories.
    open(&dir.join("link").join("cache"));
    assert!(real.join("cache").join("entries").is_dir());
    symlink(dir.join("circle"), dir.join("circle")).expect("a link");
    let refused = Cache::open_at(&dir.join("circle").join("cache")).expect_err("the link leads to itself");
    assert_eq!(refused.code, "cache::unusable");
    assert!(refused.message.ends_with("its path leads through more than 40 symbolic links"), "{refused}");
}

/// Checks that a cache that others could write is discarded: restricting its permissions is not enough.
#[test]
fn caches_writable_by_others_are_discarded() {
    for open_to in [0o777, 0o770, 0o722] {
        let dir = scratch_dir().join("cache");
        let entry = open(&dir).get_or_make("k", make).expect("it is made");
        set_mode(&dir, open_to);
        let (cache, warning) = Cache::open_at(&dir).expect("it is ours");
        let warning = warning.expect("the user is told");
        assert_eq!(warning.code, "cache::discarded");
        assert!(warning.message.ends_with("`: others could write it"), "{warning}");
        assert_eq!(mode(&dir), 0o700, "it is closed");
        assert!(cache.get("k").is_none() && !entry.exists(), "its entries are discarded");
        // The warning comes once.
        open(&dir);
    }
    // A writable subdirectory has the same effect.
    let dir = scratch_dir().join("cache");
    let entry = open(&dir).get_or_make("k", make).expect("it is made");
    set_mode(&dir.join("entries"), 0o777);
    let (_, warning) = Cache::open_at(&dir).expect("it is ours");
    assert_eq!(warning.expect("the user is told").code, "cache::discarded");
    assert!(!entry.exists());
    // Readers could not have changed anything.
    let dir = scratch_dir().join("cache");
    let entry = open(&dir).get_or_make("k", make).expect("it is made");
    set_mode(&dir, 0o755);
    assert_eq!(open(&dir).get("k"), Some(entry));
    assert_eq!(mode(&dir), 0o700);
}

/// Checks that a directory that does not look like a cache is neither emptied nor restricted.
#[test]
fn directories_with_other_files_are_left_alone() {
    let dir = scratch_dir();
    std::fs::write(dir.join("thesis.tex"), "years of work").expect("a file");
    std::fs::create_dir(dir.join("entries")).expect("a directory");
    set_mode(&dir, 0o777);
    let refused = Cache::open_at(&dir).expect_err("others can write it");
    assert_eq!(refused.code, "cache::unsafe");
    assert_eq!((mode(&dir), count(&dir)), (0o777, 2));
    set_mode(&dir, 0o755);
    open(&dir).get_or_make("k", make).expect("it is made");
    assert_eq!(mode(&dir), 0o755);
    assert!(dir.join("thesis.tex").is_file());
}

/// Checks that an ancestor directory that others can write is refused, since they could replace the cache.
#[test]
fn parents_writable_by_others_are_refused() {
    let dir = scratch_dir();
    let (parent, inside) = (dir.join("parent"), dir.join("parent").join("inside"));
    std::fs::create_dir_all(&inside).expect("directories");
    set_mode(&parent, 0o777);
    let refused = Cache::open_at(&inside.join("cache")).expect_err("others can write what it lies in");
    assert_eq!(refused.code, "cache::unsafe");
    assert!(refused.message.contains(&format!("the directory `{}` above it can be", parent.display())));
    assert!(!inside.join("cache").exists(), "nothing is made there");
    // Links and `..` are resolved.
    symlink(&inside, dir.join("link")).expect("a link");
    assert!(Cache::open_at(&dir.join("link").join("cache")).is_err());
    assert!(Cache::open_at(&dir.join("link").join("..").join("inside").join("cache")).is_err());
    // With the sticky bit, others cannot replace entries.
    set_mode(&parent, 0o1777);
    open(&inside.join("cache"));
}

/// Checks that the least recently used entries make room for new ones.
#[test]
fn old_entries_are_evicted() {
    let dir = scratch_dir().join("cache");
    let big = |dir: &Path| {
        std::fs::write(dir.join("a"), vec![b'x'; 1000]).expect("it can be written");
        Ok(())
    };
    let cache = open(&dir).limited(6000);
    for k in 0..4 {
        cache.get_or_make(&format!("k{k}"), big).expect("it is made");
    }
    // Time stamps may be coarse.
    let age = |k: usize, seconds| {
        let list = File::open(dir.join("entries").join(format!("k{k}")).join("entry.json")).expect("it is there");
        list.set_modified(SystemTime::now() - Duration::from_secs(seconds)).expect("it is ours");
    };
    (0..4).for_each(|k| age(k, 1000 - k as u64));
    assert!(cache.get("k0").is_some(), "it is used");
    cache.get_or_make("k4", big).expect("it is made");
    cache.get_or_make("k5", big).expect("it is made");
    let there: Vec<usize> = (0..6).filter(|k| cache.get(&format!("k{k}")).is_some()).collect();
    assert_eq!(there, [0, 3, 4, 5], "the recently used and the new entries stay");
    // A corrupt size count is recomputed.
    std::fs::write(dir.join("state"), "many").expect("it is ours");
    cache.get_or_make("k6", big).expect("it is made");
    assert!(count(&dir.join("entries")) <= 5);
    // An entry larger than the limit is still available to its maker.
    let small = open(&dir).limited(10);
    let entry = small.get_or_make("k7", big).expect("it is made");
    assert!(entry.join("a").is_file());
    assert_eq!(count(&dir.join("entries")), 1);
}

/// Checks that concurrent users always get whole entries, while others are evicted.
#[test]
fn processes_share_a_cache() {
    let dir = scratch_dir().join("cache");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let dir = &dir;
            scope.spawn(move || {
                let cache = open(dir).limited(3000);
                for round in 0..30 {
                    let k = (thread + round) % 7;
                    let text = format!("{k}").repeat(500);
                    let made = cache.get_or_make(&format!("k{k}"), |dir| {
                        std::fs::write(dir.join("a"), &text).expect("it can be written");
                        Ok(())
                    });
                    let entry = made.unwrap_or_else(|d| panic!("{d}"));
                    // The entry may be evicted meanwhile, but is never another one, or half of one.
                    if let Ok(found) = std::fs::read_to_string(entry.join("a")) {
                        assert_eq!(found, text);
                    }
                }
            });
        }
    });
    assert_eq!(count(&dir.join("making")), 0);
}

/// Checks that remains of a killed compilation are removed.
#[test]
fn remains_of_interrupted_compilations_are_removed() {
    let dir = scratch_dir().join("cache");
    let cache = open(&dir);
    let making = dir.join("making");
    let begun = |name: &str, age: u64| {
        let files = making.join(name).join("files");
        std::fs::create_dir_all(&files).expect("directories");
        std::fs::write(files.join("program.c"), "int x").expect("a file");
        let lock = File::create(making.join(name).join("lock")).expect("a file");
        lock.set_modified(SystemTime::now() - Duration::from_secs(age)).expect("it is ours");
        lock
    };
    drop(begun("make-killed", 3600));
    let running = begun("make-running", 3600);
    running.lock().expect("nobody else has it");
    drop(begun("make-new", 0));
    std::fs::create_dir(making.join("old-half-removed")).expect("a directory");
    cache.get_or_make("k", make).expect("it is made");
    let mut left: Vec<String> = std::fs::read_dir(&making)
        .expect("it is there")
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["make-new", "make-running"]);
}

#[test]
fn libraries_are_found_and_loaded() {
    let lowered = lower(&programs::circular_diff(), &LowerOptions::default()).expect("it can be lowered");
    let source = c::emit(&lowered, &sources());
    let compiler = Toolchain::find().expect("a C compiler");
    let dir = scratch_dir().join("cache");
    let cache = open(&dir);
    assert!(cache.library("k").is_none());
    let options = CompileOptions { optimize: false, ..CompileOptions::default() };
    let entry = cache.make_library("k", &source, &compiler, &options).expect("it compiles");
    let compiled = entry.load().expect("it can be loaded").expect("it is there");
    assert_eq!(compiled.signature(), &source.signature);
    assert!(cache.library("k").is_some());
    // Data entries are never loaded as libraries.
    assert!(cache.get("k").is_none());
    cache.get_or_make("data", make).expect("it is made");
    assert!(cache.library("data").is_none());
    // Another process may evict the entry at any time.
    std::fs::remove_dir_all(dir.join("entries").join("k")).expect("it is ours");
    assert!(entry.load().expect("an evicted entry is not an error").is_none());
}

#[test]
fn keys_depend_on_the_boundaries_of_parts() {
    assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
    assert_ne!(key(&["ab", ""]), key(&["", "ab"]));
    assert_ne!(key(&["a"]), key(&["a", ""]));
    assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    assert_eq!(key(&[]).len(), 64);
}
