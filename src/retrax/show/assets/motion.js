"use strict";
// The run as data: where every body is at any time between the first and the last frame.

const run = JSON.parse(document.getElementById("run").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const colours = () => run.colours[dark.matches ? "dark" : "light"];
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const Motion = run.scene && (() => {
  const { t, smooth, bodies, poses, momenta, string, rods } = run.scene;
  const last = t.length - 1;

  // The frame at a time, as a number with the fraction of the way to the next frame.
  function frame(time) {
    let [low, high] = [0, last];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (t[middle] <= time) low = middle;
      else high = middle;
    }
    return high > low ? low + Math.min((time - t[low]) / (t[high] - t[low]), 1) : low;
  }

  // Numbers between saved states: cubic (Catmull-Rom), or those of the last state where the states
  // are too far apart to know what happened between them.
  function between(values, stride, first, length, at) {
    const k = Math.min(Math.floor(at), Math.max(last - 1, 0));
    const u = smooth ? at - k : Math.floor(at - k);
    const row = (n) => Math.min(Math.max(n, 0), last) * stride + first;
    const [a, b, c, d] = [row(k - 1), row(k), row(k + 1), row(k + 2)];
    return Array.from({ length }, (_, n) => {
      const [p, q, r, s] = [values[a + n], values[b + n], values[c + n], values[d + n]];
      return q + 0.5 * u * (r - p + u * (2 * p - 5 * q + 4 * r - s + u * (3 * (q - r) + s - p)));
    });
  }

  // A pose is a rotation, row by row, and a position.
  const pose = (n, at) => between(poses, 12 * bodies.length, 12 * n, 12, at);
  const place = (g, v) =>
    [0, 1, 2].map((i) => g[3 * i] * v[0] + g[3 * i + 1] * v[1] + g[3 * i + 2] * v[2] + g[9 + i]);
  const momentum = (n, at) => momenta && between(momenta, 3 * bodies.length, 3 * n, 3, at);
  const paths = bodies.map((body, n) => t.map((_, k) => place(pose(n, k), body.tip)));
  // A string or a rod: its points, and the tension of each piece between 0 and 1.
  const line = ({ nodes, points, tension, radius }) => ({
    radius,
    points(at) {
      const flat = between(points, 3 * nodes, 0, 3 * nodes, at);
      return Array.from({ length: nodes }, (_, k) => flat.slice(3 * k, 3 * k + 3));
    },
    tension: (at) => between(tension, nodes - 1, 0, nodes - 1, at),
  });
  const [hung, laid] = [string && line(string), rods.map(line)];
  return { t, frame, pose, place, momentum, paths, string: hung, rods: laid };
})();
