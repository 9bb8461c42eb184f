// Pictures of the judged tables, as plain SVG. A void row is in none of them. Every mark leads to its cell.

/** On a phone a picture is drawn narrower and taller, so that its letters stay as large as the page's. */
const NARROW = matchMedia("(max-width: 34rem)").matches;
const WIDE = NARROW ? 360 : 760;
/** Where names of arms end: beside the marks, or above them. */
const NAMES = NARROW ? 0 : 310;

/** Rows by machine, build and model: what must be equal for two rows to stand in one picture. */
function grouped(of, rows) {
  const groups = new Map();
  for (const row of rows) {
    const key = [of.get(row, "machine"), `${of.get(row, "model")} ${of.get(row, "quantization")}`, of.get(row, "build")];
    const name = key.join(" · ");
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(row);
  }
  return [...groups];
}

/** A frame of panels; each is one group with its picture. More than a few are folded away. */
function panels(groups, picture, open = 4) {
  return make("div", { class: "panels" }, groups.map(([name, rows], place) => {
    const figure = make("figure", {}, make("figcaption", {}, name), picture(rows, name));
    return place < open ? figure : make("details", {}, make("summary", {}, name), figure);
  }));
}

function scale(low, high, from, to, log) {
  const turn = log ? Math.log : (value) => value;
  const span = turn(high) - turn(low) || 1;
  return (value) => from + ((turn(Math.min(Math.max(value, low), high)) - turn(low)) / span) * (to - from);
}

/** Round numbers inside a logarithmic range. */
function ticks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of [1, 2, 5]) found.push(Number((step * 10 ** power).toPrecision(1)));
  }
  const inside = found.filter((value) => value >= low && value <= high);
  return inside.length > 7 ? inside.filter((value) => /^0?\.?0*1/.test(String(value))) : inside;
}

function svgOf(height, label, ...marks) {
  return draw("svg", { viewBox: `0 0 ${WIDE} ${height}`, role: "group", "aria-label": label, class: "chart" }, marks);
}

const label = (x, y, words, attributes = {}) => draw("text", { x, y, ...attributes }, words);

/** A mark that leads to the row's first cell, and says in words what it stands for. */
function linked(of, row, words, ...marks) {
  const [id] = cellsOf(of, row);
  const title = draw("title", {}, words);
  if (!id) return draw("g", {}, title, marks);
  const href = `#cell/${encodeURIComponent(of.get(row, "machine"))}/${encodeURIComponent(id)}`;
  return draw("a", { href, "aria-label": words }, title, marks);
}

const valueOf = (of, row, name) => (isNumber(of.get(row, name)) ? Number(of.get(row, name)) : NaN);

/** An arm in words, with its temperature where it is above 0. */
function armName(of, row) {
  const temperature = of.get(row, "temperature");
  const scope = of.get(row, "scope") === "aggregate" ? ", sum of streams" : "";
  const short = of.get(row, "short");
  return `${short === MISSING ? of.get(row, "kind") : short}${scope}${Number(temperature) > 0 ? `, T=${temperature}` : ""}`;
}

