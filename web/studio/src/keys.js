// The keyboard: one table of what every key does, which the help shows and the page obeys.
import { signal } from "@preact/signals";
import { go } from "./route.js";

export const helping = signal(false);
const pages = { q: ["/queue", "Queue"], s: ["/sequence", "Sequence"], r: ["/source", "Source"], m: ["/model", "Model"], e: ["/export", "Export"] };
const MOST = 50;
let local = [], chord = false, kept = [];

const everywhere = [
  ...Object.entries(pages).map(([key, [path, name]]) => ({ keys: [`g ${key}`], words: `Go to ${name}`, act: () => go(path) })),
  { keys: ["?"], words: "This help", act: () => { helping.value = !helping.value; } },
  { keys: ["Escape"], words: "Close the help, or leave a field", act: () => { helping.value = false; document.activeElement?.blur?.(); } },
];

// What the keys of a page do: `keys` as the browser names them, `words` for the help; returns how to take them back.
export function bind(title, bindings) {
  const back = put({ title, bindings }), waited = kept;
  kept = [];
  while (waited.length && !local.some((one) => one.keeps)) {
    const { name, event } = waited.shift(), found = find(name);
    if (found) obey(found, event);
  }
  kept = waited;
  return back;
}

// A page that is on its way: keys are kept for it until it binds them, so that none is lost or meets the page before it.
export const expect = () => put({ keeps: true });

function put(group) {
  local = [...local.filter((one) => !one.passing), group];
  return () => { local = local.filter((one) => one !== group); };
}

// Obey a key; if it leads to another page, the keys of this one are over.
function obey(found, event) {
  const before = location.pathname;
  found.act(event);
  if (location.pathname !== before) local = [{ keeps: true, passing: true }];
}

export const groups = () => [{ title: "Everywhere", bindings: everywhere }, ...local.filter((one) => !one.keeps)];

const writes = (target) => target instanceof Element && (target.closest("input:not([type=range]):not([type=checkbox]), textarea, select") !== null || target.isContentEditable || target.shadowRoot !== null);

function named(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return `${event.ctrlKey || event.metaKey ? "Ctrl+" : ""}${event.shiftKey && event.key.length > 1 ? "Shift+" : ""}${key}`;
}

function find(name) {
  for (const group of groups().reverse())
    for (const one of group.bindings) if (one.act && one.keys.includes(name)) return one;
  return null;
}

export function listen() {
  addEventListener("keydown", (event) => {
    if (event.altKey || event.defaultPrevented) return;
    const name = named(event), typing = writes(event.composedPath()[0]) || writes(event.target);
    if (typing && name !== "Escape" && !(name.startsWith("Ctrl+") && find(name)?.typing)) return;
    if (name === "g" && !typing) { chord = true; setTimeout(() => { chord = false; }, 1500); return; }
    const found = find(chord ? `g ${name}` : name), coming = local.some((one) => one.keeps);
    chord = false;
    if (name === "Escape") kept = [];
    if (!found && coming && kept.length < MOST && /^(.|Arrow\w+|Delete|Backspace|Enter)$/.test(name)) kept.push({ name, event }); else if (!found) return;
    event.preventDefault();
    if (found) obey(found, event);
  });
  addEventListener("pointerdown", () => { kept = []; }, true); // a hand that goes elsewhere means something else
}
