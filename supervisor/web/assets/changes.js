// What a task has changed in its workspace, with findings of reviewers at their lines.
import { html, useEffect, useState } from "./vendor-ui.js";
import { ask, Refusal } from "./api.js";
import { onEvents } from "./store.js";
import { Act, Command, confirm, note } from "./ui.js";
import { clip, count, visible, idWord } from "./text.js";

/** @typedef {{kind: " "|"+"|"-"|"@", a: number, b: number, text: string}} Row */
/** @typedef {{name: string, was: string, added: number, removed: number, rows: Row[]}} File */

const maxRows = 2000;  // of a file
const maxWidth = 2000; // characters of a row
const maxOpen = 600;   // a file with more rows is closed at first

/** Returns a name that git quotes if it has special characters. @param {string} name */
function unquoted(name) {
  if (!/^".*"$/.test(name)) return name;
  const bytes = /** @type {number[]} */ ([]);
  const plain = /** @type {Record<string, number>} */ ({ a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13 });
  for (const [part, octal, letter] of name.slice(1, -1).matchAll(/\\([0-7]{3})|\\(.)|[^\\]+/g)) {
    if (octal) bytes.push(parseInt(octal, 8));
    else if (letter) bytes.push(plain[letter] ?? letter.charCodeAt(0));
    else bytes.push(...new TextEncoder().encode(part));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/** Returns the files of a patch of git. @param {string} patch */
export function filesOf(patch) {
  const files = /** @type {File[]} */ ([]);
  let f = /** @type {File|undefined} */ (undefined), a = 0, b = 0, left = 0, right = 0; // left, right: lines of the hunk to come
  for (const line of patch.split("\n")) {
    if (left > 0 || right > 0) {
      if (line[0] === "\\") continue;
      const kind = line[0] === "+" || line[0] === "-" ? line[0] : " ";
      f?.rows.push({ kind, a: kind === "+" ? 0 : a, b: kind === "-" ? 0 : b, text: line.slice(1) });
      if (kind !== "+") a++, left--;
      if (kind !== "-") b++, right--;
      if (f && kind === "+") f.added++;
      if (f && kind === "-") f.removed++;
      continue;
    }
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)/.exec(line);
    if (line.startsWith("diff --git ")) {
      const both = line.slice(11); // the same name twice, unless the file was renamed
      files.push(f = { name: unquoted(both.slice(0, both.length >> 1)).replace(/^a\//, ""), was: "", added: 0, removed: 0, rows: [] });
    } else if (!f) continue;
    else if (hunk) {
      a = Number(hunk[1]), b = Number(hunk[3]), left = Number(hunk[2] ?? 1), right = Number(hunk[4] ?? 1);
      f.rows.push({ kind: "@", a: 0, b: 0, text: line });
    } else if (line.startsWith("+++ ") && line !== "+++ /dev/null") f.name = unquoted(line.slice(4).replace(/\t$/, "")).replace(/^b\//, "");
    else if (line.startsWith("rename to ")) f.name = unquoted(line.slice(10));
    else if (line.startsWith("new file")) f.was = "new";
    else if (line.startsWith("deleted file")) f.was = "deleted";
    else if (line.startsWith("rename from ")) f.was = "was " + unquoted(line.slice(12));
    else if (line.startsWith("Binary files")) f.was = (f.was + " binary").trim();
    else if (line.startsWith("old mode")) f.was = "mode changed";
  }
  return files;
}

/** Returns rows in pairs, removed lines beside added ones. @param {Row[]} rows @returns {[Row?, Row?][]} */
export function pairs(rows) {
  const all = /** @type {[Row?, Row?][]} */ ([]);
  for (let i = 0; i < rows.length;) {
    if (rows[i].kind === " " || rows[i].kind === "@") {
      all.push([rows[i], rows[i]]);
      i++;
      continue;
    }
    const old = /** @type {Row[]} */ ([]), young = /** @type {Row[]} */ ([]);
    while (rows[i]?.kind === "-") old.push(rows[i++]);
    while (rows[i]?.kind === "+") young.push(rows[i++]);
    for (let j = 0; j < Math.max(old.length, young.length); j++) all.push([old[j], young[j]]);
  }
  return all;
}

/** @param {{id: string, findings?: any[], ended?: boolean}} props */
export function Changes({ id, findings = [], ended }) {
  const [found, setFound] = useState(/** @type {any} */ (undefined));
  const [again, setAgain] = useState(0);
  const [beside, setBeside] = useState(() => innerWidth > 1400);
  const cli = `orchestrator task diff ${idWord(id)}`;
  useEffect(() => {
    const abort = new AbortController();
    ask("diff-task", { taskId: id }, abort.signal).then((d) => setFound({ ...d, files: filesOf(d.patch) }), (e) => { if (!abort.signal.aborted) setFound(e); });
    return () => abort.abort();
  }, [id, again]);
  useEffect(() => {
    let timer = 0;
    const off = onEvents((batch) => { if (!timer && batch.some((e) => e.task === id && !e.kind.startsWith("task.progress"))) timer = window.setTimeout(() => { timer = 0; setAgain((n) => n + 1); }, 1000); });
    return () => { clearTimeout(timer); off(); };
  }, [id]);
  if (!found) return html`<p class="loading">Loading…</p>`;
  if (found instanceof Error) {
    const none = found instanceof Refusal && found.status === 404;
    return html`<div class="card"><p class=${none ? "dim" : "bad"}>${none ? "No workspace: the task never had one, or its changes are merged." : visible(found.message, true)}</p><${Command} text=${none ? "orchestrator help verified" : cli}/></div>`;
  }
  const elsewhere = findings.filter((f) => !found.files.some((/** @type {File} */ file) => isIn(f, file)));
  return html`<div class="page changes"><div class="bar"><h2>${count(found.files.length, "changed file")} <small>on ${clip(found.branch, 80)}, from ${clip(found.base, 60)}</small></h2>
      <span class="switch push" role="group" aria-label="Form"><button type="button" aria-pressed=${!beside} onClick=${() => setBeside(false)}>Unified</button><button type="button" aria-pressed=${beside} onClick=${() => setBeside(true)}>Side by side</button></span></div>
    ${found.uncommitted?.length > 0 && html`<p class="t-amber">${count(found.uncommitted.length, "file is", "files are")} not committed: ${clip(found.uncommitted.slice(0, 20).join(", "), 400)}</p>`}
    <div class="row"><${Command} text=${cli}/><button type="button" onClick=${() => setAgain(again + 1)}>Refresh</button>${ended && html`<${Merge} id=${id} of=${found} done=${() => setAgain(again + 1)}/>`}</div>
    ${!found.files.length && html`<p class="dim">No changes yet.</p>`}
    ${found.files.map((/** @type {File} */ f) => html`<details key=${f.name} class="card diff" open=${f.rows.length < maxOpen || findings.some((g) => isIn(g, f))}>
      <summary><code>${clip(f.name, 200)}</code> ${f.was && html`<span class="dim">${clip(f.was, 200)}</span>`} <span class="push"><span class="t-green">+${f.added}</span> <span class="t-red">−${f.removed}</span></span></summary>
      ${f.rows.length > 0 && html`<div class="scroll"><table class=${beside ? "code beside" : "code"}>${beside && html`<colgroup><col class="n"/><col/><col class="n"/><col/></colgroup>`}<tbody>${beside ? pairs(f.rows.slice(0, maxRows)).map(([old, young], i) => html`<${Beside} key=${i} old=${old} young=${young} findings=${findings.filter((g) => isIn(g, f))}/>`)
        : f.rows.slice(0, maxRows).map((r, i) => html`<${Unified} key=${i} r=${r} findings=${findings.filter((g) => isIn(g, f))}/>`)}</tbody></table></div>`}
      ${f.rows.length > maxRows && html`<p class="dim">${count(f.rows.length - maxRows, "more line")}: <${Command} text=${cli}/></p>`}
      ${findings.filter((g) => isIn(g, f) && !f.rows.slice(0, maxRows).some((r) => isAt(g, r))).map((g, i) => html`<div key=${i}>${g.location?.line_start > 0 && html`<p class="dim">line ${g.location.line_start}</p>`}<${Finding} f=${g}/></div>`)}</details>`)}
    ${elsewhere.map((f, i) => html`<div key=${i} class="card"><p class="dim">${clip(f.location?.file, 200)}</p><${Finding} f=${f}/></div>`)}</div>`;
}

/** @param {any} f @param {File} file */
const isIn = (f, file) => f.location?.file === file.name;
/** @param {any} f @param {Row} r */
const isAt = (f, r) => r.b > 0 && r.b === f.location?.line_start;

/** @param {{f: any}} props */
const Finding = ({ f }) => html`<div class=${"finding " + (f.fixed ? "fixed" : "")}><b class=${/critical|major/.test(f.severity) ? "t-red" : "t-amber"}>${clip(f.severity, 20)}</b> <span class="dim">${clip(f.category, 30)}${f.fixed ? ", fixed in round " + f.fixed : ""}</span>
  <p>${clip(f.description, 600)}</p>${f.suggestion && html`<p class="dim">${clip(f.suggestion, 600)}</p>`}</div>`;

/** @param {string} text */
const shownText = (text) => visible(text.slice(0, maxWidth).replaceAll("\t", "    ")) + (text.length > maxWidth ? ` … ${count(text.length - maxWidth, "more character")}` : "");

/** The class of a row. @type {Record<string, string>} */
const looks = { "+": "plus", "-": "minus", "@": "hunk", " ": "" };

/** @param {{r: Row, findings: any[]}} props */
function Unified({ r, findings }) {
  const here = findings.filter((f) => isAt(f, r));
  return html`<tr class=${looks[r.kind]}><td class="n">${r.a || ""}</td><td class="n">${r.b || ""}</td><td class="text">${r.kind === "@" ? "" : r.kind}${shownText(r.text)}</td></tr>
    ${here.length > 0 && html`<tr><td colspan="3" class="said">${here.map((f, i) => html`<${Finding} key=${i} f=${f}/>`)}</td></tr>`}`;
}

/** @param {{old?: Row, young?: Row, findings: any[]}} props */
function Beside({ old, young, findings }) {
  if (old?.kind === "@") return html`<tr class="hunk"><td class="n"></td><td class="text" colspan="3">${shownText(old.text)}</td></tr>`;
  const here = young ? findings.filter((f) => isAt(f, young)) : [];
  const half = (/** @type {Row|undefined} */ r, /** @type {number} */ n) => html`<td class=${"n " + (r ? looks[r.kind] : "none")}>${n || ""}</td><td class=${"text " + (r ? looks[r.kind] : "none")}>${r ? shownText(r.text) : ""}</td>`;
  return html`<tr>${half(old, old?.a ?? 0)}${half(young, young?.b ?? 0)}</tr>
    ${here.length > 0 && html`<tr><td colspan="4" class="said">${here.map((f, i) => html`<${Finding} key=${i} f=${f}/>`)}</td></tr>`}`;
}

/** @param {{id: string, of: any, done: () => void}} props */
function Merge({ id, of, done }) {
  const cli = `orchestrator task merge ${idWord(id)}`;
  const run = async () => {
    if (await confirm({ title: `Merge ${clip(of.branch, 60)} into ${clip(of.base, 60)}?`, text: "The verify commands run on the result first. Nothing is pushed. Afterwards, the workspace and the branch of the task are removed, unless keep is \"all\".", yes: "Merge branch", cli }) === null) return;
    const m = await ask("merge-task", { taskId: id, commit: of.commit });
    note(m.already ? `Already merged into ${m.into}` : `Merged into ${m.into}`);
    done();
  };
  return html`<${Act} label="Merge" cli=${cli} run=${run}/>`;
}
