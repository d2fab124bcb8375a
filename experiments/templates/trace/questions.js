/* The questions: right or wrong, the reply beside the gold answer, and whose fault a wrong one is. */
const Q = data.questions;
const MARKS = new Map([[true, ["✓", "right"]], [false, ["✗", "wrong"]], [null, ["?", "not judged"]]]);
const questionIn = new Map(Q.filter((one) => one.session).map((one) => [one.session, one]));
function questionMark(one) {
  const [sign, word] = MARKS.get(one.passed);
  return el("span", { class: `verdict ${word.replace(" ", "-")}`, title: word, "aria-label": word, role: "img" }, sign);
}
const blameOf = (one) => (one.decisive || []).map((blame) => `${blame.error} · ${blame.operation}`).join(", ");
const goldOf = (one) => one.gold ? one.gold.join(" | ") || "not known" : "–";
const isWrong = (one) => one.passed === false;

let shownQuestions = "all", shownBlame = null;
function questionsView() {
  const wrong = Q.filter(isWrong), right = Q.filter((one) => one.passed === true), open = Q.length - wrong.length - right.length;
  const blames = new Map();
  for (const one of wrong) { const blame = blameOf(one) || "not attributed"; blames.set(blame, (blames.get(blame) || 0) + 1); }
  const choose = (title, count, which, blame = null) => el("button", { "aria-pressed": String(shownQuestions === which && shownBlame === blame), onclick: () => { shownQuestions = which; shownBlame = blame; questionsView(); } },
    `${title} `, el("span", { class: "muted" }, count.toLocaleString("en")));
  const groups = { all: Q, wrong, right, open: Q.filter((one) => one.passed === null) };
  const chosenOnes = groups[shownQuestions].filter((one) => shownBlame === null || (blameOf(one) || "not attributed") === shownBlame);
  const body = el("tbody");
  const add = (from) => {
    body.append(...chosenOnes.slice(from, from + PAGE).map(questionRow));
    const rest = chosenOnes.length - from - PAGE;
    if (rest > 0) body.append(el("tr", {}, el("td", { colspan: 5 }, el("button", { onclick: (event) => { event.target.closest("tr").remove(); add(from + PAGE); } }, `${rest.toLocaleString("en")} more …`))));
  };
  add(0);
  const judged = wrong.length + right.length;
  openView("questions", el("h2", {}, judged ? `${right.length.toLocaleString("en")} of ${judged.toLocaleString("en")} questions answered right` : `${Q.length.toLocaleString("en")} questions asked`),
    el("div", { class: "muted" }, judged ? "" : "Nothing at hand says which of the replies are right."),
    el("div", { class: "tools" }, choose("All", Q.length, "all"), wrong.length ? choose("Wrong", wrong.length, "wrong") : "", right.length ? choose("Right", right.length, "right") : "", open && judged ? choose("Not judged", open, "open") : "",
      ...[...blames].sort((a, b) => b[1] - a[1]).map(([blame, count]) => choose(blame, count, "wrong", blame))),
    el("table", { class: "questions" }, el("thead", {}, el("tr", {}, ...["", "question", "gold answer", "reply", "blame"].map((name) => el("th", {}, name)))), body));
}
function questionRow(one) {
  const opening = el("button", { class: "asked", title: one.id }, line(one.asked, 300) || one.id);
  const made = el("tr", { class: isWrong(one) ? "wrong" : "", onclick: () => showQuestion(one) },
    el("td", {}, questionMark(one)), el("td", {}, opening), el("td", {}, line(goldOf(one), 200)), el("td", {}, line(one.reply, 200)), el("td", {}, isWrong(one) ? blameOf(one) || el("span", { class: "muted" }, "not attributed") : ""));
  return made;
}
function showQuestion(one) {
  const place = Q.indexOf(one);
  const next = (step, title) => { let at = place + step; while (Q[at] && !isWrong(Q[at])) at += step; return Q[at] ? el("button", { onclick: () => showQuestion(Q[at]) }, title) : ""; };
  const side = (title, text) => el("div", {}, el("div", { class: "part" }, title), el("pre", {}, text));
  const answering = list(madeBy, one.prediction);
  openView("questions", el("div", { class: "tools" }, el("button", { onclick: questionsView }, "All questions"), next(-1, "Previous wrong one"), next(1, "Next wrong one")),
    el("h2", {}, questionMark(one), " ", one.asked), el("div", { class: "muted" }, [one.id, one.kind, one.score !== undefined && `score ${one.score}`].filter(Boolean).join(" · ")),
    el("div", { class: "sides" }, one.gold ? side("gold answer", goldOf(one)) : "", side("reply", one.reply)),
    ...(Object.hasOwn(data.pictures, one.prediction) ? [pictureOf(one)] : verdictOf(one)),
    one.evidence && one.evidence.length ? el("div", {}, el("div", { class: "part" }, "where the answer is said"), el("div", { class: "values" }, ...one.evidence.map(valueButton))) : "",
    answering.length ? el("div", { class: "chips" }, el("span", { class: "muted" }, "answered by "), ...answering.map(chip), el("button", { onclick: () => mark(one.prediction, true) }, "mark all it came from")) : "",
    ...(one.alternatives || []).map((blame) => blameCard(blame, "or else")),
    ...(sessionOf.has(one.session) ? waterfallOf(inSession(one.session), "What it took") : []));
}
function verdictOf(one) {
  const why = one.abstained ? [el("div", { class: "card" }, el("b", {}, "not attributed "), one.abstained)] : [];
  return [...(one.decisive || []).map((blame) => blameCard(blame, "blame")), ...why];
}
/* Markup of the page's writer, who escaped all texts in it. */
function pictureOf(one) {
  const place = el("div", { class: "where" });
  place.innerHTML = data.pictures[one.prediction];
  return place;
}
function blameCard(blame, title) {
  const known = blame.at && blame.at in O;
  return el("div", { class: `card ${title === "blame" ? "blame" : "muted"}` }, el("b", {}, `${title}: ${blame.error} `), known ? el("button", { class: "chip", title: blame.at, onclick: () => go(blame.at) }, blame.operation) : el("span", {}, blame.operation),
    el("span", { class: "muted" }, ` confidence ${blame.confidence}${blame.verdict ? ` · ${blame.verdict} by replay` : ""}`), el("div", {}, blame.reason),
    el("div", { class: "values" }, ...blame.evidence.filter((id) => id in V).map(valueButton)));
}
function valueButton(id) { return el("button", { title: id, onclick: () => go(id) }, el("b", {}, V[id][NAME]), " ", line(V[id][VALUE], 200)); }
