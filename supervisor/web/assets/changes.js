// What a task has changed in its workspace, with findings of reviewers at their lines.
import { html, useEffect, useState } from "./vendor-ui.js";
import { ask, Refusal } from "./api.js";
import { Act, Command, confirm, note } from "./ui.js";
import { clip, count, quoted, short, visible } from "./text.js";

/** @typedef {{kind: " "|"+"|"-"|"@", a: number, b: number, text: string}} Row */
/** @typedef {{name: string, was: string, added: number, removed: number, rows: Row[]}} File */

const most = 2000; // rows of a file that are shown

/** Returns the files of a patch of git. @param {string} patch */
export function filesOf(patch) {
  const files = /** @type {File[]} */ ([]);
  let f = /** @type {File|undefined} */ (undefined), a = 0, b = 0, left = 0, right = 0; // left, right: lines of the hunk to come
  for (const line of patch.split("\n")) {
    if (left > 0 || right > 0) {
      const kind = /** @type {" "|"+"|"-"} */ (line[0]);
      if (kind === "\\") continue;
      f?.rows.push({ kind, a: kind === "+" ? 0 : a, b: kind === "-" ? 0 : b, text: line.slice(1) });
      if (kind !== "+") a++, left--;
      if (kind !== "-") b++, right--;
      if (f && kind === "+") f.added++;
      if (f && kind === "-") f.removed++;
      continue;
    }
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)/.exec(line);
    if (line.startsWith("diff --git ")) {
      files.push(f = { name: line.slice(line.indexOf(" b/") + 3), was: "", added: 0, removed: 0, rows: [] });
    } else if (!f) continue;
    else if (hunk) {
      a = Number(hunk[1]), b = Number(hunk[3]), left = Number(hunk[2] ?? 1), right = Number(hunk[4] ?? 1);
      f.rows.push({ kind: "@", a: 0, b: 0, text: line });
    } else if (line.startsWith("+++ b/")) f.name = line.slice(6).replace(/\t$/, "");
    else if (line.startsWith("new file")) f.was = "new";
    else if (line.startsWith("deleted file")) f.was = "deleted";
    else if (line.startsWith("rename from ")) f.was = "was " + line.slice(12);
    else if (line.startsWith("Binary files")) f.was = (f.was + " binary").trim();
    else if (line.startsWith("old mode")) f.was = "other mode";
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

/** @param {{id: string, findings?: any[]}} props */
export function Changes({ id, findings = [] }) {
  const [found, setFound] = useState(/** @type {any} */ (undefined));
  const [beside, setBeside] = useState(() => innerWidth > 1400);
  const cli = `orchestrator task diff ${short(id)}`;
  useEffect(() => {
    const abort = new AbortController();
    setFound(undefined);
    ask("diff-task", { taskId: id }, abort.signal).then((d) => setFound({ ...d, files: filesOf(d.patch) }), (e) => { if (!abort.signal.aborted) setFound(e); });
    return () => abort.abort();
  }, [id]);
  if (!found) return html`<p class="loading">Loading…</p>`;
  if (found instanceof Error) {
    const none = found instanceof Refusal && found.status === 404;
    return html`<div class="card"><p class=${none ? "dim" : "bad"}>${none ? "It has no workspace: it never had one, or what it has changed was merged." : visible(found.message, true)}</p><${Command} text=${none ? "orchestrator help verified" : cli}/></div>`;
  }
  const elsewhere = findings.filter((f) => !found.files.some((/** @type {File} */ file) => isIn(f, file)));
  return html`<div class="page changes"><div class="bar"><h2>${count(found.files.length, "changed file")} <small>on ${clip(found.branch, 80)}, from ${clip(found.base, 60)}</small></h2>
      <span class="switch push" role="group" aria-label="Form"><button type="button" aria-pressed=${!beside} onClick=${() => setBeside(false)}>Unified</button><button type="button" aria-pressed=${beside} onClick=${() => setBeside(true)}>Side by side</button></span></div>
    ${found.uncommitted?.length > 0 && html`<p class="t-amber">${count(found.uncommitted.length, "file is", "files are")} not committed: ${clip(found.uncommitted.slice(0, 20).join(", "), 400)}</p>`}
    <div class="row"><${Command} text=${cli}/><${Merge} id=${id} branch=${found.branch} base=${found.base}/></div>
    ${!found.files.length && html`<p class="dim">It has changed nothing yet.</p>`}
    ${found.files.map((/** @type {File} */ f) => html`<details key=${f.name} class="card diff" open=${f.rows.length < 600}>
      <summary><code>${clip(f.name, 200)}</code> ${f.was && html`<span class="dim">${clip(f.was, 200)}</span>`} <span class="push"><span class="t-green">+${f.added}</span> <span class="t-red">−${f.removed}</span></span></summary>
      ${f.rows.length > 0 && html`<div class="scroll"><table class=${beside ? "code beside" : "code"}>${beside && html`<colgroup><col class="n"/><col/><col class="n"/><col/></colgroup>`}<tbody>${beside ? pairs(f.rows.slice(0, most)).map(([old, young], i) => html`<${Beside} key=${i} old=${old} young=${young} findings=${findings.filter((g) => isIn(g, f))}/>`)
        : f.rows.slice(0, most).map((r, i) => html`<${Unified} key=${i} r=${r} findings=${findings.filter((g) => isIn(g, f))}/>`)}</tbody></table></div>`}
      ${f.rows.length > most && html`<p class="dim">${count(f.rows.length - most, "more line")}: <${Command} text=${cli}/></p>`}
      ${findings.filter((g) => isIn(g, f) && !f.rows.some((r) => isAt(g, r))).map((g, i) => html`<${Finding} key=${i} f=${g}/>`)}</details>`)}
    ${elsewhere.map((f, i) => html`<div key=${i} class="card"><p class="dim">${clip(f.location?.file, 200)}</p><${Finding} f=${f}/></div>`)}</div>`;
}

/** @param {any} f @param {File} file */
const isIn = (f, file) => f.location?.file === file.name;
/** @param {any} f @param {Row} r */
const isAt = (f, r) => r.b > 0 && r.b === f.location?.line_start;

/** @param {{f: any}} props */
const Finding = ({ f }) => html`<div class=${"finding " + (f.fixed ? "fixed" : "")}><b class=${/critical|major/.test(f.severity) ? "t-red" : "t-amber"}>${clip(f.severity, 20)}</b> <span class="dim">${clip(f.category, 30)}${f.fixed ? ", fixed in round " + f.fixed : ""}</span>
  <p>${clip(f.description, 600)}</p>${f.suggestion && html`<p class="dim">${clip(f.suggestion, 600)}</p>`}</div>`;

/** The class of a row. @type {Record<string, string>} */
const looks = { "+": "plus", "-": "minus", "@": "hunk", " ": "" };

/** @param {{r: Row, findings: any[]}} props */
function Unified({ r, findings }) {
  const here = findings.filter((f) => isAt(f, r));
  return html`<tr class=${looks[r.kind]}><td class="n">${r.a || ""}</td><td class="n">${r.b || ""}</td><td class="text">${r.kind === "@" ? "" : r.kind}${visible(r.text.replaceAll("\t", "    "))}</td></tr>
    ${here.length > 0 && html`<tr><td colspan="3" class="said">${here.map((f, i) => html`<${Finding} key=${i} f=${f}/>`)}</td></tr>`}`;
}

/** @param {{old?: Row, young?: Row, findings: any[]}} props */
function Beside({ old, young, findings }) {
  if (old?.kind === "@") return html`<tr class="hunk"><td class="n"></td><td class="text" colspan="3">${visible(old.text)}</td></tr>`;
  const here = young ? findings.filter((f) => isAt(f, young)) : [];
  const half = (/** @type {Row|undefined} */ r, /** @type {number} */ n) => html`<td class=${"n " + (r ? looks[r.kind] : "none")}>${n || ""}</td><td class=${"text " + (r ? looks[r.kind] : "none")}>${r ? visible(r.text.replaceAll("\t", "    ")) : ""}</td>`;
  return html`<tr>${half(old, old?.a ?? 0)}${half(young, young?.b ?? 0)}</tr>
    ${here.length > 0 && html`<tr><td colspan="4" class="said">${here.map((f, i) => html`<${Finding} key=${i} f=${f}/>`)}</td></tr>`}`;
}

/** @param {{id: string, branch: string, base: string}} props */
function Merge({ id, branch, base }) {
  const cli = `orchestrator task merge ${short(id)}`;
  const run = async () => {
    if (await confirm({ title: `Merge ${clip(branch, 60)} into ${clip(base, 60)}?`, text: "The verify commands run on the result first. Nothing is pushed.", yes: "Merge it", cli }) === null) return;
    const m = await ask("merge-task", { taskId: id });
    note(m.already ? `It was merged before into ${m.into}` : `Merged into ${m.into}`);
  };
  return html`<${Act} label="Merge" cli=${cli} run=${run}/>`;
}
