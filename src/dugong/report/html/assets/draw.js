// Drawing rows of a timeline on a canvas, in device pixels. Only what is visible is touched; where tasks are narrower
// than a pixel, their colours are averaged.

const NAME_WIDTH = 184, PAPER_WIDTH = 660;

function parseColour(text) {
  const value = parseInt(text.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function theme(data, print) {
  const dark = !print && matchMedia("(prefers-color-scheme: dark)").matches;
  const key = dark ? "dark" : "light";
  return {
    many: data.colours[key], two: data.colours.two[key],
    paper: dark ? "#12181f" : "#ffffff", ink: dark ? "#e4eaf0" : "#1c2733", quiet: dark ? "#9dabb9" : "#566270",
    line: dark ? "#36424f" : "#d5dce3", mixed: dark ? "#8f7fb5" : "#8d7bb8", pick: dark ? "#ffffff" : "#000000",
  };
}

// One ribbon. `colour(task)` gives a colour or null (nothing is drawn); `weight(task)` its opacity.
function drawRibbon(pen, box, lane, view, colour, opacity) {
  const scale = box.width / view.span, tasks = visible(lane, view);
  if (!tasks.count) return;
  const crowded = (tasks.count / box.width) > 1;
  if (crowded) { drawAverages(pen, box, lane, view, scale, tasks, colour, opacity); return; }
  const layers = layersOf(lane);
  const height = box.height / layers, bins = lane.step > 1, snap = bins ? Math.round : (x) => x; // bins have no seams
  for (let i = tasks.from; i < tasks.to; i++) {
    const paint = colour(i);
    if (paint === null) continue;
    let last = i;
    const shade = opacity ? opacity(i) : 1;
    if (layers === 1 && (bins || !opacity)) while (last + 1 < tasks.to && colour(last + 1) === paint && lane.starts[last + 1] === lane.stops[last] && (!opacity || opacity(last + 1) === shade)) last++;
    const left = snap(Math.max((lane.starts[i] - view.left) * scale, 0)), right = snap(Math.min((lane.stops[last] - view.left) * scale, box.width));
    const gap = !bins && lane.stops[i] - lane.starts[i] > 1 && right - left > 4 ? 1 : 0;
    pen.globalAlpha = shade;
    pen.fillStyle = paint;
    pen.fillRect(box.x + left, box.y + height * (i % layers), Math.max(right - left - gap, 1), height - (layers > 1 ? 1 : 0));
    i = last;
  }
  pen.globalAlpha = 1;
}

// Windows that overlap lie on several layers.
function layersOf(lane) {
  if (lane.layers) return lane.layers;
  lane.layers = 1;
  for (let i = 0; i < Math.min(lane.n, 64); i++)
    while (i + lane.layers < lane.n && lane.layers < 4 && lane.starts[i + lane.layers] < lane.stops[i]) lane.layers++;
  return lane.layers;
}

function drawAverages(pen, box, lane, view, scale, tasks, colour, opacity) {
  const width = Math.max(1, Math.round(box.width)), height = Math.max(1, Math.round(box.height));
  const sums = new Float32Array(width * 4), known = new Map();
  for (let i = tasks.from; i < tasks.to; i++) {
    const at = Math.min(width - 1, Math.max(0, ((lane.starts[i] - view.left) * scale) | 0)) * 4;
    sums[at + 3] += 1;
    const paint = colour(i);
    if (paint === null) continue;
    let rgb = known.get(paint);
    if (!rgb) known.set(paint, (rgb = parseColour(paint)));
    const shade = opacity ? opacity(i) : 1;
    sums[at] += shade * rgb[0]; sums[at + 1] += shade * rgb[1]; sums[at + 2] += shade * rgb[2];
    sums[at + 3] += shade * 1e6;
  }
  const picture = pen.createImageData(width, height);
  for (let x = 0; x < width; x++) {
    const painted = Math.floor(sums[x * 4 + 3] / 1e6 + 1e-3), total = sums[x * 4 + 3] % 1e6;
    const weight = opacity ? Math.max(sums[x * 4 + 3] / 1e6, 1e-9) : painted;
    if (!total || weight < 1e-6) continue;
    for (let y = 0; y < height; y++) {
      const at = (y * width + x) * 4;
      for (let c = 0; c < 3; c++) picture.data[at + c] = sums[x * 4 + c] / weight;
      picture.data[at + 3] = Math.min(255, 255 * weight / total);
    }
  }
  const scratch = document.createElement("canvas");
  scratch.width = width; scratch.height = height;
  scratch.getContext("2d").putImageData(picture, 0, 0);
  pen.drawImage(scratch, box.x, box.y);
}

function visible(lane, view) {
  const from = firstStop(lane, view.left);
  let low = from, high = lane.n;
  const end = view.left + view.span;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.starts[middle] < end) low = middle + 1; else high = middle;
  }
  return { from, to: low, count: low - from };
}

