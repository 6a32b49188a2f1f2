"use strict";
// The run as the page carries it: packed numbers made plain, and the colours of the theme.

const run = JSON.parse(document.getElementById("run").textContent);
const get = (id) => document.getElementById(id);

function bytes(text) {
  const characters = atob(text);
  const out = new Uint8Array(characters.length);
  for (let k = 0; k < out.length; k++) out[k] = characters.charCodeAt(k);
  return out.buffer;
}

const singles = (text) => new Float32Array(bytes(text));

// Columns in 65,536 levels each, as numbers, frame after frame.
function unpack({ width, low, step, data }) {
  const levels = new Uint16Array(bytes(data));
  const values = new Float32Array(levels.length);
  for (let k = 0, c = 0; k < levels.length; k++, c = c + 1 < width ? c + 1 : 0) {
    values[k] = low[c] + step[c] * levels[k];
  }
  return { width, values };
}

// Light or dark: as the system says, until the reader says otherwise.
const Theme = (() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const probe = document.body.appendChild(document.createElement("span"));
  probe.hidden = true;
  const listeners = [];
  let chosen = null;

  const dark = () => (chosen ?? (system.matches ? "dark" : "light")) === "dark";

  function dress() {
    root.style.colorScheme = chosen ?? "";
    const other = dark() ? "light" : "dark";
    get("theme").setAttribute("aria-label", `Switch to ${other} colours`);
    get("theme").textContent = dark() ? "Light" : "Dark";
    for (const listener of listeners) listener();
  }

  get("theme").addEventListener("click", () => {
    chosen = dark() ? "light" : "dark";
    dress();
  });
  system.addEventListener("change", dress);
  dress();
  return {
    colours: () => run.colours[dark() ? "dark" : "light"],
    // The colour that a variable of the style sheet stands for now.
    css(name) {
      probe.style.color = `var(${name})`;
      return getComputedStyle(probe).color;
    },
    onChange: (listener) => listeners.push(listener),
  };
})();
const { colours, css } = Theme;
// A colour of the palette by its number; any other is written out.
const colour = (k) => (typeof k === "number" ? colours()[k % colours().length] : k);
