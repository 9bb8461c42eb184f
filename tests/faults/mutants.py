"""Small wrongs of a module's source: one comparison, number, operator or statement changed. It runs nothing.

Left alone is what no reader computes with: strings, docstrings, annotations, imports, decorators, and the `strict` of a
`zip`, which is a check of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
SIGNS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
    ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.BitOr: "|", ast.BitAnd: "&",
}  # fmt: skip

Edit = tuple[ast.AST, str, Callable[[], None]]
"""The node that is changed, what it becomes in words, and the change itself."""


@dataclass(frozen=True)
class Mutant:
    """One wrong. `number` counts the edits of its file from 0; `function` is the outermost one around it, or empty."""

    path: str
    number: int
    line: int
    first: int
    """First line of the statement that it is part of."""
    function: str
    text: str
    """The line, without its indentation."""
    change: str
    """Where in the text, and what becomes of it."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is called whatever else changes in its file."""
        return self.path, self.function, self.text, self.change

    def tree(self) -> ast.Module:
        """The module with it."""
        module = ast.parse((ROOT / self.path).read_text())
        for number, (_, _, change) in enumerate(_edits(module)):
            if number == self.number:
                change()
                return ast.fix_missing_locations(module)
        raise IndexError(self.number)


def mutants(path: Path) -> list[Mutant]:
    """All of a file, in the order of its lines."""
    source = path.read_text()
    module, lines = ast.parse(source), source.splitlines()
    name = str(path.relative_to(ROOT))
    inside = {part: name for name, function in _functions(module) for statement in function.body
              for part in ast.walk(statement)}  # fmt: skip
    starts = {part: node.lineno for node in ast.walk(module) if isinstance(node, ast.stmt) for part in ast.walk(node)}
    found = []
    for number, (node, words, _) in enumerate(_edits(module)):
        at = node.right if isinstance(node, ast.BinOp) else node  # all sums of a chain begin in one place
        assert isinstance(at, (ast.expr, ast.stmt))
        line = lines[at.lineno - 1]
        column = at.col_offset - (len(line) - len(line.lstrip()))
        found.append(Mutant(name, number, at.lineno, starts[node], inside.get(node, ""), line.strip(),
                            f"{column}: {words}"))  # fmt: skip
    return found


def _functions(module: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{one.name}", one) for one in node.body if isinstance(one, ast.FunctionDef))


def _edits(module: ast.Module) -> Iterator[Edit]:
    """Deterministic; an edit is only good for the tree that it came from, and for one use."""
    for node in _reached(module):
        if isinstance(node, ast.stmt):
            yield from _of_statement(node)
        yield from _of_expression(node)


def _reached(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "format_spec"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _left_alone(child):
                yield from _reached(child)


def _left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, ast.keyword) and node.arg == "strict"


def _of_statement(node: ast.stmt) -> Iterator[Edit]:
    if isinstance(node, ast.Return) and node.value and not _is(node.value, None):
        yield node, "returns None", lambda: setattr(node, "value", ast.Constant(None))
    elif isinstance(node, (ast.Raise, ast.Continue, ast.Break)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield node, "left out", lambda: _leave_out(node)
    elif isinstance(node, ast.AugAssign) and type(node.op) in COMPUTED:
        other = COMPUTED[type(node.op)]
        yield node, f"{SIGNS[type(node.op)]}= becomes {SIGNS[other]}=", lambda: setattr(node, "op", other())


def _leave_out(node: ast.stmt) -> None:
    # In place: no parent has to be known.
    place = {name: getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")}
    node.__class__ = ast.Pass  # type: ignore[assignment]
    node.__dict__.clear()
    node.__dict__.update(place)


def _of_expression(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            for other in COMPARED[type(op)]:
                yield (node, f"{SIGNS[type(op)]} becomes {SIGNS[other]}" + (f" ({k})" if k else ""),
                       lambda k=k, other=other: node.ops.__setitem__(k, other()))  # type: ignore[misc]  # fmt: skip
    elif isinstance(node, ast.BoolOp):
        other_op, words = (ast.Or, "and becomes or") if isinstance(node.op, ast.And) else (ast.And, "or becomes and")
        yield node, words, lambda: setattr(node, "op", other_op())
    elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED and not _is_text(node):
        computed = COMPUTED[type(node.op)]
        yield node, f"{SIGNS[type(node.op)]} becomes {SIGNS[computed]}", lambda: setattr(node, "op", computed())
    elif isinstance(node, ast.Constant):
        yield from _of_constant(node)
    elif isinstance(node, ast.Name) and node.id == "VOID" and isinstance(node.ctx, ast.Load):
        yield node, "VOID becomes OK", lambda: setattr(node, "id", "OK")
    yield from _of_conditions(node)


def _of_constant(node: ast.Constant) -> Iterator[Edit]:
    value = node.value
    if isinstance(value, bool):
        others: list[float] = [not value]
    elif isinstance(value, int):
        others = [value + 1, 0] if value == 1 else [value + 1]
    elif isinstance(value, float):
        others = [value * 2 if value else 1.0]
    else:
        return
    for other in others:
        yield node, f"{value} becomes {other}", lambda other=other: setattr(node, "value", other)  # type: ignore[misc]


def _of_conditions(node: ast.AST) -> Iterator[Edit]:
    """A condition that is a comparison or a chain has edits of its own."""
    if isinstance(node, (ast.If, ast.IfExp, ast.While)) and not isinstance(node.test, (ast.Compare, ast.BoolOp)):
        yield node.test, "negated", lambda: setattr(node, "test", _negated(node.test))
    elif isinstance(node, ast.comprehension):
        for k, test in enumerate(node.ifs):
            if not isinstance(test, (ast.Compare, ast.BoolOp)):
                yield test, "negated", lambda k=k, test=test: node.ifs.__setitem__(k, _negated(test))  # type: ignore[misc]
    elif isinstance(node, ast.BoolOp):
        for k, part in enumerate(node.values):
            if not isinstance(part, (ast.Compare, ast.BoolOp)) and not _is_text(part):
                yield part, "negated", lambda k=k, part=part: node.values.__setitem__(k, _negated(part))  # type: ignore[misc]


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


def _is(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _is_text(node: ast.expr) -> bool:
    """Text put together has no other operator."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
