/* The waterfall: when each operation ran, and what it took in time, tokens and money. */
const ROW = 22, SEEN = 24, IDLE_SHARE = 0.03, ALL_IDLE = 0.25, SHORTEST_SHOWN = 0.003;
const inSession = (sid) => Object.keys(O).filter((id) => O[id].session === sid);
const tokensOf = (id) => (O[id].facts["prompt tokens"] || 0) + (O[id].facts["completion tokens"] || 0);
const moneyOf = (id) => O[id].facts.cost || 0;
const startOf = (id) => O[id].at[0], endOf = (id) => O[id].at[1] ?? O[id].at[0];
const secondsOf = (id) => endOf(id) - startOf(id);
const many = (value) => value.toLocaleString("en");
function lasting(seconds) {
  if (seconds >= 172800) return `${Math.round(seconds / 86400)} days`;
  if (seconds >= 7200) return `${(seconds / 3600).toFixed(1)} h`;
  if (seconds >= 120) return `${(seconds / 60).toFixed(1)} min`;
  if (seconds >= 0.0995) return `${seconds.toFixed(seconds >= 10 ? 0 : 1)} s`;
  return seconds >= 0.00095 ? `${(seconds * 1000).toFixed(0)} ms` : `${(seconds * 1e6).toFixed(0)} µs`;
}
const money = (value) => value ? value.toPrecision(3) : "–";

/* Places on the time axis from 0 to 1. A memory is often built long before it is asked, so idle time is cut short. */
function timeAxis(ids) {
  const spans = ids.map((id) => [startOf(id), endOf(id)]).sort((a, b) => a[0] - b[0]), busy = [];
  for (const [start, end] of spans) {
    const last = busy.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end); else busy.push([start, end]);
  }
  const work = busy.reduce((sum, [start, end]) => sum + end - start, 0), gaps = busy.slice(1).map(([start], n) => start - busy[n][1]);
  const longest = work ? Math.min(IDLE_SHARE * work, ALL_IDLE * work / Math.max(1, gaps.length)) : 1;
  const whole = work + gaps.reduce((sum, gap) => sum + Math.min(gap, longest), 0) || 1, idle = [];
  let at = 0;
  busy.forEach((one, n) => {
    one.push(at / whole);
    at += one[1] - one[0];
    if (n < gaps.length) { const width = Math.min(gaps[n], longest); if (gaps[n] > 2 * longest && width > SHORTEST_SHOWN * whole) idle.push([at / whole, width / whole, gaps[n]]); at += width; }
  });
  const place = (moment) => {
    let low = 0, high = busy.length - 1;
    while (low < high) { const middle = (low + high + 1) >> 1; if (busy[middle][0] <= moment) low = middle; else high = middle - 1; }
    return busy[low][2] + (Math.min(moment, busy[low][1]) - busy[low][0]) / whole;
  };
  return { place, idle, work };
}

