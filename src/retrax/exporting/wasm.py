"""A step as a WebAssembly module, written without a compiler, and the script that loads it.

The module exports its memory and `run(h, steps)`, which moves the state and returns 0, or a status
as in C. In memory are 64-bit floats: the parameters, the state, how the last call went.
"""

import json
import struct
from collections.abc import Sequence
from importlib.resources import files
from itertools import count
from string import Template
from typing import Any, NamedTuple

from retrax.engine.passes.placement import MemoryPlan
from retrax.engine.program import Buffer, Program, Value
from retrax.engine.progress import length, places
from retrax.exporting.columns import rearranging
from retrax.exporting.inlining import find_inlinable, hoist, uses
from retrax.exporting.model import Field, StepModel, owners
from retrax.exporting.wasm_blocks import WasmBlocks
from retrax.exporting.wasm_encoding import F64, I32, Code, Function, module

# How a call went, in memory after the state.
INFO = ("residual", "increment", "converged", "iterations", "in_chart")


class WasmStep:
    """Writes the function of a step with the loop around it.

    **Attributes:** `state`, `info`: where these begin, in bytes; parameters begin at 0.
    """

    def __init__(self, model: StepModel, imports: list[tuple[str, int]]):
        self.model, self.ports = model, model.ports
        planned, memory = model.planned, model.program.memory
        self.same, self.block = hoist(planned.block, {*self.ports.params, self.ports.h})
        blocks = (self.same, self.block, planned.opening)
        used = uses(blocks, (*model.program.outputs, *memory.first, *memory.last))
        inside = {x for block in blocks for x in find_inlinable(block, used)}
        self.places = model.places
        self.state = 8 * model.param_count
        self.info = self.state + 8 * self.places.work
        work = self.info + 8 * len(INFO)
        end = work + 8 * planned.plan.size
        self.code = Code((F64, I32))
        self.out = WasmBlocks(self.code, planned.plan, inside, {}, work, end, imports)
        self._numbers = count(-1, -1)
        self._h, self._steps = 0, 1  # the parameters of `run`
        self._done, self._status = self.code.local(I32), self.code.local(I32)
        self._start, self._count = self.code.local(F64), self.code.local(F64)

    def function(self) -> Function:
        """Return the function `run`."""
        self._read()
        self._open()
        self._loop()
        self._leave()
        return Function("run", (F64, I32), True, self.code)

    def data(self) -> list[tuple[int, bytes]]:
        """Return what memory holds at first: parameters, state, tables."""
        numbers = [x for field in self.model.params for x in field.values]
        numbers += [x for field in self.model.state for x in field.values]
        numbers.append(self.model.time.values[0])
        return [(0, struct.pack(f"<{len(numbers)}d", *numbers)), *self.out.data]

    def _load(self, byte: int) -> None:
        self.code.i32(0)
        self.code.load(F64, byte)

    def _own(self, place: int) -> int:
        return self.state + 8 * place

    def _read(self) -> None:
        """Find parameters, what is the same in all steps, state and time."""
        out, code, model, ports = self.out, self.code, self.model, self.ports
        out.let(ports.h, self._h)
        for base, items, among in (
            (0, ports.params, model.params),
            (self.state, ports.state[:-1], model.state),
        ):
            for item, (field, k) in zip(items, owners(items, among), strict=True):
                byte = base + 8 * (field.first + k)
                if isinstance(item, Buffer):
                    self._find(item, byte)
                else:
                    self._load(byte)
                    if item.kind != "float":
                        out.operations.on_floats(item.kind)
                    code.set(out.local(item))
            if base == 0:
                out.block(self.same)
        self._clock()

    def _find(self, buffer: Buffer, byte: int) -> None:
        if buffer in self.model.planned.plan.widths:
            self._rearrange(self._elsewhere(buffer, byte), buffer)
        else:
            self.out.addresses[buffer] = byte

    def _elsewhere(self, buffer: Buffer, byte: int) -> Buffer:
        """Return a buffer of the same length in the order of the caller."""
        other = Buffer(next(self._numbers), buffer.length, buffer.kind)
        self.out.addresses[other] = byte
        return other

    def _rearrange(self, source: Buffer, target: Buffer) -> None:
        """Copy a buffer to one that is stored in another order."""
        widths = self.model.planned.plan.widths
        self.out.instruction(rearranging(source, target, widths, self._numbers))

    def _copy(self, source: Buffer, target: Buffer) -> None:
        plan = self.model.planned.plan
        if plan.widths.get(source, 1) != plan.widths.get(target, 1):
            self._rearrange(source, target)
            return
        size = plan.extent(source) if source in plan.widths else source.length
        self.code.copy(self.out.address(target), self.out.address(source), 8 * size)

    def _clock(self) -> None:
        """Start the clock anew where h or t is not what it says; then read it."""
        code, at = self.code, self.places
        code.get(self._h)
        self._load(self._own(at.clock_h))
        code.op("f64.ne")
        self._load(self._own(at.time))
        self._load(self._own(at.clock_start))
        self._load(self._own(at.clock_steps))
        self._load(self._own(at.clock_h))
        code.op("f64.mul")
        code.op("f64.add")
        code.op("f64.ne")
        code.op("i32.or")
        code.begin("if")
        code.i32(0)
        self._load(self._own(at.time))
        code.store(self._own(at.clock_start))
        code.i32(0)
        code.get(self._h)
        code.store(self._own(at.clock_h))
        code.i32(0)
        code.f64(0.0)
        code.store(self._own(at.clock_steps))
        code.op("end")
        for place, local in ((at.clock_start, self._start), (at.clock_steps, self._count)):
            self._load(self._own(place))
            code.set(local)

    def _open(self) -> None:
        """Have the memory of the first step made; take it up."""
        out, code, ports, at = self.out, self.code, self.ports, self.places
        memory = ports.memory
        if not memory.items:
            return
        self._load(self._own(at.remembers))
        code.f64(0.0)
        code.op("f64.eq")
        code.begin("if")
        self._load(self._own(at.time))
        code.set(out.local(ports.time))
        out.block(self.model.planned.opening)
        numbers = [x for x in memory.first if not isinstance(x, Buffer)]
        for k, number in enumerate(numbers):
            code.i32(0)
            out.number(number)
            code.store(self._own(at.memory + k))
        for buffer, first in ports.opened:
            self._copy(first, buffer)
        code.i32(0)
        code.f64(1.0)
        code.store(self._own(at.remembers))
        code.op("end")
        for k, (_, value) in enumerate(ports.memory_numbers):
            self._load(self._own(at.memory + k))
            code.set(out.local(value))

    def _time(self) -> None:
        """Leave clock_start + (clock_steps + done) h on the stack."""
        code = self.code
        code.get(self._start)
        code.get(self._count)
        code.get(self._done)
        code.op("f64.convert_i32_s")
        code.op("f64.add")
        code.get(self._h)
        code.op("f64.mul")
        code.op("f64.add")

    def _loop(self) -> None:
        """Print the loop over steps, which ends before one that fails."""
        out, code, info = self.out, self.code, self.model.info
        self._sums = {name: code.local(F64) for name in INFO}
        for name in ("converged", "in_chart"):
            code.f64(1.0)
            code.set(self._sums[name])
        code.begin("block")
        code.begin("loop")
        code.get(self._done)
        code.get(self._steps)
        code.op("i32.ge_s")
        code.branch(1, conditional=True)
        self._time()
        code.set(out.local(self.ports.time))
        out.block(self.block)
        for name in ("residual", "increment"):
            out.number(getattr(info, name))
            code.get(self._sums[name])
            code.op("f64.max")
            code.set(self._sums[name])
        out.number(info.iterations)
        code.get(self._sums["iterations"])
        code.op("f64.add")
        code.set(self._sums["iterations"])
        for k, test in enumerate((info.converged, info.in_chart, self.ports.finite)):
            if test is True:
                continue
            name = ("converged", "in_chart", None)[k]
            if name is not None:
                out.number(test)
                code.set(self._sums[name])
            code.i32(k + 1)
            code.i32(0)
            out.push(test, "bool")
            code.op("i32.eqz")
            code.op("select")
            code.tee(self._status)
            code.branch(1, conditional=True)
        out.update(self.ports.carried, self.ports.new_numbers)
        for buffer, new in self.ports.renewed:
            self._copy(new, buffer)
        code.get(self._done)
        code.i32(1)
        code.op("i32.add")
        code.set(self._done)
        code.branch(0)
        code.op("end")
        code.op("end")

    def _leave(self) -> None:
        """Write the state where the last good step has led."""
        out, code, model, ports, at = self.out, self.code, self.model, self.ports, self.places
        places = owners(ports.state[:-1], model.state)
        for item, (field, k) in zip(ports.state[:-1], places, strict=True):
            byte = self.state + 8 * (field.first + k)
            if isinstance(item, Value):
                code.i32(0)
                out.push(item)
                code.store(byte)
            elif item in model.planned.plan.widths:
                self._copy(item, self._elsewhere(item, byte))
        for k, (_, value) in enumerate(ports.memory_numbers):
            code.i32(0)
            out.push(value)
            code.store(self._own(at.memory + k))
        code.i32(0)
        self._time()
        code.store(self._own(at.time))
        code.i32(0)
        code.get(self._count)
        code.get(self._done)
        code.op("f64.convert_i32_s")
        code.op("f64.add")
        code.store(self._own(at.clock_steps))
        for k, name in enumerate(INFO):
            code.i32(0)
            code.get(self._sums[name])
            code.store(self.info + 8 * k)
        code.get(self._status)


