// One sequence: what was recorded, who voted what, what the model makes of it, and corrections by hand.
import { useEffect, useRef, useState } from "preact/hooks";
import { place } from "../api.js";
import { correct, inTurn, known, marksOf, newer, pending, undo } from "../corrections.js";
import { html, many, Name, percent } from "../html.js";
import { bind, expect } from "../keys.js";
import { Media } from "../media.js";
import { go, note, pathOf, route } from "../route.js";
import { attempt, changed, colourOf, drawing, fit, project, ready, say, useAsked } from "../state.js";
import { Stage, timelineKeys } from "../stage.js";
import { Why } from "../why.js";
import { order, Waiting } from "./queue.js";

export function Sequence() {
  const wanted = route.value.name, [info, setInfo] = useState(null), [missing, setMissing] = useState(null), none = missing !== null && missing === wanted;
  useAsked(async (ask) => {
    if (!ready.value) return;
    if (wanted === null) {
      const first = order.value[0] ?? (await ask("/api/sequences?sort=entropy&size=1")).sequences[0]?.id;
      if (first !== undefined) { note(pathOf("sequence", first)); route.value = { ...route.value, name: first }; }
      return;
    }
    try { setInfo(await ask(place(wanted))); setMissing(null); } catch (error) { if (error.status === 404) setMissing(wanted); else throw error; }
  }, [wanted, ready.value, fit.value]);
  useEffect(() => (info?.id === wanted || none ? undefined : expect()), [info?.id === wanted || none]);
  if (!ready.value || !drawing.value) return html`<${Waiting} />`;
  if (none) return html`<p class="empty" role="alert">There is no sequence <${Name} of=${wanted} />. <a href="/queue">The queue</a> lists all that there are.</p>`;
  if (!info || info.id !== wanted) return html`<p class="empty">One moment …</p>`;
  return html`<${Viewer} key=${info.id} info=${info} />`;
}

// Neighbours in the order of the queue, else of the data.
function around(info) {
  const at = order.value.indexOf(info.id);
  return at < 0 ? { before: info.previous, after: info.next } : { before: order.value[at - 1] ?? null, after: order.value[at + 1] ?? null };
}

function startView() {
  const read = (name) => (route.value.query.has(name) ? Number(route.value.query.get(name)) : null), from = read("from"), to = read("to");
  return from !== null && to > from ? { left: from, span: to - from } : null;
}

