// Bundles the page into the Python package: one script, one style, one page, and the licences of what is bundled.
// The timeline, its drawing code and its colours are the report's own files: plain scripts, joined here into a module.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const report = resolve(here, "../../src/dugong/report/html/assets");
const target = resolve(process.argv[2] || join(here, "../../src/dugong/studio/assets"));
const SCRIPTS = ["data.js", "explain.js", "draw.js", "media.js", "timeline.js"];
const NAMES = ["Timeline", "clock", "drawCurve", "drawRibbon", "drawSignal", "drawStack", "firstStop", "theme"];

const fromReport = {
  name: "report",
  setup(plugin) {
    plugin.onResolve({ filter: /^report$/ }, () => ({ path: "report", namespace: "report" }));
    plugin.onLoad({ filter: /.*/, namespace: "report" }, async () => {
      const parts = await Promise.all(SCRIPTS.map((file) => readFile(join(report, file), "utf8")));
      return { contents: `${parts.join("\n")}\nexport { ${NAMES.join(", ")} };\n`, loader: "js" };
    });
  },
};

// The words of every licence, once for each package that is in the bundle.
async function licences(inputs) {
  const names = new Set(Object.keys(inputs).map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter(Boolean));
  const parts = [];
  for (const name of [...names].sort()) {
    const folder = join(here, "node_modules", name), files = await readdir(folder);
    const file = files.find((one) => /^licen[cs]e/i.test(one));
    const about = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    parts.push(`${name} ${about.version} (${about.license})\n\n${file ? (await readFile(join(folder, file), "utf8")).trim() : ""}\n`);
  }
  return parts.join(`\n${"-".repeat(80)}\n\n`);
}

// A digest of all that the bundle is made from: whether it is up to date can be told without building it.
async function digest() {
  const own = (await readdir(join(here, "src"), { recursive: true, withFileTypes: true })).filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
  const files = [...own, ...["build.js", "package.json", "package-lock.json"].map((file) => join(here, file)), ...[...SCRIPTS, "page.css"].map((file) => join(report, file))];
  const sums = await Promise.all(files.map(async (file) => `${basename(file)} ${createHash("sha256").update(await readFile(file)).digest("hex")}\n`));
  return createHash("sha256").update(sums.sort().join("")).digest("hex");
}

await mkdir(target, { recursive: true });
const result = await build({
  absWorkingDir: here, entryPoints: { studio: "src/main.js" }, outdir: target, bundle: true, minify: true, format: "esm", target: "es2022",
  charset: "utf8", legalComments: "none", metafile: true, logLevel: "warning", plugins: [fromReport],
});
for (const file of ["index.html", "icon.svg"]) await copyFile(join(here, "src", file), join(target, file));
await writeFile(join(target, "licences.txt"), await licences(result.metafile.inputs));
await writeFile(join(target, "built-from.txt"), `${await digest()}\n`);
