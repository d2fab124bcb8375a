/* Filters of a table's rows by the texts that they mark with `data-of`, and by any text. */
const MOST_ROWS = 40;
for (const form of document.querySelectorAll("form.filters")) {
  const rows = [...document.getElementById(form.dataset.table).tBodies[0].rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const values = (row, name) => [...row.querySelectorAll(`[data-of="${name}"]`)].map((part) => part.textContent);
  const selects = [...form.querySelectorAll("select")], search = form.elements.text, output = form.querySelector("output");
  const all = form.appendChild(document.createElement("button"));
  all.type = "button";
  for (const select of selects) {
    const counts = new Map();
    for (const row of rows) for (const value of new Set(values(row, select.name))) counts.set(value, (counts.get(value) || 0) + 1);
    for (const [value, count] of counts) select.append(new Option(`${value} (${count})`, value));
    select.hidden = !counts.size;
  }
  const show = (most) => {
    const sought = search.value.trim().toLowerCase();
    let matching = 0;
    rows.forEach((row, place) => {
      const matches = texts[place].includes(sought) && selects.every((select) => !select.value || values(row, select.name).includes(select.value));
      row.hidden = !matches || ++matching > most;
    });
    output.textContent = `${matching} of ${rows.length}`;
    all.hidden = matching <= most;
    all.textContent = `Show ${matching - most} more`;
  };
  form.addEventListener("input", () => show(MOST_ROWS));
  form.addEventListener("submit", (event) => event.preventDefault());
  all.addEventListener("click", () => show(Infinity));
  window.addEventListener("beforeprint", () => show(Infinity));
  for (const link of document.querySelectorAll(`a[data-filters="${form.dataset.table}"]`))
    link.addEventListener("click", () => {
      form.reset();
      for (const select of selects) select.value = link.dataset[select.name] || "";
      show(MOST_ROWS);
    });
  form.hidden = false;
  show(MOST_ROWS);
}
