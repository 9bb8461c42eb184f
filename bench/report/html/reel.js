// The token reel: the rounds of one run, one after the other. Which answer got which token, which of them it had got
// before, which guesses were taken and which were not, and how far plain decoding was at that moment.

let reels = 0;
/** What an emit counts as, as the judge says it. */
const [NEW, AGAIN, LOOSE] = [0, 1, 2];

class Reel {
  /** `panel` is a cell's own record, `pair` the places of a run of the treatment and of a plain one beside it. */
  constructor(panel, [treated, plain]) {
    this.panel = panel;
    this.run = panel.shown[treated];
    this.plain = plain === null ? null : panel.shown[plain];
    this.texts = panel.texts[treated];
    this.number = reels += 1;
    this.rounds = this.run.rounds.round.length;
    this.byRound = this.split(this.run);
    this.ends = this.times(this.run);
    this.at = this.rounds;
    this.element = make("div", { class: "reel" }, this.conclusion(), this.tiles(), this.controls(), this.ladder(), this.story(), this.answers());
    this.go(this.rounds);
  }

  /** Emits and guesses by round; the prefill's are in none. */
  split({ rounds, emits, draws }) {
    const found = rounds.round.map(() => ({ emits: [], draws: [] }));
    emits.round.forEach((round, row) => found[round]?.emits.push(row));
    draws.round.forEach((round, row) => found[round]?.draws.push(row));
    return found;
  }

  /** When each round had said its tokens, in microseconds since the first one. */
  times({ rounds, emits }) {
    let spent = 0;
    return rounds.total.map((took, round) => {
      spent += took;
      return Math.max(...this.byRound[round].emits.map((row) => emits.t[row]), 0) || spent;
    });
  }

  /** What the whole run comes to, in one sentence of counts and times of its own record. */
  conclusion() {
    const { emits } = this.run, said = emits.round.map((round, row) => row).filter((row) => emits.round[row] >= 0);
    const fresh = said.filter((row) => emits.kind[row] === NEW);
    const count = (words) => make("strong", {}, String(words));
    const seconds = (micros) => `${fixed(micros / 1e6, 2)} s`;
    const last = Math.max(...fresh.map((row) => emits.t[row]), 0);
    const words = [count(`${said.length} tokens said`), ` in ${this.rounds} rounds, `, count(`${fresh.length} different`), ` ones, the last after ${seconds(last)}`];
    if (this.plain) {
      const times = this.plain.emits.t.filter((t, row) => this.plain.emits.round[row] >= 0).sort((a, b) => a - b);
      const reached = times[fresh.length - 1];
      words.push(reached === undefined ? `; plain decoding had ${times.length} when it ended.` : `; plain decoding had as many after ${seconds(reached)}.`);
    } else words.push(".");
    return make("p", { class: "verdict-line" }, words);
  }

  tiles() {
    const tile = (key, kind, words) => {
      this[key] = make("output", {});
      return make("div", { class: `tile ${kind}` }, this[key], make("span", {}, words));
    };
    return make("div", { class: "tiles" }, tile("counted", "false", "tokens said, every emit counted"),
      tile("distinct", "true", "different tokens: what a reader has"), this.plain ? tile("beside", "", "plain decoding, at the same moment") : null,
      tile("moment", "", "seconds since the first token"));
  }

  controls() {
    const slide = (event) => this.go(Number(event.target.value));
    this.slider = make("input", { type: "range", min: 0, max: this.rounds, step: 1, value: this.rounds, "aria-label": "Round", input: slide });
    this.player = make("button", { type: "button", class: "play", click: () => this.play() }, "Play");
    const step = (by, words) => make("button", { type: "button", "aria-label": words, click: () => this.go(this.at + by) }, by < 0 ? "◀" : "▶");
    return make("div", { class: "scrub" }, this.player, step(-1, "One round back"), this.slider, step(1, "One round on"));
  }

