// What of a page a person could see.

const MIN_FONT = 3;
const MIN_AREA = 4;
const MIN_CONTRAST = 1.08;

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
