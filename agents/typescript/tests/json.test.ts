import assert from "node:assert/strict";
import { it } from "node:test";
import { Raw } from "@orchestrator/agent";
import { complaint, read, spell } from "../src/wire/json.js";
import { Lines } from "../src/wire/lines.js";

const delicate = '{"id":12345678901234567890,"pi":3.10,"big":1e400,"same":1,"same":2,"t":"\\u00e9\\/ \\"}{][,:\\\\","list":[ 1 , [2,{"a":[]}] , "x,]" , {} ],"":{}}';

it("keeps what it does not look into, digit for digit", () => {
  const heard = read<any>(new Raw(delicate));
  assert.equal(heard.id, 12345678901234567000);
  assert.equal(heard.raw.at("id").text, "12345678901234567890");
  assert.equal(heard.raw.at("pi").text, "3.10");
  assert.equal(heard.raw.at("same").text, "2");
  assert.equal(heard.raw.at("t").value(), heard.t);
  assert.deepEqual(heard.raw.at("list").items().map(String), ["1", '[2,{"a":[]}]', '"x,]"', "{}"]);
  assert.equal(heard.raw.at("list", 1, 1, "a").text, "[]");
  assert.equal(heard.raw.at("list", 9, "a"), undefined);
  assert.equal(heard.raw.at("pi", "a"), undefined);
  assert.equal(spell({ payload: heard.raw }), `{"payload":${delicate}}`);
  assert(!Object.keys(heard).includes("raw"), "nobody sees the text who goes through the members");
});

it("spells what is said on one line", () => {
  const at = new Date("2026-02-04T14:30:00.250Z");
  assert.equal(spell({ a: 1n << 64n, b: undefined, c: [undefined, null], d: at, e: () => 1, f: -0.5 }), '{"a":18446744073709551616,"c":[null,null],"d":"2026-02-04T14:30:00.250Z","f":-0.5}');
  assert.equal(spell(new Raw('{\n "a": 1.0\r\n}')), '{ "a": 1.0}');
  assert.equal(spell(undefined), undefined);
  for (const wrong of [NaN, Infinity, "\ud83e", { "\udd9c": 1 }]) assert.throws(() => spell(wrong), TypeError);
  assert.equal(spell("🦜\u2028"), JSON.stringify("🦜\u2028"));
});

it("refuses what is no JSON, and half a character", () => {
  for (const wrong of ["", "{", "{}{}", "NaN", "'a'", '"\\ud800"', '"\\udd9c\\ud83e"', '"\\ud83e\\ud83e\\udd9c"', '"\\ud83e \\udd9c"']) {
    assert.notEqual(complaint(wrong), undefined, wrong);
    assert.throws(() => new Raw(wrong), SyntaxError);
  }
  for (const right of ['"\\ud83e\\udd9c"', '"\\\\ud800"', "12", "null", '"🦜"']) assert.equal(complaint(right), undefined, right);
});

it("splits lines at line feeds alone, wherever the chunks end", () => {
  const text = "\ufeffone\r\n\n" + '"\u2028\u0085\u000b\r🦜é"' + "\nlast";
  const want = ["one", "", '"\u2028\u0085\u000b\r🦜é"', "last"];
  const bytes = Buffer.from(text);
  for (let size = 1; size <= bytes.length; size++) {
    const lines: string[] = [];
    const splitter = new Lines((line) => lines.push(line));
    for (let at = 0; at < bytes.length; at += size) splitter.feed(bytes.subarray(at, at + size));
    splitter.end();
    assert.deepEqual(lines, want, `in chunks of ${size}`);
  }
});

it("takes long lines, and passes over those that are no UTF-8", () => {
  const lines: number[] = [];
  const splitter = new Lines((line) => lines.push(line.length));
  const chunk = Buffer.alloc(64 << 10, "x");
  for (let i = 0; i < 320; i++) splitter.feed(chunk);
  splitter.feed(Buffer.from("\n\xff\xfe\nab\n", "latin1"));
  assert.deepEqual(lines, [20 << 20, 2]);
});
