//! What a gradient is asked for: the words of the language, which the front end reads and `autodiff` obeys.

/// Which derivative is asked for (language.md section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientKind {
    /// `grad(f, wrt)`: the gradients of the one scalar result.
    Grad,
    /// `value_and_grad(f, wrt)`: the results, and then those.
    ValueAndGrad,
    /// `vjp(f, wrt)`: with a seed for every result (and for the final value of every `inout` parameter) as further
    /// parameters: the gradients.
    Vjp,
    /// The results, and then those; programs cannot ask for it.
    ValueAndVjp,
    /// `jvp(f, wrt)`: with a tangent for every input as further parameters: the tangents of the results.
    Jvp,
    /// `jacobian(f, wrt, out)`: all partial derivatives of one result, in one tensor for every input.
    Jacobian,
}

impl GradientKind {
    /// As it is written in a program.
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

/// Which values that are made in loops are kept on a tape, and which are computed again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tape {
    /// What costs less.
    #[default]
    Auto,
    /// `tape="all"`: all that can be.
    All,
    /// `tape="none"`: none that need not be.
    None,
    /// `tape=["t", "u"]`: those of these tensors.
    Named(Vec<String>),
}
