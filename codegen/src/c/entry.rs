//! The two functions of an entry, run and plan: the ABI around the program. Both check the arguments, bind sizes and
//! place local tensors in the arena; run then calls the kernel, which is the program itself.

use super::emitter::KernelVariable;
use super::emitter::{Emitter, Storage};
use super::types;
use super::writer::{comment, string};
use crate::lower::{Lowered, Slot};
use crate::signature::{Passing, Signature, Size, TensorSig};
use std::sync::Arc;
use taffeta_ast::{Symbol, Tensor};

/// Returns the head of the file. `products`: whether there are matrix products. `levels`: whether there are structured
/// parameters. `said`: macros for the run-time header, with whether they apply to the program.
pub(super) fn prologue(signature: &Signature, products: bool, levels: bool, said: &[(&str, bool)]) -> String {
    let mut text = format!("/* {} */\n", declaration(signature.logical()).replace("*/", "* /"));
    text.push_str("/* Compile with: -std=c99 -O3 -march=native -fopenmp -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=fast -lm -ldl */\n");
    text.push_str("#define _POSIX_C_SOURCE 200112L\n");
    for (name, _) in said.iter().filter(|(_, is_so)| *is_so) {
        text.push_str(&format!("#define {name}\n"));
    }
    text.push_str("#include \"taffeta_runtime.h\"\n");
    if products {
        text.push_str("#include \"taffeta_gemm.h\"\n");
    }
    if levels {
        text.push_str("#include \"taffeta_levels.h\"\n");
    }
    text.push('\n');
    text
}

/// Prints the declaration as in the source: `def matmul(a: f32[n, p], b: f32[p, m]) -> y: f32[n, m]`.
fn declaration(signature: &Signature) -> String {
    let show = |t: &TensorSig| {
        let dims: Vec<&str> = t.shape.iter().map(|d| d.text.as_str()).collect();
        let shape = if dims.is_empty() { String::new() } else { format!("[{}]", dims.join(", ")) };
        let stored = match t.of {
            Some(k) => format!(" @ pattern({})", signature.tensors[k].name),
            None => t.storage.as_ref().map_or(String::new(), |s| format!(" @ {}", s.format(t.dtype))),
        };
        let plain = format!("{}{shape}{stored}", t.dtype);
        let of_type = if t.passing == Passing::InOut { format!("inout[{plain}]") } else { plain };
        format!("{}: {of_type}", t.name)
    };
    let params: Vec<String> = signature.params().map(show).collect();
    let results: Vec<String> = signature.results().map(show).collect();
    let arrow = if results.is_empty() { String::new() } else { format!(" -> {}", results.join(", ")) };
    format!("def {}({}){arrow}", signature.name, params.join(", "))
}

/// Returns the header for callers.
pub(super) fn header(lowered: &Lowered) -> String {
    let signature = lowered.signature().logical();
    let name = &signature.c_name;
    let guard = format!("{}_H", name.to_uppercase());
    let sizes: Vec<&str> = signature.sizes.iter().map(|s| s.name.as_str()).collect();
    let args: Vec<&str> = signature.tensors.iter().map(|t| t.name.as_str()).collect();
    let mut text = format!("/* {} */\n", declaration(signature).replace("*/", "* /"));
    if let Some(doc) = &signature.doc {
        text.push_str(&doc.lines().map(|l| comment(l) + "\n").collect::<String>());
    }
    text.push_str(&format!(
        "#ifndef {guard}\n#define {guard}\n\n#include \"taffeta.h\"\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
    ));
    text.push_str(&format!("{}\n", comment(&format!("args: {}; sizes: {}", list(&args), list(&sizes)))));
    text.push_str(&super::entry_interface::described(lowered));
    text.push_str(&format!("{};\n\n", run_head(name)));
    text.push_str(&format!(
        "/* Writes the shapes of results and the bytes of scratch memory of a call. */\n{};\n",
        plan_head(name)
    ));
    text.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    text
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_string() } else { names.join(", ") }
}

