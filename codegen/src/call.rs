//! Safe calls of a compiled entry: number, modes, types, ranks, shapes, alignment and aliasing of the arguments are
//! checked here before C is entered, and once more inside.

#![allow(unsafe_code)] // calls C through a function pointer, is called back with printed lines, and allocates the arena

use crate::abi::{self, Ctx, Tensor};
use crate::load::Compiled;
use crate::signature::{Passing, Site, TensorSig};
use std::alloc::Layout;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::AtomicI32;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use taffeta_ast::{Buffer, DType, Diagnostic, SourceMap, Span, Value, with_buffer};

/// Rust types of tensor elements.
pub trait Element: Copy + sealed::Sealed {
    /// Element type.
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($t:ty => $d:ident),*) => {
        $(impl sealed::Sealed for $t {}
        impl Element for $t { const DTYPE: DType = DType::$d; })*
    };
}

elements!(bool => Bool, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
          half::f16 => F16, half::bf16 => Bf16, f32 => F32, f64 => F64);

/// Categories of errors, as in `taffeta.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // documented at `taffeta_status`
pub enum ErrorKind {
    Assert,
    Index,
    Arithmetic,
    Call,
    DType,
    Shape,
    Layout,
    Alias,
    Memory,
    Size,
    NonFinite,
    Storage,
    Misfit,
    Cancelled,
}

impl ErrorKind {
    fn from_status(status: i32) -> ErrorKind {
        use abi::status;
        match status {
            status::ASSERT => ErrorKind::Assert,
            status::INDEX => ErrorKind::Index,
            status::ARITHMETIC => ErrorKind::Arithmetic,
            status::DTYPE => ErrorKind::DType,
            status::SHAPE => ErrorKind::Shape,
            status::LAYOUT => ErrorKind::Layout,
            status::ALIAS => ErrorKind::Alias,
            status::MEMORY => ErrorKind::Memory,
            status::SIZE => ErrorKind::Size,
            status::NONFINITE => ErrorKind::NonFinite,
            status::STORAGE => ErrorKind::Storage,
            status::MISFIT => ErrorKind::Misfit,
            status::CANCELLED => ErrorKind::Cancelled,
            status::CALL => ErrorKind::Call,
            // Unreachable with a library of this version.
            _ => ErrorKind::Call,
        }
    }

    /// Returns the diagnostic code that the interpreter uses for the same error.
    pub fn code(self) -> &'static str {
        match self {
            ErrorKind::Assert => "run::assert",
            ErrorKind::Index => "run::index",
            ErrorKind::Arithmetic => "run::arithmetic",
            ErrorKind::Shape => "run::shape",
            ErrorKind::Size => "run::size",
            ErrorKind::Memory => "run::memory",
            ErrorKind::NonFinite => "run::nonfinite",
            ErrorKind::Storage => "data::storage",
            ErrorKind::Misfit => "run::storage",
            ErrorKind::Cancelled => "run::cancelled",
            ErrorKind::Call | ErrorKind::DType | ErrorKind::Layout | ErrorKind::Alias => "run::input",
        }
    }
}

/// Failure of a call.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// Category of the error.
    pub kind: ErrorKind,
    /// Message with the found and expected values, without the source location.
    pub message: String,
    /// Statement that raised the error, if known.
    pub site: Option<Site>,
}

impl CallError {
    fn new(kind: ErrorKind, message: impl Into<String>) -> CallError {
        CallError { kind, message: message.into(), site: None }
    }

    /// Makes the diagnostic, with the statement and the inlined calls around it, as far as `sources` has their files.
    pub fn diagnostic(&self, sources: &SourceMap) -> Diagnostic {
        let find = |file: &str, start: u32, end: u32| {
            let position = sources.files().position(|f| f.name == file);
            position.map_or(Span::NONE, |k| Span { file: taffeta_ast::FileId(k as u32), start, end })
        };
        let mut d = Diagnostic::new(self.kind.code(), self.message.clone());
        if self.kind == ErrorKind::Memory && self.site.is_some() {
            d = d.help(
                "compute its elements where they are read (in a loop, or by `inline` in a schedule), or store only \
                 those of a pattern: `t: f64[n, m] @ pattern(A) = …`",
            );
        }
        if let Some(site) = &self.site {
            let span = find(&site.file, site.start, site.end);
            d = d.at(span);
            if span.is_none() && !site.file.is_empty() {
                d = d.note(format!("at {}:{}", site.file, site.line));
            }
            for (function, place) in site.chain.iter().rev() {
                d = d.label(find(&place.file, place.start, place.end), format!("in this call of `{function}`"));
            }
        }
        d
    }
}

