// The list of sequences: search, sort, choose.

const SORTS = [
  ["uncertainty", "Uncertainty", "Most uncertain labels first"],
  ["disagreement", "Disagreement between resolutions", "Votes on windows, spans and sequences that the rest contradicts"],
  ["difference", "Difference from majority vote", "Share of elements that majority vote labels differently"],
  ["wrong", "Wrong labels", "Share of known labels that the model misses"],
  ["length", "Length", "Longest first"],
  ["place", "Order of the data", ""],
];

class SequenceList {
  constructor(data, parent, onChoose) {
    this.data = data;
    this.onChoose = onChoose;
    const search = make("label", parent, {}, "Search sequences");
    this.search = make("input", search, { type: "search", autocomplete: "off" });
    const sort = make("label", parent, {}, "Sort by");
    this.sort = make("select", sort, {});
    for (const [key, words] of SORTS) {
      if (data.tracks.some((one) => one[key] !== null)) make("option", this.sort, { value: key }, words);
    }
    this.count = make("p", parent, { class: "small", "aria-live": "polite" });
    this.list = make("ul", parent, { class: "sequences", role: "listbox", tabindex: "0", "aria-label": "Sequences" });
    this.search.addEventListener("input", () => this.fill());
    this.sort.addEventListener("change", () => this.fill());
    this.list.addEventListener("keydown", (event) => { if (this.key(event)) event.preventDefault(); });
    this.chosen = null;
    this.fill();
  }

  order() {
    const key = this.sort.value, words = this.search.value.trim().toLowerCase();
    const found = this.data.tracks.map((_, place) => place).filter((place) => this.data.tracks[place].name.toLowerCase().includes(words));
    const value = (place) => (this.data.tracks[place][key] === null ? -1 : this.data.tracks[place][key]);
    return found.sort((a, b) => (key === "place" ? value(a) - value(b) : value(b) - value(a)) || this.data.tracks[a].place - this.data.tracks[b].place);
  }

  why(track) {
    const key = this.sort.value;
    if (key === "place" || key === "length") return `${track.length.toLocaleString("en")} elements`;
    const value = track[key];
    return value === null ? "does not apply" : `${key === "uncertainty" ? "uncertainty" : key} ${(100 * value).toFixed(1)} %`;
  }

  fill() {
    this.places = this.order();
    this.list.replaceChildren();
    this.places.forEach((place) => {
      const track = this.data.tracks[place];
      const item = make("li", this.list, { role: "option", id: `sequence-${place}`, title: track.name });
      make("span", item, { class: "id" }, bdi(track.name));
      make("span", item, { class: "why" }, this.why(track));
      item.addEventListener("click", () => this.choose(place));
    });
    const n = this.places.length;
    this.count.textContent = n === 1 ? "1 sequence" : `${n.toLocaleString("en")} sequences`;
    this.mark();
    if (this.chosen === null && n) this.choose(this.places[0]);
  }

  choose(place) {
    this.chosen = place;
    this.mark();
    this.onChoose(place);
  }

  mark() {
    for (const item of this.list.children) {
      const mine = item.id === `sequence-${this.chosen}`;
      item.setAttribute("aria-selected", mine ? "true" : "false");
      if (mine) {
        const top = item.offsetTop - this.list.offsetTop, end = top + item.offsetHeight;
        if (top < this.list.scrollTop) this.list.scrollTop = top;
        else if (end > this.list.scrollTop + this.list.clientHeight) this.list.scrollTop = end - this.list.clientHeight;
      }
    }
    if (this.places.includes(this.chosen)) this.list.setAttribute("aria-activedescendant", `sequence-${this.chosen}`);
    else this.list.removeAttribute("aria-activedescendant");
  }

  key(event) {
    if (!this.places.length) return false;
    const at = this.places.indexOf(this.chosen), last = this.places.length - 1;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: last, PageDown: at + 8, PageUp: at - 8 }[event.key];
    if (to === undefined) return false;
    this.choose(this.places[Math.min(last, Math.max(0, to))]);
    return true;
  }
}
