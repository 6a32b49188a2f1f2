// Time: play, pause, scrub, speed; everything on the page follows it.

(() => {
  const [button, slider, clock, speed, follow] = ["play", "time", "clock", "speed", "follow"].map(get);
  const { t } = Motion;
  const [first, last] = [t[0], t[t.length - 1]];
  const length = last - first;
  let now = first;
  let playing = false;
  let before = null;

  function show() {
    slider.value = String(now);
    clock.textContent = `${now.toFixed(length < 10 ? 3 : 2)} s`;
    slider.setAttribute("aria-valuetext", clock.textContent);
    if (Stage) {
      Things.move(Motion.frame(now));
      if (follow.checked) Stage.follow(Things.place(Motion.frame(now)), run.scene.follow);
      Stage.draw();
    }
    Plots.move(now);
  }

  function play(on) {
    playing = on && length > 0;
    button.textContent = playing ? "Pause" : "Play";
    if (playing && now >= last) now = first;
    before = null;
    if (playing) requestAnimationFrame(tick);
  }

  function tick(stamp) {
    if (!playing) return;
    now = Math.min(now + ((stamp - (before ?? stamp)) / 1000) * Number(speed.value), last);
    before = stamp;
    show();
    if (now >= last) play(false);
    else requestAnimationFrame(tick);
  }

  function go(time) {
    now = Math.min(Math.max(time, first), last);
    show();
  }

  // One frame on or back: to a state that was computed.
  function step(by) {
    play(false);
    const at = Motion.frame(now);
    const next = by > 0 ? Math.floor(at + 1e-6) + 1 : Math.ceil(at - 1e-6) - 1;
    go(t[Math.min(Math.max(next, 0), t.length - 1)]);
  }

  // A run of seconds to minutes is played as it was, any other so that it takes about half a minute.
  function offerSpeeds() {
    const asItWas = length >= 5 && length <= 300;
    const natural = asItWas ? 1 : 10 ** Math.round(Math.log10(length / 30 || 1));
    for (const factor of [0.1, 0.25, 0.5, 1, 2, 5, 10]) {
      const rate = Number((factor * natural).toPrecision(3));
      speed.add(new Option(`${rate} ×`, rate, factor === 1, factor === 1));
    }
  }

  // The legend: a swatch and words for everything that is drawn.
  function explain() {
    const items = run.scene.things.flatMap(({ kind, label, colour: k, axes, scale }) => {
      if (!label) return [];
      if (kind === "line") {
        const [name, low, high, unit] = scale;
        const ends = `${Number(low.toPrecision(3))} to ${Number(high.toPrecision(3))} ${unit === "1" ? "" : unit}`;
        return [[`linear-gradient(to right, ${colour(0)}, ${colour(1)})`, `${label}: ${name} ${ends}`]];
      }
      if (kind === "bars") return [[colour(0), label], [colour(1), "negative entries"]];
      const named = [[k === undefined ? css("--body") : colour(k), label]];
      return axes ? [...named, [colour(2), "e1"], [colour(3), "e2"], [colour(0), "e3"]] : named;
    });
    const { ground, sphere, frame } = run.scene.around;
    const side = ground ?? (run.scene.floor === null || sphere ? 0 : FLOOR * run.scene.radius);
    if (frame) items.push([css("--quiet"), `axes to ${ends(frame)}`]);
    if (side) items.push([css("--grid"), `squares of ${Number(square(side).toPrecision(1))} m`]);
    get("key").replaceChildren(...items.map(([paint, text]) => {
      const item = document.createElement("li");
      const swatch = item.appendChild(document.createElement("i"));
      swatch.style.background = paint;
      item.append(text);
      return item;
    }));
  }

  // Where axes end: x1 = 1.04 m, x2 = 0.08 m.
  function ends({ names, low, high }) {
    const drawn = names.map((name, k) => [name.split(" ("), k]).filter(([[name], k]) => name && high[k] > low[k]);
    return drawn.map(([[name, unit], k]) =>
      `${name} = ${Number(high[k].toPrecision(3))}${unit ? ` ${unit.slice(0, -1)}` : ""}`).join(", ");
  }

  function note(text) {
    const paragraph = document.createElement("p");
    paragraph.className = "note";
    paragraph.textContent = text;
    return paragraph;
  }

  function dress() {
    explain();
    if (Stage) {
      Stage.clear();
      Around.build();
      Things.build();
    }
    Plots.build();
    show();
  }

  function keys(event) {
    const typing = event.target.closest("input, select, button, pre, [role=slider]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { " ": () => play(!playing), ",": () => step(-1), ".": () => step(1) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  // Into the clipboard, or, where a browser does not let a file do that, selected for the reader to copy.
  async function copy({ target }) {
    const code = target.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      target.textContent = "Copied";
      setTimeout(() => (target.textContent = "Copy"), 1500);
    } catch {
      window.getSelection().selectAllChildren(code);
    }
  }

  Object.assign(slider, { min: first, max: last });
  slider.step = "any";
  button.addEventListener("click", () => play(!playing));
  slider.addEventListener("input", () => go(Number(slider.value)));
  get("back").addEventListener("click", () => step(-1));
  get("on").addEventListener("click", () => step(1));
  slider.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    go(now + (by * length) / 200);
  });
  follow.addEventListener("change", () => (follow.checked ? show() : Stage.reset()));
  follow.parentElement.hidden = !(Stage && run.scene.follow);
  follow.checked = Boolean(Stage && run.scene.followed);
  document.addEventListener("keydown", keys);
  for (const each of document.querySelectorAll(".copy")) each.addEventListener("click", copy);
  const missing = "This browser draws no 3-D pictures (WebGL is off); the plots and tables work.";
  get("notes").replaceChildren(...[...run.scene.notes, ...(Stage ? [] : [missing])].map(note));
  if (!Stage) get("scene").remove();
  offerSpeeds();
  Plots.onPick(go);
  Theme.onChange(dress);
  Toggles.onChange(show);
  dress();
  performance.mark("retrax-ready");
  // It plays by itself, unless the reader has asked for less motion, or may run it live.
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (!calm && !run.live) play(true);
})();
