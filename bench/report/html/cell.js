// The panel of one cell: what it is about, its runs and rounds, its texts, its controls, and where its files lie.

const TOLD = ["state", "reason", "void_reason", "kind", "label", "model", "quantization", "machine", "build", "cpu", "gpu", "threads", "n_predict",
  "temperature", "streams", "time_utc", "seconds", "unproven"];
const FOLDED = [["controls", ["control", "severity", "value", "sentence"]], ["stalls", ["run", "arm", "block", "round", "lost_ms", "took_ms", "share"]],
  ["acceptance", ["short", "depth", "tested", "accepted", "rate", "collision_mean"]], ["decomposition", ["arm", "total_ms", "decode_ms", "draft_ms", "sample_ms", "rollback_ms", "host_ms"]],
  ["predictions", ["arm", "prompt_class", "predicted", "measured", "ratio"]], ["step_cost", ["width", "layout", "step_ms", "relative_cost"]],
  ["memory", ["streams", "arm", "kv_bytes", "state_bytes", "measured_bytes"]], ["energy", ["arm", "joules_per_token", "mean_w"]], ["peers", ["tool", "width", "tok_s", "ours_tok_s", "ratio"]]];
const RUN_COLUMNS = [["run", "run", short], ["block", "block", short], ["order", "order", short], ["arm", "arm"], ["prompt", "prompt"], ["distinct", "different tokens", short],
  ["counted", "emits", short], ["decode_window_ns", "window s", (value) => fixed(value / 1e9, 3)], ["prefill_ns", "prefill s", (value) => fixed(value / 1e9, 3)],
  ["clock_mhz", "clock MHz", (value) => fixed(value, 0)], ["temp_c", "°C", (value) => fixed(value, 0)], ["load", "load", (value) => fixed(value, 2)],
  ["other_cpus", "others' CPUs", (value) => fixed(value, 2)], ["steal", "steal", (value) => fixed(value, 2)], ["energy_j", "J", (value) => fixed(value, 1)]];

async function openCell(machine, id) {
  const dialog = byId("cell");
  const body = make("div", {});
  dialog.replaceChildren(body);
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  const cells = await table("cells");
  const row = cells.rows.find((one) => cells.get(one, "machine") === machine && cells.get(one, "cell") === id);
  const name = row ? `${armName(cells, row)} · ${machine}/${id}` : `${machine}/${id}`;
  const close = make("button", { type: "button", class: "close", click: () => dialog.close() }, "Close");
  body.append(make("div", { class: "panel-head" }, make("h2", { id: "cell-title", tabindex: -1 }, name), close));
  if (!row) return body.append(make("p", {}, "No such cell is in this report."));
  const { panels, command, records } = await page();
  const block = panels[`${machine}/${id}`];
  const panel = block === undefined ? null : JSON.parse(await unpacked(`panel-${block}`));
  body.append(...trouble(cells, row), make("p", { class: "soft" }, oneLine(cells, row)));
  if (panel) body.append(...pictures(panel, await table("stalls")));
  body.append(make("h3", {}, "What the report makes of it"), ...(await judgedRows(machine, id)), ...(await differing(machine, id)),
    make("h3", {}, "Under which conditions"), about(cells, row), ...rerun(machine, id, command, cells.get(row, "state")));
  if (panel) body.append(...raw(panel, records));
}

const ofCell = (of, machine, id) => of.rows.filter((row) => of.get(row, "machine") === machine && cellsOf(of, row).includes(id));

function about(cells, row) {
  const told = TOLD.filter((name) => name in cells.at && !["", MISSING].includes(cells.get(row, name)));
  return make("dl", { class: "facts" }, told.map((name) => make("div", {}, make("dt", {}, cells.columns[cells.at[name]].heading),
    make("dd", {}, datum(cells.columns[cells.at[name]], cells.get(row, name))))));
}

function trouble(cells, row) {
  const state = cells.get(row, "state");
  if (state !== "done") return [make("p", { class: "warn" }, `This cell is ${state}: ${cells.get(row, "reason")}`)];
  return isVoid(cells, row) ? [make("p", { class: "warn" }, `This cell is void and counts for nothing: ${cells.get(row, "void_reason")}`)] : [];
}

