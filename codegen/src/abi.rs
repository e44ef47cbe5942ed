//! `include/taffeta.h` in Rust: the same structures, field by field. Safe by itself: only `load` and `call` hand them
//! to C.

use std::ffi::{c_char, c_int, c_void};
use taffeta_ast::DType;

/// `TAFFETA_ABI`
pub(crate) const ABI: u32 = 1;
/// `TAFFETA_OWNER_CALLER`
pub(crate) const OWNER_CALLER: i32 = 0;

/// `taffeta_tensor`
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Tensor {
    pub dtype: i32,
    pub ndim: i32,
    pub shape: *mut i64,
    pub strides: *const i64,
    pub data: *mut c_void,
    pub levels: *const c_void,
    pub fill: *const c_void,
    pub index_width: i32,
    pub owner: i32,
}

/// `taffeta_ctx`
#[repr(C)]
pub(crate) struct Ctx {
    pub abi: u32,
    pub threads: i32,
    pub status: i32,
    pub line: i32,
    pub site: i32,
    pub arena_owner: i32,
    pub arena: *mut c_void,
    pub arena_capacity: usize,
    pub memory_used: usize,
    pub memory_peak: usize,
    pub message: [c_char; 512],
}

/// `taffeta_f`
pub(crate) type RunFn = unsafe extern "C" fn(*mut Ctx, *mut Tensor, usize, *const i64) -> c_int;
/// `taffeta_f_plan`
pub(crate) type PlanFn = unsafe extern "C" fn(*mut Ctx, *mut Tensor, usize, *const i64, *mut usize) -> c_int;

/// The type's number in `taffeta_dtype`.
pub(crate) fn dtype(d: DType) -> i32 {
    match d {
        DType::Bool => 0,
        DType::I8 => 1,
        DType::I16 => 2,
        DType::I32 => 3,
        DType::I64 => 4,
        DType::U8 => 5,
        DType::U16 => 6,
        DType::U32 => 7,
        DType::U64 => 8,
        DType::F16 => 9,
        DType::Bf16 => 10,
        DType::F32 => 11,
        DType::F64 => 12,
    }
}
