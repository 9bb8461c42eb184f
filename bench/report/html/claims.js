// The claims: sorted, filtered, searched; each opens to everything that its verdict rests on.

const badge = (verdict) => make("span", { class: `verdict ${verdict}` }, verdict.replaceAll("_", " "));
const claimKey = (of, row) => [of.get(row, "claim_id"), of.get(row, "machine"), of.get(row, "build")];
const claimHash = (parts) => `#claim/${parts.map(encodeURIComponent).join("/")}`;
const claimLink = (of, row) => make("a", { href: claimHash(claimKey(of, row)) }, of.get(row, "says") === MISSING ? of.get(row, "claim_id") : of.get(row, "says"));

const FIRST = [["says", "claimed"], ["reason", "why"], ["source", "source"], ["place", "where it stands"], ["published_under", "its conditions"], ["author_status", "its author since"],
  ["rule", "rule"], ["evidence", "published as"], ["judged_by", "judged by"]];

let claimGrid;

async function showClaims() {
  const of = await table("claims"), { verdicts } = await page();
  const host = byId("claims-list");
  if (!of.rows.length) return host.replaceChildren(make("p", {}, "No claim sheet was judged. `python -m bench report claims=FILE` judges one against the stored results."));
  const cells = {
    says: (table, row) => (table.get(row, "says") === MISSING ? table.get(row, "claim_id") : table.get(row, "says")),
    verdict: (table, row) => badge(table.get(row, "verdict")),
    published: (table, row) => [datum({ unit: "", decimals: null }, table.get(row, "published")), unitOf(table, row)],
    measured: (table, row) => span(table, row, "measured", unitOf(table, row)),
  };
  claimGrid = new Grid(of, ["says", "verdict", "published", "measured", "machine", "judged_by"], { label: "Claims", cells, details: claimDetails, chips: "verdict" });
  claimGrid.ranks = { verdict: Object.fromEntries(Object.keys(verdicts).map((name, place) => [name, place])) };
  claimGrid.sort = { name: "verdict", down: false };
  claimGrid.show();
  host.replaceChildren(claimGrid.element);
}

function unitOf(of, row) {
  const unit = of.get(row, "unit");
  if (["", "1", "ratio", "count", "share", "none", MISSING].includes(unit)) return "";
  return unit === "x" ? "x" : ` ${unit}`;
}

function claimDetails(of, row) {
  const entries = FIRST.filter(([name]) => name in of.at && ![MISSING, ""].includes(of.get(row, name)));
  const machine = of.get(row, "machine"), ids = cellsOf(of, row);
  const counted = of.get(row, "counted"), distinct = of.get(row, "distinct");
  const rates = counted === MISSING || distinct === MISSING ? null : make("div", {}, make("dt", {}, "counted and distinct"),
    make("dd", {}, make("data", { value: counted }, short(Number(counted))), " tok/s counted, ", make("data", { value: distinct }, short(Number(distinct))), " tok/s of different tokens"));
  return make("div", {}, make("dl", { class: "facts" }, entries.map(([name, words]) => make("div", {}, make("dt", {}, words), make("dd", {}, of.get(row, name)))), rates,
    make("div", {}, make("dt", {}, "cells"), make("dd", {}, ids.length ? ids.flatMap((id) => [cellLink(machine, id, `${id}: see its tokens and runs`), " "]) : "it rests on no record"))),
  make("details", {}, make("summary", {}, "every column"), allColumns(of, row)));
}

/** Opens a claim: of a machine and build, or the first row with that id. */
async function revealClaim([id, machine, build]) {
  const of = await table("claims");
  const row = of.rows.find((one) => of.get(one, "claim_id") === id && (!machine || (of.get(one, "machine") === machine && (!build || of.get(one, "build") === build))));
  if (row && claimGrid) claimGrid.reveal(row);
}
