//! Size inference: solves the sizes of a call from the shapes of its inputs.
//!
//! Solves dimensions such as `n`, `2*n` or `n + 1` for their single unknown size, over all inputs until a fixpoint,
//! then compares every dimension with its shape. A conflict names both inputs, their dimensions and both values. Runs
//! before the program and modifies nothing.

use crate::locate::Fault;
use taffeta_ast::Diagnostic;
use taffeta_codegen::signature::{Signature, Size, SizeOp, TensorSig};

/// Values of the sizes solved so far, each with its origin.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    values: Vec<Option<(i64, Origin)>>,
}

/// Origin of a size's value. Its text is built only for messages, since every call solves sizes.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// A value given by name.
    Given,
    /// A dimension of a parameter: position and dimension.
    Dimension(usize, usize),
}

impl Sizes {
    /// Creates the sizes given by name.
    pub fn given(signature: &Signature, given: &[(String, i64)]) -> Result<Sizes, Vec<Diagnostic>> {
        let mut sizes = Sizes { values: vec![None; signature.sizes.len()] };
        let mut errors = Vec::new();
        for (name, value) in given {
            match signature.sizes.iter().position(|s| s.name == *name) {
                None => errors.push(unknown_size(signature, name)),
                Some(_) if *value < 0 => errors
                    .push(Diagnostic::new("size::negative", format!("size `{name}` is {value}; sizes are 0 or more"))),
                Some(k) => match &sizes.values[k] {
                    Some((before, _)) if before != value => errors.push(Diagnostic::new(
                        "size::mismatch",
                        format!("size `{name}` is given as {before} and as {value}"),
                    )),
                    _ => sizes.values[k] = Some((*value, Origin::Given)),
                },
            }
        }
        if errors.is_empty() { Ok(sizes) } else { Err(errors) }
    }

