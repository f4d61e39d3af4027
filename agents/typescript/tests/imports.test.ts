import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { test } from "node:test";

// The imports of the sources, which include those of types, form no circle, and each layer imports
// only those below it.

const home = "src";

/** The folders of the sources, from the lowest layer up. The files outside of them may import all. */
const layers = ["wire", "connection", "work", "roles"];

/** Returns the number of a file's layer. The lowest is 0. */
function layerOf(file: string): number {
  const folder = posix.dirname(file);
  if (folder !== ".") assert.ok(layers.includes(folder), `${folder} is not a layer`);
  return folder === "." ? layers.length : layers.indexOf(folder);
}

/** Returns the imports of each source file. Files are named by their paths in src. */
function graph(): Map<string, Set<string>> {
  const modules = new Map<string, Set<string>>();
  for (const file of readdirSync(home, { recursive: true }).map(String).sort()) {
    if (!file.endsWith(".ts")) continue;
    const text = readFileSync(posix.join(home, file), "utf8");
    const found = [...text.matchAll(/\b(?:from|import)\s*\(?\s*"(\.[^"]+)\.js"/g)];
    modules.set(file, new Set(found.map((each) => posix.join(posix.dirname(file), `${each[1]}.ts`))));
  }
  return modules;
}

/** Returns the files of a circle in order, or undefined. */
function circleIn(modules: Map<string, Set<string>>): string[] | undefined {
  const done = new Set<string>();
  const visit = (module: string, way: string[]): string[] | undefined => {
    if (way.includes(module)) return [...way.slice(way.indexOf(module)), module];
    if (done.has(module)) return undefined;
    for (const each of modules.get(module) ?? []) {
      const circle = visit(each, [...way, module]);
      if (circle) return circle;
    }
    done.add(module);
    return undefined;
  };
  for (const module of modules.keys()) {
    const circle = visit(module, []);
    if (circle) return circle;
  }
  return undefined;
}

test("all imported files are there", () => {
  const modules = graph();
  assert.ok(modules.size > 20);
  for (const [module, imports] of modules) for (const each of imports) assert.ok(modules.has(each), `${module} imports ${each}, which is not there`);
});

test("no circle", () => {
  const known = new Map([["a", new Set(["b"])], ["b", new Set(["c"])], ["c", new Set(["b"])]]);
  assert.deepEqual(circleIn(known), ["b", "c", "b"]);
  const circle = circleIn(graph());
  assert.equal(circle, undefined, circle?.join(" imports "));
});

test("no import upwards", () => {
  const upwards: string[] = [];
  for (const [module, imports] of graph()) {
    for (const each of imports) if (layerOf(each) > layerOf(module)) upwards.push(`${module} imports ${each}`);
  }
  assert.deepEqual(upwards, []);
});