/// A tensor argument that is only read.
#[derive(Clone, Debug)]
pub struct ArgRef<'a> {
    view: View,
    borrowed: PhantomData<&'a ()>,
}

/// A tensor argument that is written.
#[derive(Debug)]
pub struct ArgMut<'a> {
    view: View,
    borrowed: PhantomData<&'a mut ()>,
}

#[derive(Clone, Debug)]
struct View {
    dtype: DType,
    shape: Vec<i64>,
    data: NonNull<u8>,
    bytes: usize,
}

impl View {
    fn new(dtype: DType, shape: &[usize], data: NonNull<u8>, len: usize) -> Option<View> {
        (taffeta_ast::value::element_count(shape)? == len).then_some(())?;
        let shape = shape.iter().map(|d| i64::try_from(*d).ok()).collect::<Option<Vec<i64>>>()?;
        Some(View { dtype, shape, data, bytes: len * dtype.size() })
    }
}

impl<'a> ArgRef<'a> {
    /// Makes an argument from row-major elements and their shape; `None` if the shape's product is not `data.len()`.
    pub fn new<T: Element>(data: &'a [T], shape: &[usize]) -> Option<ArgRef<'a>> {
        let view = View::new(T::DTYPE, shape, NonNull::from(data).cast(), data.len())?;
        Some(ArgRef { view, borrowed: PhantomData })
    }
}

impl<'a> ArgMut<'a> {
    /// Makes an argument from row-major elements and their shape; `None` if the shape's product is not `data.len()`.
    pub fn new<T: Element>(data: &'a mut [T], shape: &[usize]) -> Option<ArgMut<'a>> {
        let len = data.len();
        let view = View::new(T::DTYPE, shape, NonNull::from(data).cast(), len)?;
        Some(ArgMut { view, borrowed: PhantomData })
    }
}

/// One argument of a call: parameters first, then results, in order.
#[derive(Debug)]
pub enum Arg<'a> {
    /// Argument for a read-only parameter.
    In(ArgRef<'a>),
    /// Argument for an `inout` parameter or a result.
    Out(ArgMut<'a>),
}

impl<'a> From<&'a Value> for Arg<'a> {
    fn from(v: &'a Value) -> Arg<'a> {
        let (data, len) = with_buffer!(v.data(), d => (NonNull::from(d.as_slice()).cast(), d.len()));
        // A dense value's shape matches its number of elements.
        Arg::In(ArgRef { view: whole(v, data, len), borrowed: PhantomData })
    }
}

impl<'a> From<&'a mut Value> for Arg<'a> {
    fn from(v: &'a mut Value) -> Arg<'a> {
        let (data, len) = with_buffer!(v.data_mut(), d => (NonNull::from(d.as_mut_slice()).cast(), d.len()));
        Arg::Out(ArgMut { view: whole(v, data, len), borrowed: PhantomData })
    }
}

fn whole(v: &Value, data: NonNull<u8>, len: usize) -> View {
    // C takes no sparse values: the shape is that of the stored elements alone, which the call refuses.
    let sparse = v.places().is_some();
    let shape = if sparse { vec![len as i64] } else { v.shape().iter().map(|d| *d as i64).collect() };
    View { dtype: v.dtype(), shape, data, bytes: len * v.dtype().size() }
}

/// Callback that takes the lines that a program prints, without line ends. Threads of a parallel loop call it, one at a
/// time.
pub type Lines = Arc<dyn Fn(&str) + Send + Sync>;

/// State of calls beside the arguments: number of threads, memory for local tensors (reused from call to call), and the
/// destination of printed lines.
#[derive(Default)]
pub struct Context {
    threads: i32,
    arena: Option<Arena>,
    lines: Option<Lines>,
    cancel: Option<Arc<AtomicI32>>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("threads", &self.threads).field("arena", &self.arena).finish_non_exhaustive()
    }
}

impl Context {
    /// Makes a context with `threads` threads for parallel loops; 0 leaves the number to OpenMP (`OMP_NUM_THREADS`).
    pub fn new(threads: usize) -> Context {
        Context { threads: i32::try_from(threads).unwrap_or(i32::MAX), arena: None, lines: None, cancel: None }
    }

    /// Lets calls stop ([`ErrorKind::Cancelled`]) once a flag is not 0: outer loops poll it.
    #[must_use]
    pub fn cancelled_by(self, flag: Arc<AtomicI32>) -> Context {
        Context { cancel: Some(flag), ..self }
    }