    /// Adds the constraints of the input shapes. `shapes` has one entry per parameter, `None` while unknown.
    pub fn unify(&mut self, signature: &Signature, shapes: &[Option<Vec<usize>>]) -> Result<(), Vec<Fault>> {
        let mut known: Vec<ShapedParam<'_>> = Vec::new();
        let mut errors = Vec::new();
        for (position, (param, shape)) in signature.params().zip(shapes).enumerate() {
            match shape {
                Some(shape) if shape.len() == param.shape.len() => known.push(ShapedParam { position, param, shape }),
                Some(shape) => {
                    let (expected, found) = (param.shape.len(), shape.len());
                    let (expected, found) = (crate::io::dimensions(expected), crate::io::dimensions(found));
                    let message = format!("parameter `{}` has {expected}, but its input has {found}", param.name);
                    errors.push(Fault::of(&param.name, None, Diagnostic::new("data::rank", message)));
                }
                None => {}
            }
        }
        // Solve plain sizes first: `n` is a better witness than `2*n`.
        let alone = |s: &Size| matches!(s, Size::Param(_));
        for only_alone in [true, false] {
            while self.solve_once(&known, |s| alone(s) || !only_alone) {}
        }
        let filled = self.filled();
        for ShapedParam { param, shape, .. } in &known {
            for (d, found) in shape.iter().enumerate() {
                errors.extend(self.compare(signature, &filled, param, d, *found));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Solves dimensions with a single unknown size, one after the other, among those that `admit` selects. Returns
    /// whether a size was solved.
    fn solve_once(&mut self, known: &[ShapedParam<'_>], admit: impl Fn(&Size) -> bool) -> bool {
        let mut progress = false;
        for ShapedParam { position, param, shape } in known {
            for (d, found) in shape.iter().enumerate() {
                let Some(size) = param.shape[d].value.as_ref().filter(|s| admit(s)) else { continue };
                let Some(Linear { unknown: Some((k, factor)), constant }) = linear(size, &self.values) else {
                    continue;
                };
                let Some(rest) = i64::try_from(*found).ok().and_then(|f| f.checked_sub(constant)) else { continue };
                if factor != 0 && rest.checked_rem(factor) == Some(0) && rest / factor >= 0 {
                    self.values[k] = Some((rest / factor, Origin::Dimension(*position, d)));
                    progress = true;
                }
            }
        }
        progress
    }

    /// Compares dimension `d` of a parameter with the solved sizes; `found` is its size in the input. `filled` are the
    /// sizes as [`Sizes::filled`] returns them.
    fn compare(
        &self,
        signature: &Signature,
        filled: &[i64],
        param: &TensorSig,
        d: usize,
        found: usize,
    ) -> Option<Fault> {
        let dim = &param.shape[d];
        let size = dim.value.as_ref()?;
        let expected = match self.knows(size) {
            true => size.eval(filled)?,
            // An unsolved size either has no value that yields this dimension, or is reported by `complete`.
            false => {
                let Linear { unknown: Some((_, factor)), constant } = linear(size, &self.values)? else { return None };
                let rest = i64::try_from(found).ok()?.checked_sub(constant)?;
                if factor != 0 && rest.checked_rem(factor) == Some(0) && rest / factor >= 0 {
                    return None;
                }
                let message =
                    format!("parameter `{}`, dimension {d}: no size satisfies `{}` = {found}", param.name, dim.text);
                return Some(Fault::of(&param.name, Some(d), Diagnostic::new("size::mismatch", message)));
            }
        };
        if i64::try_from(found) == Ok(expected) {
            return None;
        }
        let mut message = format!("parameter `{}`, dimension {d}: expected {expected}", param.name);
        if dim.text != expected.to_string() {
            message.push_str(&format!(" (`{}`)", dim.text));
        }
        message.push_str(&format!(", found {found}"));
        let mut diagnostic = Diagnostic::new("size::mismatch", message);
        for k in sizes_in(size) {
            if let Some((value, origin)) = &self.values[k] {
                let name = &signature.sizes[k].name;
                let origin = match origin {
                    Origin::Given => format!("`--size {name}={value}`"),
                    Origin::Dimension(p, d) => {
                        let param = signature.params().nth(*p).map_or("", |p| p.name.as_str());
                        format!("dimension {d} of `{param}`")
                    }
                };
                diagnostic = diagnostic.note(format!("`{name}` is {value} by {origin}"));
            }
        }
        diagnostic.notes.dedup();
        Some(Fault::of(&param.name, Some(d), diagnostic))
    }

    /// Returns all values with 0 for unknown sizes; valid only for expressions without unknown sizes.
    fn filled(&self) -> Vec<i64> {
        self.values.iter().map(|v| v.as_ref().map_or(0, |v| v.0)).collect()
    }

    /// Evaluates the size of a dimension; `None` if it mentions an unknown size.
    pub fn eval(&self, size: &Size) -> Option<i64> {
        if self.knows(size) { size.eval(&self.filled()) } else { None }
    }

    /// Returns whether every size mentioned in the expression is known.
    fn knows(&self, size: &Size) -> bool {
        match size {
            Size::Const(_) => true,
            Size::Param(k) => self.values.get(*k).is_some_and(Option::is_some),
            Size::Apply(_, args) => args.iter().all(|a| self.knows(a)),
        }
    }

    /// Returns the known sizes by name.
    pub(crate) fn known(&self, signature: &Signature) -> impl Iterator<Item = (String, i64)> {
        let known = signature.sizes.iter().zip(&self.values);
        known.filter_map(|(s, v)| Some((s.name.clone(), v.as_ref()?.0)))
    }

    /// Returns the shape of a parameter or result; `None` if a dimension is unknown, negative or overflows.
    pub fn shape(&self, tensor: &TensorSig) -> Option<Vec<usize>> {
        tensor.shape.iter().map(|d| usize::try_from(self.eval(d.value.as_ref()?)?).ok()).collect()
    }

    /// Returns all values, in the signature's order.
    ///
    /// # Errors
    ///
    /// One diagnostic that lists the sizes that no input or name determines.
    pub fn complete(&self, signature: &Signature) -> Result<Vec<i64>, Diagnostic> {
        let missing: Vec<&str> = signature
            .sizes
            .iter()
            .zip(&self.values)
            .filter(|(_, v)| v.is_none())
            .map(|(s, _)| s.name.as_str())
            .collect();
        if missing.is_empty() { Ok(self.filled()) } else { Err(unfixed(&missing)) }
    }
}

/// Parameter with a known shape.
struct ShapedParam<'s> {
    /// Index of the parameter.
    position: usize,
    param: &'s TensorSig,
    shape: &'s [usize],
}

/// Creates the diagnostic for sizes that no input determines.
pub fn unfixed(names: &[&str]) -> Diagnostic {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    let flags: Vec<String> = names.iter().map(|n| format!("--size {n}=N")).collect();
    let what = if names.len() == 1 { "size" } else { "sizes" };
    Diagnostic::new("size::unknown", format!("no input fixes the {what} {}", quoted.join(", ")))
        .help(format!("give {}", flags.join(" ")))
}

/// Creates the diagnostic for a size that the entry does not have.
fn unknown_size(signature: &Signature, name: &str) -> Diagnostic {
    let names: Vec<&str> = signature.sizes.iter().map(|s| s.name.as_str()).collect();
    let d = Diagnostic::new("size::name", format!("`{}` has no size `{name}`", signature.name));
    match taffeta_ast::spelling::nearest(name, names.iter().copied()) {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None if names.is_empty() => d.help("it has no sizes"),
        None => d.help(format!("its sizes are {}", names.join(", "))),
    }
}

/// Iterates over the size parameters of an expression.
fn sizes_in(size: &Size) -> Box<dyn Iterator<Item = usize> + '_> {
    match size {
        Size::Const(_) => Box::new(std::iter::empty()),
        Size::Param(k) => Box::new(std::iter::once(*k)),
        Size::Apply(_, args) => Box::new(sizes_in(&args[0]).chain(sizes_in(&args[1]))),
    }
}

/// Linear form `factor * unknown + constant`.
struct Linear {
    unknown: Option<(usize, i64)>,
    constant: i64,
}

/// Converts an expression to linear form; `None` if it has several unknown sizes or is not linear.
fn linear(size: &Size, values: &[Option<(i64, Origin)>]) -> Option<Linear> {
    let constant = |constant| Some(Linear { unknown: None, constant });
    match size {
        Size::Const(v) => constant(*v),
        Size::Param(k) => match values.get(*k)? {
            Some((v, _)) => constant(*v),
            None => Some(Linear { unknown: Some((*k, 1)), constant: 0 }),
        },
        Size::Apply(op, args) => {
            let (a, b) = (linear(&args[0], values)?, linear(&args[1], values)?);
            match (op, a.unknown, b.unknown) {
                (_, None, None) => {
                    let fixed = Box::new([Size::Const(a.constant), Size::Const(b.constant)]);
                    constant(Size::Apply(*op, fixed).eval(&[])?)
                }
                (SizeOp::Add, u, None) | (SizeOp::Add, None, u) => {
                    Some(Linear { unknown: u, constant: a.constant.checked_add(b.constant)? })
                }
                (SizeOp::Sub, u, None) => Some(Linear { unknown: u, constant: a.constant.checked_sub(b.constant)? }),
                (SizeOp::Sub, None, Some((k, f))) => {
                    Some(Linear { unknown: Some((k, f.checked_neg()?)), constant: a.constant.checked_sub(b.constant)? })
                }
                (SizeOp::Mul, Some((k, f)), None) => Some(Linear {
                    unknown: Some((k, f.checked_mul(b.constant)?)),
                    constant: a.constant.checked_mul(b.constant)?,
                }),
                (SizeOp::Mul, None, Some((k, f))) => Some(Linear {
                    unknown: Some((k, f.checked_mul(a.constant)?)),
                    constant: a.constant.checked_mul(b.constant)?,
                }),
                _ => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taffeta_ast::DType;
    use taffeta_codegen::signature::{Dim, Passing, SizeParam};

    /// Builds a signature from `name: dimensions`, where a dimension is a number, a size, or `factor*size`.
    fn signature(params: &[(&str, &[&str])]) -> Signature {
        let mut sizes: Vec<SizeParam> = Vec::new();
        let mut size = |text: &str| -> Size {
            if let Ok(v) = text.parse() {
                return Size::Const(v);
            }
            let k = sizes.iter().position(|s| s.name == text).unwrap_or_else(|| {
                sizes.push(SizeParam { name: text.into(), known: None });
                sizes.len() - 1
            });
            Size::Param(k)
        };
        let tensors = params
            .iter()
            .map(|(name, dims)| TensorSig {
                name: (*name).into(),
                dtype: DType::F32,
                passing: Passing::In,
                shape: dims
                    .iter()
                    .map(|d| {
                        let value = match d.split_once('*') {
                            Some((a, b)) => Size::Apply(SizeOp::Mul, Box::new([size(a), size(b)])),
                            None => size(d),
                        };
                        Dim { text: (*d).into(), value: Some(value) }
                    })
                    .collect(),
                storage: None,
                of: None,
            })
            .collect();
        let (name, c_name) = ("f".to_string(), "taffeta_f".to_string());
        Signature { name, c_name, doc: None, sizes, tensors, sites: vec![], logical: None }
    }

    fn check(
        params: &[(&str, &[&str])],
        shapes: &[Option<&[usize]>],
        given: &[(&str, i64)],
    ) -> Result<Vec<i64>, String> {
        let signature = signature(params);
        let given: Vec<(String, i64)> = given.iter().map(|(n, v)| ((*n).into(), *v)).collect();
        let text = |d: Vec<Diagnostic>| {
            d.iter().map(|d| format!("{} {:?}", d.message, d.notes)).collect::<Vec<_>>().join("; ")
        };
        let mut sizes = Sizes::given(&signature, &given).map_err(text)?;
        let shapes: Vec<Option<Vec<usize>>> = shapes.iter().map(|s| s.map(<[usize]>::to_vec)).collect();
        let unified = sizes.unify(&signature, &shapes);
        unified.map_err(|faults| text(faults.into_iter().map(|f| f.diagnostic).collect()))?;
        sizes.complete(&signature).map_err(|d| text(vec![d]))
    }

    #[test]
    fn sizes_come_from_shapes_in_any_order() {
        assert_eq!(check(&[("x", &["n", "m"]), ("y", &["m"])], &[Some(&[2, 3]), Some(&[3])], &[]), Ok(vec![2, 3]));
        assert_eq!(check(&[("x", &["2*n"]), ("y", &["n"])], &[Some(&[6]), None], &[]), Ok(vec![3]));
        assert_eq!(check(&[("x", &["n*m"]), ("y", &["m"])], &[Some(&[6]), Some(&[2])], &[]), Ok(vec![3, 2]));
        assert_eq!(check(&[("x", &["n"])], &[None], &[("n", 5)]), Ok(vec![5]));
    }

    #[test]
    fn conflicts_name_both_sides() {
        assert_eq!(
            check(&[("x", &["n"]), ("y", &["n"])], &[Some(&[3]), Some(&[4])], &[]).unwrap_err(),
            "parameter `y`, dimension 0: expected 3 (`n`), found 4 [\"`n` is 3 by dimension 0 of `x`\"]"
        );
        assert_eq!(
            check(&[("adj", &["n", "3"])], &[Some(&[9, 4])], &[]).unwrap_err(),
            "parameter `adj`, dimension 1: expected 3, found 4 []"
        );
        assert_eq!(
            check(&[("x", &["n"])], &[Some(&[3])], &[("n", 4)]).unwrap_err(),
            "parameter `x`, dimension 0: expected 4 (`n`), found 3 [\"`n` is 4 by `--size n=4`\"]"
        );
        assert_eq!(
            check(&[("x", &["2*n"])], &[Some(&[5])], &[]).unwrap_err(),
            "parameter `x`, dimension 0: no size satisfies `2*n` = 5 []"
        );
    }

    #[test]
    fn missing_and_misspelt_sizes_are_reported() {
        assert_eq!(check(&[("x", &["n", "m"])], &[None], &[]).unwrap_err(), "no input fixes the sizes `n`, `m` []");
        assert_eq!(check(&[("x", &["feats"])], &[None], &[("feat", 1)]).unwrap_err(), "`f` has no size `feat` []");
        assert!(check(&[("x", &["n"])], &[None], &[("n", -1)]).unwrap_err().contains("0 or more"));
        assert!(check(&[("x", &["n"])], &[None], &[("n", 1), ("n", 2)]).unwrap_err().contains("given as 1 and as 2"));
    }
}
