// What every part of the page needs: elements made of text, the packed tables, and numbers as the report writes them.

const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

/** An element. Attributes are names of this page; children are elements or texts, and a text is never markup. */
function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for a drawing. */
function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** The text of a packed block: gzip, as base64. */
async function unpacked(id) {
  const letters = atob(byId(id).textContent.trim());
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** Rows of a CSV text, each a list of texts. */
function parsed(text) {
  const rows = [];
  let row = [], at = 0;
  while (at < text.length) {
    let value = "";
    if (text[at] === '"') {
      for (at += 1; ; at += 2) {
        const end = text.indexOf('"', at);
        value += text.slice(at, end);
        at = end;
        if (text[at + 1] !== '"') break;
        value += '"';
      }
      at += 1;
    } else {
      const from = at;
      while (at < text.length && text[at] !== "," && text[at] !== "\n") at += 1;
      value = text.slice(from, at);
    }
    row.push(value);
    if (text[at] === "\n") {
      rows.push(row);
      row = [];
    }
    at += 1;
  }
  return rows;
}

const loaded = new Map();

/** A table of the report: `columns` with what each declares, `rows` as lists of the texts of its CSV file. */
function table(name) {
  if (!loaded.has(name)) loaded.set(name, load(name));
  return loaded.get(name);
}

async function load(name) {
  if (!byId(`table-${name}`)) return { name, columns: [], at: {}, rows: [], get: () => MISSING };
  const declared = (await page()).columns[name];
  const [header, ...rows] = parsed(await unpacked(`table-${name}`));
  const known = new Map(declared.map((column) => [column.name, column]));
  const columns = header.map((column) => known.get(column));
  const at = Object.fromEntries(header.map((column, place) => [column, place]));
  return { name, columns, at, rows, get: (row, column) => (column in at ? row[at[column]] : MISSING) };
}

let described;

/** What the page knows beside the tables: columns, sections, verdicts, places of files. */
function page() {
  described ??= unpacked("page-data").then(JSON.parse);
  return described;
}

const MISSING = "n/a";
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const isNumber = (text) => NUMBER.test(text);

/** A number with so many decimals; an exact half goes to the even digit, as the other reports round it. */
function fixed(value, decimals) {
  if (Math.abs(value) >= 1e21) return String(value);
  const scaled = Math.abs(value) * 10 ** decimals;
  // A true half has so few binary digits; of others the product may be a half by its own rounding.
  const even = scaled % 1 === 0.5 && Math.floor(scaled) % 2 === 0 && Number.isInteger(value * 2 ** (decimals + 1));
  const text = even ? (Math.sign(value) * Math.floor(scaled) / 10 ** decimals).toFixed(decimals) : value.toFixed(decimals);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

/** At most four significant digits; whole numbers in full. */
function short(value, digits = 4) {
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
  if (!Number.isFinite(value)) return String(value).replace("Infinity", "inf");
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e").map((part, place) => (place ? Number(part) : part));
  if (exponent >= -4 && exponent < digits) return trimmed(fixed(value, Math.max(digits - 1 - exponent, 0)));
  return `${trimmed(mantissa)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

/** A value as a reader sees it, by what its column declares. */
function shown(column, text, decimals = column.decimals) {
  if (text === "true" || text === "false") return text === "true" ? "yes" : "no";
  if (!isNumber(text)) return text;
  const value = Number(text);
  if ((column.unit === "share" || column.unit === "difference") && decimals !== null) return `${fixed(100 * value, decimals)} %`;
  if (column.unit === "bytes" && decimals === null) return `${fixed(value / 2 ** 20, 1)} MiB`;
  return decimals === null ? short(value) : fixed(value, decimals);
}

/** The same as an element: a number carries the text of its file. */
function datum(column, text, decimals) {
  const told = shown(column, text, decimals);
  return isNumber(text) ? make("data", { value: text }, told) : told;
}

/** A value with its interval in brackets, where the row has both. */
function span(of, row, name, unit = "") {
  const column = of.columns[of.at[name]];
  const value = of.get(row, name), low = of.get(row, column.low), high = of.get(row, column.high);
  if (!column.low || low === MISSING || high === MISSING || value === MISSING) return [datum(column, value), value === MISSING ? "" : unit];
  const decimals = column.decimals ?? of.columns[of.at[column.low]].decimals ?? 2;
  const end = (text) => datum(column, text, decimals);
  return [datum(column, value, decimals), unit, make("span", { class: "ends" }, " (", end(low), " to ", end(high), ")")];
}

const cellsOf = (of, row) => of.get(row, "cells").split(" ").filter((id) => id && id !== "none" && id !== MISSING);
const isVoid = (of, row) => of.get(row, "void") === "true";

/** Opens a cell's panel; a link, so that it can be copied and opened anew. */
function cellLink(machine, id, words = id) {
  return make("a", { href: `#cell/${encodeURIComponent(machine)}/${encodeURIComponent(id)}`, class: "cell-link" }, words);
}

/** Lets the browser paint between two pieces of work. */
const pause = () => new Promise((go) => setTimeout(go, 0));