pub(super) fn run_head(name: &str) -> String {
    format!("int {name}(taffeta_ctx *ctx, taffeta_tensor *args, size_t n_args, const int64_t *sizes)")
}

pub(super) fn plan_head(name: &str) -> String {
    format!(
        "int {name}_plan(taffeta_ctx *ctx, taffeta_tensor *args, size_t n_args, const int64_t *sizes, size_t *arena_bytes)"
    )
}

/// Prints the functions of an entry, in the order that C requires.
pub(super) fn unit(e: &mut Emitter<'_>) -> String {
    let signature = e.lowered.signature();
    // Sizes and tensors come first, so that they keep their names of the source.
    let sizes: Vec<(Symbol, String)> = e.lowered.func().sizes.iter().map(|s| (s.clone(), e.names.get(s))).collect();
    for (s, _) in &sizes {
        e.ranges.size(s);
    }
    let tensors: Vec<(Arc<Tensor>, Passing, String)> = e
        .lowered
        .interface()
        .iter()
        .chain(&e.lowered.func().made)
        .zip(&signature.tensors)
        .map(|(t, sig)| (t.clone(), sig.passing, e.names.get(&t.symbol)))
        .collect();
    let lent = e.lowered.logical().filter(|l| l.can_be_borrowed());
    let others: &[&str] = if lent.is_some() { &super::entry_interface::NAMES } else { &[] };
    let base =
        e.names.family(&signature.name, &[&["_plan", "_args", "_bind", "_kernel", "_no_memory"], others].concat());
    for slot in e.lowered.slots() {
        let t = e.names.get(&slot.tensor.symbol);
        let field = e.names.fresh(&format!("at_{t}"));
        e.offsets.insert(slot.tensor.symbol.clone(), field);
    }
    let unit = Unit { sizes, tensors, base, c_name: signature.c_name.clone() };
    unit.plan_type(e);
    unit.bind(e);
    unit.kernel(e);
    unit.plan(e);
    unit.no_memory(e);
    unit.run(e);
    if let Some(logical) = lent {
        super::entry_interface::unit(e, logical, &unit);
    }
    std::mem::take(&mut e.out).finish()
}

/// C names of an entry: its sizes and tensors, the common prefix `base` of its static functions, and its public
/// function.
pub(super) struct Unit {
    pub(super) sizes: Vec<(Symbol, String)>,
    pub(super) tensors: Vec<(Arc<Tensor>, Passing, String)>,
    pub(super) base: String,
    pub(super) c_name: String,
}

impl Unit {
    /// Prints the plan structure of one call: sizes, offsets in the arena and bytes of arguments.
    fn plan_type(&self, e: &mut Emitter<'_>) {
        e.out.open(format!("typedef struct {}_plan {{", self.base));
        for (_, n) in &self.sizes {
            e.out.line(format!("int64_t {n};"));
        }
        let slots: Vec<Slot> = e.lowered.slots().to_vec();
        for slot in &slots {
            let at = e.offset(&slot.tensor.symbol);
            e.out.line(format!("size_t {at}; {}", comment("offset in the arena")));
        }
        if slots.iter().any(|s| s.of_thread) {
            e.out.line(format!("size_t threads_at; {}", comment("offset of the parts of threads")));
            e.out.line(format!("size_t thread_bytes; {}", comment("bytes of each part")));
        }
        e.out.line("size_t arena_bytes;");
        e.out.line(format!("size_t bytes[{}];", self.tensors.len().max(1)));
        e.out.close(&format!("}} {}_plan;", self.base));
        e.out.line("");
        let specs = self.tensors.iter().map(|(t, passing, _)| (&**t, *passing));
        specifications(e, &format!("{}_args", self.base), specs);
    }

