// Where everything is in a motion that is computed on this page: frames as they come.

const LiveFrames = (() => {
  const MOST = 2000; // times in the plots; then every second one is left out
  const RECENT = 480; // places of the picture, for the bright end of a path
  let t = [];
  let looks = [];
  let rows = [];
  const ids = new Map();

  function clear() {
    [t, looks, rows] = [[], [], []];
  }

  function place(values) {
    rows.push(values);
    if (rows.length > RECENT) rows.shift();
  }

  function look(time, seen) {
    t.push(time);
    looks.push(seen);
    if (t.length > MOST) {
      const half = (list) => list.filter((_, k) => k % 2 === 0 || k === list.length - 1);
      [t, looks] = [half(t), half(looks)];
    }
  }

  // The numbers of a track at a frame, on the straight line between two frames.
  function between(track, at) {
    const n = ids.get(track);
    const last = rows.length - 1;
    const k = Math.min(Math.max(Math.floor(at), 0), last);
    const [a, b] = [rows[k][n], rows[Math.min(k + 1, last)][n]];
    const u = Math.min(Math.max(at - k, 0), 1);
    return Float32Array.from(a, (x, c) => x + u * (b[c] - x));
  }

  return {
    clear, place, look, between, ids,
    times: () => t, looks: () => looks, last: () => rows.length - 1,
  };
})();
