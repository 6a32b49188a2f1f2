// The picture: each body as a box with its axes, its momentum and the path of its tip.

const Scene = Motion && (() => {
  const { bodies, smooth } = run.scene;
  const TRAIL = 60; // frames of the bright end of a path
  const FACES = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]];
  const AXES = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
  let at = 0;
  let paths = [];

  function ball() {
    const ring = Array.from({ length: 73 }, (_, k) => (k * Math.PI) / 36);
    const circles = [
      ...[-60, -30, 0, 30, 60].map((degrees) => {
        const [c, s] = [Math.cos, Math.sin].map((f) => f((degrees * Math.PI) / 180));
        return ring.map((a) => [c * Math.cos(a), c * Math.sin(a), s]);
      }),
      ...[0, 30, 60, 90, 120, 150].map((degrees) => {
        const [c, s] = [Math.cos, Math.sin].map((f) => f((degrees * Math.PI) / 180));
        return ring.map((a) => [c * Math.cos(a), s * Math.cos(a), Math.sin(a)]);
      }),
    ];
    return circles.map((circle) => View.halves(circle, true));
  }

  // The surroundings: for a body that turns a sphere and the axes of space, else a frame in metres.
  let globe = [];
  function drawSpace() {
    const faint = css("--line");
    if (View.still) {
      for (const { far } of globe) View.stroke(far, faint, 1, 0.6);
      for (const [k, axis] of AXES.entries()) {
        View.line([axis, axis.map((x) => 1.12 * x)], css("--quiet"), 1.5);
        View.label(axis.map((x) => 1.2 * x), `e${k + 1}`);
      }
      return;
    }
    const [low, high] = [View.low, View.high];
    const corner = (k) => AXES[k].map((on, i) => (on ? high[i] : low[i]));
    for (const k of [0, 1, 2]) {
      if (high[k] === low[k]) continue;
      View.line([low, corner(k)], css("--quiet"), 1.2, 0.7);
      const text = run.scene.travels ? `x${k + 1} = ${Number(high[k].toPrecision(3))} m` : "";
      View.label(corner(k), text);
    }
  }

  function drawBox(body, pose) {
    const corners = body.corners.map((v) => View.project(Motion.place(pose, v)));
    for (const indices of FACES) {
      const [a, b, c, d] = indices.map((k) => corners[k]);
      const winding = (c[0] - a[0]) * (d[1] - b[1]) - (c[1] - a[1]) * (d[0] - b[0]);
      if (winding >= 0) continue; // turned away from the eye
      const shade = 100 * Math.abs(winding) / (Math.abs(winding) + span(a, c) * span(b, d) + 1e-9);
      const fill = `color-mix(in srgb, ${css("--body")} ${35 + shade}%, ${css("--ground")})`;
      View.face([a, b, c, d], fill, css("--ink"));
    }
  }
  const span = (p, q) => Math.hypot(p[0] - q[0], p[1] - q[1]);

  function drawBody(body, n) {
    const [first, second, third, fourth] = colours();
    const pose = Motion.pose(n, at);
    const centre = Motion.place(pose, [0, 0, 0]);
    const depth = View.project(centre)[2];
    const rods = [];
    if (body.corners) {
      AXES.forEach((axis, k) => {
        const skin = Math.max(...body.corners.map((v) => v[k]));
        const [from, to] = [skin, body.size].map((s) => axis.map((x) => x * s));
        const ends = [from, to].map((v) => Motion.place(pose, v));
        rods.push({ ends, colour: [third, fourth, first][k], draw: View.line, thickness: 3 });
      });
    }
    const momentum = Motion.momentum(n, at);
    if (momentum) {
      const ends = [centre, centre.map((x, i) => x + momentum[i])];
      rods.push({ ends, colour: second, draw: View.arrow, thickness: 3.5 });
    }
    for (const rod of rods) rod.ahead = View.project(rod.ends[1])[2] > depth;
    const draw = ({ ends, colour, draw, thickness }) =>
      draw === View.line ? draw(ends, colour, thickness) : draw(...ends, colour, thickness);
    rods.filter((rod) => !rod.ahead).forEach(draw);
    if (body.corners) drawBox(body, pose);
    else View.dot(centre, first, 6);
    rods.filter((rod) => rod.ahead).forEach(draw);
  }

  // The string, each piece in the colour of its tension; drawn before or behind its bodies.
  const mixed = (part) => {
    const [low, high] = colours();
    const share = Math.round(100 * Math.min(Math.max(part, 0), 1));
    return `color-mix(in srgb, ${high} ${share}%, ${low})`;
  };
  function drawString() {
    const points = Motion.string.points(at);
    Motion.string.tension(at).forEach((part, k) => {
      View.line([points[k], points[k + 1]], mixed(part), 3);
    });
    View.dot(points[0], css("--quiet"), 4);
  }

  // Rods as thick as they are, their pieces from far to near, each with an edge.
  function drawRods() {
    const pieces = Motion.rods.flatMap((rod) => {
      const points = rod.points(at);
      return rod.tension(at).map((part, k) => {
        const ends = [points[k], points[k + 1]];
        const depth = (View.project(ends[0])[2] + View.project(ends[1])[2]) / 2;
        return { ends, depth, colour: mixed(part), thickness: Math.max(2 * rod.radius * View.scale(ends[0]), 3) };
      });
    });
    pieces.sort((a, b) => a.depth - b.depth);
    for (const { ends, colour, thickness } of pieces) {
      View.line(ends, css("--ground"), thickness + 3, 1, "butt");
      View.line(ends, colour, thickness);
    }
  }

  function drawPaths(half) {
    const colour = colours()[0];
    bodies.forEach((body, n) => {
      const strength = smooth ? 0.5 : 1;
      View.stroke(paths[n][half], colour, smooth ? 1 : 2, half === "far" ? 0.45 * strength : strength);
      const now = Math.floor(at + 1e-9);
      const tip = Motion.place(Motion.pose(n, at), body.tip);
      const trail = Motion.paths[n].slice(Math.max(0, now - TRAIL), now + 1).concat([tip]);
      const bright = View.halves(trail, smooth);
      View.stroke(bright[half], colour, 3, half === "far" ? 0.5 : 1);
      if ((View.project(tip)[2] < 0) === (half === "far")) View.dot(tip, colour, 4.5);
    });
  }

  function draw() {
    View.clear();
    drawSpace();
    drawPaths("far");
    const depths = bodies.map((_, n) => View.project(Motion.pose(n, at).slice(9))[2]);
    const order = bodies.map((_, n) => n).sort((a, b) => depths[a] - depths[b]);
    if (Motion.string) drawString();
    drawRods();
    for (const n of order) drawBody(bodies[n], n);
    for (const { near } of globe) View.stroke(near, css("--line"), 1, 0.8);
    drawPaths("near");
  }

  View.onChange(() => {
    paths = Motion.paths.map((path) => View.halves(path, smooth));
    globe = View.still ? ball() : [];
    draw();
  });
  return {
    draw,
    move(frame) {
      at = frame;
      draw();
    },
  };
})();
