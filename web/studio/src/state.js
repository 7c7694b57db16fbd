// What all pages share: the project, messages to the user, and a number that says when to fetch anew.
import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask } from "./api.js";
import { hear } from "./live.js";

export const project = signal(null);
export const trouble = signal(null); // why there is no project to show
export const toasts = signal([]);
export const changed = signal(0); // grows with every change of sources or corrections elsewhere
export const fit = computed(() => project.value?.fit ?? 0);
export const running = computed(() => project.value?.run?.state === "running");
export const ready = computed(() => fit.value > 0);

let toastNumber = 0;
export function say(text, kind = "note", seconds = kind === "warning" ? 15 : 4) {
  const one = { id: ++toastNumber, text: String(text), kind };
  toasts.value = [...toasts.value.filter((other) => other.text !== one.text), one].slice(-4);
  setTimeout(() => hush(one.id), 1000 * seconds);
}
export function hush(id) { toasts.value = toasts.value.filter((one) => one.id !== id); }

// Do something that may be refused; what went wrong is said.
export async function attempt(work) {
  try { return await work(); } catch (error) {
    if (error.name !== "AbortError") say(error.message, "warning");
    return null;
  }
}

// Ask anew whenever one of `inputs` changes: `work(ask)`. Only the last question counts; earlier ones are dropped.
export function useAsked(work, inputs) {
  useEffect(() => {
    const abort = new AbortController();
    attempt(() => work((path) => ask(path, { abort: abort.signal })));
    return () => abort.abort();
  }, inputs);
}

// One question at a time, and one more if something happened meanwhile: an older answer never replaces a newer one.
let loading = null, again = false, heard = 0;
export function load() {
  again = true;
  loading ||= (async () => {
    while (again) {
      again = false;
      const before = heard;
      try {
        const answer = await ask("/api/project");
        project.value = heard === before || !project.value ? answer : { ...answer, run: project.value.run };
        trouble.value = null;
      } catch (error) { if (!project.value || error.status === 403) trouble.value = error.message; else say(error.message, "warning"); }
    }
    loading = null;
  })();
  return loading;
}

export const startFit = () => attempt(async () => { keepRun((await ask("/api/fit", { method: "POST", body: {} })).run); });
export const stopFit = () => attempt(async () => { keepRun((await ask("/api/fit", { method: "DELETE" })).run); });
export function noteStale() { if (project.value) project.value = { ...project.value, stale: true }; }

function keepRun(run) {
  const before = project.value?.run?.state;
  heard += 1;
  if (project.value) project.value = { ...project.value, run };
  if (run.state === "failed" && before !== "failed" && run.error) say(run.error.text, "warning");
}

hear((message) => {
  if (message.op === "run") { keepRun(message.run); if (message.run.state !== "running") load(); }
  if (message.op === "fit") load();
  if (["gold", "sources", "again"].includes(message.op)) { changed.value += 1; load(); }
});

// The report's drawing code reads names and colours in this form.
export const drawing = computed(() => {
  const now = project.value;
  if (!now?.classes?.length) return null;
  const tones = (tone) => now.classes.map((one) => one[tone]);
  return {
    classes: now.classes.map((one) => one.name), colours: { light: tones("light"), dark: tones("dark"), two: now.two },
    lanes: now.lanes, voters: now.sources.map((one, place) => ({ ...one, place })), path: true,
  };
});
const darkScheme = matchMedia("(prefers-color-scheme: dark)");
export const dark = signal(darkScheme.matches);
darkScheme.addEventListener("change", () => { dark.value = darkScheme.matches; });
export const colourOf = (place) => project.value?.classes?.[place]?.[dark.value ? "dark" : "light"] || "transparent";
export const placeOf = (label) => project.value?.classes?.findIndex((one) => one.name === label) ?? -1;
