// Describes an element so that it can be found again, and finds it.

const MAX_CONTEXT = 200;
const ROWS = "tr, li, article, fieldset, [role=row], [role=listitem], [role=article]";
const TEST_IDS = ["data-testid", "data-test-id", "data-test", "data-cy", "data-qa"];

// The number of each element that was read, and the element of each number.
const numbers = new WeakMap();
const elements = new Map();
const documentId = `${Date.now()}-${Math.random()}`;

const loosely = (text) => squeeze(text).toLowerCase().replace(/\d+/g, "#");

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
