// Things that move: each kind is set up once, and put where it is at a frame.

const Things = Stage && (() => {
  const { vector, matt, cylinder, lay, label, wideLine } = Shapes;
  const { between } = Motion;
  const R = Stage.unit;
  const group = (...objects) => new THREE.Group().add(...objects);
  const AXES = [[[1, 0, 0], 2], [[0, 1, 0], 3], [[0, 0, 1], 0]];

  const PARTS = {
    box: (part, of) => Shapes.box(part.box, of),
    ball: (part, of) => Shapes.ball(part.ball, part.at, part.colour === undefined ? null : of),
    disk: (part) => Shapes.disk(part.disk, part.thickness),
    table: (part) => Shapes.table(part.table),
    bar: (part, of) => Shapes.bar(part.bar, part.radius, of),
    solid: (part, of) => Shapes.solid(part, of),
    line: (part, of) => {
      const line = wideLine(part.line.length, { of, width: 2.5 });
      line.place(new Float32Array(part.line.flat()));
      return line.object;
    },
  };

  function body({ poses, parts, axes, name }) {
    const solid = parts.map((part) => {
      const kind = Object.keys(PARTS).find((name) => name in part);
      return PARTS[kind](part, part.colour === undefined ? css("--body") : colour(part.colour));
    });
    const whole = group(...solid);
    if (axes) {
      AXES.forEach(([axis, of], k) => {
        const tip = axis.map((x) => x * axes);
        whole.add(Shapes.bar([[0, 0, 0], tip], Math.min(0.012 * R, 0.03 * axes), colour(of)));
        const size = Math.min(0.07, (0.25 * axes) / R);
        whole.add(label(`e${k + 1}`, tip.map((x) => 1.12 * x), size));
      });
    }
    if (name) {
      const words = label(name, [0, 0, 0], 0.075);
      words.center.set(-0.12, -0.25); // beside the centre of mass
      words.material.depthTest = false;
      words.renderOrder = 1;
      Toggles.add("names", words);
      whole.add(words);
    }
    return { object: whole, update: (at) => Shapes.setPose(whole, between(poses, at)) };
  }

  // A line whose points move.
  function strand({ nodes, points, colour: of }) {
    const line = wideLine(nodes, { of: of === undefined ? css("--ink") : colour(of), width: 2.5 });
    return { object: line.object, update: (at) => line.place(between(points, at)) };
  }

  function arrow({ start, vector: along, colour: of, thin = 1 }) {
    const shaft = cylinder(0.016 * R, colour(of));
    const head = new THREE.Mesh(new THREE.ConeGeometry(0.042 * R, 1, 18), matt(colour(of)));
    return {
      object: group(shaft, head),
      update(at) {
        const from = vector(between(start, at));
        const way = vector(between(along, at));
        const length = way.length();
        const tip = from.clone().add(way);
        const tapered = Math.min(0.5, (0.11 * thin * R) / length);
        const neck = from.clone().addScaledVector(way, length ? 1 - tapered : 1);
        lay(shaft, from, neck);
        lay(head, neck, tip);
        // A short arrow is thinner, or it would not be seen to be one.
        const slim = thin * Math.min(1, length / (0.2 * thin * R));
        for (const part of [shaft, head]) Object.assign(part.scale, { x: slim, z: slim });
      },
    };
  }

  function point({ places, colour: of, inside }) {
    // What lies inside a solid is drawn over it.
    const paint = matt(colour(of), { depthTest: !inside, transparent: Boolean(inside) });
    const dot = new THREE.Mesh(new THREE.SphereGeometry(0.03 * R, 20, 12), paint);
    return { object: dot, update: (at) => dot.position.copy(vector(between(places, at))) };
  }

  // From the colour of the panel to another one.
  function fading(of, count) {
    const [ground, bright] = [css("--panel"), of].map((name) => new THREE.Color(name));
    const mixed = new THREE.Color();
    const out = new Float32Array(3 * count);
    for (let k = 0; k < count; k++) {
      mixed.lerpColors(ground, bright, (k / (count - 1)) ** 0.7).toArray(out, 3 * k);
    }
    return out;
  }

  const FRAMES = 60; // of the bright end of a path
  const BETWEEN = 4;
  function path({ points, joined, trail, colour: of }) {
    const whole = new Float32Array(points.flat());
    const count = FRAMES * BETWEEN + 1;
    const end = wideLine(count, { width: 3, shaded: true });
    end.paint(fading(colour(of), count));
    const objects = [end.object];
    if (joined && points.length > 1) {
      const line = wideLine(points.length, { of: colour(of), width: 1.2, opacity: 0.3 });
      line.place(whole);
      objects.push(line.object);
    } else {
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(whole, 3));
      const size = 2 * Math.min(window.devicePixelRatio || 1, 2);
      const dots = new THREE.PointsMaterial({ color: colour(of), size, sizeAttenuation: false });
      objects.push(new THREE.Points(geometry, dots));
    }
    return {
      object: group(...objects),
      update(at) {
        if (objects[1]) objects[1].visible = !Motion.live;
        end.object.visible = (joined || Motion.live) && at <= Motion.joined;
        if (!end.object.visible) return;
        const spread = Math.min(2 * FRAMES, Math.max(8, Math.round(Motion.last / 10)));
        const bright = new Float32Array(3 * count);
        for (let k = 0; k <= FRAMES * BETWEEN; k++) {
          const back = (spread * (FRAMES * BETWEEN - k)) / (FRAMES * BETWEEN);
          bright.set(between(trail, Math.max(at - back, 0)), 3 * k);
        }
        end.place(bright);
      },
    };
  }

  // Colours between those of the lowest and the highest value.
  function shades(values, out) {
    const [low, high] = [colour(0), colour(1)].map((name) => new THREE.Color(name));
    const mixed = new THREE.Color();
    const last = values.length - 1;
    for (let k = 0; k <= values.length; k++) {
      const value = (values[Math.max(k - 1, 0)] + values[Math.min(k, last)]) / 2;
      mixed.lerpColors(low, high, Math.min(Math.max(value, 0), 1)).toArray(out, 3 * k);
    }
    return out;
  }

  function string({ nodes, points, values }) {
    const line = wideLine(nodes, { width: 4.5, shaded: true });
    const paints = new Float32Array(3 * nodes);
    return {
      object: line.object,
      update(at) {
        line.place(between(points, at));
        line.paint(shades(between(values, at), paints));
      },
    };
  }

  const line = (thing) => (thing.radius ? Tube.make(thing, shades) : string(thing));

  function plane({ normal }) {
    const material = matt(css("--body"), { transparent: true, opacity: 0.55, side: THREE.DoubleSide });
    const disk = new THREE.Mesh(new THREE.CylinderGeometry(1, 1, 0.004, 64), material);
    const update = (at) =>
      disk.quaternion.setFromUnitVectors(Shapes.UP, vector(between(normal, at)).normalize());
    return { object: disk, update };
  }

  function bars({ rows, columns, values }) {
    const geometry = new THREE.BoxGeometry(0.7, 0.7, 1);
    const boxes = Array.from({ length: rows * columns }, (_, n) => {
      const mesh = new THREE.Mesh(geometry, matt(colour(0)));
      const [i, j] = [Math.floor(n / columns), n % columns];
      mesh.position.set(j - (columns - 1) / 2, (rows - 1) / 2 - i, 0);
      return mesh;
    });
    const thin = 0.004 * R;
    return {
      object: group(...boxes),
      update(at) {
        between(values, at).forEach((height, n) => {
          boxes[n].scale.z = Math.max(Math.abs(height), thin);
          boxes[n].position.z = height / 2;
          boxes[n].material.color.set(colour(height < 0 ? 1 : 0));
        });
      },
    };
  }

  function curve({ points }) {
    const line = wideLine(points.length, { of: css("--quiet"), width: 1.5 });
    line.place(new Float32Array(points.flat()));
    return { object: line.object, update() {} };
  }

  // Solids throw shadows; lines and what one can see through do not.
  // What stands still below them takes them.
  function throwShadow(object, still = false) {
    object.castShadow = object.isMesh && !object.isLine2 && !object.material.transparent && !still;
    object.receiveShadow = still;
  }

  const KINDS = { body, arrow, point, path, line, strand, plane, bars, curve };
  // Packed tracks are unpacked once.
  const given = run.scene.things.map((thing) =>
    Object.fromEntries(Object.entries(thing).map(([k, x]) => [k, x?.data ? unpack(x) : x])));
  let shown = [];
  return {
    // Where the first body is.
    place: (at) => between(given.find((thing) => thing.poses).poses, at).slice(9),
    build() {
      Toggles.clear();
      shown = given.map((thing) => KINDS[thing.kind](thing));
      shown.forEach(({ object }, k) => object.traverse((part) => throwShadow(part, given[k].still)));
      Stage.root.add(...shown.map((thing) => thing.object));
    },
    move: (at) => shown.forEach((thing, k) => {
      thing.object.visible = !Motion.live?.hides(k) && Toggles.shows(given[k].toggle);
      if (thing.object.visible) thing.update(at);
    }),
    tracks: () => given,
  };
})();
