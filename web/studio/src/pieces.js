// Parts of a sequence as the server sends them, ready for the report's drawing code. A piece covers the view and as much
// again on both sides, so that moving about seldom waits; one more piece covers the whole sequence, coarsely.
import { ask, place, query, unpack } from "./api.js";

const AROUND = 1; // views on either side

function openLane(stored, length) {
  const n = stored.n, starts = new Int32Array(n), stops = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    starts[i] = stored.starts ? stored.starts[i] : stored.start + stored.stride * i;
    stops[i] = stored.stops ? stored.stops[i] : Math.min(starts[i] + stored.size, length);
  }
  return { n, first: stored.first, step: stored.step, starts, stops, layers: stored.step > 1 ? 1 : undefined, ...openLaw(stored.probability) };
}

// Log-probabilities of all labels, and between what they lie where a bin holds several tasks.
export function openLaw(columns) {
  const scale = (packed) => { const found = unpack(packed); return found && Float32Array.from(found, (one) => one / 65535); };
  const logs = (values) => Float32Array.from(values, Math.log);
  const means = columns.map((one) => scale(one.mean));
  if (means.length > 1) return { post: means.map(logs), low: null, high: null };
  return { post: [logs(means[0].map((one) => 1 - one)), logs(means[0])], low: scale(columns[0].min), high: scale(columns[0].max) };
}

export function openVote(stored) {
  const shares = stored.shares && stored.shares.map(unpack), silent = shares && stored.codes.map((_, code) => stored.classes[code] < 0);
  const code = unpack(stored.code);
  // How strongly a bin is painted: the share of its tasks on which the source spoke.
  const spoken = shares && Float32Array.from(code, (_, i) => shares.reduce((sum, one, k) => (silent[k] ? sum : sum + one[i] / 255), 0));
  return { ...stored, code, spoken };
}

// A channel as the report draws it: from its least to its largest value 0 to TOP, and NONE where there is no number.
const TOP = 62, NONE = 63;
function openSignal(stored) {
  const { low, high } = stored, range = high > low ? high - low : 1;
  const code = (packed) => Float32Array.from(unpack(packed), (value) => (Number.isNaN(value) ? NONE : (TOP * (value - low)) / range));
  const bins = { low: code(stored.min), high: code(stored.max) };
  bins.n = bins.low.length;
  return { name: stored.name, step: stored.step, bins, begin: stored.first * stored.per, n: bins.n * stored.step * stored.per };
}

export function openPiece(answer, length) {
  const lanes = answer.lanes.map((one) => openLane(one, length)), first = answer.lanes[0];
  const row = (name) => unpack(first?.[name]);
  return {
    from: answer.from, to: answer.to, fit: answer.fit, lanes, votes: new Map(answer.votes.map((one) => [one.source, openVote(one)])),
    labels: row("labels"), decoded: row("decoded"), majority: row("majority"), gold: row("gold"), corrected: row("corrected"),
    signals: (answer.signals || []).map(openSignal),
    tokens: answer.tokens,
  };
}

export class Pieces {
  constructor(id, length, onPiece) {
    Object.assign(this, { id, length, onPiece, whole: null, near: null, asked: null, abort: null });
  }

  // The best piece for a view, if there is one; what is missing is asked for.
  find(view, px) {
    const wanted = view.span / px, end = view.left + view.span;
    const covers = (piece, room = 0) => piece && piece.from <= Math.max(0, view.left - room) && piece.to >= Math.min(this.length, end + room);
    const suits = (piece) => covers(piece, 0.4 * view.span) && (piece.finest || (piece.grain <= 1.5 * wanted && piece.grain >= wanted / 4));
    const best = [this.near, this.whole].find(suits);
    if (!best && !suits(this.asked)) {
      if (this.whole) this.fetch(view.left - AROUND * view.span, end + AROUND * view.span, (1 + 2 * AROUND) * px);
      else if (!this.asked) this.fetch(0, this.length, px);
    }
    return best || (covers(this.near) ? this.near : this.whole);
  }

  async fetch(from, to, px) {
    const asked = { from: Math.max(0, Math.floor(from)), to: Math.min(this.length, Math.ceil(to)) };
    asked.px = Math.round(Math.min(8000, Math.max(50, px * Math.min(1, (asked.to - asked.from) / (to - from)))));
    asked.grain = (asked.to - asked.from) / asked.px;
    this.abort?.abort();
    this.abort = new AbortController();
    this.asked = asked;
    try {
      const piece = openPiece(await ask(`${place(this.id, "tracks")}?${query({ from: asked.from, to: asked.to, px: asked.px })}`, { abort: this.abort.signal }), this.length);
      Object.assign(piece, asked, { finest: [...piece.lanes, ...piece.signals].every((one) => one.step === 1) });
      if (this.whole) this.near = piece; else this.whole = piece;
      this.asked = null;
      this.onPiece(piece);
    } catch (error) {
      if (this.asked === asked) this.asked = null;
      if (error.name !== "AbortError") this.onFault?.(error);
    }
  }

  stop() { this.abort?.abort(); }
}
