// The step of the run on this page: sliders for start and parameters, run on, start again.

(async () => {
  const { live } = run;
  const said = get("live-said");
  const code = await WebAssembly.compile(bytes(live.wasm));
  const step = stepper(code, live.layout);
  const { h } = live.layout;
  const [runButton, startButton, choice, backButton] =
    ["live-run", "live-start", "live-steps", "live-back"].map(get);
  const FAILURES = [
    "",
    "its equations were not solved",
    "it is too long for its chart, or the model ends here",
    "a number is not finite",
  ];
  const recorded = { joined: Motion.joined, last: Motion.last };
  const inputs = { place: new Float64Array(64), velocity: new Float64Array(64) };
  const PLACES = 20; // of the picture in a frame
  const TRAIL = 1200; // so that the bright end of a path is as long as it can be
  let running = false;
  let first = null; // what was seen when the motion began

  // Tracks of things: sums of terms, each a factor times a feature of the state.
  const things = Stage ? Things.tracks() : [];
  const moving = [];
  const hidden = new Set();
  const plain = [];
  things.forEach((thing, k) => {
    for (const [key, value] of Object.entries(thing)) {
      if (!value?.values || !value.width) continue;
      const terms = live.tracks[k]?.[key];
      if (!terms && thing.kind === "line" && key === "values") plain.push(thing.label);
      else if (!terms) hidden.add(k);
      LiveFrames.ids.set(value, moving.length);
      moving.push({ terms, width: value.width });
    }
  });

  const x = step.numbers.subarray(live.layout.stateAt);
  const VALUE = [
    () => 1,
    (i) => x[i],
    (i, j) => x[i] * x[j],
    (i, j) => Math.cos(x[i]) * (j < 0 ? 1 : x[j]),
    (i, j) => Math.sin(x[i]) * (j < 0 ? 1 : x[j]),
  ];
  const valued = (column) => {
    let sum = 0;
    for (const [factor, kind, i, j] of column) sum += factor * VALUE[kind](i, j);
    return sum;
  };

  function place() {
    LiveFrames.place(moving.map(({ terms, width }) =>
      terms ? Float32Array.from(terms, valued) : new Float32Array(width)));
  }

  function look() {
    step.exports.look();
    const seen = step.numbers.slice(live.layout.look.writes, live.layout.look.writes + live.looks);
    first ??= seen;
    LiveFrames.look(step.state.t[0], seen);
  }

  // Steps of one frame, with places between them for the path.
  function advance(count) {
    const parts = Math.min(count, PLACES);
    for (let k = 0; k < parts; k++) {
      const steps = Math.floor(((k + 1) * count) / parts) - Math.floor((k * count) / parts);
      const status = step.run(h, steps);
      place();
      if (status !== 0) return status;
    }
    return 0;
  }

  function draw(plots) {
    const last = LiveFrames.last();
    if (Stage) {
      Things.move(last);
      if (get("follow").checked) Stage.follow(Things.place(last), run.scene.follow);
      Stage.draw();
    }
    get("clock").textContent = `${step.state.t[0].toFixed(2)} s`;
    if (plots) plot();
  }

  function plot() {
    const times = LiveFrames.times();
    const looks = LiveFrames.looks();
    const tables = live.panels.map((panel, n) => {
      const positive = run.panels[n].log;
      if (!panel) return null; // not seen here
      return [times, ...panel.curves.map(([k, change]) => looks.map((look) => {
        const value = change ? look[k] - first[k] : look[k];
        return Number.isFinite(value) && !(positive && value < Plots.LEAST) ? value : null;
      }))];
    });
    Plots.feed(tables);
    Plots.move(times[times.length - 1]);
  }

  // From the recorded run to the live one, and back.
  function enter() {
    if (Motion.live) return;
    if (get("play").textContent === "Pause") get("play").click();
    Motion.live = { hides: (k) => hidden.has(k) };
    Object.assign(Motion, { joined: Infinity, last: TRAIL });
    backButton.hidden = false;
  }

  function leave() {
    if (!Motion.live) return;
    pause();
    Motion.live = null;
    Object.assign(Motion, recorded);
    Plots.feed(null);
    backButton.hidden = true;
    said.textContent = "The recorded run. Move a slider, or run on, to compute another one here.";
    get("time").dispatchEvent(new Event("input"));
  }

  function pause() {
    running = false;
    runButton.textContent = "Run on";
  }

  function start() {
    const { reads } = live.layout.place;
    const dim = live.dim;
    step.numbers.set(inputs.place.subarray(0, dim), reads);
    step.numbers.set(inputs.velocity.subarray(0, dim), reads + dim);
    step.exports.place();
    begin();
  }

  // A motion begins: what is seen now is what changes are counted from.
  function begin() {
    step.restart();
    first = null;
    LiveFrames.clear();
    place();
    look();
  }

  let frames = 0;
  let spent = 0;
  function tick() {
    if (!running) return;
    const before = performance.now();
    const status = advance(Number(choice.value));
    look();
    draw(frames % 6 === 0 || status !== 0);
    frames += 1;
    spent += performance.now() - before;
    if (status !== 0) {
      pause();
      said.textContent = `The next step fails at t = ${step.state.t[0].toPrecision(6)} s: ${FAILURES[status]}. Start again from elsewhere.`;
      return;
    }
    if (frames % 30 === 0) {
      said.textContent = `Live, t = ${step.state.t[0].toFixed(2)} s: ${(spent / 30).toFixed(2)} ms of each frame for ${choice.value} steps, the picture and the plots.`;
      spent = 0;
    }
    requestAnimationFrame(tick);
  }

  function go() {
    enter();
    if (!LiveFrames.times().length) start();
    running = true;
    runButton.textContent = "Pause";
    requestAnimationFrame(tick);
  }

  function slider({ at, name, value, low, high }, moved) {
    const label = document.createElement("label");
    const text = label.appendChild(document.createElement("span"));
    text.textContent = name;
    const input = label.appendChild(document.createElement("input"));
    Object.assign(input, { type: "range", min: low, max: high, step: (high - low) / 400, value });
    const output = label.appendChild(document.createElement("output"));
    const show = (number) => (output.textContent = String(Number(number.toPrecision(4))));
    show(value);
    input.addEventListener("input", () => {
      show(Number(input.value));
      moved(at, Number(input.value));
    });
    return label;
  }

  function group(title, list, moved) {
    if (!list.length) return;
    const heading = get("live-sliders").appendChild(document.createElement("h3"));
    heading.textContent = title;
    get("live-sliders").append(...list.map((one) => slider(one, moved)));
  }

  function starting(which) {
    return (at, value) => {
      inputs[which][at] = value;
      enter();
      start();
      draw(true);
      if (!running) said.textContent = "Live: a new start. Run on.";
    };
  }

  function tell() {
    const missing = [...hidden].map((k) => things[k].label.replace(/ \(.*/, "")).filter(Boolean);
    const notes = [
      ...(missing.length ? [`Not drawn live: ${missing.join(", ")}.`] : []),
      ...(plain.length ? [`Live, colours along the ${plain.join(" and the ")} mean nothing.`] : []),
    ];
    for (const text of notes) {
      const note = document.createElement("p");
      note.className = "hint";
      note.textContent = text;
      said.after(note);
    }
  }

  tell();
  live.velocity.forEach((value, k) => (inputs.velocity[k] = value));
  group("Start: moved from where the run began, in body coordinates", live.sliders.place, starting("place"));
  group("Start: velocity", live.sliders.velocity, starting("velocity"));
  group("Parameters", live.params, (at, value) => {
    step.numbers[at] = value;
    enter();
    if (LiveFrames.times().length) begin();
    else start();
    draw(true);
  });
  for (const count of [...new Set([1, 10, 100, 1000, live.steps])].sort((a, b) => a - b)) {
    choice.add(new Option(String(count), count, count === live.steps, count === live.steps));
  }
  runButton.addEventListener("click", () => (running ? pause() : go()));
  startButton.addEventListener("click", () => {
    enter();
    start();
    draw(true);
  });
  backButton.addEventListener("click", leave);
  // Whoever plays or scrubs the recorded run leaves the live one.
  for (const id of ["play", "back", "on"]) {
    get(id).addEventListener("click", ({ isTrusted }) => isTrusted && leave(), true);
  }
  get("time").addEventListener("input", ({ isTrusted }) => isTrusted && leave(), true);
  get("plots").addEventListener("click", leave, true);
  Theme.onChange(() => Motion.live && draw(true));
  runButton.disabled = startButton.disabled = false;
  performance.mark("retrax-live");
})();
