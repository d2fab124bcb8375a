/* The page on which people review generated questions: tick, correct and drop, several at once, by keyboard. */
import { byId, call, counted, el, figure, put } from "./parts.js";

let rows = [];
let standing = { mine: {}, others: {}, counts: {} };
let listed = [];
let chosen = new Set();
let here = null;
let editing = false;
let latest = []; // the rows of the latest decision

const annotator = () => byId("annotator").value.trim();
function tell(text, bad = false) { byId("saved").textContent = text; byId("saved").classList.toggle("bad", bad); }
const verdictOf = (row) => standing.mine[row.id]?.verdict;
const textOf = (row) => (verdictOf(row) === "right" ? standing.mine[row.id] : row);
const isDisputed = (row) => (standing.others[row.id] || []).some((other) => other.verdict !== verdictOf(row));

/* The list. */
function list() {
  const wanted = byId("search").value.trim().toLowerCase(), filter = byId("filter").value;
  const shown = {
    todo: (row) => !verdictOf(row) || row.id === here, tested: (row) => row.tested, all: () => true, disputed: isDisputed,
    right: (row) => verdictOf(row) === "right", drop: (row) => verdictOf(row) === "drop",
  }[filter];
  listed = rows.filter((row) => shown(row) && (!wanted || `${row.question}\n${row.answers.join("\n")}\n${row.id}`.toLowerCase().includes(wanted)));
  chosen = new Set([...chosen].filter((id) => listed.some((row) => row.id === id)));
  if (!listed.some((row) => row.id === here)) here = listed[0]?.id ?? null;
  byId("listed").textContent = `${counted(listed.length, "row")}${chosen.size ? `, ${chosen.size} selected` : ""}`;
  put(byId("rows"), listed.length ? listed.map(item) : el("p", { class: "muted" }, "No row here."));
  byId("rows").querySelector(".here")?.scrollIntoView({ block: "nearest" });
  progress();
  show();
}
function item(row) {
  const verdict = verdictOf(row), text = textOf(row);
  return el("div", {
    class: `item ${verdict || "open"}${row.id === here ? " here" : ""}`, role: "option", "data-id": row.id,
    "aria-selected": chosen.has(row.id) ? "true" : "false",
    onclick: (event) => { if (event.shiftKey) reach(row.id); else if (event.ctrlKey || event.metaKey) toggle(row.id); here = row.id; editing = false; list(); },
  },
  el("span", { "aria-hidden": "true", onclick: (event) => { event.stopPropagation(); here = row.id; toggle(row.id); list(); } }, chosen.has(row.id) ? "☑" : "☐"),
  el("span", { class: "mark" }, { right: "✓", drop: "✗" }[verdict] || "·"),
  el("span", { class: "asked" }, text.question),
  el("span", { class: "kind" }, `${row.kind}${row.tested ? " · test" : ""}${isDisputed(row) ? " · disputed" : ""}`),
  el("span", { class: "answer" }, row.unanswerable ? "(not known)" : text.answers[0]));
}
function progress() {
  const done = Object.keys(standing.mine).length, others = Object.entries(standing.counts).filter(([name]) => name !== annotator());
  document.querySelector("#bar i").style.width = rows.length ? `${(100 * done) / rows.length}%` : "0";
  byId("count").textContent = `${done} of ${rows.length}${others.map(([name, count]) => ` · ${name} ${count}`).join("")}`;
}
function toggle(id) { if (!chosen.delete(id)) chosen.add(id); }
function reach(id) {
  const [from, to] = [listed.findIndex((row) => row.id === here), listed.findIndex((row) => row.id === id)].sort((a, b) => a - b);
  for (const row of listed.slice(Math.max(0, from), to + 1)) chosen.add(row.id);
}

