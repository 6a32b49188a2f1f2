"""A plain interpreter of scalar programs, to compare the back ends with."""

import math

import numpy as np

from retrax.engine.program import Choose, Operation, Repeat, Value, While

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
    "float": float,
    "int": int,
    "bool": bool,
    "isfinite": math.isfinite,
}


def evaluate_program(program, numbers):
    known = dict(zip(program.inputs, numbers, strict=True))

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

    run(program.block)
    return [read(x) for x in program.outputs]
