// Where everything is at any time between the first and the last frame.

const Motion = (() => {
  const t = singles(run.scene.t);
  const last = t.length - 1;
  const { joined } = run.scene;

  // The frame at a time, as a number with the fraction of the way to the next frame.
  function frame(time) {
    let [low, high] = [0, last];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (t[middle] <= time) low = middle;
      else high = middle;
    }
    return high > low ? low + Math.min(Math.max((time - t[low]) / (t[high] - t[low]), 0), 1) : low;
  }

  // Numbers between frames: cubic (Catmull-Rom), or those of the last frame where frames are too far
  // apart to know what happened between them.
  function between({ width, values }, at) {
    const k = Math.min(Math.floor(at), Math.max(last - 1, 0));
    const u = k < joined ? at - k : Math.floor(at - k);
    const row = (n) => width * Math.min(Math.max(n, 0), last);
    const [a, b, c] = [row(k - 1), row(k), row(k + 1)];
    const d = row(Math.min(k + 2, Math.max(joined, k + 1)));
    const out = new Float32Array(width);
    for (let n = 0; n < width; n++) {
      const [p, q, r, s] = [values[a + n], values[b + n], values[c + n], values[d + n]];
      out[n] = q + 0.5 * u * (r - p + u * (2 * p - 5 * q + 4 * r - s + u * (3 * (q - r) + s - p)));
    }
    return out;
  }

  // What is computed on the page is where its own frames say.
  const there = (track, at) =>
    typeof LiveFrames !== "undefined" && Motion.live ? LiveFrames.between(track, at) : between(track, at);

  return { t, last, joined, frame, between: there, live: null };
})();