/* One row. */
function show() {
  const row = rows.find((one) => one.id === here);
  if (!row) return put(byId("case"), el("p", { class: "muted" }, "Nothing to review."));
  const text = textOf(row), others = standing.others[row.id] || [];
  const facts = [["kind", row.kind], ["asked after", row.after_session], ["careless answer", row.near_miss], ["objected to", row.objected], ["id", row.id]];
  return put(byId("case"),
    editing ? form(row, text) : [el("h2", {}, text.question), el("dl", { class: "pair" }, el("dt", {}, "answers"), el("dd", { class: "gold" }, text.answers.join(" | ")))],
    el("dl", { class: "pair" }, facts.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
    el("h3", {}, row.turns.length ? "What was said" : "No turn tells it"),
    row.turns.map((turn) => el("div", { class: `turn${turn.cited ? " gold" : ""}` }, el("span", { class: "at" }, turn.id, el("br"), turn.time), el("span", { class: "said" }, el("b", {}, turn.speaker), turn.text))),
    others.length > 0 && [el("h3", {}, "Others"), others.map((other) => el("p", { class: "history" }, el("b", {}, other.annotator), ` ${other.verdict === "right" ? `right: ${other.question} → ${other.answers.join(" | ")}` : "dropped"}`))]);
}
function form(row, text) {
  return el("form", { onsubmit: (event) => { event.preventDefault(); correct(row); } },
    el("h3", {}, "Question"), el("textarea", { id: "edit-question", value: text.question }),
    el("h3", {}, "Answers, one a line"), el("textarea", { id: "edit-answers", value: text.answers.join("\n") }),
    el("div", { class: "row" }, el("button", { class: "main", id: "keep" }, "Keep ", el("kbd", {}, "Ctrl ⏎")), el("button", { type: "button", onclick: () => { editing = false; show(); } }, "Leave ", el("kbd", {}, "Esc"))));
}
async function correct(row) {
  const answers = byId("edit-answers").value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (await send([{ row: row.id, verdict: "right", question: byId("edit-question").value.trim(), answers }])) { editing = false; on(1); }
}

/* Decisions. */
async function decide(verdict) {
  let targets = listed.filter((row) => (chosen.size ? chosen.has(row.id) : row.id === here));
  if (verdict === "undo" && !targets.some(verdictOf)) targets = rows.filter((row) => latest.includes(row.id) && verdictOf(row));
  const decisions = targets.map((row) => ({ row: row.id, verdict, ...(verdict === "right" ? { question: textOf(row).question, answers: textOf(row).answers } : {}) }));
  if (!targets.length) { tell(verdict === "undo" ? "nothing to undo" : "no row here", true); return; }
  if (!(await send(decisions))) return;
  if (verdict === "undo") here = targets[0].id;
  const several = chosen.size > 0;
  chosen.clear();
  if (!several && verdict !== "undo") on(1); else list();
}
async function send(decisions) {
  if (!annotator()) { tell("first give your name", true); byId("annotator").focus(); return false; }
  try {
    standing = await call("POST", "review", { annotator: annotator(), rows: decisions });
    latest = decisions.map((decision) => decision.row);
    tell(`${decisions[0].verdict === "undo" ? "undone:" : "saved"} ${counted(decisions.length, "row")}`);
    return true;
  } catch (error) { tell(error.message, true); return false; }
}
function on(step) {
  const at = listed.findIndex((row) => row.id === here);
  here = listed[Math.min(listed.length - 1, Math.max(0, at + step))]?.id ?? null;
  editing = false;
  list();
}

/* Dialogs. */
function open(...content) { put(byId("dialog"), ...content, el("button", { onclick: () => byId("dialog").close() }, "Close")); byId("dialog").showModal(); }
async function agreement() {
  try {
    const told = await call("GET", "agreement");
    open(el("h2", {}, "Agreement"),
      el("p", {}, `${counted(told.shared, "row")} reviewed by several; Krippendorff's alpha ${figure(told.alpha)}; ${told.disputed.length} disputed`),
      told.pairs.length > 0 && el("table", {}, el("tr", {}, ["annotators", "rows", "Cohen's kappa"].map((name) => el("th", {}, name))),
        told.pairs.map(([first, second, count, kappa]) => el("tr", {}, el("td", {}, `${first}, ${second}`), el("td", {}, String(count)), el("td", {}, figure(kappa))))));
  } catch (error) { tell(error.message, true); }
}
const KEYS = [["j k ↓ ↑", "next, previous row"], ["x space", "select the row, for several at once"], ["a", "select all that are listed"], ["y", "right"], ["n", "drop"], ["e", "correct"], ["u", "undo: this row, or else the latest decision"], ["/", "search"], ["Esc", "leave, select none"], ["?", "these keys"]];
function help() { open(el("h2", {}, "Keys"), el("table", {}, KEYS.map(([keys, what]) => el("tr", {}, el("td", {}, keys.split(" ").map((key) => el("kbd", {}, key))), el("td", {}, what))))); }
const ACTIONS = {
  j: () => on(1), ArrowDown: () => on(1), k: () => on(-1), ArrowUp: () => on(-1), y: () => decide("right"), n: () => decide("drop"), u: () => decide("undo"),
  x: () => { if (here) toggle(here); list(); }, " ": () => { if (here) toggle(here); list(); }, a: () => { chosen = new Set(listed.map((row) => row.id)); list(); },
  e: () => { if (here) { editing = true; show(); byId("edit-question").focus(); } }, "/": () => byId("search").focus(), "?": help, Escape: () => { chosen.clear(); editing = false; list(); },
};
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && editing) { event.preventDefault(); correct(rows.find((row) => row.id === here)); return; }
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (typing && event.key === "Escape") { event.target.blur(); if (editing) { editing = false; show(); } return; }
  if (typing || byId("dialog").open || event.ctrlKey || event.metaKey || event.altKey || !(event.key in ACTIONS)) return;
  event.preventDefault();
  ACTIONS[event.key]();
});

async function readStanding() {
  sessionStorage.setItem("annotator", annotator());
  try { standing = await call("POST", "standing", { annotator: annotator() }); list(); } catch (error) { tell(error.message, true); }
}
for (const [id, what] of [["right", () => decide("right")], ["drop", () => decide("drop")], ["undo", () => decide("undo")], ["correct", ACTIONS.e], ["show-agreement", agreement], ["show-help", help]]) byId(id).addEventListener("click", what);
for (const id of ["filter", "search"]) byId(id).addEventListener("input", list);
byId("annotator").addEventListener("change", readStanding);
byId("annotator").value = sessionStorage.getItem("annotator") || "";
call("GET", "rows").then((told) => { rows = told.rows; return readStanding(); }).catch((error) => tell(error.message, true));
