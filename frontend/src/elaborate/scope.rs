//! Names: the frames of inlined calls, their scopes, and name lookup.

use super::builtin::Builtin;
use super::declared::{Declared, Findings};
use super::func::FuncRef;
use super::storage::Storage;
use super::value::{StaticType, Value};
use super::{Elab, R, Stop};
use crate::program::{Global, ModuleId};
use crate::syntax::Item;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::{DType, Diagnostic, Op, Span};

/// Maximum number of names of a file that are searched for the nearest one to a misspelt name.
const MAX_PROPOSED: usize = 1_000;

/// Role of a name, which decides how it may be assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Tensor of this function.
    Local,
    /// Name for a value of sizes, iterators and static values.
    Named,
    /// Parameter, with frame and declaration of the caller's name if the argument is a name for a value of sizes.
    Param(Option<(usize, Span)>),
    /// Iterator of a loop.
    Iterator,
    /// Size parameter.
    Size,
    /// Name with a faulty declaration, which a diagnostic has reported.
    Poisoned,
}

/// Binding of a name in a scope.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub(crate) value: Value,
    pub(crate) role: Role,
    /// Place of the declaration.
    pub(crate) site: Span,
}

/// Names declared in a function's body, or in a dynamic block (a loop's body, a branch), with which they end; static
/// control flow has no scope of its own.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(crate) names: FxHashMap<String, Binding>,
}

/// Call that is being inlined, or the entry itself.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) id: usize,
    pub(crate) module: ModuleId,
    pub(crate) scopes: Vec<Scope>,
    /// Findings of earlier walks.
    pub(crate) findings: Findings,
    /// Names that were declared from weak values.
    pub(crate) declared: Vec<Declared>,
    /// Called function, and the spans of its arguments in the order of its parameters.
    pub(crate) called: Option<(FuncRef, Arc<[Span]>)>,
    /// Number of visits of each declaration from a weak value.
    pub(crate) visits: FxHashMap<Span, u32>,
    /// Names of blocks that have ended, with their declarations.
    pub(crate) ended: FxHashMap<String, Span>,
    /// Names that must be tensors, as far as the syntax alone tells.
    pub(crate) looped: Arc<FxHashSet<String>>,
}

impl Frame {
    /// Returns the binding of a name and the number of its scope.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, &Binding)> {
        self.scopes.iter().enumerate().rev().find_map(|(k, s)| s.names.get(name).map(|b| (k, b)))
    }
}

impl<'p> Elab<'p> {
    pub(crate) fn frame(&self) -> &Frame {
        self.frames.last().expect("a frame is open during elaboration")
    }

    pub(crate) fn frame_mut(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a frame is open during elaboration")
    }

    /// Opens a frame with one scope.
    pub(crate) fn push_frame(&mut self, module: ModuleId, looped: Arc<FxHashSet<String>>) -> usize {
        let id = self.next_frame;
        self.next_frame += 1;
        self.frames.push(Frame {
            id,
            module,
            scopes: vec![Scope::default()],
            findings: Findings::default(),
            declared: Vec::new(),
            called: None,
            visits: FxHashMap::default(),
            ended: FxHashMap::default(),
            looped,
        });
        id
    }

    /// Ends a block's scope.
    pub(crate) fn end_scope(&mut self) {
        let frame = self.frame_mut();
        let Some(scope) = frame.scopes.pop() else { return };
        frame.ended.extend(scope.names.into_iter().map(|(name, b)| (name, b.site)));
    }

    pub(crate) fn bind(&mut self, name: &str, value: Value, role: Role, site: Span) {
        let scope = self.frame_mut().scopes.last_mut().expect("a frame has a scope");
        scope.names.insert(name.to_string(), Binding { value, role, site });
    }

    /// Poisons a name whose value is unknown after an error: uses of it are not reported. An existing tensor keeps its
    /// shape and type.
    pub(crate) fn poison(&mut self, name: &str, site: Span) {
        let scope = match self.frame().find(name) {
            None => self.frame().scopes.len() - 1,
            Some((scope, b)) if b.role == Role::Named => scope,
            Some(_) => return,
        };
        let poisoned = Binding { value: Value::None, role: Role::Poisoned, site };
        self.frame_mut().scopes[scope].names.insert(name.to_string(), poisoned);
    }

    /// Returns the value of a name.
    pub(crate) fn lookup(&mut self, name: &str, span: Span) -> R<Value> {
        if let Some((_, b)) = self.frame().find(name) {
            if b.role == Role::Poisoned {
                return Err(Stop::Reported);
            }
            return Ok(b.value.clone());
        }
        let module = self.frame().module;
        if let Some(v) = self.global(module, name)? {
            return Ok(v);
        }
        if let Some(v) = self.size_in_map(name).or_else(|| builtin(name)) {
            return Ok(v);
        }
        if let Some(v) = self.library(name)? {
            return Ok(v);
        }
        if let Some(v) = self.schedule_library(name)? {
            return Ok(v);
        }
        if let Some(d) = self.unknown_in_schedule(name, span) {
            return Err(self.report(d));
        }
        let d = Diagnostic::new("name::unknown", format!("there is no `{name}` here")).at(span);
        if let Some(site) = self.frame().ended.get(name).copied() {
            let d = d.label(site, "this one ended with its block");
            return Err(self.report(d.help(format!("give `{name}` its first value before the block"))));
        }
        let d = match if self.many_reported() { None } else { self.near_name(name) } {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => self.explain_unknown(name, d),
        };
        Err(self.report(d))
    }