/* A heading with sums, and a list of which only the rows in sight are made. */
function waterfallOf(ids, title) {
  if (!ids.length) return [];
  const here = new Set(ids), axis = timeAxis(ids), timed = axis.work > 0;
  const level = (id) => { let deep = 0; for (let at = O[id].parent, seen = new Set([id]); here.has(at) && !seen.has(at) && deep < 12; at = O[at].parent) { seen.add(at); deep++; } return deep; };
  const sum = (of) => ids.reduce((total, id) => total + of(id), 0);
  const mostTokens = ids.reduce((most, id) => Math.max(most, tokensOf(id)), 1), mostMoney = ids.reduce((most, id) => Math.max(most, moneyOf(id)), 0);
  const calls = sum((id) => O[id].facts.calls || 0), cached = sum((id) => O[id].facts["cached calls"] || 0);
  const names = [...new Set(ids.map((id) => O[id].name))], hue = new Map(names.map((name, n) => [name, (n * 47 + 215) % 360]));
  const orders = { operation: (a, b) => startOf(a) - startOf(b) || endOf(b) - endOf(a), seconds: (a, b) => secondsOf(b) - secondsOf(a), tokens: (a, b) => tokensOf(b) - tokensOf(a), money: (a, b) => moneyOf(b) - moneyOf(a) };
  let order = "operation", sorted = [];
  const head = el("div", { class: "fall heads" }), space = el("div", { class: "space", style: `height:${ids.length * ROW}px` });
  const frame = el("div", { class: "falls", tabindex: "0", role: "group", "aria-label": title, style: `height:${Math.min(SEEN, ids.length + 1) * ROW + 14}px` }, head, space);
  const bar = (share, width, colour, tip) => el("i", { style: `left:min(${(100 * share).toFixed(3)}%, 100% - 2px);width:max(2px,${(100 * width).toFixed(3)}%);background:${colour}`, title: tip });
  const idle = el("div", { class: "fall idle", style: `height:${ids.length * ROW}px` }, el("span"), el("span", { class: "time" }, ...axis.idle.map(([left, width]) => el("u", { style: `left:${(100 * left).toFixed(3)}%;width:${(100 * width).toFixed(3)}%` }))));
  function fall(id, place) {
    const colour = failed(id) ? "var(--bad)" : `hsl(${hue.get(O[id].name)} 60% 50%)`, tokens = tokensOf(id), deep = order === "operation" ? level(id) : 0;
    const start = axis.place(startOf(id)), facts = O[id].facts;
    return el("div", { class: `fall${failed(id) ? " failed" : ""}`, style: `top:${place * ROW}px`, onclick: () => go(id) },
      el("button", { class: "step", style: `padding-left:${4 + 12 * deep}px`, title: id }, O[id].name),
      el("span", { class: "time" }, timed ? bar(start, axis.place(endOf(id)) - start, colour, lasting(secondsOf(id))) : ""),
      el("span", { class: "figure" }, timed ? lasting(secondsOf(id)) : "–"),
      el("span", { class: "figure tokens", title: `${many(facts["prompt tokens"] || 0)} in, ${many(facts["completion tokens"] || 0)} out` }, tokens ? bar(0, tokens / mostTokens, "var(--soft-bar)", "") : "", el("em", {}, tokens ? many(tokens) : "–")),
      el("span", { class: "figure" }, money(moneyOf(id))));
  }
  let first = -1, last = -1;
  function paint() {
    const from = Math.max(0, Math.floor(frame.scrollTop / ROW) - 8), to = Math.min(sorted.length, from + Math.ceil((frame.clientHeight || SEEN * ROW) / ROW) + 16);
    if (from === first && to === last) return;
    first = from; last = to;
    space.replaceChildren(idle, ...sorted.slice(from, to).map((id, n) => fall(id, from + n)));
  }
  function arrange(by) {
    order = by; sorted = [...ids].sort(orders[by]); first = -1;
    const name = (key, shown) => el("button", { "aria-pressed": String(order === key), title: key === "operation" ? "in the order they ran" : `most ${key} first`, onclick: () => arrange(key) }, shown);
    const cut = axis.idle.length ? `time (${axis.idle.length === 1 ? `${lasting(axis.idle[0][2])} idle` : `${many(axis.idle.length)} idle stretches`} cut short)` : "time";
    head.replaceChildren(name("operation", "operation"), el("span", { class: "muted" }, timed ? cut : "the trace has no times"), name("seconds", "seconds"), name("tokens", "tokens"), name("money", "money"));
    frame.scrollTop = 0;
    paint();
  }
  frame.addEventListener("scroll", paint);
  arrange("operation");
  const sums = [[timed ? lasting(axis.work) : "–", "at work"], [`${many(sum((id) => O[id].facts["prompt tokens"] || 0))} + ${many(sum((id) => O[id].facts["completion tokens"] || 0))}`, "tokens in and out"],
    [many(calls), cached ? `model calls, ${many(cached)} of them cached` : "model calls"], [mostMoney ? money(sum(moneyOf)) : "–", mostMoney ? "money, in the currency of the prices" : "money: no prices known"]];
  return [el("h2", { class: "later" }, title), el("div", { class: "sums" }, ...sums.map(([value, name]) => el("div", {}, el("b", {}, value), el("span", { class: "muted" }, name)))), frame];
}
function waterfallView() { openView("waterfall", ...waterfallOf(Object.keys(O), "Time, tokens and money")); }
