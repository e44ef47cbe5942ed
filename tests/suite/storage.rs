//! Formats of matrices for the tests: the named ones, and one for each level without a name.

/// Formats in the order of the table of formats and kernels.
pub const FORMATS: [&str; 22] = [
    "csr",
    "csc",
    "dcsr",
    "coo",
    "hashmap",
    "format(dense, hashed)",
    "format(dense, bytemap)",
    "format(dense, bitmap)",
    "band",
    "ragged",
    "vbl",
    "rle",
    "packbits",
    "symmetric",
    "lower_triangular",
    "dia",
    "ell",
    "bcsr(4, 4)",
    "hicoo",
    "csb",
    "bdia",
    "sell",
];

/// Returns whether a value of a format stands for several elements: results in its pattern are refused where these
/// differ.
pub fn shares_values(format: &str) -> bool {
    matches!(format, "rle" | "packbits" | "symmetric")
}

/// Returns the formats that all loops traverse: in lists without order, several positions may have one coordinate.
pub fn traversed() -> impl Iterator<Item = &'static str> {
    FORMATS.into_iter().filter(|f| !matches!(*f, "hicoo" | "csb"))
}