    /// Returns whether a name is visible here, as a binding, a built-in or a name of the operator library.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.is_bound_in_shape(name) || builtin(name).is_some() || self.program.prelude.contains_key(name)
    }

    /// Returns the value of a name of the operator library.
    pub(crate) fn library(&mut self, name: &str) -> R<Option<Value>> {
        match self.program.prelude.get(name).copied() {
            Some(module) => self.global(module, name),
            None => Ok(None),
        }
    }

    /// Returns the value of a name at the top level of a module.
    pub(crate) fn global(&mut self, module: ModuleId, name: &str) -> R<Option<Value>> {
        let program = self.program;
        let (mut module, mut name) = (module, name);
        // Modules may import from each other in cycles; a name that is only imported around a cycle is undefined.
        for _ in 0..=program.modules.len() {
            match program.modules[module.0].globals.get(name) {
                None => return Ok(None),
                Some(Global::Function(item)) => return Ok(Some(Value::Function(FuncRef { module, item: *item }))),
                Some(Global::Missing) => return Err(Stop::Reported),
                Some(Global::Assign(item)) => return self.static_assignment(module, *item).map(Some),
                Some(Global::Imported(from, there)) => (module, name) = (*from, there),
            }
        }
        Ok(None)
    }

    fn static_assignment(&mut self, module: ModuleId, item: usize) -> R<Value> {
        let key = (module.0, item);
        let program = self.program;
        let Item::Assign { name, value } = &program.modules[module.0].module.items[item] else {
            unreachable!("Global::Assign names an assignment")
        };
        match self.globals.get(&key) {
            Some(Some(v)) => return Ok(v.clone()),
            Some(None) => {
                return self.error("name::cycle", name.span, format!("`{}` is defined in terms of itself", name.text));
            }
            None => {}
        }
        self.globals.insert(key, None);
        self.push_frame(module, Arc::default());
        let result = self.eval(value);
        self.frames.pop();
        let value = match result {
            Ok(v) if v.is_static() => v,
            Ok(v) => {
                self.globals.remove(&key);
                return self.error_help(
                    "static::module",
                    value.span,
                    format!("expected a static value for `{}`, found {}", name.text, v.describe()),
                    "move it into a function: values at the top level of a file are known when compiling",
                );
            }
            Err(e) => {
                self.globals.remove(&key);
                return Err(e);
            }
        };
        self.globals.insert(key, Some(value.clone()));
        Ok(value)
    }

    /// Returns the known name nearest to a misspelt one.
    fn near_name(&self, name: &str) -> Option<String> {
        let frame = self.frame();
        let mut all: Vec<String> = frame.scopes.iter().flat_map(|s| s.names.keys().cloned()).collect();
        let globals = &self.program.modules[frame.module.0].globals;
        if globals.len() <= MAX_PROPOSED {
            all.extend(globals.keys().cloned());
        }
        all.extend(self.program.prelude_names.iter().cloned());
        if self.schedule.is_some() {
            all.extend(self.program.schedule_names.iter().cloned());
        }
        all.extend(Builtin::ALL.iter().map(|(n, _)| n.to_string()));
        all.extend(
            Op::ALL.iter().filter(|op| Op::from_call(op.info().name).is_some()).map(|op| op.info().name.to_string()),
        );
        all.extend(DType::ALL.iter().map(|d| d.name().to_string()));
        all.extend(Storage::names().map(str::to_string));
        all.sort();
        taffeta_ast::spelling::nearest(name, all.iter()).map(str::to_string)
    }

    fn explain_unknown(&self, name: &str, d: Diagnostic) -> Diagnostic {
        if self.schedule.is_none() && self.program.schedule_names.iter().any(|n| n == name) {
            return d.help("it works on schedules: call it in a function under `@schedule(…)`");
        }
        match name {
            "np" | "numpy" | "torch" | "math" => d.help("write the operator's name alone: `exp(x)`, `sum(x, axis=0)`"),
            "int" | "float" => d.help("convert with `cast(x, i64)` or `cast(x, f64)`"),
            _ => d,
        }
    }
}

/// Returns whether the language itself defines the name.
pub fn is_builtin(name: &str) -> bool {
    builtin(name).is_some()
}

/// Returns the value of a name that the language itself defines.
fn builtin(name: &str) -> Option<Value> {
    if let Some(d) = DType::parse(name) {
        return Some(Value::DType(d));
    }
    Some(match name {
        "inf" => Value::Float(f64::INFINITY),
        "nan" => Value::Float(f64::NAN),
        "pi" => Value::Float(std::f64::consts::PI),
        "reals" => Value::Reals,
        "int" => Value::Type(StaticType::Int),
        "float" => Value::Type(StaticType::Float),
        "str" => Value::Type(StaticType::Str),
        "tuple" => Value::Type(StaticType::Tuple),
        "list" => Value::Type(StaticType::List),
        _ => {
            if let Some((_, b)) = Builtin::ALL.iter().find(|(n, _)| *n == name) {
                Value::Builtin(*b)
            } else {
                let operator = Op::from_call(name).map(Value::Operator);
                return operator.or_else(|| Storage::find(name).map(Value::Storage));
            }
        }
    })
}
