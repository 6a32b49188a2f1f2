"""A plain interpreter of scalar programs, to compare the back ends with."""

import math

import numpy as np

from retrax.engine.kinds import DTYPE, constant
from retrax.engine.program import (
    Buffer,
    Choose,
    Each,
    LoadAt,
    LoadEntry,
    Operation,
    Repeat,
    StoreAt,
    StoreEntry,
    Value,
    While,
)

OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: np.float64(a) / np.float64(b),
    "neg": lambda a: -a,
    "max": max,
    "min": min,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
    "select": lambda p, x, y: y if p else x,
    "isfinite": math.isfinite,
    "rem": lambda a, b: type(a)(math.fmod(a, b)),
    "stored": lambda a: a,
    **{kind: lambda x, kind=kind: constant(x, kind) for kind in DTYPE},
}


class Memory(dict):
    """Rows by name; a row that nobody has written yet holds NaN, so that reading it shows."""

    def __missing__(self, row):
        self[row] = np.full(row.length, np.nan) if row.table is None else np.array(row.table)
        return self[row]


def evaluate_program(program, numbers):
    known, memory, numbers = {}, Memory(), list(numbers)
    for item in program.inputs:
        if isinstance(item, Buffer):
            memory[item] = np.array([float(numbers.pop(0)) for _ in range(item.length)])
        else:
            known[item] = numbers.pop(0)

    def read(x):
        return known[x] if isinstance(x, Value) else x

    def bind(targets, sources):
        known.update(zip(targets, [read(x) for x in sources], strict=True))

    def run(block):
        for i in block.instructions:
            match i:
                case Operation(name, operands, out):
                    function = OPERATIONS.get(name) or getattr(np, name)
                    known[out] = function(*(read(x) for x in operands))
                case While():
                    bind(i.carried, i.initial)
                    while True:
                        run(i.condition)
                        if not read(i.test):
                            break
                        run(i.body)
                        bind(i.carried, i.updated)
                case Repeat():
                    bind(i.carried, i.initial)
                    for row in i.tables:
                        bind(i.columns, row)
                        run(i.body)
                        bind(i.carried, i.updated)
                case Choose():
                    k = min(int(read(i.index)), len(i.blocks) - 1)
                    run(i.blocks[k])
                    bind(i.outs, i.results[k])
                case LoadEntry(out, row, index):
                    known[out] = memory[row][index]
                case LoadAt(out, view, index):
                    k = int(read(index))
                    assert 0 <= k < view.length
                    known[out] = memory[view.buffer][view.offset + k * view.stride]
                case StoreEntry(row, index, operand):
                    memory[row][index] = float(read(operand))
                case StoreAt(view, index, operand):
                    k = int(read(index))
                    assert 0 <= k < view.length
                    memory[view.buffer][view.offset + k * view.stride] = float(read(operand))
                case Each():
                    bind(i.carried, i.initial)
                    for k in range(i.length):
                        for value, view in i.reads:
                            known[value] = memory[view.buffer][view.offset + k * view.stride]
                        run(i.body)
                        for view, operand in i.writes:
                            memory[view.buffer][view.offset + k * view.stride] = float(
                                read(operand)
                            )
                        bind(i.carried, i.updated)

    run(program.block)
    return [
        number
        for x in program.outputs
        for number in (memory[x] if isinstance(x, Buffer) else [read(x)])
    ]
