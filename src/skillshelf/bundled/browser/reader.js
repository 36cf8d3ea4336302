// Reads a page as text with numbered elements, and finds an element again by its number.
//
// Playwright runs this as a selector engine in a world of its own: it sees the page's elements, and the page's scripts
// see nothing of it. An engine can only hand out elements, so an answer in words is the text of an element that is in
// no document. A selector is `COMMAND:ARGUMENT`, the argument being JSON in hexadecimal:
//
//   read      {first, characters, elements, seconds} -> the text and the elements
//   find      {number, print}                        -> the element that a fingerprint describes, if it is certain
//   inspect   {number, print}                        -> what that element is like now, in words
//   activity  {}                                     -> a number that grows with each change of the document
(() => {
  const MAX_NAME = 80;
  const MAX_CONTEXT = 200;
  const MAX_OPTIONS = 20;
  const MAX_URL = 100;
  const MAX_DEPTH = 1000;
  const MIN_FONT = 3;
  const MIN_AREA = 4;
  const MIN_CONTRAST = 1.08;

  const SKIPPED = new Set([
    "SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "IFRAME", "FRAME", "OBJECT", "EMBED", "VIDEO", "AUDIO", "CANVAS",
    "DATALIST",
  ]);
  const ROLES = new Set([
    "button", "link", "checkbox", "radio", "switch", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option",
    "combobox", "listbox", "textbox", "searchbox", "slider", "spinbutton", "treeitem",
  ]);
  const FIELDS = new Set([
    "textbox", "searchbox", "spinbutton", "slider", "combobox", "listbox", "checkbox", "radio", "switch", "file",
  ]);
  const PLAIN_INPUTS = new Set(["text", "search", "number", "range"]);
  const WITH_VALUE = new Set(["textbox", "searchbox", "spinbutton", "slider", "combobox"]);
  const SPACED = new Set(["H1", "H2", "H3", "H4", "H5", "H6", "P", "TABLE", "UL", "OL"]);
  const INPUTS = {
    button: "button", submit: "button", reset: "button", image: "button", checkbox: "checkbox", radio: "radio",
    range: "slider", number: "spinbutton", search: "searchbox", file: "file",
  };
  // Stands for the bracket before a number of ours until the text is complete. No character has this code.
  const OUR_BRACKET = "\uFDD0";
  const ROWS = "tr, li, article, fieldset, [role=row], [role=listitem], [role=article]";
  const TEST_IDS = ["data-testid", "data-test-id", "data-test", "data-cy", "data-qa"];

  const numbers = new WeakMap();
  const elements = new Map();
  const documentId = `${Date.now()}-${Math.random()}`;
  let changes = 0;
  new MutationObserver((records) => { changes += records.length; }).observe(document, {
    subtree: true, childList: true, characterData: true, attributes: true,
  });

  const squeeze = (text) => (text || "").replace(/\s+/g, " ").trim();
  const clip = (text, length) => (text.length <= length ? text : text.slice(0, length - 1).trimEnd() + "…");
  const quote = (text) => JSON.stringify(text);
  const loosely = (text) => squeeze(text).toLowerCase().replace(/\d+/g, "#");

  // ---- roles and names

  function roleOf(element) {
    const role = (element.getAttribute("role") || "").trim().split(/\s+/)[0].toLowerCase();
    if (ROLES.has(role)) return role;
    switch (element.tagName) {
      case "A": case "AREA": return element.hasAttribute("href") ? "link" : "";
      case "BUTTON": return "button";
      case "SUMMARY": return "button";
      case "TEXTAREA": return "textbox";
      case "SELECT": return element.multiple || element.size > 1 ? "listbox" : "combobox";
      case "INPUT":
        if (element.type === "hidden") return "";
        if (INPUTS[element.type]) return INPUTS[element.type];
        return element.list ? "combobox" : "textbox";
    }
    const parent = element.parentElement;
    if (element.isContentEditable && !(parent && parent.isContentEditable)) return "textbox";
    if (element.hasAttribute("onclick")) return "clickable";
    const tabindex = element.getAttribute("tabindex");
    return tabindex !== null && Number(tabindex) >= 0 ? "clickable" : "";
  }

  function textOfIds(element, attribute) {
    const ids = squeeze(element.getAttribute(attribute)).split(" ").filter(Boolean).slice(0, 5);
    const root = element.getRootNode();
    const named = ids.map((id) => root.getElementById && root.getElementById(id)).filter(Boolean);
    return squeeze(named.map((other) => other.textContent).join(" "));
  }

  function textInside(element) {
    if (element.textContent.length > 4000) return squeeze(element.textContent.slice(0, 4000));
    const text = squeeze(element.innerText);
    if (text) return text;
    const picture = element.querySelector("img[alt], [aria-label], svg title");
    if (!picture) return "";
    return squeeze(picture.getAttribute("alt") || picture.getAttribute("aria-label") || picture.textContent);
  }

  function nameOf(element, role) {
    const given = textOfIds(element, "aria-labelledby") || squeeze(element.getAttribute("aria-label"));
    if (given) return clip(given, MAX_NAME);
    let name = "";
    if (element.labels && element.labels.length) {
      name = squeeze(Array.from(element.labels).map((label) => textOfLabel(label, element)).join(" "));
    }
    if (!name && element.tagName === "INPUT" && role === "button") {
      name = squeeze(element.value || element.alt);
      if (!name && element.type === "submit") name = "Submit";
      if (!name && element.type === "reset") name = "Reset";
    }
    if (!name && !FIELDS.has(role)) name = textInside(element);
    if (!name && role === "checkbox" && element.tagName !== "INPUT") name = textInside(element);
    name = name || squeeze(element.getAttribute("placeholder")) || squeeze(element.getAttribute("title"));
    return clip(name, MAX_NAME);
  }

  // Without the field itself, whose options would become part of its name.
  function textOfLabel(label, field) {
    if (!label.contains(field)) return label.innerText;
    let text = "";
    for (const node of label.childNodes) {
      if (node.nodeType === Node.TEXT_NODE) text += node.data;
      else if (node.nodeType === Node.ELEMENT_NODE && !node.contains(field)) text += " " + node.innerText;
    }
    return text;
  }

  function listLabels(options, most, length) {
    return Array.from(options).slice(0, most).map((option) => clip(squeeze(option.label), length));
  }

  function isDisabled(element) {
    return element.matches(":disabled") || element.closest("[aria-disabled=true], [inert]") !== null;
  }

  // ---- fingerprints

  function pathOf(element) {
    const steps = [];
    for (let node = element; node && node.nodeType === Node.ELEMENT_NODE && steps.length < 40; ) {
      const parent = node.parentNode;
      steps.push(node.tagName + (parent && parent.children ? Array.prototype.indexOf.call(parent.children, node) : ""));
      node = parent instanceof ShadowRoot ? parent.host : parent;
    }
    return steps.join("<");
  }

  function fingerprint(element, role, name) {
    const row = element.closest(ROWS);
    const testId = TEST_IDS.map((attribute) => element.getAttribute(attribute)).find(Boolean) || "";
    return {
      role,
      name,
      tag: element.tagName,
      type: element.type && typeof element.type === "string" ? element.type : "",
      testId: clip(testId, MAX_NAME),
      id: clip(element.id || "", MAX_NAME),
      field: clip(element.getAttribute("name") || "", MAX_NAME),
      href: clip(element.getAttribute("href") || "", MAX_CONTEXT),
      row: row && row !== element ? clip(squeeze(row.textContent.slice(0, 4000)), MAX_CONTEXT) : "",
      path: name ? "" : pathOf(element), // the last resort, for elements without a name
    };
  }

  function* allElements(root) {
    for (const element of root.querySelectorAll("*")) {
      yield element;
      if (element.shadowRoot) yield* allElements(element.shadowRoot);
    }
  }

  function listCandidates() {
    const found = [];
    for (const element of allElements(document)) {
      const role = roleOf(element);
      if (role && element.checkVisibility({ visibilityProperty: true })) found.push([element, role]);
    }
    return found;
  }

  // The element that a fingerprint describes; `by` says by what it was recognised. A doubt is worse than a failure,
  // since the wrong element may delete something.
  function locate(number, print) {
    const isField = FIELDS.has(print.role);
    const hasRow = (now) => !print.twins || now.row === print.row;
    const isNamedLike = (now) => isField || loosely(now.name) === loosely(print.name);

    const known = elements.get(number);
    const node = known && known.deref();
    if (node && node.isConnected && node.checkVisibility({ visibilityProperty: true })) {
      const role = roleOf(node) || (print.role === "clickable" ? "clickable" : "");
      const now = fingerprint(node, role, nameOf(node, role));
      if (role === print.role && hasRow(now) && isNamedLike(now)) return { element: node, by: "the element itself" };
    }

    const candidates = listCandidates().map(([element, role]) => {
      return { element, now: fingerprint(element, role, nameOf(element, role)) };
    });
    const alike = candidates.filter(({ now }) => now.role === print.role);
    const only = (test) => {
      const matching = alike.filter(({ now }) => test(now));
      return matching.length === 1 ? matching[0].element : null;
    };
    const hasName = (now) => now.name === print.name && hasRow(now);
    const isSameRadio = (now) => print.type !== "radio" || now.name === print.name;
    const steps = [
      ["test id", print.testId, (now) => now.testId === print.testId && isNamedLike(now) && hasRow(now)],
      ["role and name", print.name, hasName],
      ["role, name and address", print.name && print.href, (now) => hasName(now) && now.href === print.href],
      ["id", print.id, (now) => now.id === print.id && now.tag === print.tag && isNamedLike(now) && hasRow(now)],
      [
        "field name",
        isField && print.field,
        (now) => now.field === print.field && now.type === print.type && isSameRadio(now),
      ],
    ];
    for (const [by, applies, test] of steps) {
      const element = applies ? only(test) : null;
      if (element) return { element, by };
    }

    const twins = alike.filter(({ now }) => now.name === print.name);
    if (print.name && twins.length > 1) return { element: null, by: "", twins: twins.length };
    if (print.name && !print.twins) {
      const others = candidates.filter(({ now }) => now.name === print.name);
      if (others.length === 1) return { element: others[0].element, by: "text" };
    }
    if (!print.name && !print.twins) {
      const element = only((now) => !now.name && now.tag === print.tag && now.path === print.path);
      if (element) return { element, by: "position" };
    }
    return { element: null, by: "", twins: 0 };
  }

  function inspect(number, print) {
    const { element, by, twins } = locate(number, print);
    if (!element) return { found: false, twins: twins || 0, document: documentId };
    const role = roleOf(element) || print.role;
    const box = element.getBoundingClientRect();
    const top = element.ownerDocument.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    const label = top && top.closest("label");
    const isLabelled = label !== null && label.control === element;
    const isClear = !top || element.contains(top) || top.contains(element) || isLabelled;
    return {
      found: true,
      twins: 0,
      document: documentId,
      by,
      role,
      name: nameOf(element, role),
      tag: element.tagName,
      type: typeof element.type === "string" ? element.type : "",
      isDisabled: isDisabled(element),
      isReadOnly: element.readOnly === true || element.getAttribute("aria-readonly") === "true",
      hasArea: box.width > 0 && box.height > 0,
      hasLabel: Boolean(element.labels && element.labels.length),
      coveredBy: isClear ? "" : clip(top.tagName.toLowerCase() + " " + squeeze(top.innerText), MAX_NAME),
      options: element.tagName === "SELECT" ? listLabels(element.options, 200, MAX_NAME) : [],
      value: element.type === "password" || typeof element.value !== "string" ? "" : clip(element.value, 200),
    };
  }

  // ---- what can be seen

  const backgrounds = new Map();

  function parseColor(text) {
    const match = /^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/.exec(text);
    if (!match) return null;
    const [red, green, blue, alpha] = match.slice(1).map((part) => (part === undefined ? 1 : Number(part)));
    return { red, green, blue, alpha };
  }

  function luminance(color) {
    const channel = (value) => {
      const part = value / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * channel(color.red) + 0.7152 * channel(color.green) + 0.0722 * channel(color.blue);
  }

  // The colour behind an element; null if that is not certain.
  function backgroundOf(element) {
    if (backgrounds.has(element)) return backgrounds.get(element);
    let color = { red: 255, green: 255, blue: 255, alpha: 1 };
    const style = getComputedStyle(element);
    const own = parseColor(style.backgroundColor);
    if (style.backgroundImage !== "none" || !own || (own.alpha > 0 && own.alpha < 1)) color = null;
    else if (own.alpha === 1) color = own;
    else if (style.position !== "static") color = null; // something else may lie behind it
    else {
      const parent = element.parentElement || element.getRootNode().host;
      if (parent) color = backgroundOf(parent);
    }
    backgrounds.set(element, color);
    return color;
  }

  function isPainted(element, style) {
    if (parseFloat(style.fontSize) < MIN_FONT) return false;
    if (style.webkitBackgroundClip === "text") return true;
    const color = parseColor(style.webkitTextFillColor || style.color);
    if (!color) return true;
    if (color.alpha < 0.05) return false;
    const behind = backgroundOf(element);
    if (!behind || color.alpha < 1) return true;
    const [light, dark] = [luminance(color), luminance(behind)].sort((one, other) => other - one);
    return (light + 0.05) / (dark + 0.05) >= MIN_CONTRAST;
  }

  function isClippedAway(style) {
    const clipped = /^rect\((-?[\d.]+)px, (-?[\d.]+)px, (-?[\d.]+)px, (-?[\d.]+)px\)$/.exec(style.clip);
    if (clipped) {
      const [top, right, bottom, left] = clipped.slice(1).map(Number);
      if (bottom - top <= 1 || right - left <= 1) return true;
    }
    const inset = /^inset\(([\d.]+)%/.exec(style.clipPath);
    return (inset !== null && +inset[1] >= 50) || /^circle\(0(px|%)?[ )]/.test(style.clipPath);
  }

  function intersect(one, other) {
    return {
      left: Math.max(one.left, other.left), top: Math.max(one.top, other.top),
      right: Math.min(one.right, other.right), bottom: Math.min(one.bottom, other.bottom),
    };
  }

  // The part of the page in which an element's content can be seen or scrolled to.
  function windowOf(element, style, outer) {
    let inner = style.position === "fixed" ? null : outer;
    const cuts = [style.overflowX, style.overflowY].map((value) => value === "hidden" || value === "clip");
    if (cuts[0] || cuts[1]) {
      const box = element.getBoundingClientRect();
      const own = {
        left: cuts[0] ? box.left : -Infinity, right: cuts[0] ? box.right : Infinity,
        top: cuts[1] ? box.top : -Infinity, bottom: cuts[1] ? box.bottom : Infinity,
      };
      inner = inner ? intersect(inner, own) : own;
    } else if (style.overflowX !== "visible" || style.overflowY !== "visible") {
      inner = null; // it scrolls, so everything in it can be brought into view
    }
    return inner;
  }

  function isInSight(rects, shown) {
    for (const rect of rects) {
      let box = rect;
      // Nothing scrolls to the left of a page, or above it.
      if (box.right + scrollX <= 0 || box.bottom + scrollY <= 0) continue;
      if (shown) box = intersect(box, shown);
      const width = box.right - box.left;
      const height = box.bottom - box.top;
      if (width > 0 && height > 0 && width * height >= MIN_AREA) return true;
    }
    return false;
  }

  // ---- the text

  // Whatever the page wrote, in one piece or in several: a number in brackets must not look like one of ours. Notes such
  // as [12] stay as they are.
  function finish(pieces) {
    const text = pieces.join("").replace(/[ \t]+\n/g, "\n").trim();
    return text.replace(/\[(?=\p{Nd}+[^\p{Nd}\]])/gu, "[ ").replaceAll(OUR_BRACKET, "[");
  }

  class Reader {
    constructor({ first, characters, elements: most, seconds }) {
      this.next = first;
      this.most = most;
      this.room = characters;
      this.until = performance.now() + seconds * 1000;
      this.pieces = [];
      this.listed = [];
      this.isWhole = true;
      this.lineIsEmpty = true;
      this.blankLines = 2;
      this.wantsSpace = false;
      this.range = document.createRange();
      this.count = 0;
    }

    get isDone() {
      this.count += 1;
      const isLate = this.count % 200 === 0 && performance.now() >= this.until;
      if (this.room <= 0 || this.listed.length >= this.most || isLate) this.isWhole = false;
      return !this.isWhole;
    }

    add(written, bracket = "") {
      const text = written.replaceAll(OUR_BRACKET, "");
      if (!text) return;
      const last = this.pieces.length ? this.pieces[this.pieces.length - 1] : "";
      const touches = last.endsWith("]") && /^[\p{L}\p{N}[(]/u.test(text);
      if ((this.wantsSpace || touches) && !this.lineIsEmpty) this.pieces.push(" ");
      this.wantsSpace = false;
      this.pieces.push(bracket + text);
      this.room -= text.length;
      this.lineIsEmpty = false;
      this.blankLines = 0;
    }

    endLine(blank) {
      if (!this.lineIsEmpty) { this.pieces.push("\n"); this.lineIsEmpty = true; this.blankLines = 1; }
      if (blank && this.blankLines < 2) { this.pieces.push("\n"); this.blankLines = 2; }
      this.wantsSpace = false;
    }

    addText(node, style, shown) {
      const data = node.data;
      if (!/\S/.test(data)) { this.wantsSpace = true; return; }
      this.range.selectNodeContents(node);
      if (!isInSight(this.range.getClientRects(), shown)) return;
      const start = data.slice(0, Math.max(this.room, 0) + 1);
      if (style.whiteSpace.startsWith("pre") || style.whiteSpaceCollapse === "preserve") {
        const lines = start.split("\n");
        lines.forEach((line, index) => {
          if (index) { this.pieces.push("\n"); this.lineIsEmpty = true; this.wantsSpace = false; }
          this.add(line);
        });
        return;
      }
      if (/^\s/.test(start)) this.wantsSpace = true;
      this.add(squeeze(start));
      if (/\s$/.test(start)) this.wantsSpace = true;
    }

    addElement(element, role) {
      const name = nameOf(element, role);
      let number = numbers.get(element);
      if (number === undefined) {
        number = this.next++;
        numbers.set(element, number);
        elements.set(number, new WeakRef(element));
      }
      const print = fingerprint(element, role, name);
      this.listed.push({ number, print });

      const notes = [];
      if (element.type === "password") notes.push(element.value ? "password, filled" : "password");
      else if (element.tagName === "SELECT") {
        const chosen = listLabels(element.selectedOptions, MAX_OPTIONS, 40).map(quote);
        const options = listLabels(element.options, MAX_OPTIONS, 40).map(quote);
        const more = element.options.length > MAX_OPTIONS ? ` and ${element.options.length - MAX_OPTIONS} more` : "";
        notes.push("= " + (chosen.join(", ") || '""'), "options: " + options.join(", ") + more);
      } else if (WITH_VALUE.has(role)) {
        const value = typeof element.value === "string" ? element.value : element.innerText;
        if (value) notes.push("= " + quote(clip(squeeze(value), 100)));
        if (element.tagName === "INPUT" && !PLAIN_INPUTS.has(element.type)) notes.push(element.type);
      }
      if (element.checked === true || element.getAttribute("aria-checked") === "true") notes.push("checked");
      if (element.matches("[aria-selected=true], [aria-pressed=true]")) notes.push("selected");
      const expanded = element.getAttribute("aria-expanded");
      if (expanded === "true" || (element.tagName === "SUMMARY" && element.parentElement.open)) notes.push("open");
      else if (expanded === "false" || element.tagName === "SUMMARY") notes.push("closed");
      if (element.required) notes.push("required");
      // A form that was sent with it is not sent, and the browser's own words about it are in no element.
      if (element.matches(":user-invalid")) {
        notes.push("refused: " + quote(clip(squeeze(element.validationMessage), MAX_NAME)));
      }
      if (element.readOnly === true) notes.push("read-only");
      if (isDisabled(element)) notes.push("disabled");
      if (role === "link") {
        const address = element.getAttribute("href") || "";
        if (address.length <= MAX_URL && !/^\s*javascript:/i.test(address)) notes.push("to " + quote(squeeze(address)));
      }
      const tail = notes.length ? " " + notes.join("; ") : "";
      this.add(`${number} ${role} ${quote(name)}${tail}]`, OUR_BRACKET);
      return name;
    }

    walk(node, parentStyle, shown, depth) {
      if (this.isDone || depth > MAX_DEPTH) return;
      if (node.nodeType === Node.TEXT_NODE) {
        const parent = node.parentElement || node.getRootNode().host;
        const isVisible = parentStyle.visibility === "visible" && isPainted(parent, parentStyle);
        if (isVisible) this.addText(node, parentStyle, shown);
        return;
      }
      if (node.nodeType !== Node.ELEMENT_NODE || SKIPPED.has(node.tagName)) return;

      const style = getComputedStyle(node);
      if (style.display === "none" || style.contentVisibility === "hidden") return;
      if (parseFloat(style.opacity) < 0.05 || isClippedAway(style)) return;
      if (/opacity\(0(\.0\d*)?%?\)/.test(style.filter)) return;
      if (node.tagName === "BR") { this.endLine(false); return; }

      const isBlock = !style.display.startsWith("inline") && !["contents", "table-cell"].includes(style.display);
      const inner = windowOf(node, style, shown);
      const heading = /^H([1-6])$/.exec(node.tagName);
      const isSpaced = SPACED.has(node.tagName);
      if (isBlock) this.endLine(isSpaced);
      if (heading) { this.add("#".repeat(+heading[1])); this.wantsSpace = true; }
      if (node.tagName === "LI") { this.add("-"); this.wantsSpace = true; }
      if (style.display === "table-cell") { if (!this.lineIsEmpty) this.add(" | "); this.wantsSpace = false; }

      let role = roleOf(node);
      if (!role && looksClickable(node, style, parentStyle)) role = "clickable";
      let goesOn = true;
      if (role && style.visibility === "visible" && this.isReachable(node, role, shown)) {
        const name = this.addElement(node, role);
        if (FIELDS.has(role) && role !== "listbox") goesOn = false;
        else goesOn = textInside(node) !== name || Array.from(node.querySelectorAll("*")).some(roleOf);
        if (node.tagName === "SELECT") goesOn = false;
        if (goesOn) this.wantsSpace = true;
      } else if (node.tagName === "IMG" && style.visibility === "visible" && isInSight(node.getClientRects(), shown)) {
        const text = squeeze(node.getAttribute("alt"));
        if (text) { this.wantsSpace = true; this.add(`(image: ${quote(clip(text, MAX_NAME))})`); this.wantsSpace = true; }
      }
      if (goesOn) {
        for (const child of childrenOf(node)) this.walk(child, style, inner, depth + 1);
      }
      if (isBlock) this.endLine(isSpaced);
    }

    // Styled check boxes are often transparent, with their label painted instead. They are still the ones to click.
    isReachable(element, role, shown) {
      if (isInSight(element.getClientRects(), shown)) return true;
      if (!FIELDS.has(role) || !element.labels) return false;
      return Array.from(element.labels).some((label) => isInSight(label.getClientRects(), shown));
    }
  }

  // An element that is not a button by its markup, but over which the pointer becomes a hand.
  function looksClickable(element, style, parentStyle) {
    if (style.cursor !== "pointer" || parentStyle.cursor === "pointer") return false;
    if (element.textContent.length >= 400) return false;
    const label = element.closest("label");
    return !(label && label.control) && !element.querySelector("a, button, input, select, textarea");
  }

  function childrenOf(node) {
    if (node.shadowRoot) return node.shadowRoot.childNodes;
    if (node.tagName === "SLOT") {
      const assigned = node.assignedNodes();
      if (assigned.length) return assigned;
    }
    return node.childNodes;
  }

  function read(options) {
    backgrounds.clear();
    const reader = new Reader(options);
    const body = document.body || document.documentElement;
    if (body) reader.walk(body, getComputedStyle(document.documentElement), null, 0);
    const groups = new Map();
    for (const { print } of reader.listed) {
      const key = print.role + "\n" + print.name;
      groups.set(key, (groups.get(key) || 0) + 1);
    }
    for (const { print } of reader.listed) print.twins = groups.get(print.role + "\n" + print.name) > 1;
    return {
      document: documentId,
      title: clip(squeeze(document.title), 300),
      type: document.contentType,
      text: finish(reader.pieces),
      elements: reader.listed,
      next: reader.next,
      isWhole: reader.isWhole,
      width: Math.max(document.documentElement ? document.documentElement.scrollWidth : 0, 1),
      height: Math.max(document.documentElement ? document.documentElement.scrollHeight : 0, 1),
    };
  }

  // ---- the engine

  function decode(hex) {
    const bytes = new Uint8Array(hex.length / 2);
    for (let index = 0; index < bytes.length; index++) bytes[index] = parseInt(hex.substr(index * 2, 2), 16);
    return JSON.parse(new TextDecoder().decode(bytes));
  }

  function say(value) {
    const element = document.createElement("p");
    element.textContent = JSON.stringify(value);
    return [element];
  }

  const COMMANDS = {
    read: (options) => say(read(options)),
    inspect: ({ number, print }) => say(inspect(number, print)),
    activity: () => say(changes),
    find: ({ number, print }) => [locate(number, print).element].filter(Boolean),
  };

  return {
    queryAll(root, selector) {
      const [command, argument] = selector.split(":");
      return COMMANDS[command](decode(argument));
    },
    query(root, selector) {
      return this.queryAll(root, selector)[0] || null;
    },
  };
})()
