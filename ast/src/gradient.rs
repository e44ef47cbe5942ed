//! Requests for gradients: the language's options, which the front end reads and `autodiff` implements.

/// Kind of derivative (language.md section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientKind {
    /// `grad(f, wrt)`: gradients of the one scalar result.
    Grad,
    /// `value_and_grad(f, wrt)`: the results, then the gradients.
    ValueAndGrad,
    /// `vjp(f, wrt)`: gradients, with a seed for every result (and for the final value of every `inout` parameter) as
    /// further parameters.
    Vjp,
    /// The results, then the gradients of `vjp`; not available to programs.
    ValueAndVjp,
    /// `jvp(f, wrt)`: tangents of the results, with a tangent for every input as further parameters.
    Jvp,
    /// `jacobian(f, wrt, out)`: all partial derivatives of one result, in one tensor per input.
    Jacobian,
}

impl GradientKind {
    /// Returns the name that programs use.
    pub fn name(self) -> &'static str {
        match self {
            GradientKind::Grad => "grad",
            GradientKind::ValueAndGrad => "value_and_grad",
            GradientKind::Vjp | GradientKind::ValueAndVjp => "vjp",
            GradientKind::Jvp => "jvp",
            GradientKind::Jacobian => "jacobian",
        }
    }
}

/// Choice of the loop values that are saved on a tape; all others are recomputed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tape {
    /// The cheaper of both for each value.
    #[default]
    Auto,
    /// `tape="all"`: every value that can be saved.
    All,
    /// `tape="none"`: only values that cannot be recomputed.
    None,
    /// `tape=["t", "u"]`: values of these tensors.
    Named(Vec<String>),
}
