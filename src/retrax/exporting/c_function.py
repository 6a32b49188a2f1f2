"""A function in C of arrays of numbers, from a program without a loop around it."""

from collections.abc import Sequence

from retrax.engine.origins import Origins
from retrax.engine.passes.live import buffers_of
from retrax.engine.passes.placement import MemoryPlan
from retrax.engine.program import Buffer, Program, Value
from retrax.engine.progress import length
from retrax.exporting.c_blocks import CBlocks
from retrax.exporting.c_operations import COperations, Text
from retrax.exporting.c_step import wrap
from retrax.exporting.comments import Comments
from retrax.exporting.inlining import find_inlinable, uses


class CFunction:
    """`void name(const double *first, ..., double *out, double *work)`.

    **Attributes:** `work`: how many numbers of memory it works in.
    """

    def __init__(self, name: str, program: Program, arguments: Sequence[tuple[str, int]]):
        self.name, self.program, self.arguments = name, program, arguments
        plan = MemoryPlan({})
        given = [x for x in program.inputs if isinstance(x, Buffer)]
        self.block = plan.place(program.block, program.outputs, given)
        self.work = plan.size
        self.used = uses([self.block], program.outputs)
        self.operations = COperations("double")
        inside = find_inlinable(self.block, self.used)
        names = {x: f"in{k}" for k, x in enumerate(program.inputs) if isinstance(x, Value)}
        comments = Comments(Origins())
        self.out = CBlocks(self.operations, plan, comments, self.used, inside, names, {})

    def text(self) -> str:
        """Return the function, with what goes before it."""
        out, touched = self.out, set().union(*buffers_of(self.block))
        places = [(name, k) for name, size in self.arguments for k in range(size)]
        seen, at = set(), 0
        for k, item in enumerate(self.program.inputs):
            name, place = places[at]
            at += length(item)
            if isinstance(item, Buffer):
                if item in touched or item in self.program.outputs:
                    seen.add(name)
                    out.line(f"const double *const in{k} = {name} + {place};")
                    out.addresses[item] = f"in{k}"
            elif self.used[item]:
                seen.add(name)
                text = Text(f"{name}[{place}]")
                if item.kind != "float":
                    text = self.operations.operation(item.kind, "float", [text])
                out.line(f"const {self.operations.type(item.kind)} in{k} = {text.text};")
        out.block(self.block)
        place = 0
        for item in self.program.outputs:
            if isinstance(item, Buffer):
                where, start = out.base(item)
                size = f"{item.length} * sizeof(double)"
                out.line(f"memcpy(out + {place}, {where} + {start}, {size});")
                place += item.length
            else:
                out.line(f"out[{place}] = {out.number(item)};")
                place += 1
        given = ", ".join(f"const double *{name}" for name, _ in self.arguments)
        unused = [name for name, _ in self.arguments if name not in seen]
        unused += [] if self.work else ["work"]
        lines = [*self.operations.helpers.values(), *(wrap(x) for x in out.tables)]
        lines += [f"static void {self.name}({given}, double *out, double *work)", "{"]
        lines += [f"    (void){name};" for name in unused]
        return "\n".join([*lines, *out.lines, "}", ""])
