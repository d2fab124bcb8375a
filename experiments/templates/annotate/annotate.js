/* The page: the list of questions, who annotates, progress, keys, agreement and export. */
import * as cases from "./case.js";
import { byId, call, counted, el, figure, fill } from "./parts.js";
import * as views from "./views.js";

const POLL = 4000;
let overview = { graphs: [], methods: [], error_types: [], done: 0 };
let standing = { mine: {}, others: {}, counts: {}, open: 0 };
let listed = [];

const annotator = () => byId("annotator").value.trim();
const keyOf = (one) => `${one.graph}/${one.id}`;
const all = () => overview.graphs.flatMap((graph) => graph.cases.map((one) => ({ ...one, graph: graph.id })));
function tell(text, bad = false) { byId("saved").textContent = text; byId("saved").classList.toggle("bad", bad); }
function named() {
  if (annotator()) return true;
  tell("first give your name", true);
  byId("annotator").focus();
  return false;
}

/* Reading. */
async function readOverview() {
  overview = await call("GET", "overview");
  const graphs = byId("graph"), before = graphs.value;
  graphs.replaceChildren(el("option", { value: "" }, `All graphs (${overview.graphs.length})`), ...overview.graphs.map((one) => el("option", { value: one.id }, `${one.name}${one.read ? ` · ${one.cases.filter((each) => each.state === "wrong").length} wrong` : " · not read yet"}${one.problem ? " · with a problem" : ""}`)));
  graphs.value = before;
  list();
  if (!cases.current() && listed.length) views.showGraph(listed[0].graph).catch((error) => tell(error.message, true));
  if (overview.done < overview.graphs.length) return setTimeout(readOverview, Math.min(3000, 300 + all().length));
  readStanding();
  if (byId("filter").value === "queue" && !all().some((one) => one.state === "wrong")) {
    byId("filter").value = "all"; // nothing judged these answers
    list();
  }
  if (!cases.current() && listed.length) select(listed[0]);
  return undefined;
}
async function readStanding() {
  const name = annotator();
  if (!name) return;
  try {
    const told = await call("POST", "standing", { annotator: name });
    const changed = told.state !== standing.state || told.open !== standing.open;
    standing = told;
    if (changed) { progress(); marks(); }
  } catch (error) { tell(error.message, true); }
}
function progress() {
  const done = standing.counts[annotator()] || 0, others = Object.entries(standing.counts).filter(([name]) => name !== annotator());
  document.querySelector("#bar i").style.width = standing.open ? `${(100 * done) / standing.open}%` : "0";
  byId("count").textContent = `${done} of ${standing.open}${others.length ? ` · ${others.map(([name, count]) => `${name} ${count}`).join(", ")}` : ""}`;
}

