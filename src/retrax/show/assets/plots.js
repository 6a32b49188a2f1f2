// The plots beside the body: one panel a quantity, one line for the time.

const Plots = (() => {
  const div = document.getElementById("plots");
  const cursor = document.getElementById("cursor");
  const panels = run.panels;
  const margin = { l: 64, r: 14, t: 28, b: 40 };
  const gap = 0.3 / panels.length;
  const height = (1 - gap * (panels.length - 1)) / panels.length;
  const times = panels[0].curves[0].t;
  const whole = [times[0], Math.max(times[times.length - 1], times[0] + 1e-9)];
  const coarse = window.matchMedia("(pointer: coarse)").matches; // fingers scroll, a mouse zooms
  const config = { displayModeBar: false, responsive: true };
  let now = times[0];

  const axisName = (n) => (n === 0 ? "" : String(n + 1));
  const bottom = (n) => 1 - (n + 1) * height - n * gap;
  const colour = (k) => colours()[k % colours().length];
  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

  function traces() {
    return panels.flatMap((panel, n) =>
      panel.curves.map((curve, k) => ({
        type: "scatter",
        mode: "lines",
        name: curve.name,
        x: curve.t,
        y: panel.log ? curve.y.map((y) => (y > 0 ? y : null)) : curve.y,
        xaxis: "x",
        yaxis: "y" + axisName(n),
        line: { color: colour(k), width: 1.3 },
        hovertemplate: "%{y:.4~g} at %{x:.6~g} s<extra>%{fullData.name}</extra>",
      })),
    );
  }

  function heading(panel, n) {
    const names = panel.curves.map((curve, k) => {
      const short = curve.name.replace("spatial momentum ", "").replace("body momentum", "body");
      return `<span style="color:${colour(k)}">${escaped(short)}</span>`;
    });
    const several = names.length > 1 ? ": " + names.join(", ") : "";
    return {
      text: `<b>${escaped(panel.title)}</b> (${escaped(panel.unit)})${several}`,
      font: { size: 12, color: css("--ink") },
      xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom",
      x: 0, y: bottom(n) + height + 0.012, showarrow: false,
    };
  }

  function layout() {
    const quiet = {
      color: css("--quiet"), gridcolor: css("--line"), linecolor: css("--line"), zeroline: false,
      tickfont: { size: 11 },
    };
    const out = {
      margin, hovermode: "x", dragmode: coarse ? false : "zoom", showlegend: false,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { size: 11 },
      xaxis: {
        ...quiet, range: whole, title: { text: "time (s)" },
        anchor: "y" + axisName(panels.length - 1),
      },
      annotations: panels.map(heading),
    };
    panels.forEach((panel, n) => {
      // Plotly writes powers of ten larger than other labels.
      const log = panel.log ? { type: "log", nticks: 4, tickfont: { size: 9 } } : { nticks: 5 };
      const domain = [bottom(n), bottom(n) + height];
      out["yaxis" + axisName(n)] = {
        ...quiet, ...log, domain, exponentformat: "power", showexponent: "all",
      };
    });
    return out;
  }

  function move(time) {
    now = time;
    const [first, last] = div.layout.xaxis.range;
    const part = (now - first) / (last - first);
    cursor.hidden = part < 0 || part > 1;
    const inside = div.clientWidth - margin.l - margin.r;
    cursor.style.transform = `translateX(${margin.l + part * inside}px)`;
  }

  return {
    move,
    draw: () => Plotly.react(div, traces(), layout(), config),
    // Calls back with the time of a click, and keeps the cursor in place when the axes change.
    listen(callback) {
      div.on("plotly_click", (event) => callback(event.points[0].x));
      div.on("plotly_afterplot", () => move(now));
    },
  };
})();
