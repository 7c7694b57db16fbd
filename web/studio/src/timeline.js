// The report's timeline over data that the server sends in pieces, with what a labeller needs besides: signals above it,
// intervals that are painted and dragged, a playhead, and the votes of a text that is being edited.
import { drawCurve, drawRibbon, drawSignal, drawStack, firstStop, theme, Timeline } from "report";
import { Pieces } from "./pieces.js";

const EDGE = 6; // pixels around the end of an interval at which it is taken hold of
const UNKNOWN = 255;

export class StudioTimeline extends Timeline {
  // `acts`: onPick({lane, task, start, stop}), onMoment(), onPaint(start, end, class place or null), onSource(name)
  constructor(data, stage, acts) {
    super(data, stage, () => {});
    Object.assign(this, { acts, marks: [], brush: 1, head: null, focus: null, draft: null, drag: null, live: true });
    this.box.addEventListener("pointerdown", (event) => this.press(event), true);
    this.box.addEventListener("pointermove", (event) => this.pull(event), true);
    this.box.addEventListener("pointerup", (event) => this.release(event), true);
    this.box.addEventListener("pointercancel", () => { this.drag = null; this.queue(); }, true);
    this.watcher = new ResizeObserver(() => { if (this.box.clientWidth !== this.seen) { this.seen = this.box.clientWidth; this.layout(); } });
    this.watcher.observe(this.box);
  }

  destroy() { this.live = false; this.watcher.disconnect(); this.pieces?.stop(); this.box.remove(); this.readout.remove(); }

  // --- data ------------------------------------------------------------------------------------------------------
  open(info, view) {
    this.pieces?.stop();
    this.info = info;
    this.picked = null;
    this.track = null;
    this.view = { left: 0, span: Math.max(1, info.length) };
    this.start = view;
    this.pieces = new Pieces(info.id, info.length, () => { if (this.live) this.arrived(); });
    this.pieces.onFault = (error) => this.acts.onFault?.(error);
    this.pieces.find(this.view, this.px());
  }

  px() { return Math.max(200, (this.box.clientWidth || 1000) - 190) * Math.min(2, window.devicePixelRatio || 1); }

  arrived() {
    const first = !this.track;
    this.use(this.pieces.find(this.view, this.px()));
    if (first) {
      if (this.start) this.setView(this.start.left, this.start.span);
      this.layout();
    }
    this.queue();
    this.acts.onPiece?.(this.piece, first);
  }

  // Take another piece: the task that is picked keeps its place in the sequence, not in the piece.
  use(piece) {
    if (!piece || piece === this.piece) return;
    this.piece = piece;
    this.track = {
      info: { ...this.info, name: this.info.id, media: null }, n: this.info.length, begin: 0, end: this.info.length, lanes: piece.lanes,
      votes: this.data.voters.map((one) => piece.votes.get(one.name)?.code), labels: piece.labels, decoded: piece.decoded, majority: piece.majority, gold: piece.gold,
    };
    const rows = this.makeRows(), shape = (all) => JSON.stringify(all.map((one) => [one.kind, one.name]));
    if (!this.rows || shape(rows) !== shape(this.rows)) { this.rows = rows; this.canvas.setAttribute("aria-label", this.describe()); this.layout(); } else {
      rows.forEach((row, k) => Object.assign(this.rows[k], { codes: row.codes, vote: row.vote, signal: row.signal, law: row.law }));
    }
    if (this.spot) this.picked = { lane: this.spot.lane, task: this.indexOf(this.spot.lane, this.spot.start) };
    this.acts.onSwitch?.(piece);
  }

  // New data behind the same view: after a fit, a correction, a change of the sources.
  refresh() {
    this.pieces.whole = this.pieces.near = this.pieces.asked = null;
    this.pieces.find(this.view, this.px());
  }

  // The task of a lane at an element; of bins, which may overlap, the last that has begun.
  indexOf(lane, element) {
    const tasks = this.piece.lanes[lane];
    let at = Math.min(firstStop(tasks, element), tasks.n - 1);
    while (tasks.step > 1 && tasks.starts[at + 1] <= element) at++;
    return at;
  }

