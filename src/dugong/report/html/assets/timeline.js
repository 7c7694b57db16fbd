// One timeline: rows of a track, what part is visible, which task is picked.

function make(kind, parent, options, ...words) {
  const element = document.createElement(kind);
  for (const [key, value] of Object.entries(options || {})) {
    if (key === "class") element.className = value; else element.setAttribute(key, value);
  }
  element.append(...words);
  if (parent) parent.append(element);
  return element;
}

function bdi(text) { return make("bdi", null, {}, text); }

class Timeline {
  constructor(data, stage, onPick) {
    this.data = data;
    this.onPick = onPick;
    this.box = make("div", stage, { class: "rows" });
    this.names = make("div", this.box, { "aria-hidden": "true" });
    this.canvas = make("canvas", this.box, { tabindex: "0", role: "img" });
    this.pen = this.canvas.getContext("2d");
    this.readout = make("p", stage, { class: "readout", "aria-hidden": "true" });
    this.listen();
  }

  show(track) {
    this.track = track;
    this.view = { left: track.begin, span: track.n };
    this.picked = null;
    this.rows = this.makeRows();
    this.canvas.setAttribute("aria-label", this.describe());
    this.layout();
  }

  describe() {
    const info = this.track.info;
    return `Timeline of sequence ${info.name}, ${info.length} elements: probability, labels and the votes of ` +
      `${this.data.voters.length} sources. Left and right arrow choose a task, up and down a resolution, plus and minus ` +
      `zoom, 0 shows all, N and P go to the next and previous doubtful element. The table below holds the same labels.`;
  }

  makeRows() {
    const data = this.data, track = this.track, rows = [], head = (name) => rows.push({ kind: "head", name, height: 18 });
    const many = data.classes.length > 2;
    const labels = (name, codes) => rows.push({ kind: "labels", name, codes, lane: 0, height: 16 });
    const seen = mediaRows(track);
    if (seen.length) { head("data"); rows.push(...seen); }
    head("label model");
    rows.push({ kind: many ? "stack" : "curve", name: many ? "probabilities" : `P(${data.classes[1]})`, lane: 0, height: 96 });
    labels("labels", track.labels);
    if (data.path) labels("labels (best path)", track.decoded);
    data.lanes.forEach((lane, k) => { if (k) rows.push({ kind: "law", name: lane.name, lane: k, height: 16 }); });
    if (track.gold) { head("known labels"); labels("gold", track.gold); }
    head("for comparison");
    labels("majority vote", track.majority);
    data.lanes.forEach((lane, k) => {
      const voters = data.voters.filter((voter) => voter.lane === k);
      if (!voters.length) return;
      head(k ? `sources on ${lane.name}` : "sources on elements");
      for (const voter of voters) rows.push({ kind: "votes", name: voter.name, voter, lane: k, height: 15 });
    });
    rows.push({ kind: "axis", name: track.info.seconds ? "time" : "element", height: 24 });
    return rows;
  }

