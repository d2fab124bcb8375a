/* The middle of the page: the conversation, the operations of the case, and the lineage of one element. */
import { byId, call, el, fill, put } from "./parts.js";

const TABS = ["timeline", "operations", "element"];
const turns = new Map(); // id of a message's variable → its row
let graph = null, reading = null, shownCase = null, chosen = () => [];
let openElement = () => {};
let toReveal = false; // what the verdict blames, once for each case

export function setUp(options) {
  chosen = options.chosen;
  openElement = (id) => show(id, options);
  for (const name of TABS) byId(`tab-${name}`).addEventListener("click", () => tab(name));
  document.querySelector(".tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = TABS.findIndex((name) => byId(`tab-${name}`) === document.activeElement);
    const next = TABS[(at + step + TABS.length) % TABS.length];
    byId(`tab-${next}`).focus();
    tab(next);
  });
  window.addEventListener("resize", drawEdges);
}
export const open = (id) => openElement(id);
export function tab(name) {
  for (const one of TABS) {
    byId(one).hidden = one !== name;
    byId(`tab-${one}`).setAttribute("aria-selected", String(one === name));
    byId(`tab-${one}`).tabIndex = one === name ? 0 : -1;
  }
  if (name !== "operations") return;
  drawEdges();
  if (toReveal) document.querySelector("#flow .blamed")?.scrollIntoView({ block: "nearest", inline: "center" });
  toReveal = false;
}

/* The conversation. */
export function showGraph(id) {
  if (graph !== id) {
    graph = id;
    reading = readGraph(id).catch((error) => {
      if (graph === id) graph = null; // so that the next case asks again
      throw error;
    });
  }
  return reading;
}
async function readGraph(id) {
  const said = await call("POST", "timeline", { graph: id });
  if (graph !== id) return;
  turns.clear();
  const makers = said.sessions.flatMap((session) => [
    () => el("div", { class: "session" }, session.name, el("span", {}, session.time)),
    ...session.turns.map((turn) => () => turnRow(...turn)),
  ]);
  if (!makers.length || !said.sessions.some((one) => one.turns.length)) makers.splice(0, makers.length, () => el("p", { class: "muted" }, "This trace records no messages."));
  fill(byId("timeline"), makers, 80, markEvidence);
  markEvidence();
}
function turnRow(id, name, speaker, text) {
  const at = el("button", { class: "at", title: id ? `Lineage of ${name}` : name, tabindex: "-1", onclick: () => id && open(id) }, name);
  const row = el("div", { class: "turn" }, at, el("div", { class: "said" }, el("b", {}, speaker), text));
  if (id) turns.set(id, row);
  return row;
}
function markEvidence() {
  for (const row of turns.values()) row.classList.remove("gold", "used");
  for (const one of shownCase?.evidence || []) {
    const row = turns.get(one.id);
    if (row) row.classList.add(...(one.gold ? ["gold"] : []), ...(one.used ? ["used"] : []));
  }
}
export async function jump(id) {
  tab("timeline");
  const here = graph;
  await reading.catch(() => {});
  if (graph !== here) return;
  if (!turns.has(id)) byId("timeline").fillNow?.();
  const row = turns.get(id);
  if (!row) return open(id);
  document.querySelectorAll(".turn.here").forEach((one) => one.classList.remove("here"));
  row.classList.add("here");
  row.scrollIntoView({ block: "center" });
}
export function showCase(found) {
  shownCase = found;
  toReveal = true;
  markEvidence();
  drawOperations();
}