/* The list of questions. */
function list() {
  const wanted = byId("search").value.trim().toLowerCase(), graph = byId("graph").value, filter = byId("filter").value;
  let found = all().filter((one) => !graph || one.graph === graph);
  if (filter === "queue") found = found.filter((one) => one.place !== null && (!(keyOf(one) in standing.mine) || isCurrent(one))).sort((a, b) => a.place - b.place);
  else if (filter === "wrong" || filter === "right") found = found.filter((one) => one.state === filter);
  else if (filter === "mine") found = found.filter((one) => keyOf(one) in standing.mine);
  else if (filter === "todo") found = found.filter((one) => one.state !== "right" && !(keyOf(one) in standing.mine));
  if (wanted) found = found.filter((one) => `${one.question}\n${one.reply}\n${one.id}`.toLowerCase().includes(wanted));
  listed = found;
  const several = overview.graphs.length > 1 && filter !== "queue";
  const names = new Map(overview.graphs.map((one) => [one.id, one.name]));
  const makers = found.flatMap((one, place) => [
    ...(several && found[place - 1]?.graph !== one.graph ? [() => el("div", { class: "group" }, names.get(one.graph))] : []),
    () => row(one)]);
  const top = byId("questions").scrollTop;
  const problems = overview.graphs.filter((one) => one.problem && (!graph || one.id === graph));
  byId("listed").textContent = `${counted(found.length, "question")}${overview.done < overview.graphs.length ? `, reading trace ${overview.done + 1} of ${overview.graphs.length}` : ""}`;
  if (filter === "queue" && !found.length && !wanted && Object.keys(standing.mine).length) makers.push(() => el("p", { class: "muted" }, "You have labelled all wrong answers here."));
  if (problems.length) makers.unshift(() => el("details", { class: "error", open: problems.length === 1 }, el("summary", {}, `${counted(problems.length, "graph")} with a problem`), ...problems.map((one) => el("p", {}, `${one.name}: ${one.problem}`))));
  fill(byId("questions"), makers, Math.max(60, byId("questions").childElementCount), marks);
  byId("questions").scrollTop = top;
}
const isCurrent = (one) => cases.current()?.graph === one.graph && cases.current()?.case === one.id;
function row(one) {
  const mark = { wrong: "✗", right: "✓" }[one.state] || "?";
  const said = one.verdict ? `${one.verdict[0].replace("Error", "")} at ${one.verdict[1]} ${one.verdict[2].toFixed(2)}` : one.state === "wrong" ? "no verdict" : one.state === "right" ? "correct" : "not judged";
  const made = el("div", { class: `question ${one.state === "not judged" ? "open" : one.state}`, role: "option", tabindex: "-1", "aria-selected": String(isCurrent(one)), "data-key": keyOf(one), onclick: () => select(one) },
    el("span", { class: "mark", "aria-label": one.state }, mark), el("span", { class: "asked" }, one.question), el("span", { class: "mine" }), el("span", { class: "more", title: one.reply }, `${said} · ${one.reply}`));
  marked(made);
  return made;
}
function marked(made) {
  const key = made.dataset.key;
  made.querySelector(".mine").textContent = `${key in standing.mine ? "●" : ""}${standing.others[key] ? `+${standing.others[key]}` : ""}`;
  made.querySelector(".mine").title = `${key in standing.mine ? "labelled by you" : ""} ${standing.others[key] ? `${standing.others[key]} by others` : ""}`.trim();
}
function marks() { document.querySelectorAll(".question").forEach(marked); }
async function select(one) {
  if (cases.isUnsaved() && !confirm("The label is not saved. Leave it?")) return;
  for (const each of document.querySelectorAll(".question")) {
    const here = each.dataset.key === keyOf(one);
    each.setAttribute("aria-selected", String(here));
    if (here) each.scrollIntoView({ block: "nearest" });
  }
  try {
    const shown = cases.show(one.graph, one.id);
    await Promise.all([views.showGraph(one.graph), shown]);
    if (isCurrent(one)) cases.jumpToEvidence();
  } catch (error) { tell(error.message, true); }
}
function step(by) {
  const at = listed.findIndex(isCurrent), next = listed[at < 0 ? 0 : at + by];
  if (next) select(next);
}
async function next() {
  await readStanding();
  const at = listed.findIndex(isCurrent);
  const open = [...listed.slice(at + 1), ...listed.slice(0, Math.max(at, 0))].find((one) => one.state !== "right" && !(keyOf(one) in standing.mine));
  if (open) { await select(open); if (byId("filter").value === "queue") list(); } else tell("all of these are labelled");
}

