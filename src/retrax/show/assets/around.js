// What does not move: a sphere, the ground, axes with their names.

// The side of the squares on the ground: 1, 2 or 5 times a power of ten.
function square(all) {
  const { follow, followed } = run.scene;
  const side = followed ? Math.max(16 * follow, all / 10) : all;
  const ten = 10 ** Math.floor(Math.log10(side / 8));
  return ten * [5, 2, 1].find((k) => k * ten <= side / 8);
}

const FLOOR = 3.2; // sides of what lies below everything, in radii of the picture

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

  function ground(side, height = run.scene.around.height ?? 0) {
    const [x, y] = run.scene.centre;
    const step = square(side);
    const count = Math.ceil(side / 2 / step);
    const [left, low] = [x, y].map((at) => Math.round(at / step) * step);
    // Square by square: a long line with one end behind the camera is not drawn everywhere.
    const lines = [];
    for (let k = -count; k <= count; k++) {
      for (let n = -count; n < count; n++) {
        const [here, from, to] = [k, n, n + 1].map((x) => x * step);
        lines.push([left + here, low + from, height], [left + here, low + to, height]);
        lines.push([left + from, low + here, height], [left + to, low + here, height]);
      }
    }
    return [thinLines(lines)];
  }

  function frame({ names, low, high }) {
    return AXES.flatMap((axis, k) => {
      if (!names[k] || !(high[k] > low[k])) return [];
      const end = low.map((x, i) => (axis[i] ? high[i] : x));
      const beyond = end.map((x, i) => x + 0.06 * R * axis[i]);
      const words = label(names[k].split(" (")[0], beyond);
      words.material.depthTest = false; // seen through what stands before it
      return [bar([low, end], 0.005 * R, css("--quiet")), words];
    });
  }

  // What lies below everything and takes the shadows.
  function floor(height) {
    const { around, up } = run.scene;
    const [x, y] = run.scene.centre;
    const side = 40 * R;
    const dark = new THREE.ShadowMaterial({ opacity: 0.22, side: THREE.DoubleSide, depthWrite: false });
    const sheet = new THREE.Mesh(new THREE.PlaneGeometry(side, side), dark);
    sheet.position.set(x, y, height - 0.002 * up * R);
    sheet.receiveShadow = true;
    return around.ground || around.sphere ? [sheet] : [sheet, ...ground(FLOOR * R, height)];
  }

  const KINDS = { sphere, ground, frame };
  return {
    build() {
      for (const [kind, make] of Object.entries(KINDS)) {
        if (run.scene.around[kind]) Stage.root.add(...make(run.scene.around[kind]));
      }
      if (run.scene.floor !== null) Stage.root.add(...floor(run.scene.floor));
    },
  };
})();
