"""Interpreter of dense Taffeta programs on NumPy: a `.ft` file is valid Python, so Python's own `ast` reads it.

This is the oracle for the whole compiler, so it shares nothing with it and is kept small. It differs from running the
file as Python exactly where Taffeta's values differ from NumPy's: assignment copies, `t = expr` writes into an existing
name, names are scoped to their block, template arguments are views, `x[idx] += v` accumulates duplicates, weak numbers
take the type they meet, slices never clamp. libop's operators are those of taffeta_libop.py, written with NumPy; with
`libop="ft"` (and for operators that have no twin there) libop's own files are interpreted.
"""
import ast
import math
import os
import sys

import numpy as np

import taffeta_libop_more  # noqa: F401  (registers operators)
from taffeta_builtins import Builtins
from taffeta_libop import OPERATORS
from taffeta_places import converted, filled, numpy_index, store, viewed_dims
from taffeta_values import (BOOL, DTYPES, F32, F64, I32, I64, UNARY, Declared, DType, Tensor, Weak, TaffetaError, array, binary, choose,
                            condition, declared_type, invert, is_weak, negate, number, result, same, to_type, unary, weak_type)

sys.setrecursionlimit(50000)  # a template's call takes a dozen of Python's
LIBOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "libop", "ops")
BINARY = {"Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**", "BitAnd": "&",
          "BitOr": "|", "BitXor": "^", "LShift": "<<", "RShift": ">>"}
COMPARISON = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}
CONSTANTS = {"inf": math.inf, "nan": math.nan, "pi": math.pi, **DTYPES}
BUILTINS = set(UNARY) | {"min", "max", "pow", "fma", "atan2", "select", "clip", "cast", "zeros", "ones", "empty", "full",
                         "arange", "len", "range", "ndrange", "static", "label", "isinstance", "tuple", "list", "walk",
                         "gallop", "follow", "locate"}


class Function:
    """Function definition, with the module whose names it sees."""

    def __init__(self, node, module):
        self.node, self.module, self.name = node, module, node.name
        args = node.args
        if args.posonlyargs or args.kwonlyargs or args.vararg or args.kwarg:
            raise TaffetaError(f"{node.name}: parameters of this kind are not in Taffeta")
        self.params = args.args
        first = len(args.args) - len(args.defaults)
        self.defaults = {a.arg: d for a, d in zip(args.args[first:], args.defaults)}
        self.is_entry = bool(self.params or node.returns) and all(a.annotation for a in self.params)
        self.written_again = names_written_again(node)


def leaves(target):
    """Collects the names and places in a target, which may be nested tuples."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [leaf for t in target.elts for leaf in leaves(t)]
    return [target]


def copied(value):
    """Returns a copy of a value that later writes do not change."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(copied, value))
    return value.copy() if isinstance(value, Tensor) else value


def names_written_again(node):
    """Collects names assigned more than once, augmented or stored into: tensors even where the value is weak."""
    count = {}
    for n in ast.walk(node):
        targets = n.targets if isinstance(n, ast.Assign) else [n.target] if isinstance(n, ast.AugAssign) else []
        for t in targets:
            for leaf in leaves(t):
                weight = 1 if isinstance(n, ast.Assign) and isinstance(leaf, ast.Name) else 2
                while isinstance(leaf, ast.Subscript):
                    leaf = leaf.value
                count[leaf.id] = count.get(leaf.id, 0) + weight
    return {name for name, times in count.items() if times > 1}


class Types:
    """Types of names declared from weak values: those that this run has stored into them, and those that it assumes.

    A declaration is identified by its place in the text and the calls and static rounds that lead there.
    """

    def __init__(self):
        self.assumed, self.found, self.settled = {}, {}, set()

    def learn(self):
        """Adopts the types that a run has stored; returns whether any is new. If none is, open names are f32 or i32."""
        open_ones = {site: d for site, d in self.found.items() if site not in self.settled}
        new = {site: d.dtype() for site, d in open_ones.items() if d.dtype() not in (None, self.assumed.get(site))}
        if not new:
            new = {site: {I64: I32, F64: F32}[d.kind] for site, d in open_ones.items() if site not in self.assumed}
            self.settled.update(new)
        self.assumed.update(new)
        return bool(new)


TYPES = Types()


