//! The ABI of an entry with structured parameters or results: tensors with levels, as the program declares them. It
//! extracts the arrays from the levels, determines the sizes given by the data, checks the levels' contracts, calls the
//! entry on arrays, and makes levels of the arrays that the entry has made.

use super::emitter::Emitter;
use super::entry::{Unit, check, fixed, plan_head, run_head, specifications};
use super::types;
use super::writer::{comment, string};
use crate::abi;
use crate::lower::{Logical, LogicalLevel, Lowered};
use crate::signature::{Passing, TensorSig};
use taffeta_ast::format::{Contract, Counted, LevelKind, Rule};
use taffeta_ast::{DType, Literal, Symbol};

/// Suffixes of functions and tables, after the entry's name.
pub(super) const NAMES: [&str; 6] = ["_tensors", "_levels", "_fill", "_storage", "_unpack", "_pack"];

/// Describes structured parameters for the header: levels with their arrays, in order.
pub(super) fn described(lowered: &Lowered) -> String {
    let Some(logical) = lowered.logical() else { return String::new() };
    let mut arrays = lowered.signature().params();
    let shown = |t: &TensorSig| {
        let dims: Vec<&str> = t.shape.iter().map(|d| d.text.as_str()).collect();
        format!("{}: {}[{}]", t.name, t.dtype, dims.join(", "))
    };
    let mut made = lowered.signature().made();
    let mut text = String::new();
    let elements = |sig: &TensorSig, flat: &TensorSig| {
        let of = sig.of.map(|k| &logical.signature.tensors[k].name)?;
        Some(format!("/* {}: elements alone, one for each element of {of}: {} */\n", sig.name, shown(flat)))
    };
    for (sig, levels) in logical.signature.params().zip(&logical.levels) {
        match levels.is_empty() {
            true => text.extend(arrays.next().and_then(|flat| elements(sig, flat))),
            false => text += &described_levels(sig, levels, &mut arrays.by_ref().map(shown)),
        }
    }
    let mut results = lowered.signature().results();
    let of_results = logical.levels.iter().skip(logical.signature.params().count());
    for (sig, levels) in logical.signature.results().zip(of_results) {
        match levels.is_empty() {
            true => text.extend(results.next().and_then(|flat| elements(sig, flat))),
            false => {
                let mut names = made.by_ref().map(|flat| format!("{}: {}[]", flat.name, flat.dtype));
                text += &described_levels(sig, levels, &mut names);
            }
        }
    }
    text
}

/// Describes the levels of a tensor with the next ones of these arrays.
fn described_levels(sig: &TensorSig, levels: &[LogicalLevel], arrays: &mut dyn Iterator<Item = String>) -> String {
    let mut text = format!("/* Levels of {}, with their arrays:\n", sig.name);
    for level in levels {
        let own: Vec<String> = arrays.take(level.arrays).collect();
        let own = if own.is_empty() { "none".to_string() } else { own.join(", ") };
        text += &format!(" *   {}: {own}\n", abi::level(level.kind));
    }
    let values = arrays.next().unwrap_or_default();
    text + &format!(" * and n_stored elements in data: {values} */\n")
}

/// Prints the functions of the entry as the program declares it; `flat` holds those on arrays.
pub(super) fn unit(e: &mut Emitter<'_>, logical: &Logical, flat: &Unit) {
    let params = Params::of(logical);
    tables(e, logical, flat);
    unpack(e, logical, flat, &params);
    let name = &logical.signature.c_name;
    let (arrays, counts) = (flat.tensors.len(), flat.sizes.len().max(1));
    let locals = format!("taffeta_tensor arrays[{arrays}];");
    let numbers = format!("int64_t lengths[{arrays}], counts[{counts}];");
    let call = |planned: bool| {
        format!("int status = {}_unpack(ctx, args, n_args, sizes, {planned}, arrays, lengths, counts);", flat.base)
    };

    e.out.line("");
    e.out.line(format!("{};", plan_head(name)));
    e.out.open(format!("{} {{", plan_head(name)));
    e.out.line(&locals);
    e.out.line(&numbers);
    e.out.line(call(true));
    e.out.line("if (status != TAFFETA_OK) return status;");
    e.out.line(format!("return {}_plan(ctx, arrays, {arrays}, counts, arena_bytes);", flat.c_name));
    e.out.close("}");
    e.out.line("");
    e.out.line(format!("{};", run_head(name)));
    e.out.open(format!("{} {{", run_head(name)));
    e.out.line(&locals);
    e.out.line(&numbers);
    e.out.line(call(false));
    e.out.line("if (status != TAFFETA_OK) return status;");
    e.out.line(format!("status = {}(ctx, arrays, {arrays}, counts);", flat.c_name));
    let is_result = |k: &usize| logical.signature.tensors[*k].passing == Passing::Result;
    let (whole, made): (Vec<usize>, Vec<usize>) =
        (0..logical.tensors.len()).filter(is_result).partition(|k| !is_made(logical, *k));
    for k in whole {
        e.out.line(format!("args[{k}] = arrays[{}];", params.first[k]));
    }
    if let Some(first) = made.first().map(|k| params.first[*k]) {
        let base = &flat.base;
        for k in &made {
            let storage = format!("&{base}_storage_{k}");
            let call = format!("taf_levels_of(ctx, {storage}, &arrays[{}], &args[{k}])", params.first[*k]);
            e.out.line(format!("if (status == TAFFETA_OK) status = {call};"));
        }
        // Arrays that a tensor has taken are no longer among these.
        e.out.line(format!("if (status != TAFFETA_OK) taf_drop_arrays(&arrays[{first}], {});", arrays - first));
        for k in &made {
            e.out.line(format!("if (status != TAFFETA_OK) taffeta_free(&args[{k}]);"));
        }
    }
    e.out.line("return status;");
    e.out.close("}");
}