  makeRows() {
    const rows = super.makeRows(), piece = this.piece, track = this.track, draft = this.draft?.piece === piece ? this.draft : null;
    const after = (find, ...more) => { const at = rows.findIndex(find); if (at >= 0) rows.splice(at + 1, 0, ...more); };
    for (const row of rows) if (row.kind === "votes") row.vote = piece.votes.get(row.name);
    if (draft?.law) after((row) => row.kind === "curve" || row.kind === "stack", { kind: "draft-law", name: "as edited", lane: 0, law: draft.law, height: 60 });
    if (draft?.labels) after((row) => row.name === "labels", { kind: "labels", name: "labels as edited", codes: draft.labels, lane: 0, height: 16 });
    if (this.focus !== null) this.putFirst(rows, draft?.vote);
    if (this.acts.onPaint) after((row) => row.name === "labels", { kind: "marks", name: "your corrections", lane: 0, height: 18 });
    if (track.gold && !track.gold.some((one) => one !== UNKNOWN)) rows.splice(rows.findIndex((row) => row.name === "known labels"), 2);
    const signals = piece.signals.map((signal) => ({ kind: "signal", name: signal.name, signal, height: piece.signals.length > 6 ? 30 : 46 }));
    if (signals.length) rows.splice(0, 0, { kind: "head", name: "signals", height: 18 }, ...signals);
    return rows;
  }

  // What the source that is looked at says, and what it would say as edited; rows for comparison only are left out.
  putFirst(rows, vote) {
    const at = rows.findIndex((row) => row.kind === "votes" && row.name === this.focus), own = at < 0 ? [] : rows.splice(at, 1);
    if (at > 0 && rows[at - 1].kind === "head" && rows[at].kind !== "votes") rows.splice(at - 1, 1);
    if (vote) own.push({ kind: "votes", name: own.length ? "as edited" : this.focus, vote, voter: vote, lane: vote.lane, height: 15 });
    if (own.length) rows.unshift({ kind: "head", name: "this source", height: 18 }, ...own);
    for (const name of ["for comparison", "majority vote", "labels (best path)"]) { const k = rows.findIndex((row) => row.name === name); if (k >= 0) rows.splice(k, 1); }
  }

  setMarks(marks) { this.marks = marks; this.queue(); }
  setDraft(draft) {
    this.draft = draft;
    if (!this.track) return;
    this.rows = this.makeRows();
    this.layout();
  }

  // --- drawing ---------------------------------------------------------------------------------------------------
  draw(print) {
    if (!this.pieces || !this.live) return;
    this.use(this.pieces.find(this.view, this.px()));
    super.draw(print);
    if (!this.track) return;
    const look = theme(this.data, print), box = this.rows.find((row) => row.box).box;
    if (this.head !== null) this.drawHead(look, box);
    this.canvas.dataset.step = this.piece.lanes[0].step;
    this.canvas.dataset.fit = this.piece.fit;
    this.canvas.dataset.drawn = 1 + Number(this.canvas.dataset.drawn || 0);
  }

  // While the view only moves, what was drawn once is moved with it; axis and corrections are drawn anew.
  drawRows(pen, look, unit, view) {
    const strip = this.stripFor(look, unit, view), { x, width } = this.rows[1].box, height = this.canvas.height;
    if (!strip) { super.drawRows(pen, look, unit, view); return; }
    pen.drawImage(strip.canvas, Math.round((view.left - strip.from) * strip.scale), 0, width, height, x, 0, width, height);
    for (const row of this.rows) if (!still(row)) this.drawRow(pen, row, row.box, look, unit, view);
  }

  // A picture of the view and as much on both sides, from the second time on that nothing but its place has changed.
  stripFor(look, unit, view) {
    const now = [this.piece, this.rows, this.data, look.paper, view.span, this.width, this.height, unit], { from, to } = this.piece, end = view.left + view.span;
    const same = this.drawnAs?.every((one, k) => one === now[k]);
    this.drawnAs = now;
    if (!same || view.left < from || end > to) { this.strip = null; return null; }
    if (this.strip && this.strip.from <= view.left && this.strip.to >= end) return this.strip;
    const part = { from: Math.max(from, view.left - view.span), to: Math.min(to, end + view.span) };
    const box = this.rows[1].box, scale = box.width / view.span, canvas = this.strip?.canvas || document.createElement("canvas");
    canvas.width = Math.ceil((part.to - part.from) * scale); canvas.height = this.canvas.height;
    const pen = canvas.getContext("2d"), whole = { left: part.from, span: part.to - part.from };
    for (const row of this.rows) if (still(row)) this.drawRow(pen, row, { ...row.box, x: 0, width: whole.span * scale }, look, unit, whole);
    return (this.strip = { ...part, scale, canvas });
  }

