/* The right of the page: one case, a method's verdict on it step by step, and the label. */
import { Refused, Unreachable, byId, call, el, put as fill } from "./parts.js";
import * as views from "./views.js";

const MOST = 12;      // messages of the predicted evidence that are shown
let at = null;        // {graph, case}
let found = null;     // what the server tells of it, or of the case before while it is asked
let drawn = null;     // the {graph, case} of `found`
let verdict = null;   // of the method that was run here
let basis = "";       // its name
let pending = null;   // a label that the server has not confirmed
let dirty = false;
let options = {};

export function setUp(given) {
  options = given;
  byId("picture").addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    event.preventDefault();
    views.open(decodeURIComponent(link.hash.slice(1)));
  });
  window.addEventListener("beforeunload", (event) => { if (pending || dirty) event.preventDefault(); });
}
export const current = () => at;
export const isUnsaved = () => Boolean(pending || dirty);
export const chosen = () => (byId("operations-field") ? split("operations-field") : []);

export async function show(graph, id) {
  at = { graph, case: id };
  const mine = at;
  const told = await call("POST", "case", { ...at, annotator: options.annotator() });
  if (at !== mine) return;
  found = { ...told, blamed: [] };
  drawn = mine;
  verdict = null; basis = ""; dirty = false;
  byId("picture").hidden = true;
  draw();
  views.showCase(found);
  if (found.state !== "right") run("survival");
}
/* The same case for another annotator. */
export async function refresh() {
  const mine = at;
  if (!mine) return undefined;
  if (drawn !== mine) return show(mine.graph, mine.case); // what was asked has the labels of another
  const { mine: label, history, others, others_count } = await call("POST", "case", { ...at, annotator: options.annotator() });
  if (at === mine) drawLabel({ mine: label, history, others, others_count });
  return undefined;
}
function drawLabel(said) {
  Object.assign(found, said);
  dirty = false;
  if (!byId("label")) return;
  put(found.mine || { error_type: null, operations: [], evidence: [] });
  byId("note").value = found.mine?.note || "";
  byId("refused").textContent = "";
  byId("undo").disabled = !found.mine;
  drawSaid();
}
export function jumpToEvidence() {
  const first = found?.evidence.find((one) => one.gold);
  if (first) views.jump(first.id);
}

function draw() {
  const place = byId("case");
  const gold = found.evidence.filter((one) => one.gold), used = found.evidence.filter((one) => !one.gold);
  place.className = found.state === "right" ? "right-case" : "";
  fill(place,
    el("h2", {}, found.question),
    el("dl", { class: "pair" },
      el("dt", {}, "right answer"), el("dd", { class: "gold" }, found.answers.length ? found.answers.join(" · ") : "not known"),
      el("dt", {}, "reply"), el("dd", { class: "reply" }, found.reply || "(empty)")),
    el("h3", {}, "Gold evidence"),
    el("div", { class: "chips", id: "gold" }, gold.length ? gold.map((one) => chip(one, one.used ? "gold" : "missed")) : el("span", { class: "muted" }, "none is annotated"), gold.some((one) => !one.used) ? el("span", { class: "muted small" }, "amber: did not reach the answer") : null),
    el("h3", {}, "Predicted evidence: what the answer was given comes from"),
    el("div", { class: "chips", id: "predicted" }, ...[...gold.filter((one) => one.used), ...used].slice(0, MOST).map((one) => chip(one, one.gold ? "gold" : "")), found.evidence_count > MOST ? el("span", { class: "muted small" }, `of ${found.evidence_count} in all`) : null, gold.some((one) => one.used) || used.length ? null : el("span", { class: "muted" }, "none that the trace shows")),
    ...(found.state === "right" ? [el("p", { class: "muted" }, "This reply was judged right. Only wrong answers are labelled.")] : [
      el("h3", {}, "Verdict of a method"),
      el("div", { class: "row" }, el("select", { id: "method", "aria-label": "Method of attribution" }, ...options.methods().map((name) => el("option", {}, name))), el("button", { id: "run", onclick: () => run(byId("method").value) }, "Run"), el("span", { id: "running", class: "muted small", role: "status" })),
      el("div", { id: "verdict" }),
      el("h3", {}, "Your label"), form(), el("div", { id: "said" })]));
  place.scrollTop = 0;
  drawSaid();
}
function chip(one, kind) { return el("button", { class: `chip ${kind}`, title: one.text, onclick: () => views.jump(one.id) }, one.name); }