def table_item(values, index):
    """Returns an element of a list of numbers, which are weak as the literals are."""
    a = np.array(values)
    dtype = {"b": BOOL, "i": I64, "f": F64}[a.dtype.kind]
    table = Tensor(a.astype(dtype.np), dtype, list(a.shape), is_open=dtype is not BOOL)
    at, _ = numpy_index(table, index)
    part = np.asarray(table.a[at])
    return Weak(part.item()) if part.ndim == 0 else Tensor(part, dtype, is_open=table.open)


class NoGradients(Exception):
    """Error of a program that takes a derivative, which NumPy lacks."""


class Module:
    """File: functions, imports and static assignments, which are evaluated when they are first used."""

    def __init__(self, text, folder=None, path="<text>", libop="numpy"):
        self.folder, self.path, self.libop, self.names, self.pending = folder, path, libop, {}, {}
        for node in ast.parse(text, path).body:
            if isinstance(node, ast.FunctionDef):
                schedule = [d for d in node.decorator_list if isinstance(d, ast.Call) and getattr(d.func, "id", "") == "schedule"]
                if not schedule:
                    self.names[node.name] = Function(node, self)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self.names[alias.asname or alias.name] = self.imported(node.module, alias.name)
            elif isinstance(node, ast.Assign):
                self.pending[node.targets[0].id] = node.value
            elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                raise TaffetaError(f"{path}:{node.lineno}: not at the top level of a file")

    def imported(self, module, name):
        if module == "libop":
            return libop_function(name, self.libop)
        with open(os.path.join(self.folder or ".", module + ".ft")) as f:
            return Module(f.read(), self.folder, module + ".ft", self.libop).look_up(name)

    def look_up(self, name):
        if name in self.pending:
            self.names[name] = Frame(None, self).eval(self.pending.pop(name))
        return self.names.get(name)


_FT_MODULES = {}


def libop_function(name, mode):
    """Returns an operator: its NumPy twin, or libop's own function."""
    if mode == "numpy" and name in OPERATORS:
        return OPERATORS[name]
    if not _FT_MODULES:
        for file in sorted(os.listdir(LIBOP)):
            with open(os.path.join(LIBOP, file)) as f:
                text = f.read()
            for node in ast.parse(text).body:
                if isinstance(node, ast.FunctionDef):
                    _FT_MODULES[node.name] = [file, text, {}]
    if name not in _FT_MODULES:
        return None
    file, text, loaded = _FT_MODULES[name]
    if mode not in loaded:
        loaded[mode] = Module(text, LIBOP, file, mode)
        for entry in _FT_MODULES.values():
            if entry[0] == file:
                entry[2][mode] = loaded[mode]
    return loaded[mode].look_up(name)


class Return(Exception):
    """Exit from a function, with the values and the expressions that gave them."""

    def __init__(self, value, node):
        self.value, self.node = value, node


