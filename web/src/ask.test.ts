import { afterEach, expect, test, vi } from "vitest";

vi.stubGlobal("window", { location: { origin: "http://127.0.0.1" } });
const { begin, forget, taken } = await import("./ask");

afterEach(() => {
  forget();
  vi.useRealTimers();
});

const answer = (data: string) => ({ name: "question", ask: () => Promise.resolve(data) });

test("what was begun is taken once", async () => {
  await begin(answer("zones"));
  expect((await taken("question"))?.data).toBe("zones");
  expect(taken("question")).toBeUndefined();
});

test("what a view has asked before it was begun is not taken for its next question", async () => {
  expect(taken("question")).toBeUndefined();
  await begin(answer("older than the next question"));
  expect(taken("question")).toBeUndefined();
});

test("what was begun long ago, or for somebody else, is not taken", async () => {
  vi.useFakeTimers();
  await begin(answer("old"));
  vi.advanceTimersByTime(6000);
  expect(taken("question"), "long ago").toBeUndefined();
  await begin(answer("another person's"));
  forget();
  expect(taken("question"), "for somebody else").toBeUndefined();
});

test("a refusal is for the view that takes it, and no error of the page where none does", async () => {
  const unhandled: unknown[] = [];
  const listen = (reason: unknown) => unhandled.push(reason);
  process.on("unhandledRejection", listen);
  const refused = { name: "question", ask: () => Promise.reject(new Error("403")) };
  void begin(refused);
  await new Promise((done) => setTimeout(done, 10));
  await expect(taken("question")).rejects.toThrow("403");
  void begin(refused);
  await new Promise((done) => setTimeout(done, 10));
  process.off("unhandledRejection", listen);
  expect(unhandled).toEqual([]);
});