/* The operations of the case. */
const brief = (one) => (one.what === "operation" ? one.name.replace(/^.*\./, "") || one.name : one.name);
export function node(one, extra = "") {
  return el("button", { class: `node ${one.what} ${extra}`, title: `${one.name} (${one.id})\n${one.text}`, "data-id": one.id, onclick: () => open(one.id) }, el("b", {}, one.role ? `${one.role}: ${brief(one)}` : brief(one)), el("span", {}, one.text || one.id));
}
export function drawOperations() {
  const place = byId("operations");
  if (!shownCase || !shownCase.columns.length) return place.replaceChildren(el("p", { class: "muted" }, "This trace records no operations for the question."));
  const gold = new Set(shownCase.evidence.filter((one) => one.gold).map((one) => one.id));
  const blamed = new Set(shownCase.blamed || []), marked = new Set(chosen());
  const columns = shownCase.columns.map((column, at) => el("div", { class: "column" }, el("h3", {}, shownCase.titles[at]),
    ...column.map((one) => node(one, [gold.has(one.id) && "gold", blamed.has(one.id) && "blamed", marked.has(one.id) && "chosen"].filter(Boolean).join(" "))),
    shownCase.left_out[at] ? el("span", { class: "muted small" }, `and ${shownCase.left_out[at].toLocaleString("en")} more`) : null));
  place.replaceChildren(el("p", { class: "muted small" }, "From the evidence on the left to the reply on the right. Click one for its values, its lineage, and to name it in the label."), el("div", { id: "flow" }, ...columns));
  drawEdges();
}
function drawEdges() {
  const flow = byId("flow");
  if (!flow || byId("operations").hidden) return;
  flow.querySelector("svg")?.remove();
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("width", flow.scrollWidth); svg.setAttribute("height", flow.scrollHeight);
  const base = flow.getBoundingClientRect(), boxes = new Map([...flow.querySelectorAll(".node")].map((one) => [one.dataset.id, one.getBoundingClientRect()]));
  const here = flow.querySelector(".node.here")?.dataset.id;
  for (const [from, to] of shownCase.edges) {
    const a = boxes.get(from), b = boxes.get(to);
    if (!a || !b) continue;
    const x1 = a.right - base.left, y1 = (a.top + a.bottom) / 2 - base.top, x2 = b.left - base.left, y2 = (b.top + b.bottom) / 2 - base.top, bend = Math.max(20, (x2 - x1) / 2);
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`);
    if (from === here || to === here) path.classList.add("on");
    svg.append(path);
  }
  flow.prepend(svg);
}

/* One variable or operation. */
async function show(id, { name }) {
  const found = await call("POST", "element", { graph, id });
  tab("element");
  document.querySelectorAll("#flow .here").forEach((one) => one.classList.remove("here"));
  document.querySelector(`#flow [data-id="${CSS.escape(id)}"]`)?.classList.add("here");
  const operation = found.what === "operation", place = byId("element");
  const part = (title, links, count) => (links.length ? [el("h3", {}, title), el("div", { class: "links" }, ...links.map((one) => node(one))), count > links.length ? el("p", { class: "muted small" }, `and ${(count - links.length).toLocaleString("en")} more`) : null] : []);
  const pick = operation ? el("button", { id: "pick", onclick: () => name("operations", id) }, "Name it as decisive ", el("kbd", {}, "d")) : el("button", { id: "pick", onclick: () => name("evidence", id) }, "Name it as evidence ", el("kbd", {}, "d"));
  put(place,
    el("h2", {}, found.name), el("div", { class: "muted small" }, `${operation ? "operation" : found.kind} · ${id}${found.session ? ` · ${found.session}` : ""}`),
    el("div", { class: "row" }, pick, found.kind === "message" ? el("button", { onclick: () => jump(id) }, "Show in the conversation") : null, el("button", { onclick: () => tab("operations") }, "Back to the operations")),
    ...(operation ? facts(found) : [el("pre", {}, found.value)]),
    ...(operation ? [...part("Read", found.inputs, found.inputs_count), ...part("Made", found.outputs, found.outputs_count)] : variableParts(found, part)));
  place.scrollTop = 0;
}
function facts(found) {
  return Object.keys(found.facts).length ? [el("dl", { class: "pair" }, ...Object.entries(found.facts).flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, String(value))]))] : [];
}
function variableParts(found, part) {
  const made = [];
  if (found.versions.length > 1) {
    made.push(el("h3", {}, `Versions (${found.versions.length})`));
    for (const one of found.versions) made.push(version(one, one.id === found.id));
  }
  made.push(...part("Made by", found.made_by), ...part("Read by", found.read_by));
  if (found.messages.length && found.kind !== "message") made.push(el("h3", {}, `Comes from ${found.messages_count.toLocaleString("en")} message${found.messages_count === 1 ? "" : "s"}`), el("div", { class: "chips" }, ...found.messages.map((one) => el("button", { class: "chip", title: one.text, onclick: () => jump(one.id) }, one.name))));
  made.push(el("p", { class: "muted small" }, `What came of it: ${found.onward.operations.toLocaleString("en")} operations and ${found.onward.variables.toLocaleString("en")} variables.`));
  return made;
}
function version(one, here) {
  const title = el("div", { class: "small" }, el("button", { class: "chip", disabled: here, onclick: () => open(one.id) }, `version ${one.version}`), one.deleted ? " deleted here" : one.difference.length ? " differs so from the one before:" : "");
  if (one.deleted) return el("div", {}, title);
  if (!one.difference.length) return el("div", {}, title, el("pre", {}, one.text));
  const lines = one.difference.map(([kind, words, fold]) => el("div", { class: kind }, kind === "fold" ? `… ${fold} equal lines …` : [kind === "removed" ? "− " : kind === "added" ? "+ " : "  ", ...words.map(([text, changed]) => (changed ? el("mark", {}, text) : text))]));
  return el("div", {}, title, el("pre", { class: "difference" }, ...lines));
}
