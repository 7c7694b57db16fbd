// Corrections as intervals that do not overlap: later ones win, and what is taken back is gone.
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

export const known = (id) => ask(`/api/gold?sequence=${encodeURIComponent(id)}`);

// Each is on disk when the answer comes.
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
