//! Annotations of parameters, results and locals (`f32[n, m]`, `inout[f32[n]]`, `(f32[n], i32)`), the sizes that they
//! bind, and the conversion of arguments and results of inlined calls to them.

use super::broadcast::show;
use super::conversion::differs;
use super::func::{is_entry, is_static_annotation};
use super::report::quotable;
use super::scope::Role;
use super::storage::Storage;
use super::value::{Lazy, Value, View};
use super::{Elab, R, Stop, axis};
use crate::syntax::{self, BinOp, ExprKind, Function};
use taffeta_ast::format::Format;
use taffeta_ast::spelling::counted;
use taffeta_ast::{DType, Diagnostic, Expr, Span};

/// Parts of an annotation: element type, sizes and storage as written, and whether it is `inout`.
pub(crate) struct Annotation<'e> {
    pub(crate) dtype: DType,
    pub(crate) dims: &'e [syntax::Expr],
    pub(crate) inout: bool,
    /// Storage after `@`.
    pub(crate) storage: Option<&'e syntax::Expr>,
}

/// Type of a tensor: element type, shape and storage format.
pub(crate) struct TensorType {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<Expr>,
    pub(crate) format: Format,
}

/// Splits the annotation of the results into one for each.
pub(crate) fn results(returns: &syntax::Expr) -> &[syntax::Expr] {
    match &returns.kind {
        ExprKind::Tuple(items) => items,
        ExprKind::None => &[],
        _ => std::slice::from_ref(returns),
    }
}

/// Collects the names in a size, in order.
fn size_names(e: &syntax::Expr, out: &mut Vec<(String, Span)>) {
    match &e.kind {
        ExprKind::Name(n) => out.push((n.clone(), e.span)),
        ExprKind::Binary(_, a, b) => {
            size_names(a, out);
            size_names(b, out);
        }
        ExprKind::Unary(_, a) => size_names(a, out),
        ExprKind::Call { args, .. } => args.iter().for_each(|a| size_names(&a.value, out)),
        ExprKind::IfElse { cond, then, otherwise } => {
            for part in [cond, then, otherwise] {
                size_names(part, out);
            }
        }
        ExprKind::Subscript(a, items) => {
            size_names(a, out);
            items.iter().for_each(|i| size_names(i, out));
        }
        _ => {}
    }
}