class Frame:
    """One call of a function: its blocks, innermost last, each with its names."""

    def __init__(self, function, module, path=()):
        self.function, self.module, self.path = function, module, path
        self.blocks = [{}]
        self.params = {}  # name -> "view", "read" or "inout"
        self.unrolled = ()  # rounds of the enclosing static loops
        self.calling = None  # place of the call under evaluation

    # ---- names

    def find(self, name):
        for block in reversed(self.blocks):
            if name in block:
                return block
        return None

    def look_up(self, name):
        block = self.find(name)
        if block is not None:
            return block[name]
        value = self.module.look_up(name)
        if value is None and name in CONSTANTS:
            return CONSTANTS[name]
        if value is None:
            value = libop_function(name, self.module.libop)
        if value is None:
            raise TaffetaError(f"unknown name {name}")
        return value

    # ---- statements

    def run(self, body):
        for node in body:
            try:
                getattr(self, "do_" + type(node).__name__)(node)
            except (TaffetaError, AttributeError, IndexError, TypeError, ValueError) as e:
                if getattr(e, "located", False):
                    raise
                error = TaffetaError(f"{self.module.path}:{node.lineno}: {e}")
                error.located = True
                raise error from e

    def run_block(self, body):
        self.blocks.append({})
        try:
            self.run(body)
        finally:
            self.blocks.pop()

    def do_Pass(self, node):
        pass

    def do_Expr(self, node):
        value = node.value
        # Printed lines are compared between the interpreter and C; NumPy writes numbers in another way.
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print":
            return
        if not isinstance(value, ast.Constant):
            self.eval(value)

    def do_Assert(self, node):
        if not number(self.eval(node.test)):
            raise TaffetaError(f"assertion failed: {self.message(node.msg)}")

    def message(self, node):
        if not isinstance(node, ast.JoinedStr):
            return "" if node is None else str(self.eval(node))
        parts = [p.value if isinstance(p, ast.Constant) else self.eval(p.value) for p in node.values]
        return "".join(str(p.v if isinstance(p, Weak) else p.a if isinstance(p, Tensor) else p) for p in parts)

    def do_Return(self, node):
        raise Return(None if node.value is None else self.eval(node.value), node.value)

    def do_If(self, node):
        test = self.eval(node.test)
        body = node.body if number(test) else node.orelse
        if isinstance(test, bool):
            self.run(body)
        else:
            self.run_block(body)

    def do_For(self, node):
        names = [t.id for t in node.target.elts] if isinstance(node.target, ast.Tuple) else [node.target.id]
        call = node.iter
        kind = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None
        if kind == "static":
            before = self.unrolled
            for k, v in enumerate(self.eval(call.args[0])):
                self.unrolled = before + (k,)
                self.blocks[-1].update(zip(names, v if len(names) > 1 else [v]))
                self.run(node.body)
            self.unrolled = before
            return
        if kind == "ndrange":
            ranges = [r if isinstance(r, range) else range(number(r)) for r in map(self.eval, call.args)]
        elif kind == "range":
            ranges = [range(*[number(self.eval(a)) for a in call.args])]
        else:
            raise TaffetaError("a loop runs over range, ndrange or static")
        for index in np.ndindex(*[len(r) for r in ranges]):
            self.blocks.append({n: Weak(r[k]) for n, r, k in zip(names, ranges, index)})
            try:
                self.run(node.body)
            finally:
                self.blocks.pop()

    def do_Assign(self, node):
        values = self.eval(node.value)
        if len(node.targets) > 1:
            raise TaffetaError("one target is expected")
        self.unpack(node.targets[0], values)

    def unpack(self, target, value):
        if not isinstance(target, (ast.Tuple, ast.List)):
            self.assign(target, value)
            return
        if len(target.elts) != len(value):
            raise TaffetaError(f"{len(value)} values for {len(target.elts)} names")
        for t, v in zip(target.elts, copied(value)):
            self.unpack(t, v)

    def assign(self, target, value):
        if isinstance(target, ast.Subscript):
            base, index, _ = self.place(target)
            store(base, index, value)
            return
        name = target.id
        block = self.find(name)
        if block is None:
            self.blocks[-1][name] = self.declared(name, value, target)
        elif isinstance(block[name], Tensor):
            if name in self.params:
                raise TaffetaError(f"`{name} = …` of a parameter: write {name}[...] = …")
            store(block[name], (..., ), value)
        elif isinstance(value, Tensor):
            raise TaffetaError(f"{name} is no tensor")
        else:
            block[name] = value

    def declared(self, name, value, target):
        """Returns the value of a new name: its own copy of a tensor; a weak value where it is never written again."""
        if isinstance(value, Tensor):
            return value.copy()
        if not is_weak(value) or name not in self.function.written_again:
            return value
        dtype = declared_type(value)
        if dtype is BOOL:
            return Tensor(array(value, dtype), dtype)
        # Its type is that of the values that the run before stored into it (see `run`).
        site = (self.path, self.unrolled, self.module.path, target.lineno, target.col_offset)
        found = TYPES.found.setdefault(site, Declared(weak_type(value)))
        known = TYPES.assumed.get(site)
        dtype = known or dtype
        return Tensor(array(value, dtype), dtype, declared=found, is_open=known is None)

    def do_AnnAssign(self, node):
        if self.find(node.target.id) is not None:
            raise TaffetaError(f"{node.target.id} is declared already")
        dtype, dims = self.annotation(node.annotation)
        self.blocks[-1][node.target.id] = filled(tuple(map(self.eval, dims)), self.eval(node.value), dtype)

    def do_AugAssign(self, node):
        op, value = BINARY[type(node.op).__name__], self.eval(node.value)
        if isinstance(node.target, ast.Name):
            base, index, gathered = self.look_up(node.target.id), (...,), False
            if not isinstance(base, Tensor):
                raise TaffetaError(f"{node.target.id} is no tensor")
            if self.params.get(node.target.id) == "read":
                raise TaffetaError(f"{node.target.id} is read-only; annotate it inout[…]")
        else:
            base, index, gathered = self.place(node.target)
        old = Tensor(np.asarray(base.a[index]).copy(), base.dtype)
        old.open = base.open
        if op not in ("+", "-", "*", "|", "&"):
            store(base, index, binary(op, old, value))
            return
        if base.declared is not None:
            base.declared.store(value)
        if base.open:
            value = Tensor(array(value, base.dtype), base.dtype, value.dims if isinstance(value, Tensor) else ())
        value = converted(value, base.dtype)
        if gathered:
            repeated = {"+": np.add, "-": np.subtract, "*": np.multiply, "|": np.bitwise_or, "&": np.bitwise_and}[op]
            repeated.at(base.a, index, value.a.copy())
            return
        store(base, index, binary(op, old, value))

    # ---- places

    def place(self, node):
        """Returns the tensor, its NumPy index, and whether the index gathers (and may name an element twice)."""
        base = self.eval(node.value)
        if not isinstance(base, Tensor):
            raise TaffetaError("a subscript of something that is no tensor")
        if isinstance(node.value, ast.Name) and self.params.get(node.value.id) == "read":
            if not isinstance(node.ctx, ast.Load):
                raise TaffetaError(f"{node.value.id} is read-only; annotate it inout[…]")
        index, gathered = numpy_index(base, self.items(node.slice))
        return base, index, gathered

    def items(self, node):
        """Returns the items between the brackets; a single static list or tuple stands for its items."""
        if isinstance(node, ast.Tuple):
            return [self.eval(n) for n in node.elts]
        item = self.eval(node)
        return list(item) if isinstance(item, (tuple, list)) else [item]

    # ---- expressions

    def eval(self, node):
        return getattr(self, "eval_" + type(node).__name__)(node)

    def eval_Constant(self, node):
        return node.value

    def eval_JoinedStr(self, node):
        return self.message(node)

    def eval_Name(self, node):
        return self.look_up(node.id)

    def eval_Tuple(self, node):
        return tuple(map(self.eval, node.elts))

    def eval_List(self, node):
        return list(map(self.eval, node.elts))

    def eval_Slice(self, node):
        return slice(*[None if n is None else self.eval(n) for n in (node.lower, node.upper, node.step)])

    def eval_ListComp(self, node):
        (part,) = node.generators
        names = [t.id for t in part.target.elts] if isinstance(part.target, ast.Tuple) else [part.target.id]
        out = []
        for v in self.eval(part.iter):
            self.blocks.append(dict(zip(names, v if len(names) > 1 else [v])))
            if all(number(self.eval(c)) for c in part.ifs):
                out.append(self.eval(node.elt))
            self.blocks.pop()
        return out

    def eval_BinOp(self, node):
        a, b = self.eval(node.left), self.eval(node.right)
        if isinstance(node.op, ast.MatMult):
            return self.call_value(self.look_up_operator("matmul"), [a, b], {})
        return binary(BINARY[type(node.op).__name__], a, b)

    def look_up_operator(self, name):
        return libop_function(name, self.module.libop)

    def eval_UnaryOp(self, node):
        a = self.eval(node.operand)
        if isinstance(node.op, ast.Not):
            return result(np.logical_not(condition(a)), BOOL, a)
        return {ast.USub: negate, ast.Invert: invert, ast.UAdd: lambda v: v}[type(node.op)](a)

    def eval_BoolOp(self, node):
        """Evaluates only the operands that are needed, where they are scalars."""
        function = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        a = self.eval(node.values[0])
        for n in node.values[1:]:
            if condition(a).ndim == 0 and bool(condition(a)) != isinstance(node.op, ast.And):
                if not isinstance(a, Tensor):
                    return a
                continue
            b = self.eval(n)
            a = result(function(condition(a), condition(b)), BOOL, a, b)
        return a

    def eval_Compare(self, node):
        a, total = self.eval(node.left), None
        for op, n in zip(node.ops, node.comparators):
            b = self.eval(n)
            here = self.compare(type(op).__name__, a, b)
            total = here if total is None else result(np.logical_and(condition(total), condition(here)), BOOL, total, here)
            a = b
        return total

    def compare(self, op, a, b):
        if op in ("Is", "IsNot"):
            return (a is b) == (op == "Is")
        if op in ("In", "NotIn"):
            found = a in b if isinstance(b, str) else any(same(a, v) for v in b)
            return found == (op == "In")
        return binary(COMPARISON[op], a, b)

    def eval_IfExp(self, node):
        return self.choice(self.eval(node.test), node.body, node.orelse)

    def choice(self, test, then, otherwise):
        """Evaluates only the chosen operand where the condition is a scalar."""
        if isinstance(test, bool):
            return self.eval(then if test else otherwise)
        if condition(test).ndim:
            return choose(test, self.eval(then), self.eval(otherwise))
        chosen = self.eval(then if number(test) else otherwise)
        try:  # both operands promote to the type, if the other one can be evaluated at all
            other = self.eval(otherwise if number(test) else then)
        except (TaffetaError, IndexError):
            return chosen
        return choose(test, chosen, other) if number(test) else choose(test, other, chosen)

    def eval_Attribute(self, node):
        base = self.eval(node.value)
        if node.attr == "shape":
            return base.dims if isinstance(base, Tensor) else ()
        if node.attr == "ndim":
            return base.ndim if isinstance(base, Tensor) else 0
        if node.attr == "dtype":
            return declared_type(base)
        raise TaffetaError(f"a tensor has no {node.attr}")

    def eval_Subscript(self, node):
        base = self.eval(node.value)
        if isinstance(base, (tuple, list, str, range)):
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            index = [self.eval(n) for n in items]
            if len(index) > 1 or isinstance(index[0], (Weak, Tensor)):
                return table_item(base, index)
            return base[index[0]]
        if isinstance(base, DType):
            raise TaffetaError("a type is no value here")
        base, index, gathered = self.place(node)
        a = np.asarray(base.a[index])
        dims = [Weak(n) for n in a.shape] if gathered else viewed_dims(base, index)
        return Tensor(a, base.dtype, dims, base.declared, base.open)

    def eval_Call(self, node):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "shape":
            return self.eval(node.func)[self.eval(node.args[0])]
        called = node.func.func if isinstance(node.func, ast.Call) else node.func
        if getattr(called, "id", "") in ("grad", "value_and_grad", "vjp", "jvp"):
            raise NoGradients("gradients are not run here")
        if not isinstance(node.func, ast.Name):
            raise TaffetaError("only functions that have a name are called")
        name = node.func.id
        keywords = {k.arg: k.value for k in node.keywords}
        hidden = self.find(name) is not None or self.module.look_up(name) is not None
        pair = name in ("min", "max") and (len(node.args) < 2 or "axis" in keywords)
        if name in DTYPES and not hidden:
            raise TaffetaError(f"write cast(x, {name})")
        if name in BUILTINS and not hidden and not pair:
            return self.builtin(name, node.args, keywords)
        args = [self.eval(a) for a in node.args]
        self.calling = (node.lineno, node.col_offset)
        return self.call_value(self.look_up(name), args, {k: self.eval(v) for k, v in keywords.items()})

    def call_value(self, function, args, keywords):
        if callable(function):
            return function(*args, **keywords)
        if not isinstance(function, Function):
            raise TaffetaError("this is no function")
        return call(function, args, keywords, path=self.path + (self.unrolled, self.calling))[0]

    def builtin(self, name, nodes, keywords):
        if name == "select":
            return self.choice(self.eval(nodes[0]), nodes[1], nodes[2])
        if name == "isinstance":
            kinds = {"tuple": tuple, "list": list, "str": str, "int": int, "float": float, "bool": bool}
            wanted = nodes[1].elts if isinstance(nodes[1], ast.Tuple) else [nodes[1]]
            return isinstance(self.eval(nodes[0]), tuple(kinds[n.id] for n in wanted))
        args = [self.eval(n) for n in nodes]
        keywords = {k: self.eval(v) for k, v in keywords.items()}
        return getattr(Builtins, name)(*args, **keywords) if name not in UNARY else unary(name, *args)

    # ---- types

    def annotation(self, node):
        """Returns element type and dimensions (as nodes) of `f32[n, m] @ csr`: storage does not change the meaning."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return self.annotation(node.left)
        if isinstance(node, ast.Subscript):
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return self.eval(node.value), items
        return self.eval(node), []


def call(function, args, keywords, outer_sizes=None, path=()):
    """Runs a function on values; returns its result, the expression after `return`, and the frame."""
    frame = Frame(function, function.module, path)
    scope = frame.blocks[0]
    names = [p.arg for p in function.params]
    if len(args) > len(names) or set(keywords) - set(names) or set(keywords) & set(names[:len(args)]):
        raise TaffetaError(f"{function.name} takes {names}")
    given = {**dict(zip(names, args)), **keywords}
    for p in function.params:
        if p.arg not in given:
            if p.arg not in function.defaults:
                raise TaffetaError(f"{function.name}: {p.arg} is missing")
            given[p.arg] = Frame(None, function.module).eval(function.defaults[p.arg])
    scope.update(outer_sizes or {})
    later = []
    for p in function.params:
        value, mode = given[p.arg], "view"
        if p.annotation is not None:
            value, mode = bind(frame, p, value, later)
        scope[p.arg] = value
        frame.params[p.arg] = mode
    for p, node, value, d in later:
        expected = number(frame.eval(node))
        if expected != value:
            raise TaffetaError(f"{function.name}: dimension {d} of {p} is {value}, not {expected}")
    frame.blocks.append({})
    try:
        frame.run(function.node.body)
    except Return as r:
        return r.value, r.node, frame
    return None, None, frame


def bind(frame, param, value, later):
    """Binds an annotated parameter: its type, and sizes fixed by its dimensions; others are checked `later`."""
    node, mode = param.annotation, "read"
    if isinstance(node, ast.Name) and node.id == "static":
        return value, "static"
    if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "inout":
        node, mode = node.slice, "inout"
    dtype, dims = frame.annotation(node)
    if not isinstance(value, Tensor):
        value = converted(value, dtype)
    if value.ndim != len(dims):
        raise TaffetaError(f"{param.arg} has {value.ndim} dimensions, not {len(dims)}")
    if mode == "inout" and value.declared is not None:
        value.declared.store(Tensor(np.zeros((), dtype.np), dtype))
    if value.dtype is not dtype:
        raise TaffetaError(f"{param.arg} is {value.dtype}, not {dtype}")
    known = []
    for d, n in enumerate(dims):
        length = value.dims[d]
        is_size = isinstance(n, ast.Name) and frame.module.look_up(n.id) is None
        if isinstance(n, ast.Constant):
            length = n.value
        elif is_size and n.id not in frame.blocks[0]:
            frame.blocks[0][n.id] = Weak(number(length))
            length = frame.blocks[0][n.id]
        elif is_size:
            length = frame.blocks[0][n.id]
        else:
            length = Weak(value.a.shape[d])
        later.append((param.arg, n, value.a.shape[d], d))
        known.append(length)
    for length, n in zip(known, value.a.shape):
        if number(length) != n:
            raise TaffetaError(f"{param.arg}: a dimension is {n}, not {number(length)}")
    return Tensor(value.a, dtype, known, value.declared), mode


def run(text, entry, inputs, sizes=None, statics=None, folder=None, path="<text>", libop="numpy"):
    """Runs an entry on NumPy arrays; returns its results (and `inout` parameters) by name, as arrays."""
    module = Module(text, folder, path, libop)
    function = module.look_up(entry)
    if not isinstance(function, Function) or not function.is_entry:
        raise TaffetaError(f"{entry} is no entry")
    given = dict(statics or {})
    probe = Frame(None, module)
    for p in function.params:
        if p.arg in inputs:
            node = p.annotation
            if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "inout":
                node = node.slice
            dtype = probe.annotation(node)[0]
            given[p.arg] = Tensor(np.array(to_type(inputs[p.arg], dtype)), dtype)
    fresh = {k: v.a.copy() for k, v in given.items() if isinstance(v, Tensor)}
    TYPES.assumed, TYPES.settled = {}, set()
    while True:
        TYPES.found = {}
        for k, a in fresh.items():
            given[k] = Tensor(a.copy(), given[k].dtype)
        with np.errstate(all="ignore"):
            try:
                value, node, frame = call(function, [], given, {k: Weak(v) for k, v in (sizes or {}).items()})
                error = None
            except TaffetaError as e:
                error = e
        if not TYPES.learn():
            break
    if error is not None:
        raise error
    out = {p: frame.blocks[0][p].a for p, mode in frame.params.items() if mode == "inout"}
    if value is None:
        return out
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    values = value if isinstance(value, (tuple, list)) else [value]
    if len(nodes) != len(values):
        nodes = [None] * len(values)
    wanted = result_types(probe, function.node.returns)
    for k, (n, v) in enumerate(zip(nodes, values)):
        # An `inout` parameter is a result under its name already, and so is a name that was returned before.
        named = isinstance(n, ast.Name) and n.id not in out
        name = n.id if named else "out" if k == 0 else f"out{k}"
        out[name] = converted(v, wanted[k] if wanted else declared_type(v)).a
    return out


def result_types(frame, node):
    if node is None:
        return None
    return [frame.annotation(n)[0] for n in (node.elts if isinstance(node, ast.Tuple) else [node])]
