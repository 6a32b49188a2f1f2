// A tube about a curve that moves: rings about its nodes, turned as little as possible.

const Tube = Stage && (() => {
  const SIDES = 16;

  function make({ nodes, points, values, radius }, shades) {
    const count = nodes * (SIDES + 1);
    const [places, normals, paints] = [0, 1, 2].map(() => new Float32Array(3 * count));
    const index = [];
    for (let k = 0; k + 1 < nodes; k++) {
      for (let j = 0; j < SIDES; j++) {
        const a = k * (SIDES + 1) + j;
        const b = a + SIDES + 1;
        index.push(a, b, a + 1, b, b + 1, a + 1);
      }
    }
    const geometry = new THREE.BufferGeometry();
    geometry.setIndex(index);
    const attributes = { position: places, normal: normals, color: paints };
    for (const [name, array] of Object.entries(attributes)) {
      geometry.setAttribute(name, new THREE.BufferAttribute(array, 3));
    }
    const skin = Shapes.matt(0xffffff, { vertexColors: true, side: THREE.DoubleSide });
    const hose = new THREE.Mesh(geometry, skin);
    hose.frustumCulled = false;
    const ends = [0, 1].map(() =>
      new THREE.Mesh(new THREE.SphereGeometry(radius, 20, 12), Shapes.matt(css("--body"))));
    const nodeShades = new Float32Array(3 * nodes);

    function update(at) {
      const flat = Motion.between(points, at);
      const node = (k) => Shapes.vector(flat, 3 * Math.min(Math.max(k, 0), nodes - 1));
      shades(Motion.between(values, at), nodeShades);
      let side = null;
      for (let k = 0; k < nodes; k++) {
        const here = node(k);
        const along = node(k + 1).sub(node(k - 1)).normalize();
        side ??= new THREE.Vector3(along.z, along.x, along.y);
        side.addScaledVector(along, -side.dot(along)).normalize();
        const other = along.clone().cross(side);
        for (let j = 0; j <= SIDES; j++) {
          const angle = (2 * Math.PI * j) / SIDES;
          const out = side.clone().multiplyScalar(Math.cos(angle)).addScaledVector(other, Math.sin(angle));
          const first = 3 * (k * (SIDES + 1) + j);
          out.toArray(normals, first);
          here.clone().addScaledVector(out, radius).toArray(places, first);
          paints.set(nodeShades.subarray(3 * k, 3 * k + 3), first);
        }
      }
      for (const name of Object.keys(attributes)) geometry.attributes[name].needsUpdate = true;
      ends.forEach((ball, n) => {
        ball.position.copy(node(n * (nodes - 1)));
        ball.material.color.fromArray(nodeShades, 3 * n * (nodes - 1));
      });
    }
    return { object: new THREE.Group().add(hose, ...ends), update };
  }

  return { make };
})();
