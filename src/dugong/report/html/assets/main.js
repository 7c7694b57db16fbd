// Putting the viewer together: the list, the timeline, its tools, the explanation, and the labels as a table.

const MOST_ROWS = 500;

function signed(value) {
  const text = Math.abs(value).toFixed(2);
  return text === "0.00" ? "0.00" : `${value < 0 ? "−" : "+"}${text}`;
}

function startViewer() {
  const data = JSON.parse(document.getElementById("data").textContent), root = document.getElementById("viewer");
  if (!data.tracks.length) return;
  data.voters.forEach((voter, place) => { voter.place = place; });
  root.hidden = false;
  root.className = "viewer";
  const chooser = make("div", root, { class: "chooser" }), stage = make("div", root, { class: "stage" });
  const title = make("h3", stage, {}), fact = make("p", stage, { class: "small" });
  const tools = make("div", stage, { class: "tools", role: "group", "aria-label": "Timeline" });
  makeLegend(data, stage);
  const state = { data, target: null };
  const timeline = new Timeline(data, stage, (picked) => showExplanation(state, picked));
  make("p", stage, { class: "small hint" }, "Click a piece to see why it has its label. Drag to move; Ctrl and the wheel, or + and −, to zoom; arrows, N and P on the keyboard.");
  state.timeline = timeline;
  makeTools(state, tools);
  state.panel = make("div", stage, { class: "explanation", "aria-live": "polite" });
  state.table = make("details", stage, {});
  make("summary", state.table, {}, "Labels of this sequence as a table");
  state.table.addEventListener("toggle", () => fillTable(state));
  const choose = (place) => {
    const track = openTrack(data, place);
    title.replaceChildren("Sequence ", bdi(track.info.name));
    fact.textContent = factsOf(track.info, data.path);
    timeline.show(track);
    state.update();
    timeline.pick(0, timeline.mostDoubtful());
    fillTable(state);
  };
  state.list = new SequenceList(data, chooser, choose);
  let width = 0;
  new ResizeObserver(() => { if (timeline.box.clientWidth !== width) { width = timeline.box.clientWidth; timeline.layout(); } }).observe(timeline.box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { timeline.draw(); recolour(data); });
  addEventListener("beforeprint", () => timeline.layout(true));
  addEventListener("afterprint", () => timeline.layout());
}

function factsOf(info, path) {
  const share = (value) => `${(100 * value).toFixed(1)} %`, parts = [`${info.length.toLocaleString("en")} elements`, `uncertainty ${share(info.uncertainty)}`];
  if (info.disagreement !== null) parts.push(`disagreement between resolutions ${share(info.disagreement)}`);
  parts.push(`different from majority vote ${share(info.difference)}`);
  if (info.wrong !== null) parts.push(`wrong on known labels ${share(info.wrong)}${path ? ` (best path ${share(info.wrongPath)})` : ""}`);
  if (info.begin > 0 || info.end < info.length) parts.push(`shown: elements ${info.begin} to ${info.end - 1}`);
  return parts.join(" · ");
}

function makeLegend(data, stage) {
  const legend = make("ul", stage, { class: "legend", "aria-label": "Colours" });
  data.classes.forEach((name, k) => { const item = make("li", legend, {}); make("i", item, { "data-class": k }); item.append(bdi(name)); });
  const item = make("li", legend, {});
  make("i", item, { class: "none" });
  item.append("no vote");
  if (data.lanes.length > 1) make("li", legend, {}, "larger pieces: the stronger the colour, the likelier");
  recolour(data);
}

function recolour(data) {
  const look = theme(data);
  for (const mark of document.querySelectorAll("[data-class]"))
    mark.style.background = (data.classes.length === 2 ? look.two : look.many)[mark.dataset.class];
}