/** A speed-up with its interval a line, fastest first, on a logarithmic axis with 1 marked. */
function forest(of, rows, name) {
  const sound = rows.filter((row) => !isVoid(of, row) && valueOf(of, row, "speedup") > 0);
  sound.sort((one, other) => valueOf(of, other, "speedup") - valueOf(of, one, "speedup"));
  const values = sound.flatMap((row) => ["speedup", "counted_speedup"].map((column) => valueOf(of, row, column)))
    .filter((value) => value > 0);
  const low = Math.min(0.5, ...values) / 1.15, high = Math.max(1.5, ...values) * 1.15;
  const left = NAMES + 12, right = WIDE - 56, x = scale(low, high, left, right, true), tall = NARROW ? 40 : 22;
  const height = 30 + tall * sound.length + 24;
  const axis = ticks(low, high).map((value) => [
    draw("line", { x1: x(value), x2: x(value), y1: 18, y2: height - 22, class: value === 1 ? "one" : "tick" }),
    label(x(value), height - 8, `${value}`, { "text-anchor": "middle", class: "axis" })]);
  const marks = sound.map((row, place) => {
    const y = 30 + tall * (place + (NARROW ? 0.5 : 0));
    const [speed, from, to] = ["speedup", "ci_low", "ci_high"].map((column) => valueOf(of, row, column));
    const counted = valueOf(of, row, "counted_speedup");
    const sum = of.get(row, "scope") === "aggregate";
    const illusion = !sum && counted > 1.001 * speed;
    const ends = [[from, low], [to, high]].filter(([end, edge]) => (edge === low ? end < low : end > high));
    const words = `${armName(of, row)}: ${fixed(speed, 2)} (${fixed(from, 2)} to ${fixed(to, 2)})`
      + (illusion ? `; every emit counted ${fixed(counted, 2)}` : "");
    return linked(of, row, words,
      draw("rect", { x: 0, y: y + 11 - tall, width: WIDE, height: tall, class: "hit" }), named(armName(of, row), y),
      from > 0 ? draw("line", { x1: x(from), x2: x(to), y1: y, y2: y, class: "ci" }) : null,
      ends.map(([, edge]) => label(x(edge), y + 4, edge === low ? "◂" : "▸", { class: "arrow", "text-anchor": "middle" })),
      illusion ? draw("path", { d: diamond(x(counted), y, 5), class: "counted" }) : null,
      sum ? draw("rect", { x: x(speed) - 4, y: y - 4, width: 8, height: 8, class: "sum" })
        : draw("circle", { cx: x(speed), cy: y, r: 4.5, class: "answer" }),
      label(WIDE - 4, y + 4, fixed(speed, 2), { "text-anchor": "end", class: "figure", "data-value": of.get(row, "speedup") }));
  });
  return svgOf(height, `Speed-up over plain decoding, ${name}`, axis, marks);
}

/** The name of an arm: to the left of its marks at height `y`, on a phone above them. */
function named(words, y) {
  return NARROW ? label(4, y - 14, clipped(words, 48)) : label(NAMES, y + 4, clipped(words, 42), { "text-anchor": "end" });
}

const diamond = (x, y, r) => `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z`;
const clipped = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);

/** Speed-up by way of decoding and class of text; one colour for slower, one for faster, and the number in it. */
function heat(of, rows) {
  const classes = [...new Set(rows.map((row) => of.get(row, "prompt_class")))].filter((name) => name !== "all").sort();
  const lines = new Map();
  for (const row of rows) {
    if (isVoid(of, row)) continue;
    const key = `${armName(of, row)} ${of.get(row, "cells")}`;
    if (!lines.has(key)) lines.set(key, { row, found: new Map() });
    lines.get(key).found.set(of.get(row, "prompt_class"), row);
  }
  const shownLines = [...lines.values()].filter(({ found }) => classes.some((name) => found.has(name)));
  if (!classes.length || !shownLines.length) return make("p", {}, "No cell here has texts of several classes.");
  const head = make("tr", {}, make("th", { scope: "col" }, "way of decoding"),
    classes.map((name) => make("th", { scope: "col" }, name.replaceAll("_", " "))));
  const body = shownLines.map(({ row, found }) => make("tr", {},
    make("th", { scope: "row" }, cellLink(of.get(row, "machine"), cellsOf(of, row)[0], armName(of, row))),
    classes.map((name) => heatCell(of, found.get(name)))));
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Speed-up by class of text" },
    make("table", { class: "heat" }, make("thead", {}, head), make("tbody", {}, body)));
}