/* A method's verdict, step by step. */
export async function run(name) {
  const mine = at, running = byId("running");
  if (!running) return;
  byId("method").value = name;
  byId("run").disabled = true;
  const began = Date.now(), clock = setInterval(() => { running.textContent = `running, ${Math.round((Date.now() - began) / 1000)} s`; }, 1000);
  try {
    const said = await call("POST", "explain", { ...at, method: name });
    if (at !== mine) return;
    verdict = said; basis = name;
    found.blamed = said.decisive.map((one) => one.operation_id).filter(Boolean);
    drawVerdict();
    views.drawOperations();
    running.textContent = "";
  } catch (error) {
    if (at === mine) { running.textContent = error.message; running.classList.add("error"); }
  } finally {
    clearInterval(clock);
    if (at === mine) byId("run").disabled = false;
  }
}
function drawVerdict() {
  byId("running").classList.remove("error");
  const picture = byId("picture");
  picture.hidden = false;
  picture.innerHTML = verdict.picture; // by the server, which escaped all texts in it
  const blame = (one) => el("div", { class: "verdict" }, el("span", { class: "sure" }, `confidence ${one.confidence.toFixed(2)}`), el("b", {}, `${one.error_type} at ${one.operation}`),
    el("div", {}, one.reason, one.verdict ? ` (${one.verdict} by replay)` : ""),
    el("div", { class: "chips" }, one.operation_id ? el("button", { class: "chip", onclick: () => views.open(one.operation_id) }, one.operation_id) : null, ...one.evidence.map((each) => el("button", { class: "chip", title: each.text, onclick: () => views.open(each.id) }, each.name))));
  fill(byId("verdict"),
    ...verdict.decisive.map(blame),
    verdict.abstained && el("div", { class: "verdict" }, `No verdict: ${verdict.abstained}`),
    el("div", { class: "row" },
      el("button", { id: "accept", disabled: !verdict.decisive.length, onclick: accept }, "Accept ", el("kbd", {}, "a")),
      el("button", { id: "correct", disabled: !verdict.decisive.length, onclick: correct }, "Correct ", el("kbd", {}, "c")),
      el("button", { id: "reject", onclick: reject }, "Reject ", el("kbd", {}, "r"))),
    verdict.steps.length && el("details", { open: true }, el("summary", { class: "muted small" }, `How it got there: ${verdict.steps.length} steps`), el("ol", { class: "steps" }, ...verdict.steps.map((one) => el("li", {}, el("b", {}, one.title), one.text, el("div", { class: "chips" }, ...one.variables.slice(0, 6).map((each) => el("button", { class: "chip", title: each.text, onclick: () => views.open(each.id) }, each.name))))))),
    verdict.alternatives.length && el("details", {}, el("summary", { class: "muted small" }, "Or else"), ...verdict.alternatives.map(blame)));
}
function taken() {
  const operations = verdict.decisive.map((one) => one.operation_id).filter(Boolean);
  const evidence = verdict.decisive.flatMap((one) => one.evidence.map((each) => each.id));
  return { error_type: verdict.decisive[0].error_type, operations: [...new Set(operations)], evidence: [...new Set(evidence)] };
}
export function accept() { if (verdict?.decisive.length) save({ action: "accepted", ...taken(), note: byId("note").value, method: basis }); }
export function correct() {
  if (!verdict?.decisive.length) return;
  put(taken());
  dirty = true;
  byId("operations-field").focus();
}
export function reject() { if (verdict) save({ action: "rejected", error_type: null, operations: [], evidence: [], note: byId("note").value, method: basis }); }

