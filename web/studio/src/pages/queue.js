// The queue: which sequence to look at next, and why.
import { useEffect, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { query } from "../api.js";
import { count, html, many, Name, percent } from "../html.js";
import { bind, expect } from "../keys.js";
import { go, pathOf, route } from "../route.js";
import { changed, colourOf, fit, project, ready, running, useAsked } from "../state.js";
import { clock } from "report";

const SIZE = 25;
const COLUMNS = [
  ["entropy", "uncertainty", "Uncertainty", "Share of a bit per element that is left open"],
  ["disagreement", "disagreement", "Resolutions disagree", "Votes on windows, spans and sequences that the rest contradicts"],
  ["conflict", "conflict", "Sources disagree", "Elements on which sources contradict each other"],
  ["change", "change", "Changed", "Labels unlike those of the fit before"],
  ["review", "review", "Worth a look", "What teaches most, in bits, and not the same thing twice"],
  ["wrong", "wrong", "Wrong", "Known labels that the model misses"],
];

// The order that was looked at last: "next" and "previous" of a sequence follow it.
export const order = signal([]);

function Meter({ value, most }) {
  return html`<span class="meter" aria-hidden="true"><span style=${{ width: `${Math.min(100, (100 * value) / most)}%` }}></span></span>`;
}

// On a narrow screen only the order that was asked for stays.
const kind = (name, sort) => (name === sort || name === "entropy" ? "n" : "n optional");

function Shares({ shares }) {
  let left = 0;
  return html`<svg class="strip" viewBox="0 0 100 12" preserveAspectRatio="none" role="img" aria-label=${project.value.classes.map((one, k) => `${one.name} ${percent(shares[k], 0)}`).join(", ")}>
    ${shares.map((share, k) => { const x = left; left += 100 * share; return html`<rect x=${x} y="1" width=${100 * share} height="10" fill=${colourOf(k)} />`; })}</svg>`;
}

function Row({ one, chosen, sort, most, columns, onChoose }) {
  return html`<tr aria-selected=${chosen ? "true" : "false"} onClick=${() => go(pathOf("sequence", one.id))} onMouseMove=${(event) => (event.movementX || event.movementY) && !chosen && onChoose()} data-id=${one.id}>
    <th scope="row"><a href=${pathOf("sequence", one.id)}><${Name} of=${one.id} /></a></th>
    <td class="n">${one.seconds ? clock(one.seconds, 1) : count(one.length)}</td>
    ${columns.map(([name, key]) => html`<td class=${kind(name, sort)}>${one[key] === null ? "–" : key === "review" ? one[key].toFixed(1) : percent(one[key])}${name === sort && html`<${Meter} value=${one[key] || 0} most=${most} />`}</td>`)}
    <td class="optional"><${Shares} shares=${one.shares || []} /></td>
    <td>${one.corrected > 0 && html`<span class="badge fine">${many(one.corrected, "correction")}</span>`}${one.faults > 0 && html` <span class="badge warning">${many(one.faults, "fault")}</span>`}</td>
  </tr>`;
}

export function Queue() {
  const asked = Object.fromEntries(route.value.query), sort = asked.sort || "entropy", page = Number(asked.page || 0);
  const [found, setFound] = useState(null), [chosen, show] = useState(0), search = useRef(), latest = useRef(null), choice = useRef(0);
  // A key may come before the page has drawn what the key before it did, so that the choice is kept beside the picture.
  const choose = (next) => { choice.current = next; show(next); };
  const turn = (values) => go(pathOf("queue", null, { ...asked, page: null, ...values }));
  const words = JSON.stringify(asked);
  useAsked(async (ask) => {
    if (!ready.value) return;
    const answer = await ask(`/api/sequences?${query({ size: SIZE, ...asked, sort, page })}`), ids = answer.sequences.map((one) => one.id);
    // The same list with news keeps the choice; another one begins at its top.
    choose(Math.max(0, latest.current?.words === words ? ids.indexOf(order.value[choice.current]) : 0));
    latest.current = { words };
    order.value = ids;
    setFound(answer);
  }, [words, fit.value, changed.value, ready.value]);
  const rows = found?.sequences || [], last = found ? Math.max(0, Math.ceil(found.total / SIZE) - 1) : 0;
  useEffect(() => (!found ? expect() : bind("Queue", [
    { keys: ["j", "ArrowDown"], words: "Next sequence", act: () => choose(Math.min(rows.length - 1, choice.current + 1)) },
    { keys: ["k", "ArrowUp"], words: "Previous sequence", act: () => choose(Math.max(0, choice.current - 1)) },
    { keys: ["Enter", "o"], words: "Open it", act: () => rows[choice.current] && go(pathOf("sequence", rows[choice.current].id)) },
    { keys: ["/"], words: "Search", act: () => search.current?.focus() },
    { keys: ["s"], words: "Sort by the next column", act: () => turn({ sort: COLUMNS[(COLUMNS.findIndex((one) => one[0] === sort) + 1) % COLUMNS.length][0] }) },
    { keys: ["PageDown", "]"], words: "Next page", act: () => page < last && turn({ page: page + 1 }) },
    { keys: ["PageUp", "["], words: "Previous page", act: () => page > 0 && turn({ page: page - 1 }) },
  ])), [found, sort, page]);
  useEffect(() => { if (rows.length) performance.mark("queue"); }, [found]);
  useEffect(() => { document.querySelector('.queue tr[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }); }, [chosen]);
  if (!ready.value) return html`<${Waiting} />`;
  const columns = COLUMNS.filter(([, key]) => !found || rows.some((one) => one[key] !== null) || key === sort);
  const by = columns.find(([name]) => name === sort)?.[1], most = Math.max(1e-9, ...rows.map((one) => one[by] || 0));
  return html`<section>
    <div class="bar-of-tools">
      <label>Search ids<input ref=${search} type="search" autocomplete="off" value=${asked.q || ""} onChange=${(event) => turn({ q: event.target.value })} /></label>
      <label>Sort by<select value=${sort} onChange=${(event) => turn({ sort: event.target.value })}>${project.value.sorts.map((one) => html`<option value=${one.name} selected=${one.name === sort}>${one.words}</option>`)}</select></label>
      <label>With the label<select value=${asked.label || ""} onChange=${(event) => turn({ label: event.target.value })}><option value="">any</option>${project.value.classes.map((one) => html`<option value=${one.name} selected=${one.name === asked.label}>${one.name}</option>`)}</select></label>
      <label>Voted on by<select value=${asked.source || ""} onChange=${(event) => turn({ source: event.target.value })}><option value="">any source</option>${project.value.sources.map((one) => html`<option value=${one.name} selected=${one.name === asked.source}>${one.name}</option>`)}</select></label>
      <label>Corrected<select value=${asked.corrected || ""} onChange=${(event) => turn({ corrected: event.target.value })}>${[["", "all"], ["no", "not yet"], ["yes", "corrected"]].map(([value, words]) => html`<option value=${value} selected=${value === (asked.corrected || "")}>${words}</option>`)}</select></label>
      <span class="grow small">${found && many(found.total, "sequence")}</span>
    </div>
    <div class="scroll"><table class="queue">
      <thead><tr><th scope="col">Sequence</th><th scope="col" class="n">Length</th>
        ${columns.map(([name, , words, title]) => html`<th scope="col" class=${kind(name, sort)} aria-sort=${sort === name ? "descending" : null}><button type="button" title=${title} onClick=${() => turn({ sort: name })}>${words}${sort === name ? " ▾" : ""}</button></th>`)}
        <th scope="col" class="optional">Labels</th><th scope="col"></th></tr></thead>
      <tbody>${rows.map((one, k) => html`<${Row} key=${one.id} one=${one} chosen=${k === chosen} sort=${sort} most=${most} columns=${columns} onChoose=${() => choose(k)} />`)}</tbody>
    </table></div>
    ${found && !rows.length && html`<p class="empty">No sequence is like this.</p>`}
    ${last > 0 && html`<p class="pager"><button type="button" disabled=${page === 0} onClick=${() => turn({ page: page - 1 })}>Back</button> page ${page + 1} of ${last + 1}
      <button type="button" disabled=${page >= last} onClick=${() => turn({ page: page + 1 })}>On</button></p>`}
  </section>`;
}

export function Waiting() {
  const run = project.value.run;
  if (running.value) return html`<p class="empty">The sources vote for the first time, and the model is fitted: ${run.step || "one moment"}${run.total ? ` (${run.done} of ${run.total})` : ""} …</p>`;
  if (run?.state === "failed") return html`<div class="fault" role="alert"><strong>The run failed.</strong> Repair it on the page <a href="/source">Source</a>, then press Fit.<pre>${run.error?.text}${run.error?.trace ? `\n\n${run.error.trace}` : ""}</pre></div>`;
  return html`<p class="empty">Nothing was fitted yet: press Fit.</p>`;
}
