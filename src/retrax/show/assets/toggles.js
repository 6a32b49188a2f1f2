// What the reader may hide: forces, names.

const Toggles = (() => {
  const { toggles = {} } = run.scene;
  const on = Object.fromEntries(Object.entries(toggles));
  const objects = [];
  const listeners = [];
  const shows = (kind) => kind === undefined || on[kind];
  for (const kind of Object.keys(toggles)) {
    const label = document.createElement("label");
    const box = label.appendChild(document.createElement("input"));
    Object.assign(box, { type: "checkbox", checked: on[kind] });
    label.append(` ${kind}`);
    box.addEventListener("change", () => {
      on[kind] = box.checked;
      for (const [of, object] of objects) object.visible = shows(of);
      for (const listener of listeners) listener();
    });
    get("follow").parentElement.before(label);
  }
  return {
    shows,
    add(kind, object) {
      object.visible = shows(kind);
      objects.push([kind, object]);
    },
    clear: () => objects.splice(0),
    onChange: (listener) => listeners.push(listener),
  };
})();
