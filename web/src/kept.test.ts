import { expect, test } from "vitest";
import { Kept } from "./kept";

const at = new Date(0);

test("a question has one answer, however many versions its subject has had", () => {
  const kept = new Kept(32);
  for (let i = 0; i < 100; i++) kept.keep("rollout of a", `version ${i}`, `answer ${i}`, at);
  expect(kept.size).toBe(1);
  expect(kept.get("rollout of a", "version 99")).toEqual({ data: "answer 99", at });
  expect(kept.get("rollout of a", "version 98")).toBeUndefined();
});

test("the answer that was not renewed for longest gives way", () => {
  const kept = new Kept(2);
  kept.keep("a", "", 1, at);
  kept.keep("b", "", 2, at);
  kept.keep("a", "", 3, at);
  kept.keep("c", "", 4, at);
  expect([kept.get("a", "")?.data, kept.get("b", "")?.data, kept.get("c", "")?.data]).toEqual([3, undefined, 4]);
  kept.drop("a");
  expect(kept.get("a", "")).toBeUndefined();
  kept.clear();
  expect(kept.size).toBe(0);
});
