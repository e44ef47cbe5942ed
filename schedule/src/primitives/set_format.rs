#![doc = include_str!("set_format.md")]
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::stage::rewritable;
use crate::tree;
use crate::value::{Args, Value};
use std::sync::Arc;
use taffeta_ast::format::Format;
use taffeta_ast::{DType, Func, Literal, StmtKind, Tensor};

pub(crate) const ENTRY: Entry = Entry {
    name: "set_format",
    signature: "s.set_format(T, \"bytemap\" | \"pattern(A)\" | \"dense\")",
    params: &["tensor", "format"],
    summary: "Chooses how a local tensor is stored.",
    doc: include_str!("set_format.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let declared = s.tensor(args.need("tensor")?)?;
    let name = declared.symbol().clone();
    // 1. A local tensor with dimensions, which is accessed by elements only.
    let Some((stmt, tensor, body)) = declared.stmt.as_ref().and_then(|d| match d.kind() {
        StmtKind::VarDef { tensor, body } => Some((d, tensor, body)),
        _ => None,
    }) else {
        let text = format!("`{name}` is a parameter or a result: its annotation determines the format");
        return Err(Refusal::illegal(1, text).help(format!("write `{name}: … @ csr`, or another format")));
    };
    let at = stmt.origin().span();
    if tensor.ndim() == 0 {
        let text = format!("`{name}` is a scalar, which has no format");
        return Err(Refusal::illegal(1, text).label(at, "declared here"));
    }
    rewritable(s.func(), &declared)?;
    // 2. A format for local tensors.
    let arg = args.need("format")?;
    let text = args.str("format")?.unwrap_or_default();
    let format = parsed(s.func(), tensor, text).map_err(|why| match why {
        Some(why) => Refusal::illegal(2, why).at(arg.span),
        None => {
            let workspace = Format::workspace(tensor.ndim(), None);
            Refusal::usage(format!("a local tensor cannot have the format `{text}`"))
                .at(arg.span)
                .help(format!("use \"dense\", \"{workspace}\", or \"pattern(A)\" with a structured parameter `A`"))
        }
    })?;
    // 3. Writes are kept: no value stands for several elements, and no write is dropped.
    let shares = |f: &Format| !f.is_injective();
    if tensor.format.drops || shares(&tensor.format) || shares(&format) {
        let why = match tensor.format.drops {
            true => "it drops writes to elements that are not stored".to_string(),
            false => {
                let of = if shares(&format) { &format } else { &tensor.format };
                format!("one stored value of {of} stands for several elements")
            }
        };
        let text = format!("`{name}` would not keep its values: {why}");
        return Err(Refusal::illegal(3, text).label(at, "declared here"));
    }
    let new = Arc::new(Tensor { format, ..(**tensor).clone() });
    let kind = StmtKind::VarDef { tensor: new, body: body.clone() };
    Ok(Change::new(tree::replace(s.func(), stmt.id(), &stmt.with_kind(kind)), Value::None))
}

/// Parses a format for a tensor; `Err(None)` if local tensors have no such format.
fn parsed(func: &Func, tensor: &Tensor, text: &str) -> Result<Format, Option<String>> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let ndim = tensor.ndim();
    let is = |format: &Format, text: &str| format.to_string().split_whitespace().collect::<String>() == text;
    if text == "dense" || is(&Format::dense(ndim), &text) {
        return Ok(Format::dense(ndim));
    }
    if let Some(of) = text.strip_prefix("pattern(").and_then(|rest| rest.strip_suffix(')')) {
        return pattern(func, tensor, of).map_err(Some);
    }
    let (levels, fill) = match text.split_once(",fill=") {
        Some((levels, fill)) => (format!("{levels})"), Some(fill.strip_suffix(')').ok_or(None)?)),
        None => (text.clone(), None),
    };
    if levels != "bytemap" && !is(&Format::workspace(ndim, None), &levels) {
        return Err(None);
    }
    let fill = match fill {
        None => None,
        Some(v) => {
            let why = || Some(format!("the fill `{v}` is not a value of type {}", tensor.dtype));
            Some(literal(v, tensor.dtype).ok_or_else(why)?).filter(|v| *v != Literal::zero(tensor.dtype))
        }
    };
    Ok(Format::workspace(ndim, fill))
}

fn pattern(func: &Func, tensor: &Tensor, of: &str) -> Result<Format, String> {
    let found = func.params.iter().map(|p| &p.tensor).find(|t| t.symbol.name() == of);
    let Some(found) = found else { return Err(format!("there is no parameter `{of}`")) };
    if found.format.pattern.is_none() {
        return Err(format!("`{of}` is dense, and has no pattern"));
    }
    if found.shape != tensor.shape {
        let text = |t: &Tensor| t.shape.iter().map(taffeta_ast::print::expr).collect::<Vec<_>>().join(", ");
        let (own, its) = (text(tensor), text(found));
        return Err(format!("cannot store a tensor of shape [{own}] in the pattern of `{of}`, whose shape is [{its}]"));
    }
    Ok(found.format.clone())
}

fn literal(text: &str, dtype: DType) -> Option<Literal> {
    match (dtype, text) {
        (DType::Bool, "True") => Some(Literal::Bool(true)),
        (DType::Bool, "False") => Some(Literal::Bool(false)),
        (DType::Bool, _) => None,
        _ if dtype.is_float() => text.parse().ok().map(Literal::Float),
        _ => text.parse().ok().map(Literal::Int),
    }
}