impl Elab<'_> {
    /// Splits an annotation into its parts.
    pub(crate) fn annotation<'e>(&mut self, e: &'e syntax::Expr) -> R<Annotation<'e>> {
        match &e.kind {
            ExprKind::Name(n) => {
                let dtype = self.annotated_type(n, e.span)?;
                Ok(Annotation { dtype, dims: &[], inout: false, storage: None })
            }
            ExprKind::Subscript(of, items) => {
                let ExprKind::Name(n) = &of.kind else { return self.not_a_type(e.span) };
                if n == "inout" {
                    let [inner] = items.as_slice() else { return self.not_a_type(e.span) };
                    let inner = self.annotation(inner)?;
                    return Ok(Annotation { inout: true, ..inner });
                }
                let dtype = self.annotated_type(n, of.span)?;
                let dims = match items.as_slice() {
                    [syntax::Expr { kind: ExprKind::Tuple(inner), .. }] => inner,
                    items => items,
                };
                if dims.len() > axis::MAX_NDIM {
                    let most = axis::MAX_NDIM;
                    return self.error("shape::rank", e.span, format!("a tensor has at most {most} dimensions"));
                }
                for d in dims {
                    match &d.kind {
                        ExprKind::Name(n) if n == "real" => {
                            return self.unsupported(d.span, "a continuous dimension (`real`)");
                        }
                        ExprKind::Slice { .. } | ExprKind::Ellipsis | ExprKind::None => {
                            return self.error_help(
                                "annotation::size",
                                d.span,
                                "expected a size: an integer expression over names",
                                "give every dimension a size: `f32[n, 3]`",
                            );
                        }
                        _ => {}
                    }
                }
                Ok(Annotation { dtype, dims, inout: false, storage: None })
            }
            ExprKind::Binary(BinOp::MatMul, of, storage) => {
                let of = self.annotation(of)?;
                if of.storage.is_some() || of.inout {
                    return self.not_a_type(e.span);
                }
                Ok(Annotation { storage: Some(storage), ..of })
            }
            _ => self.not_a_type(e.span),
        }
    }

    fn annotated_type(&mut self, name: &str, span: Span) -> R<DType> {
        if let Some(d) = DType::parse(name) {
            return Ok(d);
        }
        // A static parameter or assignment may stand for a type.
        if self.frame().find(name).is_some()
            && let Value::DType(d) = self.lookup(name, span)?
        {
            return Ok(d);
        }
        let module = self.frame().module;
        if let Some(Value::DType(d)) = self.global(module, name)? {
            return Ok(d);
        }
        if Storage::find(name).is_some() || name == "format" {
            let text = format!("expected an element type, found the format `{name}`");
            let help = format!("write the element type first and the format last: `f64[n, m] @ {name}`");
            return self.error_help("annotation::type", span, text, help);
        }
        let all: Vec<String> = DType::ALL.iter().map(|d| d.name().to_string()).collect();
        let d = Diagnostic::new("annotation::type", format!("`{name}` is not an element type")).at(span);
        let near = match name {
            "float" | "float64" | "double" => Some("f64"),
            "float32" => Some("f32"),
            "float16" | "half" => Some("f16"),
            "int" | "int64" => Some("i64"),
            "int32" => Some("i32"),
            "uint8" | "byte" => Some("u8"),
            _ => super::nearest(name, all.iter()),
        };
        let d = match near {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help(format!("the element types are {}", all.join(" "))),
        };
        Err(self.report(d))
    }

    fn not_a_type<T>(&mut self, span: Span) -> R<T> {
        self.error_help(
            "annotation::form",
            span,
            "expected the type of a tensor",
            "write `f32`, `f32[n, m]`, `inout[f32[n]]` or `static`",
        )
    }

    /// Returns the type of an annotation whose names are all bound.
    pub(crate) fn tensor_type(&mut self, e: &syntax::Expr) -> R<TensorType> {
        let a = self.annotation(e)?;
        let mut shape = Vec::with_capacity(a.dims.len());
        for d in a.dims {
            shape.push(self.size(d)?);
        }
        let format = self.written_format(&a, &shape)?;
        Ok(TensorType { dtype: a.dtype, shape, format })
    }

    /// Evaluates a size: an integer expression over sizes and constants.
    pub(crate) fn size(&mut self, e: &syntax::Expr) -> R<Expr> {
        let v = self.eval(e)?;
        if let ExprKind::Name(name) = &e.kind
            && !v.is_tensor()
            && v.dtype().is_none()
        {
            return self.hidden_size(name, &v, e.span);
        }
        self.as_size(&v, e.span)
    }

    /// Reports a name in a shape that is bound to something other than a size in this file.
    fn hidden_size(&mut self, name: &str, v: &Value, span: Span) -> R<Expr> {
        let found = v.describe();
        let message = format!("expected the size `{name}`, found {found} of that name");
        let d = Diagnostic::new("shape::type", message).at(span).help("give the size another name");
        let d = match v {
            Value::Function(f) => d.label(self.function(*f).name.span, "defined here"),
            _ => d,
        };
        Err(self.report(d))
    }

    /// Converts a value to a size.
    pub(crate) fn as_size(&mut self, v: &Value, span: Span) -> R<Expr> {
        match v {
            Value::Int(i) if *i < 0 => self.error("shape::negative", span, format!("the size {i} is negative")),
            Value::Int(i) => match i64::try_from(*i) {
                Ok(i) => Ok(Expr::int(i)),
                Err(_) => self.error("shape::overflow", span, format!("the size {i} does not fit in 64 bits")),
            },
            v if v.is_weak_scalar() && v.dtype() == Some(DType::I64) => match v.lazy() {
                Some(l) => Ok(l.expr),
                None => self.not_a_size(v, span),
            },
            v => self.not_a_size(v, span),
        }
    }

    fn not_a_size<T>(&mut self, v: &Value, span: Span) -> R<T> {
        let integer = v.dtype().is_some_and(|d| d.is_int()) && v.shape().is_some_and(|s| s.is_empty());
        if integer {
            return self.error_help(
                "shape::data",
                span,
                "this size depends on values of tensors",
                "a tensor's shape is known before the program runs: use sizes of parameters, or `static` parameters",
            );
        }
        let found = v.describe();
        self.error("shape::type", span, format!("expected an integer expression over sizes, found {found}"))
    }

    /// Returns whether a name in a shape is bound already, as a size or as another value.
    pub(crate) fn is_bound_in_shape(&self, name: &str) -> bool {
        let frame = self.frame();
        frame.find(name).is_some() || self.program.modules[frame.module.0].globals.contains_key(name)
    }

    /// Returns the sizes that a function's annotations bind, in order of appearance.
    pub(crate) fn new_sizes(&mut self, f: &Function) -> R<Vec<(String, Span)>> {
        let mut names = Vec::new();
        let mut annotations: Vec<&syntax::Expr> = Vec::new();
        annotations.extend(f.params.iter().filter_map(|p| p.annotation.as_ref()).filter(|a| !is_static_annotation(a)));
        annotations.extend(f.returns.iter().flat_map(results));
        for a in annotations {
            for d in self.annotation(a)?.dims {
                size_names(d, &mut names);
            }
        }
        let mut out: Vec<(String, Span)> = Vec::new();
        for (name, span) in names {
            let parameter = f.params.iter().find(|p| p.name.text == name);
            if let Some(p) = parameter
                && p.annotation.as_ref().is_some_and(|a| !is_static_annotation(a))
            {
                let d = Diagnostic::new(
                    "shape::data",
                    format!("expected a size, found the parameter `{name}`, whose value is known only at run time"),
                )
                .at(span)
                .label(p.name.span, "declared here")
                .help(format!(
                    "leave out the parameter, so that `{name}` is the size of the dimension, or annotate it `static`"
                ));
                return Err(self.report(d));
            }
            if DType::parse(&name).is_some() && !self.is_bound_in_shape(&name) {
                return self.error_help(
                    "annotation::size",
                    span,
                    format!("expected a size, found the element type `{name}`"),
                    "give the size another name",
                );
            }
            if !out.iter().any(|(n, _)| *n == name) && !self.is_bound_in_shape(&name) {
                out.push((name, span));
            }
        }
        Ok(out)
    }

    /// Unifies the annotations of an inlined function with its arguments: binds sizes, compares shapes, converts types.
    pub(crate) fn bind_sizes(&mut self, f: &Function, args: &[(Value, Span)]) -> R<()> {
        let read_only = is_entry(f);
        let mut later: Vec<(&syntax::Expr, Expr, Span, String)> = Vec::new();
        for (p, (v, at)) in f.params.iter().zip(args) {
            let Some(annotation) = p.annotation.as_ref().filter(|a| !is_static_annotation(a)) else { continue };
            let a = self.annotation(annotation)?;
            let name = &p.name.text;
            let Some(shape) = v.shape() else {
                let found = v.describe();
                return self.error(
                    "call::argument",
                    *at,
                    format!("expected a tensor for `{name}` of `{}`, found {found}", f.name.text),
                );
            };
            if shape.len() != a.dims.len() {
                let (found, what) = (v.describe(), self.quote(*at));
                let rank = counted(a.dims.len(), "dimension");
                return self.error(
                    "call::argument",
                    *at,
                    format!("{what} is {found}, but the parameter `{name}` of `{}` has {rank}", f.name.text),
                );
            }
            let role = self.frame().find(name).map_or(Role::Param(None), |(_, b)| b.role);
            if let (true, Role::Param(Some((frame, site)))) = (a.inout && self.is_nameable(v), role) {
                return Err(Stop::Restart { frame, site });
            }
            let v = self.in_storage(v, &a, name, *at)?;
            let converted = self.converted_argument(&v, &a, name, *at, read_only)?;
            self.bind(name, converted, role, p.name.span);
            for (d, (dim, n)) in a.dims.iter().zip(&shape).enumerate() {
                match &dim.kind {
                    ExprKind::Name(size) if !self.is_bound_in_shape(size) => {
                        self.bind(size, Value::weak(n.clone()), Role::Size, dim.span);
                    }
                    _ => {
                        let what = format!("dimension {d} of {}", self.quote_argument(*at, name, &f.name.text));
                        later.push((dim, n.clone(), *at, what));
                    }
                }
            }
        }
        for (dim, n, at, what) in later {
            let expected = self.size(dim)?;
            self.same_size(&expected, &n, &what, at)?;
        }
        Ok(())
    }

    /// Returns the format of a result or a local tensor: dense, that of another tensor (`pattern(A)`), or one with a
    /// pattern of its own.
    pub(crate) fn written_format(&mut self, a: &Annotation<'_>, shape: &[Expr]) -> R<Format> {
        let Some(storage) = a.storage else { return Ok(Format::dense(shape.len())) };
        if let Value::Storage(Storage::Pattern(of)) = self.storage_value(storage)? {
            return self.followed(&of, shape, storage.span);
        }
        let format = self.storage(storage, shape.len(), a.dtype)?;
        self.squares(&format, shape, storage.span)?;
        Ok(format)
    }

    /// Returns an argument in the storage of its parameter, converted if it has another one.
    fn in_storage(&mut self, v: &Value, a: &Annotation<'_>, name: &str, at: Span) -> R<Value> {
        let Some(storage) = a.storage else { return Ok(v.clone()) };
        if let Value::Storage(Storage::Pattern(of)) = self.storage_value(storage)? {
            self.shares_pattern((v, &of.format), &of.name, name, at)?;
            return Ok(v.clone());
        }
        let wanted = self.storage(storage, a.dims.len(), a.dtype)?;
        if !differs(v, &wanted, a.dtype) {
            return Ok(v.clone());
        }
        let found = v.format();
        if a.inout {
            let text = format!("expected a tensor in `{wanted}` for the written parameter `{name}`, found `{found}`");
            return self.error("call::argument", at, text);
        }
        let ty = TensorType { dtype: a.dtype, shape: v.shape().unwrap_or_default(), format: wanted };
        self.converted(v, ty, (name, &format!("the argument for `{name}`")), at)
    }

    /// Quotes an argument for messages: the user's text, and its parameter.
    pub(crate) fn quote_argument(&self, at: Span, param: &str, function: &str) -> String {
        let text = self.program.sources().text(at);
        if self.in_library(at.file) || !quotable(text) {
            return format!("`{param}` of `{function}`");
        }
        if text == param { format!("`{text}`") } else { format!("`{text}` (`{param}` of `{function}`)") }
    }

    pub(crate) fn same_size(&mut self, expected: &Expr, found: &Expr, what: &str, at: Span) -> R<()> {
        if self.require_equal(expected, found, &format!("{what}, expected and found")).is_err() {
            return self.error(
                "shape::mismatch",
                at,
                format!("{what} is {}, expected {}", show(found), show(expected)),
            );
        }
        Ok(())
    }

    fn converted_argument(&mut self, v: &Value, a: &Annotation<'_>, name: &str, at: Span, read_only: bool) -> R<Value> {
        if let (Value::Tensor(view), true) = (v, a.inout) {
            self.note_stored(&view.tensor.symbol, a.dtype);
        }
        if let Value::Tensor(view) = v
            && view.tensor.dtype == a.dtype
        {
            if a.inout {
                self.check_writable(view, at)?;
            }
            let mut view = view.clone();
            view.writable &= a.inout || !read_only;
            return Ok(Value::Tensor(view));
        }
        if a.inout {
            let found = v.dtype().map_or_else(|| v.describe(), |d| format!("`{d}`"));
            return self.error(
                "call::argument",
                at,
                format!("expected a tensor of `{}` for the written parameter `{name}`, found {found}", a.dtype),
            );
        }
        let Some(l) = v.lazy() else { return Ok(v.clone()) };
        let expr = self.stored(&l, a.dtype, at)?;
        if !l.weak {
            self.warn_conversion(&format!("the parameter `{name}`"), l.expr.dtype(), a.dtype, at);
        }
        if expr.as_literal().is_some() || l.expr.dtype() == a.dtype {
            return Ok(Value::Lazy(Lazy { expr, weak: false, ..l }));
        }
        let l = Lazy { expr, weak: false, ..l };
        let mut view = self.materialise(&l, a.dtype, name);
        view.writable = false;
        Ok(Value::Tensor(view))
    }

    /// Converts the results of an inlined function to its annotation.
    /// Statements from `before` on are those of the function.
    pub(crate) fn converted_results(
        &mut self,
        returns: &syntax::Expr,
        v: Value,
        (f, before): (&Function, usize),
    ) -> R<Value> {
        let annotations = results(returns);
        let values: Vec<Value> = match (&v, annotations.len()) {
            (Value::None, _) => Vec::new(),
            (Value::Tuple(items), _) => items.to_vec(),
            _ => vec![v.clone()],
        };
        if values.len() != annotations.len() {
            return self.error(
                "return::count",
                returns.span,
                format!(
                    "`{}` returns {} values, but its annotation has {}",
                    f.name.text,
                    values.len(),
                    annotations.len()
                ),
            );
        }
        let mut out = Vec::with_capacity(values.len());
        for (k, (value, annotation)) in values.iter().zip(annotations).enumerate() {
            let a = self.annotation(annotation)?;
            let shape = self.result_shape(value, &a, k, annotation.span)?;
            let format = self.written_format(&a, &shape)?;
            let found = value.format();
            // An annotation without `pattern(…)` has a fresh pattern, which is that of any tensor in its format.
            let own = !matches!(
                a.storage.map(|s| self.storage_value(s)).transpose()?,
                Some(Value::Storage(Storage::Pattern(_)))
            );
            let unlike = |a: &Format, b: &Format| match own {
                true => Format { pattern: None, ..a.clone() } != Format { pattern: None, ..b.clone() },
                false => a != b,
            };
            let value = &match unlike(&format, &found) {
                false => value.clone(),
                true => self.result_in_storage(value, (&a, format), (k, before), annotation.span)?,
            };
            for (d, (dim, n)) in a.dims.iter().zip(&shape).enumerate() {
                if let ExprKind::Name(size) = &dim.kind
                    && !self.is_bound_in_shape(size)
                {
                    self.bind(size, Value::weak(n.clone()), Role::Size, dim.span);
                    continue;
                }
                let expected = self.size(dim)?;
                self.same_size(&expected, n, &format!("dimension {d} of result {k}"), annotation.span)?;
            }
            out.push(if value.dtype() == Some(a.dtype) && !value.is_weak_scalar() {
                value.clone()
            } else {
                let Some(l) = value.lazy() else { return self.not_a_result(value, k, annotation.span) };
                let expr = self.stored(&l, a.dtype, annotation.span)?;
                if !l.weak {
                    let what = format!("the result of `{}`", f.name.text);
                    self.warn_conversion(&what, l.expr.dtype(), a.dtype, annotation.span);
                }
                Value::Lazy(Lazy { expr, weak: false, ..l })
            });
        }
        Ok(match v {
            Value::Tuple(_) => Value::Tuple(out.into()),
            _ => out.pop().unwrap_or(Value::None),
        })
    }

    /// Returns a result in the storage of its annotation: a dense local tensor of the function takes it, all others are
    /// converted.
    fn result_in_storage(
        &mut self,
        value: &Value,
        (a, format): (&Annotation<'_>, Format),
        (k, before): (usize, usize),
        at: Span,
    ) -> R<Value> {
        if let Value::Tensor(view) = value
            && view.is_whole()
            && view.tensor.format.is_dense()
            && view.tensor.dtype == a.dtype
            && let Some(tensor) = self.stored_as(&view.tensor.symbol, &format, before)
        {
            return Ok(Value::Tensor(View { tensor, ..view.clone() }));
        }
        let ty = TensorType { dtype: a.dtype, shape: value.shape().unwrap_or_default(), format };
        let what = if k == 0 { "the result".to_string() } else { format!("result {k}") };
        self.converted(value, ty, (&format!("out{k}"), &what), at)
    }

    /// Returns the shape of a result, checked against the rank of the annotation.
    pub(crate) fn result_shape(&mut self, v: &Value, a: &Annotation<'_>, k: usize, span: Span) -> R<Vec<Expr>> {
        match v.shape() {
            Some(shape) if shape.len() == a.dims.len() => Ok(shape),
            Some(_) => {
                let found = v.describe();
                self.error(
                    "return::rank",
                    span,
                    format!("result {k} is annotated with {}, but is {found}", counted(a.dims.len(), "dimension")),
                )
            }
            None => self.not_a_result(v, k, span),
        }
    }

    pub(crate) fn not_a_result<T>(&mut self, v: &Value, k: usize, span: Span) -> R<T> {
        let found = v.describe();
        self.error("return::type", span, format!("expected a tensor or a number as result {k}, found {found}"))
    }
}