function Viewer({ info }) {
  const timeline = useRef(null), player = useRef(null), [spot, setSpot] = useState(null), [brush, setBrush] = useState(Math.max(0, project.value.classes.length - 1));
  const [gold, setGold] = useState(info.gold), [piece, setPiece] = useState(null), [failed, setFailed] = useState(false), [head, setHead] = useState(null);
  const names = drawing.value.classes, marks = marksOf(gold.corrections, names), { before, after } = around(info);
  // What is picked and what is corrected now, for keys that come before the page is drawn anew.
  const element = useRef(null), latest = useRef(gold), follows = useRef(false);
  // The timeline follows what plays; the player follows every other choice.
  const follow = (at) => {
    setHead(at);
    if (at === null || !timeline.current?.track) return;
    follows.current = true;
    timeline.current.goTo(at);
    follows.current = false;
  };

  const moment = () => {
    const now = timeline.current, whole = now.view.span >= info.length - 0.5;
    note(pathOf("sequence", info.id, { at: element.current?.start, from: whole ? null : Math.round(now.view.left), to: whole ? null : Math.round(now.view.left + now.view.span) }));
  };
  const late = useRef(0);
  const keep = () => { clearTimeout(late.current); late.current = setTimeout(() => timeline.current && moment(), 250); };
  const take = (answer) => { latest.current = newer(latest.current, answer); setGold(latest.current); };
  // What is on the screen at an element.
  const told = (start) => {
    const { piece: now } = timeline.current, at = timeline.current.indexOf(0, start), shown = now.labels[at];
    return shown < names.length ? { label: names[shown], probability: Math.exp(now.lanes[0].post[shown][at]), fit: fit.value } : null;
  };
  const write = async (start, end, label, shown) => take(await correct(info.id, start, end, label === null ? null : names[label], shown));
  const paint = (start, end, label) => { const shown = told(start); return attempt(() => inTurn(() => write(start, end, label, shown))); };
  const takeBack = () => attempt(() => inTurn(async () => {
    const answer = await undo(), here = answer.undone.sequence === info.id;
    say(here ? "Taken back." : `Taken back, in sequence ${answer.undone.sequence}.`);
    if (here) take(answer);
  }));
  const mark = (label) => {
    const now = timeline.current;
    setBrush(label);
    now.brush = label;
    if (!element.current) return;
    if (player.current?.playing() && now.from === null) { now.from = element.current.start; now.queue(); return; }
    const start = now.from ?? element.current.start;
    now.from = null;
    paint(Math.min(start, element.current.start), Math.max(start + 1, element.current.stop), label);
  };
  const accept = () => {
    const run = element.current && timeline.current.runs().find((one) => one.start <= element.current.start && one.end > element.current.start);
    if (run && run.label < names.length) paint(run.start, run.end, run.label);
  };
  const erase = () => {
    const at = element.current?.start;
    if (at === undefined) return;
    const shown = told(at);
    attempt(() => inTurn(async () => { // what was marked just before is there by then
      const found = marksOf(latest.current.corrections, names).find((one) => one.start <= at && one.end > at);
      if (found) await write(found.start, found.end, null, shown);
    }));
  };

  useEffect(() => { timeline.current?.setMarks(marks); }, [gold, piece === null]);
  useEffect(() => { if (timeline.current) timeline.current.brush = brush; }, [brush]);
  useEffect(() => { if (timeline.current) { timeline.current.head = head; timeline.current.queue(); } }, [head]);
  useEffect(() => { if (timeline.current?.piece && timeline.current.piece.fit !== fit.value) timeline.current.refresh(); }, [fit.value]);
  useAsked(async (ask) => { if (changed.value) take(await known(info.id, ask)); }, [changed.value]);
  useEffect(() => (piece === null && !failed ? expect() : bind("Sequence", [
    { keys: [" "], words: "Play or pause", act: () => player.current?.toggle() },
    { keys: names.map((_, k) => String(k + 1)).slice(0, 9), words: "Mark the chosen piece with a class; while playing: begin, and again to end", act: (event) => mark(Number(event.key) - 1) },
    { keys: ["m"], words: "Begin an interval here; then move, then press a class", act: () => { timeline.current.from = timeline.current.from === null || timeline.current.from === undefined ? element.current?.start ?? null : null; timeline.current.queue(); } },
    { keys: ["a", "Enter"], words: "Accept the label of this run", act: accept },
    { keys: ["Delete", "Backspace"], words: "Take the correction here back", act: erase },
    { keys: ["u", "Ctrl+z"], words: "Undo the last correction", act: takeBack },
    { keys: ["]"], words: "Next sequence of the queue", act: () => after !== null && go(pathOf("sequence", after)) },
    { keys: ["["], words: "Previous sequence of the queue", act: () => before !== null && go(pathOf("sequence", before)) },
    { keys: ["l"], words: "Copy a link to this moment", act: copy },
    ...timelineKeys(timeline),
  ])), [gold, spot?.start, brush, head !== null, piece === null && !failed, before, after, fit.value]);

  async function copy() {
    moment();
    try { await navigator.clipboard.writeText(location.href); say("The link to this moment is copied."); } catch { say(location.href); }
  }
  const acts = {
    onPick: (one) => { element.current = { ...one }; setSpot(element.current); keep(); if (!follows.current) player.current?.seek(one.start); },
    onMoment: keep, onPaint: paint, onSource: (name) => go(pathOf("source", name)), onFault: (error) => { setFailed(true); say(error.message, "warning"); },
    onPiece: (one, first) => {
      setPiece(one);
      if (!first) return;
      const at = route.value.query.get("at"), part = startView();
      timeline.current.from = null;
      timeline.current.goTo(at !== null ? Number(at) : part ? part.left + part.span / 2 : timeline.current.mostDoubtful(), 0, at !== null);
    },
  };
  // Corrections may be there before the first piece of the sequence is.
  const when = (from, to) => (timeline.current?.track ? timeline.current.when(from, to) : "");
  return html`<section>
    <div class="head"><h1><${Name} of=${info.id} /></h1><${Facts} info=${info} />
      <span class="end">${[["◀ Previous", before], ["Next ▶", after]].map(([words, to]) => html`<button type="button" disabled=${to === null} onClick=${() => go(pathOf("sequence", to))}>${words}</button> `)}</span></div>
    <div class="split"><div>
      <${Media} info=${info} piece=${piece} spot=${spot} player=${player} onHead=${follow} onPick=${(at) => timeline.current.goTo(at)} onPaint=${paint} brush=${brush} marks=${marks} />
      <${Stage} info=${info} timeline=${timeline} view=${startView()} acts=${acts}>
        <button type="button" onClick=${() => player.current?.toggle()} title="Play or pause (space)">${head === null ? "Play" : "Pause"}</button>
        <button type="button" onClick=${copy} title="Copy a link to this moment (l)">Link</button>
      <//>
      <p class="small hint">Drag in the row “your corrections”, or anywhere with Shift, to mark an interval; drag the end of an interval or of a label to move it. Drag along the axis to look through all. Ctrl and the wheel zoom. <kbd>?</kbd> shows all keys.</p>
    </div><aside>
      <div class="panel" aria-label="Corrections">
        <h2>Correct</h2>
        <div class="palette" role="group" aria-label="Class to mark with">${names.map((name, k) => html`<button type="button" aria-pressed=${brush === k ? "true" : "false"} onClick=${() => setBrush(k)}><i style=${{ background: colourOf(k) }}></i><bdi>${name}</bdi>${k < 9 && html` <kbd>${k + 1}</kbd>`}</button>`)}</div>
        ${marks.length ? html`<ul class="marks">${marks.map((one) => html`<li aria-current=${spot && one.start <= spot.start && one.end > spot.start ? "true" : null}>
          <i class="swatch" style=${{ background: colourOf(one.label) }}></i><button type="button" class="plain" onClick=${() => timeline.current.goTo(one.start)}>${when(one.start, one.end) || `${one.start} to ${one.end}`}</button>
          <button type="button" aria-label="Take back" title="Take back" onClick=${() => paint(one.start, one.end, null)}>×</button></li>`)}</ul>` : html`<p class="small">No corrections yet. They are written into <code>${project.value.corrections_file}</code> at once, and the next fit learns from them.</p>`}
        <div class="tools"><button type="button" onClick=${accept} title="Accept the label of this run (a)">Accept</button><button type="button" onClick=${takeBack} title="Undo the last correction (u)">Undo</button>${pending.value > 0 && html`<span class="small" role="status" id="writing">writing …</span>`}</div>
      </div>
      <${Why} id=${info.id} spot=${spot} when=${when} fit=${fit.value} />
    </aside></div>
  </section>`;
}

function Facts({ info }) {
  const one = info.numbers || {}, parts = [many(info.length, "element")];
  if (one.uncertainty !== null && one.uncertainty !== undefined) parts.push(`uncertainty ${percent(one.uncertainty)}`);
  if (one.conflict) parts.push(`sources disagree on ${percent(one.conflict)}`);
  if (one.change) parts.push(`${percent(one.change)} changed with the last fit`);
  if (one.wrong !== null && one.wrong !== undefined) parts.push(`wrong on ${percent(one.wrong)} of known labels`);
  return html`<span class="small">${parts.join(" · ")}</span>`;
}
