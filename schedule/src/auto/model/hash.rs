//! Hashes that identify contexts and access patterns in memos.

use rustc_hash::FxHasher;
use std::hash::{Hash as _, Hasher as _};

/// Hashes the values that `of` feeds to the hasher; equal hashes are taken for equal values.
pub(super) fn number(of: impl FnOnce(&mut FxHasher)) -> u64 {
    let mut hasher = FxHasher::default();
    of(&mut hasher);
    hasher.finish()
}

/// Hashes floats by their bits.
pub(super) fn hash_floats(floats: &[f64], hasher: &mut FxHasher) {
    floats.iter().for_each(|f| f.to_bits().hash(hasher));
}
