//! Loads a compiled entry.

#![allow(unsafe_code)] // dlopen runs code of the library, and its symbols have the types that we say

use crate::abi::{PlanFn, RunFn};
use crate::signature::Signature;
use libloading::Library;
use std::ffi::{CStr, c_char};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use taffeta_ast::Diagnostic;

/// `taffeta_products`
type ProductsFn = unsafe extern "C" fn() -> *const c_char;

/// An entry in memory, ready to be called. It may be called by several threads at once, each with its own
/// [`Context`](crate::call::Context).
#[derive(Debug)]
pub struct Compiled {
    pub(crate) run: RunFn,
    pub(crate) plan: PlanFn,
    products: Option<ProductsFn>,
    signature: Signature,
    path: PathBuf,
    // Never unloaded: with it would go OpenMP's run-time library, whose threads wait inside of it for the next loop.
    _library: ManuallyDrop<Library>,
}

impl Compiled {
    /// Loads the library at `path`. From then on calls are safe, because of what is promised here.
    ///
    /// # Safety
    ///
    /// - The file is what [`Toolchain::shared`](crate::toolchain::Toolchain::shared) made of the C that
    ///   [`crate::c::emit`] gave for a program (or for several, in one file), and `signature` came with that C. Loading
    ///   any other library runs whatever it holds; a signature of another program calls functions with arguments that
    ///   they do not take.
    /// - Nobody whom the user does not trust could have written the file, or put another one in its place, since then.
    ///
    /// # Errors
    ///
    /// A file that the system's loader does not take, or that lacks the entry's functions.
    pub unsafe fn load(path: &Path, signature: Signature) -> Result<Compiled, Diagnostic> {
        let refuse = |e: libloading::Error| {
            Diagnostic::new("internal::load", format!("cannot load `{}`: {e}", path.display()))
                .help("if the file was changed or made on another machine, remove it, and it will be compiled again")
        };
        // SAFETY: the library is C that we generated, as the caller promises: it has no initialisers of its own, and
        // those of libm and libgomp, which it depends on, may run at any time.
        let library = unsafe { Library::new(path) }.map_err(refuse)?;
        // SAFETY: generated code defines these two symbols with exactly these types (`c/entry.rs`), under the name in
        // the signature that came with it.
        let (run, plan) = unsafe {
            let run = *library.get::<RunFn>(signature.c_name.as_bytes()).map_err(refuse)?;
            let plan = *library.get::<PlanFn>(format!("{}_plan", signature.c_name).as_bytes()).map_err(refuse)?;
            (run, plan)
        };
        // SAFETY: what `taffeta_gemm.h` defines, where the code includes it.
        let products = unsafe { library.get::<ProductsFn>(b"taffeta_products") }.ok().map(|f| *f);
        Ok(Compiled { run, plan, products, signature, path: path.to_path_buf(), _library: ManuallyDrop::new(library) })
    }

    /// What callers must know.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// What does its matrix products (`as_lib`): a library's name, or `"own kernel"`. `None` if it has none. Looks for
    /// the library, as the first product does.
    pub fn products(&self) -> Option<String> {
        // SAFETY: the function takes nothing, and returns a text that lives as long as the library or the environment.
        let name = unsafe { CStr::from_ptr((self.products?)()) };
        Some(if name.is_empty() { "own kernel".to_string() } else { name.to_string_lossy().into_owned() })
    }

    /// The library's file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
