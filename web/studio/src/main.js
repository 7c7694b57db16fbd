// The frame of the page: bar, page, messages, help.
import "../../../src/dugong/report/html/assets/page.css";
import "./studio.css";
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { lost } from "./api.js";
import { html, Name } from "./html.js";
import { groups, helping, listen } from "./keys.js";
import { start } from "./live.js";
import { follow, route } from "./route.js";
import { hush, load, project, running, startFit, stopFit, toasts, trouble } from "./state.js";
import { Begin } from "./pages/begin.js";
import { Export } from "./pages/export.js";
import { Model } from "./pages/model.js";
import { Queue } from "./pages/queue.js";
import { Sequence } from "./pages/sequence.js";
import { Source } from "./pages/source.js";

const PAGES = { queue: ["Queue", Queue], sequence: ["Sequence", Sequence], source: ["Source", Source], model: ["Model", Model], export: ["Export", Export] };

function Top() {
  const now = project.value, run = now?.run;
  return html`<header class="top">
    <span class="brand"><img src="/assets/icon.svg" alt="" /><${Name} of=${now?.title || "Dugong studio"} /></span>
    <nav aria-label="Pages">${now?.sources && Object.entries(PAGES).map(([key, [words]]) => html`<a href=${`/${key}`} aria-current=${route.value.page === key ? "page" : null}>${words}</a>`)}</nav>
    <span class="end">
      ${lost.value ? html`<span><span class="dot lost"></span> no answer</span>` : html`<${Run} run=${run} />`}
      ${now?.sources && (running.value ? html`<button type="button" onClick=${stopFit}>Stop</button>`
        : html`<button type="button" class=${now.stale ? "main" : ""} id="fit" onClick=${startFit} title="Apply all sources, fit, label: what \`dugong run\` does">Fit</button>`)}
      <button type="button" aria-label="Keys" title="Keys (?)" onClick=${() => { helping.value = true; }}>?</button>
    </span>
  </header>`;
}

function Run({ run }) {
  if (!run || !project.value?.sources) return null;
  if (run.state === "running") return html`<span role="status"><span class="dot busy"></span> ${run.step || "working"}${run.total ? ` ${run.done} of ${run.total}` : ""}</span>`;
  if (run.state === "failed") return html`<span role="status"><span class="dot lost"></span> the last run failed</span>`;
  return html`<span role="status" class="optional"><span class=${`dot ${project.value.stale ? "busy" : ""}`}></span> ${project.value.stale ? "something changed since the last fit" : `fit ${project.value.fit}`}</span>`;
}

function Help() {
  const box = useRef();
  useEffect(() => { if (helping.value) box.current?.showModal?.(); }, [helping.value]);
  if (!helping.value) return null;
  return html`<dialog ref=${box} onClose=${() => { helping.value = false; }} onClick=${(event) => { if (event.target === box.current) helping.value = false; }} aria-label="Keys">
    <h2>Keys</h2>
    <div class="keys">${groups().map((group) => html`<section><h3>${group.title}</h3><dl>
      ${group.bindings.filter((one) => !one.hidden).map((one) => html`<dt>${one.keys.slice(0, 2).map((key) => html`<kbd>${shown(key)}</kbd> `)}</dt><dd>${one.words}</dd>`)}
    </dl></section>`)}</div>
    <p class="small">Sources are Python that runs on this computer with your rights, in a process of its own that can be ended. That is no sandbox: open only projects that you trust.</p>
    <button type="button" class="main" onClick=${() => { helping.value = false; }}>Close</button>
  </dialog>`;
}

const SIGNS = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", " ": "space", Escape: "Esc", Delete: "Del" };
const shown = (key) => key.split("+").map((one) => SIGNS[one] || one).join(" ") || "+";

function Toasts() {
  return html`<ul class="toasts" aria-live="polite">${toasts.value.map((one) => html`<li key=${one.id} class=${one.kind}><span>${one.text}</span>
    <button type="button" aria-label="Close" onClick=${() => hush(one.id)}>×</button></li>`)}</ul>`;
}

function Studio() {
  const now = project.value, [words, Page] = PAGES[route.value.page];
  useEffect(() => { document.title = `${route.value.name ? `${route.value.name} · ` : ""}${words} · ${now?.title || "Dugong studio"}`; });
  const body = trouble.value ? html`<p class="empty" role="alert">${trouble.value}</p>` : !now ? html`<p class="empty">One moment …</p>` : !now.sources ? html`<${Begin} />` : html`<${Page} key=${route.value.page} />`;
  return html`<${Top} /><main tabindex="-1">${body}</main><${Toasts} /><${Help} />`;
}

document.addEventListener("click", follow);
listen();
start();
load();
render(html`<${Studio} />`, document.getElementById("studio"));
