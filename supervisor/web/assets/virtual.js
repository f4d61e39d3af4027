// A list of which only the rows in sight are in the document.
import { html, useState, useRef, useLayoutEffect } from "./vendor-ui.js";

const spare = 8; // rows above and below those in sight

/**
 * @param {object} props
 * @param {any[]} props.items
 * @param {number} props.height of a row, in pixels
 * @param {(item: any, index: number) => any} props.row
 * @param {string} [props.class]
 * @param {boolean} [props.stick] whether to stay at the end as rows are added
 * @param {number} [props.reveal] the index of a row to scroll to
 * @param {(atEnd: boolean) => void} [props.onEnd] called as the reader leaves or reaches the end
 * @param {string} [props.label] for screen readers
 * @param {string} [props.role]
 */
export function Virtual({ items, height, row, class: name = "", stick, reveal, onEnd, label, role = "list" }) {
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const [top, setTop] = useState(0);
  const [room, setRoom] = useState(800);
  const was = useRef(0); // the scroll position that was set here
  useLayoutEffect(() => {
    const div = /** @type {HTMLDivElement} */ (box.current);
    const watch = new ResizeObserver(() => setRoom(div.clientHeight));
    watch.observe(div);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    const div = box.current;
    if (div && stick) { div.scrollTop = div.scrollHeight; was.current = div.scrollTop; }
  }, [stick, items, items.length, room]);
  useLayoutEffect(() => {
    const div = box.current;
    if (!div || reveal === undefined || reveal < 0) return;
    const y = reveal * height;
    if (y < div.scrollTop || y + height > div.scrollTop + div.clientHeight) div.scrollTop = Math.max(0, y - div.clientHeight / 3);
  }, [reveal]);
  const scrolled = () => {
    const div = /** @type {HTMLDivElement} */ (box.current);
    setTop(div.scrollTop);
    if (Math.abs(div.scrollTop - was.current) < 2) return;
    was.current = div.scrollTop;
    onEnd?.(div.scrollTop + div.clientHeight >= div.scrollHeight - height);
  };
  const first = Math.max(0, Math.min(Math.floor(top / height) - spare, items.length - 1));
  const last = Math.min(items.length, Math.ceil((top + room) / height) + spare);
  return html`<div ref=${box} class=${"virtual " + name} onScroll=${scrolled} role=${role} aria-label=${label} tabIndex="0">
    <div class="space" style=${{ height: items.length * height + "px" }}>
      <div class="rows" style=${{ transform: `translateY(${first * height}px)` }}>${items.slice(first, last).map((item, i) => row(item, first + i))}</div>
    </div></div>`;
}
