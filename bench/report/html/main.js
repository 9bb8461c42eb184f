// Puts the page together: claims first, then a section after the other, so that there is something to read at once.

const PICTURES = {
  speedup: (of, rows) => [legend(["answer", "one answer"], ["sum", "in sum over answers"], ["counted", "every emit counted: no speed"]),
    panels(grouped(of, rows.filter((row) => of.get(row, "prompt_class") === "all")), (members, name) => forest(of, members, name)),
    make("h3", {}, "By class of text"), heat(of, rows.filter((row) => of.get(row, "scope") === "answer"))],
  step_cost: (of, rows) => panels(grouped(of, rows), (members, name) => stepCurves(of, members, name)),
  acceptance: (of, rows) => scatter(of, rows.filter((row) => of.get(row, "depth") === "0"), "collision_mean", "rate", false,
    (row) => `${armName(of, row)}: accepted ${fixed(100 * valueOf(of, row, "rate"), 1)} %, collision probability ${fixed(100 * valueOf(of, row, "collision_mean"), 1)} %`),
  decomposition: (of, rows) => [legend(...PARTS.map((part) => [`part-${part}`, part]), ["", "the thin bar is plain decoding"]), panels(grouped(of, rows), (members, name) => bars(of, members, name))],
  predictions: (of, rows) => scatter(of, rows.filter((row) => of.get(row, "prompt_class") === "all" && of.get(row, "arm") === "treatment"), "predicted", "measured", true,
    (row) => `${armName(of, row)}: predicted ${fixed(valueOf(of, row, "predicted"), 2)}, measured ${fixed(valueOf(of, row, "measured"), 2)}`),
};

async function showView(host) {
  const { table: name, columns, label: words, picture, only } = JSON.parse(host.dataset.view);
  const of = await table(name);
  const rows = only.length ? of.rows.filter((row) => only.slice(1).includes(of.get(row, only[0]))) : of.rows;
  if (!rows.length) return;
  if (picture) host.append(make("div", { class: "picture" }, PICTURES[name](of, rows)));
  const folded = make("details", {}, make("summary", {}, `${words}: ${rows.length} rows of ${name}.csv`));
  folded.addEventListener("toggle", () => folded.children.length > 1 || folded.append(new Grid(of, columns, { rows, label: words }).element));
  host.append(folded);
}

function route() {
  const [kind, ...parts] = location.hash.slice(1).split("/").map(decodeURIComponent);
  const dialog = byId("cell");
  if (kind === "cell" && parts.length === 2) return openCell(...parts);
  if (dialog.open) dialog.close();
  if (kind === "claim") return revealClaim(parts);
  return undefined;
}

/** Where the reader was before a cell was opened. */
let before = "";

function closed() {
  if (location.hash.startsWith("#cell/")) history.replaceState(null, "", before || "#claims");
}

function scheme() {
  const root = document.documentElement;
  const dark = root.dataset.scheme ? root.dataset.scheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.scheme = dark ? "light" : "dark";
}

async function start() {
  byId("scheme").addEventListener("click", scheme);
  byId("cell").addEventListener("close", closed);
  document.addEventListener("click", (event) => {
    if (event.target.closest?.('a[href^="#cell/"]') && !location.hash.startsWith("#cell/")) before = location.hash;
  });
  addEventListener("hashchange", route);
  await showClaims();
  await route();
  document.documentElement.dataset.ready = "claims";
  for (const host of document.querySelectorAll("[data-view]")) {
    await pause();
    await showView(host);
  }
  document.documentElement.dataset.ready = "all";
}

start().catch((error) => {
  byId("claims-list").replaceChildren(make("p", { class: "warn" }, `This browser cannot unpack the tables (${error.message}). They lie beside this page as CSV files, and report.md has them in words.`));
});
