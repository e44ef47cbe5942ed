//! Arrays whose length changes, arrays that are made for the caller, and run-time routines on arrays.
//!
//! ```text
//! C_crd = empty((C_room,), i32)          int32_t *C_crd = NULL; …  C_crd = taf_resize(…);
//! grow(C_room, C_crd, n + 1)        →    if (n + 1 > C_room) { … C_crd = taf_resize(…); C_room = …; }
//! (end of the scope)                     taf_hand_over(ctx, C_crd_made, C_crd, C_room);
//! ```

use super::emitter::{Emitter, ErrorExit, KernelVariable, Storage};
use super::types;
use super::writer::format_text;
use crate::lower::changes_length;
use taffeta_ast::stmt::Routine;
use taffeta_ast::{DType, Expr, Origin, Stmt, Symbol, Tensor};

/// C names of an array whose length may change.
#[derive(Clone, Debug)]
pub(super) struct Resizable {
    /// Pointer to the first element.
    name: String,
    /// Variable with the number of bytes.
    bytes: String,
    /// Element type.
    dtype: DType,
    /// Argument that gets the array, if it is made for the caller.
    made: Option<String>,
}

impl Emitter<'_> {
    /// Returns whether a heap tensor is made for the caller, or changes its length in its scope.
    pub fn is_resizable(&self, tensor: &Symbol, scope: &Stmt) -> bool {
        self.made.contains_key(tensor) || changes_length(scope, tensor)
    }

    /// Prints an array whose length may change, which is freed at the end of its scope or given to the caller.
    pub fn resizable(&mut self, s: &Stmt, tensor: &Tensor, body: &Stmt) {
        let (t, c) = (self.names.get(&tensor.symbol), types::stored(tensor.dtype));
        self.declare(&tensor.symbol, Storage::Array);
        self.scope.insert(t.clone(), KernelVariable::value(format!("{c} *{t}")));
        self.check_local(s, tensor, None);
        let bytes = self.names.fresh(&format!("{t}_bytes"));
        self.out.line(format!("{c} *{t} = NULL;"));
        self.out.line(format!("size_t {bytes} = 0;"));
        let made = self.made.get(&tensor.symbol).cloned();
        let array = Resizable { name: t, bytes, dtype: tensor.dtype, made };
        let length = tensor.shape.first().map_or("0".to_string(), |length| self.expr(length));
        self.resize(&array, &length, s.origin());

        let label = self.names.fresh(&format!("free_{}", array.name));
        let outer = std::mem::replace(&mut self.error_exit, ErrorExit::Goto(label.clone()));
        let outer_leaves = std::mem::take(&mut self.leaves);
        self.arrays.insert(tensor.symbol.clone(), array.clone());
        self.stmt(body);
        self.arrays.remove(&tensor.symbol);
        let left = self.leaves > 0;
        self.error_exit = outer;
        self.leaves = outer_leaves;
        if left {
            self.out.label(&label);
        }
        let free = array.call("0");
        match (&array.made, left) {
            (None, _) => self.out.line(format!("{free};")),
            (Some(_), false) => {}
            (Some(_), true) => self.out.line(format!("if (taf_failed(ctx)) {free};")),
        }
        if left {
            self.out.open("if (taf_failed(ctx)) {");
            self.leave_failed();
            self.out.close("}");
        }
        if let Some(made) = &array.made {
            let length = tensor.shape.first().map_or("0".to_string(), |length| self.expr(length));
            self.out.line(format!("taf_hand_over(ctx, {made}, {}, {length});", array.name));
        }
    }

    /// Prints a change of an array's length.
    fn resize(&mut self, array: &Resizable, length: &str, origin: &Origin) {
        let Resizable { name, bytes, dtype, .. } = array;
        self.out.line(format!("{};", array.call(length)));
        self.out.open(format!("if ({bytes} != (size_t)({length}) * sizeof({})) {{", types::stored(*dtype)));
        let text = format!("no memory for %lld elements of `{}`", format_text(name));
        self.fail(origin, "TAFFETA_ERROR_MEMORY", &text, &[format!("(long long)({length})")]);
        self.out.close("}");
    }

    /// Prints a call of a run-time routine.
    pub fn routine(&mut self, s: &Stmt, routine: Routine, tensors: &[Symbol], operands: &[Expr]) {
        let operands: Vec<String> = operands.iter().map(|e| self.expr(e)).collect();
        match (routine, tensors, &operands[..]) {
            (Routine::Grow, [length, arrays @ ..], [least]) => {
                let length = self.element(length, &[]).text;
                self.out.open(format!("if ({least} > {length}) {{"));
                let grown = self.names.fresh("grown");
                self.out.line(format!("const int64_t {grown} = taf_grown({length}, {least});"));
                arrays.iter().for_each(|array| self.resize(&self.array(array), &grown, s.origin()));
                self.out.line(format!("{length} = {grown};"));
                self.out.close("}");
            }
            (Routine::Fit, [length, arrays @ ..], [exact]) => {
                let length = self.element(length, &[]).text;
                arrays.iter().for_each(|array| self.resize(&self.array(array), exact, s.origin()));
                self.out.line(format!("{length} = {exact};"));
            }
            (Routine::Sort, [array], [begin, end]) => {
                let (name, dtype) = (self.names.get(array), self.dtypes[array].name());
                self.out.line(format!("taf_sort_{dtype}({name}, {begin}, {end});"));
            }
            (Routine::Sort, [array, values], [begin, end]) => {
                let (keys, values, c) =
                    (self.names.get(array), self.names.get(values), types::stored(self.dtypes[values]));
                let dtype = types::abi(self.dtypes[array]);
                let call = format!("taf_sort_with({keys}, {dtype}, {values}, sizeof({c}), {begin}, {end})");
                self.out.open(format!("if (!{call}) {{"));
                let count = format!("(long long)({end} - {begin})");
                self.fail(s.origin(), "TAFFETA_ERROR_MEMORY", "no memory to sort %lld elements", &[count]);
                self.out.close("}");
            }
            (Routine::Order, [numbers, keys @ ..], [count]) => {
                let list = |all: Vec<String>| all.join(", ");
                let (names, types) = (self.names.fresh("keys"), self.names.fresh("types"));
                let arrays = list(keys.iter().map(|key| self.names.get(key)).collect());
                let dtypes = list(keys.iter().map(|key| types::abi(self.dtypes[key]).to_string()).collect());
                self.out.line(format!("const void *const {names}[] = {{{arrays}}};"));
                self.out.line(format!("const int32_t {types}[] = {{{dtypes}}};"));
                let (numbers, n) = (self.names.get(numbers), keys.len());
                self.out.open(format!("if (!taf_order({numbers}, {count}, {names}, {types}, {n})) {{"));
                let text = "no memory to sort %lld elements";
                self.fail(s.origin(), "TAFFETA_ERROR_MEMORY", text, &[format!("(long long)({count})")]);
                self.out.close("}");
            }
            _ => unreachable!("Routine: `{}`", routine.name()),
        }
    }

    fn array(&self, tensor: &Symbol) -> Resizable {
        match self.arrays.get(tensor) {
            Some(array) => array.clone(),
            None => unreachable!("Routine: the length of `{tensor}` does not change"),
        }
    }
}

impl Resizable {
    /// Prints the call that changes the length.
    fn call(&self, length: &str) -> String {
        let Resizable { name, bytes, dtype, made } = self;
        let c = types::stored(*dtype);
        format!("{name} = ({c} *)taf_resize(ctx, {}, {name}, &{bytes}, {length}, sizeof({c}))", made.is_some())
    }
}
