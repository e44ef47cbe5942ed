"""Reads Python sources and prints the tree that Python's own parser makes of each, in the form of tree.rs.

Input and output are records: a decimal length, a newline, that many bytes. An output record is the tree, or `!` and the reason.
"""

import ast
import sys
import warnings
from decimal import Decimal

warnings.simplefilter("ignore")
OPS = {"Mult": "Mul", "MatMult": "MatMul", "LShift": "Shl", "RShift": "Shr"}
CMP = {"NotEq": "Ne", "LtE": "Le", "GtE": "Ge", "Gt": "Gt"}
UNARY = {"USub": "Neg", "UAdd": "Pos"}


def quote(text):
    def one(c):
        return "\\n" if c == "\n" else c if " " <= c <= "~" and c not in '"\\' else "\\u{%x}" % ord(c)

    return '"' + "".join(map(one, text)) + '"'


def number(value):
    if value == 0:
        return "0e0"
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    digits = "".join(map(str, digits))
    point = "." + digits[1:] if digits[1:] else ""
    return f"{digits[0]}{point}e{exponent + len(digits) - 1}"


def name(table, node):
    kind = type(node).__name__
    return table.get(kind, kind)


def dotted(node):
    return node.id if isinstance(node, ast.Name) else dotted(node.value) + "." + node.attr


def names(node):
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    return ", ".join(map(dotted, nodes))


def many(nodes, separator=", "):
    return separator.join(map(expr, nodes))


def expr(e):
    if e is None:
        return ""
    match e:
        case ast.Name(id=i):
            return i
        case ast.Constant(value=v):
            if v is None or v is True or v is False:
                return str(v)
            if v is ...:
                return "..."
            if isinstance(v, str):
                return quote(v)
            if isinstance(v, int):
                return str(v)
            if isinstance(v, float):
                return number(v)
            raise ValueError(f"literal {v!r}")
        case ast.JoinedStr(values=vs):
            for v in vs:
                if isinstance(v, ast.FormattedValue):
                    assert v.conversion == -1 and v.format_spec is None
            return f"f[{many([v.value if isinstance(v, ast.FormattedValue) else v for v in vs], ' ')}]"
        case ast.Tuple(elts=es):
            return f"tuple({many(es)})"
        case ast.List(elts=es):
            return f"[{many(es)}]"
        case ast.ListComp(elt=elt, generators=[g]):
            conds = "".join(" if " + expr(c) for c in g.ifs)
            return f"[{expr(elt)} for {names(g.target)} in {expr(g.iter)}{conds}]"
        case ast.BinOp(left=a, op=op, right=b):
            return f"({name(OPS, op)} {expr(a)} {expr(b)})"
        case ast.UnaryOp(op=op, operand=a):
            return f"({name(UNARY, op)} {expr(a)})"
        case ast.BoolOp(op=op, values=vs):
            return f"({type(op).__name__.lower()} {many(vs, ' ')})"
        case ast.Compare(left=a, ops=ops, comparators=bs):
            return f"({expr(a)}{''.join(f' {name(CMP, o)} {expr(b)}' for o, b in zip(ops, bs))})"
        case ast.IfExp(test=c, body=a, orelse=b):
            return f"(if {expr(c)} then {expr(a)} else {expr(b)})"
        case ast.Call(func=f, args=args, keywords=kws):
            return f"{expr(f)}({', '.join([expr(a) for a in args] + [f'{k.arg}={expr(k.value)}' for k in kws])})"
        case ast.Attribute(value=v, attr=a):
            return f"{expr(v)}.{a}"
        case ast.Subscript(value=v, slice=s):
            return f"{expr(v)}[{many(s.elts) if isinstance(s, ast.Tuple) else expr(s)}]"
        case ast.Slice(lower=a, upper=b, step=c):
            return f"{expr(a)}:{expr(b)}" + (f":{expr(c)}" if c else "")
        case ast.Lambda(args=a, body=b):
            return f"(lambda {', '.join(p.arg for p in a.args)}: {expr(b)})"
    raise ValueError(f"unexpected {ast.dump(e)}")


def is_text(s):
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)


def block(out, stmts, depth):
    pad = "    " * depth
    for s in stmts:
        if is_text(s):
            continue
        match s:
            case ast.Assign(targets=[t], value=v):
                several = isinstance(t, (ast.Tuple, ast.List)) and len(t.elts) > 1
                out.append(f"{pad}{many(t.elts) if several else expr(t)} = {expr(v)}")
            case ast.AnnAssign(target=t, annotation=a, value=v, simple=1):
                out.append(f"{pad}declare {expr(t)}: {expr(a)}" + (f" = {expr(v)}" if v else ""))
            case ast.AugAssign(target=t, op=op, value=v):
                out.append(f"{pad}{expr(t)} {name(OPS, op)}= {expr(v)}")
            case ast.For(target=t, iter=i, body=b, orelse=[]):
                out.append(f"{pad}for {names(t)} in {expr(i)}")
                block(out, b, depth + 1)
            case ast.If(test=c, body=b, orelse=o):
                out.append(f"{pad}if {expr(c)}")
                block(out, b, depth + 1)
                if not all(map(is_text, o)):
                    out.append(pad + "else")
                    block(out, o, depth + 1)
            case ast.Assert(test=c, msg=m):
                out.append(f"{pad}assert {expr(c)}" + (f" else {expr(m)}" if m else ""))
            case ast.Pass():
                out.append(pad + "pass")
            case ast.Return(value=v):
                out.append(pad + "return" + (f" {expr(v)}" if v else ""))
            case ast.Expr(value=v):
                out.append(pad + expr(v))
            case _:
                raise ValueError(f"unexpected {ast.dump(s)}")


def function(out, f):
    out.extend("@" + expr(d) for d in f.decorator_list)
    a = f.args
    assert not (a.posonlyargs or a.kwonlyargs or a.vararg or a.kwarg)
    defaults = [None] * (len(a.args) - len(a.defaults)) + a.defaults
    params = [
        p.arg + (f": {expr(p.annotation)}" if p.annotation else "") + (f" = {expr(d)}" if d else "")
        for p, d in zip(a.args, defaults)
    ]
    out.append(f"def {f.name}({', '.join(params)})" + (f" -> {expr(f.returns)}" if f.returns else ""))
    if is_text(f.body[0]):
        out.append(f"    doc {quote(f.body[0].value.value)}")
    block(out, f.body, 1)


def module(m):
    out = []
    for i, s in enumerate(m.body):
        match s:
            case ast.ImportFrom(module=mod, names=ns, level=0):
                out.append(f"import {mod} [{' '.join(f'{n.asname}={n.name}' if n.asname else n.name for n in ns)}]")
            case ast.Assign(targets=[ast.Name(id=n)], value=v):
                out.append(f"{n} = {expr(v)}")
            case ast.FunctionDef():
                function(out, s)
            case ast.Pass():
                pass
            case _ if is_text(s):
                if i == 0:
                    out.append(f"doc {quote(s.value.value)}")
            case _:
                raise ValueError(f"unexpected {ast.dump(s)}")
    return "".join(line + "\n" for line in out)


def main():
    while length := sys.stdin.buffer.readline():
        source = sys.stdin.buffer.read(int(length))
        try:
            answer = module(ast.parse(source))
        except Exception as e:
            answer = f"!{type(e).__name__}: {e}"
        data = answer.encode("utf-8", "backslashreplace")
        sys.stdout.buffer.write(b"%d\n" % len(data) + data)


main()