/// Positions of arguments among those of the entry on arrays.
struct Params {
    /// Position of the first array of each argument.
    first: Vec<usize>,
}

impl Params {
    fn of(logical: &Logical) -> Params {
        // Arrays that the entry makes come last.
        let count = |k: usize| 1 + logical.levels.get(k).map_or(0, |all| all.iter().map(|l| l.arrays).sum::<usize>());
        let (mut at, mut first) = (0, vec![0; logical.tensors.len()]);
        for made in [false, true] {
            for k in (0..first.len()).filter(|k| is_made(logical, *k) == made) {
                first[k] = at;
                at += count(k);
            }
        }
        Params { first }
    }
}

/// Iterates over structured parameters and results, with their positions.
fn structured(logical: &Logical) -> impl Iterator<Item = (usize, &[LogicalLevel])> {
    logical.levels.iter().enumerate().filter(|(_, l)| !l.is_empty()).map(|(k, l)| (k, l.as_slice()))
}

/// Returns whether the entry makes the arrays of a tensor: it is a result with a pattern of its own.
fn is_made(logical: &Logical, k: usize) -> bool {
    logical.signature.tensors[k].passing == Passing::Result && logical.levels.get(k).is_some_and(|l| !l.is_empty())
}

/// Prints the tables of requirements on the arguments.
fn tables(e: &mut Emitter<'_>, logical: &Logical, flat: &Unit) {
    let base = &flat.base;
    e.out.line("");
    // A tensor with another's pattern is passed as its elements alone.
    let params = Params::of(logical);
    let specs = logical.signature.tensors.iter().zip(&logical.tensors).enumerate().map(|(k, (sig, t))| match sig.of {
        Some(_) => (&*flat.tensors[params.first[k]].0, sig.passing),
        None => (&**t, sig.passing),
    });
    specifications(e, &format!("{base}_tensors"), specs);
    for (k, levels) in structured(logical) {
        let t = &logical.tensors[k];
        let rows: Vec<String> = levels.iter().map(|l| format!("{{{}, {}}}", abi::level(l.kind), l.arrays)).collect();
        e.out.line(format!("static const taf_level {base}_levels_{k}[] = {{{}}};", rows.join(", ")));
        let fill = t.format.fill.unwrap_or(Literal::zero(t.dtype));
        e.out.line(format!("static const {} {base}_fill_{k} = {};", types::stored(t.dtype), constant(fill, t.dtype)));
        let n = levels.len();
        e.out.line(format!(
            "static const taf_storage {base}_storage_{k} = {{{base}_levels_{k}, {n}, &{base}_fill_{k}}};"
        ));
        e.out.line("");
    }
}

/// Prints a constant in its storage type: 16-bit floats as bits.
fn constant(value: Literal, dtype: DType) -> String {
    match (value, dtype) {
        (Literal::Float(f), DType::F16) => half::f16::from_f64(f).to_bits().to_string(),
        (Literal::Float(f), DType::Bf16) => half::bf16::from_f64(f).to_bits().to_string(),
        _ => types::literal(value, dtype, true),
    }
}

