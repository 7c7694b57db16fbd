// The socket: what is being typed goes out numbered, what it does comes back, and answers to older texts are dropped.
const waiting = new Set(), listeners = new Set();
let socket = null, pause = 500, number = 0, latest = null;

function open() {
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/live`);
  socket.addEventListener("open", () => {
    pause = 500;
    for (const one of waiting) socket.send(one);
    waiting.clear();
  });
  socket.addEventListener("message", (event) => {
    const message = JSON.parse(event.data);
    if (message.op === "tried" && message.n !== latest) return;
    for (const one of listeners) one(message);
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
  if (socket?.readyState === WebSocket.OPEN) socket.send(text); else { waiting.clear(); waiting.add(text); }
}

export const start = () => { if (!socket) open(); };
export function hear(listener) { listeners.add(listener); return () => listeners.delete(listener); }
export function tryOut(draft) { latest = ++number; send({ op: "try", n: latest, ...draft }); return latest; }
export function forget() { latest = null; }
export const limit = (seconds) => send({ op: "limit", seconds });
