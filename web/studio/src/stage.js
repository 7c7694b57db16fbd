// The timeline as a component: its tools, its legend, and the instance itself for the page around it.
import { useEffect, useRef } from "preact/hooks";
import { html } from "./html.js";
import { colourOf, dark, drawing } from "./state.js";
import { StudioTimeline } from "./timeline.js";

export const TIMELINE_KEYS = [
  { keys: ["ArrowLeft", "ArrowRight"], words: "Previous and next element; with Shift ten of them" },
  { keys: ["ArrowUp", "ArrowDown"], words: "Another resolution" },
  { keys: ["+", "-"], words: "Zoom; 0 shows all" },
  { keys: ["PageUp", "PageDown"], words: "Move on by a screen" },
  { keys: ["n", "p"], words: "Next and previous doubtful element" },
];
const MOVES = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown", "+", "=", "-", "0", "n", "p"];

// Keys of the timeline that work wherever the focus is.
export const timelineKeys = (timeline) => [
  ...TIMELINE_KEYS,
  { keys: [...MOVES, ...MOVES.filter((one) => one.length > 1).map((one) => `Shift+${one}`)], words: "", hidden: true, act: (event) => timeline.current?.track && timeline.current.key(event) },
];

// `focus`: the source that the page is about; its rows come first.
export function Stage({ info, timeline, view, acts, focus = null, children }) {
  const host = useRef(), now = useRef(acts);
  now.current = acts;
  useEffect(() => {
    const through = Object.fromEntries(Object.keys(acts).map((name) => [name, (...values) => now.current[name]?.(...values)]));
    const made = new StudioTimeline(drawing.value, host.current, through);
    timeline.current = made;
    made.focus = focus;
    made.open(info, view);
    return () => { made.destroy(); timeline.current = null; };
  }, [info.id, drawing.value === null]);
  useEffect(() => { if (timeline.current) { timeline.current.data = drawing.value; timeline.current.queue(); } }, [drawing.value, dark.value]);
  const act = (name, ...values) => () => timeline.current?.track && timeline.current[name](...values);
  return html`<div class="stage">
    <div class="tools" role="group" aria-label="Timeline">
      ${[["−", "Zoom out (-)", "zoom", 0.5], ["+", "Zoom in (+)", "zoom", 2], ["Whole", "Show the whole sequence (0)", "whole"], ["◀", "Move back", "pan", -0.5], ["▶", "Move on", "pan", 0.5],
        ["Next doubtful", "Go to the next doubtful element (n)", "nextDoubtful", 1]].map(([words, title, name, ...values]) => html`<button type="button" title=${title} aria-label=${title} onClick=${act(name, ...values)}>${words}</button>`)}
      ${children}
    </div>
    <div ref=${host}></div>
    <${Legend} />
  </div>`;
}

function Legend() {
  return html`<ul class="legend" aria-label="Colours">${drawing.value.classes.map((name, k) => html`<li><i style=${{ background: colourOf(k) }}></i><bdi>${name}</bdi></li>`)}
    <li><i class="none"></i>no vote</li>${drawing.value.lanes.length > 1 && html`<li>larger pieces: the stronger the colour, the likelier</li>`}</ul>`;
}
