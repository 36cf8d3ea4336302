// A page as text, with numbered elements.

const MAX_OPTIONS = 20;
const MAX_URL = 100;
const MAX_DEPTH = 1000;
const SKIPPED = new Set([
  "SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "IFRAME", "FRAME", "OBJECT", "EMBED", "VIDEO", "AUDIO", "CANVAS",
  "DATALIST",
]);
const SPACED = new Set(["H1", "H2", "H3", "H4", "H5", "H6", "P", "TABLE", "UL", "OL"]);
const PLAIN_INPUTS = new Set(["text", "search", "number", "range"]);
const WITH_VALUE = new Set(["textbox", "searchbox", "spinbutton", "slider", "combobox"]);
// Stands for the bracket before a number of ours until the text is complete. No character has this code.
const OUR_BRACKET = "\uFDD0";

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
