// A camera on a canvas: points of space to points of the screen, lines and faces in their colours.

const View = Motion && (() => {
  const canvas = document.getElementById("scene");
  const pen = canvas.getContext("2d");
  const { up, bodies, travels } = run.scene;
  const FAR = 5; // the distance of the camera, in radii of what is shown
  const home = { azimuth: -0.9, elevation: 0.38 };
  let { azimuth, elevation } = home;
  let [width, height] = [0, 0];
  let changed = () => {};

  // A ball that holds every path and every body.
  const reach = Math.max(...bodies.map((body) => body.size)) * (travels ? 0.6 : 1.25);
  const all = Motion.paths.flat().concat(Motion.paths.map((_, n) => Motion.pose(n, 0).slice(9)));
  if (Motion.string) all.push([0, 0, 0]);
  for (const rod of Motion.rods) {
    for (let k = 0; k < Motion.t.length; k += Math.ceil(Motion.t.length / 50)) all.push(...rod.points(k));
  }
  const bound = (pick, i) => all.reduce((best, p) => pick(best, p[i]), all[0][i]);
  const low = [0, 1, 2].map((i) => bound(Math.min, i));
  const high = [0, 1, 2].map((i) => bound(Math.max, i));
  const still = !travels && bodies.length === 1;
  const centre = still ? [0, 0, 0] : low.map((x, i) => (x + high[i]) / 2);
  const radius = still ? reach : 0.85 * Math.hypot(...high.map((x, i) => (x - low[i]) / 2)) + reach;

  // Screen x, screen y, and depth: positive towards the eye. Where the third axis points down, space
  // is shown turned by half a turn about the first.
  function project(point) {
    const [x, y, z] = point.map((p, i) => ((i > 0 ? up : 1) * (p - centre[i])) / radius);
    const [ca, sa, ce, se] = [azimuth, elevation].flatMap((a) => [Math.cos(a), Math.sin(a)]);
    const ahead = ca * x + sa * y;
    const depth = ce * ahead + se * z;
    const scale = (0.5 * Math.min(width, height) * (FAR - 0.3)) / (FAR - depth);
    return [width / 2 + scale * (ca * y - sa * x), height / 2 - scale * (ce * z - se * ahead), depth];
  }

  // Pixels a metre at a point.
  const scale = (point) => {
    const depth = project(point)[2];
    return (0.5 * Math.min(width, height) * (FAR - 0.3)) / (FAR - depth) / radius;
  };

  // A path in two halves, beyond and before the centre; joined, or as dots.
  function halves(points, joined) {
    const out = { far: new Path2D(), near: new Path2D() };
    let previous = null;
    for (const point of points.map(project)) {
      const half = point[2] < 0 ? out.far : out.near;
      if (!joined) half.rect(point[0] - 1, point[1] - 1, 2, 2);
      else if (previous) {
        half.moveTo(previous[0], previous[1]);
        half.lineTo(point[0], point[1]);
      }
      previous = point;
    }
    return out;
  }

  function stroke(path, colour, thickness, alpha = 1, lineCap = "round") {
    Object.assign(pen, { strokeStyle: colour, lineWidth: thickness, globalAlpha: alpha });
    Object.assign(pen, { lineCap, lineJoin: "round" });
    pen.stroke(path);
    pen.globalAlpha = 1;
  }

  function line(points, colour, thickness, alpha, cap) {
    const path = new Path2D();
    points.map(project).forEach(([x, y], k) => (k ? path.lineTo(x, y) : path.moveTo(x, y)));
    stroke(path, colour, thickness, alpha, cap);
  }

  function arrow(from, to, colour, thickness) {
    const [[x0, y0], [x1, y1]] = [from, to].map(project);
    line([from, to], colour, thickness);
    const length = Math.hypot(x1 - x0, y1 - y0);
    if (length < 2 * thickness) return;
    const [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length];
    const [size, half] = [3.6 * thickness, 1.6 * thickness];
    face([[x1 + ux * size, y1 + uy * size], [x1 - uy * half, y1 + ux * half],
      [x1 + uy * half, y1 - ux * half]], colour);
  }

  function face(corners, colour, edge) {
    const path = new Path2D();
    corners.forEach(([x, y], k) => (k ? path.lineTo(x, y) : path.moveTo(x, y)));
    path.closePath();
    pen.fillStyle = colour;
    pen.fill(path);
    if (edge) stroke(path, edge, 1.2);
  }

  function dot(point, colour, size) {
    const [x, y] = project(point);
    pen.fillStyle = colour;
    pen.beginPath();
    pen.arc(x, y, size, 0, 2 * Math.PI);
    pen.fill();
  }

  function label(point, text) {
    const [x, y] = project(point);
    Object.assign(pen, { fillStyle: css("--quiet"), font: "13px system-ui, sans-serif" });
    Object.assign(pen, { textAlign: "center", textBaseline: "middle" });
    pen.fillText(text, x, y);
  }

  function clear() {
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
  }

  function fit() {
    const ratio = window.devicePixelRatio || 1;
    [width, height] = [canvas.clientWidth, canvas.clientHeight];
    Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    changed();
  }

  function turn(right, down) {
    azimuth -= right;
    elevation = Math.min(Math.max(elevation + down, -1.5), 1.5);
    changed();
  }

  canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    if (canvas.hasPointerCapture(event.pointerId)) turn(event.movementX / 150, event.movementY / 150);
  });
  canvas.addEventListener("dblclick", () => turn(azimuth - home.azimuth, home.elevation - elevation));
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
    if (!by[event.key]) return;
    event.preventDefault();
    turn(...by[event.key]);
  });
  new ResizeObserver(fit).observe(canvas);

  return {
    low, high, still, project, scale, halves, stroke, line, arrow, face, dot, label, clear,
    onChange(callback) {
      changed = callback;
      fit();
    },
  };
})();