    /// Redirects printed lines to `lines`; by default, C writes them to its stdout.
    #[must_use]
    pub fn printing(self, lines: Lines) -> Context {
        Context { lines: Some(lines), ..self }
    }
}

/// Passes a line printed by the program on to [`Lines`].
///
/// # Safety
///
/// `data` points to [`Lines`], and `text` to `length` bytes.
unsafe extern "C" fn print_line(data: *mut c_void, text: *const c_char, length: usize) {
    // SAFETY: `Compiled::call` passes the lines of its context, which it borrows until the call returns.
    let lines = unsafe { &*data.cast::<Lines>() };
    // SAFETY: generated code passes the bytes of a line that it has assembled.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    let line = String::from_utf8_lossy(bytes);
    // A panic must not unwind through C: the receiver of lines reports it in another way.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lines(&line)));
}

#[derive(Debug)]
struct Arena {
    data: NonNull<u8>,
    layout: Layout,
}

// SAFETY: an arena owns its memory; nothing else points to it.
unsafe impl Send for Arena {}

impl Arena {
    fn new(bytes: usize) -> Option<Arena> {
        let layout = Layout::from_size_align(bytes.max(64), 64).ok()?;
        // SAFETY: the layout's size is not zero.
        let data = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
        Some(Arena { data, layout })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed nowhere else.
        unsafe { std::alloc::dealloc(self.data.as_ptr(), self.layout) };
    }
}

/// Resources used by a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallReport {
    /// Time inside the program.
    pub time: Duration,
    /// Peak memory beyond the arguments, in bytes (arrays on the stack are not counted).
    pub memory: usize,
}

/// Requirements of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPlan {
    /// Shapes of the results.
    pub results: Vec<Vec<usize>>,
    /// Bytes of scratch memory, as far as known before the call, for OpenMP's default number of threads.
    pub arena_bytes: usize,
}

impl Compiled {
    /// Computes the shapes of the results, for the shapes of the parameters and sizes given by name.
    ///
    /// # Errors
    ///
    /// Shapes or sizes that disagree with the entry's declaration.
    pub fn plan(&self, params: &[&[usize]], sizes: &[(&str, i64)]) -> Result<CallPlan, CallError> {
        let signature = self.signature();
        let expected = signature.params().count();
        if params.len() != expected {
            let message = format!("`{}` takes {expected} parameters, but {} are given", signature.name, params.len());
            return Err(CallError::new(ErrorKind::Call, message));
        }
        let mut views: Vec<View> = Vec::with_capacity(signature.tensors.len());
        for (k, t) in signature.tensors.iter().enumerate() {
            let shape = match params.get(k) {
                Some(shape) => shape.iter().map(|d| i64::try_from(*d).unwrap_or(i64::MAX)).collect(),
                None => vec![0; t.shape.len()],
            };
            views.push(View { dtype: t.dtype, shape, data: NonNull::dangling(), bytes: 0 });
        }
        let (arena_bytes, _) = self.enter_plan(&mut views, &self.size_values(sizes)?, 0)?;
        let results = signature.results().count();
        let results =
            views[expected..expected + results].iter().map(|v| v.shape.iter().map(|d| *d as usize).collect()).collect();
        Ok(CallPlan { results, arena_bytes })
    }

