/* What the page opens on: what its address names, or the questions, or else the map. */
function openView(name, ...parts) {
  for (const id of ["questions", "waterfall", "map"]) document.getElementById(`open-${id}`).setAttribute("aria-pressed", String(id === name));
  view.replaceChildren(...parts);
  view.scrollTop = 0;
}
function roots() {
  tree.replaceChildren(...rows(data.sessions.map(sessionEntry), 0));
  if (tree.firstElementChild) tree.firstElementChild.tabIndex = 0;
  showMarks();
}
function overview() {
  openView("map", document.getElementById("map").content.cloneNode(true));
  const picture = view.querySelector(".picture");
  picture.scrollLeft = (picture.scrollWidth - picture.clientWidth) / 2;
}
const begun = (open) => () => { search.value = ""; unmark(); roots(); open(); };
document.getElementById("open-map").addEventListener("click", begun(overview));
document.getElementById("open-questions").addEventListener("click", begun(questionsView));
document.getElementById("open-waterfall").addEventListener("click", begun(waterfallView));
document.getElementById("open-questions").hidden = !Q.length;
document.getElementById("open-waterfall").hidden = !Object.keys(O).length;
window.addEventListener("resize", draw);
function opening() {
  let wanted = location.hash.slice(1);
  try { wanted = decodeURIComponent(wanted); } catch { /* not ours */ }
  const asked = Q.find((one) => `question=${one.id}` === wanted);
  if (asked) showQuestion(asked);
  else if (wanted in O || wanted in V) go(wanted);
  else if (Q.length) questionsView();
  else overview();
}
window.addEventListener("hashchange", opening);
roots();
opening();
