import { describe, expect, it } from "vitest";
import { ago, asTold, lag, presence, problemsOf, shortKRI, unseen, visible } from "./text";
import { href, parseView } from "./view";

describe("presence", () => {
  it("says unknown before all else", () => {
    const open = { subscriptions: [{ connectTime: "2026-01-01T00:00:00Z" }] };
    expect(presence({ zoneInsight: open }).state).toBe("online");
    expect(presence({ zoneInsight: open, unknown: { reason: "its replica is away" } })).toMatchObject({ state: "unknown" });
  });
  it("goes by the last subscription", () => {
    const two = [{ connectTime: "2026-01-01T00:00:00Z" }, { connectTime: "2026-01-02T00:00:00Z", disconnectTime: "2026-01-03T00:00:00Z" }];
    expect(presence({ dataplaneInsight: { subscriptions: two } })).toEqual({ state: "offline", since: new Date("2026-01-03T00:00:00Z") });
  });
  it("does not take silence for offline", () => {
    expect(presence({}).state).toBe("never");
  });
  it("does not take what may not be read for never seen", () => {
    expect(presence({ leftOut: 1 }).state).toBe("unknown");
  });
});

it("what was refused and mended since is not refused now, and not behind", () => {
  const insight = { subscriptions: [{ status: { total: { responsesSent: "7", responsesAcknowledged: "4", responsesRejected: "2" } } }] };
  expect(lag({ zoneInsight: insight })).toEqual({ behind: 1, refused: 0 });
  expect(lag({ zoneInsight: insight, refused: 3 })).toEqual({ behind: 1, refused: 3 });
});

describe("text", () => {
  const now = new Date("2026-01-01T12:00:00Z");
  it.each([
    ["2026-01-01T11:59:59Z", "just now"],
    ["2026-01-01T11:59:00Z", "60 s ago"],
    ["2026-01-01T09:00:00Z", "3 h ago"],
    ["2026-01-01T12:01:00Z", "in 60 s"],
    ["nonsense", "at an unknown time"],
  ])("%s is %s", (time, says) => expect(ago(new Date(time), now)).toBe(says));
  it("shortens a KRI, and nothing else", () => {
    expect(shortKRI("kri_mtp_default_zone-1_shop_let-in_")).toBe("mtp zone-1/shop/let-in");
    expect(shortKRI("kri_dp_default_zone-1_shop_till_http")).toBe("dp zone-1/shop/till:http");
    expect(shortKRI("default")).toBe("default");
  });
});

describe("a view's URL", () => {
  it("is read as it was written", () => {
    const to = href("why", { from: "spiffe://a/b?c&d", path: "/x y", zone: "" });
    const { page, query } = parseView(`http://h${to}`);
    expect(page).toBe("why");
    expect(Object.fromEntries(query)).toEqual({ from: "spiffe://a/b?c&d", path: "/x y" });
  });
});

it("what shows no glyph is written out, and as JSON means the same", () => {
  const text = "a\u202eb\u2066\u200b\u0000\u{e0041}\u2028é\n\t";
  expect(visible(text)).toBe("a\\u202eb\\u2066\\u200b\\u0000\\udb40\\udc41\\u2028é\n\t");
  expect(visible("admin\u3164\ufe0f\u034f")).toBe("admin\\u3164\\ufe0f\\u034f");
  expect(JSON.parse(visible(JSON.stringify({ text })))).toEqual({ text });
  expect(visible("plain <b> ümläut 漢字")).toBe("plain <b> ümläut 漢字");
});

describe("problemsOf", () => {
  it("reads what has no effect on a proxy, in an order that lasts", () => {
    expect(problemsOf({ dataplaneInsight: { metadata: { problems: { policies: "b", inbounds: "a" } } } })).toEqual([["inbounds", "a"], ["policies", "b"]]);
  });
  it("takes none for none", () => {
    for (const insight of [undefined, {}, { metadata: {} }]) expect(problemsOf({ dataplaneInsight: insight })).toEqual([]);
    expect(problemsOf(undefined)).toEqual([]);
  });
});

describe("unseen", () => {
  const list = (more: object, ...items: object[]) => ({ total: items.length, items, next: null, ...more }) as unknown as Parameters<typeof unseen>[0];
  it("says what is not known of proxies, and nothing where all is known", () => {
    expect(unseen(list({}, {}), false)).toEqual([]);
    expect(unseen(undefined, false)).toEqual(["What has no effect on proxies is not known."]);
    expect(unseen(list({ leftOut: 2 }, { leftOut: 1 }), true)).toEqual(["Whether 3 other proxies have problems, you may not read."]);
    expect(unseen(list({ total: 3 }, {}), true)).toEqual([]);
    expect(unseen(list({ total: 3 }, {}), false)).toEqual(["Proxies: the first 1 of 3 were checked."]);
  });
});

describe("asTold", () => {
  it("says that what a zone told may be old, and nothing of what is known", () => {
    expect(asTold({})).toBe("");
    expect(asTold({ unknown: { reason: "zone east has not connected since this server started" } })).toBe(
      " Its zone told this last, and it may have changed: zone east has not connected since this server started.",
    );
  });
});
