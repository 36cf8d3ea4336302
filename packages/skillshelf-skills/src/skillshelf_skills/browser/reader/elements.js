// What an element is and what it is called.

const MAX_NAME = 80;
const ROLES = new Set([
  "button", "link", "checkbox", "radio", "switch", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option",
  "combobox", "listbox", "textbox", "searchbox", "slider", "spinbutton", "treeitem",
]);
const FIELDS = new Set([
  "textbox", "searchbox", "spinbutton", "slider", "combobox", "listbox", "checkbox", "radio", "switch", "file",
]);
const INPUTS = {
  button: "button", submit: "button", reset: "button", image: "button", checkbox: "checkbox", radio: "radio",
  range: "slider", number: "spinbutton", search: "searchbox", file: "file",
};

const squeeze = (text) => (text || "").replace(/\s+/g, " ").trim();
const clip = (text, length) => (text.length <= length ? text : text.slice(0, length - 1).trimEnd() + "…");
const quote = (text) => JSON.stringify(text);

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
