// The model: what is believed before any vote, what depends on what, what to know about the fit, and what changed.
import { useEffect, useState } from "preact/hooks";
import { count, html, many, Name, percent, signed } from "../html.js";
import { bind } from "../keys.js";
import { changed, colourOf, fit, project, ready, running, startFit, useAsked } from "../state.js";
import { Waiting } from "./queue.js";

export function Model() {
  const [model, setModel] = useState(null);
  useAsked(async (ask) => { if (ready.value) setModel(await ask("/api/model")); }, [fit.value, ready.value, changed.value]);
  useEffect(() => bind("Model", [{ keys: ["f"], words: "Fit again", act: startFit }]), []);
  if (!ready.value) return html`<${Waiting} />`;
  if (!model) return html`<p class="empty">One moment …</p>`;
  return html`<section>
    <div class="head"><h1>Model</h1><span class="small">fit ${model.fit}, ${model.estimator}</span>
      <span class="end"><a href=${model.report} target="_blank" rel="noopener">The whole report</a> <button type="button" class="main" disabled=${running.value} onClick=${startFit}>${running.value ? "Fitting …" : "Fit again"}</button></span></div>
    ${project.value.stale && html`<p class="verdict note">Sources, settings or corrections have changed since this fit.</p>`}
    <div class="two"><div><${Findings} model=${model} /><${Prior} model=${model} /><${Dependencies} model=${model} /></div>
      <div><${Changes} model=${model} /><${Sources} model=${model} /><${Comparison} comparison=${model.comparison} /></div></div>
  </section>`;
}

function Findings({ model }) {
  const words = model.findings.length ? model.findings : ["Nothing stands out."], said = new Set(model.findings), notes = model.notes.filter((one) => !said.has(one.text));
  return html`<div class="panel"><h2>What to know</h2><ul class="findings">${words.map((one) => html`<li class=${model.findings.length ? "warning" : "fine"}>${one}</li>`)}
    ${notes.map((one) => html`<li class="note">${one.where && html`<strong><${Name} of=${one.where} />:</strong> `}${one.text}</li>`)}</ul></div>`;
}

function Changes({ model }) {
  const { now, before } = model.shares, names = project.value.classes;
  return html`<div class="panel"><h2>Before and after</h2>
    ${model.changes.length > 0 && html`<ul class="findings">${model.changes.map((one) => html`<li class="note">${one}</li>`)}</ul>`}
    <table class="figures"><caption>Share of the labels</caption><thead><tr><th scope="col">Class</th><th scope="col" class="n">before</th><th scope="col" class="n">now</th></tr></thead>
    <tbody>${names.map((one, k) => html`<tr><th scope="row"><i class="swatch" style=${{ background: colourOf(k) }}></i> <${Name} of=${one.name} /></th><td class="n">${before ? percent(before[k]) : "–"}</td><td class="n">${percent(now?.[k])}</td></tr>`)}</tbody></table>
    <p class="small">${!before ? "This is the first fit." : `${many(model.flipped, "label")} of ${count(project.value.n_elements)} changed with this fit.`}</p></div>`;
}

function Prior({ model }) {
  const prior = model.prior, names = project.value.classes;
  return html`<div class="panel"><h2>Prior</h2><p>${prior.words}</p>
    ${prior.transition && html`<div class="scroll"><table class="figures"><caption>From one element to the next</caption><thead><tr><th scope="col"></th>${names.map((one) => html`<th scope="col" class="n">to <${Name} of=${one.name} /></th>`)}<th scope="col" class="n">lasts</th></tr></thead>
      <tbody>${prior.transition.map((row, k) => html`<tr><th scope="row">from <${Name} of=${names[k]?.name ?? k} /></th>${row.map((one) => html`<td class="n">${one.toFixed(3)}</td>`)}<td class="n">${prior.bouts?.[k] ? `${prior.bouts[k].toFixed(1)}` : "–"}</td></tr>`)}</tbody></table></div>`}
    <p class="small">${prior.learned ? "Learned from the votes." : "Given by project.toml."}</p></div>`;
}

function Sources({ model }) {
  return html`<div class="panel"><h2>Sources</h2><table class="figures"><thead><tr><th scope="col">Source</th><th scope="col" class="n">before</th><th scope="col" class="n">accuracy</th><th scope="col" class="n"></th></tr></thead>
    <tbody>${model.sources.map((one) => { const by = one.before === null || one.accuracy === null ? null : one.accuracy - one.before; return html`<tr><th scope="row"><a href=${`/source/${encodeURIComponent(one.name)}`}><${Name} of=${one.name} /></a></th><td class="n">${percent(one.before)}</td><td class="n">${percent(one.accuracy)}</td>
      <td class=${`n ${by > 0.0005 ? "up" : by < -0.0005 ? "down" : ""}`}>${by === null || Math.abs(by) < 0.0005 ? "" : signed(100 * by, 1)}</td></tr>`; })}</tbody></table></div>`;
}

function Dependencies({ model }) {
  return html`<div class="panel"><h2>Dependencies</h2>${model.dependencies.length ? html`<ul>${model.dependencies.map((one) => html`<li>${one.words}</li>`)}</ul>` : html`<p>None: every source is taken to err on its own.</p>`}</div>`;
}

function Comparison({ comparison }) {
  if (!comparison) return html`<div class="panel"><h2>On known labels</h2><p>There are none. Correct a few labels, or name a file as <code>gold</code> in project.toml.</p></div>`;
  const keys = Object.keys(comparison.rows[0] || {}).filter((one) => one !== "method");
  return html`<div class="panel"><h2>On known labels</h2><p>${comparison.verdict}</p><table class="figures"><thead><tr><th scope="col">Method</th>${keys.map((one) => html`<th scope="col" class="n">${{ f1: "F1", brier: "Brier", log_loss: "log loss" }[one] || one}</th>`)}</tr></thead>
    <tbody>${comparison.rows.map((row) => html`<tr><th scope="row">${row.method}</th>${keys.map((one) => html`<td class="n">${row[one] === null ? "–" : row[one].toFixed(3)}</td>`)}</tr>`)}</tbody></table></div>`;
}
