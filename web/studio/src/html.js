// Preact with templates: everything that is shown becomes text nodes and attributes, never markup.
import { h } from "preact";
import htm from "htm";

export const html = htm.bind(h);

// A name of somebody's: it may be written from right to left, or be anything at all.
export const Name = ({ of }) => html`<bdi>${String(of)}</bdi>`;

export const percent = (value, digits = 1) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)}\u00a0%`);
export const count = (value) => Number(value).toLocaleString("en");
export const many = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
export const signed = (value, digits = 2) => {
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : `${value < 0 ? "−" : "+"}${text}`;
};
