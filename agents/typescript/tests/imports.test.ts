import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { test } from "node:test";

// The imports of the sources, which include those of types, form no circle.

const home = "src";

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
