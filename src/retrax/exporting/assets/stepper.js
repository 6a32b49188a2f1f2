// Functions that steps call, as the C library names them.
const stepFunctions = {
  sin: Math.sin, cos: Math.cos, tan: Math.tan, exp: Math.exp, exp2: (x) => 2 ** x, log: Math.log,
  pow: Math.pow, sinh: Math.sinh, cosh: Math.cosh, tanh: Math.tanh, expm1: Math.expm1,
  log1p: Math.log1p, cbrt: Math.cbrt, asin: Math.asin, acos: Math.acos, atan: Math.atan,
  atan2: Math.atan2, asinh: Math.asinh, acosh: Math.acosh, atanh: Math.atanh,
  fmod: (a, b) => a % b,
  round: (x) => Math.sign(x) * (Math.abs(x) - Math.trunc(Math.abs(x)) >= 0.5
    ? Math.trunc(Math.abs(x)) + 1 : Math.trunc(Math.abs(x))),
};

// A step, from its compiled module and from where its numbers lie.
//
// `params` and `state` have an array for each field, which is a view of the step's own memory:
// write to it, and call `restart()` if it was the configuration, the momentum or a parameter.
// `run(h, steps)` returns 0, or 1 where equations were not solved, 2 where a step is too long for
// its chart or the model has ended, 3 where a number is not finite; the state is then where the
// step that failed began.
function stepper(module, layout) {
  const instance = new WebAssembly.Instance(module, { math: stepFunctions });
  const numbers = new Float64Array(instance.exports.memory.buffer);
  const views = (fields, first) => Object.fromEntries(fields.map((f) =>
    [f.name, numbers.subarray(first + f.first, first + f.first + f.size)]));
  return {
    numbers,
    exports: instance.exports,
    params: views(layout.params, 0),
    state: views(layout.state, layout.stateAt),
    info: () => Object.fromEntries(layout.info.map((name, k) => [name, numbers[layout.infoAt + k]])),
    restart() {
      numbers[layout.clockAt] = 0;
      numbers[layout.remembersAt] = 0;
    },
    run: (h, steps = 1) => instance.exports.run(h, steps),
  };
}
