// One source: its text, and at every pause in typing what that text would do.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, place, unpack } from "../api.js";
import { makeEditor } from "../editor.js";
import { count, html, many, Name, percent } from "../html.js";
import { bind } from "../keys.js";
import { forget, hear, limit, tryOut } from "../live.js";
import { openLaw, openVote } from "../pieces.js";
import { go, note, pathOf, route } from "../route.js";
import { attempt, changed, drawing, fit, noteStale, project, ready, say, useAsked } from "../state.js";
import { Stage, timelineKeys } from "../stage.js";
import { order } from "./queue.js";

const PAUSE = 150; // milliseconds without a key before a text is tried
const fresh = (name) => `@dg.source\ndef ${name}(element):\n    """Say here what it looks at."""\n    return dg.ABSTAIN\n`;

export function Source() {
  const [listed, setListed] = useState(null), name = route.value.name;
  useAsked(async (question) => setListed(await question("/api/sources")), [fit.value, changed.value]);
  useEffect(() => {
    const first = listed?.sources.find((one) => one.editable) || listed?.sources[0];
    if (name === null && first) { note(pathOf("source", first.name)); route.value = { ...route.value, name: first.name }; }
  }, [name, listed]);
  const add = () => {
    const wanted = prompt("Name of the new source, as a Python function:", "new_rule");
    if (wanted && /^[A-Za-z_]\w*$/.test(wanted)) go(pathOf("source", wanted)); else if (wanted) say("A name of a Python function has letters, digits and underscores, and does not begin with a digit.", "warning");
  };
  return html`<section>
    <ul class="choices">${listed?.sources.map((one) => html`<li key=${one.name}><a href=${pathOf("source", one.name)} aria-current=${one.name === name ? "true" : null}><${Name} of=${one.name} />
      <small>${one.resolution ? `${one.resolution} · covers ${percent(one.coverage, 0)}` : "not in the last fit"}${one.faults ? ` · ${many(one.faults, "fault")}` : ""}</small></a></li>`)}
      <li><button type="button" onClick=${add}>New source</button></li></ul>
    ${listed?.trouble && html`<p class="verdict warning" role="alert">${listed.file ? `${listed.file} is no Python: ${listed.trouble}. Repair it in another editor; this page follows.` : listed.trouble}</p>`}
    ${name !== null && listed && html`<${Workbench} key=${name} name=${name} />`}
  </section>`;
}

