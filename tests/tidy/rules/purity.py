"""The core is a function of its arguments: no clock, no dice, no I/O, no order of sets, no floats.

The look-out for sets is best effort: it knows literals, calls, annotations and assignments of the same file, not what
a function elsewhere returns. The digest tests under two hash seeds catch what it misses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from rules.tree import Violation, imported_names, nodes_of, parse, room_of

PURE_ROOMS: Final = frozenset({"units", "model", "wire", "world", "lifecycle", "policy", "scheduler", "kernel"})
EXACT_ROOMS: Final = frozenset({"units", "world", "lifecycle", "policy", "scheduler", "kernel"})
_PURE: Final = """
__future__ muster msgspec numpy numba array bisect collections contextlib enum functools
hashlib heapq itertools math operator re types typing zlib
"""
PURE_MODULES: Final = frozenset(_PURE.split())
IMPURE_PARTS: Final = ("numpy.random", "numba.prange")
IMPURE_CALLS: Final = frozenset({"open", "print", "input", "hash", "id"})
ALLOWED_IMPORTS: Final = {
    ("src/muster/units/times.py", "datetime"): "prints an instant that it is given; never asks for today",
}

PARALLEL: Final = frozenset({"parallel", "fastmath"})
ORDER_FREE: Final = frozenset({"sorted", "set", "frozenset", "any", "all", "sum", "len", "min", "max"})
ORDER_KEEPING: Final = frozenset(
    {
        "list",
        "tuple",
        "iter",
        "next",
        "enumerate",
        "reversed",
        "zip",
        "map",
        "filter",
        "array",
        "chain",
        "deque",
        "islice",
    }
)
ORDERED: Final = frozenset({"list", "tuple", "next", "array", "deque"})
SET_OPERATORS: Final = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
SET_METHODS: Final = frozenset({"union", "intersection", "difference", "symmetric_difference"})
SET_TYPES: Final = frozenset({"set", "frozenset", "Set", "AbstractSet", "MutableSet"})
Scope: TypeAlias = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef


def check_impure_imports(path: str, source: str) -> Iterator[Violation]:
    """Only modules that are known to read no clock, roll no dice and reach nowhere."""
    if room_of(path) not in PURE_ROOMS:
        return
    for node in nodes_of(source):
        for name in imported_names(node, path):
            top = name.partition(".")[0]
            if top not in PURE_MODULES and (path, top) not in ALLOWED_IMPORTS:
                yield Violation(path, getattr(node, "lineno", 1), f"the core imports {top}")
            elif name.startswith(IMPURE_PARTS):
                yield Violation(path, getattr(node, "lineno", 1), f"the core imports {name}")


def check_impure_calls(path: str, source: str) -> Iterator[Violation]:
    """No builtin that reaches outside or differs from process to process."""
    if room_of(path) not in PURE_ROOMS:
        return
    for node in nodes_of(source):
        name = called_name(node)
        if name in IMPURE_CALLS:
            yield Violation(path, getattr(node, "lineno", 1), f"the core calls {name}()")
        elif isinstance(node, ast.Attribute) and node.attr == "random":
            yield Violation(path, node.lineno, "the core rolls dice")


def check_exactness(path: str, source: str) -> Iterator[Violation]:
    """No float and no true division where decisions are made; `show_` functions of units make words, not decisions."""
    room = room_of(path)
    if room not in EXACT_ROOMS:
        return
    shown = _shown_lines(source) if room == "units" else frozenset()
    for node in nodes_of(source):
        what = _inexact(node)
        line = getattr(node, "lineno", 1)
        if what is not None and line not in shown:
            yield Violation(path, line, what)


def _inexact(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
        return f"a float: {node.value}"
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
        return "true division; integers divide with //"
    if isinstance(node, ast.Name) and node.id == "float":
        return "the type float"
    name = node.attr if isinstance(node, ast.Attribute) else None
    if name is not None and (name.startswith("float") or name == "truediv"):
        return f"a float: {name}"
    if isinstance(node, ast.keyword) and node.arg in PARALLEL and not _is_false(node.value):
        return f"compiled with {node.arg}, which adds in any order"
    return None


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _shown_lines(source: str) -> frozenset[int]:
    shows = [node for node in nodes_of(source) if isinstance(node, ast.FunctionDef) and node.name.startswith("show_")]
    return frozenset(line for node in shows for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))


def check_set_order(path: str, source: str) -> Iterator[Violation]:
    """Nothing walks a set in its own order: sort it first."""
    if room_of(path) not in PURE_ROOMS:
        return
    module = parse(source)
    attributes = frozenset(_set_attributes(nodes_of(source)))
    outer = frozenset(_set_names(module))
    yield from _check_scope(path, module, _SetSense(outer, attributes))
    for node in nodes_of(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = frozenset(_set_names(node))
            hidden = frozenset(_bound_names(node)) - own
            yield from _check_scope(path, node, _SetSense((outer - hidden) | own, attributes))


class _SetSense:
    """Says whether an expression is surely a set, given the names known to hold one."""

    def __init__(self, names: frozenset[str], attributes: frozenset[str]) -> None:
        self._names = names
        self._attributes = attributes

    def is_set(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._names
        if isinstance(node, ast.Attribute):
            return node.attr in self._attributes
        if isinstance(node, ast.BinOp) and isinstance(node.op, SET_OPERATORS):
            return self.is_set(node.left) or self.is_set(node.right)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SET_METHODS:
            return self.is_set(node.func.value)
        return _makes_set(node)

    def leaks_order(self, node: ast.expr) -> bool:
        """Whether walking `node` walks a set in its own order."""
        if called_name(node) in ORDER_KEEPING:
            assert isinstance(node, ast.Call)
            return any(self.leaks_order(argument) for argument in node.args)
        return self.is_set(node)


def _check_scope(path: str, scope: Scope, sense: _SetSense) -> Iterator[Violation]:
    nodes = list(_own_nodes(scope))
    harmless = _harmless_comprehensions(nodes)
    for node in nodes:
        what = None if node in harmless else _find_disorder(node, sense)
        if what is not None:
            yield Violation(path, getattr(node, "lineno", 1), what)


def _find_disorder(node: ast.AST, sense: _SetSense) -> str | None:
    if isinstance(node, ast.For | ast.AsyncFor) and sense.leaks_order(node.iter):
        return "a for loop walks a set; sort it"
    if isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp):
        walked = any(sense.leaks_order(generator.iter) for generator in node.generators)
        return "a comprehension walks a set; sort it" if walked else None
    if isinstance(node, ast.Call):
        return _find_disorderly_call(node, sense)
    if isinstance(node, ast.List | ast.Tuple) and any(_unpacks(item, sense) for item in node.elts):
        return "a set is unpacked into a sequence; sort it"
    if isinstance(node, ast.YieldFrom) and sense.leaks_order(node.value):
        return "a set is handed on in its own order; sort it"
    if isinstance(node, ast.Assign) and _takes_apart(node) and sense.leaks_order(node.value):
        return "a set is taken apart in its own order; sort it"
    return None


def _unpacks(item: ast.expr, sense: _SetSense) -> bool:
    return isinstance(item, ast.Starred) and isinstance(item.ctx, ast.Load) and sense.leaks_order(item.value)


def _takes_apart(node: ast.Assign) -> bool:
    """Whether several names are bound at once; of one element there is one order."""
    return any(isinstance(each, ast.Tuple | ast.List) and len(each.elts) > 1 for each in node.targets)


def _find_disorderly_call(node: ast.Call, sense: _SetSense) -> str | None:
    if called_name(node) in ORDERED and sense.leaks_order(node):
        return "a sequence made from a set; sort it"
    if isinstance(node.func, ast.Attribute) and sense.is_set(node.func.value):
        if node.func.attr == "pop" and not node.args:
            return "set.pop() takes any element; say which"
    elif isinstance(node.func, ast.Attribute) and node.func.attr in {"join", "extend", "fromkeys"}:
        return "a set's order goes into a sequence; sort it" if any(map(sense.leaks_order, node.args)) else None
    return None


def _harmless_comprehensions(nodes: Iterable[ast.AST]) -> set[ast.AST]:
    """Comprehensions that are handed to something which does not care about order."""
    return {
        argument
        for node in nodes
        if isinstance(node, ast.Call) and called_name(node) in ORDER_FREE
        for argument in node.args
    }


def _own_nodes(scope: Scope) -> Iterator[ast.AST]:
    """Every node of a scope, but not those of the functions inside it."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting.extend(ast.iter_child_nodes(node))


