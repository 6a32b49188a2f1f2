// What does not move: a sphere, the ground, axes with their names.

// The side of the squares on the ground: 1, 2 or 5 times a power of ten.
function square(side) {
  const ten = 10 ** Math.floor(Math.log10(side / 8));
  return ten * [5, 2, 1].find((k) => k * ten <= side / 8);
}

const Around = Stage && (() => {
  const { label, thinLines, bar } = Shapes;
  const R = Stage.radius;
  const ring = Array.from({ length: 73 }, (_, k) => (k * Math.PI) / 36);
  const both = (degrees) => [Math.cos, Math.sin].map((f) => f((degrees * Math.PI) / 180));
  const pairs = (points) => points.slice(1).flatMap((point, k) => [points[k], point]);
  const AXES = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];

  function sphere(radius) {
    const circles = [
      ...[-60, -30, 0, 30, 60].map(both).map(([c, s]) =>
        ring.map((a) => [c * Math.cos(a), c * Math.sin(a), s])),
      ...[0, 30, 60, 90, 120, 150].map(both).map(([c, s]) =>
        ring.map((a) => [c * Math.cos(a), s * Math.cos(a), Math.sin(a)])),
    ];
    const lines = thinLines(circles.flatMap(pairs));
    lines.scale.setScalar(radius);
    const axes = AXES.flatMap((axis, k) => [
      bar([axis.map((x) => x * radius), axis.map((x) => 1.12 * x * radius)], 0.006 * R, css("--quiet")),
      label(`x${k + 1}`, axis.map((x) => 1.19 * x * radius)),
    ]);
    return [lines, ...axes];
  }

  function ground(side) {
    const [x, y] = run.scene.centre;
    const step = square(side);
    const count = Math.ceil(side / 2 / step);
    const [left, low] = [x, y].map((at) => Math.round(at / step) * step);
    // Square by square: a long line with one end behind the camera is not drawn everywhere.
    const lines = [];
    for (let k = -count; k <= count; k++) {
      for (let n = -count; n < count; n++) {
        const [here, from, to] = [k, n, n + 1].map((x) => x * step);
        lines.push([left + here, low + from, 0], [left + here, low + to, 0]);
        lines.push([left + from, low + here, 0], [left + to, low + here, 0]);
      }
    }
    return [thinLines(lines)];
  }

  function frame({ names, low, high }) {
    return AXES.flatMap((axis, k) => {
      if (!names[k] || !(high[k] > low[k])) return [];
      const end = low.map((x, i) => (axis[i] ? high[i] : x));
      const value = Number(high[k].toPrecision(3));
      const [name, unit] = names[k].split(" (");
      const text = `${name} = ${value}${unit ? ` ${unit.slice(0, -1)}` : ""}`;
      const beyond = end.map((x, i) => x + 0.07 * R * axis[i]);
      return [bar([low, end], 0.005 * R, css("--quiet")), label(text, beyond)];
    });
  }

  const KINDS = { sphere, ground, frame };
  return {
    build() {
      for (const [kind, make] of Object.entries(KINDS)) {
        if (run.scene.around[kind]) Stage.root.add(...make(run.scene.around[kind]));
      }
    },
  };
})();