// The text on disk, the text in the editor, and what the socket says about it.
function Workbench({ name }) {
  const host = useRef(), editor = useRef(null), timeline = useRef(null), saved = useRef(null), pause = useRef(0), info = useRef(null);
  const [source, setSource] = useState(null), [dirty, setDirty] = useState(false), [tried, setTried] = useState(null), [waiting, setWaiting] = useState(false), [clash, setClash] = useState(null);
  const [sequence, setSequence] = useState(route.value.query.get("sequence") ?? order.value[0] ?? null), [shown, setShown] = useState(null);

  const tryNow = () => {
    clearTimeout(pause.current);
    const text = editor.current.text(), piece = timeline.current?.piece;
    if (!saved.current || text === saved.current.text) { forget(); setTried(null); setWaiting(false); timeline.current?.setDraft(null); return; }
    if (!info.current) return; // the sequence is on its way, and its timeline asks again
    setWaiting(true);
    tryOut({ source: name, text, sequence: info.current.id, others: 10, ...(piece ? { from: piece.from, to: piece.to, px: piece.px } : {}) });
  };
  const soon = () => { clearTimeout(pause.current); pause.current = setTimeout(tryNow, PAUSE); };
  const take = (text, digest) => { saved.current = { text, digest }; setDirty(editor.current.text() !== text); };
  // One after the other: a second save knows what the first one wrote.
  const last = useRef(Promise.resolve());
  const save = (force) => { last.current = last.current.then(() => saveNow(force)); };
  const saveNow = (force) => attempt(async () => {
    const text = editor.current.text();
    if (!force && text === saved.current.text) return;
    try {
      const answer = await ask(`/api/sources/${encodeURIComponent(name)}`, { method: "PUT", body: { text, digest: force || saved.current.digest, fit: true } });
      if (editor.current.text() === text && answer.text !== text) editor.current.load(answer.text);
      take(answer.text, answer.digest);
      setClash(null); noteStale();
      tryNow(); // nothing to try, unless somebody typed on meanwhile
      say(`Saved into ${source?.file || project.value.sources_file || "sources.py"}; all sources vote again.`, "fine");
      if (answer.name !== name) go(pathOf("source", answer.name));
    } catch (error) {
      if (error.status === 409 && error.kind === "changed") setClash(error.current); else if (error.kind === "syntax") { editor.current.mark(error.line); setTried({ ok: false, error }); } else throw error;
    }
  });

  useEffect(() => {
    editor.current = makeEditor(host.current, { label: `Text of ${name}`, onChange: () => { setDirty(editor.current.text() !== saved.current?.text); soon(); }, onSave: () => save(), onLeave: () => document.querySelector("main").focus() });
    return () => { clearTimeout(pause.current); forget(); editor.current.destroy(); };
  }, []);
  useEffect(() => {
    attempt(async () => {
      const before = saved.current, found = await ask(`/api/sources/${encodeURIComponent(name)}`).catch((error) => { if (error.status !== 404) throw error; return null; });
      const mine = saved.current && editor.current.text() !== saved.current.text;
      if (!found) { // a new one, unless somebody else has just removed it
        if (!saved.current) { const { digest } = await ask("/api/sources"); editor.current.load(fresh(name)); saved.current = { text: "", digest }; setDirty(true); }
        return;
      }
      setSource(found);
      // A text that is being edited is not replaced: the server refuses to overwrite what others wrote meanwhile. Nor is
      // one that was saved after the question.
      if (!mine && saved.current === before) { if (editor.current.text() !== found.text) editor.current.load(found.text); take(found.text, found.digest); }
    });
  }, [name, fit.value, changed.value]);
  useAsked(async (question) => {
    if (!ready.value) return;
    const wanted = sequence ?? (await question("/api/sequences?sort=entropy&size=1")).sequences[0]?.id;
    if (wanted !== undefined) { info.current = await question(place(wanted)); setShown(info.current); }
  }, [sequence, ready.value]);
  useEffect(() => hear((message) => {
    if (message.op !== "tried" || message.source !== name) return;
    setWaiting(false);
    setTried(message);
    editor.current.mark(message.ok ? null : message.error.line);
    const piece = timeline.current?.piece;
    if (!message.ok || !piece) { timeline.current?.setDraft(null); return; }
    timeline.current.setDraft({ piece, vote: message.vote && openVote(message.vote), law: message.probability && openLaw(message.probability[0]), labels: unpack(message.labels) });
  }), [name]);
  useEffect(() => { if (timeline.current?.piece && timeline.current.piece.fit !== fit.value) timeline.current.refresh(); }, [fit.value]);
  useEffect(() => bind("Source", [
    { keys: ["Ctrl+s"], words: "Save, and let all sources vote", typing: true, act: () => save() },
    { keys: ["i", "Enter"], words: "Into the text (Esc leaves it)", act: () => editor.current.view.focus() },
    { keys: ["o"], words: "Open the sequence below", act: () => info.current && go(pathOf("sequence", info.current.id, { at: timeline.current?.spot?.start })) },
    ...timelineKeys(timeline),
  ]), []);

  const look = (id, start) => { const same = info.current?.id === id; setSequence(id); if (same) timeline.current?.goTo(start); else wish.current = start; };
  const wish = useRef(null);
  const acts = {
    onPick: () => {}, onSource: (other) => go(pathOf("source", other)), onFault: (error) => say(error.message, "warning"),
    onPiece: (piece, first) => { if (first && wish.current !== null) { timeline.current.goTo(wish.current); wish.current = null; } },
    onSwitch: () => { if (editor.current && saved.current && editor.current.text() !== saved.current.text) soon(); },
  };
  return html`<div class="bench"><div>
      <div class="head"><h1><${Name} of=${name} /></h1><span class="small">${source ? `${source.file}, line ${source.line}` : ""}</span>
        <span class="end"><button type="button" disabled=${!dirty} onClick=${() => { editor.current.load(saved.current.text); setDirty(false); tryNow(); }}>Discard</button> <button type="button" class="main" id="save" disabled=${!dirty || source?.editable === false} onClick=${() => save()} title="Save (Ctrl+S)">Save</button></span></div>
      ${source?.editable === false && html`<p class="verdict note">${source.why_not}</p>`}
      ${clash && html`<${Clash} current=${clash} onTheirs=${() => { editor.current.load(clash.text); take(clash.text, clash.digest); setClash(null); tryNow(); }} onMine=${() => save(clash.digest)} />`}
      <div class="editor" ref=${host}></div>
      ${!ready.value && dirty && html`<p class="verdict note">A text can be tried when there is a fit: save it, and all sources vote.</p>`}
      <${Outcome} tried=${tried} source=${source} onLook=${look} />
      ${shown && drawing.value && html`<div class="head"><h2>In <a href=${pathOf("sequence", shown.id)}><${Name} of=${shown.id} /></a></h2><span class="small" role="status" id="tried">${status(tried, waiting)}</span></div>
        <${Stage} info=${shown} timeline=${timeline} view=${null} acts=${acts} focus=${name} />`}
    </div>
    <div><${Figures} source=${source} tried=${tried} /><${Flips} flips=${tried?.ok ? tried.flips : source?.flips} live=${Boolean(tried?.ok)} onLook=${look} />${!tried && source && html`<${Doubted} source=${source} onLook=${look} />`}<${Limit} /></div>
  </div>`;
}

