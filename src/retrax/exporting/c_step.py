"""The function of a step in C99, with the loop over steps around it."""

import textwrap
from collections.abc import Sequence
from importlib.metadata import version
from itertools import count

from retrax.engine.passes.live import buffers_of
from retrax.engine.program import Buffer, Value, kind_of
from retrax.exporting.c_blocks import CBlocks
from retrax.exporting.c_operations import COperations, Text
from retrax.exporting.columns import rearranging
from retrax.exporting.comments import Comments, comment
from retrax.exporting.inlining import find_inlinable, hoist, uses
from retrax.exporting.model import Field, StepModel, owners

# What a step returns.
STATUS = (
    ("OK", "the state has moved"),
    ("NOT_CONVERGED", "its equations were not solved: take a shorter step"),
    ("LEFT_CHART", "it is too long for its chart, or the model has ended: take a shorter step"),
    ("NOT_FINITE", "a number overflowed or is not a number"),
)
# So many numbers are set one by one.
_TABLE = 6


def heading(model: StepModel) -> list[str]:
    """Return the comment that every file begins with."""
    return comment(f"{model.title} Written by retrax {version('retrax')}.")


class CSource:
    """The function of a step."""

    def __init__(self, model: StepModel, real: str):
        self.model, self.real = model, real
        program, ports = model.program, model.ports
        planned, memory = model.planned, program.memory
        made = (planned.block, planned.opening)
        outputs = (*program.outputs, *memory.first, *memory.last)
        self.used = uses(made, outputs)
        touched = (buffers_of(block) for block in made)
        self.buffers = {x for both in touched for part in both for x in part}
        self.operations = COperations(real)
        names = self._names()
        comments = Comments(model.origins)
        self.same, self.block = hoist(planned.block, {*ports.params, ports.h})
        made = (self.same, self.block, planned.opening)
        inside = {x for block in made for x in find_inlinable(block, self.used)}
        self.out = CBlocks(self.operations, planned.plan, comments, self.used, inside, names, {})
        self.ports = ports
        self._numbers = count(-1, -1)

    def _names(self) -> dict[Value, str]:
        model, ports = self.model, self.model.ports
        found = {ports.h: "h", ports.time: "t"}
        for items, among in ((ports.params, model.params), (ports.state[:-1], model.state)):
            for item, (field, k) in zip(items, owners(items, among), strict=True):
                if isinstance(item, Value):
                    entry = field.entry(k).replace("][", "_").replace("[", "_").replace("]", "")
                    found[item] = entry
        for k, (_, value) in enumerate(ports.memory_numbers):
            found[value] = f"memory_{k}"
        names = set()
        for value, name in found.items():
            while name in names:
                name += "_"
            names.add(name)
            found[value] = name
        return found

    def text(self) -> str:
        """Return the text of the whole file."""
        model, n = self.model, self.model.name
        self._read()
        self._open()
        self._steps()
        self._leave()
        lines = [*heading(model), f'#include "{n}.h"', ""]
        body = "\n".join(self.out.lines)
        lines += ["#include <math.h>", "#include <stddef.h>"]
        if "int" in "".join(self.operations.helpers) or "_t " in body:
            lines += ["#include <stdint.h>"]
        lines += ["#include <string.h>", "", *self.operations.helpers.values()]
        lines += [wrap(table) for table in self.out.tables]
        lines += [""] if self.out.tables else []
        lines += [
            f"int {n}_run(const {n}_params *restrict p, {n}_state *restrict s, {self.real} h,",
            f"    long steps, {n}_info *restrict info)",
            "{",
            body,
            "}",
            "",
            *self._others(),
            "",
        ]
        return "\n".join(lines)

    def _read(self) -> None:
        """Find parameters and what does not change with them; then state and time."""
        out, model, ports = self.out, self.model, self.ports
        if not any(self._is_used(x) for x in ports.params):
            out.line("(void)p;")
        if model.planned.plan.size:
            out.line(f"{self.real} *const work = s->work;")
        self._take_all("p", "Parameters.", ports.params, model.params)
        if self.same.instructions:
            out.line("/* What is the same in all steps. */")
            out.comments.silenced = True
            out.block(self.same)
            out.comments.silenced = False
        self._take_all("s", "The state.", ports.state[:-1], model.state)
        self._clock()

    def _take_all(
        self, pointer: str, what: str, items: Sequence[Value | Buffer], among: Sequence[Field]
    ) -> None:
        places = owners(items, among)
        changes = pointer == "s"
        found = [
            (item, place)
            for item, place in zip(items, places, strict=True)
            if changes or self._is_used(item)
        ]
        if found:
            self.out.line(f"/* {what} */")
        for item, (field, k) in found:
            self._take(pointer, item, field, k)

    def _is_used(self, item: Value | Buffer) -> bool:
        return item in self.buffers if isinstance(item, Buffer) else self.used[item] > 0

    def _take(self, pointer: str, item: Value | Buffer, field: Field, k: int) -> None:
        out, plan = self.out, self.model.planned.plan
        where = f"{pointer}->{field.entry(k)}"
        const = "const " if pointer == "p" else ""
        if isinstance(item, Value):
            text = where
            if item.kind != "float":
                text = self.operations.operation(item.kind, "float", [Text(where)]).text
            out.line(f"{const}{self.operations.type(item.kind)} {out.name(item)} = {text};")
            return
        home = f"{pointer}_{field.name}"
        out.line(f"{const}{self.real} *const {home} = {where.removesuffix('[0]')};")
        if item in plan.widths:
            self._rearrange(self._elsewhere(item, home), item)
        else:
            out.addresses[item] = home

    def _elsewhere(self, buffer: Buffer, address: str) -> Buffer:
        """Return a buffer of the same length in the order of the caller."""
        other = Buffer(next(self._numbers), buffer.length, buffer.kind)
        self.out.addresses[other] = address
        return other

    def _rearrange(self, source: Buffer, target: Buffer) -> None:
        """Copy a buffer to one that is stored in another order."""
        widths = self.model.planned.plan.widths
        self.out.instruction(rearranging(source, target, widths, self._numbers))

    def _clock(self) -> None:
        """Time is that of the clock's start plus so many steps: no rounding errors add up."""
        out, lost = self.out, ""
        if self.real == "float":
            lost = " || s->clock_steps >= 8388608.0f"
        out.line("/* The clock: steps are counted, so that rounding errors of t do not add up. */")
        moved = "s->clock_start + s->clock_steps * s->clock_h"
        with out.braces(f"if (h != s->clock_h || s->t != {moved}{lost})"):
            out.line("s->clock_start = s->t;")
            out.line("s->clock_h = h;")
            out.line(f"s->clock_steps = {self._number(0.0)};")
        out.line(f"const {self.real} clock_start = s->clock_start, clock_steps = s->clock_steps;")

    def _number(self, x: float) -> str:
        return self.operations.literal(x, "float").text

    def _open(self) -> None:
        """Have the memory of the first step made."""
        out, ports, planned = self.out, self.ports, self.model.planned
        memory = ports.memory
        if not memory.items:
            return
        out.line("/* What the step before has left; before the first step it is made here. */")
        with out.braces(f"if (s->remembers == {self._number(0.0)})"):
            opening_used = uses([planned.opening], memory.first)
            if opening_used[ports.time]:
                out.line(f"const {self.real} t = s->t;")
            out.block(planned.opening)
            numbers = [x for x in memory.first if not isinstance(x, Buffer)]
            for k, number in enumerate(numbers):
                out.line(f"s->memory[{k}] = {out.number(number)};")
            for buffer, first in ports.opened:
                self._copy(first, buffer)
            out.line(f"s->remembers = {self._number(1.0)};")
        for k, (_, value) in enumerate(ports.memory_numbers):
            out.line(f"{self.real} {out.name(value)} = s->memory[{k}];")

    def _copy(self, source: Buffer, target: Buffer) -> None:
        """Copy a buffer to one that is stored alike, or in another order."""
        plan = self.model.planned.plan
        if plan.widths.get(source, 1) != plan.widths.get(target, 1):
            self._rearrange(source, target)
            return
        (there, to), (here, start) = self.out.base(target), self.out.base(source)
        size = plan.extent(source) if source in plan.widths else source.length
        self.out.line(f"memcpy({there} + {to}, {here} + {start}, {size} * sizeof({self.real}));")

    def _steps(self) -> None:
        """Print the loop over steps."""
        out, ports, n = self.out, self.ports, self.model.name.upper()
        out.line(f"{self.real} residual = {self._number(0.0)}, increment = {self._number(0.0)};")
        out.line("int converged = 1, in_chart = 1, iterations = 0;")
        out.line(f"int status = {n}_OK;")
        out.line("long done = 0;")
        with out.braces("for (; done < steps; ++done)"):
            if uses([self.block], self.model.program.outputs)[ports.time]:
                passed = f"(clock_steps + ({self.real})done)"
                out.line(f"const {self.real} t = clock_start + {passed} * h;")
            out.block(self.block)
            self._judge()
            self._move()

    def _judge(self) -> None:
        """Say how the step went, and leave if it is not good."""
        out, n, info = self.out, self.model.name.upper(), self.model.info
        out.comments.interrupt()
        out.line("/* How the step went. */")
        for name in ("residual", "increment"):
            operand = getattr(info, name)
            if operand != 0.0:
                text = out.number(operand)
                out.line(f"if (!({text} <= {name})) {name} = {text};")
        if isinstance(info.iterations, Value) or info.iterations:
            whole = out.text(info.iterations, kind_of(info.iterations))
            out.line(f"iterations += (int){whole.within(16)};")
        finite = out.text(self.ports.finite, "bool").text
        tests = (("converged", info.converged), ("in_chart", info.in_chart))
        for (word, _), (name, test) in zip(STATUS[1:3], tests, strict=True):
            if test is not True:
                out.line(f"{name} = {out.text(test, 'bool').text};")
                with out.braces(f"if (!{name})"):
                    out.line(f"status = {n}_{word};")
                    out.line("break;")
        with out.braces(f"if (!({finite}))"):
            out.line(f"status = {n}_{STATUS[3][0]};")
            out.line("break;")

    def _move(self) -> None:
        """Let the next step begin where this one ends."""
        out, ports = self.out, self.ports
        out.line("/* The next step begins where this one has ended. */")
        out.update(ports.carried, ports.new_numbers)
        for buffer, new in ports.renewed:
            self._copy(new, buffer)

    def _leave(self) -> None:
        """Write the state where the last good step has led."""
        out, model, ports = self.out, self.model, self.ports
        out.line("/* The new state. */")
        places = owners(ports.state[:-1], model.state)
        for item, (field, k) in zip(ports.state[:-1], places, strict=True):
            if isinstance(item, Value):
                out.line(f"s->{field.entry(k)} = {out.name(item)};")
            elif item in model.planned.plan.widths:
                self._copy(item, self._elsewhere(item, f"s_{field.name}"))
        for k, (_, value) in enumerate(ports.memory_numbers):
            out.line(f"s->memory[{k}] = {out.name(value)};")
        out.line(f"s->clock_steps = clock_steps + ({self.real})done;")
        out.line("s->t = clock_start + s->clock_steps * h;")
        with out.braces("if (info != NULL)"):
            for name in ("residual", "increment", "converged", "iterations", "in_chart"):
                out.line(f"info->{name} = {name};")
        out.line("return status;")

    def _others(self) -> list[str]:
        """Return the functions that prepare a state."""
        model, n = self.model, self.model.name
        body: list[str] = []
        for pointer, among in (("p", model.params), ("s", model.state)):
            for field in among:
                body += self._default(pointer, field)
        time = self.operations.literal(model.time.values[0], "float").text
        unused = "" if model.params else "    (void)p;\n"
        return [
            f"void {n}_defaults({n}_params *p, {n}_state *s)",
            "{",
            f"{unused}    memset(s, 0, sizeof *s);",
            *body,
            f"    s->t = {time};",
            "}",
            "",
            f"void {n}_restart({n}_state *s)",
            "{",
            f"    s->clock_h = {self._number(0.0)};",
            f"    s->remembers = {self._number(0.0)};",
            "}",
            "",
            f"int {n}_step(const {n}_params *p, {n}_state *s, {self.real} h, {n}_info *info)",
            "{",
            f"    return {n}_run(p, s, h, 1, info);",
            "}",
        ]

    def _default(self, pointer: str, field: Field) -> list[str]:
        texts = [self.operations.literal(x, "float").text for x in field.values]
        if field.size <= _TABLE or (len(field.shape) > 1 and field.size <= _TABLE * 2):
            return [f"    {pointer}->{field.entry(k)} = {x};" for k, x in enumerate(texts)]
        table = wrap(
            f"static const {self.real} values[{field.size}] = {{{', '.join(texts)}}};", "        "
        )
        target = f"{pointer}->{field.name}"
        return ["    {", table, f"        memcpy({target}, values, sizeof values);", "    }"]


def wrap(text: str, indent: str = "") -> str:
    """Wrap a long list of numbers in lines of a readable length."""
    return "\n".join(
        textwrap.wrap(
            text,
            100,
            initial_indent=indent,
            subsequent_indent=indent + "    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    )
