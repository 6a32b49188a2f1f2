// Time: play, pause, scrub, speed; everything on the page follows it.

const Player = (() => {
  const get = (id) => document.getElementById(id);
  const [button, slider, clock, speed] = ["play", "time", "clock", "speed"].map(get);
  const t = Motion ? Motion.t : [0];
  const [first, last] = [t[0], t[t.length - 1]];
  const length = last - first;
  let now = first;
  let playing = false;
  let before = null;

  function show() {
    slider.value = String(now);
    clock.textContent = `${now.toFixed(length < 10 ? 3 : 2)} s`;
    Scene.move(Motion.frame(now));
    Plots.move(now);
  }

  function play(on) {
    playing = on && length > 0;
    button.textContent = playing ? "Pause" : "Play";
    button.setAttribute("aria-pressed", String(playing));
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

  // A run of seconds to minutes is played as it was, any other so that it takes about a minute.
  function offerSpeeds() {
    const asItWas = length >= 5 && length <= 600;
    const natural = asItWas ? 1 : 10 ** Math.round(Math.log10(length / 60 || 1));
    for (const factor of [0.1, 0.25, 0.5, 1, 2, 5, 10]) {
      const rate = Number((factor * natural).toPrecision(3));
      speed.add(new Option(`${rate} ×`, rate, factor === 1, factor === 1));
    }
  }

  function explain() {
    const [tip, momentum, e1, e2] = colours();
    const mark = (colour, text) => `<b style="color:${colour}">${text}</b>`;
    const axes = `axes of the body ${mark(e1, "e1")} ${mark(e2, "e2")} ${mark(tip, "e3")}, `;
    const box = run.scene.bodies.some((body) => body.corners) ? axes : "";
    const meaning = run.scene.rods.length ? "force on the first rod" : "angular momentum";
    const arrow = run.scene.momenta ? `${mark(momentum, meaning)}, ` : "";
    const path = box && !run.scene.travels ? "path of the tip" : "path";
    get("key").innerHTML = `${box}${arrow}${mark(tip, path)}. Drag to turn the view.`;
  }

  function note(text) {
    const paragraph = document.createElement("p");
    paragraph.className = "note";
    paragraph.textContent = text;
    return paragraph;
  }

  function dress() {
    if (Motion) {
      explain();
      Scene.draw();
    }
    return Plots.draw();
  }

  if (Motion) {
    Object.assign(slider, { min: first, max: last });
    button.addEventListener("click", () => play(!playing));
    slider.addEventListener("input", () => go(Number(slider.value)));
    get("notes").replaceChildren(...run.scene.notes.map(note));
    offerSpeeds();
  } else {
    get("motion").remove();
    get("cursor").remove();
    get("hint").replaceWith(note("There is no picture for configurations of this group."));
  }
  dark.addEventListener("change", dress);
  return dress().then(() => {
    if (!Motion) return;
    Plots.listen(go);
    show();
  });
})();
