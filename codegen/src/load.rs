//! Loading of compiled entries: opens a shared library and looks up the functions that its [`Signature`] names. The
//! calls of the resulting [`Compiled`] are in [`crate::call`].

#![allow(unsafe_code)] // dlopen runs code of the library, and its symbols are assumed to have the declared types

use crate::abi::{PlanFn, RunFn};
use crate::signature::Signature;
use libloading::Library;
use std::ffi::{CStr, c_char};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use taffeta_ast::Diagnostic;

/// Type of `taffeta_products`, which names the implementation of matrix products.
type ProductsFn = unsafe extern "C" fn() -> *const c_char;

/// A loaded entry, ready to be called. Several threads may call it at once, each with its own
/// [`Context`](crate::call::Context).
#[derive(Debug)]
pub struct Compiled {
    pub(crate) run: RunFn,
    pub(crate) plan: PlanFn,
    products: Option<ProductsFn>,
    signature: Signature,
    path: PathBuf,
    // Never unloaded: unloading would take OpenMP's run-time library along, whose threads wait in its code for the next
    // loop.
    _library: ManuallyDrop<Library>,
}

impl Compiled {
    /// Loads the library at `path`. Later calls are safe because of the promises made here.
    ///
    /// # Safety
    ///
    /// - [`Toolchain::shared`](crate::toolchain::Toolchain::shared) made the file from the C that [`crate::c::emit`]
    ///   returned for a program (or for several, in one file), and `signature` came with that C. Any other library runs
    ///   arbitrary code; a signature of another program calls functions with arguments that they do not take.
    /// - Nobody whom the user does not trust can have written or replaced the file since.
    ///
    /// # Errors
    ///
    /// The system's loader refuses the file, or the entry's functions are missing.
    pub unsafe fn load(path: &Path, signature: Signature) -> Result<Compiled, Diagnostic> {
        let refuse = |e: libloading::Error| {
            Diagnostic::new("internal::load", format!("cannot load `{}`: {e}", path.display()))
                .help("if the file was changed or made on another machine, remove it to compile it again")
        };
        // SAFETY: by the caller's promise the library is generated C: it has no initialisers of its own, and those of
        // its dependencies libm and libgomp may run at any time.
        let library = unsafe { Library::new(path) }.map_err(refuse)?;
        // SAFETY: generated code defines these two symbols with exactly these types (`c/entry.rs`), under the name in
        // the signature that came with it.
        let (run, plan) = unsafe {
            let run = *library.get::<RunFn>(signature.c_name.as_bytes()).map_err(refuse)?;
            let plan = *library.get::<PlanFn>(format!("{}_plan", signature.c_name).as_bytes()).map_err(refuse)?;
            (run, plan)
        };
        // SAFETY: `taffeta_gemm.h` defines the symbol with this type, in libraries that include it.
        let products = unsafe { library.get::<ProductsFn>(b"taffeta_products") }.ok().map(|f| *f);
        Ok(Compiled { run, plan, products, signature, path: path.to_path_buf(), _library: ManuallyDrop::new(library) })
    }

    /// Returns the entry's interface.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Returns the implementation of matrix products (`as_lib`): a library's name, or `"own kernel"`; `None` if the
    /// program has no products. Looks for the library, as the first product does.
    pub fn products(&self) -> Option<String> {
        // SAFETY: the function takes no arguments, and returns a string that lives as long as the library or the
        // environment.
        let name = unsafe { CStr::from_ptr((self.products?)()) };
        Some(if name.is_empty() { "own kernel".to_string() } else { name.to_string_lossy().into_owned() })
    }

    /// Returns the library's file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
