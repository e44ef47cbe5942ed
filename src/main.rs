//! The `taffeta` command line.

mod cli;

/// What is large begins at a cache line, which the system's allocator does not do: in arrays 16 bytes off, every vector
/// of 64 bytes lies in two lines, and loops over arrays of the caches' size take up to 1.5 times as long.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}

#[cfg(test)]
mod tests {
    #[test]
    fn large_arrays_begin_at_a_cache_line() {
        for n in [512, 1000, 12_345, 1_200_000, 5_000_000] {
            for array in [vec![1.0f64; n], vec![0.0f64; n]] {
                assert_eq!(array.as_ptr() as usize % 64, 0, "{n} elements");
            }
        }
        // One that grows, as arrays that are read do.
        let grown: Vec<f32> = (0..1_000_000).filter(|k| k % 3 != 0).map(|k| k as f32).collect();
        assert_eq!(grown.as_ptr() as usize % 64, 0);
    }
}