  // Places of the rows in CSS pixels; names stand beside them, or above them on a narrow screen.
  layout(print) {
    if (!this.track) return;
    const width = Math.max(200, Math.min(this.box.clientWidth, print ? PAPER_WIDTH : Infinity)), narrow = width < 560;
    this.left = narrow ? 0 : NAME_WIDTH;
    this.names.replaceChildren();
    let y = 6;
    for (const row of this.rows) {
      const named = row.kind !== "head" && row.kind !== "axis";
      if (narrow && named) y += 17;
      row.y = y;
      const label = make("span", this.names, { class: `row-name${row.kind === "head" ? " head" : ""}`, title: row.name }, bdi(this.fit(row.name, narrow ? width - 24 : NAME_WIDTH - 14)));
      label.style.top = `${narrow && named ? y - 17 : y + (row.kind === "curve" || row.kind === "stack" ? 2 : row.kind === "head" ? 5 : 1)}px`;
      label.style.maxWidth = narrow ? "95%" : `${NAME_WIDTH - 14}px`;
      label.dataset.middle = y + row.height / 2;
      if (narrow && row.kind === "axis") label.remove();
      y += row.height + (row.kind === "head" ? 0 : 4);
    }
    this.width = width; this.height = y + 2;
    this.unit = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * this.unit); this.canvas.height = Math.round(this.height * this.unit);
    this.canvas.style.width = `${width}px`; this.canvas.style.height = `${this.height}px`;
    this.draw(print);
  }

  // A name that fits: its beginning and, as names often begin alike, more of its end.
  fit(name, width) {
    const pen = this.pen, letters = Array.from(name);
    pen.font = `12.8px ${getComputedStyle(this.box).fontFamily}`;
    if (pen.measureText(name).width <= width) return name;
    for (let keep = Math.min(letters.length - 1, 120); keep > 4; keep--) {
      const tail = Math.ceil(keep * 0.55), text = `${letters.slice(0, keep - tail).join("")}…${letters.slice(-tail).join("")}`;
      if (pen.measureText(text).width <= width) return text;
    }
    return "…";
  }

  draw(print) {
    if (!this.track) return;
    const started = performance.now(), pen = this.pen, unit = this.unit, look = theme(this.data, print), view = this.view;
    pen.fillStyle = look.paper;
    pen.fillRect(0, 0, this.canvas.width, this.canvas.height);
    for (const row of this.rows) {
      const box = { x: this.left * unit, y: row.y * unit, width: (this.width - this.left - 8) * unit, height: row.height * unit };
      if (this.left === 0) { box.x = 8 * unit; box.width = (this.width - 16) * unit; }
      row.box = box;
    }
    this.drawRows(pen, look, unit, view);
    if (this.picked) this.drawPick(pen, look, unit);
    this.note(performance.now() - started);
  }

  drawRows(pen, look, unit, view) { for (const row of this.rows) this.drawRow(pen, row, row.box, look, unit, view); }

  // What is visible where, for scripts and tests: the canvas itself cannot be asked.
  note(milliseconds) {
    const box = this.rows[1].box, facts = this.canvas.dataset;
    facts.from = this.view.left; facts.to = this.view.left + this.view.span;
    facts.left = box.x / this.unit; facts.width = box.width / this.unit;
    facts.milliseconds = milliseconds.toFixed(2);
  }

  drawRow(pen, row, box, look, unit, view) {
    const track = this.track, lane = row.lane === undefined ? null : track.lanes[row.lane];
    const palette = (k) => (k === 0 || this.data.classes.length === 2 ? (this.data.classes.length === 2 ? look.two : look.many) : look.two);
    if (row.kind === "curve") drawCurve(pen, box, lane, view, look, unit);
    else if (row.kind === "stack") drawStack(pen, box, lane, view, look, unit);
    else if (row.kind === "words") drawWords(pen, box, track.info.media.words, track.begin, view, look, unit);
    else if (row.kind === "frames") drawFrames(pen, box, track.info.media, track.begin, view, unit);
    else if (row.kind === "signal") drawSignal(pen, box, row.channel, track, view, look, unit);
    else if (row.kind === "axis") drawAxis(pen, box, view, look, unit, track.info.seconds);
    else if (row.kind === "labels") {
      const colours = palette(0);
      this.baseline(pen, box, look, unit);
      drawRibbon(pen, box, lane, view, (i) => colours[row.codes[i]] || null);
    } else if (row.kind === "law") {
      this.baseline(pen, box, look, unit);
      drawRibbon(pen, box, lane, view, () => look.two[1], (i) => 0.06 + 0.94 * Math.exp(lane.post[1][i]));
    } else if (row.kind === "votes") {
      const colours = palette(row.lane), voter = row.voter, codes = track.votes[voter.place], abstain = voter.classes.indexOf(-1);
      this.baseline(pen, box, look, unit);
      drawRibbon(pen, box, lane, view, (i) => {
        const code = codes[i], place = voter.classes[code];
        if (place >= 0) return colours[place];
        return code === abstain || code === voter.codes.length - 1 ? null : look.mixed;
      });
    }
  }

  // A dotted line on which coloured pieces lie: where nothing covers it, nobody spoke.
  baseline(pen, box, look, unit) {
    const y = Math.round(box.y + box.height / 2) + 0.5;
    pen.strokeStyle = look.line; pen.lineWidth = unit;
    pen.setLineDash([unit, 3 * unit]);
    pen.beginPath(); pen.moveTo(box.x, y); pen.lineTo(box.x + box.width, y); pen.stroke();
    pen.setLineDash([]);
  }

  drawPick(pen, look, unit) {
    const lane = this.track.lanes[this.picked.lane], task = this.picked.task, box = this.rows.find((row) => row.box).box;
    const scale = box.width / this.view.span, x = (element) => box.x + (element - this.view.left) * scale;
    const left = Math.max(x(lane.starts[task]), box.x), right = Math.min(x(lane.stops[task]), box.x + box.width);
    if (right < box.x || left > box.x + box.width) return;
    pen.fillStyle = look.pick; pen.globalAlpha = 0.13;
    pen.fillRect(left, 0, Math.max(right - left, 2 * unit), this.canvas.height - 26 * unit);
    pen.globalAlpha = 1; pen.strokeStyle = look.pick; pen.lineWidth = 1.5 * unit;
    for (const row of this.rows) {
      if (row.lane !== this.picked.lane) continue;
      pen.strokeRect(left, row.box.y - unit, Math.max(right - left, 2 * unit), row.box.height + 2 * unit);
    }
  }

  // --- moving about ----------------------------------------------------------------------------------------------
  setView(left, span) {
    const track = this.track, least = Math.min(track.n, 8);
    this.view.span = Math.min(track.n, Math.max(least, span));
    this.view.left = Math.min(track.end - this.view.span, Math.max(track.begin, left));
    this.queue();
    if (this.onView) this.onView(this.view);
  }

  zoom(factor, centre) {
    const at = centre === undefined ? this.middle() : centre, span = this.view.span / factor;
    const share = (at - this.view.left) / this.view.span;
    this.setView(at - share * Math.min(this.track.n, span), span);
  }

  middle() {
    if (this.picked) {
      const lane = this.track.lanes[this.picked.lane], at = (lane.starts[this.picked.task] + lane.stops[this.picked.task]) / 2;
      if (at >= this.view.left && at <= this.view.left + this.view.span) return at;
    }
    return this.view.left + this.view.span / 2;
  }

  pan(share) { this.setView(this.view.left + share * this.view.span, this.view.span); }
  whole() { this.setView(this.track.begin, this.track.n); }

  queue() {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => { this.queued = false; this.draw(); });
  }

  pick(lane, task, reveal) {
    const tasks = this.track.lanes[lane];
    if (!tasks.n) return;
    const at = Math.min(Math.max(task, 0), tasks.n - 1);
    this.picked = { lane, task: at };
    if (reveal) {
      const from = tasks.starts[at], to = tasks.stops[at], end = this.view.left + this.view.span;
      if (from < this.view.left || to > end) this.setView((from + to) / 2 - this.view.span / 2, Math.max(this.view.span, Math.min(this.track.n, to - from)));
    }
    this.queue();
    this.onPick(this.picked);
  }

  // The element that is least certain.
  mostDoubtful() {
    const laws = this.track.lanes[0].post;
    let best = 0, least = Infinity;
    for (let i = 0; i < this.track.n; i++) {
      let most = -Infinity;
      for (const law of laws) if (law[i] > most) most = law[i];
      if (most < least) { least = most; best = i; }
    }
    return best;
  }

  // The next element whose likeliest class stays below 0.75.
  nextDoubtful(step) {
    const lane = this.track.lanes[0];
    let at = this.picked && this.picked.lane === 0 ? this.picked.task : step > 0 ? -1 : lane.n;
    for (at += step; at >= 0 && at < lane.n; at += step) {
      if (lane.post.every((one) => Math.exp(one[at]) < 0.75)) { this.pick(0, at, true); return true; }
    }
    return false;
  }

  // --- where the pointer is --------------------------------------------------------------------------------------
  under(event) {
    const frame = this.canvas.getBoundingClientRect(), x = (event.clientX - frame.left) * this.unit, y = event.clientY - frame.top;
    const box = this.rows[1].box, element = this.view.left + ((x - box.x) / box.width) * this.view.span;
    let row = null;
    for (const one of this.rows) if (one.lane !== undefined && y >= one.y - 2 && y < one.y + one.height + 2) row = one;
    return { element, row, inside: x >= box.x && x <= box.x + box.width };
  }

  taskAt(laneIndex, element, row, y) {
    const lane = this.track.lanes[laneIndex], first = firstStop(lane, Math.floor(element));
    const layers = layersOf(lane);
    if (layers > 1 && row) {
      const wanted = Math.min(layers - 1, Math.max(0, Math.floor(((y - row.y) / row.height) * layers)));
      for (let i = first; i < Math.min(lane.n, first + 8); i++) if (i % layers === wanted && lane.starts[i] <= element) return i;
    }
    return first < lane.n && lane.starts[first] <= element ? first : -1;
  }

  listen() {
    const canvas = this.canvas, fingers = new Map();
    let start = null, apart = 0;
    canvas.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, event);
      start = { x: event.clientX, left: this.view.left, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) { this.hover(event); return; }
      fingers.set(event.pointerId, event);
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()], now = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
        if (apart) this.zoom(now / apart);
        apart = now; start.moved = true;
        return;
      }
      const moved = event.clientX - start.x;
      if (Math.abs(moved) > 4) start.moved = true;
      if (start.moved) this.setView(start.left - (moved * this.unit / this.rows[1].box.width) * this.view.span, this.view.span);
    });
    const up = (event) => {
      const was = fingers.delete(event.pointerId);
      apart = 0;
      if (was && start && !start.moved && event.type === "pointerup") this.click(event);
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => { this.readout.textContent = ""; });
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) { event.preventDefault(); this.zoom(Math.exp(-event.deltaY / 200), this.under(event).element); }
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) { event.preventDefault(); this.pan((event.deltaX || event.deltaY) / 800); }
    }, { passive: false });
    canvas.addEventListener("dblclick", (event) => this.zoom(3, this.under(event).element));
    canvas.addEventListener("keydown", (event) => { if (this.key(event)) event.preventDefault(); });
  }

  click(event) {
    const spot = this.under(event);
    if (!spot.inside) return;
    const y = event.clientY - this.canvas.getBoundingClientRect().top;
    const lane = spot.row ? spot.row.lane : 0, task = this.taskAt(lane, spot.element, spot.row, y);
    if (task >= 0) this.pick(lane, task);
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return false;
    const now = this.picked || { lane: 0, task: firstStop(this.track.lanes[0], this.view.left) - (event.key === "ArrowRight" ? 1 : 0) };
    const step = event.shiftKey ? 10 : 1;
    const acts = {
      ArrowRight: () => this.pick(now.lane, now.task + step, true), ArrowLeft: () => this.pick(now.lane, now.task - step, true),
      ArrowDown: () => this.changeLane(1), ArrowUp: () => this.changeLane(-1),
      Home: () => this.pick(now.lane, 0, true), End: () => this.pick(now.lane, Infinity, true),
      PageDown: () => this.pan(0.8), PageUp: () => this.pan(-0.8),
      "+": () => this.zoom(2), "=": () => this.zoom(2), "-": () => this.zoom(0.5), 0: () => this.whole(),
      n: () => this.nextDoubtful(1), p: () => this.nextDoubtful(-1), Enter: () => this.pick(now.lane, now.task, true),
    };
    const act = acts[event.key] || acts[event.key.toLowerCase()];
    if (!act) return false;
    act();
    return true;
  }

  changeLane(step) {
    const now = this.picked || { lane: 0, task: 0 }, lanes = this.track.lanes;
    const next = (now.lane + step + lanes.length) % lanes.length, at = lanes[now.lane].starts[now.task];
    const task = firstStop(lanes[next], at);
    this.pick(next, Math.min(task, lanes[next].n - 1), true);
  }

  hover(event) {
    const spot = this.under(event);
    if (!spot.inside || !this.track) { this.readout.textContent = ""; return; }
    const lane = this.track.lanes[0], at = Math.min(lane.n - 1, Math.max(0, Math.floor(spot.element) - this.track.begin));
    const parts = lane.post.map((one, k) => `${this.data.classes[k]} ${Math.exp(one[at]).toFixed(3)}`);
    this.readout.replaceChildren(`${this.when(lane.starts[at], lane.stops[at])}: P(`, bdi(this.data.classes.length === 2 ? `${this.data.classes[1]}` : "class"), `) `,
      this.data.classes.length === 2 ? Math.exp(lane.post[1][at]).toFixed(3) : bdi(parts.join(", ")));
  }

  // An element, or a span of them, with the time if it is known.
  when(from, to) {
    const seconds = this.track.info.seconds, one = to - from === 1;
    const place = (one ? `element ${from}` : `elements ${from} to ${to - 1}`) + quoted(this.track, from, to);
    return seconds ? `${place} (${clock(seconds[0] + from * seconds[1], seconds[1])})` : place;
  }
}
