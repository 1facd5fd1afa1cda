for (const head of document.querySelectorAll("th")) head.addEventListener("click", () => {
  const table = head.closest("table"), body = table.tBodies[0], column = head.cellIndex;
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const order = new Intl.Collator("en", {numeric: true}).compare;
  const key = (row) => row.cells[column].textContent.replace(/(\d),(?=\d{3})/g, "$1");
  const rows = [...body.rows].sort((a, b) => order(key(a), key(b)));
  body.append(...(down ? rows.reverse() : rows));
});
document.getElementById("find").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase();
  for (const row of document.querySelector(".nodes table").tBodies[0].rows)
    row.hidden = !row.textContent.toLowerCase().includes(words);
});
