/* A chart of the rows of a table: across what each costs, up what it gains. A point leads to its row. */
const HUES = ["var(--accent)", "#d97706", "#059669", "#9333ea", "#dc2626", "#0891b2"];
const element = (name, attributes, text = "") => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
};
function ticks(least, most, smallest = 0) {
  const rough = (most - least) / 6, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= Math.max(rough, smallest)) || smallest;
  const marks = [];
  for (let at = Math.ceil(least / step) * step; at <= most + step / 1e6; at += step) marks.push(Number(at.toPrecision(6)));
  return marks;
}
for (const figure of document.querySelectorAll("figure.scatter")) {
  const points = [...document.querySelectorAll(`#${figure.dataset.table} tr[data-cost]`)].map((row) => ({
    row, x: Number(row.dataset.cost), y: Number(row.dataset.gain), group: row.dataset.group || "", whole: row.dataset.hollow === undefined }));
  const groups = [...new Set(points.map((point) => point.group))];
  const range = (key, pad) => {
    const [least, most] = [Math.min(0, ...points.map((point) => point[key])), Math.max(0, ...points.map((point) => point[key]))];
    const room = (most - least || 1) * pad;
    return [least - room, most + room];
  };
  const [left, right, top] = [52, 500, 12 + 18 * (groups.length > 1 ? groups.length : 0)], bottom = top + 236, [x0, x1] = range("x", 0.06), [y0, y1] = range("y", 0.1);
  const across = (x) => left + ((x - x0) / (x1 - x0)) * (right - left), up = (y) => bottom - ((y - y0) / (y1 - y0)) * (bottom - top);
  const svg = element("svg", { viewBox: `0 0 512 ${bottom + 40}`, "aria-hidden": "true" });
  const { unit = "", up: share = "", sign = "exceptZero", least = 0 } = figure.dataset;
  const shown = (value, after) => value.toLocaleString("en", { signDisplay: sign }).replace("-", "−") + after;
  for (const x of ticks(x0, x1, Number(least))) svg.append(element("line", { x1: across(x), x2: across(x), y1: top, y2: bottom }), element("text", { x: across(x), y: bottom + 16, "text-anchor": "middle" }, shown(x, unit)));
  for (const y of ticks(y0, y1)) svg.append(element("line", { x1: left, x2: right, y1: up(y), y2: up(y) }), element("text", { x: left - 6, y: up(y) + 4, "text-anchor": "end" }, shown(y, share)));
  svg.append(element("line", { x1: left, x2: right, y1: up(0), y2: up(0), style: "stroke: var(--muted)" }), element("text", { x: (left + right) / 2, y: bottom + 34, "text-anchor": "middle" }, figure.dataset.across));
  groups.forEach((group, place) => { if (groups.length > 1) svg.append(element("text", { x: left, y: 14 + 18 * place, style: `fill: ${HUES[place % HUES.length]}` }, `● ${group.slice(0, 60)}`)); });
  if (figure.dataset.joined !== undefined)
    for (const group of groups) svg.append(element("polyline", { points: points.filter((point) => point.group === group).map((point) => `${across(point.x)},${up(point.y)}`).join(" "), style: `fill: none; stroke: ${HUES[groups.indexOf(group) % HUES.length]}` }));
  for (const point of points) {
    const hue = HUES[groups.indexOf(point.group) % HUES.length];
    const circle = element("circle", { cx: across(point.x), cy: up(point.y), r: 5, style: `stroke: ${hue}; fill: ${point.whole ? hue : "var(--card)"}` });
    circle.append(element("title", {}, point.row.dataset.title));
    circle.addEventListener("click", () => {
      location.hash = point.row.id;
      point.row.querySelector("details")?.setAttribute("open", "");
    });
    svg.append(circle);
  }
  figure.append(svg);
}