// The probability of the positive class as a curve; where elements are narrower than a pixel, a band and its mean.
function drawCurve(pen, box, lane, view, look, unit) {
  const scale = box.width / view.span, tasks = visible(lane, view), values = lane.post[1];
  const y = (p) => box.y + box.height * (1 - p);
  gridLines(pen, box, look, unit);
  pen.fillStyle = look.two[1];
  pen.strokeStyle = look.two[1];
  pen.lineWidth = 1.5 * unit;
  pen.beginPath();
  if (tasks.count / box.width > 1) {
    const width = Math.max(1, Math.round(box.width));
    const low = new Float32Array(width).fill(2), high = new Float32Array(width).fill(-1), sum = new Float32Array(width), count = new Float32Array(width);
    for (let i = tasks.from; i < tasks.to; i++) {
      const x = Math.min(width - 1, Math.max(0, ((lane.starts[i] - view.left) * scale) | 0)), p = Math.exp(values[i]);
      if (p < low[x]) low[x] = p;
      if (p > high[x]) high[x] = p;
      sum[x] += p; count[x]++;
    }
    pen.globalAlpha = 0.35;
    for (let x = 0; x < width; x++) if (count[x]) pen.fillRect(box.x + x, y(high[x]), 1, Math.max(y(low[x]) - y(high[x]), unit));
    pen.globalAlpha = 1;
    let begun = false;
    for (let x = 0; x < width; x++) if (count[x]) { pen[begun ? "lineTo" : "moveTo"](box.x + x + 0.5, y(sum[x] / count[x])); begun = true; }
    pen.stroke();
    return;
  }
  const left = (i) => Math.max((lane.starts[i] - view.left) * scale, 0), right = (i) => Math.min((lane.stops[i] - view.left) * scale, box.width);
  for (let i = tasks.from; i < tasks.to; i++) {
    const p = y(Math.exp(values[i]));
    pen[i === tasks.from ? "moveTo" : "lineTo"](box.x + left(i), p);
    pen.lineTo(box.x + right(i), p);
  }
  pen.stroke();
  if (tasks.count) {
    pen.lineTo(box.x + right(tasks.to - 1), y(0));
    pen.lineTo(box.x + left(tasks.from), y(0));
    pen.closePath();
    pen.globalAlpha = 0.22;
    pen.fill();
    pen.globalAlpha = 1;
  }
}

// The probabilities of more than two classes, one on top of the other.
function drawStack(pen, box, lane, view, look, unit) {
  const scale = box.width / view.span, tasks = visible(lane, view), n = lane.post.length;
  const width = Math.max(1, Math.round(box.width)), crowded = tasks.count > width;
  const slots = crowded ? width : tasks.count, sums = new Float32Array(slots * n), count = new Float32Array(slots);
  for (let i = tasks.from; i < tasks.to; i++) {
    const slot = crowded ? Math.min(width - 1, Math.max(0, ((lane.starts[i] - view.left) * scale) | 0)) : i - tasks.from;
    for (let k = 0; k < n; k++) sums[slot * n + k] += Math.exp(lane.post[k][i]);
    count[slot]++;
  }
  for (let slot = 0; slot < slots; slot++) {
    if (!count[slot]) continue;
    const x = crowded ? slot : Math.max((lane.starts[tasks.from + slot] - view.left) * scale, 0);
    const end = crowded ? slot + 1 : Math.min((lane.stops[tasks.from + slot] - view.left) * scale, box.width);
    let y = box.y + box.height;
    for (let k = 0; k < n; k++) {
      const height = (box.height * sums[slot * n + k]) / count[slot];
      pen.fillStyle = look.many[k];
      pen.fillRect(box.x + x, y - height, Math.max(end - x, 1) + (crowded ? 0 : 0.5), height);
      y -= height;
    }
  }
  gridLines(pen, box, look, unit);
}

function gridLines(pen, box, look, unit) {
  pen.strokeStyle = look.line;
  pen.lineWidth = unit;
  for (const p of [0, 0.5, 1]) {
    const y = Math.round(box.y + box.height * (1 - p)) + 0.5;
    pen.beginPath(); pen.moveTo(box.x, y); pen.lineTo(box.x + box.width, y); pen.stroke();
  }
}

// Round numbers along the bottom.
function drawAxis(pen, box, view, look, unit, seconds) {
  const size = seconds ? seconds[1] : 1, origin = seconds ? seconds[0] : 0;
  const from = origin + view.left * size, span = view.span * size;
  const most = Math.max(2, Math.floor(box.width / (90 * unit))), raw = span / most;
  const steps = seconds && raw > 20 ? [30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400] : [];
  let step = steps.find((one) => one >= raw);
  if (!step) {
    const ten = 10 ** Math.floor(Math.log10(raw));
    step = [1, 2, 5, 10].map((one) => one * ten).find((one) => one >= raw);
    if (!seconds) step = Math.max(1, step);
  }
  pen.fillStyle = look.quiet; pen.strokeStyle = look.line; pen.lineWidth = unit;
  pen.font = `${11 * unit}px system-ui, sans-serif`;
  pen.textBaseline = "top";
  for (let at = Math.ceil(from / step - 1e-9) * step; at <= from + span; at += step) {
    const x = box.x + ((at - from) / span) * box.width;
    pen.beginPath(); pen.moveTo(Math.round(x) + 0.5, box.y); pen.lineTo(Math.round(x) + 0.5, box.y + 4 * unit); pen.stroke();
    const words = seconds ? clock(at, step) : String(Math.round(at)), half = pen.measureText(words).width / 2;
    pen.textAlign = "center";
    pen.fillText(words, Math.min(Math.max(x, box.x + half), box.x + box.width - half), box.y + 6 * unit);
  }
}

function clock(seconds, step) {
  if (step < 1 || (seconds < 120 && step < 30)) return `${+seconds.toFixed(3)} s`;
  const whole = Math.round(seconds), two = (one) => String(one).padStart(2, "0");
  const hours = Math.floor(whole / 3600), minutes = Math.floor((whole % 3600) / 60);
  return step % 60 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${hours}:${two(minutes)} h`;
}
