import { readFileSync } from "node:fs";
import { basename } from "node:path";

/** One step of a dialogue. */
export interface Step {
  /** What to do. */
  word: string;
  /** What goes with it, as it stands there. */
  rest: string;
  /** Where it stands. */
  place: string;
}

/** A dialogue of a file. */
export interface Dialogue {
  title: string;
  steps: Step[];
}

/** Reads the dialogues of a file. */
export function readDialogues(path: string): Dialogue[] {
  return parseDialogues(readFileSync(path, "utf8"), basename(path));
}

export function parseDialogues(text: string, name: string): Dialogue[] {
  const dialogues: Dialogue[] = [];
  for (const step of parseSteps(text, name)) {
    if (step.word === "dialogue") dialogues.push({ title: step.rest, steps: [] });
    else if (dialogues.length === 0) throw new Error(`${step.place}: no dialogue has begun`);
    else dialogues.at(-1)!.steps.push(step);
  }
  return dialogues;
}

/** Reads steps. A line that begins with white space continues the one before. */
export function parseSteps(text: string, name: string): Step[] {
  const steps: Step[] = [];
  text.split("\n").forEach((line, i) => {
    if (line.trim() === "" || line.startsWith("#")) return;
    if (/^[ \t]/.test(line)) {
      steps.at(-1)!.rest += " " + line.trim();
      return;
    }
    const [, word = "", rest = ""] = /^(\S+) ?(.*)$/s.exec(line) ?? [];
    steps.push({ word, rest: rest.endsWith("\\") ? rest : rest.trimEnd(), place: `${name}:${i + 1}` });
  });
  return steps;
}

/** Takes the first words off what goes with a step. */
export function words(rest: string, count: number): string[] {
  const found: string[] = [];
  for (let i = 0; i < count; i++) {
    const [, word = "", more = ""] = /^(\S*) ?(.*)$/s.exec(rest) ?? [];
    found.push(word);
    rest = more;
  }
  return [...found, rest];
}
