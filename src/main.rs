//! The `taffeta` command line.

mod cli;

/// Allocator that aligns large arrays to cache lines, as the system's allocator does not: in arrays 16 bytes off, every
/// 64-byte vector straddles two lines, and loops over cache-sized arrays take up to 1.5 times as long.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}

#[cfg(test)]
mod tests {
    #[test]
    fn large_arrays_are_aligned_to_cache_lines() {
        for n in [512, 1000, 12_345, 1_200_000, 5_000_000] {
            for array in [vec![1.0f64; n], vec![0.0f64; n]] {
                assert_eq!(array.as_ptr() as usize % 64, 0, "{n} elements");
            }
        }
        // An array that grows by reallocation, as readers' arrays do.
        let grown: Vec<f32> = (0..1_000_000).filter(|k| k % 3 != 0).map(|k| k as f32).collect();
        assert_eq!(grown.as_ptr() as usize % 64, 0);
    }
}