/* The label. */
function form() {
  const mine = found.mine || { error_type: null, operations: [], evidence: [], note: "" };
  const types = options.errorTypes().map(([name, outside], place) => el("label", {}, el("input", { type: "radio", name: "type", value: name, checked: name === mine.error_type, "data-outside": outside ? "1" : undefined }), name.replace("Error", ""), el("kbd", {}, String(place + 1))));
  const made = el("form", { id: "label", autocomplete: "off" },
    el("h3", {}, "What went wrong"), el("div", { class: "types", role: "radiogroup", "aria-label": "Error type" }, ...types),
    el("h3", {}, "Decisive operations: ids, several with commas"), el("input", { id: "operations-field", "aria-label": "Decisive operations", value: mine.operations.join(", "), placeholder: "name one in the operations, or type its id" }),
    el("h3", {}, "Evidence: messages or other variables"), el("input", { id: "evidence-field", "aria-label": "Evidence", value: mine.evidence.join(", ") }),
    el("h3", {}, "Note"), el("textarea", { id: "note", "aria-label": "Note", maxlength: 4000 }, mine.note),
    el("p", { class: "error", id: "refused", role: "alert" }),
    el("div", { class: "row" }, el("button", { class: "main", id: "save", type: "submit", title: "Ctrl Enter" }, "Save"), el("button", { id: "undo", type: "button", disabled: !found.mine, onclick: undo }, "Undo ", el("kbd", {}, "u")), el("button", { id: "next", type: "button", onclick: () => options.next() }, "Next ", el("kbd", {}, "n"))));
  made.addEventListener("input", () => { dirty = true; byId("refused").textContent = ""; views.drawOperations(); });
  made.addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  return made;
}
const split = (field) => byId(field).value.split(",").map((one) => one.trim()).filter(Boolean);
function put({ error_type, operations, evidence }) {
  for (const one of document.querySelectorAll("#label [name=type]")) one.checked = one.value === error_type;
  byId("operations-field").value = operations.join(", ");
  byId("evidence-field").value = evidence.join(", ");
  views.drawOperations();
}
export function name(field, id) {
  const input = byId(`${field}-field`);
  if (!input) return;
  const known = split(`${field}-field`);
  if (!known.includes(id)) input.value = [...known, id].join(", ");
  dirty = true;
  views.drawOperations();
  options.tell(`${id} is in the label; save it`);
}
export function chooseType(place) {
  const one = document.querySelectorAll("#label [name=type]")[place];
  if (one) { one.checked = true; one.focus(); dirty = true; }
}
const same = (left, right) => left.length === right.length && left.every((one) => right.includes(one));
export function submit() {
  if (!byId("label")) return;
  const error_type = document.querySelector("#label [name=type]:checked")?.value || null;
  const label = { error_type, operations: split("operations-field"), evidence: split("evidence-field"), note: byId("note").value, method: basis };
  const agrees = verdict?.decisive.length && verdict.decisive[0].error_type === error_type && same(taken().operations, label.operations);
  save({ action: agrees ? "accepted" : verdict?.decisive.length ? "corrected" : "labelled", ...label });
}
export function undo() { if (found?.mine) save(null); }

async function save(label) {
  if (!options.named() || pending) return;
  const mine = at, annotator = options.annotator();
  pending = { ...at, annotator, request: crypto.randomUUID(), ...label };
  options.tell("saving …");
  for (;;) {
    try {
      const said = await call("POST", label ? "label" : "undo", pending);
      pending = null;
      if (at === mine) drawLabel(said);
      options.tell(label ? "saved" : found.mine ? "undone: the label before is back" : "undone: no label");
      return options.saved();
    } catch (error) {
      if (error instanceof Unreachable) {
        options.tell(`not saved yet: ${error.message} (trying again …)`, true);
        await new Promise((done) => setTimeout(done, 1500));
        continue;
      }
      pending = null;
      options.tell("not saved", true);
      if (at === mine) byId("refused").textContent = error.message;
      if (!(error instanceof Refused)) throw error;
      return undefined;
    }
  }
}
function drawSaid() {
  const place = byId("said");
  if (!place) return;
  const line = (one, who) => el("p", { class: "history" }, el("b", {}, `${who}: `), words(one), " ", el("span", { class: "muted" }, new Date(one.made * 1000).toLocaleString()), one.note ? el("div", { class: "muted" }, one.note) : null);
  fill(place,
    ...(found.others === null && found.others_count ? [el("p", { class: "muted small" }, `${found.others_count} other annotator${found.others_count === 1 ? " has" : "s have"} labelled this; you see how once you have, so that you judge on your own.`)] : []),
    ...(found.others?.length ? [el("h3", {}, "Other annotators"), ...found.others.map((one) => line(one, one.annotator))] : []),
    ...(found.history.length ? [el("h3", {}, "Your revisions, latest first"), ...found.history.map((one) => line(one, `${one.revision}`))] : []));
}
function words(one) {
  if (one.restores === 0) return "undone, no label";
  const undone = one.restores !== one.revision ? `undone, back to revision ${one.restores}: ` : "";
  return undone + (one.action === "rejected" ? `rejected the verdict of ${one.method}` : `${one.error_type} at ${one.operations.join(", ") || "no operation"}, ${one.action}`);
}