  /** Every token of the run as a mark: its position across, its round downwards. */
  ladder() {
    const { emits, draws } = this.run;
    const streams = Math.max(0, ...emits.stream) + 1, long = Math.max(1, ...emits.position, ...draws.position) + 1;
    const across = 740 / (streams * (long + 2) - 2), down = Math.min(8, Math.max(3, 340 / Math.max(this.rounds, 1)));
    this.down = down;
    const height = Math.ceil(down * this.rounds + 26);
    const x = (stream, position) => 10 + across * (stream * (long + 2) + position), y = (round) => 6 + down * round;
    const box = (row) => `M${x(emits.stream[row], emits.position[row]).toFixed(1)} ${(y(emits.round[row]) + 0.5).toFixed(1)}h${(across * 0.84).toFixed(1)}v${(down - 1).toFixed(1)}h${(-across * 0.84).toFixed(1)}z`;
    const said = emits.round.map((round, row) => row).filter((row) => emits.round[row] >= 0);
    const [fresh, again, loose] = [NEW, AGAIN, LOOSE].map((kind) => said.filter((row) => emits.kind[row] === kind).map(box).join(""));
    const missed = draws.round.map((round, row) => row).filter((row) => draws.guess[row] !== draws.drawn[row]).map((row) => {
      const [left, top] = [x(0, draws.position[row]), y(draws.round[row])];
      return `M${left.toFixed(1)} ${top.toFixed(1)}l${across.toFixed(1)} ${down}M${(left + across).toFixed(1)} ${top.toFixed(1)}l${(-across).toFixed(1)} ${down}`;
    }).join("");
    const marks = () => [draw("path", { d: fresh, class: "emit-new" }), draw("path", { d: again, class: "emit-again" }), draw("path", { d: loose, class: "emit-loose" }), draw("path", { d: missed, class: "emit-missed" })];
    const clip = `reel-clip-${this.number}`;
    this.window = draw("rect", { x: 0, y: 0, width: 760, height });
    this.cursor = draw("rect", { x: 0, width: 760, height: down, class: "cursor" });
    const point = (event) => {
      if (event.type === "pointermove" && !event.buttons) return;
      const frame = this.picture.getBoundingClientRect();
      this.go(Math.floor(((event.clientY - frame.top) * (height / frame.height) - 6) / down) + 1);
    };
    this.picture = draw("svg", { viewBox: `0 0 760 ${height}`, role: "img", class: "chart ladder", "aria-label": this.told(emits, draws), pointerdown: point, pointermove: point },
      draw("defs", {}, draw("clipPath", { id: clip }, this.window)), draw("g", { class: "ahead" }, marks()), draw("g", { "clip-path": `url(#${clip})` }, marks()), this.cursor,
      label(10, height - 4, "position in the answer →", { class: "axis" }), label(750, height - 4, "rounds go down", { class: "axis", "text-anchor": "end" }));
    return make("figure", {}, this.picture, legend(["new", "said for the first time"], ["again", "said again"], ...(loose ? [["loose", "never confirmed: no token of the answer"]] : []),
      ...(missed ? [["missed", "a guess that was not taken"]] : [])));
  }

  told(emits, draws) {
    const again = emits.kind.filter((kind) => kind === AGAIN).length, said = emits.round.filter((round) => round >= 0).length;
    const taken = draws.round.filter((round, row) => draws.guess[row] === draws.drawn[row]).length;
    return `${this.rounds} rounds; ${said} tokens said, ${again} of them again; ${taken} of ${draws.round.length} guesses taken`;
  }

  story() {
    this.line = make("p", { class: "story" });
    return this.line;
  }

  /** The text of each answer, with that of plain decoding beside it. */
  answers() {
    const { panel } = this;
    this.spans = this.texts.map((segments) => segments.map((text) => make("span", { class: "token" }, text)));
    const others = this.plain ? panel.texts[panel.shown.indexOf(this.plain)] : [];
    this.otherSpans = others.map((segments) => segments.map((text) => make("span", { class: "token" }, text)));
    return this.spans.map((mine, stream) => {
      const beside = this.otherSpans[stream];
      const differs = beside ? mine.findIndex((one, place) => place < beside.length && this.token(this.run, stream, place) !== this.token(this.plain, stream, place)) : -1;
      if (differs >= 0) [mine[differs], beside[differs]].forEach((one) => one.classList.add("differs"));
      const title = this.spans.length > 1 ? `Answer ${stream + 1}, ` : "";
      const column = (words, spans) => make("div", {}, make("h4", { class: "soft" }, words), make("div", { class: "said", lang: "" }, spans));
      return make("div", { class: "texts" }, column(`${title}the way of decoding that is on trial`, mine),
        beside ? column(`${title}plain decoding${differs < 0 ? ": the same tokens, as far as both go" : ""}`, beside) : null);
    });
  }