class Further(NamedTuple):
    """One more function of a module, from a program of parameters and other numbers.

    **Attributes:** `program`; `reads`: where in memory it finds what comes after the parameters, in
    numbers, or `None` for behind everything else; `writes`: where its results go, in the same way.
    """

    name: str
    program: Program
    reads: int | None
    writes: int | None


def wasm(model: StepModel, further: Sequence[Further] = ()) -> tuple[bytes, dict[str, Any]]:
    """Return the module, and where its numbers lie: `layout`, as plain data."""
    imports: list[tuple[str, int]] = []
    step = WasmStep(model, imports)
    functions, data = [step.function()], step.data()
    at, end = step.places, step.out.end
    layout: dict[str, Any] = {
        "name": model.name,
        "h": model.h,
        "params": _describe(model.params),
        "state": _describe([*model.state, model.time._replace(name="t")]),
        "stateAt": step.state // 8,
        "infoAt": step.info // 8,
        "clockAt": step.state // 8 + at.clock_h,
        "remembersAt": step.state // 8 + at.remembers,
        "info": list(INFO),
    }
    for one in further:
        made = _Plain(model, one, imports, end)
        functions.append(made.function())
        data += made.out.data
        end = made.out.end
        layout[one.name] = {"reads": made.reads // 8, "writes": made.writes // 8}
    data = [(place, content.rstrip(b"\0")) for place, content in data]
    data = [(place, content) for place, content in data if content]
    return module(imports, functions, end, data), layout


def state_place(model: StepModel) -> int:
    """Return where the state begins in the memory of a module, in numbers."""
    return model.param_count


def _describe(among: Sequence[Field]) -> list[dict[str, Any]]:
    return [
        {"name": f.name, "shape": list(f.shape), "first": f.first, "size": f.size} for f in among
    ]


class _Plain:
    """Writes a function without a loop: it reads its inputs from memory and writes its outputs."""

    def __init__(self, model: StepModel, one: Further, imports: list[tuple[str, int]], end: int):
        self.model, self.one, program = model, one, one.program
        sizes = [length(x) for x in program.inputs]
        rest = sum(sizes) - model.param_count
        count = sum(x.length if isinstance(x, Buffer) else 1 for x in program.outputs)
        self.reads = end if one.reads is None else 8 * one.reads
        end += 8 * rest if one.reads is None else 0
        self.writes = end if one.writes is None else 8 * one.writes
        end += 8 * count if one.writes is None else 0
        plan = MemoryPlan({})
        self.given = [x for x in program.inputs if isinstance(x, Buffer)]
        self.block = plan.place(program.block, program.outputs, self.given)
        inside = find_inlinable(self.block, uses([self.block], program.outputs))
        self.code = Code(())
        after = end + 8 * plan.size
        self.out = WasmBlocks(self.code, plan, inside, {}, end, after, imports)

    def function(self) -> Function:
        out, code, program = self.out, self.code, self.one.program
        for place, item in places(program.inputs):
            behind = place - self.model.param_count
            byte = 8 * place if behind < 0 else self.reads + 8 * behind
            if isinstance(item, Buffer):
                out.addresses[item] = byte
            else:
                code.i32(0)
                code.load(F64, byte)
                if item.kind != "float":
                    out.operations.on_floats(item.kind)
                code.set(out.local(item))
        out.block(self.block)
        byte = self.writes
        for item in program.outputs:
            if isinstance(item, Buffer):
                code.copy(byte, out.address(item), 8 * item.length)
                byte += 8 * item.length
            else:
                code.i32(0)
                out.number(item)
                code.store(byte)
                byte += 8
        return Function(self.one.name, (), False, code)


def loader() -> str:
    """Return the script that makes a stepper of a module and its layout."""
    return files("retrax.exporting").joinpath("assets", "stepper.js").read_text(encoding="utf-8")


def script(model: StepModel, layout: dict[str, Any]) -> str:
    """Return an ES module that loads the step in a browser, in node or in deno."""
    return Template(
        "// $title\n"
        "// const $name = makeStepper(await WebAssembly.compile(bytes)); $name.run($h, 1000);\n"
        "$loader\nconst layout = $layout;\n\n"
        "export const makeStepper = (module) => stepper(module, layout);\n"
    ).substitute(
        title=model.title,
        name=model.name,
        h=repr(model.h),
        loader=loader(),
        layout=json.dumps(layout, indent=1),
    )