/// Prints the function that turns arguments into arrays, and determines all sizes.
fn unpack(e: &mut Emitter<'_>, logical: &Logical, flat: &Unit, params: &Params) {
    let (base, signature) = (&flat.base, &logical.signature);
    let (n_args, n_arrays) = (signature.tensors.len(), flat.tensors.len());
    e.out.line(comment("Converts arguments to arrays, reads their sizes, and checks the invariants of levels."));
    e.out.open(format!(
        "static int {base}_unpack(taffeta_ctx *ctx, taffeta_tensor *args, size_t n_args, const int64_t *sizes, bool planned, taffeta_tensor *arrays, int64_t *lengths, int64_t *counts) {{"
    ));
    e.out.line(format!("int status = taf_begin(ctx, args, n_args, {n_args});"));
    e.out.line("if (status != TAFFETA_OK) return status;");
    for k in 0..n_args {
        let at = params.first[k];
        match logical.levels.get(k).filter(|l| !l.is_empty()) {
            Some(levels) if is_made(logical, k) => {
                check(e, &format!("taf_check_made(ctx, &{base}_tensors[{k}], &args[{k}], planned)"));
                let count = 1 + levels.iter().map(|l| l.arrays).sum::<usize>();
                for at in at..at + count {
                    let dtype = types::abi(flat.tensors[at].0.dtype);
                    e.out.line(format!("taf_empty_array(&arrays[{at}], {dtype}, &lengths[{at}]);"));
                }
            }
            Some(_) => check(
                e,
                &format!(
                    "taf_arrays_of(ctx, &{base}_tensors[{k}], &{base}_storage_{k}, &{base}_args[{at}], &args[{k}], &arrays[{at}], &lengths[{at}])"
                ),
            ),
            None => {
                check(e, &format!("taf_check_tensor(ctx, &{base}_tensors[{k}], &args[{k}])"));
                e.out.line(format!("arrays[{at}] = args[{k}];"));
            }
        }
    }
    for (k, size) in signature.sizes.iter().enumerate() {
        let name = string(&size.name);
        check(e, &format!("taf_bind_size(ctx, {name}, sizes, {k}, {}, &counts[{k}])", fixed(signature, k)));
    }
    for level in levels(logical, params) {
        for (count, counted) in level.level.hidden.iter().zip(&level.contract().counts) {
            let at = size_of(flat, count);
            match counted {
                Counted::Length(a) => e.out.line(format!("counts[{at}] = lengths[{}];", level.first + a)),
                Counted::Last(a) => {
                    check(e, &format!("taf_last(ctx, {}, &counts[{at}])", array(flat, level.first + a)))
                }
            }
        }
    }
    e.out.line(format!("{base}_plan plan;"));
    check(e, &format!("{base}_bind(ctx, arrays, {n_arrays}, counts, planned, &plan)"));
    for (_, n) in &flat.sizes {
        e.out.line(format!("const int64_t {n} = plan.{n};"));
    }
    e.out.line(flat.sizes.iter().map(|(_, n)| format!("(void){n};")).collect::<Vec<_>>().join(" "));
    for (k, _) in structured(logical) {
        for (d, size) in logical.tensors[k].shape.iter().enumerate() {
            let (value, what) = (e.dim(size), string(&signature.tensors[k].shape[d].text));
            check(e, &format!("taf_check_dim(ctx, &{base}_tensors[{k}], &args[{k}], planned, {d}, {value}, {what})"));
        }
    }
    e.out.line("if (planned || (ctx->flags & TAFFETA_TRUST_ARRAYS) != 0) return TAFFETA_OK;");
    for level in levels(logical, params) {
        for rule in &level.contract().rules {
            if let Some(call) = rule_call(e, flat, &level, rule) {
                check(e, &call);
            }
        }
    }
    e.out.line("return TAFFETA_OK;");
    e.out.close("}");
}

/// A level with the position of its first array.
struct Placed<'l> {
    level: &'l LogicalLevel,
    first: usize,
    /// Coordinate arrays of the lists directly above, outermost first.
    lists: Vec<usize>,
    /// Position array of the first of these lists, if it has one.
    parts: Option<usize>,
    /// Position array of the sliced level above.
    slots: Option<usize>,
}

impl Placed<'_> {
    fn contract(&self) -> &Contract {
        match &self.level.contract {
            Some(contract) => contract,
            None => unreachable!("`can_be_borrowed` holds"),
        }
    }
}

