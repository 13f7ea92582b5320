"""Which `lib` functions stand behind a number: a backward slice through a notebook's code.

A number is put down by `page.cell(exhibit, …)` in some cell. What it rests on is found without running
anything: the names that call reads, the statements that gave those names their values, the names those
read, and so on back. Every `lib` function called on the way is a maker of the number, the nearest first.
"""

import ast
import builtins
from collections import deque
from dataclasses import dataclass, field

from compendium.reader.book.api import Library

# Methods that put numbers down, the page's own and the audits' (compendium.frame.recount.Recount): which arguments are the
# address.
PUTS = {
    "cell": (0, 1, 2),
    "derived": (0, 1, 2),
    "put": (0, 1, 2),
    "cells": (0,),
    "put_table": (0,),
    "put_same": (None, 0, 1),
}
# The frame moves numbers about but computes none.
FRAME = (
    "compendium.frame.page",
    "compendium.frame.style",
    "compendium.frame.cells",
    "compendium.frame.params",
    "compendium.frame.paths",
    "compendium.frame.files",
    "compendium.frame.tables",
    "compendium.frame.archive",
    "compendium.frame.chain",
    "compendium.frame.run",
    "compendium.frame.report",
    "compendium.asking.sources",
    "compendium.frame.recount.Recount",
)
BUILTINS = frozenset(dir(builtins))
MUTATORS = frozenset(
    (
        "append",
        "extend",
        "insert",
        "add",
        "update",
        "setdefault",
        "pop",
        "clear",
        "sort",
        "remove",
        "reverse",
        "discard",
    )
)


@dataclass
class Step:
    """A simple statement: the names it reads and sets, the `lib` functions it calls, the exhibits it puts
    down.
    """

    cell: str
    place: int
    reads: set = field(default_factory=set)
    sets: set = field(default_factory=set)
    touches: set = field(default_factory=set)  # names whose value it may change in place
    calls: dict = field(default_factory=dict)  # function -> line, in order
    methods: list = field(default_factory=list)  # (name it is called on, method)
    puts: list = field(default_factory=list)  # (exhibit, row, column), None for what is no literal


