// What the page asks of its server. Answers are plain data; a refusal is an error that says why in plain words.
import { signal } from "@preact/signals";

export class Refused extends Error {
  constructor(status, body) {
    const error = body?.error || {};
    super(error.text || `the studio answered with status ${status}.`);
    Object.assign(this, { status, kind: error.kind || "bug", trace: error.trace || null, line: error.line || null, current: error.current || body?.current || null });
  }
}

export const lost = signal(false); // the server does not answer

export async function ask(path, { method = "GET", body, bytes, abort } = {}) {
  // "no-store": questions of the same address do not wait for each other in the browser's cache.
  const options = { method, signal: abort, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) Object.assign(options, { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  if (bytes !== undefined) Object.assign(options, { headers: { "Content-Type": "application/octet-stream" }, body: bytes });
  let answer;
  try { answer = await fetch(path, options); } catch (error) {
    if (error.name === "AbortError") throw error;
    lost.value = true;
    throw new Error("the studio does not answer: is `dugong studio` still running?");
  }
  lost.value = false;
  const found = answer.headers.get("Content-Type")?.startsWith("application/json") ? await answer.json() : null;
  if (!answer.ok) throw new Refused(answer.status, found);
  return found;
}

export const place = (id, ...rest) => ["/api/sequences", encodeURIComponent(id), ...rest].join("/");
export const query = (values) => new URLSearchParams(Object.entries(values).filter(([, one]) => one !== null && one !== undefined && one !== "")).toString();

// A packed array as a typed one.
const KINDS = { u1: Uint8Array, u2: Uint16Array, i1: Int8Array, f4: Float32Array };
export function unpack(packed) {
  if (!packed) return null;
  const text = atob(packed.b), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new KINDS[packed.t](bytes.buffer, 0, packed.n);
}