function Clash({ current, onTheirs, onMine }) {
  return html`<div class="fault" role="alert"><strong>The file was changed by somebody else, so nothing was written.</strong> This is what it says now:<pre>${current?.text ?? "the function is gone"}</pre>
    <div class="tools"><button type="button" onClick=${onTheirs}>Take that text</button><button type="button" onClick=${onMine}>Write mine over it</button></div></div>`;
}

// What went wrong, or that nothing did; a fault is one of many of its kind, so the first is shown in full.
function Outcome({ tried, source, onLook }) {
  if (tried && !tried.ok) return html`<div class="fault" role="alert"><strong>${{ syntax: "This is not Python yet.", lost: "It was ended." }[tried.error.kind] || "It raised."}</strong> ${tried.error.text || tried.error.message} ${tried.error.kind === "lost" && "The limit while you type is on this page; a run after Save has none."}
    ${tried.error.trace && html`<pre>${tried.error.trace}</pre>`}${tried.printed && html`<details><summary>What it printed</summary><pre>${tried.printed}</pre></details>`}</div>`;
  const faults = (tried ? tried.trouble : source?.trouble) || [], first = faults[0];
  return html`${first && html`<div class="fault" role="alert"><strong>It raised on ${faults.length >= 50 ? "50 tasks or more" : many(faults.length, "task")}</strong>, where it abstains; first in
      <button type="button" class="plain" onClick=${() => onLook(first.sequence, first.start)}><${Name} of=${first.sequence} />, ${first.start}</button>: ${first.text}<pre>${first.trace}</pre></div>`}
    ${tried?.printed && html`<details open><summary>What it printed</summary><pre>${tried.printed}</pre></details>`}`;
}

const status = (tried, waiting) => (waiting ? "trying …" : !tried ? "and ten more while you type" : tried.ok ? `tried on ${many(tried.summary.sequences, "sequence")} in ${Math.max(1, Math.round(1000 * tried.seconds))} ms. ${tried.why || ""}` : "");

