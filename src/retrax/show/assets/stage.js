// The stage: renderer, lights and the camera with its controls. It draws when something changed.

const Stage = (() => {
  const canvas = get("scene");
  const { up } = run.scene;
  const radius = run.scene.radius || 1;
  // Arrows, dots and words are as large as what is seen of the picture at first.
  const unit = run.scene.followed ? 2 * run.scene.follow : radius;
  const [x, y, z] = run.scene.centre;
  const centre = new THREE.Vector3(x, up * y, up * z);
  const { flat, front } = run.scene.around;
  const home = flat || front
    ? { azimuth: -Math.PI / 2, elevation: front ? 1.5705 : 1.45 }
    : { azimuth: -0.9, elevation: 0.38 };
  const VIEW = 32; // degrees
  let waiting = false;

  // Asked for before three.js does, which would complain on the console.
  if (!document.createElement("canvas").getContext("webgl2")) return null;
  let renderer;
  try {
    renderer = new THREE.WebGLRenderer({ canvas, antialias: true, alpha: true });
  } catch {
    return null;
  }
  const scene = new THREE.Scene();
  const camera = new THREE.PerspectiveCamera(VIEW, 1, radius / 500, radius * 100);
  camera.up.set(0, 0, 1);
  const lamp = new THREE.DirectionalLight(0xffffff, 1.0);
  lamp.position.set(-0.6, 0.9, 1);
  camera.add(lamp, lamp.target);
  lamp.target.position.set(0, 0, -1);
  scene.add(camera, new THREE.AmbientLight(0xffffff, 1.5));
  // The sun stands above the picture, whichever way the camera looks, and throws shadows.
  renderer.shadowMap.enabled = true;
  const sun = new THREE.DirectionalLight(0xffffff, 1.3);
  sun.castShadow = true;
  sun.shadow.mapSize.set(2048, 2048);
  sun.shadow.radius = 5;
  scene.add(sun, sun.target);
  // What throws a shadow that is seen lies within this distance of a point.
  function shine(at, reach) {
    sun.target.position.copy(at);
    sun.position.copy(at).add(new THREE.Vector3(-0.5, 0.35, 1.6).multiplyScalar(2 * reach));
    Object.assign(sun.shadow.camera, { left: -reach, right: reach, bottom: -reach, top: reach, near: 0.1 * reach, far: 8 * reach });
    sun.shadow.camera.updateProjectionMatrix();
  }
  // Where the third axis points down, space is shown turned by half a turn about the first.
  const root = new THREE.Group();
  root.rotation.x = up < 0 ? Math.PI : 0;
  scene.add(root);

  const controls = new THREE.OrbitControls(camera, canvas);
  controls.rotateSpeed = 0.8;
  controls.minDistance = 0.02 * radius;
  controls.maxDistance = 40 * radius;
  canvas.style.touchAction = "pan-y"; // a finger that moves up or down scrolls the page
  controls.addEventListener("change", draw);

  function draw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      renderer.render(scene, camera);
    });
  }

  function look(azimuth, elevation, distance) {
    const [ce, se] = [Math.cos(elevation), Math.sin(elevation)];
    const towards = new THREE.Vector3(ce * Math.cos(azimuth), ce * Math.sin(azimuth), se);
    camera.position.copy(controls.target).addScaledVector(towards, distance);
    controls.update();
    draw();
  }

  // From now on the camera goes where a point of space goes, near enough to see a thing of this size.
  function follow([x, y, z], size) {
    const place = new THREE.Vector3(x, up * y, up * z);
    const from = camera.position.clone().sub(controls.target);
    const distance = Math.min(from.length(), 9 * size);
    controls.target.copy(place);
    shine(place, Math.max(8 * size, unit));
    camera.position.copy(place).addScaledVector(from.normalize(), distance);
    controls.update();
    draw();
  }

  // As near as all of the picture can be seen from: the corners of its axes, or the ball about it.
  function reset() {
    const tangent = Math.tan(((VIEW / 2) * Math.PI) / 180);
    const [ce, se] = [Math.cos(home.elevation), Math.sin(home.elevation)];
    const [ca, sa] = [Math.cos(home.azimuth), Math.sin(home.azimuth)];
    const towards = new THREE.Vector3(ce * ca, ce * sa, se);
    const across = new THREE.Vector3(-sa, ca, 0);
    const above = towards.clone().cross(across);
    const needs = corners().map((corner) => {
      const from = corner.sub(centre);
      const aside = Math.max(Math.abs(from.dot(across)) / camera.aspect, Math.abs(from.dot(above)));
      return from.dot(towards) + aside / tangent;
    });
    const ball = radius / Math.sin(Math.atan(tangent * Math.min(1, camera.aspect)));
    controls.target.copy(centre);
    shine(centre, 1.8 * radius);
    look(home.azimuth, home.elevation, Math.min(ball, 1.04 * Math.max(...needs)));
  }

  function corners() {
    const { frame } = run.scene.around;
    if (!frame) return [centre.clone().addScaledVector(new THREE.Vector3(0, 0, 1), 1e9)];
    const half = Math.hypot(...frame.low.map((x, k) => frame.high[k] - x)) / 2;
    const margin = Math.max(0.06 * radius, radius - half);
    const ends = [frame.low.map((x) => x - margin), frame.high.map((x) => x + margin)];
    return Array.from({ length: 8 }, (_, n) => {
      const [a, b, c] = [0, 1, 2].map((k) => ends[(n >> k) & 1][k]);
      return new THREE.Vector3(a, up * b, up * c);
    });
  }

  // The camera turned and brought nearer, from where it is.
  function turn(right, down, nearer = 1) {
    const from = camera.position.clone().sub(controls.target);
    const distance = from.length();
    const elevation = Math.asin(from.z / distance) + down;
    const azimuth = Math.atan2(from.y, from.x) - right;
    look(azimuth, Math.min(Math.max(elevation, -1.5705), 1.5705), distance / nearer);
  }

  function fit() {
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width || !height) return;
    renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, 2));
    renderer.setSize(width, height, false);
    camera.aspect = width / height;
    camera.updateProjectionMatrix();
    draw();
  }

  const KEYS = {
    ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1],
    "+": [0, 0, 1.15], "=": [0, 0, 1.15], "-": [0, 0, 1 / 1.15],
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (KEYS[event.key]) turn(...KEYS[event.key]);
    else if (event.key === "0" || event.key === "Home") reset();
    else return;
    event.preventDefault();
  });
  canvas.addEventListener("dblclick", reset);
  get("reset").addEventListener("click", reset);
  get("nearer").addEventListener("click", () => turn(0, 0, 1.25));
  get("farther").addEventListener("click", () => turn(0, 0, 1 / 1.25));
  fit();
  reset();
  new ResizeObserver(fit).observe(canvas);

  // Everything on the stage is taken off before it is set up again in other colours.
  function clear() {
    root.traverse((object) => {
      object.geometry?.dispose();
      object.material?.map?.dispose();
      object.material?.dispose();
    });
    root.clear();
  }

  return { root, radius, unit, draw, clear, reset, follow };
})();
