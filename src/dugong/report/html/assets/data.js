// Reading the data that the page carries: packed text to typed arrays (the other half of report/pack.py).
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const DIGIT = new Uint8Array(128);
for (let i = 0; i < 64; i++) DIGIT[ALPHABET.charCodeAt(i)] = i;
const LOG_STEP = 0.001, LOG_LIMIT = 131071 * LOG_STEP;

function unpack(text, bits, n) {
  if (bits >= 6) {
    const chars = bits / 6, values = new Int32Array(n);
    for (let i = 0, at = 0; i < n; i++) {
      let value = 0;
      for (let c = 0; c < chars; c++) value = (value << 6) | DIGIT[text.charCodeAt(at++)];
      values[i] = value;
    }
    return values;
  }
  const per = 6 / bits, mask = (1 << bits) - 1, values = new Uint8Array(n);
  for (let i = 0; i < n; i++) {
    const digit = DIGIT[text.charCodeAt((i / per) | 0)];
    values[i] = (digit >> (bits * (per - 1 - (i % per)))) & mask;
  }
  return values;
}

// One column of log-odds: a single number stands for all tasks.
function unpackLogs(source, n) {
  const values = new Float64Array(n);
  if (typeof source === "number") return values.fill(source);
  const packed = unpack(source, 18, n);
  for (let i = 0; i < n; i++) values[i] = packed[i] * LOG_STEP - LOG_LIMIT;
  return values;
}

// Log-probabilities of all labels from what is stored: log-odds of the second of two, or all of them.
function logLaws(columns, n) {
  const stored = columns.map((one) => unpackLogs(one, n));
  if (stored.length > 1) return stored;
  const odds = stored[0], no = new Float64Array(n), yes = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    no[i] = -softplus(odds[i]);
    yes[i] = odds[i] - softplus(odds[i]);
  }
  return [no, yes];
}

function softplus(x) { return x > 0 ? x + Math.log1p(Math.exp(-x)) : Math.log1p(Math.exp(x)); }

function openLane(stored, track) {
  const n = stored.n, starts = new Int32Array(n), stops = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    starts[i] = stored.starts ? stored.starts[i] : stored.start + stored.stride * i;
    stops[i] = stored.stops ? stored.stops[i] : Math.min(starts[i] + stored.size, track.length);
  }
  return { n, first: stored.first, starts, stops, post: logLaws(stored.post, n), prior: logLaws(stored.prior, n),
    exact: stored.exact === null ? null : logLaws(stored.exact, n) };
}

// A track with all its arrays, made when it is first looked at.
function openTrack(data, place) {
  const track = data.tracks[place];
  if (track.open) return track.open;
  const n = track.end - track.begin;
  const lanes = track.lanes.map((one) => openLane(one, track));
  const votes = data.voters.map((voter, v) => unpack(track.votes[v], voter.bits, lanes[voter.lane].n));
  const labels = (text) => (text === null ? null : unpack(text, data.bits, n));
  track.open = {
    info: track, n, begin: track.begin, end: track.end, lanes, votes,
    labels: labels(track.labels), decoded: labels(track.decoded), majority: labels(track.majority), gold: labels(track.gold),
  };
  return track.open;
}
