import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { readDialogues } from "./file.js";
import { play } from "./play.js";

delete process.env["ORC_AGENT_ID"]; // a program says who it is, or nobody does
const folder = process.env["DIALOGUES"] ?? "../dialogues";
const files = readdirSync(folder).filter((name) => name.endsWith(".txt"));
assert(files.length > 0, `there are no dialogues in ${folder}`);

for (const file of files) {
  describe(file, () => {
    for (const dialogue of readDialogues(join(folder, file))) it(dialogue.title, () => play(dialogue));
  });
}

// A dialogue that has failed leaves its program behind, in which somebody may wait for long.
after(() => setTimeout(() => process.exit(), 1000).unref());