function makeTools(state, tools) {
  const timeline = state.timeline;
  const button = (words, label, act) => make("button", tools, { type: "button", "aria-label": label, title: label }, words).addEventListener("click", act);
  button("−", "Zoom out", () => timeline.zoom(0.5));
  button("+", "Zoom in", () => timeline.zoom(2));
  button("Whole", "Show the whole sequence", () => timeline.whole());
  button("◀", "Move back", () => timeline.pan(-0.5));
  button("▶", "Move on", () => timeline.pan(0.5));
  button("Next doubtful", "Go to the next doubtful element", () => timeline.nextDoubtful(1));
  const place = make("label", tools, {}, "Position"), slider = make("input", place, { type: "range", min: "0", max: "1000", value: "0" });
  slider.addEventListener("input", () => {
    const free = timeline.track.n - timeline.view.span;
    timeline.setView(timeline.track.begin + (free * slider.value) / 1000, timeline.view.span);
  });
  timeline.onView = (view) => {
    const free = timeline.track.n - view.span;
    slider.disabled = free <= 0;
    slider.value = free > 0 ? Math.round((1000 * (view.left - timeline.track.begin)) / free) : 0;
  };
  if (state.data.classes.length > 2) {
    const label = make("label", tools, {}, "Explain"), select = make("select", label, {});
    make("option", select, { value: "" }, "the likeliest class");
    state.data.classes.forEach((name, k) => make("option", select, { value: String(k) }, name));
    select.addEventListener("change", () => {
      state.target = select.value === "" ? null : Number(select.value);
      if (timeline.picked) showExplanation(state, timeline.picked);
    });
  }
  state.update = () => timeline.onView(timeline.view);
}

function targetOf(state, lane, task) {
  const laws = lane.post.map((one) => one[task]);
  if (laws.length === 2) return 1;
  return state.target === null ? laws.indexOf(Math.max(...laws)) : state.target;
}

function showExplanation(state, picked) {
  const { data, timeline, panel } = state, track = timeline.track, lane = track.lanes[picked.lane], labels = data.lanes[picked.lane].labels;
  const found = explain(data, track, picked.lane, picked.task, targetOf(state, lane, picked.task));
  const chance = Math.exp(lane.post[found.target][picked.task]);
  panel.replaceChildren();
  const where = picked.lane ? [bdi(data.lanes[picked.lane].name), ` ${lane.first + picked.task}, ${timeline.when(lane.starts[picked.task], lane.stops[picked.task])}`]
    : [`${timeline.when(lane.starts[picked.task], lane.stops[picked.task])}`.replace(/^e/, "E")];
  const heading = make("h4", panel, {}, ...where, ": P(", bdi(labels[found.target]), `) = ${chance.toFixed(3)}, log-odds ${beyond(found.total)}`);
  heading.dataset.total = found.total.toFixed(6);
  showPicture(panel, track, lane.starts[picked.task]);
  const body = explanationTable(panel, found, labels);
  const most = Math.max(1e-9, ...[found.prior, found.neighbours, found.averaging || 0, found.total, ...found.own.map((one) => one.value)].map(Math.abs));
  explanationRow(body, "prior", "prior: before any vote", "", found.prior, most);
  for (const one of found.own) explanationRow(body, "own", bdi(one.voter.name), bdi(one.voter.codes[one.code]), one.value, most);
  explanationRow(body, "neighbours", "neighbours: votes on other tasks", "", found.neighbours, most);
  if (found.averaging !== null) explanationRow(body, "averaging", "averaging with a more cautious answer", "", found.averaging, most);
  explanationRow(body, "sum", "log-odds", "", found.total, most);
  const unsplit = found.unsplit.map((one) => one.voter.name);
  if (unsplit.length) make("p", panel, { class: "small" }, "Counted among the neighbours, because they are modelled over the whole sequence: ", bdi(unsplit.join(", ")), ".");
  const around = containing(data, track, picked.lane, picked.task);
  if (around.length) {
    const note = make("p", panel, { class: "small" }, "Among the neighbours: ");
    around.slice(0, 12).forEach((one, k) => note.append(k ? "; " : "", bdi(one.voter.name), " votes ", bdi(one.voter.codes[one.code]), ` on ${timeline.when(one.from, one.to)}`));
    note.append(".");
  }
}

