// Corrections as intervals that do not overlap: later ones win, and what is taken back is gone.
import { signal } from "@preact/signals";
import { ask } from "./api.js";
import { noteStale } from "./state.js";

export function marksOf(corrections, classes) {
  let marks = [];
  for (const one of corrections) {
    const label = one.label === null ? -1 : classes.indexOf(one.label);
    const kept = marks.flatMap((mark) => [{ ...mark, end: Math.min(mark.end, one.start) }, { ...mark, start: Math.max(mark.start, one.end) }].filter((part) => part.end > part.start && (part.start < one.start || part.end > one.end)));
    marks = label < 0 ? kept : [...kept, { start: one.start, end: one.end, label }];
  }
  marks.sort((a, b) => a.start - b.start);
  return marks.reduce((all, mark) => {
    const last = all.at(-1);
    if (last && last.end === mark.start && last.label === mark.label) last.end = mark.end; else all.push({ ...mark });
    return all;
  }, []);
}

// What the user asks for happens in the order of asking, one after the other: an undo that comes while a correction is on
// its way takes that one back. Each is on disk when its answer comes.
export const pending = signal(0);
let line = Promise.resolve();
export function inTurn(work) {
  pending.value += 1;
  const mine = line.then(work).finally(() => { pending.value -= 1; });
  line = mine.catch(() => {});
  return mine;
}

// Answers about corrections may overtake each other: the one with the larger number is newer.
export const newer = (now, answer) => (answer.version >= now.version ? answer : now);
export const known = (id, question) => question(`/api/gold?sequence=${encodeURIComponent(id)}`);

export async function correct(sequence, start, end, label, shown) {
  const answer = await ask("/api/gold", { method: "PUT", body: { sequence, start, end, label, shown } });
  noteStale();
  return answer;
}

export async function undo() {
  const answer = await ask("/api/gold", { method: "DELETE", body: {} });
  noteStale();
  return answer;
}
