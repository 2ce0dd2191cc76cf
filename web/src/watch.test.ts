import { expect, test, vi } from "vitest";

vi.stubGlobal("window", { location: { origin: "http://127.0.0.1" } });
const { Refusal } = await import("./api");
const { revisionOf } = await import("./watch");

const again = () => undefined;
const data = { revision: "12.345" };
const away = new Refusal(0, "The server does not answer.");

test("a view waits from the revision of its answer", () => {
  expect(revisionOf({ again, asking: true }), "while it asks").toBeUndefined();
  expect(revisionOf({ again, asking: true, data }), "while an older answer is shown").toBeUndefined();
  expect(revisionOf({ again, asking: false, data })).toBe("12.345");
  expect(revisionOf({ again, asking: false, data: {} }), "of an answer without one").toBe("0");
});

test("after a refusal a view waits from 0, even if it shows an older answer: no server has given it that revision now", () => {
  expect(revisionOf({ again, asking: false, refusal: away })).toBe("0");
  expect(revisionOf({ again, asking: false, data, refusal: away })).toBe("0");
});
