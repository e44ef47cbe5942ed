//! Rust mirror of `include/taffeta.h`: the same structures, field by field. This module has no `unsafe`; only `load`
//! and `call` pass the structures to C.
//!
//! Both sides assert sizes and offsets at compile time, where pointers have 64 bits; a test compares the numbers of
//! both.

use std::ffi::{c_char, c_int, c_void};
use taffeta_ast::DType;
use taffeta_ast::format::LevelKind;

/// Version of the C interface, `TAFFETA_ABI`.
pub(crate) const ABI: u32 = 3;
/// Owner of memory that the caller frees, `TAFFETA_OWNER_CALLER`.
pub(crate) const OWNER_CALLER: i32 = 0;
/// Size of the message buffer in a context, in bytes.
pub(crate) const MESSAGE: usize = 512;

/// `taffeta_array`.
#[repr(C)]
#[derive(Debug)]
#[allow(dead_code)] // Rust calls entries on arrays; entries on tensors with levels are for C
pub(crate) struct Array {
    pub data: *mut c_void,
    pub dtype: i32,
    pub owner: i32,
    pub length: usize,
}

/// `taffeta_level`.
#[repr(C)]
#[derive(Debug)]
#[allow(dead_code)] // as above
pub(crate) struct Level {
    pub kind: i32,
    pub n_arrays: i32,
    pub arrays: *const Array,
}

/// `taffeta_tensor`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Tensor {
    pub dtype: i32,
    pub ndim: i32,
    pub shape: *mut i64,
    pub strides: *const i64,
    pub data: *mut c_void,
    pub levels: *const Level,
    pub fill: *const c_void,
    pub n_levels: i32,
    pub owner: i32,
    pub n_stored: usize,
    pub alloc: Option<AllocFn>,
    pub alloc_data: *mut c_void,
}

/// `taffeta_ctx`.
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
    pub print: Option<PrintFn>,
    pub print_data: *mut c_void,
    pub message: [c_char; MESSAGE],
    pub flags: u32,
    pub device: i32,
    pub alloc: Option<AllocFn>,
    pub alloc_data: *mut c_void,
    pub cancel: *const i32,
    pub stream: *mut c_void,
}

/// Asserts sizes and offsets, and lists them for the test that compares them with a C compiler's.
macro_rules! layout {
    ($($name:literal $ty:ident $size:literal { $($field:ident $offset:literal),* })*) => {
        #[cfg(target_pointer_width = "64")]
        const _: () = {
            $(assert!(size_of::<$ty>() == $size, $name);
            assert!(align_of::<$ty>() == 8, $name);
            $(assert!(std::mem::offset_of!($ty, $field) == $offset, concat!($name, ".", stringify!($field)));)*)*
        };

        /// Lists sizes and offsets as C expressions with their values in Rust.
        fn layouts() -> Vec<(String, usize)> {
            vec![$(
                (format!("sizeof({})", $name), size_of::<$ty>()),
                $((format!("offsetof({}, {})", $name, stringify!($field)), std::mem::offset_of!($ty, $field)),)*
            )*]
        }
    };
}

layout! {
    "taffeta_array" Array 24 { data 0, dtype 8, owner 12, length 16 }
    "taffeta_level" Level 16 { kind 0, n_arrays 4, arrays 8 }
    "taffeta_tensor" Tensor 80 {
        dtype 0, ndim 4, shape 8, strides 16, data 24, levels 32, fill 40, n_levels 48, owner 52, n_stored 56,
        alloc 64, alloc_data 72
    }
    "taffeta_ctx" Ctx 624 {
        abi 0, threads 4, status 8, line 12, site 16, arena_owner 20, arena 24, arena_capacity 32, memory_used 40,
        memory_peak 48, print 56, print_data 64, message 72,
        flags 584, device 588, alloc 592, alloc_data 600, cancel 608, stream 616
    }
}

/// Error codes of `taffeta_status`.
pub(crate) mod status {
    /// Constants `TAFFETA_ERROR_…`, by the name after the prefix.
    macro_rules! statuses {
        ($($name:ident $value:literal),*) => {
            $(pub(crate) const $name: i32 = $value;)*
            pub(super) const ALL: &[(&str, i32)] = &[$((stringify!($name), $value)),*];
        };
    }
    statuses! {
        ASSERT 1, INDEX 2, ARITHMETIC 3, CALL 4, DTYPE 5, SHAPE 6, LAYOUT 7, ALIAS 8, MEMORY 9, SIZE 10,
        NONFINITE 11, STORAGE 12, MISFIT 13, CANCELLED 14
    }
}

/// Type of the callback for printed lines, `taffeta_print_fn`.
pub(crate) type PrintFn = unsafe extern "C" fn(*mut c_void, *const c_char, usize);
/// Type of the allocator of results, `taffeta_alloc_fn`.
pub(crate) type AllocFn = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, usize, usize, c_int) -> *mut c_void;
/// Type of an entry's run function, `taffeta_f`.
pub(crate) type RunFn = unsafe extern "C" fn(*mut Ctx, *mut Tensor, usize, *const i64) -> c_int;
/// Type of an entry's plan function, `taffeta_f_plan`.
pub(crate) type PlanFn = unsafe extern "C" fn(*mut Ctx, *mut Tensor, usize, *const i64, *mut usize) -> c_int;

/// Returns the type's number in `taffeta_dtype`.
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

/// Returns the kind's name in `taffeta_level_kind`; its number there is its position in [`LevelKind::ALL`].
pub(crate) fn level(kind: LevelKind) -> String {
    let mut name = String::from("TAFFETA_LEVEL");
    for c in format!("{kind:?}").chars() {
        if c.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(c.to_ascii_uppercase());
    }
    name
}

/// Lists C expressions (sizes, offsets, constants) with their values in Rust, for the test that compares them with a C
/// compiler's.
pub(crate) fn constants() -> Vec<(String, i64)> {
    let mut all: Vec<(String, i64)> = layouts().into_iter().map(|(e, v)| (e, v as i64)).collect();
    all.push(("TAFFETA_ABI".into(), i64::from(ABI)));
    all.push(("TAFFETA_OWNER_CALLER".into(), i64::from(OWNER_CALLER)));
    all.push(("sizeof(((taffeta_ctx *)0)->message)".into(), MESSAGE as i64));
    all.extend(status::ALL.iter().map(|(name, v)| (format!("TAFFETA_ERROR_{name}"), i64::from(*v))));
    all.extend(DType::ALL.into_iter().map(|d| (format!("TAFFETA_{}", d.name().to_uppercase()), i64::from(dtype(d)))));
    all.extend(LevelKind::ALL.iter().zip(0..).map(|(kind, number)| (level(*kind), number)));
    all
}
