// What was recorded: a video or a sound of its own speed, pictures of single elements, words; signals are in the timeline.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "./html.js";
import { colourOf } from "./state.js";

const SWEEP = 12; // seconds in which data without a sound or a video of its own are played through
const MOST_WORDS = 4000;

// `player.current`: toggle(), seek(element), playing(); `onHead(element)` while it plays, null when it stops.
export function Media(props) {
  const { info, player, onHead } = props, file = useRef(null), [broken, setBroken] = useState(false), kind = info.media && !broken ? info.media.type.split("/")[0] : null;
  const clockwork = useRef(0), [shown, setShown] = useState(0), moved = useRef(0), next = useRef(null);
  const time = (element) => (info.seconds ? info.seconds[0] + element * info.seconds[1] : element), elementAt = (seconds) => (info.seconds ? (seconds - info.seconds[0]) / info.seconds[1] : seconds);
  const playable = kind === "video" || kind === "audio";
  const refuse = () => setBroken(true); // not a file that this browser can play
  const stop = () => { cancelAnimationFrame(clockwork.current); clockwork.current = 0; file.current?.pause?.(); onHead(null); };
  // A place in the file. One seek at a time: the picture of the last is shown before the next, however fast a hand moves.
  const aim = (seconds) => { if (file.current.seeking) next.current = seconds; else file.current.currentTime = Math.max(0, seconds); };
  const found = () => { const wanted = next.current; next.current = null; if (wanted !== null) aim(wanted); };
  const run = (from) => {
    cancelAnimationFrame(clockwork.current);
    const begun = performance.now(), speed = Math.max(info.length / SWEEP, 1);
    const tick = () => {
      const at = playable ? elementAt(file.current.currentTime) : from + ((performance.now() - begun) / 1000) * speed;
      if (at >= info.length || (playable && file.current.ended)) { stop(); return; }
      moved.current = at;
      setShown(Math.floor(at));
      onHead(Math.max(0, Math.floor(at)));
      clockwork.current = requestAnimationFrame(tick);
    };
    clockwork.current = requestAnimationFrame(tick);
  };
  player.current = {
    playing: () => clockwork.current !== 0,
    toggle() {
      if (clockwork.current) { stop(); return; }
      const from = moved.current >= info.length - 1 ? 0 : moved.current;
      if (playable) { next.current = null; file.current.currentTime = Math.max(0, time(from)); file.current.play().catch(refuse); }
      run(from);
    },
    seek(element) {
      moved.current = element;
      setShown(element);
      if (playable && file.current?.readyState) aim(time(element + 0.5));
      if (clockwork.current) run(element); // it plays on from there
    },
  };
  useEffect(() => () => { cancelAnimationFrame(clockwork.current); }, []);
  return html`<div class="media">
    ${kind === "video" && html`<video ref=${file} src=${info.media.url} preload="metadata" playsinline muted onError=${refuse} onSeeked=${found} onLoadedMetadata=${() => player.current.seek(moved.current)}></video>`}
    ${kind === "audio" && html`<audio ref=${file} src=${info.media.url} preload="metadata" onError=${refuse} onSeeked=${found} onLoadedMetadata=${() => player.current.seek(moved.current)}></audio>`}
    ${kind === "image" && html`<img class="frame" alt=${info.id} src=${info.media.url} onError=${refuse} />`}
    ${kind === null && info.frames && html`<${Picture} url=${info.frames.url} element=${Math.min(shown, info.frames.n - 1)} />`}
    ${info.tokens > 0 && html`<${Words} ...${props} />`}
  </div>`;
}

// The picture of one element, which the server makes. The next is asked for when this one is there: no queue of old ones.
function Picture({ url, element }) {
  const [asked, setAsked] = useState(element), coming = useRef(true), wanted = useRef(element);
  const ask = () => { coming.current = wanted.current !== asked; setAsked(wanted.current); };
  wanted.current = element;
  useEffect(() => { if (!coming.current) ask(); }, [element]);
  return html`<img class="frame" alt=${`element ${asked}`} src=${`${url}?element=${asked}&px=480`} onLoad=${ask} onError=${ask} />`;
}

// Words in their colours: the stronger, the likelier. A drag over words marks them.
function Words({ piece, spot, marks, brush, onPick, onPaint }) {
  const from = useRef(null), box = useRef();
  useEffect(() => { box.current?.querySelector('[data-on="true"]')?.scrollIntoView({ block: "nearest" }); }, [spot?.start]);
  if (!piece?.tokens) return null;
  const { first, words } = piece.tokens, lane = piece.lanes[0], last = lane.post.length - 1;
  const element = (event) => { const word = event.target.closest?.("[data-element]"); return word ? Number(word.dataset.element) : null; };
  const up = (event) => {
    const a = from.current, b = element(event);
    from.current = null;
    if (a === null || b === null) return;
    if (a === b) onPick(a); else onPaint(Math.min(a, b), Math.max(a, b) + 1, brush);
    getSelection()?.removeAllRanges();
  };
  return html`<p class="tokens" ref=${box} onPointerDown=${(event) => { from.current = element(event); }} onPointerUp=${up}>
    ${words.slice(0, MOST_WORDS).map((word, k) => {
      const at = first + k, i = lane.step === 1 ? at - lane.starts[0] : -1, label = i >= 0 && i < lane.n ? piece.labels[i] : 255, mark = marks.find((one) => one.start <= at && one.end > at);
      const sure = label <= last ? Math.exp(lane.post[label][i]) : 0, plain = last === 1 && label === 0;
      const style = { background: label <= last && !plain ? `color-mix(in srgb, ${colourOf(label)} ${Math.round(15 + 45 * sure)}%, transparent)` : undefined, borderBottomColor: mark ? colourOf(mark.label) : undefined };
      return html`<span key=${at} data-element=${at} data-on=${spot && at >= spot.start && at < spot.stop ? "true" : null} style=${style}>${word}</span> `;
    })}</p>`;
}
