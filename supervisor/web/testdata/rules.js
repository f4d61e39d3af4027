// What an accessible page fulfills: names, labels, landmarks, headings, sizes and contrast. It evaluates to a list of faults.
(() => {
  const faults = new Set();
  const fault = (rule, e) => faults.add(rule + ": " + e.outerHTML.replace(/\s+/g, " ").slice(0, 140));
  const shown = (e) => {
    const box = e.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };
  const named = (id) => document.getElementById(id)?.textContent ?? "";
  const name = (e) =>
    (e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") ?? "").split(/\s+/).map(named).join(" ").trim() || e.textContent || e.title || e.alt || "").trim();
  const all = (selector) => [...document.querySelectorAll(selector)].filter(shown);

  if (!document.documentElement.lang) fault("no language", document.documentElement);
  if (!document.title) fault("no title", document.documentElement);
  if (document.querySelectorAll("main").length !== 1) fault("not one main", document.body);
  for (const e of all("button, a[href], [role=button], summary, [role=tab]")) if (!name(e)) fault("no name", e);
  for (const e of all("input:not([type=hidden]), select, textarea")) {
    if (!e.labels?.length && !e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby") && !e.title) fault("no label", e);
  }
  for (const e of all("img")) if (!e.hasAttribute("alt")) fault("no text for a picture", e);
  for (const e of all("svg:not(svg svg)")) if (!e.closest("[aria-hidden=true]") && !(e.getAttribute("role") && name(e))) fault("a drawing with neither a name nor aria-hidden", e);
  for (const e of all("[tabindex]")) if (e.tabIndex > 0) fault("an order of its own", e);
  for (const e of all("button")) {
    const box = e.getBoundingClientRect();
    if (box.width < 24 || box.height < 24) fault(`a small button (${Math.round(box.width)} x ${Math.round(box.height)})`, e);
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const e of document.querySelectorAll("[id]")) if (ids.indexOf(e.id) !== ids.lastIndexOf(e.id)) fault("an id twice", e);
  let level = 0;
  for (const e of all("h1, h2, h3, h4, h5, h6")) {
    const next = Number(e.tagName[1]);
    if (next > level + 1) fault(`a heading of level ${next} after level ${level}`, e);
    level = next;
  }

  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  const behind = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) {
      layers.push(rgba(getComputedStyle(e).backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  for (const e of all("body *")) {
    const text = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
    if (!text || e.closest("svg, [disabled], [aria-disabled=true]")) continue;
    const style = getComputedStyle(e), ground = behind(e), ink = over(rgba(style.color), ground);
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) fault(`contrast ${ratio.toFixed(2)}`, e);
  }
  return [...faults];
})()