    /// Prints the function that checks types and shapes, and fills in the plan.
    fn bind(&self, e: &mut Emitter<'_>) {
        let base = &self.base;
        e.out.open(format!(
            "static int {base}_bind(taffeta_ctx *ctx, taffeta_tensor *args, size_t n_args, const int64_t *sizes, bool planned, {base}_plan *plan) {{"
        ));
        let n_args = self.tensors.len();
        e.out.line(format!("int status = taf_begin(ctx, args, n_args, {n_args});"));
        e.out.line("if (status != TAFFETA_OK) return status;");
        check(e, &format!("taf_check_args(ctx, {base}_args, args, {n_args})"));
        for (k, (size, n)) in self.sizes.iter().enumerate() {
            let (name, fixed) = (string(size.name()), fixed(e.lowered.signature(), k));
            e.out.line(format!("int64_t {n};"));
            check(e, &format!("taf_bind_size(ctx, {name}, sizes, {k}, {fixed}, &{n})"));
            if let Some(known) = e.lowered.signature().sizes[k].known {
                check(e, &format!("taf_known_size(ctx, {name}, {n}, INT64_C({known}))"));
            }
            e.out.line(format!("plan->{n} = {n};"));
        }
        let checks = e.lowered.entry_checks().clone();
        e.stmt(&checks);
        for (k, (t, passing, _)) in self.tensors.iter().enumerate() {
            if *passing == Passing::Made {
                e.out.line(format!("args[{k}].shape[0] = 0;"));
                continue;
            }
            for (d, size) in t.shape.iter().enumerate() {
                let value = e.dim(size);
                let what = string(&e.lowered.signature().tensors[k].shape[d].text);
                check(e, &format!("taf_check_dim(ctx, &{base}_args[{k}], &args[{k}], planned, {d}, {value}, {what})"));
            }
        }
        check(e, &format!("taf_check_extents(ctx, {base}_args, args, {n_args}, plan->bytes)"));
        self.arena(e);
        e.out.line("return TAFFETA_OK;");
        e.out.close("}");
        e.out.line("");
    }

    fn arena(&self, e: &mut Emitter<'_>) {
        e.out.line("plan->arena_bytes = 0;");
        let slots: Vec<Slot> = e.lowered.slots().to_vec();
        let has_parts = slots.iter().any(|s| s.of_thread);
        if has_parts {
            e.out.line("plan->thread_bytes = 0;");
        }
        let mut ends: Vec<String> = Vec::new();
        for slot in &slots {
            let stack = if slot.of_thread { "thread_bytes" } else { "arena_bytes" };
            let t = e.names.get(&slot.tensor.symbol);
            let start = slot.behind.map_or(slot.start.to_string(), |s| ends[s].clone());
            let dims: Vec<String> = slot.room.iter().map(|d| e.dim(d)).collect();
            let size = types::stored(slot.tensor.dtype);
            let end = e.names.fresh(&format!("{t}_end"));
            let at = e.offset(&slot.tensor.symbol);
            e.out.line(format!("plan->{at} = {start};"));
            e.out.line(format!(
                "const size_t {end} = taf_put(plan->{at}, (const int64_t[]){{{}}}, {}, sizeof({size}), &plan->{stack});",
                dims.join(", "),
                dims.len()
            ));
            ends.push(end);
        }
        for end in ends {
            e.out.line(format!("(void){end};"));
        }
        if has_parts {
            e.out.line("plan->threads_at = plan->arena_bytes;");
            e.out.line("plan->arena_bytes = taf_put_threads(ctx, plan->arena_bytes, plan->thread_bytes);");
        }
    }

