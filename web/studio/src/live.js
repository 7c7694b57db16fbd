// The socket: what is being typed goes out numbered, what it does comes back, and answers to older texts are dropped.
const waiting = new Map(), listeners = new Set(); // what could not be sent yet: of each kind the last
let socket = null, pause = 500, number = 0, latest = null, unanswered = null, opened = 0;

function open() {
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/live`);
  socket.addEventListener("open", () => {
    pause = 500;
    if (unanswered) waiting.set("try", unanswered); // it was asked of a server that went away
    for (const one of waiting.values()) socket.send(one);
    waiting.clear();
    if (opened++) tell({ op: "again" }); // whatever happened in between was not heard
  });
  socket.addEventListener("message", (event) => {
    const message = JSON.parse(event.data);
    if (message.op === "tried" && message.n !== latest) return;
    if (message.op === "tried") unanswered = null;
    tell(message);
  });
  socket.addEventListener("close", (event) => {
    socket = null;
    if (event.code === 4403) return;
    setTimeout(open, pause);
    pause = Math.min(2 * pause, 8000);
  });
}

function send(message) {
  const text = JSON.stringify(message);
  if (message.op === "try") unanswered = text;
  if (socket?.readyState === WebSocket.OPEN) socket.send(text); else waiting.set(message.op, text);
}

function tell(message) { for (const one of listeners) one(message); }

export const start = () => { if (!socket) open(); };
export function hear(listener) { listeners.add(listener); return () => listeners.delete(listener); }
export function tryOut(draft) { latest = ++number; send({ op: "try", n: latest, ...draft }); return latest; }
export function forget() { latest = unanswered = null; waiting.delete("try"); }
export const limit = (seconds) => send({ op: "limit", seconds });
