"""What a step costs on paper: the operations of its scalar program and the bytes it moves."""

from collections import defaultdict
from typing import Any

from retrax.engine.program import Choose, CodeBlock, Each, Operation, Repeat, While
from retrax.engine.step_program import signature, step_program

# Counted as one floating-point operation each; a division takes the hardware many times longer.
ARITHMETIC = ("add", "sub", "mul", "div", "sqrt")


def operations(block: CodeBlock, newton: float) -> dict[str, float]:
    """Operations by name; Newton's loop counts `newton` times, others as often as they run.

    Of a choice all blocks are counted, since in an ensemble all are run.
    """
    total: dict[str, float] = defaultdict(float)

    def add(inner: CodeBlock, times: float) -> None:
        for name, count in operations(inner, newton).items():
            total[name] += count * times

    for instruction in block.instructions:
        match instruction:
            case Operation(name=name):
                total[name] += 1
            case While(condition=condition, body=body):
                add(condition, newton + 1)
                add(body, newton)
            case Repeat(tables=tables, body=body):
                add(body, len(tables))
            case Choose(blocks=blocks):
                for inner in blocks:
                    add(inner, 1)
            case Each(length=length, body=body):
                add(body, length)
    return total


def step_cost(system: Any, integrator: Any, state: Any, newton: float) -> dict[str, Any]:
    """Operations and floating-point operations of a step, and the numbers a body consists of."""
    program, layout = step_program(*signature(system, integrator, state))
    counts = operations(program.block, newton)
    return {
        "newton": newton,
        "operations": dict(counts),
        "flops": sum(counts.get(name, 0) for name in ARITHMETIC),
        "numbers": layout.state,
        "parameters": layout.params,
    }
