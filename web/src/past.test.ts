import { expect, test } from "vitest";
import type { Resource, Schema } from "./api";
import { changesOf, longer, type Past } from "./past";

type Entry = Schema["AuditEntry"];

const r: Resource = { type: "MeshTimeout", mesh: "default", name: "a" };
const change = (name: string) => ({ type: "MeshTimeout", mesh: "default", name, result: "updated" });
const entry = (seq: number, ...names: string[]) =>
  ({ seq, time: "2026-01-01T00:00:00Z", event: "write", outcome: "done", user: "ann", changes: names.map(change) }) as unknown as Entry;

test("of an entry only what it tells of the resource is kept", () => {
  const [only, ...others] = changesOf([entry(1, "a", "b", "c"), entry(2, "b")], r);
  expect(others).toEqual([]);
  expect(only).toEqual({ seq: 1, time: "2026-01-01T00:00:00Z", user: "ann", outcome: "done", change: change("a") });
});

test("no more changes are kept than are shown, however many there have been", () => {
  let past: Past | undefined;
  for (let seq = 1; seq <= 100; seq++) past = longer(past, { next: seq, read: 1, more: false, changes: changesOf([entry(seq, "a")], r) }, 20);
  expect(past?.changes.map((c) => c.seq)).toEqual(Array.from({ length: 20 }, (_, i) => 81 + i));
  expect(past).toMatchObject({ more: true, read: 100, next: 100 });
  expect(longer(undefined, { next: 2, read: 2, more: false, changes: changesOf([entry(1, "a"), entry(2, "a")], r) }, 20).more).toBe(false);
});