/** What the cell is about, in the fewest words. */
function oneLine(cells, row) {
  const told = ["label", "model", "quantization", "machine", "time_utc"].map((name) => cells.get(row, name)).filter((word) => word && word !== MISSING);
  return told.join(" · ");
}

function rerun(machine, id, folder, state) {
  if (state !== "done") return [make("h3", {}, "Measure it again"), make("p", {}, "The same sweep measures it again.")];
  return [make("h3", {}, "Measure it again"), make("pre", {}, `python -m bench rerun ${folder ? `${folder}/${machine}/` : ""}${id}`)];
}

function pictures(panel, stalls) {
  const made = [];
  panel.pairs.forEach((pair, place) => {
    const run = panel.shown[pair[0]];
    const why = place ? "the first that leaves plain decoding's text" : "that of median speed";
    made.push(make("h3", {}, `Token by token: run ${run.run}, ${why}`), new Reel(panel, pair).element);
    if (run.left_out) made.push(make("p", { class: "soft" }, `${run.left_out} further rounds are in rounds.csv.gz.`));
  });
  if (panel.runs.run) {
    made.push(make("h3", {}, "Runs in order"), runStrip(panel, stalls), runTable(panel));
    if (panel.all_runs > panel.runs.run.length) made.push(make("p", { class: "soft" }, `The first ${panel.runs.run.length} of ${panel.all_runs} runs; runs.csv.gz has all.`));
  }
  if (panel.pairs.length) made.push(make("h3", {}, "Rounds over time"), roundsOverTime(panel));
  return made;
}

/** All runs on one axis of time; what the record calls a stall is marked. */
function runStrip(panel, stalls) {
  const { runs } = panel, arms = [...new Set(runs.arm)], start = Math.min(...runs.start_ns), end = Math.max(...runs.end_ns);
  const x = scale(start, end, 110, 750, false);
  const held = new Set(stalls.rows.filter((row) => stalls.get(row, "machine") === panel.machine && stalls.get(row, "cell") === panel.cell).map((row) => stalls.get(row, "run")));
  const marks = runs.run.map((run, at) => {
    const y = 6 + 20 * arms.indexOf(runs.arm[at]);
    const stalled = held.has(String(run));
    return draw("rect", { x: x(runs.start_ns[at]).toFixed(2), y, width: Math.max(x(runs.end_ns[at]) - x(runs.start_ns[at]), 1).toFixed(2), height: 14, class: stalled ? "stalled" : runs.arm[at] === "baseline" ? "plain" : "answer" },
      draw("title", {}, `run ${run}, ${runs.arm[at]}, ${runs.prompt[at]}${stalled ? ", held up" : ""}`));
  });
  const names = arms.map((arm, place) => label(102, 17 + 20 * place, arm, { "text-anchor": "end" }));
  return make("figure", {}, draw("svg", { viewBox: `0 0 760 ${12 + 20 * arms.length}`, class: "chart", role: "img", "aria-label": `${runs.run.length} runs of ${arms.length} arms in the order in which they ran` }, names, marks),
    make("figcaption", {}, `${fixed((end - start) / 1e9, 1)} s from left to right${held.size ? "; runs that were held up stand out" : ""}`));
}

