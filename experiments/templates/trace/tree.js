/* The tree: a row is made when its parent is opened, so that a long trace costs nothing until one looks. */
const marked = new Set();
let chosen = null;
function row(entry, level) {
  const closed = entry.children ? "false" : undefined;
  const made = el("div", { class: `row ${entry.kind}`, role: "treeitem", tabindex: "-1", "aria-level": level + 1, "aria-expanded": closed, "aria-selected": "false", style: `--level:${level}`, title: entry.title },
    el("span", { class: "twist", "aria-hidden": "true" }, entry.mark || (entry.children ? "▸" : "")), entry.verdict || "", el("span", { class: "name" }, entry.name), el("span", { class: "more" }, entry.more || ""),
    entry.failed ? el("span", { class: "bad count" }, `${entry.failed} failed`) : "", entry.count ? el("span", { class: "count muted", title: "operations" }, entry.count) : "");
  made.entry = entry; made.level = level;
  if (entry.id && marked.has(entry.id)) made.classList.add("marked");
  made.addEventListener("click", (event) => { select(made); if (entry.children && (event.target.className === "twist" || entry.kind === "session" || entry.kind === "rest")) toggle(made); });
  made.addEventListener("dblclick", () => toggle(made));
  return made;
}
function sessionEntry(session) {
  const question = questionIn.get(session.id), about = [session.time, session.text].filter(Boolean).join(" · ");
  return { kind: "session", verdict: question && questionMark(question), name: session.name, more: about, title: about, count: session.count.toLocaleString("en"), failed: session.failed, children: () => session.tops.map(operationEntry), session,
    open: () => question ? showQuestion(question) : openView(null, el("h2", {}, session.name), el("div", { class: "muted" }, about), ...waterfallOf(inSession(session.id), "What it took")) };
}
function operationEntry(id) {
  const op = O[id], took = op.facts.took;
  return { kind: "operation" + (failed(id) ? " failed" : ""), id, name: op.name, title: id,
    more: `${op.in.length} → ${op.out.length}${op.inside.length ? ` · ${op.inside.length} inside` : ""}${took ? ` · ${took}` : ""}`,
    children: () => [...op.inside.map(operationEntry), ...op.in.map((link) => variableEntry(link, "in", "←")), ...op.out.map((link) => variableEntry(link, "out", "→"))] };
}
function variableEntry([role, id], kind, mark) {
  return { kind: `variable ${kind}`, id, mark, name: role, more: line(V[id][VALUE]), title: `${V[id][NAME]} (${id})` };
}
function rows(entries, level) {
  const made = entries.slice(0, PAGE).map((entry) => row(entry, level));
  const rest = entries.slice(PAGE);
  if (rest.length) made.push(row({ kind: "rest", name: `${rest.length.toLocaleString("en")} more …`, children: () => rest, replace: true }, level));
  return made;
}
function toggle(at, open) {
  const entry = at.entry, isOpen = at.getAttribute("aria-expanded") === "true";
  if (!entry.children || open === isOpen) return;
  if (entry.replace) {
    const made = rows(entry.children(), at.level);
    at.replaceWith(...made);
    if (made[0]) focusRow(made[0]);
    return;
  }
  at.setAttribute("aria-expanded", String(!isOpen));
  at.querySelector(".twist").textContent = isOpen ? "▸" : "▾";
  if (isOpen) while (at.nextElementSibling && at.nextElementSibling.level > at.level) at.nextElementSibling.remove();
  else at.after(...rows(entry.children(), at.level + 1));
}
function focusRow(at) {
  tree.querySelectorAll('[tabindex="0"]').forEach((one) => { one.tabIndex = -1; });
  at.tabIndex = 0;
  at.focus({ preventScroll: true });
  at.scrollIntoView({ block: "nearest" });
}
function select(at, quiet) {
  if (chosen) chosen.setAttribute("aria-selected", "false");
  chosen = at;
  at.setAttribute("aria-selected", "true");
  focusRow(at);
  if (quiet) return;
  if (at.entry.open) at.entry.open(); else if (at.entry.id) show(at.entry.id);
}
tree.addEventListener("keydown", (event) => {
  const at = event.target.closest(".row");
  if (!at) return;
  const open = at.getAttribute("aria-expanded") === "true";
  let goal = null;
  if (event.key === "ArrowDown") goal = at.nextElementSibling;
  else if (event.key === "ArrowUp") goal = at.previousElementSibling;
  else if (event.key === "Home") goal = tree.firstElementChild;
  else if (event.key === "End") goal = tree.lastElementChild;
  else if (event.key === "ArrowRight") { if (open) goal = at.nextElementSibling; else toggle(at, true); }
  else if (event.key === "ArrowLeft") {
    if (open) toggle(at, false);
    else { goal = at.previousElementSibling; while (goal && goal.level >= at.level) goal = goal.previousElementSibling; }
  } else if (event.key === "Enter" || event.key === " ") { select(at); if (!at.entry.id) toggle(at); }
  else return;
  event.preventDefault();
  if (goal) focusRow(goal);
});
/* Open the tree down to an operation and choose it there. */
function reveal(id) {
  const path = [], seen = new Set();
  for (let at = id; at && O[at] && !seen.has(at); at = topOf.has(at) ? null : O[at].parent) { seen.add(at); path.push(at); }
  const session = topOf.get(path.at(-1));
  let inside = [...tree.children].find((root) => session && root.entry.session === session);
  if (!inside) return;
  toggle(inside, true);
  for (const step of path.reverse()) {
    let next = inside.nextElementSibling;
    while (next && next.level > inside.level && next.entry.id !== step) {
      if (next.entry.replace && next.level === inside.level + 1) { const before = next.previousElementSibling; toggle(next); next = before; }
      next = next.nextElementSibling;
    }
    if (!next || next.entry.id !== step) return;
    inside = next;
    if (step !== id) toggle(inside, true);
  }
  select(inside, true);
}
