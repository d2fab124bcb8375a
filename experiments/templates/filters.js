/* Filters of a table's rows by the texts that they mark with `data-of`, and by any text. */
const MOST_ROWS = 40;
for (const controls of document.querySelectorAll(".filters")) {
  const table = document.getElementById(controls.dataset.table);
  const rows = table.matches(".cases") ? [...table.tBodies] : [...table.tBodies[0].rows]; // a case may have a second row
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const values = (row, name) => [...row.querySelectorAll(`[data-of="${name}"]`)].map((part) => part.textContent);
  const selects = [...controls.querySelectorAll("select")], search = controls.querySelector("input"), output = controls.querySelector("output");
  const all = controls.appendChild(document.createElement("button"));
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
  controls.addEventListener("input", () => show(MOST_ROWS));
  all.addEventListener("click", () => show(Infinity));
  window.addEventListener("beforeprint", () => show(Infinity));
  for (const link of document.querySelectorAll(`a[data-filters="${controls.dataset.table}"]`))
    link.addEventListener("click", () => {
      search.value = "";
      for (const select of selects) select.value = link.dataset[select.name] || "";
      show(MOST_ROWS);
    });
  controls.hidden = false;
  show(MOST_ROWS);
}
