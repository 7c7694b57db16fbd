// Before there is a project: samples to look at.
import { useState } from "preact/hooks";
import { ask } from "../api.js";
import { html } from "../html.js";
import { attempt, project } from "../state.js";

export function Begin() {
  const [busy, setBusy] = useState(null);
  const take = (sample) => attempt(async () => {
    setBusy(sample);
    try {
      project.value = await ask("/api/project", { method: "POST", body: { sample } });
    } finally { setBusy(null); }
  });
  return html`<section>
    <h1>Begin with a sample</h1>
    <p class="intro">There is no project in <code>${project.value.folder}</code>. A sample is a small project of simulated data, written into a folder of its own there; <code>dugong init</code> writes one for your own recordings.</p>
    <ul class="formats">${project.value.samples.map((one) => html`<li key=${one.kind}><button type="button" disabled=${!one.ready || busy !== null} onClick=${() => take(one.kind)} data-sample=${one.kind}>
      <strong>${one.kind}</strong>${busy === one.kind ? " …" : ""}<small>${one.words}</small>${one.missing && html`<small>${one.missing}</small>`}</button></li>`)}</ul>
  </section>`;
}