class Trace:
    """The makers of one notebook's numbers.

    Parameters
    ----------
    code : (cell id, source) of the code cells, in order.
    library : the functions that count.
    """

    def __init__(self, code, library: Library):
        self._library, self._aliases, self._known, self.steps = library, {}, {}, []
        for cell, text in code:
            lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in text.splitlines()]
            try:
                tree = ast.parse("\n".join(lines))
            except SyntaxError:  # a cell that Python alone cannot read makes nothing we could follow
                continue
            for statement in tree.body:
                self._statement(statement, cell, frozenset())

    def called_in(self, cell: str) -> list[str]:
        """The `lib` functions that a cell itself calls, in order."""
        return list(
            dict.fromkeys(name for step in self.steps if step.cell == cell for name in self._functions(step))
        )

    def makers(self, cell: str, exhibit: str, row: str = "", column: str = "") -> list[str]:
        """The functions behind a number put down in a cell, nearest first (empty: plain arithmetic)."""
        mine = [step for step in self.steps if step.cell == cell and step.puts]
        for wanted in ((exhibit, row, column), (exhibit, None, None)):
            fitting = tuple(step.place for step in mine if any(_fits(put, wanted) for put in step.puts))
            if fitting:
                return self._behind(fitting)
        return self._behind(tuple(step.place for step in mine or self.steps if step.cell == cell))

    def _behind(self, places: tuple) -> list[str]:
        """The functions called in these statements and in all that they rest on."""
        if places not in self._known:
            self._known[places] = self._search(places)
        return self._known[places]

    def _search(self, places: tuple) -> list[str]:
        found, seen, queue = {}, set(), deque((place, 0) for place in places)
        while queue:
            place, depth = queue.popleft()
            if place in seen:
                continue
            seen.add(place)
            for name in self._functions(self.steps[place]):
                found.setdefault(name, depth)
            for name in self.steps[place].reads:
                queue.extend((before, depth + 1) for before in self._before(place, name))
        return sorted((name for name in found if not _framed(name)), key=lambda name: found[name])

    def _before(self, place: int, name: str):
        """The statements before `place` that gave `name` the value it has there."""
        for before in range(place - 1, -1, -1):
            step = self.steps[before]
            if name in step.sets:
                yield before
                return
            if name in step.touches:
                yield before

    def _functions(self, step: Step):
        yield from step.calls
        for name, method in step.methods:
            modules, queue, seen = set(), deque([(step.place, name)]), set()
            while queue:  # the modules that the object can come from
                at, what = queue.popleft()
                for before in self._before(at, what):
                    if before not in seen:
                        seen.add(before)
                        modules |= {self._library.functions[call].module for call in self.steps[before].calls}
                        queue.extend((before, read) for read in self.steps[before].reads)
            known = [
                each
                for each in self._library.methods.get(method, ())
                if self._library.functions[each].module in modules
            ]
            if len(known) == 1:
                yield known[0]

    def _statement(self, node, cell, governed):
        """Turn a statement into steps; the body of a loop or branch follows its head and reads what that
        reads.
        """
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import(node)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            head = self._step(cell, [node.iter], [node.target])
            self._bodies((node.body, node.orelse), cell, governed | head.sets)
        elif isinstance(node, (ast.If, ast.While)):
            test = self._step(cell, [node.test], [])
            self._bodies((node.body, node.orelse), cell, governed | (test.reads - BUILTINS))
        elif isinstance(node, ast.With):
            for item in node.items:
                self._step(cell, [item.context_expr], [item.optional_vars] if item.optional_vars else [])
            self._bodies((node.body,), cell, governed)
        elif isinstance(node, ast.Try):
            self._bodies(
                (node.body, *(h.body for h in node.handlers), node.orelse, node.finalbody), cell, governed
            )
        elif isinstance(node, ast.Assign):
            self._step(cell, [node.value], node.targets, governed)
        elif isinstance(node, ast.AugAssign):
            self._step(cell, [node.value], [], governed | _names(node.target), touches=_names(node.target))
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._step(cell, [node.value], [node.target], governed)
        else:
            self._step(cell, [node], [], governed)

    def _bodies(self, bodies, cell, governed):
        for body in bodies:
            for statement in body:
                self._statement(statement, cell, frozenset(governed))

    def _step(self, cell, values, targets, governed=frozenset(), touches=frozenset()) -> Step:
        step = Step(cell, len(self.steps), reads=set(governed), touches=set(touches))
        for node in (inner for value in values for inner in ast.walk(value)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                step.reads.add(node.id)
            elif isinstance(node, ast.Call):
                self._call(step, node)
            function = self._resolve(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
            if function:
                step.calls.setdefault(function, getattr(node, "lineno", 0))
        for target in targets:
            _targets(target, step)
        step.reads -= BUILTINS
        self.steps.append(step)
        return step

    def _call(self, step, node):
        """Note what a call puts down, and the object whose method it calls."""
        if not isinstance(node.func, ast.Attribute):
            return
        base = node.func.value
        while isinstance(base, (ast.Attribute, ast.Call, ast.Subscript)):
            base = base.func if isinstance(base, ast.Call) else base.value
        if not isinstance(base, ast.Name):
            return
        if node.func.attr in PUTS and base.id not in self._aliases:
            step.puts.append(_address(node.args, PUTS[node.func.attr]))
        elif base.id not in self._aliases:
            step.methods.append((base.id, node.func.attr))
            if node.func.attr in MUTATORS:
                step.touches.add(base.id)

    def _import(self, node):
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                self._aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            else:
                self._aliases[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )

    def _resolve(self, node) -> str | None:
        """The library's name for what an expression refers to, if it is a function or class of `lib`."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._aliases:
            return None
        return self._library.find(".".join([self._aliases[node.id], *reversed(parts)]))


def _address(arguments, places) -> tuple:
    """(exhibit, row, column) of a put: its literals, None for all else."""
    said = [arguments[place] if place is not None and place < len(arguments) else None for place in places]
    literals = [str(each.value) if isinstance(each, ast.Constant) else None for each in said]
    return tuple([*literals, None, None, None][:3])


def _fits(put, wanted) -> bool:
    """Whether a put may be of this address: its literals agree where both say something."""
    return all(mine is None or its is None or mine == its for mine, its in zip(put, wanted, strict=True))


def _framed(name: str) -> bool:
    return any(name == part or name.startswith(f"{part}.") for part in FRAME)


def _names(node) -> set:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _targets(target, step):
    """`a, b = …` sets a and b; `a[i] = …` and `a.x = …` change a in place and read it."""
    if isinstance(target, ast.Name):
        step.sets.add(target.id)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            _targets(each, step)
    elif isinstance(target, ast.Starred):
        _targets(target.value, step)
    else:
        base = target
        while isinstance(base, (ast.Subscript, ast.Attribute)):
            base = base.value
        step.touches |= _names(base)
        step.reads |= _names(target)
