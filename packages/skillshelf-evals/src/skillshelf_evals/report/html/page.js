"use strict";
// Everything that comes from a run is put on the page as text: this script makes elements, never markup.
(function () {
  const form = document.getElementById("filters");
  const dialog = document.getElementById("transcript");
  const island = document.getElementById("data");
  if (!form || !dialog || !island) return;

  const data = JSON.parse(island.textContent);
  const trials = new Map(data.trials.map((trial) => [trial.number, trial]));
  const rows = [...document.querySelectorAll("tr[data-trial]")];
  const cases = [...document.querySelectorAll("details.case")];
  const CONTROLS = ["q", "status", "skill", "arm"];
  const WORDS = {
    case: "case", trigger: "should trigger", about: "says whether to load", loaded: "loaded", failed: "failed check",
    stopped: "stopped",    fault: "infrastructure error", compared: "compared with", live: "live", flaky: "flaky cases",
    status: "status", skill: "skill", arm: "arm",
  };
  const MAX_UNFOLDED = 25;
  let filter = new URLSearchParams();
  let lowered = null;
  let current = null;

  // --- filters ---

  function findTexts(word) {
    if (!lowered) lowered = data.texts.map((text) => text.toLowerCase());
    return new Set(lowered.flatMap((text, number) => (text.includes(word) ? [number] : [])));
  }

  function* textsOf(trial) {
    if (trial.problem !== null) yield trial.problem;
    for (const check of trial.checks) yield* [check.name, check.reason];
    for (const step of trial.steps || []) {
      yield step.title;
      if ("text" in step) yield step.text;
      if ("result" in step) yield step.result;
    }
  }

  function makeSearch(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.map((word) => [word, findTexts(word)]);
    return function (trial) {
      const facts = data.cases[trial.case];
      const head = (facts.label + "\n" + facts.prompt + "\n" + trial.arm + " " + trial.repeat).toLowerCase();
      return found.every(([word, numbers]) => {
        if (head.includes(word)) return true;
        for (const number of textsOf(trial)) if (numbers.has(number)) return true;
        return false;
      });
    };
  }

  const CONDITIONS = {
    status: (trial, facts, value) => value.split(",").includes(trial.status),
    arm: (trial, facts, value) => value.split(",").includes(trial.arm),
    skill: (trial, facts, value) => facts.skill === value,
    case: (trial, facts, value) => facts.id === value,
    trigger: (trial, facts, value) => facts.trigger === value,
    about: (trial, facts, value) => facts.trigger === "yes" || (facts.trigger === "no" && facts.skill === value),
    loaded: (trial, facts, value) => (value ? trial.loaded.includes(value) : trial.loaded.length === 0),
    failed: (trial, facts, value) =>
      trial.checks.some((check) => check.state === "missed" && data.texts[check.name] === value),
    stopped: (trial, facts, value) => trial.stopped === value,
    fault: (trial, facts, value) => String(trial.fault) === value,
    live: (trial, facts, value) => facts.live === value,
    compared: (trial, facts, value) => facts.compared.includes(value),
    flaky: (trial, facts) => facts.flaky.includes(trial.arm),
  };

  function isShown(trial, search) {
    const facts = data.cases[trial.case];
    for (const [name, value] of filter) {
      if (Object.hasOwn(CONDITIONS, name) && !CONDITIONS[name](trial, facts, value)) return false;
    }
    return search(trial);
  }

  function applyFilter() {
    const search = makeSearch(filter.get("q") || "");
    const isActive = [...filter].length > 0;
    let shown = 0;
    for (const row of rows) {
      row.hidden = !isShown(trials.get(Number(row.dataset.trial)), search);
      if (!row.hidden) shown += 1;
    }
    const matching = cases.filter((one) => one.querySelector("tr[data-trial]:not([hidden])"));
    for (const one of cases) one.hidden = isActive && !matching.includes(one);
    if (isActive) for (const one of matching) one.open = matching.length <= MAX_UNFOLDED;

    const plural = (count, noun) => count.toLocaleString("en") + " " + noun + (count === 1 ? "" : "s");
    const all = plural(rows.length, "trial");
    const part = isActive ? shown.toLocaleString("en") + " of " + all : all;
    document.getElementById("count").textContent = part + " in " + plural(matching.length, "case");
    showConditions();
  }

  function showConditions() {
    const bar = document.getElementById("conditions");
    bar.replaceChildren();
    for (const [name, value] of filter) {
      const isInControl = value && CONTROLS.includes(name) && form.elements[name].value === value;
      if (isInControl || !Object.hasOwn(WORDS, name)) continue;
      const text = name === "flaky" ? WORDS[name] : WORDS[name] + ": " + (value.replaceAll(",", " or ") || "none");
      const chip = make("button", "chip", text + " ✕");
      chip.type = "button";
      chip.setAttribute("aria-label", "Remove the condition " + text);
      chip.addEventListener("click", () => { filter.delete(name); setAddress(); fillControls(); applyFilter(); form.elements.q.focus(); });
      bar.append(chip);
    }
  }

  function fillControls() {
    for (const name of CONTROLS) form.elements[name].value = filter.get(name) || "";
    // A value without an option, such as two arms, is shown as a condition of its own.
    for (const name of CONTROLS.slice(1)) if (form.elements[name].selectedIndex < 0) form.elements[name].value = "";
  }

  function filterAddress() {
    const text = filter.toString();
    return text ? "#trials?" + text : "#trials";
  }

  function setAddress() {
    history.replaceState(null, "", filterAddress());
  }

  function readControl(control) {
    const value = control.value.trim();
    if (value) filter.set(control.name, value);
    else filter.delete(control.name);
    setAddress();
    applyFilter();
  }

  // --- transcripts ---

  function make(tag, className, ...children) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...children);
    return element;
  }

  function makeBadge(status) {
    return make("span", "badge " + status, status);
  }

  function makeText(text) {
    const block = make("pre", "", text);
    if (text.length > 600) block.tabIndex = 0;
    return block;
  }

  function makeFold(title, text) {
    return make("details", "inner", make("summary", "", title), makeText(text));
  }

  function makeStep(step) {
    const title = data.texts[step.title];
    const text = "text" in step ? data.texts[step.text] : "";
    const article = make("li", "step " + step.kind + (step.bad ? " bad" : ""));
    if (step.kind === "system" || step.kind === "thinking") {
      article.append(makeFold(title, text));
      return article;
    }
    article.append(make("p", "step-title", step.kind === "tool" ? make("code", "", title) : title, ...(step.bad && step.kind === "tool" ? [" ", makeBadge("failed")] : [])));
    if (text) article.append(makeText(text));
    if ("result" in step) {
      article.append(make("p", "result-title", "result"), makeText(data.texts[step.result] || "(empty)"));
    }
    return article;
  }

  function makeColumn(trial) {
    const column = make("section", "column");
    column.setAttribute("aria-label", trial.arm + ", trial " + trial.repeat);
    column.append(make("h3", "", make("span", "arm " + trial.arm, trial.arm), " trial " + trial.repeat + " ", makeBadge(trial.status), make("span", "quiet", " " + trial.spent)));
    if (trial.problem !== null) column.append(make("p", "fault", data.texts[trial.problem]));
    if (trial.steps === null) {
      column.append(make("p", "quiet", "There was no room for this transcript on the page. run.json has it."));
    } else {
      column.append(make("ol", "steps", ...trial.steps.map(makeStep)));
    }
    if (trial.artefacts) column.append(makeArtefacts(trial));
    return column;
  }

  function makeArtefacts(trial) {
    const list = make("ul", "");
    for (const file of trial.artefacts) {
      const size = make("span", "quiet", file.size.toLocaleString("en") + " bytes ");
      const entry = make("li", "", makeFileLink(file.path, file.name), " ", size);
      if (file.by_check) entry.append(make("span", "quiet", "made by a command of a check, not by the agent "));
      if (file.view) entry.append(makeFileLink(file.view, "shown in a frame that runs nothing"));
      if (file.is_image) entry.append(makePicture(file));
      list.append(entry);
    }
    for (const text of trial.left_out) list.append(make("li", "quiet", text));
    return make("section", "artefacts", make("h4", "", "Files kept beside this page"), list);
  }

  function makePicture(file) {
    const picture = make("img", "");
    picture.src = file.path;
    picture.alt = file.name;
    return picture;
  }

  function makeFileLink(path, text) {
    const link = make("a", "", text);
    link.href = path;
    link.target = "_blank";
    link.rel = "noopener noreferrer";
    return link;
  }

  function makeChecks(shown) {
    const names = [...new Set(shown.flatMap((trial) => trial.checks.map((check) => check.name)))];
    if (!names.length) return make("p", "quiet", "No check was made.");
    const head = make("tr", "", make("th", "", "check"), ...shown.map((trial) => make("th", "", trial.arm)));
    const body = make("tbody", "");
    for (const name of names) {
      const row = make("tr", "", make("th", "", data.texts[name]));
      row.firstChild.scope = "row";
      for (const trial of shown) {
        const made = trial.checks.filter((check) => check.name === name);
        const cell = make("td", "");
        for (const check of made) cell.append(make("p", "", makeBadge(check.state), " " + data.texts[check.reason]));
        if (!made.length) cell.append(make("span", "quiet", "not made"));
        row.append(cell);
      }
      body.append(row);
    }
    for (const cell of head.children) cell.scope = "col";
    return make("div", "scroll", make("table", "checks", make("thead", "", head), body));
  }

  function findPartner(trial) {
    const others = data.trials.filter((other) => other.case === trial.case && other.repeat === trial.repeat && other !== trial);
    return others.find((other) => (trial.arm === "with") !== (other.arm === "with"));
  }

  function visibleNumbers() {
    return rows.filter((row) => !row.hidden).map((row) => Number(row.dataset.trial));
  }

  function openTrial(number) {
    const trial = trials.get(number);
    if (!trial) return;
    current = number;
    const partner = findPartner(trial);
    const shown = partner ? [trial, partner].sort((a, b) => (b.arm === "with") - (a.arm === "with")) : [trial];
    const facts = data.cases[trial.case];
    document.getElementById("transcript-title").textContent = facts.label;
    const body = document.getElementById("transcript-body");
    const columns = make("div", shown.length > 1 ? "columns two" : "columns", ...shown.map(makeColumn));
    body.replaceChildren(makeChecks(shown), columns);

    const numbers = visibleNumbers();
    const place = numbers.indexOf(number);
    document.getElementById("previous").disabled = place <= 0;
    document.getElementById("next").disabled = place < 0 || place >= numbers.length - 1;
    document.getElementById("place").textContent = place < 0 ? "" : place + 1 + " of " + numbers.length.toLocaleString("en");
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  }

  function moveBy(step) {
    const numbers = visibleNumbers();
    const next = numbers[numbers.indexOf(current) + step];
    if (next === undefined) return;
    history.replaceState(null, "", "#trial-" + next);
    openTrial(next);
  }

  // --- addresses and keys ---

  function follow() {
    const [place, query] = location.hash.slice(1).split(/\?(.*)/s);
    const trial = /^trial-(\d+)$/.exec(place);
    if (trial) {
      openTrial(Number(trial[1]));
      return;
    }
    if (dialog.open) dialog.close();
    if (place !== "trials") {
      const target = document.getElementById(place);
      if (target && target.matches("details")) target.open = true;
      return;
    }
    filter = new URLSearchParams(query || "");
    fillControls();
    applyFilter();
    document.getElementById("trials").scrollIntoView();
  }

  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => readControl(event.target));
  document.getElementById("clear").addEventListener("click", () => { filter = new URLSearchParams(); setAddress(); fillControls(); applyFilter(); });
  document.getElementById("unfold").addEventListener("click", () => {
    const visible = cases.filter((one) => !one.hidden);
    const open = visible.some((one) => !one.open);
    for (const one of visible) one.open = open;
  });
  document.getElementById("previous").addEventListener("click", () => moveBy(-1));
  document.getElementById("next").addEventListener("click", () => moveBy(1));
  document.getElementById("close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    if (/^#trial-/.test(location.hash)) setAddress();
    const link = document.querySelector('a[href="#trial-' + current + '"]');
    if (link) link.focus();
    document.getElementById("transcript-body").replaceChildren();
  });
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (dialog.open) {
      if (event.target.matches("pre")) return;
      if (event.key === "ArrowLeft") moveBy(-1);
      if (event.key === "ArrowRight") moveBy(1);
    } else if (event.key === "/" && !event.target.matches("input, select, textarea")) {
      event.preventDefault();
      form.elements.q.focus();
    }
  });
  window.addEventListener("hashchange", follow);
  applyFilter();
  follow();
})();
