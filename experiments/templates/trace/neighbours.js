/* The picture of one operation or variable and what is around it. */
function node(id, here) {
  const isOperation = id in O;
  const made = el("button", { class: `node ${isOperation ? "operation" : "variable"}${here ? " here" : ""}${isOperation && failed(id) ? " failed" : ""}`, title: isOperation ? `${O[id].name} (${id})` : `${V[id][NAME]} (${id})\n${line(V[id][VALUE], 600)}`, onclick: () => go(id) },
    el("b", {}, isOperation ? O[id].name : V[id][NAME] + (V[id][VERSION] > 1 ? `@${V[id][VERSION]}` : "")), el("span", {}, isOperation ? place(id) : line(V[id][VALUE])));
  made.dataset.id = id;
  return made;
}
function chip(id) { return el("button", { class: failed(id) ? "bad" : "", title: id, onclick: () => go(id) }, O[id].name); }
function place(id) { const session = sessionOf.get(O[id].session); return `${id}${session ? ` · ${session.name}${session.text ? `: ${line(session.text, 80)}` : ""}` : ""}`; }
function column(title, ids, here) {
  const unique = [...new Set(ids)], made = el("div", { class: "column" }, el("h3", {}, title));
  const add = (some) => some.forEach((id) => made.append(node(id, id === here)));
  add(unique.slice(0, FEW));
  if (unique.length > FEW) made.append(el("button", { onclick: (event) => { event.target.remove(); add(unique.slice(FEW, FEW + PAGE)); draw(); } }, `${unique.length - FEW} more …`));
  return made;
}
let edges = [];
function draw() {
  const flow = document.getElementById("flow");
  if (!flow) return;
  flow.querySelector("svg")?.remove();
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("width", flow.scrollWidth); svg.setAttribute("height", flow.scrollHeight);
  const columns = [...flow.querySelectorAll(".column")], base = flow.getBoundingClientRect();
  const at = (id, place) => columns[place]?.querySelector(`[data-id="${CSS.escape(id)}"]`)?.getBoundingClientRect();
  for (const [from, to, place] of edges) {
    const a = at(from, place), b = at(to, place + 1);
    if (!a || !b) continue;
    const x1 = a.right - base.left + flow.scrollLeft, y1 = (a.top + a.bottom) / 2 - base.top, x2 = b.left - base.left + flow.scrollLeft, y2 = (b.top + b.bottom) / 2 - base.top, bend = (x2 - x1) / 2;
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`);
    svg.append(path);
  }
  flow.prepend(svg);
}
function go(id) { if (id in O) reveal(id); show(id); }
function show(id) {
  const isOperation = id in O, op = O[id], v = V[id];
  edges = [];
  openView(null);
  let columns;
  if (isOperation) {
    const inputs = [...new Set(op.in.map((link) => link[1]))], outputs = [...new Set(op.out.map((link) => link[1]))];
    const before = inputs.flatMap((one) => list(madeBy, one).map((maker) => [maker, one, 0])), after = outputs.flatMap((one) => list(readBy, one).map((reader) => [one, reader, 3]));
    edges = [...before, ...inputs.map((one) => [one, id, 1]), ...outputs.map((one) => [id, one, 2]), ...after];
    columns = [column("came from", before.map((edge) => edge[0])), column("read", inputs), column("", [id], id), column("made", outputs), column("goes to", after.map((edge) => edge[1]))];
  } else {
    const makers = list(madeBy, id), readers = list(readBy, id);
    const versions = [...(v[PREVIOUS] && V[v[PREVIOUS]] ? [v[PREVIOUS]] : []), id, ...list(later, id)];
    edges = [...makers.map((one) => [one, id, 0]), ...readers.map((one) => [id, one, 1])];
    columns = [column("made by", makers), column(versions.length > 1 ? "with its versions" : "", versions, id), column("read by", readers)];
  }
  const facts = el("dl");
  const told = isOperation ? { id, session: sessionOf.get(op.session)?.name, ...op.facts } : { id, kind: v[KIND], version: v[VERSION], ...v[ATTRIBUTES] };
  for (const [key, value] of Object.entries(told)) if (value !== undefined && key !== "error") facts.append(el("dt", {}, key), el("dd", {}, typeof value === "object" ? JSON.stringify(value) : String(value)));
  const flow = el("div", { id: "flow" }, ...columns.filter((one, at) => one.children.length > 1 || (isOperation ? at === 2 : at === 1)));
  const kept = columns.map((one) => one.parentNode === flow);
  edges = edges.map(([from, to, at]) => [from, to, kept.slice(0, at).filter(Boolean).length]);
  const marks = (title, backward) => el("button", { onclick: () => mark(id, backward) }, title);
  view.replaceChildren(el("h2", {}, isOperation ? op.name : v[NAME]), el("div", { class: "muted" }, isOperation ? place(id) : `${v[KIND]} · ${id}`),
    el("div", { class: "tools" }, marks("Mark all it came from", true), marks("Mark all that came of it", false), marked.size ? el("button", { onclick: () => { unmark(); show(id); } }, "Unmark") : ""), flow);
  if (isOperation && op.facts.error) view.append(el("div", { class: "part" }, "error"), el("pre", { class: "error" }, op.facts.error));
  if (!isOperation) view.append(el("pre", {}, v[VALUE]));
  view.append(facts);
  if (isOperation && (op.inside.length || O[op.parent])) {
    const inside = el("div", { class: "chips" });
    if (O[op.parent]) inside.append(el("span", { class: "muted" }, "inside of "), chip(op.parent));
    if (op.inside.length) inside.append(el("span", { class: "muted" }, "ran inside it "), ...op.inside.slice(0, PAGE).map(chip));
    flow.after(inside);
  }
  if (isOperation) for (const [title, links] of [["←", op.in], ["→", op.out]]) for (const [role, one] of links.slice(0, 30)) view.append(el("div", { class: "part" }, `${title} ${role} `, el("span", { class: "muted" }, `${V[one][NAME]} ${one}`)), el("pre", {}, V[one][VALUE]));
  view.scrollTop = 0;
  draw();
}
function mark(id, backward) {
  marked.clear();
  const queue = id in O ? [...(backward ? O[id].in : O[id].out).map((link) => link[1])] : [id], seen = new Set(queue);
  if (id in O) marked.add(id);
  for (const one of queue) {
    marked.add(one);
    const steps = list(backward ? madeBy : readBy, one).flatMap((op) => { if (marked.has(op)) return []; marked.add(op); return (backward ? O[op].in : O[op].out).map((link) => link[1]); });
    const versions = backward ? (V[one][PREVIOUS] && V[V[one][PREVIOUS]] ? [V[one][PREVIOUS]] : []) : list(later, one);
    for (const next of [...steps, ...versions]) if (!seen.has(next)) { seen.add(next); queue.push(next); }
  }
  showMarks();
  show(id);
}
function unmark() { marked.clear(); showMarks(); }
function showMarks() {
  const sessions = new Set([...marked].filter((id) => id in O).map((id) => O[id].session));
  for (const one of tree.children) one.classList.toggle("marked", one.entry.session ? sessions.has(one.entry.session.id) : marked.has(one.entry.id));
  const operations = [...marked].filter((id) => id in O).length;
  document.getElementById("found").textContent = marked.size ? `marked: ${operations.toLocaleString("en")} operations, ${(marked.size - operations).toLocaleString("en")} variables` : "";
}
