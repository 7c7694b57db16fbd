// The keyboard: one table of what every key does, which the help shows and the page obeys.
import { signal } from "@preact/signals";
import { go } from "./route.js";

export const helping = signal(false);
const pages = { q: ["/queue", "Queue"], s: ["/sequence", "Sequence"], r: ["/source", "Source"], m: ["/model", "Model"], e: ["/export", "Export"] };
let local = [], chord = false;

const everywhere = [
  ...Object.entries(pages).map(([key, [path, name]]) => ({ keys: [`g ${key}`], words: `Go to ${name}`, act: () => go(path) })),
  { keys: ["?"], words: "This help", act: () => { helping.value = !helping.value; } },
  { keys: ["Escape"], words: "Close the help, or leave a field", act: () => { helping.value = false; document.activeElement?.blur?.(); } },
];

// What the keys of a page do: `keys` as the browser names them, `words` for the help; returns how to take them back.
export function bind(title, bindings) {
  const group = { title, bindings };
  local = [...local, group];
  return () => { local = local.filter((one) => one !== group); };
}

export const groups = () => [{ title: "Everywhere", bindings: everywhere }, ...local];

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
    const found = find(chord ? `g ${name}` : name);
    chord = false;
    if (!found) return;
    event.preventDefault();
    found.act(event);
  });
}
