// The plots beside the picture: one panel a quantity, one line for the time.

const Plots = (() => {
  const box = get("plots");
  const HEIGHT = 150;
  const LEAST = 1e-17; // on a logarithmic axis less is nothing; uPlot has no ticks there, and looks for ever
  const quiet = window.matchMedia("(pointer: coarse)").matches; // fingers scroll, a mouse zooms
  let panels = [];
  let now = 0;
  let callback = () => {};

  // Short, and exact enough for an axis: 1.2e-7, 0.035, 120.
  function short(value, digits = 3) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e5)) {
      return value.toExponential(digits - 1).replace(/\.?0+e/, "e");
    }
    return String(Number(value.toPrecision(digits)));
  }

  // Curves have their own times, for each keeps its own extremes.
  const tables = run.panels.map(({ curves, log }) =>
    uPlot.join(curves.map(({ t, y }) => {
      const values = Array.from(singles(y), (v) => (Number.isFinite(v) && !(log && v < LEAST) ? v : null));
      return [Array.from(singles(t)), values];
    })));

  // What a curve says at a time: its value on the straight line between two points, or, of a curve
  // with more states than points, the least and the largest value about there.
  function valueAt([times, ...columns], n, time, whole) {
    const values = columns[n];
    let [low, high] = [0, times.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= time) low = middle;
      else high = middle;
    }
    const next = (k, by) => {
      while (values[k] == null && k + by >= 0 && k + by < times.length) k += by;
      return k;
    };
    [low, high] = [next(low, -1), next(high, 1)];
    if (values[low] == null || values[high] == null) return short(values[low] ?? values[high], 4);
    if (!whole) {
      const near = [low, high, next(Math.max(low - 1, 0), -1), next(Math.min(high + 1, times.length - 1), 1)];
      const seen = near.map((k) => values[k]).filter((v) => v != null);
      return `${short(Math.min(...seen))} to ${short(Math.max(...seen))}`;
    }
    const part = high > low ? (time - times[low]) / (times[high] - times[low]) : 0;
    return short(values[low] + Math.min(Math.max(part, 0), 1) * (values[high] - values[low]), 4);
  }

  function options(panel, width) {
    const stroke = css("--quiet");
    const grid = { stroke: css("--line"), width: 1 };
    const axis = { stroke, grid, ticks: { ...grid, size: 4 }, font: "11px system-ui, sans-serif" };
    const named = { label: "time (s)", labelSize: 18, labelGap: 0, labelFont: axis.font };
    const only = (_, splits) => splits.map((v) => (Number.isInteger(Math.log10(v)) ? v : null));
    const decades = panel.log
      ? { filter: only, grid: { ...grid, filter: only }, ticks: { show: false } }
      : {};
    const range = (_, low, high) => {
      if (low === null || high === null) return [-1, 1];
      if (low === high) return [low - (Math.abs(low) * 1e-3 || 1e-16), high + (Math.abs(high) * 1e-3 || 1e-16)];
      const margin = 0.06 * (high - low);
      return [low - margin, high + margin];
    };
    return {
      width,
      height: HEIGHT,
      padding: [6, 24, 0, 0],
      legend: { show: false },
      scales: { x: { time: false }, y: panel.log ? { distr: 3 } : { range } },
      axes: [
        { ...axis, ...named, size: 26, space: 60, values: (_, splits) => splits.map((v) => short(v, 5)) },
        { ...axis, ...decades, size: 62, space: 26, values: (_, splits) => splits.map((v) => short(v)) },
      ],
      cursor: { sync: { key: "time", scales: ["x", null] }, drag: { x: !quiet, y: false }, y: false },
      series: [
        {},
        ...panel.curves.map(({ name }, k) => ({
          label: name, stroke: colour(k), width: 1.4, spanGaps: true, points: { show: false },
        })),
      ],
    };
  }

  // A click that is not the end of a drag goes to its time.
  function listen(plot) {
    let from = null;
    plot.over.addEventListener("mousedown", (event) => (from = event.clientX));
    plot.over.addEventListener("click", (event) => {
      if (from !== null && Math.abs(event.clientX - from) > 4) return;
      const { left } = plot.over.getBoundingClientRect();
      callback(plot.posToVal(event.clientX - left, "x"));
    });
  }

  function heading(panel) {
    const title = document.createElement("h3");
    title.textContent = panel.unit ? `${panel.title} (${panel.unit})` : panel.title;
    const values = document.createElement("p");
    values.className = "values";
    const cells = panel.curves.map(({ name }, k) => {
      const cell = values.appendChild(document.createElement("span"));
      const swatch = cell.appendChild(document.createElement("i"));
      swatch.style.background = colour(k);
      const plain = name.replace("spatial momentum ", "").replace("body momentum ", "body ");
      cell.append(`${plain} `, document.createElement("b"));
      return cell.lastChild;
    });
    return { title, values, cells };
  }

  function make(panel, n) {
    const section = box.appendChild(document.createElement("div"));
    section.className = "plot";
    const { title, values, cells } = heading(panel);
    const area = document.createElement("div");
    Object.assign(area, { className: "area", tabIndex: 0 });
    area.setAttribute("role", "slider");
    area.setAttribute("aria-label", `${title.textContent} against time; arrow keys move the time`);
    const [times] = tables[n];
    area.setAttribute("aria-valuemin", short(times[0], 6));
    area.setAttribute("aria-valuemax", short(times[times.length - 1], 6));
    area.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
      if (!by) return;
      event.preventDefault();
      const { min, max } = plot.scales.x;
      callback(now + (by * (max - min)) / 200);
    });
    section.append(title, values, area);
    const plot = new uPlot(options(panel, area.clientWidth || 400), tables[n], area);
    listen(plot);
    const mark = plot.over.appendChild(document.createElement("div"));
    mark.className = "mark";
    plot.hooks.setScale = [() => place({ plot, mark })];
    return { plot, mark, cells, area, section, table: tables[n], curves: panel.curves };
  }

  function place({ plot, mark }) {
    const { min, max } = plot.scales.x;
    mark.hidden = !(now >= min && now <= max);
    mark.style.transform = `translateX(${plot.valToPos(now, "x")}px)`;
  }

  function move(time) {
    now = time;
    for (const panel of panels) {
      place(panel);
      const values = panel.cells.map((_, n) => valueAt(panel.table, n, now, panel.curves[n].whole));
      panel.cells.forEach((cell, n) => (cell.textContent = values[n]));
      panel.area.setAttribute("aria-valuenow", String(now));
      panel.area.setAttribute("aria-valuetext", `${short(now, 6)} s: ${values.join(", ")}`);
    }
  }

  function build() {
    for (const { plot } of panels) plot.destroy();
    box.replaceChildren();
    panels = run.panels.map(make);
    move(now);
  }

  new ResizeObserver(() => {
    for (const { plot, area } of panels) {
      if (area.clientWidth !== plot.width) plot.setSize({ width: area.clientWidth, height: HEIGHT });
    }
  }).observe(box);

  // Other tables than those of the run, one a panel, or none to show those of the run again. A panel
  // without a table is hidden.
  function feed(others) {
    panels.forEach((panel, n) => {
      panel.table = others?.[n] ?? tables[n];
      panel.section.hidden = Boolean(others && !others[n]);
      panel.plot.setData(panel.table);
    });
  }

  return { LEAST, build, move, feed, onPick: (listener) => (callback = listener) };
})();