  drawRow(pen, row, box, look, unit, view) {
    const lane = row.lane === undefined ? null : this.track.lanes[row.lane];
    if (row.kind === "signal") drawSignal(pen, box, row.signal, row.signal, view, look, unit);
    else if (row.kind === "marks") this.drawMarks(pen, row, box, look, unit, view);
    else if (row.kind === "draft-law") {
      const law = { ...lane, ...row.law };
      if (law.post.length === 2) { drawBand(pen, box, law, view, look); drawCurve(pen, box, law, view, look, unit); } else drawStack(pen, box, law, view, look, unit);
    } else if (row.kind === "votes") this.drawVotes(pen, row, box, look, unit, view, lane);
    else {
      if (row.kind === "curve") drawBand(pen, box, lane, view, look);
      super.drawRow(pen, row, box, look, unit, view);
    }
  }

  drawVotes(pen, row, box, look, unit, view, lane) {
    if (!row.vote) return;
    const { code, classes, spoken } = row.vote, colours = row.lane === 0 || this.data.classes.length === 2 ? (this.data.classes.length === 2 ? look.two : look.many) : look.two;
    this.baseline(pen, box, look, unit);
    const last = row.vote.codes.length - 1, abstain = classes.indexOf(-1);
    drawRibbon(pen, box, lane, view, (i) => {
      const one = classes[code[i]];
      return one >= 0 ? colours[one] : code[i] === abstain || code[i] === last ? null : look.mixed;
    }, spoken && ((i) => 0.25 + 0.75 * spoken[i]));
    pen.fillStyle = look.pick;
    for (const [from, to] of row.vote.faults || []) {
      const x = box.x + ((from - view.left) / view.span) * box.width, width = ((to - from) / view.span) * box.width;
      if (x + width > box.x && x < box.x + box.width) pen.fillRect(Math.max(x, box.x), box.y + box.height - 3 * unit, Math.max(width, 2 * unit), 3 * unit);
    }
  }

  drawMarks(pen, row, box, look, unit, view) {
    this.baseline(pen, box, look, unit);
    const colours = this.data.classes.length === 2 ? look.two : look.many, preview = this.drag?.preview;
    const x = (element) => box.x + Math.min(1, Math.max(0, (element - view.left) / view.span)) * box.width;
    const paint = (mark, alpha) => {
      if (mark.end <= view.left || mark.start >= view.left + view.span) return;
      const left = x(mark.start), width = Math.max(x(mark.end) - left, 2 * unit);
      pen.globalAlpha = alpha;
      pen.fillStyle = mark.label < 0 ? look.paper : colours[mark.label];
      pen.fillRect(left, box.y, width, box.height);
      pen.globalAlpha = 1;
      pen.strokeStyle = look.pick; pen.lineWidth = unit;
      pen.strokeRect(left + 0.5, box.y + 0.5, width - 1, box.height - 1);
    };
    for (const mark of this.marks) paint(mark, 1);
    if (preview) paint(preview, 0.75);
    if (this.from !== undefined && this.from !== null && this.spot) paint({ start: Math.min(this.from, this.spot.start), end: Math.max(this.from + 1, this.spot.stop), label: this.brush }, 0.4);
  }

  drawHead(look, box) {
    const x = box.x + ((this.head - this.view.left) / this.view.span) * box.width;
    if (x < box.x || x > box.x + box.width) return;
    this.pen.fillStyle = look.two[1];
    this.pen.fillRect(Math.round(x) - this.unit, 0, 2 * this.unit, this.canvas.height - 26 * this.unit);
  }

  // --- choosing --------------------------------------------------------------------------------------------------
  pick(lane, task, reveal, exact) {
    const tasks = this.track.lanes[lane];
    if (!tasks.n) return;
    const at = Math.min(Math.max(task, 0), tasks.n - 1), size = strideAt(tasks, at);
    const inside = exact === undefined ? 0 : Math.min(tasks.step - 1, Math.max(0, Math.floor((exact - tasks.starts[at]) / size)));
    const start = Math.round(tasks.starts[at] + inside * size), stop = tasks.step === 1 ? tasks.stops[at] : Math.min(this.info.length, Math.round(start + size));
    this.spot = { lane, task: tasks.first + at * tasks.step + inside, start, stop };
    this.onPick = () => {};
    super.pick(lane, at, reveal);
    this.acts.onPick(this.spot);
  }

  // The task of a lane at an element, wherever it lies.
  goTo(element, lane = 0, reveal = true) {
    if (!this.track) return;
    const at = Math.min(this.info.length - 1, Math.max(0, Math.floor(element)));
    if (reveal && (at < this.view.left || at >= this.view.left + this.view.span)) this.setView(at - this.view.span / 2, this.view.span);
    this.use(this.pieces.find(this.view, this.px()));
    this.pick(lane, this.indexOf(lane, at), false, at);
  }

