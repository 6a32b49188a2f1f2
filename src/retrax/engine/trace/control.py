"""Loops and choices of a jaxpr, kept as such in the program.

A loop may carry arrays with a kept axis: each lies in buffers of its own, to which every round
copies what it has made of it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr
from jax.extend.core import JaxprEqn as Equation

from retrax.engine.axes.loops import (
    AxisLoops,
    KeptArray,
    Operands,
    entry,
    kind_of_cell,
    slice_axis,
    stays,
)
from retrax.engine.axes.rules import KeptRules, Plain
from retrax.engine.builder import Builder
from retrax.engine.kinds import Unscalarisable
from retrax.engine.program import Choose, CodeBlock, Operand, Repeat, Value, View, While, kind_of
from retrax.engine.trace.arithmetic import Arithmetic, single
from retrax.engine.trace.endings import MOST_ROUNDS, ends
from retrax.engine.trace.indexing import broadcast_in_dim
from retrax.engine.trace.scatters import replaces_at_run_time
from retrax.numerics.host.control import scan_counts

# A loop of known length with stacked outputs is unrolled up to this many rounds.
_UNROLL = 64
# A loop that replaces entries keeps the first axis of what it carries from this length on.
_LONG = 16
# The rounds of a scan that carries nothing are alike: from so many on they are kept as a loop.
_ALIKE = 4


class ControlRules:
    """The rules for `while`, `scan` and `cond`; `closed` evaluates what is inside them."""

    def __init__(
        self,
        build: Builder,
        loops: AxisLoops,
        arithmetic: Arithmetic,
        kept: KeptRules,
        closed: Callable[[ClosedJaxpr, Sequence[Plain]], list[Plain]],
    ):
        self.build, self.loops, self.arithmetic = build, loops, arithmetic
        self.kept, self.closed = kept, closed

    def while_loop(self, equation: Equation, ins: list[Plain]) -> list[Plain]:
        p = equation.params
        n_cond, n_body = p["cond_nconsts"], p["body_nconsts"]
        cond_consts, body_consts, initial = (
            ins[:n_cond],
            ins[n_cond : n_cond + n_body],
            ins[n_cond + n_body :],
        )
        initial = self.in_memory(p["body_jaxpr"], initial)
        carried = self.carry(initial)
        self.build.open()
        (test,) = self.closed(p["cond_jaxpr"], [*cond_consts, *carried])
        batched = len(test.shape) > 0
        test = self.some(test)
        condition = self.close()
        self.build.open()
        updated = self.closed(p["body_jaxpr"], [*body_consts, *carried])
        if batched:
            (going,) = self.closed(p["cond_jaxpr"], [*cond_consts, *carried])
            updated = [self.where(going, u, c) for u, c in zip(updated, carried, strict=True)]
        updated = self.hand_over(updated, carried)
        body = self.close()
        loop = While(
            _all(carried),
            _all(initial),
            condition,
            entry(test),
            body,
            _all(updated),
        )
        if ends(self.build, loop):
            self.build.append(loop)
            return carried
        return self.cut_off(loop, carried)

    def cut_off(self, loop: While, carried: list[Plain]) -> list[Plain]:
        """Give a loop a bound; if it reaches it, its floats are NaN."""
        count = self.build.value("int")
        self.build.resume((loop.condition, {}))
        loop.test = self.build.emit("and", loop.test, self.build.emit("lt", count, MOST_ROUNDS))
        self.build.suspend()
        self.build.resume((loop.body, {}))
        following = self.build.emit("add", count, 1)
        self.build.suspend()
        loop.carried, loop.initial = (*loop.carried, count), (*loop.initial, 0)
        loop.updated = (*loop.updated, following)
        self.build.append(loop)
        endless = self.build.emit("ge", count, MOST_ROUNDS)
        return [self.invalidate(endless, x) for x in carried]

    def invalidate(self, endless: Operand, x: Plain) -> Plain:
        """Turn the floats of an array into NaN if a loop was cut off."""
        if isinstance(x, KeptArray):
            floats = all(kind_of_cell(cell) == "float" for cell in x.cells.ravel())
        else:
            floats = all(kind_of(entry) == "float" for entry in x.ravel())
        if not floats:
            return x
        which, nan = single(endless), single(math.nan)
        if not isinstance(x, KeptArray):
            return self.arithmetic.entrywise("select", which, x, nan)
        (cells,) = self.loops.along(
            x.length, lambda y: [self.arithmetic.entrywise("select", which, y, nan)], [x]
        )
        return KeptArray(cells, x.axis, x.length)

    def some(self, truths: Plain) -> Operands:
        """Return whether one is true: under `vmap` a loop goes on while one member needs it."""
        axes = range(truths.ndim)
        if isinstance(truths, KeptArray):
            return self.kept.total("or", truths, "bool")
        return self.arithmetic.reduce("or", truths, axes, "bool") if axes else truths

    def where(self, going: Plain, new: Plain, old: Plain) -> Plain:
        """Take new entries for the members that go on, which are the first axes, else old ones."""
        shape, first = old.shape, tuple(range(len(going.shape)))
        if isinstance(going, KeptArray):
            which: Plain = self.kept.broadcast_in_dim(
                going, shape=shape, broadcast_dimensions=first
            )
        else:
            which = broadcast_in_dim(going, shape=shape, broadcast_dimensions=first)
        arrays = (which, old, new)
        like = next((x for x in arrays if isinstance(x, KeptArray)), None)
        if like is None:
            return self.arithmetic.entrywise("select", *_plain(arrays))
        aligned = [self.kept.align(x, like) for x in arrays]
        (cells,) = self.loops.along(
            like.length, lambda *xs: [self.arithmetic.entrywise("select", *xs)], aligned
        )
        return KeptArray(cells, like.axis, like.length)

    def scan(self, equation: Equation, ins: list[Plain]) -> list[Plain]:
        p = equation.params
        n_consts, n_carry = scan_counts(p)
        consts, initial, xs = (
            ins[:n_consts],
            ins[n_consts : n_consts + n_carry],
            ins[n_consts + n_carry :],
        )
        initial = self.in_memory(p["jaxpr"], initial)
        length, stacked = p["length"], len(equation.outvars) > n_carry
        kept = any(isinstance(x, KeptArray) for x in xs)
        if not n_carry and not self.loops.inside and (kept or length >= _ALIKE):
            return self.alike(p["jaxpr"], consts, xs, length)
        if kept or (stacked and length > _UNROLL):
            if any(isinstance(x, KeptArray) for x in initial):
                return self.count_rounds(p, consts, initial, xs)
            return self.one_after_the_other(p, consts, initial, xs)
        order = list(reversed(range(length)) if p["reverse"] else range(length))
        rounds = _plain(xs)
        constant = all(not isinstance(x, Value) for x in _all(rounds))
        if stacked or not constant:
            return self.unroll(p["jaxpr"], consts, initial, rounds, order)
        carried = self.carry(initial)
        columns = [self.fresh(np.asarray(x[0], object)) for x in rounds]
        self.build.open()
        updated = self.closed(p["jaxpr"], [*consts, *carried, *columns])
        updated = self.hand_over(updated, carried)
        body = self.close()
        tables = tuple(tuple(_all([x[k] for x in rounds])) for k in order)
        self.build.append(
            Repeat(
                _all(carried),
                _all(initial),
                _all(columns),
                tables,
                body,
                _all(updated),
            )
        )
        return carried

    def alike(
        self, body: ClosedJaxpr, consts: list[Plain], xs: list[Plain], length: int
    ) -> list[Plain]:
        """Scan without a carry: the rounds are independent of each other."""
        arrays = [self.along_first(x) for x in xs]
        cells = self.loops.along(length, lambda *xs: self.closed(body, [*consts, *xs]), arrays)
        return [KeptArray(c, 0, length) for c in cells]

    def one_after_the_other(
        self, p: Mapping[str, Any], consts: list[Plain], initial: list[Plain], xs: list[Plain]
    ) -> list[Plain]:
        """Scan along a kept axis, carrying numbers from one thing to the next."""
        first = _plain(initial)
        length, n_carry = p["length"], len(initial)

        def turn(x: KeptArray) -> KeptArray:
            return slice_axis(x, length - 1, length, -1) if p["reverse"] else x

        def body(carried: list[Operands], here: list[Operands]) -> tuple[list[Plain], list[Plain]]:
            outs = self.closed(p["jaxpr"], [*consts, *carried, *here])
            return outs[:n_carry], outs[n_carry:]

        arrays = [turn(self.along_first(x)) for x in xs]
        carried, cells = self.loops.sequential(length, body, first, arrays)
        return [*carried, *(turn(KeptArray(c, 0, length)) for c in cells)]

    def count_rounds(
        self, p: Mapping[str, Any], consts: list[Plain], initial: list[Plain], xs: list[Plain]
    ) -> list[Plain]:
        """Scan along a kept axis, carrying arrays with one: a loop that counts its rounds."""
        length, n_carry = p["length"], len(initial)
        arrays = [self.along_first(x) for x in xs]
        carried, count = self.carry(initial), self.build.value("int")
        self.build.open()
        test = self.build.emit("lt", count, length)
        condition = self.close()
        self.build.open()
        place = self.build.emit("sub", length - 1, count) if p["reverse"] else count
        here = [self.loops.entry_at(x, place) for x in arrays]
        outs = self.closed(p["jaxpr"], [*consts, *carried, *here])
        stacked = [self.collect(x, place, length) for x in outs[n_carry:]]
        updated = self.hand_over(outs[:n_carry], carried)
        following = self.build.emit("add", count, 1)
        body = self.close()
        self.build.append(
            While(
                (count, *_all(carried)),
                (0, *_all(initial)),
                condition,
                test,
                body,
                (following, *_all(updated)),
            )
        )
        return [*carried, *stacked]

    def collect(self, x: Plain, place: Operand, length: int) -> KeptArray:
        """Store what a round has made at its place in new buffers."""
        if isinstance(x, KeptArray):
            raise Unscalarisable("a 'scan' along a long axis collects arrays with one")
        own = self.loops.new_buffers(KeptArray(x, 0, length))
        for view, operand in zip(own.cells.ravel(), x.ravel(), strict=True):
            self.loops.store_at(view, place, operand)
        return own

    def along_first(self, x: Plain) -> KeptArray:
        if not isinstance(x, KeptArray):
            return self.loops.keep(x, 0)
        if x.axis:
            raise Unscalarisable("a 'scan' goes along a short axis of an array with a long one")
        return x

    def unroll(
        self,
        body: ClosedJaxpr,
        consts: list[Plain],
        carried: list[Plain],
        xs: list[Operands],
        order: list[int],
    ) -> list[Plain]:
        if len(order) > _UNROLL:
            raise Unscalarisable(
                f"a 'scan' of {len(order)} rounds goes along numbers not in memory"
            )
        stacked: dict[int, list[Plain]] = {}
        n_carry = len(carried)
        for k in order:
            outs = self.closed(body, [*consts, *carried, *(np.asarray(x[k], object) for x in xs)])
            carried, stacked[k] = outs[:n_carry], outs[n_carry:]
        columns = zip(*(stacked[k] for k in sorted(stacked)), strict=True)
        return [*carried, *map(self.stack, columns)]

    def stack(self, parts: Sequence[Plain]) -> Plain:
        """Put what the rounds of a loop have made one after the other."""
        if any(isinstance(x, KeptArray) for x in parts):
            return self.kept.stack(*parts, axis=0)
        return np.stack(_plain(parts))

    def choice(self, equation: Equation, ins: list[Plain]) -> list[Plain]:
        index, *arguments = ins
        branches = equation.params["branches"]
        which = entry(_plain([index])[0])
        if not isinstance(which, Value):
            return self.closed(branches[int(which)], arguments)
        self.loops.flush()
        frames, results = [], []
        for branch in branches:
            self.build.open()
            results.append(self.closed(branch, arguments))
            self.loops.flush()
            frames.append(self.build.suspend())
        merged = [self.merge(same) for same in zip(*results, strict=True)]
        blocks = []
        for frame, outs in zip(frames, results, strict=True):
            self.build.resume(frame)
            outs[:] = self.copy_results(outs, merged)
            blocks.append(self.close())
        rows, kept = tuple(map(_all, results)), [x for x in merged if isinstance(x, KeptArray)]
        made = tuple(view.buffer for x in kept for view in x.cells.ravel())
        self.build.append(Choose(which, tuple(blocks), rows, _all(merged), made))
        return merged

    def merge(self, results: Sequence[Plain]) -> Plain:
        """Make variables for a result of a choice, or buffers where it has a kept axis."""
        like = next((x for x in results if isinstance(x, KeptArray)), None)
        if like is None:
            return self.fresh(_plain(results)[0])
        return self.loops.new_buffers(like)

    def copy_results(self, outs: Sequence[Plain], merged: Sequence[Plain]) -> list[Plain]:
        """Copy the arrays that a block has made to the buffers of a choice, and return all."""
        outs = [self.store_like(x, like) for x, like in zip(outs, merged, strict=True)]
        for x, like in zip(outs, merged, strict=True):
            if isinstance(x, KeptArray) and isinstance(like, KeptArray):
                self.loops.copy(self.kept.with_axis(x, like), list(like.cells.ravel()))
        return outs

    def close(self) -> CodeBlock:
        """End a block, and the loop that is open in it."""
        self.loops.flush()
        return self.build.close()

    def in_memory(self, body: ClosedJaxpr, initial: list[Plain]) -> list[Plain]:
        """Put the long arrays that a loop carries into memory if its rounds replace entries."""
        if self.loops.inside or not replaces_at_run_time(body.jaxpr):
            return initial
        return [
            x if isinstance(x, KeptArray) or not x.ndim or len(x) < _LONG else self.loops.keep(x, 0)
            for x in initial
        ]

    def carry(self, initial: Sequence[Plain]) -> list[Plain]:
        """Make new variables for what a loop carries, and buffers that hold it at first."""
        self.loops.flush()
        carried = []
        for x in initial:
            if not isinstance(x, KeptArray):
                carried.append(self.fresh(x))
                continue
            carried.append(self.loops.in_own_buffers(x))
        return carried

    def hand_over(self, updated: Sequence[Plain], carried: Sequence[Plain]) -> list[Plain]:
        """Copy what a round has made to the buffers that the next one reads, and return it."""
        updated = [self.store_like(u, c) for u, c in zip(updated, carried, strict=True)]
        pairs = [
            (u, c)
            for u, c in zip(updated, carried, strict=True)
            if isinstance(u, KeptArray) and isinstance(c, KeptArray) and not stays(u, c)
        ]
        own = {cell.buffer for _, c in pairs for cell in c.cells.ravel()}
        safe = []
        for u, c in pairs:
            reads = {cell.buffer for cell in u.cells.ravel() if isinstance(cell, View)}
            if reads & own:
                # It is made of what is about to be overwritten: set it aside first.
                u = self.loops.in_own_buffers(u)
            safe.append((u, c))
        for u, c in safe:
            self.loops.copy(u, list(c.cells.ravel()))
        return updated

    def store_like(self, x: Plain, like: Plain) -> Plain:
        """Keep the axis of an array if `like` keeps it; take it apart if not."""
        if isinstance(like, KeptArray):
            return x if isinstance(x, KeptArray) else self.loops.keep(x, like.axis)
        return self.loops.scalars(x) if isinstance(x, KeptArray) else x

    def fresh(self, like: Operands) -> Operands:
        """Make new variables of the kinds of `like`."""
        out = np.empty(like.shape, object)
        for index in np.ndindex(*like.shape):
            out[index] = self.build.value(kind_of(entry(like, index)))
        return out


def _plain(arrays: Sequence[Plain]) -> list[Operands]:
    """Require that no array has a kept axis."""
    plain = [x for x in arrays if not isinstance(x, KeptArray)]
    if len(plain) < len(arrays):
        raise Unscalarisable("a loop or a choice has numbers along a long axis")
    return plain


def _all(arrays: Sequence[Plain]) -> tuple[Any, ...]:
    """List all operands of arrays without a kept axis, in order."""
    plain = [np.asarray(a, object) for a in arrays if not isinstance(a, KeptArray)]
    return tuple(x for a in plain for x in a.ravel())
