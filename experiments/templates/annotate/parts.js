/* Calls of the server, and elements whose texts are data: everything goes through textContent, nothing through markup. */
const KEY = "memtune-annotate-key";
const given = new URLSearchParams(location.hash.slice(1));
if (given.get("key")) localStorage.setItem(KEY, given.get("key"));
if (given.get("annotator") && !sessionStorage.getItem("annotator")) sessionStorage.setItem("annotator", given.get("annotator"));
if (location.hash) history.replaceState(null, "", location.pathname);

export class Refused extends Error {}
/* The same request may succeed later. */
export class Unreachable extends Error {}

export async function call(method, path, body) {
  let reply;
  try {
    reply = await fetch(`/v1/${path}`, {
      method,
      headers: { Authorization: `Bearer ${localStorage.getItem(KEY) || ""}`, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Unreachable("the server does not answer; start memtune annotate again");
  }
  const said = await reply.json();
  if (reply.status === 401) throw new Refused("open the address that memtune annotate prints: this tab has no valid token");
  if (reply.status === 503) throw new Unreachable(said.error.message);
  if (!reply.ok) throw new Refused(said.error?.message || `status ${reply.status}`);
  return said;
}

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false || value === null) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else if (key === "value") made.value = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((one) => one !== null && one !== undefined && one !== false));
  return made;
}
/* As replaceChildren, without what is not there. */
export function put(parent, ...children) { parent.replaceChildren(...children.flat(3).filter((one) => one !== null && one !== undefined && one !== false && one !== 0)); }
export const byId = (id) => document.getElementById(id);
export const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
export const figure = (value) => (value === null || value === undefined ? "–" : value.toFixed(3).replace("-", "−"));

/* Put many rows in, a screenful at once and the rest while the browser is idle, so that the first paint does not wait. */
export function fill(parent, makers, first = 60, after = () => {}) {
  const turn = (parent.fillTurn = (parent.fillTurn || 0) + 1);
  parent.replaceChildren(...makers.slice(0, first).map((make) => make()));
  let at = first;
  parent.fillNow = () => {
    if (parent.fillTurn === turn && at < makers.length) parent.append(...makers.slice(at).map((make) => make()));
    at = makers.length;
  };
  const more = () => {
    if (parent.fillTurn !== turn) return;
    if (at >= makers.length) return after();
    parent.append(...makers.slice(at, at + 200).map((make) => make()));
    at += 200;
    setTimeout(more, 0);
  };
  setTimeout(more, 0);
}