  // Keys that name a task lead to any one of the sequence, also where many share a pixel or lie beyond what was fetched.
  key(event) {
    const far = event.shiftKey ? 10 : 1, by = { ArrowRight: far, ArrowLeft: -far, Home: -Infinity, End: Infinity }[event.key];
    if (!by || !this.spot || event.altKey || event.ctrlKey || event.metaKey) return super.key(event);
    const { lane, start } = this.spot, tasks = this.track.lanes[lane], next = this.picked.task + by;
    if (tasks.step === 1 && next >= 0 && next < tasks.n) return super.key(event);
    this.goTo(start + by * strideAt(tasks, this.picked.task), lane);
    return true;
  }

  click(event) {
    const spot = this.under(event);
    if (!spot.inside) { if (spot.row?.voter) this.acts.onSource?.(spot.row.voter.name || spot.row.voter.source); return; }
    const y = event.clientY - this.canvas.getBoundingClientRect().top, lane = spot.row ? spot.row.lane : 0;
    const task = this.taskAt(lane, spot.element, spot.row, y);
    if (task >= 0) this.pick(lane, task, false, spot.element);
  }

  changeLane(step) {
    if (!this.spot) return;
    const lanes = this.track.lanes.length, next = (this.spot.lane + step + lanes) % lanes;
    this.goTo(this.spot.start, next);
  }

  // Doubtful elements of the piece that is drawn; beyond it, of the whole sequence.
  nextDoubtful(step) {
    if (super.nextDoubtful(step)) return true;
    const lane = this.pieces.whole?.lanes[0], from = this.spot?.start ?? 0;
    if (!lane || this.piece === this.pieces.whole) return false;
    for (let at = firstStop(lane, from) + step; at >= 0 && at < lane.n; at += step)
      if (lane.post.every((one) => Math.exp(one[at]) < 0.75)) { this.goTo(lane.starts[at]); return true; }
    return false;
  }

  mostDoubtful() {
    const lane = this.pieces.whole.lanes[0];
    const sure = lane.low ? (i) => Math.max(0, lane.low[i] - 0.5, 0.5 - lane.high[i]) : (i) => Math.max(...lane.post.map((one) => one[i]));
    let best = 0;
    for (let i = 1; i < lane.n; i++) if (sure(i) < sure(best)) best = i;
    return lane.starts[best];
  }

  setView(left, span) { super.setView(left, span); this.acts.onMoment?.(); }

  hover(event) {
    const spot = this.track && this.under(event);
    if (!spot?.inside) { this.readout.textContent = ""; return; }
    const lane = this.track.lanes[0], at = this.indexOf(0, Math.floor(spot.element)), names = this.data.classes;
    const law = lane.post.map((one) => Math.exp(one[at]));
    const shown = names.length === 2 ? `P(${names[1]}) ${law[1].toFixed(3)}` : names.map((name, k) => `${name} ${law[k].toFixed(2)}`).join(", ");
    const vote = spot.row?.vote && this.voteAt(spot.row, spot.element);
    this.readout.textContent = `${this.when(lane.starts[at], lane.stops[at])}: ${shown}${vote ? ` · ${spot.row.name}: ${vote}` : ""}`;
    const hold = this.holdable(spot, event);
    this.canvas.classList.toggle("edge", hold?.kind === "edge" || hold?.kind === "axis");
    this.canvas.classList.toggle("draw", hold?.kind === "new");
  }

  voteAt(row, element) {
    const at = this.taskAt(row.lane, element, null, 0);
    return at < 0 ? null : row.vote.codes[row.vote.code[at]];
  }

  // --- painting --------------------------------------------------------------------------------------------------
  // What a press at this place would take hold of: the axis of time, the end of an interval, or nothing yet.
  holdable(spot, event) {
    if (!spot.inside) return null;
    if (!event.shiftKey && event.clientY - this.canvas.getBoundingClientRect().top >= this.rows.at(-1).y) return { kind: "axis" };
    if (!this.acts.onPaint) return null;
    const runs = spot.row?.kind === "marks" ? this.marks : spot.row?.name === "labels" && this.piece.lanes[0].step === 1 ? this.runs() : null;
    if (runs) {
      let best = null, least = EDGE * this.perPixel();
      for (const run of runs)
        for (const side of ["start", "end"]) {
          const far = Math.abs(run[side] - spot.element);
          if (far <= least && run[side] > 0 && run[side] < this.info.length) { least = far; best = { kind: "edge", run, side }; }
        }
      if (best) return best;
    }
    return spot.row?.kind === "marks" || event.shiftKey ? { kind: "new" } : null;
  }

