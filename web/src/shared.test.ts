import { expect, test } from "vitest";
import { shared } from "./shared";

const zones = () => ({ total: 3, items: [{ name: "a", is: { up: true } }, { name: "b", is: { up: true } }, { name: "c", tags: ["x", "y"] }], next: null });

test("an answer that says the same is the one before", () => {
  const old = zones();
  expect(shared(old, zones())).toBe(old);
  expect(shared(old, old)).toBe(old);
});

test("of an answer that says something else, the parts that say the same are those before", () => {
  const [old, now] = [zones(), zones()];
  now.items[1] = { name: "b", is: { up: false } };
  const is = shared(old, now);
  expect(is).not.toBe(old);
  expect(is).toEqual({ ...zones(), items: [zones().items[0], { name: "b", is: { up: false } }, zones().items[2]] });
  expect(is.items[0]).toBe(old.items[0]);
  expect(is.items[1]).not.toBe(old.items[1]);
  expect(is.items[2]).toBe(old.items[2]);
  expect(old, "the one before").toEqual(zones());
});

test.each<[string, unknown, unknown]>([
  ["another value", { a: 1 }, { a: 2 }],
  ["a field more", { a: 1 }, { a: 1, b: 2 }],
  ["a field less", { a: 1, b: 2 }, { a: 1 }],
  ["a field less that was nothing", { a: 1, b: undefined }, { a: 1 }],
  ["another field that is nothing, too", { a: undefined }, { b: undefined }],
  ["a longer list", [1], [1, 2]],
  ["a shorter list", [1, 2], [1]],
  ["a list in another order", [1, 2], [2, 1]],
  ["a list instead of an object", {}, []],
  ["an object instead of a list", [], {}],
  ["null instead of an object", { a: {} }, { a: null }],
  ["an object instead of null", { a: null }, { a: {} }],
  ["a text instead of a number", { a: 1 }, { a: "1" }],
  ["nothing before", undefined, { a: 1 }],
])("%s is what is answered now", (_what, old, now) => {
  const wanted = structuredClone(now);
  expect(shared(old, now)).toBe(now);
  expect(now).toEqual(wanted);
});

test("what is no JSON is compared by identity", () => {
  const [at, element] = [new Date(0), { $$typeof: Symbol("element"), props: {} as Record<string, unknown> }];
  element.props["owner"] = element; // as React's own
  const old = { at, element };
  expect(shared(old, { at, element })).toBe(old);
  const now = { at: new Date(0), element: { ...element } };
  expect(shared(old, now)).toBe(now);
  expect(now.at).not.toBe(at);
  expect(now.element).not.toBe(element);
});

test.each([
  ["__proto__", '{"a": {}}', '{"__proto__": {}}'],
  ["__proto__ with another value", '{"__proto__": {"a": 1}}', '{"__proto__": {"a": 2}}'],
  ["constructor", '{"a": {}}', '{"constructor": {}}'],
])("a key %s is a key like others", (_what, before, text) => {
  const [old, now] = [JSON.parse(before), JSON.parse(text)] as [object, object];
  expect(shared(old, now)).toBe(now);
  expect(JSON.stringify(now)).toBe(JSON.stringify(JSON.parse(text)));
  expect(shared(now, JSON.parse(text) as object)).toBe(now);
  expect(Object.getPrototypeOf(now)).toBe(Object.prototype);
});
