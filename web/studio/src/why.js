// Why a task has its label: the report's explanation, asked of the server.
import { useEffect, useState } from "preact/hooks";
import { ask, query } from "./api.js";
import { html, Name, signed } from "./html.js";
import { project } from "./state.js";

function Bar({ value, most }) {
  return html`<div class="bar" aria-hidden="true"><span class=${value < 0 ? "against" : "for"} style=${{ width: `${Math.min(50, (50 * Math.abs(value)) / most)}%` }}></span></div>`;
}

function Line({ kind, name, vote, value, most }) {
  return html`<tr class=${kind} data-kind=${kind} data-value=${value.toFixed(6)}><th scope="row">${name}</th><td>${vote && html`<${Name} of=${vote} />`}</td><td><${Bar} value=${value} most=${most} /></td><td class="n">${signed(value)}</td></tr>`;
}

export function Why({ id, spot, when, fit }) {
  const [found, setFound] = useState(null), [label, setLabel] = useState(null), lane = project.value.lanes[spot?.lane || 0];
  useEffect(() => {
    if (!spot) return undefined;
    const abort = new AbortController();
    const wait = setTimeout(() => {
      ask(`/api/explain/${encodeURIComponent(id)}/${spot.task}?${query({ resolution: lane.name, label })}`, { abort: abort.signal })
        .then(setFound, (error) => { if (error.name !== "AbortError") setFound({ fault: error.message }); });
    }, 60);
    return () => { clearTimeout(wait); abort.abort(); };
  }, [id, spot?.lane, spot?.task, label, fit]);
  if (!spot) return html`<div class="panel explanation"><h2>Why</h2><p class="small">Click a piece of the timeline, or use the arrow keys.</p></div>`;
  if (!found) return html`<div class="panel explanation"><h2>Why</h2></div>`;
  if (found.fault) return html`<div class="panel explanation"><h2>Why</h2><p class="small">${found.fault}</p></div>`;
  const parts = [found.prior, found.neighbours, found.averaging, found.log_odds, ...found.own_votes.map((one) => one.log_odds)].map((one) => Math.abs(one || 0));
  const most = Math.max(1e-9, ...parts), line = (kind, name, value, vote) => html`<${Line} kind=${kind} name=${name} vote=${vote} value=${value || 0} most=${most} />`;
  return html`<div class="panel explanation" aria-live="polite">
    <h2>Why ${when(found.start, found.stop)}</h2>
    <p>P(<${Name} of=${found.label} />) = <strong>${found.probability.toFixed(3)}</strong>, log-odds ${signed(found.log_odds)}
      ${lane.labels.length > 2 && html` <select aria-label="Explain the label" value=${label || found.label} onChange=${(event) => setLabel(event.target.value)}>${lane.labels.map((one) => html`<option value=${one} selected=${one === found.label}>${one}</option>`)}</select>`}</p>
    <table><colgroup><col class="col-name" /><col class="col-vote" /><col class="col-bar" /><col class="col-value" /></colgroup>
      <thead><tr><th scope="col">What</th><th scope="col">Vote</th><th scope="col"></th><th scope="col" class="n">Log-odds</th></tr></thead>
      <tbody>${line("prior", "before any vote", found.prior)}
        ${found.own_votes.map((one) => line("own", html`<a href=${`/source/${encodeURIComponent(one.source)}`}><${Name} of=${one.source} /></a>`, one.log_odds, one.vote))}
        ${line("neighbours", "votes on other tasks", found.neighbours)}
        ${found.averaging ? line("averaging", "averaging with a more cautious answer", found.averaging) : null}
        ${line("sum", "together", found.log_odds)}</tbody></table>
    ${found.note && html`<p class="small">${found.note}</p>`}
    ${found.influences.length > 0 && html`<p class="small">Of other tasks: ${found.influences.slice(0, 6).map((one, k) => html`${k ? "; " : ""}<${Name} of=${one.source} /> votes <${Name} of=${one.vote} /> on ${when(one.start, one.stop)} (${signed(one.log_odds)})`)}.</p>`}
  </div>`;
}