  // Runs of equal labels in the piece that is drawn.
  runs() {
    if (this.piece.runs) return this.piece.runs;
    const lane = this.piece.lanes[0], found = [];
    for (let i = 0; i < lane.n; i++) {
      const last = found.at(-1), label = this.piece.labels[i];
      if (last?.label === label) last.end = lane.stops[i]; else found.push({ start: lane.starts[i], end: lane.stops[i], label });
    }
    return (this.piece.runs = found);
  }

  press(event) {
    if (!this.track || event.button) return;
    const spot = this.under(event), hold = this.holdable(spot, event);
    if (!hold) return;
    event.stopPropagation(); event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { ...hold, from: spot.element, x: event.clientX, preview: null };
    if (hold.kind === "axis") this.scrub(spot.element);
  }

  // Along the axis of time: what is under the pointer is picked, and shown.
  scrub(element) { this.goTo(Math.min(Math.max(element, this.view.left), this.view.left + this.view.span - 1e-6), 0, false); }

  pull(event) {
    if (!this.drag) return;
    event.stopPropagation();
    const at = this.under(event).element, drag = this.drag;
    if (drag.kind === "axis") { this.scrub(at); return; }
    if (Math.abs(event.clientX - drag.x) < 3 && !drag.preview) return;
    drag.preview = drag.kind === "new" ? this.span(drag.from, at, this.brush) : this.stretch(drag, at);
    this.queue();
  }

  release(event) {
    if (!this.drag) return;
    event.stopPropagation();
    const drag = this.drag;
    this.drag = null;
    if (drag.kind === "axis") return;
    if (drag.preview && drag.preview.end > drag.preview.start) this.acts.onPaint(drag.preview.start, drag.preview.end, drag.preview.label < 0 ? null : drag.preview.label);
    else if (!drag.preview) this.click(event);
    this.queue();
  }

  // All elements that were touched; a border that is only just missed is meant.
  span(a, b, label) {
    const near = Math.min(0.5, EDGE * this.perPixel()), low = Math.min(a, b), high = Math.max(a, b);
    const start = Math.max(0, Math.floor(low + near)), end = Math.min(this.info.length, Math.ceil(high - near));
    return { start, end: Math.max(end, Math.min(start + 1, this.info.length)), label };
  }

  perPixel() { return this.view.span / (this.rows.find((row) => row.box).box.width / this.unit); }

  // The end of an interval moves: what it gains has its label, what it loses that of its neighbour (or none).
  stretch({ run, side }, at) {
    const to = Math.min(this.info.length, Math.max(0, Math.round(at))), from = run[side], grows = side === "end" ? to > from : to < from;
    const inMarks = this.marks.includes(run), other = inMarks ? -1 : this.neighbour(run, side);
    return { start: Math.min(from, to), end: Math.max(from, to), label: grows ? run.label : other };
  }

  neighbour(run, side) {
    const found = this.runs().find((one) => (side === "end" ? one.start === run.end : one.end === run.start));
    return found ? found.label : -1;
  }
}

// Elements from one task to the next, around a task or a bin of several; the last bin may be short.
function strideAt(tasks, at) {
  if (tasks.n < 2) return Math.max(1, (tasks.stops[0] - tasks.starts[0]) / tasks.step);
  const from = Math.min(at, tasks.n - 2);
  return Math.max(1, (tasks.starts[from + 1] - tasks.starts[from]) / tasks.step);
}

// Rows whose picture moves with the view as it is.
const still = (row) => !["axis", "head", "marks"].includes(row.kind);

// Between what the tasks of every bin lie.
function drawBand(pen, box, lane, view, look) {
  if (!lane.low) return;
  const scale = box.width / view.span, last = Math.min(lane.n, firstStop(lane, view.left + view.span) + 1);
  pen.fillStyle = look.two[1]; pen.globalAlpha = 0.3;
  for (let i = firstStop(lane, view.left); i < last; i++) {
    const left = Math.max(0, (lane.starts[i] - view.left) * scale), right = Math.min(box.width, (lane.stops[i] - view.left) * scale);
    if (right > left) pen.fillRect(box.x + left, box.y + box.height * (1 - lane.high[i]), right - left, box.height * (lane.high[i] - lane.low[i]));
  }
  pen.globalAlpha = 1;
}
