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

  let renderer;
  try {
    renderer = new THREE.WebGLRenderer({ canvas, antialias: true, alpha: true });
  } catch {
    return null;
  }
  const scene = new THREE.Scene();
  const camera = new THREE.PerspectiveCamera(VIEW, 1, radius / 500, radius * 100);
  camera.up.set(0, 0, 1);
  const lamp = new THREE.DirectionalLight(0xffffff, 1.9);
  lamp.position.set(-0.6, 0.9, 1);
  camera.add(lamp, lamp.target);
  lamp.target.position.set(0, 0, -1);
  scene.add(camera, new THREE.AmbientLight(0xffffff, 1.7));
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
    camera.position.copy(place).addScaledVector(from.normalize(), distance);
    controls.update();
    draw();
  }

  function reset() {
    const fit = Math.sin(((VIEW / 2) * Math.PI) / 180) * Math.min(1, camera.aspect);
    controls.target.copy(centre);
    look(home.azimuth, home.elevation, radius / fit);
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
