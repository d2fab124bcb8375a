"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
/* Without a prototype, so that an id such as "constructor" is no more than an id. */
const V = Object.assign(Object.create(null), data.variables), O = Object.assign(Object.create(null), data.operations);
const NAME = 0, KIND = 1, VALUE = 2, VERSION = 3, PREVIOUS = 4, ATTRIBUTES = 5, PLACE = 6;
for (const v of Object.values(V)) { v[PLACE] = v[VALUE]; v[VALUE] = data.values[v[PLACE]]; }
const PAGE = 200, FEW = 7, FOUND = 500;
const tree = document.getElementById("tree"), view = document.getElementById("view");
const madeBy = new Map(), readBy = new Map(), later = new Map(), sessionOf = new Map(), topOf = new Map();
const push = (map, key, value) => { const list = map.get(key); if (!list) map.set(key, [value]); else if (list[list.length - 1] !== value) list.push(value); };
for (const [id, op] of Object.entries(O)) {
  for (const [, v] of op.in) push(readBy, v, id);
  for (const [, v] of op.out) push(madeBy, v, id);
}
for (const [id, v] of Object.entries(V)) if (v[PREVIOUS]) push(later, v[PREVIOUS], id);
for (const session of data.sessions) { sessionOf.set(session.id, session); for (const top of session.tops) topOf.set(top, session); }
document.getElementById("counts").textContent =
  `${data.sessions.length.toLocaleString("en")} sessions · ${Object.keys(O).length.toLocaleString("en")} operations · ${Object.keys(V).length.toLocaleString("en")} variables`;

/* Characters that hide, reorder or end what is around them are shown as JSON escapes; lines stay lines. */
const STEERING = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const seen = (text) => text.replace(/\r\n/g, "\n").replace(STEERING, (one) => [...Array(one.length).keys()].map((at) => `\\u${one.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""));
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value); else if (value !== undefined) made.setAttribute(key, key === "title" ? seen(String(value)) : value);
  }
  made.append(...children.map((child) => typeof child === "string" ? seen(child) : child));
  return made;
}
const line = (text, longest = 160) => text.slice(0, longest).replace(/\s+/g, " ");
const failed = (id) => O[id].facts.status === "error";
const list = (map, key) => map.get(key) || [];
