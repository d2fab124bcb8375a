/* Search: the tree shows what was found, until the search is emptied. */
const search = document.getElementById("search");
let waiting = 0;
search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(find, 120); });
search.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { search.value = ""; find(); }
  if (event.key === "ArrowDown" && tree.firstElementChild) { event.preventDefault(); focusRow(tree.firstElementChild); }
});
document.addEventListener("keydown", (event) => { if (event.key === "/" && event.target !== search) { event.preventDefault(); search.focus(); search.select(); } });
/* Lower case of every value, made when the page is at rest or the first search needs it. */
let lowered = null;
const index = () => { lowered ??= data.values.map((value) => value.toLowerCase()); };
(window.requestIdleCallback || setTimeout)(index);
function find() {
  const wanted = search.value.trim().toLowerCase();
  if (!wanted) { document.getElementById("found").textContent = ""; roots(); return; }
  index();
  const hits = [];
  let count = 0;
  const hit = (found, make) => { if (found && count++ < FOUND) hits.push(make()); };
  const said = (...texts) => texts.join("\n").toLowerCase().includes(wanted);
  for (const one of Q) hit(said(one.id, one.asked, one.reply, ...(one.gold || []), blameOf(one)), () => ({ kind: "question", verdict: questionMark(one), name: one.asked, more: one.reply, title: one.id, open: () => showQuestion(one) }));
  for (const one of data.sessions) if (!questionIn.has(one.id)) hit(said(one.name, one.time, one.text), () => sessionEntry(one));
  for (const id in O) hit(said(id, O[id].name, O[id].facts.error || ""), () => operationEntry(id));
  for (const id in V) hit(lowered[V[id][PLACE]].includes(wanted) || said(id, V[id][NAME]), () => ({ kind: "variable", id, mark: "•", name: V[id][NAME], more: around(V[id][VALUE], wanted), title: id }));
  document.getElementById("found").textContent = count > FOUND ? `${count.toLocaleString("en")} found, ${FOUND} shown` : `${count} found`;
  tree.replaceChildren(...rows(hits, 0));
  if (tree.firstElementChild) tree.firstElementChild.tabIndex = 0;
}
function around(text, wanted) { const at = text.toLowerCase().indexOf(wanted); return at > 30 ? `…${line(text.slice(at - 25))}` : line(text); }