function showPicture(panel, track, element) {
  const media = track.info.media;
  if (!media || media.kind !== "frames") return;
  const found = pictureOf(media, element - track.begin), shown = make("canvas", panel, { class: "picture", role: "img", "aria-label": `Picture of element ${track.begin + found.element}` });
  shown.width = media.width; shown.height = media.height;
  shown.getContext("2d").drawImage(found.canvas, 0, 0);
}

function beyond(total) { return Math.abs(total) > LOG_LIMIT - 1 ? `beyond ${signed(Math.sign(total) * 130)}` : signed(total); }

function explanationTable(panel, found, labels) {
  const table = make("table", panel, {});
  make("caption", table, {}, "What speaks for ", bdi(labels[found.target]), " (right) and against it (left), in log-odds");
  const columns = make("colgroup", table, {});
  for (const one of ["col-name", "col-vote", "col-bar", "col-value"]) make("col", columns, { class: one });
  const head = make("tr", make("thead", table, {}), {});
  for (const words of ["What", "Vote", "", "Log-odds"]) make("th", head, { scope: "col", ...(words === "Log-odds" ? { class: "n" } : {}) }, words);
  return make("tbody", table, {});
}

function explanationRow(body, kind, name, vote, value, most) {
  const row = make("tr", body, { class: kind, "data-kind": kind, "data-value": value.toFixed(6) });
  make("th", row, { scope: "row" }, name);
  make("td", row, {}, vote);
  const bar = make("div", make("td", row, {}), { class: "bar", "aria-hidden": "true" });
  const piece = make("span", bar, { class: value < 0 ? "against" : "for" });
  piece.style.width = `${Math.min(50, (50 * Math.abs(value)) / most)}%`;
  make("td", row, { class: "n" }, beyond(value));
}

// The decoded labels as a table, for those who cannot or would not look at the picture.
function fillTable(state) {
  const details = state.table, track = state.timeline.track;
  for (const old of details.querySelectorAll(".scroll, p")) old.remove();
  if (!details.open) return;
  const box = make("div", details, { class: "scroll", tabindex: "0", role: "region", "aria-label": "Labels of this sequence" });
  const table = make("table", box, {}), lane = track.lanes[0], names = state.data.classes;
  make("caption", table, {}, "Runs of equal labels");
  const head = make("tr", make("thead", table, {}), {});
  for (const words of ["From", "To", "Label", "Mean probability", ...(track.gold ? ["Gold agrees"] : [])]) make("th", head, { scope: "col" }, words);
  const body = make("tbody", table, {});
  let rows = 0;
  for (let i = 0; i < track.n; ) {
    let j = i, sum = 0, right = 0, known = 0;
    const label = track.decoded[i];
    for (; j < track.n && track.decoded[j] === label; j++) {
      sum += Math.exp(lane.post[label][j]);
      if (track.gold && track.gold[j] < names.length) { known++; right += track.gold[j] === label ? 1 : 0; }
    }
    if (rows++ < MOST_ROWS) {
      const row = make("tr", body, {});
      make("th", row, { scope: "row" }, String(lane.starts[i]));
      make("td", row, { class: "n" }, String(lane.stops[j - 1] - 1));
      make("td", row, {}, bdi(names[label]));
      make("td", row, { class: "n" }, (sum / (j - i)).toFixed(3));
      if (track.gold) make("td", row, { class: "n" }, known ? `${right} of ${known}` : "–");
    }
    i = j;
  }
  if (rows > MOST_ROWS) make("p", details, { class: "small" }, `The first ${MOST_ROWS} of ${rows} runs.`);
}

startViewer();