    /// Calls the entry. `args` are the parameters, then the results, in order; `sizes` are given by name. Arrays that
    /// the program makes are dropped.
    ///
    /// # Errors
    ///
    /// Arguments that the entry does not accept (nothing was run), or a run-time error of the program.
    pub fn call(&self, cx: &mut Context, args: &mut [Arg<'_>], sizes: &[(&str, i64)]) -> Result<CallReport, CallError> {
        Ok(self.call_making(cx, args, sizes)?.0)
    }

    /// Calls the entry as [`Compiled::call`] does, and returns the arrays that the program makes.
    ///
    /// # Errors
    ///
    /// Those of [`Compiled::call`].
    pub fn call_making(
        &self,
        cx: &mut Context,
        args: &mut [Arg<'_>],
        sizes: &[(&str, i64)],
    ) -> Result<(CallReport, Vec<Value>), CallError> {
        let sizes = self.size_values(sizes)?;
        let mut views = self.check(args)?;
        let planned_shapes = views.iter().map(|v| v.shape.clone()).collect::<Vec<_>>();
        let (arena_bytes, _) = self.enter_plan(&mut views, &sizes, cx.threads)?;
        for ((view, given), t) in views.iter().zip(planned_shapes).zip(&self.signature().tensors) {
            if let Some(d) = view.shape.iter().zip(&given).position(|(want, have)| want != have) {
                let message = format!(
                    "dimension {d} of `{}` has size {}, but `{}` is {}",
                    t.name, given[d], t.shape[d].text, view.shape[d]
                );
                return Err(CallError::new(ErrorKind::Shape, message));
            }
        }
        if cx.arena.as_ref().is_none_or(|a| a.layout.size() < arena_bytes) {
            cx.arena = None;
            cx.arena = Arena::new(arena_bytes);
        }
        let mut ctx = new_ctx(cx.threads);
        if let Some(lines) = &cx.lines {
            ctx.print = Some(print_line);
            ctx.print_data = std::ptr::from_ref(lines).cast_mut().cast();
        }
        if let Some(flag) = &cx.cancel {
            ctx.cancel = flag.as_ptr().cast_const();
        }
        match &cx.arena {
            Some(arena) => {
                ctx.arena = arena.data.as_ptr().cast();
                ctx.arena_capacity = arena.layout.size();
            }
            // A non-null arena of no capacity: the entry reports the tensor for which there is no memory.
            None if arena_bytes > 0 => ctx.arena = std::ptr::without_provenance_mut(64),
            None => {}
        }
        let mut tensors: Vec<Tensor> = views.iter_mut().map(tensor).collect();
        for (tensor, _) in
            tensors.iter_mut().zip(&self.signature().tensors).filter(|(_, sig)| sig.passing == Passing::Made)
        {
            tensor.data = std::ptr::null_mut();
        }
        let start = Instant::now();
        // SAFETY: the function has this type (`Compiled::load`). `ctx` and the tensors have the layout of `taffeta.h`;
        // shapes and data, borrowed by `args`, outlive the call. Types, sizes and the absence of aliases were checked,
        // so the entry reads and writes only inside the data: indices that are not proved in bounds are checked at run
        // time. The arena is at least as large as planned, or has no capacity, and then the entry does not touch it and
        // fails.
        // Arrays that it makes are those of `result_memory`, and on an error it frees them.
        let status = unsafe { (self.run)(&mut ctx, tensors.as_mut_ptr(), tensors.len(), sizes.as_ptr()) };
        let time = start.elapsed();
        if status != 0 {
            return Err(self.error(&ctx, status));
        }
        let made = self.signature().tensors.iter().zip(&tensors).zip(&views);
        let made = made.filter(|((sig, _), _)| sig.passing == Passing::Made);
        let made = made.map(|((sig, tensor), view)| taken(sig.dtype, tensor.data, view.shape[0] as usize)).collect();
        Ok((CallReport { time, memory: ctx.memory_peak }, made))
    }

    /// Calls the entry on values: writes `inout` parameters in place and allocates the results. The arrays that the
    /// program makes follow the results.
    ///
    /// # Errors
    ///
    /// Those of [`Compiled::call`]; results that do not fit in memory.
    pub fn call_values(
        &self,
        cx: &mut Context,
        params: &mut [Value],
        sizes: &[(&str, i64)],
    ) -> Result<(Vec<Value>, CallReport), CallError> {
        let shapes: Vec<&[usize]> = params.iter().map(Value::shape).collect();
        let plan = self.plan(&shapes, sizes)?;
        let mut results = Vec::with_capacity(plan.results.len());
        for (t, shape) in self.signature().results().zip(plan.results) {
            let message = || format!("no memory for `{}` of shape {shape:?}", t.name);
            let fits = taffeta_ast::value::element_count(&shape)
                .and_then(|n| n.checked_mul(t.dtype.size()))
                .is_some_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
            let value = if fits { Value::zeros(t.dtype, shape.clone()) } else { None };
            results.push(value.ok_or_else(|| CallError::new(ErrorKind::Memory, message()))?);
        }
        let passing: Vec<Passing> = self.signature().params().map(|t| t.passing).collect();
        let mut args: Vec<Arg<'_>> = Vec::new();
        for (value, passing) in params.iter_mut().zip(passing) {
            args.push(if passing == Passing::InOut { Arg::from(value) } else { Arg::from(&*value) });
        }
        args.extend(results.iter_mut().map(Arg::from));
        let (report, made) = self.call_making(cx, &mut args, sizes)?;
        drop(args);
        results.extend(made);
        Ok((results, report))
    }

    /// Returns the sizes in order, -1 where none is given.
    fn size_values(&self, given: &[(&str, i64)]) -> Result<Vec<i64>, CallError> {
        let signature = self.signature();
        if let Some((name, _)) = given.iter().find(|(name, _)| signature.sizes.iter().all(|s| s.name != *name)) {
            return Err(CallError::new(ErrorKind::Call, format!("`{}` has no size `{name}`", signature.name)));
        }
        signature
            .sizes
            .iter()
            .map(|s| match given.iter().find(|(name, _)| *name == s.name) {
                Some((name, v)) if *v < 0 => {
                    Err(CallError::new(ErrorKind::Size, format!("the size `{name}` is {v}, which is negative")))
                }
                Some((_, v)) => Ok(*v),
                None => Ok(-1),
            })
            .collect()
    }

    /// Checks the number of arguments, and their modes, types, ranks, alignment and aliasing.
    fn check(&self, args: &mut [Arg<'_>]) -> Result<Vec<View>, CallError> {
        let signature = self.signature();
        let expected = signature.tensors.len() - signature.made().count();
        if args.len() != expected {
            let message = format!(
                "{} arguments are given, but `{}` takes {expected} (parameters, then results)",
                args.len(),
                signature.name,
            );
            return Err(CallError::new(ErrorKind::Call, message));
        }
        let mut views = Vec::with_capacity(args.len());
        for (arg, t) in args.iter().zip(&signature.tensors) {
            let view = match arg {
                Arg::In(a) if t.passing == Passing::In => &a.view,
                Arg::In(_) => {
                    return Err(CallError::new(
                        ErrorKind::Call,
                        format!("expected a writable argument for `{}`, found a read-only one", t.name),
                    ));
                }
                Arg::Out(a) => &a.view,
            };
            check_view(view, t)?;
            views.push(view.clone());
        }
        for (k, t) in signature.tensors[..expected].iter().enumerate().filter(|(_, t)| t.passing != Passing::In) {
            if let Some(j) = (0..views.len()).find(|j| *j != k && overlap(&views[k], &views[*j])) {
                let message = format!("`{}` is written and shares memory with `{}`", t.name, signature.tensors[j].name);
                return Err(CallError::new(ErrorKind::Alias, message));
            }
        }
        views.extend(signature.made().map(|t| View {
            dtype: t.dtype,
            shape: vec![0],
            data: NonNull::dangling(),
            bytes: 0,
        }));
        Ok(views)
    }

    /// Runs the entry's plan function, which checks sizes, fills in the shapes of the results, and returns the bytes of
    /// scratch memory needed with this number of threads. No element is touched.
    fn enter_plan(&self, views: &mut [View], sizes: &[i64], threads: i32) -> Result<(usize, Ctx), CallError> {
        let mut ctx = new_ctx(threads);
        let mut tensors: Vec<Tensor> = views.iter_mut().map(tensor).collect();
        let mut arena_bytes = 0;
        // SAFETY: as in `call`; planning reads and writes only shapes, each of which has `ndim` elements.
        let status =
            unsafe { (self.plan)(&mut ctx, tensors.as_mut_ptr(), tensors.len(), sizes.as_ptr(), &mut arena_bytes) };
        if status != 0 { Err(self.error(&ctx, status)) } else { Ok((arena_bytes, ctx)) }
    }

    fn error(&self, ctx: &Ctx, status: i32) -> CallError {
        // SAFETY: the message starts as zeros, and C writes it with `vsnprintf`, which terminates it with a zero.
        let message = unsafe { CStr::from_ptr(ctx.message.as_ptr()) }.to_string_lossy().into_owned();
        let site = usize::try_from(ctx.site).ok().and_then(|k| self.signature().sites.get(k)).cloned();
        let place = site.as_ref().map_or(String::new(), |s| format!("{}:{}: ", s.file, s.line));
        let message = message.strip_prefix(&place).map_or(message.clone(), str::to_string);
        CallError { kind: ErrorKind::from_status(status), message, site: site.filter(|s| !s.file.is_empty()) }
    }
}

fn check_view(view: &View, t: &TensorSig) -> Result<(), CallError> {
    if view.dtype != t.dtype {
        let message = format!("`{}` has elements of type {}, expected {}", t.name, view.dtype, t.dtype);
        return Err(CallError::new(ErrorKind::DType, message));
    }
    if view.shape.len() != t.shape.len() {
        let message = format!("`{}` has {} dimensions, expected {}", t.name, view.shape.len(), t.shape.len());
        return Err(CallError::new(ErrorKind::Shape, message));
    }
    if view.bytes != 0 && !(view.data.as_ptr() as usize).is_multiple_of(t.dtype.size()) {
        return Err(CallError::new(ErrorKind::Layout, format!("`{}` is not aligned to its element type", t.name)));
    }
    Ok(())
}

fn overlap(a: &View, b: &View) -> bool {
    let (a0, b0) = (a.data.as_ptr() as usize, b.data.as_ptr() as usize);
    a.bytes != 0 && b.bytes != 0 && a0 < b0 + b.bytes && b0 < a0 + a.bytes
}

fn new_ctx(threads: i32) -> Ctx {
    // In a forked child, OpenMP would wait for threads of the parent. Libraries loaded before the fork detect it
    // themselves; those loaded later are told to use one thread.
    static CALLED_IN: OnceLock<u32> = OnceLock::new();
    let is_child = *CALLED_IN.get_or_init(std::process::id) != std::process::id();
    Ctx {
        abi: abi::ABI,
        threads: if is_child { 1 } else { threads },
        status: 0,
        line: 0,
        site: -1,
        arena_owner: abi::OWNER_CALLER,
        arena: std::ptr::null_mut(),
        arena_capacity: 0,
        memory_used: 0,
        memory_peak: 0,
        print: None,
        print_data: std::ptr::null_mut(),
        message: [0; abi::MESSAGE],
        flags: 0,
        device: 0,
        alloc: Some(result_memory),
        alloc_data: std::ptr::null_mut(),
        cancel: std::ptr::null(),
        stream: std::ptr::null_mut(),
    }
}

fn tensor(view: &mut View) -> Tensor {
    Tensor {
        dtype: abi::dtype(view.dtype),
        ndim: i32::try_from(view.shape.len()).unwrap_or(i32::MAX),
        shape: view.shape.as_mut_ptr(),
        strides: std::ptr::null(),
        data: view.data.as_ptr().cast::<c_void>(),
        levels: std::ptr::null(),
        fill: std::ptr::null(),
        n_levels: 0,
        owner: abi::OWNER_CALLER,
        n_stored: 0,
        alloc: None,
        alloc_data: std::ptr::null_mut(),
    }
}

/// Allocates, resizes or frees memory of results, as `taffeta_alloc_fn` prescribes and vectors of Rust do.
///
/// # Safety
///
/// `old` is null, or memory of `old_bytes` bytes from this function with the same alignment.
unsafe extern "C" fn result_memory(
    _: *mut c_void,
    old: *mut c_void,
    old_bytes: usize,
    bytes: usize,
    align: usize,
    zeroed: c_int,
) -> *mut c_void {
    let (Ok(before), Ok(after)) = (Layout::from_size_align(old_bytes, align), Layout::from_size_align(bytes, align))
    else {
        return std::ptr::null_mut();
    };
    let old = old.cast::<u8>();
    let new = match (old.is_null(), bytes) {
        (true, 0) => std::ptr::null_mut(),
        // SAFETY: the size is not 0.
        (true, _) if zeroed != 0 => unsafe { std::alloc::alloc_zeroed(after) },
        // SAFETY: as above.
        (true, _) => unsafe { std::alloc::alloc(after) },
        (false, 0) => {
            // SAFETY: the memory is from this function, with this layout.
            unsafe { std::alloc::dealloc(old, before) };
            std::ptr::null_mut()
        }
        // SAFETY: as above, and the new size, which a layout has, is not 0.
        (false, _) => unsafe { std::alloc::realloc(old, before, bytes) },
    };
    new.cast()
}

/// Takes an array that a program has made.
fn taken(dtype: DType, data: *mut c_void, len: usize) -> Value {
    macro_rules! taken {
        ($($kind:ident $t:ty),*) => {
            match dtype {
                // SAFETY: `result_memory` has allocated exactly `len` elements of this type, with its alignment, and
                // the program has written all of them (`bool` as 0 or 1) and gives the memory away.
                $(DType::$kind => Buffer::$kind(unsafe { Vec::from_raw_parts(data.cast::<$t>(), len, len) }),)*
            }
        };
    }
    let buffer = match data.is_null() || len == 0 {
        true => Buffer::zeros(dtype, 0),
        false => taken!(
            Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F16 half::f16,
            Bf16 half::bf16, F32 f32, F64 f64
        ),
    };
    let shape = vec![buffer.len()];
    Value::new(shape, buffer).unwrap_or_else(|| unreachable!("a vector has the length of its buffer"))
}
