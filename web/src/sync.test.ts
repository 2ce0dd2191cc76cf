import { describe, expect, it } from "vitest";
import type { Schema } from "./api";
import { behind, doubts, ofItsGlobal, ofItsStore, over } from "./sync";

type Sync = Schema["SyncStatus"];

const type = { type: "MeshTimeout", direction: "toZone", revision: 7, acknowledged: 7, lagRevisions: 0, lagSeconds: 0, sent: 1, acked: 1, refused: [] } as Sync["types"][number];
const at = "2026-01-02T03:04:05Z";
const later = "2026-01-02T03:05:05Z";
const sync = (more: Partial<Sync>): Sync => ({ zone: "zone-1", connected: true, since: at, reported: later, types: [type], ...more }) as Sync;

describe("doubts", () => {
  it("has none about a sync of which all is known", () => {
    expect(doubts(sync({}), true)).toEqual([]);
    expect(behind(type, sync({}))).toBe("no");
  });
  it("tells of a replica that does not hear its store, with since when and why", () => {
    const s = sync({ outdatedSince: at, whyOutdated: "etcd does not answer" });
    expect(doubts(s, true).join()).toMatch(/unknown: etcd does not answer/);
    expect(doubts(s, true).join()).toContain(at);
    expect(behind(type, s)).toBe("unknown");
  });
  it("tells of a zone that has not reported", () => {
    expect(doubts(sync({ reported: undefined }), true).join()).toMatch(/unknown/);
    expect(doubts(sync({ since: later, reported: at }), true).join()).toMatch(/unknown/);
    expect(doubts(sync({ reported: undefined }), false)).toEqual([]);
  });
  it("tells of what is held elsewhere, and of stores that are not the known ones", () => {
    const other = { known: "a", announced: "b", since: at };
    expect(doubts(sync({ heldByZone: { MeshTimeout: 3 } }), true).join()).toContain("holds 3 removals of MeshTimeout");
    expect(doubts(sync({ newStore: other, newZoneStore: other, replaced: { count: 2, since: at } }), true)).toHaveLength(3);
  });
});

describe("behind", () => {
  it("calls what waits behind, also where no revision is counted", () => {
    expect(behind({ ...type, lagSeconds: 4 }, sync({}))).toBe("0 revisions, 4 s");
    expect(behind({ ...type, lagUnknown: true }, sync({}))).toBe("unknown");
  });
});

describe("what is below may be older", () => {
  it("in a zone whose global is away, or was not seen, or whose store takes nothing", () => {
    expect(ofItsGlobal(sync({}))).toBeUndefined();
    expect(ofItsGlobal(sync({ connected: false }))).toContain(`since ${at}`);
    expect(ofItsGlobal(sync({ connected: false, since: undefined, started: later }))).toContain(`since ${later}`);
    expect(ofItsGlobal(sync({ connected: false, since: undefined }))).toBeUndefined();
    expect(ofItsGlobal(sync({ types: [{ ...type, lagSeconds: 1 }] }))).toContain("MeshTimeout");
  });
  it("on a replica that does not hear its store", () => {
    const one = (store: Schema["Replicas"]["items"][number]["store"]) => [{ asked: true, store }] as Schema["Replicas"]["items"];
    expect(ofItsStore(one({ kind: "etcd", reachable: true, writable: false }))).toBeUndefined();
    expect(ofItsStore(one({ kind: "bolt", reachable: true }))).toBeUndefined();
    expect(ofItsStore(one({ kind: "etcd", reachable: false, error: "no answer" }))).toContain("(no answer)");
    expect(ofItsStore([])).toMatch(/unknown/);
  });
});

describe("over", () => {
  const met = (limit: string, more = {}) => over({ limit, most: 500, count: 7, since: at, ...more } as Parameters<typeof over>[0]);
  it("does not say that changes which wait are kept from the other side", () => {
    expect(met("changes")).toBe("More changes than the 500 a second that are taken for long: what it sent had to wait, 7 times");
  });
  it("names what more there is than is kept", () => {
    expect(met("resources", { type: "MeshService" })).toBe("More MeshService resources than the 500 that are kept: 7");
    expect(met("bytes")).toBe("More bytes than the 500 that are kept: 7");
    expect(met("calls")).toBe("It met the limit of calls, 500, 7 times");
  });
});