def _set_names(scope: Scope) -> Iterator[str]:
    """Names of a scope that only ever hold a set."""
    sets: set[str] = set()
    others: set[str] = set()
    for name, value, annotation in _bindings(scope):
        (sets if _is_set_binding(value, annotation) else others).add(name)
    yield from sorted(sets - others)


def _bound_names(scope: Scope) -> Iterator[str]:
    yield from (name for name, _, _ in _bindings(scope))


Binding: TypeAlias = tuple[str, ast.expr | None, ast.expr | None]


def _bindings(scope: Scope) -> Iterator[Binding]:
    if not isinstance(scope, ast.Module):
        for argument in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs):
            yield argument.arg, None, argument.annotation
    for node in _own_nodes(scope):
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value, None) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value, node.annotation
        elif isinstance(node, ast.For | ast.comprehension):
            yield from ((name.id, None, None) for name in ast.walk(node.target) if isinstance(name, ast.Name))


def _set_attributes(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Attributes that this file fills with a set: `self.x = set()`, or `x: set[int]` in a class body."""
    for node in nodes:
        if isinstance(node, ast.Assign) and _makes_set(node.value):
            yield from (target.attr for target in node.targets if isinstance(target, ast.Attribute))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            if _is_set_binding(node.value, node.annotation):
                yield node.target.attr
        elif isinstance(node, ast.ClassDef):
            yield from (
                item.target.id
                for item in node.body
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                if _is_set_binding(item.value, item.annotation)
            )


def _is_set_binding(value: ast.expr | None, annotation: ast.expr | None) -> bool:
    return (value is not None and _makes_set(value)) or (annotation is not None and _names_set(annotation))


def _makes_set(node: ast.expr) -> bool:
    return isinstance(node, ast.Set | ast.SetComp) or called_name(node) in {"set", "frozenset"}


def _names_set(annotation: ast.expr) -> bool:
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    if isinstance(base, ast.Name) and base.id == "Final" and isinstance(annotation, ast.Subscript):
        return _names_set(annotation.slice)
    return isinstance(base, ast.Name) and base.id in SET_TYPES


def called_name(node: ast.AST) -> str | None:
    """The plain name that a call calls: `open(...)` -> `open`; None for anything else."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
