"""A step as a WebAssembly module, written without a compiler, and the script that loads it.

The module exports its memory and `run(h, steps)`, which moves the state and returns 0, or a status
as in C. In memory are 64-bit floats: the parameters, the state, how the last call went.
"""

import json
import struct
from importlib.resources import files
from string import Template
from typing import Any

from retrax.engine.program import Buffer, CodeBlock, Each, Value, View
from retrax.export.inlining import hoisted, inlined, uses
from retrax.export.model import StepModel, owners
from retrax.export.wasm_blocks import WasmBlocks
from retrax.export.wasm_encoding import F64, I32, Code, module

# How a call went, in memory after the state.
INFO = ("residual", "increment", "converged", "iterations", "in_chart")


class WasmStep:
    """Writes the function of a step with the loop around it.

    **Attributes:** `state`, `info`: where these begin, in bytes; parameters begin at 0.
    """

    def __init__(self, model: StepModel):
        self.model, self.ports = model, model.ports
        planned, memory = model.planned, model.program.memory
        self.same, self.block = hoisted(planned.block, {*self.ports.params, self.ports.h})
        blocks = (self.same, self.block, planned.opening)
        used = uses(blocks, (*model.program.outputs, *memory.first, *memory.last))
        inside = {x for block in blocks for x in inlined(block, used)}
        self.places = model.places
        self.state = 8 * model.param_count
        self.info = self.state + 8 * self.places.work
        work = self.info + 8 * len(INFO)
        end = work + 8 * planned.plan.size
        self.code = Code((F64, I32))
        self.out = WasmBlocks(self.code, planned.plan, inside, {}, work, end)
        self._copies = -1
        self._h, self._steps = 0, 1  # the parameters of `run`
        self._done, self._status = self.code.local(I32), self.code.local(I32)
        self._start, self._count = self.code.local(F64), self.code.local(F64)

    def module(self) -> bytes:
        """The bytes of the module."""
        self._read()
        self._open()
        self._loop()
        self._leave()
        out = self.out
        params = [x for field in self.model.params for x in field.values]
        state = [x for field in self.model.state for x in field.values]
        start = struct.pack(f"<{len(params) + len(state)}d", *params, *state)
        time = struct.pack("<d", self.model.time.values[0])
        data = [(0, start), (self.state + 8 * self.places.time, time), *out.data]
        data = [(place, content.rstrip(b"\0")) for place, content in data]
        data = [(place, content) for place, content in data if content]
        return module(out.operations.imports, self.code, (F64, I32), out.end, data)

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
                        out.operations._on_floats(item.kind)
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
        """A buffer of the same length in the order of the caller."""
        self._copies -= 1
        other = Buffer(self._copies, buffer.length, buffer.kind)
        self.out.addresses[other] = byte
        return other

    def _rearrange(self, source: Buffer, target: Buffer) -> None:
        """Copy a buffer to one that is stored in another order."""
        widths = self.model.planned.plan.widths
        width = widths.get(source) or widths.get(target, 1)
        columns = [(c, width, source.length // width) for c in range(width)]
        self._copies -= width
        values = [Value(self._copies + c, "float") for c in range(width)]
        reads = tuple((v, View(source, *c)) for v, c in zip(values, columns, strict=True))
        writes = tuple((View(target, *c), v) for v, c in zip(values, columns, strict=True))
        self.out.instruction(Each(source.length // width, reads, CodeBlock(), writes))

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
        """The loop over steps, which ends before one that fails."""
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


def wasm(model: StepModel) -> tuple[bytes, dict[str, Any]]:
    """The module, and where its numbers lie: `layout`, as plain data."""
    step = WasmStep(model)
    code = step.module()
    at = step.places

    def described(among: Any) -> list[dict[str, Any]]:
        return [
            {"name": f.name, "shape": list(f.shape), "first": f.first, "size": f.size}
            for f in among
        ]

    layout = {
        "name": model.name,
        "h": model.h,
        "params": described(model.params),
        "state": described([*model.state, model.time]),
        "stateAt": step.state // 8,
        "infoAt": step.info // 8,
        "clockAt": step.state // 8 + at.clock_h,
        "remembersAt": step.state // 8 + at.remembers,
        "info": list(INFO),
    }
    return code, layout


def loader() -> str:
    """The script that makes a stepper of a module and its layout."""
    return files("retrax.export").joinpath("assets", "stepper.js").read_text(encoding="utf-8")


def script(model: StepModel, layout: dict[str, Any]) -> str:
    """An ES module that loads the step in a browser, in node or in deno."""
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