function heatCell(of, row) {
  if (!row) return make("td", {}, "");
  const value = valueOf(of, row, "speedup");
  const [low, high] = ["ci_low", "ci_high"].map((name) => valueOf(of, row, name));
  const kind = high < 1 ? "slower" : low > 1 ? "faster" : "even";
  return make("td", { class: kind, title: `${fixed(low, 2)} to ${fixed(high, 2)}` }, datum(of.columns[of.at.speedup], String(of.get(row, "speedup"))));
}

/** Curves of what a decode of some width costs over one of width 1; the diagonal is no gain at all. */
function stepCurves(of, rows, name) {
  const sound = rows.filter((row) => !isVoid(of, row) && valueOf(of, row, "relative_cost") > 0);
  const widths = sound.map((row) => valueOf(of, row, "width"));
  const most = Math.max(2, ...widths), top = Math.max(2, ...sound.map((row) => valueOf(of, row, "relative_cost")));
  const right = WIDE - (NARROW ? 20 : 150), x = scale(1, most, 60, right, true), y = scale(Math.min(1, ...sound.map((row) => valueOf(of, row, "relative_cost"))), top * 1.1, 270, 16, true);
  const axes = [...new Set(widths)].map((width) => label(x(width), 290, String(width), { "text-anchor": "middle", class: "axis" }))
    .concat(ticks(1, top * 1.1).map((value) => [draw("line", { x1: 60, x2: right, y1: y(value), y2: y(value), class: "tick" }),
      label(52, y(value) + 4, String(value), { "text-anchor": "end", class: "axis" })]));
  const reach = Math.min(most, top * 1.1);
  const diagonal = [draw("path", { d: `M${x(1)} ${y(1)}L${x(reach)} ${y(reach)}`, class: "one" }),
    label(x(reach) - 4, y(reach) + 14, "as dear as one by one", { "text-anchor": "end", class: "axis" })];
  const layouts = [...new Set(sound.map((row) => of.get(row, "layout")))];
  const curves = layouts.map((layout, place) => {
    const points = sound.filter((row) => of.get(row, "layout") === layout).sort((a, b) => valueOf(of, a, "width") - valueOf(of, b, "width"));
    const spots = points.map((row) => {
      const [width, cost, low, high] = ["width", "relative_cost", "ci_low", "ci_high"].map((column) => valueOf(of, row, column));
      return linked(of, row, `${layout}, width ${width}: ${fixed(cost, 2)} (${fixed(low, 2)} to ${fixed(high, 2)})`,
        low > 0 ? draw("line", { x1: x(width), x2: x(width), y1: y(low), y2: y(high), class: "ci" }) : null,
        draw("circle", { cx: x(width), cy: y(cost), r: 3.5, class: `series-${place}` }));
    });
    const path = [...new Map(points.map((row) => [valueOf(of, row, "width"), row])).values()]
      .map((row, at) => `${at ? "L" : "M"}${x(valueOf(of, row, "width"))} ${y(valueOf(of, row, "relative_cost"))}`).join("");
    const last = points.at(-1);
    return [draw("path", { d: path, class: `curve series-${place}` }), spots,
      label(x(valueOf(of, last, "width")) + (NARROW ? 0 : 8), y(valueOf(of, last, "relative_cost")) + (NARROW ? -8 : 4), layout, { "text-anchor": NARROW ? "end" : "start" })];
  });
  return svgOf(300, `Cost of a decode by its width, ${name}`, axes, diagonal, curves);
}