const whole = (votes) => Object.values(votes || {}).reduce((sum, one) => sum + one, 0);
function Figures({ source, tried }) {
  const now = tried?.ok ? tried.summary : null, shares = (votes) => Object.entries(votes || {}).map(([name, n]) => `${name}\u00a0${percent(n / Math.max(1, whole(votes)), 0)}`).join(", ");
  const row = (words, before, after, title) => html`<tr title=${title}><th scope="row">${words}</th><td class="n">${before}</td>${now && html`<td class="n">${after ?? ""}</td>`}</tr>`;
  if (!source && !now) return html`<div class="panel"><h2>What it does</h2><p class="small">A new source: write it, and see at every pause what it says.</p></div>`;
  return html`<div class="panel"><h2>What it does</h2><table class="figures">
    <thead><tr><th scope="col"></th><th scope="col" class="n">saved</th>${now && html`<th scope="col" class="n">as edited</th>`}</tr></thead>
    <tbody>
      ${row("Coverage", percent(source?.coverage), percent(now?.coverage), "Share of tasks on which it votes")}
      ${row("Overlaps", percent(source?.overlaps), null, "Share of tasks on which another source votes too")}
      ${row("Conflicts", percent(source?.conflicts), null, "Share of tasks on which another source contradicts it")}
      ${row("Accuracy, estimated", source?.interval ? `${percent(source.accuracy)} (${percent(source.interval[0], 0)} to ${percent(source.interval[1], 0)})` : percent(source?.accuracy), null, "How often a vote is right, by the model")}
      ${row("Accuracy, measured", source?.n_measured ? `${percent(source.measured)} of ${count(source.n_measured)}` : "no known labels", percent(now?.measured), "How often a vote is right where labels are known")}
      <tr class="wrap"><th scope="row">Votes</th><td class="n">${shares(source?.votes)}</td>${now && html`<td class="n">${shares(now.votes)}</td>`}</tr>
      ${now && html`<tr class="changes"><th scope="row">Votes that change</th><td></td><td class="n" id="changed">${count(now.changed)}</td></tr><tr><th scope="row">Labels that change</th><td></td><td class="n" id="flipped">${now.flipped === null ? "–" : count(now.flipped)}</td></tr>`}
    </tbody></table>
    ${source?.conflict_with?.length > 0 && html`<p class="small">Contradicted by ${source.conflict_with.slice(0, 4).map((one, k) => html`${k ? ", " : ""}<${Name} of=${one.source} /> (${percent(one.share)})`)}.</p>`}
  </div>`;
}

// How long a text may take while it is typed; its process is ended after that, and comes back.
function Limit() {
  const set = (event) => { const seconds = Number(event.target.value); if (seconds > 0) { limit(seconds); project.value = { ...project.value, limit: seconds }; } };
  return html`<div class="panel"><label class="field">Seconds that it may take while you type<input type="number" min="0.2" max="600" step="any" value=${project.value.limit} onChange=${set} /></label></div>`;
}

function Flips({ flips, live, onLook }) {
  if (!flips?.length) return null;
  return html`<div class="panel"><h2>${live ? "What would change" : "What the last fit changed"}</h2><ul class="marks">${flips.slice(0, 20).map((one) => html`<li>
    <button type="button" class="plain" onClick=${() => onLook(one.sequence, one.start)}><${Name} of=${one.sequence} />, ${one.stop - one.start > 1 ? `${one.start} to ${one.stop - 1}` : one.start}</button>
    <span class="badge">${one.kind}</span><span><${Name} of=${one.before} /> → <strong><${Name} of=${one.after} /></strong></span></li>`)}</ul></div>`;
}

function Doubted({ source, onLook }) {
  if (!source.examples?.length) return null;
  return html`<div class="panel"><h2>Votes that the model believes least</h2><ul class="marks">${source.examples.slice(0, 8).map((one) => html`<li>
    <button type="button" class="plain" onClick=${() => onLook(one.sequence, one.start)}><${Name} of=${one.sequence} />, ${one.start}</button><span><${Name} of=${one.vote} /> with P = ${one.probability.toFixed(2)}</span></li>`)}</ul></div>`;
}
