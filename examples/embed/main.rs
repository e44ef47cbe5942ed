//! Call of heat.ft from Rust without Taffeta, with the structures of `taffeta.h` declared again. See heat.ft for how it
//! is compiled and linked.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

/// `taffeta_tensor`
#[repr(C)]
struct Tensor {
    dtype: i32,
    ndim: i32,
    shape: *mut i64,
    strides: *const i64,
    data: *mut c_void,
    levels: *const c_void,
    fill: *const c_void,
    n_levels: i32,
    owner: i32,
    n_stored: usize,
    alloc: *const c_void,
    alloc_data: *mut c_void,
}

/// `taffeta_ctx`
#[repr(C)]
struct Context {
    abi: u32,
    threads: i32,
    status: i32,
    line: i32,
    site: i32,
    arena_owner: i32,
    arena: *mut c_void,
    arena_capacity: usize,
    memory_used: usize,
    memory_peak: usize,
    print: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>,
    print_data: *mut c_void,
    message: [c_char; 512],
    flags: u32,
    device: i32,
    alloc: *const c_void,
    alloc_data: *mut c_void,
    cancel: *const i32,
    stream: *mut c_void,
}

const TAFFETA_I32: i32 = 3;
const TAFFETA_F64: i32 = 12;

unsafe extern "C" {
    fn taffeta_heat(ctx: *mut Context, args: *mut Tensor, n_args: usize, sizes: *const i64) -> c_int;
    fn taffeta_ctx_release_3(ctx: *mut Context);
}

fn tensor<T>(dtype: i32, shape: &mut [i64], data: &mut [T]) -> Tensor {
    Tensor {
        dtype,
        ndim: shape.len() as i32,
        shape: shape.as_mut_ptr(),
        strides: ptr::null(),
        data: data.as_mut_ptr().cast(),
        levels: ptr::null(),
        fill: ptr::null(),
        n_levels: 0,
        owner: 0,
        n_stored: 0,
        alloc: ptr::null(),
        alloc_data: ptr::null_mut(),
    }
}

/// Runs the steps on the rod; returns the mean.
fn heat(rod: &mut [f64], steps: i32, k: f64) -> Result<f64, String> {
    let (mut length, mut steps, mut k, mut average) = ([rod.len() as i64], [steps], [k], [0.0]);
    let mut args = [
        tensor(TAFFETA_F64, &mut length, rod),
        tensor(TAFFETA_I32, &mut [], &mut steps),
        tensor(TAFFETA_F64, &mut [], &mut k),
        tensor(TAFFETA_F64, &mut [], &mut average),
    ];
    let mut ctx = Context {
        abi: 3,
        threads: 0,
        status: 0,
        line: 0,
        site: -1,
        arena_owner: 1,
        arena: ptr::null_mut(),
        arena_capacity: 0,
        memory_used: 0,
        memory_peak: 0,
        print: None,
        print_data: ptr::null_mut(),
        message: [0; 512],
        flags: 0,
        device: 0,
        alloc: ptr::null(),
        alloc_data: ptr::null_mut(),
        cancel: ptr::null(),
        stream: ptr::null_mut(),
    };
    // SAFETY: the structures are those of taffeta.h, and everything they point to lives until the call returns.
    let status = unsafe { taffeta_heat(&mut ctx, args.as_mut_ptr(), args.len(), ptr::null()) };
    // SAFETY: a message ends with a zero.
    let message = unsafe { CStr::from_ptr(ctx.message.as_ptr()) }.to_string_lossy().into_owned();
    // SAFETY: the context was made above and is not used again.
    unsafe { taffeta_ctx_release_3(&mut ctx) };
    if status == 0 { Ok(average[0]) } else { Err(message) }
}

fn main() -> Result<(), String> {
    let mut rod = [0.0, 0.0, 0.0, 0.0, 100.0, 0.0, 0.0, 0.0];
    let mean = heat(&mut rod, 50, 0.25)?;
    for t in rod {
        print!("{t:.3} ");
    }
    println!("mean {mean:.3}");
    Ok(())
}
