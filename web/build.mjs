// Bundles the libraries of the run page into the Python package: `npm ci && npm run build`.
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const to = "../src/retrax/show/assets/vendor";
const about = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
const licence = (name) => readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim();
const holder = licence("three").match(/Copyright.*/)[0];
await build({
  entryPoints: ["three.mjs"],
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "iife",
  globalName: "THREE",
  banner: { js: `/*! three.js ${about("three").version}, MIT licence. ${holder} */` },
  outfile: `${to}/three.min.js`,
});
copyFileSync("node_modules/uplot/dist/uPlot.iife.min.js", `${to}/uplot.min.js`);
copyFileSync("node_modules/uplot/dist/uPlot.min.css", `${to}/uplot.min.css`);

const licences = ["three", "uplot"].map((name) => {
  const { version, license } = about(name);
  return `${name} ${version} (${license})\n\n${licence(name)}\n`;
});
writeFileSync(`${to}/LICENSES.txt`, licences.join("\n---\n\n"));