  /** The token that a run said first at a position. */
  token(run, stream, position) {
    run.first ??= new Map(run.emits.token.map((token, row) => [`${run.emits.stream[row]} ${run.emits.position[row]}`, token]).reverse());
    return run.first.get(`${stream} ${position}`);
  }

  /** Shows the state after so many rounds. */
  go(rounds) {
    this.at = Math.min(Math.max(rounds, 0), this.rounds);
    const { emits } = this.run, at = this.at, now = at ? this.ends[at - 1] : 0;
    const said = emits.round.map((round, row) => row).filter((row) => emits.round[row] >= 0 && emits.round[row] < at);
    const fresh = said.filter((row) => emits.kind[row] === NEW).length;
    this.counted.textContent = said.length;
    this.distinct.textContent = fresh;
    this.moment.textContent = fixed(now / 1e6, 3);
    const beside = this.plain ? this.plain.emits.t.filter((t, row) => this.plain.emits.round[row] >= 0 && t <= now).length : 0;
    if (this.plain) this.beside.textContent = beside;
    this.slider.value = at;
    this.slider.setAttribute("aria-valuetext", `after round ${at} of ${this.rounds}: ${said.length} tokens said, ${fresh} different`);
    this.window.setAttribute("height", 6 + this.down * at);
    this.cursor.setAttribute("y", 6 + this.down * Math.max(at - 1, 0));
    this.paint(at, beside);
    this.line.replaceChildren(...this.sentence(at));
  }

  paint(at, beside) {
    const { emits } = this.run;
    const state = this.spans.map((spans) => spans.map(() => "token pending"));
    emits.position.forEach((position, row) => {
      const mine = state[emits.stream[row]];
      if (!mine || position >= mine.length || emits.round[row] >= at) return;
      if (emits.round[row] === at - 1 && at > 0) mine[position] = emits.kind[row] === AGAIN ? "token now repeat" : "token now";
      else mine[position] = "token";
    });
    const put = (span, name) => {
      span.className = span.classList.contains("differs") ? `${name} differs` : name;
    };
    this.spans.forEach((spans, stream) => spans.forEach((span, place) => put(span, state[stream][place])));
    if (!this.plain) return;
    const before = new Set();
    let left = beside;
    this.plain.emits.position.forEach((position, row) => {
      if (this.plain.emits.round[row] < 0 || left-- > 0) before.add(`${this.plain.emits.stream[row]} ${position}`);
    });
    this.otherSpans.forEach((spans, stream) => spans.forEach((span, place) => put(span, before.has(`${stream} ${place}`) ? "token" : "token pending")));
  }

  word(token) {
    return this.panel.words[token] ?? `#${token}`;
  }

  /** What the round did, in words. */
  sentence(at) {
    if (!at) return ["Before the first round: the prefill has given each answer its first token."];
    const { rounds, emits, draws } = this.run, { emits: said, draws: guessed } = this.byRound[at - 1];
    const several = Math.max(0, ...emits.stream) > 0;
    const quoted = (token) => make("span", { class: "mono" }, `“${this.word(token)}”`);
    const words = [make("strong", {}, `Round ${rounds.round[at - 1] + 1} of ${this.rounds}`),
      `, one decode of ${rounds.width[at - 1]} row${rounds.width[at - 1] > 1 ? "s" : ""}, ${short(rounds.total[at - 1] / 1000)} ms. `];
    if (!said.length) words.push("It says nothing. ");
    said.forEach((row, place) => words.push(place ? ", " : "It says ", quoted(emits.token[row]),
      ` at ${several ? `answer ${emits.stream[row] + 1}, ` : ""}position ${emits.position[row]}${["", " (again)", " (never confirmed)"][emits.kind[row]]}`));
    if (said.length) words.push(". ");
    guessed.forEach((row, place) => words.push(place ? ", " : "Guesses: ", quoted(draws.guess[row]),
      draws.guess[row] === draws.drawn[row] ? " taken" : [" not taken, the model drew ", quoted(draws.drawn[row])]));
    if (guessed.length) words.push(".");
    return words.flat();
  }

  play() {
    if (this.timer) return this.stop();
    if (this.at >= this.rounds) this.go(0);
    this.player.textContent = "Pause";
    this.timer = setInterval(() => {
      this.go(this.at + 1);
      if (this.at >= this.rounds || !this.element.isConnected) this.stop();
    }, 140);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.player.textContent = "Play";
  }
}