/** Points of two columns on equal axes with the diagonal; `log` for ratios. */
function scatter(of, rows, across, up, log, words) {
  const sound = rows.filter((row) => !isVoid(of, row) && Number.isFinite(valueOf(of, row, across)) && Number.isFinite(valueOf(of, row, up))
    && (!log || (valueOf(of, row, across) > 0 && valueOf(of, row, up) > 0)));
  if (!sound.length) return make("p", {}, "Nothing to compare here.");
  const values = sound.flatMap((row) => [valueOf(of, row, across), valueOf(of, row, up)]);
  const low = log ? Math.min(...values) / 1.2 : 0, high = log ? Math.max(...values) * 1.2 : 1;
  const right = Math.min(440, WIDE - 12), x = scale(low, high, 60, right, log), y = scale(low, high, 330, 14, log);
  const marks = log ? ticks(low, high) : [0, 0.25, 0.5, 0.75, 1];
  const axes = marks.map((value) => [draw("line", { x1: x(value), x2: x(value), y1: 14, y2: 330, class: "tick" }),
    draw("line", { x1: 60, x2: right, y1: y(value), y2: y(value), class: "tick" }),
    label(x(value), 346, String(value), { "text-anchor": "middle", class: "axis" }), label(52, y(value) + 4, String(value), { "text-anchor": "end", class: "axis" })]);
  const head = (name) => of.columns[of.at[name]].heading;
  const spots = sound.map((row) => linked(of, row, words(row), draw("circle", { cx: x(valueOf(of, row, across)), cy: y(valueOf(of, row, up)), r: 4, class: "spot" })));
  return svgOf(372, `${head(up)} against ${head(across)}`, axes, draw("line", { x1: x(low), y1: y(low), x2: x(high), y2: y(high), class: "one" }),
    spots, label((60 + right) / 2, 366, head(across), { "text-anchor": "middle", class: "axis" }),
    label(16, 172, head(up), { transform: "rotate(-90 16 172)", "text-anchor": "middle", class: "axis" }));
}

const PARTS = ["decode", "draft", "sample", "rollback", "host"];

/** Where a round's time goes: a bar an arm with plain decoding of the same cell below it, in milliseconds. */
function bars(of, rows, name) {
  const cells = new Map();
  for (const row of rows) {
    if (isVoid(of, row) || !["treatment", "baseline"].includes(of.get(row, "arm"))) continue;
    const id = of.get(row, "cell");
    cells.set(id, { ...cells.get(id), [of.get(row, "arm")]: row });
  }
  const pairs = [...cells.values()].filter((pair) => pair.treatment && pair.baseline);
  if (!pairs.length) return make("p", {}, "No round was timed.");
  const total = (row) => valueOf(of, row, "total_ms");
  const longest = Math.max(...pairs.flatMap((pair) => [total(pair.treatment), total(pair.baseline)]));
  const x = scale(0, longest, NAMES + 12, WIDE - 66, false), tall = NARROW ? 48 : 32;
  const bar = (row, y, height) => {
    let from = 0;
    return PARTS.map((part) => {
      const long = Math.max(valueOf(of, row, `${part}_ms`) || 0, 0);
      const made = draw("rect", { x: x(from), y, width: Math.max(x(from + long) - x(from), 0), height, class: `part-${part}` });
      from += long;
      return made;
    });
  };
  const marks = pairs.map(({ treatment, baseline }, place) => {
    const y = 8 + tall * place + (tall - 32);
    const words = `${armName(of, treatment)}: ${PARTS.map((part) => `${part} ${of.get(treatment, `${part}_ms`)}`).join(", ")} ms a round; plain ${of.get(baseline, "total_ms")} ms`;
    return linked(of, treatment, words, draw("rect", { x: 0, y: y - tall + 32, width: WIDE, height: tall - 2, class: "hit" }),
      named(armName(of, treatment), y + 10), bar(treatment, y + 3, 14), bar(baseline, y + 19, 5),
      label(WIDE - 4, y + 15, `${short(total(treatment), 3)} ms`, { "text-anchor": "end", class: "figure", "data-value": of.get(treatment, "total_ms") }));
  });
  return svgOf(16 + tall * pairs.length, `Milliseconds a round by part, ${name}`, marks);
}

const legend = (...entries) => make("p", { class: "legend" }, entries.map(([kind, words]) => make("span", {}, make("i", { class: kind, "aria-hidden": "true" }), words)));