/// Iterates over all levels of all parameters.
fn levels<'l>(logical: &'l Logical, params: &'l Params) -> impl Iterator<Item = Placed<'l>> {
    structured(logical).filter(|(k, _)| !is_made(logical, *k)).flat_map(|(k, levels)| {
        let mut first = params.first[k];
        let (mut lists, mut parts, mut slots) = (Vec::new(), None, None);
        levels.iter().map(move |level| {
            let placed = Placed { level, first, lists: lists.clone(), parts, slots };
            match placed.contract().list {
                Some((None, crd)) => lists.push(first + crd),
                Some((Some(pos), crd)) => (lists, parts) = (vec![first + crd], Some(first + pos)),
                None => (lists, parts) = (Vec::new(), None),
            }
            if level.kind == LevelKind::Sliced {
                slots = Some(first);
            }
            first += level.arrays;
            placed
        })
    })
}

/// Prints an array as arguments of a check: its specification, the tensor and its element type.
fn array(flat: &Unit, at: usize) -> String {
    format!("&{}_args[{at}], &arrays[{at}], {}", flat.base, types::abi(flat.tensors[at].0.dtype))
}

/// Prints an array as arguments of a check, without its specification.
fn plain_array(flat: &Unit, at: usize) -> String {
    format!("&arrays[{at}], {}", types::abi(flat.tensors[at].0.dtype))
}

/// Prints the call that checks a rule; `None` where the rule holds trivially.
fn rule_call(e: &mut Emitter<'_>, flat: &Unit, level: &Placed<'_>, rule: &Rule) -> Option<String> {
    let count = |hidden: usize| &flat.sizes[size_of(flat, &level.level.hidden[hidden])].1;
    let size = e.dim(&level.level.size);
    let at = |a: usize| level.first + a;
    let own = |a: usize| format!("&arrays[{}]", at(a));
    let named = |a: usize| format!("&{}_args[{}], &arrays[{}]", flat.base, at(a), at(a));
    Some(match *rule {
        Rule::Partition { pos, total } => {
            format!("taf_check_partition(ctx, {}, {})", array(flat, at(pos)), count(total))
        }
        Rule::Coordinates { pos, crd, ordered, unique } => {
            let (pos, crd) = (plain_array(flat, at(pos)), array(flat, at(crd)));
            format!("taf_check_coordinates(ctx, {pos}, {crd}, {size}, {ordered}, {unique})")
        }
        Rule::Blocks { pos, start } => {
            let start = start.map_or("NULL, TAFFETA_I64".to_string(), |a| plain_array(flat, at(a)));
            format!("taf_check_blocks(ctx, {}, {start}, {size})", array(flat, at(pos)))
        }
        Rule::Range { array: a, or_size } => {
            let most = if or_size { size.clone() } else { format!("{size} - 1") };
            format!("taf_check_range(ctx, {}, {most}, {size})", array(flat, at(a)))
        }
        Rule::Rises { array: a } => format!("taf_check_rises(ctx, {})", array(flat, at(a))),
        Rule::Slots { crd } => {
            let pos = level.slots?;
            format!("taf_check_slots(ctx, &arrays[{pos}], {}, {size})", array(flat, at(crd)))
        }
        Rule::Tuples { crd, unique } => {
            // Without a partitioned list above, every position has its own parent.
            let pos = level.parts?;
            let lists: Vec<String> = level.lists.iter().map(|a| format!("&arrays[{a}]")).collect();
            let n = lists.len();
            let lists = format!("(const taffeta_tensor *const[]){{{}}}", lists.join(", "));
            format!("taf_check_tuples(ctx, &arrays[{pos}], {lists}, {n}, {}, {unique})", named(crd))
        }
        Rule::Segments { pos, end, ofs, full } => {
            let ofs = ofs.map_or("NULL, NULL".to_string(), named);
            format!("taf_check_segments(ctx, {}, {}, {ofs}, {full}, {size})", own(pos), named(end))
        }
        Rule::Map { pos, crd, map } => {
            format!("taf_check_map(ctx, {}, {}, {}, {size})", own(pos), own(crd), named(map))
        }
        Rule::Table { pos, crd, tpos, tbl } => {
            format!("taf_check_table(ctx, {}, {}, {}, {})", own(pos), own(crd), own(tpos), named(tbl))
        }
    })
}

/// Returns the position of a hidden size among the sizes of the entry on arrays.
fn size_of(flat: &Unit, hidden: &Symbol) -> usize {
    match flat.sizes.iter().position(|(s, _)| s == hidden) {
        Some(at) => at,
        None => unreachable!("hidden sizes are sizes of the lowered program"),
    }
}
