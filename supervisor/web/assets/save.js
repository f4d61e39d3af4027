// Saves text, and drawings of a page, as files.
import { html } from "./vendor-ui.js";
import { note } from "./ui.js";

const styles = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];
const margin = 150;

/**
 * Returns a drawing as the text of an SVG file, with the styles that it has on the screen.
 * @param {SVGSVGElement} svg
 * @param {{size?: {width: number, height: number}, lanes?: string[]}} [options] size is that of the whole drawing, if a part
 * of it is on the screen; lanes are written to the left, from the top
 */
export function drawing(svg, { size, lanes = [] } = {}) {
  const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
  const [from, to] = [svg, copy].map((e) => [e, ...e.querySelectorAll("*")]);
  from.forEach((e, i) => {
    const style = getComputedStyle(e);
    for (const name of styles) to[i].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "href", "tabindex", "style"]) to[i].removeAttribute(name);
  });
  const left = lanes.length ? margin : 0;
  const { width, height } = size ?? { width: svg.clientWidth, height: svg.clientHeight };
  if (size) copy.querySelector("g")?.removeAttribute("transform");
  const page = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  page.setAttribute("viewBox", `0 0 ${width + left} ${height}`);
  page.setAttribute("width", String(width + left));
  page.setAttribute("height", String(height));
  const ground = document.createElementNS(page.namespaceURI, "rect");
  for (const [name, value] of Object.entries({ width: "100%", height: "100%", fill: getComputedStyle(document.body).backgroundColor })) ground.setAttribute(name, value);
  for (const [name, value] of Object.entries({ x: left, width, height })) copy.setAttribute(name, String(value));
  page.append(ground, copy);
  lanes.forEach((lane, i) => {
    const text = document.createElementNS(page.namespaceURI, "text");
    const style = getComputedStyle(document.body);
    for (const [name, value] of Object.entries({ x: 8, y: 22 + (i + 0.5) * ((height - 26) / lanes.length), fill: style.color, "font-family": style.fontFamily, "font-size": "13px" })) text.setAttribute(name, String(value));
    text.textContent = lane;
    page.append(text);
  });
  return new XMLSerializer().serializeToString(page);
}

/** Saves text as a file. @param {string} text @param {string} type @param {string} name */
export function download(text, type, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

/**
 * A button that saves the drawing that a selector finds.
 * @param {{of: string, name: string, size?: {width: number, height: number}, lanes?: string[]}} props
 */
export function Save({ of, name, size, lanes }) {
  const save = () => {
    const svg = /** @type {SVGSVGElement|null} */ (document.querySelector(of));
    if (!svg) return note("Nothing to save", true);
    download(drawing(svg, { size, lanes }), "image/svg+xml", name);
  };
  return html`<button type="button" class="save" title="Save the drawing as a file" onClick=${save}>Save as SVG</button>`;
}
