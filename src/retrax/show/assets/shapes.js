// Solid shapes and lines, made from three.js.

const Shapes = Stage && (() => {
  const UP = new THREE.Vector3(0, 1, 0);
  const vector = (values, k = 0) => new THREE.Vector3(values[k], values[k + 1], values[k + 2]);
  const matt = (of, more) => new THREE.MeshLambertMaterial({ color: of, ...more });

  // Corner 4i + 2j + k is at the i-th x, j-th y and k-th z.
  const FACES = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]];
  function box(corners, of) {
    const positions = FACES.flatMap(([a, b, c, d]) => [a, b, c, a, c, d].flatMap((k) => corners[k]));
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.Float32BufferAttribute(positions, 3));
    geometry.computeVertexNormals();
    const solid = new THREE.Mesh(geometry, matt(of, { side: THREE.DoubleSide }));
    const edges = new THREE.EdgesGeometry(geometry, 10);
    solid.add(new THREE.LineSegments(edges, new THREE.LineBasicMaterial({ color: css("--ink") })));
    return solid;
  }

  // A geometry of which every triangle has one of two colours, by where its middle is.
  function patterned(geometry, first, second, which) {
    const flat = geometry.toNonIndexed();
    const { array } = flat.attributes.position;
    const shades = [first, second].map((name) => new THREE.Color(name));
    const painted = new Float32Array(array.length);
    for (let k = 0; k < array.length; k += 9) {
      const middle = [0, 1, 2].map((i) => array[k + i] + array[k + 3 + i] + array[k + 6 + i]);
      const shade = shades[which(middle) ? 0 : 1];
      for (let n = 0; n < 3; n++) shade.toArray(painted, k + 3 * n);
    }
    flat.setAttribute("color", new THREE.BufferAttribute(painted, 3));
    return new THREE.Mesh(flat, matt(0xffffff, { vertexColors: true }));
  }

  const ball = (radius, at, of) => {
    const geometry = new THREE.SphereGeometry(radius, 32, 16);
    const octant = ([x, y, z]) => x * y * z > 0;
    const made = of
      ? new THREE.Mesh(geometry, matt(of))
      : patterned(geometry, css("--body"), css("--body-light"), octant);
    made.position.set(...at);
    return made;
  };

  // A disk with its axle along the second axis, and spokes that show how far it has rolled.
  function disk(radius, thickness, of = css("--body")) {
    const whole = new THREE.Mesh(
      new THREE.CylinderGeometry(radius, radius, thickness, 64), matt(of));
    for (const [k, paint] of [colour(1), css("--ink"), css("--ink")].entries()) {
      const size = [1.96 * radius, 1.15 * thickness, (k ? 0.04 : 0.09) * radius];
      const spoke = new THREE.Mesh(new THREE.BoxGeometry(...size), matt(paint));
      spoke.rotation.y = (k * Math.PI) / 3;
      whole.add(spoke);
    }
    return whole;
  }

  function table(radius) {
    const geometry = new THREE.CylinderGeometry(radius, radius, 0.02 * radius, 96);
    geometry.rotateX(Math.PI / 2).translate(0, 0, -0.01 * radius);
    const sector = ([x, y]) => Math.floor((Math.atan2(y, x) / Math.PI) * 6) % 2 === 0;
    return patterned(geometry, css("--panel-dark"), css("--line"), sector);
  }

  // Solids of size 1 about the origin, round ones along the third axis, as `retrax.draw` has them.
  const upright = (geometry) => geometry.rotateX(Math.PI / 2);
  const UNIT = {
    box: (of) => box(CUBE, of),
    ball: (of, plain) => ball(1, [0, 0, 0], plain ? of : null),
    cylinder: (of) => new THREE.Mesh(upright(new THREE.CylinderGeometry(1, 1, 1, 40)), matt(of)),
    cone: (of) => new THREE.Mesh(upright(new THREE.ConeGeometry(1, 1, 40)), matt(of)),
    wheel: (of) => {
      const turned = disk(1, 1, of);
      turned.rotation.x = Math.PI / 2;
      return new THREE.Group().add(turned);
    },
    mesh: (of, plain, { corners, triangles, wide }) => {
      const levels = new Uint16Array(bytes(corners));
      const faces = bytes(triangles);
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(Float32Array.from(levels, (x) => x / 65535), 3));
      geometry.setIndex(new THREE.BufferAttribute(wide ? new Uint32Array(faces) : new Uint16Array(faces), 1));
      const side = THREE.DoubleSide;
      return new THREE.Mesh(geometry, matt(of, { flatShading: true, side }));
    },
  };
  const HALVES = [-0.5, 0.5];
  const CUBE = HALVES.flatMap((x) => HALVES.flatMap((y) => HALVES.map((z) => [x, y, z])));
  // Rows of a matrix and then a place, as poses are written.
  const setPose = (object, [a, b, c, d, e, f, g, h, i, x, y, z]) => {
    object.matrixAutoUpdate = false;
    object.matrix.set(a, b, c, x, d, e, f, y, g, h, i, z, 0, 0, 0, 1);
    object.matrixWorldNeedsUpdate = true;
  };
  function solid(part, of) {
    const whole = new THREE.Group().add(UNIT[part.solid](of, part.colour !== undefined, part.mesh));
    setPose(whole, part.pose);
    return whole;
  }

  const cylinder = (radius, of) =>
    new THREE.Mesh(new THREE.CylinderGeometry(radius, radius, 1, 14), matt(of));

  // A cylinder of length 1, laid from one point to another.
  function lay(mesh, from, to) {
    const along = to.clone().sub(from);
    const length = along.length();
    mesh.visible = length > 0;
    if (!length) return;
    mesh.position.copy(from).addScaledVector(along, 0.5);
    mesh.quaternion.setFromUnitVectors(UP, along.divideScalar(length));
    mesh.scale.y = length;
  }

  function bar([from, to], radius, of) {
    const mesh = cylinder(radius, of);
    lay(mesh, vector(from), vector(to));
    return mesh;
  }

  function label(text, at, size = 0.09) {
    const sheet = document.createElement("canvas");
    const pen = sheet.getContext("2d");
    const font = "44px system-ui, sans-serif";
    pen.font = font;
    [sheet.width, sheet.height] = [Math.ceil(pen.measureText(text).width) + 12, 60];
    Object.assign(pen, { font, fillStyle: css("--quiet"), textBaseline: "middle" });
    pen.fillText(text, 6, 30);
    const map = new THREE.CanvasTexture(sheet);
    map.colorSpace = "srgb";
    const sprite = new THREE.Sprite(new THREE.SpriteMaterial({ map, alphaTest: 0.05 }));
    const height = size * Stage.unit;
    sprite.scale.set((height * sheet.width) / sheet.height, height, 1);
    sprite.position.set(...at);
    return sprite;
  }

  // A line of a fixed number of points, as wide as it is told in pixels; points and colours change.
  function wideLine(count, { of = "#ffffff", width = 2, opacity = 1, shaded = false }) {
    const geometry = new THREE.LineGeometry();
    geometry.setPositions(new Float32Array(3 * count));
    if (shaded) geometry.setColors(new Float32Array(3 * count));
    const material = new THREE.LineMaterial({
      color: of, linewidth: width, vertexColors: shaded, transparent: opacity < 1, opacity,
    });
    const line = new THREE.Line2(geometry, material);
    line.frustumCulled = false;
    const fill = (attribute, values) => {
      const { data } = geometry.attributes[attribute];
      for (let k = 0; k + 1 < count; k++) data.array.set(values.subarray(3 * k, 3 * k + 6), 6 * k);
      data.needsUpdate = true;
    };
    return {
      object: line,
      place: (values) => fill("instanceStart", values),
      paint: (values) => fill("instanceColorStart", values),
    };
  }

  function thinLines(points) {
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.Float32BufferAttribute(points.flat(), 3));
    return new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ color: css("--grid") }));
  }

  return {
    vector, matt, box, ball, disk, table, solid, setPose, cylinder, lay, bar, label, wideLine, thinLines, UP,
  };
})();