    /// Prints the program.
    fn kernel(&self, e: &mut Emitter<'_>) {
        let mut params =
            vec!["taffeta_ctx *ctx".to_string(), format!("const {}_plan *plan", self.base), "char *arena".into()];
        for (t, passing, name) in &self.tensors {
            if *passing == Passing::Made {
                let made = e.names.fresh(&format!("{name}_made"));
                params.push(format!("taffeta_tensor *restrict {made}"));
                e.made.insert(t.symbol.clone(), made);
                continue;
            }
            let c = types::stored(t.dtype);
            let (place, param) = match (t.ndim(), passing) {
                (0, Passing::In) => (Storage::Variable, format!("{c} {name}")),
                (0, _) => (Storage::Pointer, format!("{c} *restrict {name}")),
                (_, Passing::In) => (Storage::Array, format!("const {c} *restrict {name}")),
                _ => (Storage::Array, format!("{c} *restrict {name}")),
            };
            e.declare(&t.symbol, place);
            e.dtypes.insert(t.symbol.clone(), t.dtype);
            if t.ndim() > 0 {
                e.counts.insert(t.symbol.clone(), crate::lower::count(&t.shape));
            }
            params.push(param);
        }
        let func = e.lowered.func();
        if let Some(doc) = &func.doc {
            for line in doc.lines() {
                e.out.line(comment(line));
            }
        }
        for param in &params {
            let name = param.rsplit([' ', '*']).next().unwrap_or_default();
            e.scope.insert(name.to_string(), KernelVariable::value(param.clone()));
        }
        for (_, n) in &self.sizes {
            e.scope.insert(n.clone(), KernelVariable::value(format!("int64_t {n}")));
        }
        let start = e.out.position();
        e.out.open(format!("static TAFFETA_KERNEL int {}_kernel({}) {{", self.base, params.join(", ")));
        for (_, n) in &self.sizes {
            e.out.line(format!("const int64_t {n} = plan->{n};"));
        }
        let unused: Vec<String> = ["ctx", "plan", "arena"]
            .iter()
            .map(|s| s.to_string())
            .chain(self.sizes.iter().map(|s| s.1.clone()))
            .collect();
        e.out.line(unused.iter().map(|n| format!("(void){n};")).collect::<Vec<_>>().join(" "));
        e.stmt(&func.body);
        e.out.line("return TAFFETA_OK;");
        e.out.close("}");
        for function in std::mem::take(&mut e.functions).iter().rev() {
            e.out.insert(start, function);
        }
        e.out.line("");
    }

    fn plan(&self, e: &mut Emitter<'_>) {
        let base = &self.base;
        e.out.line(format!("{};", plan_head(&self.c_name)));
        e.out.open(format!("{} {{", plan_head(&self.c_name)));
        e.out.line(format!("{base}_plan plan;"));
        e.out.line(format!("int status = {base}_bind(ctx, args, n_args, sizes, true, &plan);"));
        e.out.line("if (status == TAFFETA_OK && arena_bytes != NULL) *arena_bytes = plan.arena_bytes;");
        e.out.line("return status;");
        e.out.close("}");
        e.out.line("");
    }

    /// Returns whether the arena has tensors whose sizes are known only at a call, and which may not fit in memory.
    fn has_symbolic_locals(&self, e: &Emitter<'_>) -> bool {
        e.lowered.slots().iter().any(|slot| slot.tensor.constant_bytes().is_none())
    }

    /// Prints the function that names the largest local tensor where there is no memory for the arena.
    fn no_memory(&self, e: &mut Emitter<'_>) {
        if !self.has_symbolic_locals(e) {
            return;
        }
        let base = &self.base;
        e.out.open(format!("static TAFFETA_COLD int {base}_no_memory(taffeta_ctx *ctx, const {base}_plan *plan) {{"));
        for (_, n) in &self.sizes {
            e.out.line(format!("const int64_t {n} = plan->{n};"));
            e.out.line(format!("(void){n};"));
        }
        e.out.open("const taf_arena_slot slots[] = {");
        let slots: Vec<Slot> = e.lowered.slots().to_vec();
        for slot in &slots {
            let dims: Vec<String> = slot.room.iter().map(|d| e.dim(d)).collect();
            let (site, line) = e.site(&slot.origin);
            let place = string(&e.location(&slot.origin));
            let name = string(slot.tensor.symbol.name());
            let c = types::stored(slot.tensor.dtype);
            let (dims, rank) = (dims.join(", "), dims.len());
            e.out.line(format!(
                "{{{site}, {line}, {place}, {name}, taf_bytes((const int64_t[]){{{dims}}}, {rank}, sizeof({c}))}},"
            ));
        }
        e.out.close("};");
        e.out.line(format!("return taf_no_memory(ctx, slots, {}, plan->arena_bytes);", slots.len()));
        e.out.close("}");
        e.out.line("");
    }