/* Agreement, export and keys. */
function dialog(...children) {
  byId("dialog").replaceChildren(...children, el("div", { class: "row" }, el("button", { class: "main", onclick: () => byId("dialog").close() }, "Close")));
  if (!byId("dialog").open) byId("dialog").showModal();
}
async function agreement() {
  const said = await call("GET", "agreement");
  const go = (one) => { byId("dialog").close(); select({ graph: one.graph, id: one.case }); };
  dialog(el("h2", {}, "Agreement"),
    el("p", {}, Object.entries(said.labelled).map(([name, count]) => `${name} ${count}`).join(", ") || "Nobody has labelled anything yet."),
    el("p", {}, `${counted(said.shared, "case")} labelled by several. Krippendorff's alpha: `, el("b", {}, figure(said.error_type)), " on the error type, ", el("b", {}, figure(said.operations)), " on the operations."),
    said.pairs.length ? el("table", { id: "pairs" }, el("tr", {}, ...["annotators", "cases", "Cohen's kappa, error type", "operations"].map((one) => el("th", {}, one))), ...said.pairs.map(([a, b, count, type, operations]) => el("tr", {}, el("td", {}, `${a}, ${b}`), el("td", {}, String(count)), el("td", {}, figure(type)), el("td", {}, figure(operations))))) : "",
    ...Object.entries(said.accepted).map(([name, [accepted, judged]]) => el("p", {}, `${name}: ${accepted} of ${judged} verdicts accepted.`)),
    said.elsewhere ? el("p", { class: "muted" }, `Left out: ${counted(said.elsewhere, "label")} of traces that are not open.`) : "",
    ...(said.disputed.length ? [el("h3", {}, `Disputed (${said.disputed.length})`), el("div", { class: "links" }, ...said.disputed.map((one) => el("button", { onclick: () => go(one) }, one.question)))] : []));
}
async function exported(only_mine = false) {
  try {
    const said = await call("POST", "export", { annotator: annotator(), only_mine });
    dialog(el("h2", {}, "Export"), el("p", { id: "exported" }, said.line), ...(said.folder ? [el("p", {}, "Annotated graphs in MemTraceBench's form are in"), el("pre", {}, said.folder), el("p", {}, "Measure a method on them with"), el("pre", {}, said.command)] : []), annotator() && !only_mine ? el("button", { onclick: () => exported(true) }, "Only my labels instead") : "");
  } catch (error) { tell(error.message, true); }
}
const KEYS = [["j / k", "next / previous question; in their list, ↓ and ↑ too"], ["n", "next one that you have not labelled"], ["a", "accept the verdict"], ["c", "correct it in the form"], ["r", "reject it"], ["1 – 8", "choose the error type"], ["d", "name the operation or variable shown"], ["Ctrl Enter", "save the label"], ["u", "undo your label on this case"], ["t / o / l", "conversation, operations, lineage"], ["/", "search"], ["Esc", "leave a field"], ["?", "this list"]];
const help = () => dialog(el("h2", {}, "Keys"), el("table", {}, ...KEYS.map(([key, text]) => el("tr", {}, el("td", {}, el("kbd", {}, key)), el("td", {}, text)))), el("p", { class: "muted" }, "Keys of letters work outside of fields. All buttons can be reached with Tab."));

const ACTIONS = { j: () => step(1), k: () => step(-1), n: next, a: cases.accept, c: cases.correct, r: cases.reject, u: cases.undo, t: () => views.tab("timeline"), o: () => views.tab("operations"), l: () => views.tab("element"), d: () => byId("pick")?.click(), "/": () => byId("search").focus(), "?": help };
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); return cases.submit(); }
  const field = event.target.closest("input:not([type=radio]), textarea, select");
  if (event.key === "Escape" && field) return field.blur();
  if (field || event.ctrlKey || event.metaKey || event.altKey || byId("dialog").open) return undefined;
  const action = ACTIONS[event.key] || (/^[1-9]$/.test(event.key) ? () => cases.chooseType(Number(event.key) - 1) : null);
  if (action) { event.preventDefault(); action(); }
  return undefined;
});

let waiting = 0;
byId("questions").addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by) { event.preventDefault(); step(by); }
});
byId("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(list, 120); });
for (const id of ["graph", "filter"]) byId(id).addEventListener("change", list);
byId("annotator").value = sessionStorage.getItem("annotator") || "";
byId("annotator").addEventListener("change", async () => {
  sessionStorage.setItem("annotator", annotator());
  standing = { mine: {}, others: {}, counts: {}, open: 0 };
  await readStanding();
  list();
  if (annotator()) cases.refresh();
});
byId("show-agreement").addEventListener("click", agreement);
byId("show-export").addEventListener("click", () => exported());
byId("show-help").addEventListener("click", help);

views.setUp({ chosen: cases.chosen, name: cases.name });
cases.setUp({ annotator: () => annotator() || "somebody", named, methods: () => overview.methods, errorTypes: () => overview.error_types, tell, next, saved: readStanding });
views.tab("timeline");
if (!annotator()) byId("annotator").focus();
readStanding().then(readOverview).catch((error) => tell(error.message, true));
setInterval(readStanding, POLL);
