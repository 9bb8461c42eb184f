// A table of rows that can be sorted and filtered; a row opens to everything that its file says of it.

const PAGE_ROWS = 40;

class Grid {
  /** `names` are the columns that are shown; `cells` may give the content of some, `details` that of an open row. */
  constructor(of, names, { rows = of.rows, label, cells = {}, details = allColumns, chips = null, sort = null } = {}) {
    Object.assign(this, { of, names, all: rows, label, cells, details, chips, sort });
    this.limit = PAGE_ROWS;
    this.words = "";
    this.chosen = new Set();
    this.open = new Set();
    this.body = make("tbody");
    this.count = make("p", { class: "count", role: "status" });
    this.more = make("button", { type: "button", class: "more", click: () => this.grow() }, "Show more");
    this.head = make("tr", {}, names.map((name) => this.heading(name)));
    this.element = make("div", { class: "grid" }, this.tools(), this.count,
      make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
        make("table", {}, make("caption", { class: "unseen" }, label), make("thead", {}, this.head), this.body)),
      this.more);
    this.show();
  }

  column(name) {
    return this.of.columns[this.of.at[name]];
  }

  heading(name) {
    const column = this.column(name);
    const press = () => this.sortBy(name);
    return make("th", { scope: "col", "data-name": name },
      make("button", { type: "button", title: column.help, click: press }, column.heading));
  }

  tools() {
    const type = (event) => {
      this.words = event.target.value.toLowerCase();
      this.show();
    };
    const search = make("label", {}, "Search ", make("input", { type: "search", input: type, "aria-label": `Search: ${this.label}` }));
    return make("div", { class: "tools" }, search, this.chips ? this.chipRow() : null);
  }

  chipRow() {
    const counts = new Map();
    for (const row of this.all) {
      const value = this.of.get(row, this.chips);
      counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    return make("div", { class: "chips", role: "group", "aria-label": `Only: ${this.chips}` },
      [...counts].map(([value, count]) => {
        const press = (event) => {
          const on = !this.chosen.delete(value);
          if (on) this.chosen.add(value);
          event.currentTarget.setAttribute("aria-pressed", on);
          this.show();
        };
        return make("button", { type: "button", class: "chip", "aria-pressed": "false", "data-value": value, click: press },
          value.replaceAll("_", " "), " ", make("span", { class: "tally" }, String(count)));
      }));
  }

  choose(value) {
    for (const chip of this.element.querySelectorAll(".chip")) {
      if ((chip.dataset.value === value) !== (chip.getAttribute("aria-pressed") === "true")) chip.click();
    }
  }

  sortBy(name) {
    const down = this.sort?.name === name && !this.sort.down;
    this.sort = { name, down };
    this.show();
  }

  grow() {
    this.limit += 4 * PAGE_ROWS;
    this.show();
  }

  /** The rows that pass the filters, in order. Missing values come last, whichever way it is sorted. */
  rows() {
    const { of, words, chosen, chips, sort } = this;
    const found = this.all.filter((row) => (!chosen.size || chosen.has(of.get(row, chips)))
      && (!words || row.some((value) => value.toLowerCase().includes(words))));
    if (!sort) return found;
    const place = of.at[sort.name], turn = sort.down ? -1 : 1;
    const rank = this.ranks?.[sort.name];
    return found.sort((one, other) => {
      const [a, b] = [one[place], other[place]];
      if (a === MISSING || b === MISSING) return (a === MISSING) - (b === MISSING);
      if (rank) return turn * ((rank[a] ?? 99) - (rank[b] ?? 99));
      const both = isNumber(a) && isNumber(b);
      return turn * (both ? Number(a) - Number(b) : a < b ? -1 : Number(a > b));
    });
  }

  show() {
    const rows = this.rows();
    this.body.replaceChildren(...rows.slice(0, this.limit).flatMap((row) => this.line(row)));
    const left = rows.length - Math.min(rows.length, this.limit);
    this.count.textContent = `${rows.length} of ${this.all.length} rows${left ? `, ${left} further down` : ""}`;
    this.more.hidden = !left;
    for (const cell of this.head.children) {
      const mine = this.sort?.name === cell.dataset.name;
      cell.setAttribute("aria-sort", mine ? (this.sort.down ? "descending" : "ascending") : "none");
    }
  }

  line(row) {
    const isOpen = this.open.has(row);
    const toggle = () => {
      if (!this.open.delete(row)) this.open.add(row);
      this.show();
      this.body.querySelector(`[data-row="${this.of.rows.indexOf(row)}"]`)?.focus();
    };
    const line = make("tr", { class: isVoid(this.of, row) ? "void" : null },
      this.names.map((name, place) => this.cell(row, name, place ? null : { toggle, isOpen })));
    if (!isOpen) return [line];
    return [line, make("tr", { class: "open" }, make("td", { colspan: this.names.length }, this.details(this.of, row)))];
  }

  cell(row, name, opens) {
    const content = this.cells[name]?.(this.of, row) ?? this.content(row, name);
    const number = isNumber(this.of.get(row, name)) && !this.cells[name];
    if (!opens) return make("td", { class: number ? "number" : null }, content);
    const button = make("button", { type: "button", class: "opens", "aria-expanded": String(opens.isOpen),
      "data-row": this.of.rows.indexOf(row), click: opens.toggle }, content);
    return make("th", { scope: "row" }, button);
  }

  content(row, name) {
    if (name === "cells") return cellsOf(this.of, row).slice(0, 4).flatMap((id) => [cellLink(this.of.get(row, "machine"), id), " "]);
    const column = this.column(name);
    if (column.low && isVoid(this.of, row)) return "void";
    return column.low ? span(this.of, row, name) : datum(column, this.of.get(row, name));
  }

  /** Opens a row, wherever it is, and shows it. */
  reveal(row) {
    this.open.add(row);
    this.words = "";
    this.element.querySelector("input").value = "";
    if (!this.rows().includes(row)) this.chosen.clear();
    for (const chip of this.element.querySelectorAll(".chip")) chip.setAttribute("aria-pressed", this.chosen.has(chip.dataset.value));
    this.limit = Math.max(this.limit, this.rows().indexOf(row) + 1);
    this.show();
    const button = this.body.querySelector(`[data-row="${this.of.rows.indexOf(row)}"]`);
    button.scrollIntoView({ block: "start" });
    button.focus({ preventScroll: true });
  }
}

/** Everything that a file says of a row, as it stands there. */
function allColumns(of, row) {
  return make("dl", { class: "all" }, of.columns.map((column, place) => {
    const value = row[place];
    const told = isNumber(value) ? make("data", { value }, value) : value;
    return make("div", {}, make("dt", { title: column.help }, column.heading, column.unit ? ` (${column.unit})` : ""),
      make("dd", {}, column.name === "cells" ? cellsOf(of, row).flatMap((id) => [cellLink(of.get(row, "machine"), id), " "]) : told));
  }));
}
