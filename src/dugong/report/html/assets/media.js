// The data beside the labels: words, small pictures, signals (the other half of report/media.py).

const NO_NUMBER = 63;

// Rows of a timeline that show the data of a track.
function mediaRows(track) {
  const media = track.info.media;
  if (!media) return [];
  if (media.kind === "words") return [{ kind: "words", name: "words", lane: 0, height: 62 }];
  if (media.kind === "frames") return [{ kind: "frames", name: "pictures", lane: 0, height: 44 }];
  return media.channels.map((channel) => ({ kind: "signal", name: channel.name, channel, lane: 0, height: 30 }));
}

// Words stand upright where elements are wide enough, else they are turned; where not even that fits, nothing is shown.
function drawWords(pen, box, words, begin, view, look, unit) {
  const scale = box.width / view.span;
  pen.save();
  pen.beginPath(); pen.rect(box.x, box.y, box.width, box.height); pen.clip();
  pen.font = `${11.5 * unit}px system-ui, sans-serif`;
  pen.textBaseline = "middle";
  if (scale < 11 * unit) {
    pen.fillStyle = look.quiet; pen.textAlign = "left";
    pen.fillText("zoom in to read", box.x, box.y + box.height / 2);
  } else {
    pen.fillStyle = look.ink;
    const from = Math.max(0, Math.floor(view.left) - begin), to = Math.min(words.length, Math.ceil(view.left + view.span) - begin);
    for (let i = from; i < to; i++) {
      const x = box.x + (begin + i + 0.5 - view.left) * scale;
      if (pen.measureText(words[i]).width < scale - 2 * unit) {
        pen.textAlign = "center";
        pen.fillText(words[i], x, box.y + box.height - 8 * unit);
        continue;
      }
      pen.save();
      pen.textAlign = "left";
      pen.translate(x, box.y + box.height - 2 * unit);
      pen.rotate(-Math.PI / 2);
      pen.fillText(words[i], 0, 0);
      pen.restore();
    }
  }
  pen.restore();
}

// Brightness and two colours at half the size, 6 bits each, as a small canvas.
function openPicture(media, place) {
  media.open = media.open || [];
  if (media.open[place]) return media.open[place];
  const { width, height } = media, n = width * height, codes = unpack(media.images[place], 6, 1.5 * n);
  const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
  canvas.width = width; canvas.height = height;
  const picture = pen.createImageData(width, height);
  for (let i = 0; i < n; i++) {
    const half = n + (((i / width) | 0) >> 1) * (width >> 1) + ((i % width) >> 1);
    const light = 4 * codes[i] + 2, blue = (4 * codes[half] + 2 - 128) / 0.564, red = (4 * codes[half + (n >> 2)] + 2 - 128) / 0.713;
    picture.data[4 * i] = light + red;
    picture.data[4 * i + 1] = light - (0.299 * red + 0.114 * blue) / 0.587;
    picture.data[4 * i + 2] = light + blue;
    picture.data[4 * i + 3] = 255;
  }
  pen.putImageData(picture, 0, 0);
  media.open[place] = canvas;
  return canvas;
}

// As many pictures as fit side by side, each where its element begins.
function drawFrames(pen, box, media, begin, view, unit) {
  const scale = box.width / view.span, width = (box.height * media.width) / media.height;
  let free = 0;
  for (let i = 0; i < media.places.length; i++) {
    const x = Math.max((begin + media.places[i] - view.left) * scale, 0);
    if (begin + media.places[i] + 1 <= view.left || x < free || x + width > box.width) continue;
    pen.drawImage(openPicture(media, i), box.x + x, box.y, width, box.height);
    free = x + width + 2 * unit;
  }
}

// The picture of an element, or of the last one before it that has one.
function pictureOf(media, element) {
  let place = 0;
  while (place + 1 < media.places.length && media.places[place + 1] <= element) place++;
  return { canvas: openPicture(media, place), element: media.places[place] };
}

function openChannel(channel) {
  if (channel.bins) return channel.bins;
  const n = channel.low.length;
  channel.bins = { n, low: unpack(channel.low, 6, n), high: unpack(channel.high, 6, n) };
  return channel.bins;
}

// Stretches from the smallest to the largest value, each drawn so far that it meets the one before it.
function drawSignal(pen, box, channel, track, view, look, unit) {
  const bins = openChannel(channel), scale = box.width / view.span, step = track.n / bins.n;
  const y = (code) => box.y + box.height * (1 - code / (NO_NUMBER - 1)), at = (i) => track.begin + i * step - view.left;
  const from = Math.max(0, Math.floor((view.left - track.begin) / step)), to = Math.min(bins.n, Math.ceil((view.left + view.span - track.begin) / step));
  pen.fillStyle = look.quiet;
  for (let i = from; i < to; i++) {
    if (bins.low[i] === NO_NUMBER) continue;
    const joined = i > from && bins.low[i - 1] !== NO_NUMBER;
    const low = joined ? Math.min(bins.low[i], bins.high[i - 1]) : bins.low[i], high = joined ? Math.max(bins.high[i], bins.low[i - 1]) : bins.high[i];
    const left = Math.max(at(i) * scale, 0), right = Math.min(at(i + 1) * scale, box.width);
    pen.fillRect(box.x + left, y(bins.high[i]), Math.max(right - left, unit), Math.max(y(bins.low[i]) - y(bins.high[i]), unit));
    pen.fillRect(box.x + left, y(high), unit, Math.max(y(low) - y(high), unit));
  }
}

// The words of some elements, for sentences about them; nothing where data are no words.
function quoted(track, from, to) {
  const media = track.info.media;
  if (!media || media.kind !== "words") return "";
  const text = media.words.slice(from - track.begin, to - track.begin).join(" ");
  return ` “${text.length > 80 ? `${text.slice(0, 79)}…` : text}”`;
}