function runTable(panel) {
  const { runs } = panel;
  const known = RUN_COLUMNS.filter(([name]) => runs[name] && runs[name].some((value) => value !== null && value !== -1));
  const rows = runs.run.map((run, at) => make("tr", {}, known.map(([name, , told]) => {
    const value = runs[name][at];
    if (value === null) return make("td", {}, MISSING);
    return told ? make("td", { class: "number" }, make("data", { value }, told(value))) : make("td", {}, value);
  })));
  const head = make("tr", {}, known.map(([, words]) => make("th", { scope: "col" }, words)));
  return make("details", {}, make("summary", {}, `${runs.run.length} runs with clock, load and windows`),
    make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Runs in order" }, make("table", { class: "runs" }, make("thead", {}, head), make("tbody", {}, rows))));
}

/** How long each round took, part by part: the run of the treatment above, the plain one below, on one scale. */
function roundsOverTime(panel) {
  const [treated, plain] = panel.pairs[0];
  const lines = [[`run ${panel.shown[treated].run}, on trial`, panel.shown[treated]], ...(plain === null ? [] : [[`run ${panel.shown[plain].run}, plain`, panel.shown[plain]]])];
  const sums = lines.map(([, run]) => run.rounds.total.reduce((sum, took) => sum + took, 0));
  const longest = Math.max(...lines.flatMap(([, run]) => run.rounds.total), 1), x = scale(0, Math.max(...sums, 1), 8, 752, false);
  const marks = lines.map(([words, { rounds }], line) => {
    const floor = 112 + 126 * line;
    let from = 0;
    const parts = Object.fromEntries(PARTS.map((part) => [part, ""]));
    rounds.total.forEach((total, round) => {
      let top = floor;
      const left = x(from), wide = Math.max(x(from + total) - left - 0.4, 0.4);
      from += total;
      for (const part of PARTS) {
        const took = part === "host" ? total - rounds.decode[round] - rounds.draft[round] - rounds.sample[round] - rounds.rollback[round] : rounds[part][round];
        const high = (96 * Math.max(took, 0)) / longest;
        top -= high;
        if (high > 0.05) parts[part] += `M${left.toFixed(1)} ${top.toFixed(1)}h${wide.toFixed(1)}v${high.toFixed(1)}h${(-wide).toFixed(1)}z`;
      }
    });
    return [PARTS.map((part) => draw("path", { d: parts[part], class: `part-${part}` })), label(8, floor - 102, words), label(752, floor + 12, `${fixed(from / 1e6, 3)} s`, { "text-anchor": "end", class: "axis" })];
  });
  return make("figure", {}, draw("svg", { viewBox: `0 0 760 ${128 * lines.length}`, class: "chart", role: "img", "aria-label": "Time of each round by part" }, marks),
    legend(...PARTS.map((part) => [`part-${part}`, part])), make("figcaption", {}, `A column is a round: as wide and as high as it took; the highest took ${short(longest / 1000)} ms.`));
}

async function differing(machine, id) {
  const of = await table("differences");
  const rows = ofCell(of, machine, id);
  if (!rows.length) return [make("h3", {}, "First difference"), make("p", {}, "Every answer that was graded is the baseline's, token by token; or none was.")];
  const names = ["arm", "prompt", "position", "grade", "gap_arm", "gap_baseline", "noise", "quantity", "token_arm", "token_baseline"];
  return [make("h3", {}, "First differences, with both gaps"), new Grid(of, names, { rows, label: "Answers that differ from the baseline's" }).element];
}

async function judgedRows(machine, id) {
  const made = [];
  const speed = await table("speedup");
  const rows = ofCell(speed, machine, id);
  if (rows.length) made.push(new Grid(speed, ["short", "prompt_class", "scope", "speedup", "tok_s", "baseline_tok_s", "counted_tok_s", "lossless"], { rows, label: "Speed-up of this cell" }).element);
  for (const [name, columns] of FOLDED) {
    const of = await table(name);
    const found = ofCell(of, machine, id);
    if (!found.length) continue;
    const host = make("details", {}, make("summary", {}, `${name.replaceAll("_", " ")}: ${found.length} rows`));
    host.addEventListener("toggle", () => host.children.length > 1 || host.append(new Grid(of, columns, { rows: found, label: name }).element));
    made.push(host);
  }
  const claims = await table("claims");
  const mine = ofCell(claims, machine, id);
  if (mine.length) made.push(make("h3", {}, "Claims that rest on it"), make("ul", {}, mine.map((row) => make("li", {}, badge(claims.get(row, "verdict")), " ", claimLink(claims, row)))));
  return made.length ? made : [make("p", {}, "No row of the report rests on it.")];
}

function raw(panel, records) {
  const link = (file) => (records ? make("a", { href: `${records}/${panel.folder}/${file}` }, file) : file);
  return [make("h3", {}, "Raw records"), make("ul", {}, panel.files.map((file) => make("li", {}, link(file)))),
    make("details", {}, make("summary", {}, "Configuration"), make("pre", { class: "raw" }, panel.config))];
}