    fn run(&self, e: &mut Emitter<'_>) {
        let base = &self.base;
        let n_args = self.tensors.len();
        e.out.line(format!("{};", run_head(&self.c_name)));
        e.out.open(format!("{} {{", run_head(&self.c_name)));
        e.out.line(format!("{base}_plan plan;"));
        e.out.line(format!("bool made[{}];", n_args.max(1)));
        e.out.line(format!("int status = {base}_bind(ctx, args, n_args, sizes, false, &plan);"));
        e.out.line("if (status != TAFFETA_OK) return status;");
        check(e, &format!("taf_check_data(ctx, {base}_args, args, {n_args}, plan.bytes)"));
        if self.has_symbolic_locals(e) {
            e.out.line(format!(
                "if (taf_reserve(ctx, plan.arena_bytes) != TAFFETA_OK) return {base}_no_memory(ctx, &plan);"
            ));
        } else {
            check(e, "taf_reserve(ctx, plan.arena_bytes)");
        }
        e.out.line(format!("status = taf_make_results(ctx, {base}_args, args, {n_args}, plan.bytes, made);"));
        let mut values = vec!["ctx".to_string(), "&plan".to_string(), "(char *)ctx->arena".to_string()];
        for (k, (t, passing, _)) in self.tensors.iter().enumerate() {
            let c = types::stored(t.dtype);
            values.push(match (t.ndim(), passing) {
                (_, Passing::Made) => format!("&args[{k}]"),
                (0, Passing::In) => format!("*(const {c} *)args[{k}].data"),
                (_, Passing::In) => format!("(const {c} *)args[{k}].data"),
                _ => format!("({c} *)args[{k}].data"),
            });
        }
        e.out.line(format!("if (status == TAFFETA_OK) status = {base}_kernel({});", values.join(", ")));
        e.out.line(format!("if (status != TAFFETA_OK) taf_drop_results(ctx, {base}_args, args, {n_args}, made);"));
        e.out.line("return status;");
        e.out.close("}");
    }
}

/// Prints the table of an entry's requirements on its arguments.
pub(super) fn specifications<'t>(
    e: &mut Emitter<'_>,
    name: &str,
    tensors: impl ExactSizeIterator<Item = (&'t Tensor, Passing)>,
) {
    let none = tensors.len() == 0;
    e.out.open(format!("static const taf_spec {name}[] = {{"));
    for (t, passing) in tensors {
        let how = match passing {
            Passing::In => 'i',
            Passing::InOut => 'x',
            Passing::Result => 'r',
            Passing::Made => 'm',
        };
        let name = string(t.symbol.name());
        e.out.line(format!("{{{name}, {}, {}, '{how}'}},", types::abi(t.dtype), t.ndim()));
    }
    if none {
        e.out.line("{NULL, 0, 0, 'i'},");
    }
    e.out.close("};");
    e.out.line("");
}

/// Returns the C expression for the dimension that determines a size; its compiled-in value, or -1, if there is none.
pub(super) fn fixed(signature: &Signature, k: usize) -> String {
    for (a, t) in
        signature.tensors.iter().enumerate().filter(|(_, t)| matches!(t.passing, Passing::In | Passing::InOut))
    {
        if let Some(d) = t.shape.iter().position(|d| d.value == Some(Size::Param(k))) {
            return format!("args[{a}].shape[{d}]");
        }
    }
    signature.sizes[k].known.map_or("-1".to_string(), |v| format!("INT64_C({v})"))
}

/// Prints a call of a checking function, and the return of its status if it fails.
pub(super) fn check(e: &mut Emitter<'_>, call: &str) {
    e.out.line(format!("if ((status = {call}) != TAFFETA_OK) return status;"));
}
