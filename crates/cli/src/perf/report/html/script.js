"use strict";
// Series are hidden and shown by their legend; tables are sorted by their columns. Without this the page is whole.
document.querySelectorAll(".legend").forEach(function (legend) {
  var groups = legend.parentNode.querySelectorAll("svg.chart g");
  legend.querySelectorAll("li").forEach(function (item) {
    var style = item.querySelector("svg").getAttribute("class").replace("swatch ", "");
    item.tabIndex = 0;
    item.setAttribute("role", "button");
    item.setAttribute("aria-pressed", "true");
    function toggle() {
      var off = item.classList.toggle("off");
      item.setAttribute("aria-pressed", String(!off));
      groups.forEach(function (group) {
        if (group.getAttribute("class").replace(" off", "") === style) { group.classList.toggle("off", off); }
      });
    }
    item.addEventListener("click", toggle);
    item.addEventListener("keydown", function (event) {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
    });
  });
});
document.querySelectorAll("table.big").forEach(function (table) {
  var heads = table.tHead ? Array.from(table.tHead.rows[0].cells) : [];
  heads.forEach(function (head, column) {
    head.classList.add("sort");
    head.title = "sort";
    head.addEventListener("click", function () {
      var down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      function key(body) {
        var cell = body.rows[0].cells[column];
        var text = cell ? cell.textContent.trim() : "";
        var value = cell ? cell.getAttribute("data-v") : null;
        var number = parseFloat(value !== null ? value : text.replace(/,/g, ""));
        return isNaN(number) ? text : number;
      }
      Array.from(table.tBodies).map(function (body) { return [key(body), body]; }).sort(function (a, b) {
        var numbers = typeof a[0] === "number" ? (typeof b[0] === "number" ? a[0] - b[0] : -1) :
          (typeof b[0] === "number" ? 1 : a[0].localeCompare(b[0]));
        return down ? -numbers : numbers;
      }).forEach(function (pair) { table.appendChild(pair[1]); });
    });
  });
});
