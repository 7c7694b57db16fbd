// Out to the tool that the lab uses, and in from it.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, query } from "../api.js";
import { html, many, Name } from "../html.js";
import { bind } from "../keys.js";
import { attempt, noteStale, project, ready, say } from "../state.js";
import { Waiting } from "./queue.js";

const number = (text) => (text === "" || Number.isNaN(Number(text)) ? null : Number(text));

export function Export() {
  const [format, setFormat] = useState(project.value.formats.find((one) => one.writes)?.name), [find, setFind] = useState(""), [done, setDone] = useState(null), [busy, setBusy] = useState(false), search = useRef();
  const [options, setOptions] = useState({ resolution: "element", threshold: "", min_length: "", merge_gap: "", rate: "" });
  const set = (name) => (event) => setOptions({ ...options, [name]: event.target.value });
  const write = () => busy || attempt(async () => {
    setBusy(true);
    setDone(null);
    try {
      const body = { resolution: options.resolution, threshold: number(options.threshold), min_length: number(options.min_length), merge_gap: number(options.merge_gap), rate: number(options.rate) };
      setDone({ ...(await ask(`/api/export/${encodeURIComponent(format)}`, { method: "POST", body })), format });
    } finally { setBusy(false); }
  });
  useEffect(() => bind("Export", [{ keys: ["/"], words: "Search formats", act: () => search.current?.focus() }, { keys: ["w"], words: "Write the files", act: write }]), [format, options, busy]);
  if (!ready.value) return html`<${Waiting} />`;
  const shown = project.value.formats.filter((one) => one.writes && `${one.name} ${one.title} ${one.suffixes.join(" ")}`.toLowerCase().includes(find.toLowerCase()));
  return html`<section>
    <div class="head"><h1>Export</h1><span class="small">labels of all sequences, as intervals</span></div>
    <div class="split"><div>
      <div class="bar-of-tools"><label>Search formats<input ref=${search} type="search" value=${find} onInput=${(event) => setFind(event.target.value)} /></label><span class="grow small">${many(shown.length, "format")}</span></div>
      <ul class="formats">${shown.map((one) => html`<li key=${one.name}><button type="button" aria-pressed=${one.name === format ? "true" : "false"} data-format=${one.name} onClick=${() => { setFormat(one.name); setDone(null); }}><strong>${one.title}</strong><small>${one.name} · ${one.suffixes.join(", ")}</small></button></li>`)}</ul>
    </div><aside>
      <div class="panel"><h2>Write</h2>
        <label class="field">Resolution<select value=${options.resolution} onChange=${set("resolution")}>${project.value.lanes.map((one) => html`<option value=${one.name}>${one.name}</option>`)}</select></label>
        <label class="field">Probability from which a label is written (empty: the likeliest path)<input type="number" min="0" max="1" step="0.05" value=${options.threshold} onInput=${set("threshold")} /></label>
        <label class="field">Shortest interval, in elements<input type="number" min="1" value=${options.min_length} onInput=${set("min_length")} /></label>
        <label class="field">Join intervals that are this near, in elements<input type="number" min="0" value=${options.merge_gap} onInput=${set("merge_gap")} /></label>
        ${project.value.rate === null && html`<label class="field">Elements per second, for formats that count in seconds<input id="rate" type="number" min="0" step="any" value=${options.rate} onInput=${set("rate")} /></label>`}
        <p><button type="button" class="main" id="write" disabled=${busy || !format} onClick=${write} title="Write (w)">${busy ? "Writing …" : "Write"}</button></p>
        ${done && html`<div class="verdict fine" role="status" id="written">${many(done.intervals, "interval")} in ${many(done.files.length, "file")}: <code>${done.folder}</code><p><a href=${done.download} download>Download</a></p>
          <details><summary>Files</summary><ul>${done.files.slice(0, 50).map((one) => html`<li><${Name} of=${one} /></li>`)}</ul></details></div>`}
        <p class="small">Where you have corrected labels, yours are written.</p>
      </div>
      <${Import} />
    </aside></div>
  </section>`;
}

function Import() {
  const file = useRef(), [format, setFormat] = useState("");
  const read = () => attempt(async () => {
    const chosen = file.current.files[0];
    if (!chosen) return;
    const answer = await ask(`/api/import?${query({ name: chosen.name, format })}`, { method: "POST", bytes: chosen });
    file.current.value = "";
    noteStale();
    say(`${many(answer.n, "interval")} of ${many(answer.sequences.length, "sequence")} are corrections now; undo on the page Sequence takes them back.`, "fine", 8);
  });
  return html`<div class="panel"><h2>Import</h2><p class="small">Intervals from a file of another tool become corrections: the next fit learns from them.</p>
    <label class="field">Format<select value=${format} onChange=${(event) => setFormat(event.target.value)}><option value="">by the name of the file</option>${project.value.formats.filter((one) => one.reads).map((one) => html`<option value=${one.name}>${one.title}</option>`)}</select></label>
    <label class="field">File<input ref=${file} type="file" onChange=${read} /></label></div>`;
}
