//! Reading of arrays that several layouts have, with errors that name the array.

use super::archive::Archive;
use crate::io::convert;
use crate::io::file::file_error;
use crate::io::want::{Want, shape_text};
use std::path::Path;
use taffeta_ast::spelling::counted;
use taffeta_ast::{Buffer, Diagnostic, Literal, Value};

/// Archive of a sparse tensor.
pub(super) struct SparseArchive<'a> {
    path: &'a Path,
    /// Name of the layout.
    pub(super) layout: String,
    archive: Archive<'a>,
}

impl<'a> SparseArchive<'a> {
    /// Opens an archive; `None` if it lacks the arrays that all sparse tensors have.
    pub(super) fn open(path: &'a Path) -> Result<Option<SparseArchive<'a>>, Diagnostic> {
        let mut archive = Archive::open(path)?;
        if !["format", "shape", "data"].iter().all(|key| archive.has(key)) {
            return Ok(None);
        }
        let layout = archive.text("format")?;
        Ok(Some(SparseArchive { path, layout, archive }))
    }

    /// Creates the diagnostic for a faulty archive.
    pub(super) fn bad(&self, what: impl std::fmt::Display) -> Diagnostic {
        file_error("data::format", self.path, what)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.archive.has(key)
    }

    pub(super) fn text(&mut self, key: &str) -> Result<String, Diagnostic> {
        self.archive.text(key)
    }

    /// Reads an array in the file's type.
    pub(super) fn array(&mut self, key: &str) -> Result<Value, Diagnostic> {
        if !self.archive.has(key) {
            return Err(self.bad(format!("array `{key}` of the `{}` tensor is missing", self.layout)));
        }
        self.archive.array(key)
    }

    /// Reads integers from 0 to below `most`.
    pub(super) fn integers(&mut self, key: &str, most: i64) -> Result<Vec<i64>, Diagnostic> {
        let list = self.any_integers(key)?;
        match list.iter().find(|v| **v < 0 || **v >= most) {
            Some(v) => Err(self.bad(format!("{v} in `{key}` is out of range: 0 to {}", most - 1))),
            None => Ok(list),
        }
    }

    /// Reads integers in one dimension; only `coords` may have two.
    pub(super) fn any_integers(&mut self, key: &str) -> Result<Vec<i64>, Diagnostic> {
        let value = self.array(key)?;
        if value.shape().len() > 1 && key != "coords" {
            return Err(self.bad(format!("expected `{key}` to have one dimension, found {}", value.shape().len())));
        }
        let data = match value.into_parts().1 {
            Buffer::I64(list) => return Ok(list),
            data => data,
        };
        let one = |k| data.get_int(k).and_then(|v| i64::try_from(v).ok());
        let list: Option<Vec<i64>> = (0..data.len()).map(one).collect();
        list.ok_or_else(|| self.bad(format!("expected integers within i64 in `{key}`, found {}", data.dtype())))
    }

    /// Reads `data`, which has `ndim` dimensions: its shape and its elements.
    pub(super) fn data(&mut self, ndim: usize) -> Result<(Vec<usize>, Buffer), Diagnostic> {
        let (shape, data) = self.array("data")?.into_parts();
        match shape.len() == ndim {
            true => Ok((shape, data)),
            false => Err(self.bad(format!(
                "expected {} of `data` in a `{}` tensor, found {}",
                counted(ndim, "dimension"),
                self.layout,
                shape.len()
            ))),
        }
    }

    /// Returns the shape of a matrix.
    pub(super) fn matrix(&self, shape: &[usize]) -> Result<[usize; 2], Diagnostic> {
        <[usize; 2]>::try_from(shape).map_err(|_| {
            self.bad(format!("expected 2 sizes in `shape` of a `{}` tensor, found {}", self.layout, shape.len()))
        })
    }

    /// Reads the fill, in the file's type.
    pub(super) fn fill(&mut self) -> Result<Value, Diagnostic> {
        let value = self.array("fill")?;
        match value.shape() {
            [] => Ok(value),
            shape => {
                let found = shape_text(shape);
                Err(self.bad(format!("expected a number in `fill`, found an array of shape {found}")))
            }
        }
    }

    /// Checks that the fill equals the parameter's.
    pub(super) fn check_fill(&mut self, want: &Want) -> Result<(), Diagnostic> {
        let value = self.fill()?;
        let wanted = want.fill.unwrap_or(Literal::zero(want.dtype));
        let found = convert::to(value, want, &self.archive.shown("fill").display().to_string())?.data().get(0);
        let nan = |l: Literal| matches!(l, Literal::Float(v) if v.is_nan());
        if found == wanted || nan(found) && nan(wanted) {
            return Ok(());
        }
        let shown = |l: Literal| match l {
            Literal::Bool(b) => b.to_string(),
            Literal::Int(v) => v.to_string(),
            Literal::Float(v) => v.to_string(),
        };
        let (found, wanted) = (shown(found), shown(wanted));
        let what = format!("the fill of the file is {found}, but the fill of parameter `{}` is {wanted}", want.name);
        Err(file_error("data::storage", self.path, what).help(format!("declare the parameter with `fill={found}`")))
    }
}
