import { expect, test } from "vitest";
import { callerName, cellText, countOf, edgesOf, has, mark, named, placed, sought, windowOf, type Access, type Cell, type Kind, type Service } from "./calls";

const service: Service = { kri: "kri_msvc_default_z_ns_s_http", name: "s", port: "http", protocol: "http", proxies: 2, cells: [] };
const cell = (c: Partial<Cell>): Cell => ({ caller: 0, verdict: "allow", policy: 0, ...c });

test("a cell is told in words", () => {
  expect(cellText(service, undefined, true)).toBe("Denied, and not seen");
  expect(cellText(service, undefined, false)).toBe("Denied");
  expect(cellText({ ...service, proxies: 0 }, undefined, true)).toBe("Nobody answers for this service");
  expect(cellText(service, cell({ verdict: "depends", dependsOn: ["method", "path"], allowed: 3, denied: 1 }), true)).toBe(
    "Depends on method, path; 3 allowed, 1 denied",
  );
  expect(cellText(service, cell({}), false)).toBe("Allowed");
});

test("what is not known to be seen is not called unused in words", () => {
  expect(cellText(service, cell({}), true)).toBe("Allowed; not seen");
  expect(has("unused", cell({}))).toBe(true);
  expect(has("unused", cell({ allowed: 1 }))).toBe(false);
  expect(has("tried", cell({ verdict: "deny", denied: 1 }))).toBe(true);
  const a = { services: [{ ...service, cells: [cell({}), cell({ verdict: "deny", denied: 2 })] }] } as unknown as Access;
  expect([countOf(a, "all"), countOf(a, "unused"), countOf(a, "tried")]).toEqual([2, 1, 1]);
  expect([mark(undefined), mark(cell({})), mark(cell({ verdict: "depends" }))]).toEqual(["", "✓", "◐"]);
});

test("a window holds what can be seen and no more than one at each side", () => {
  expect(windowOf(0, 280, 28, 500)).toEqual([0, 11]);
  expect(windowOf(2800, 280, 28, 500)).toEqual([99, 111]);
  expect(windowOf(13900, 280, 28, 500)).toEqual([495, 500]);
  expect(windowOf(0, 280, 28, 3)).toEqual([0, 3]);
});

test("a caller's name tells its zone, also where only the SPIFFE ID does", () => {
  const named = (spiffeId: string, zone?: string) => callerName({ spiffeId, proxies: 0, ...(zone === undefined ? {} : { zone }) });
  expect(named("spiffe://default.zone-2.mesh.local/ns/shop/sa/web")).toBe("zone-2/shop/web");
  expect(named("spiffe://default.eu.west.mesh.local/ns/shop/sa/web")).toBe("eu.west/shop/web");
  expect(named("spiffe://corp.example/ns/shop/sa/web", "zone-1")).toBe("zone-1/shop/web");
  expect(named("spiffe://corp.example/workload")).toBe("workload");
  expect(named("")).toBe("(none verified)");
});

test("the graph has a line for who may call, or tried to; what was seen is thick", () => {
  const cells = [cell({}), cell({ caller: 1, verdict: "depends", allowed: 2 }), cell({ caller: 2, verdict: "deny" }), cell({ caller: 3, verdict: "deny", denied: 1 }), cell({ caller: 9 })];
  const a = { services: [{ ...service, cells }], callers: [0, 1, 2, 3].map((i) => ({ spiffeId: `${i}`, proxies: 1 })) } as unknown as Access;
  const drawn = (only: Kind) => edgesOf(a, only).map((e) => `${e.source} ${e.target} ${e.verdict} ${e.weight}`);
  expect(drawn("all")).toEqual(["c0 s0 allow 1", "c1 s0 depends 3", "c3 s0 deny 3"]);
  expect(drawn("unused")).toEqual(["c0 s0 allow 1"]);
  expect(drawn("tried")).toEqual(["c3 s0 deny 3"]);
});

test("a URL names a cell by its service and its caller, wherever they stand", () => {
  const services = ["a", "b"].map((name) => ({ ...service, name, kri: `kri_msvc_default_z_ns_${name}_http` }));
  const callers = ["spiffe://d/x", "", "spiffe://d/y"].map((spiffeId) => ({ spiffeId, proxies: 1 }));
  const a = { services, callers } as unknown as Access;
  const later = { services: [{ ...service, kri: "kri_msvc_default_z_ns_0_http" }, ...services], callers: [{ spiffeId: "spiffe://d/0", proxies: 1 }, ...callers] } as unknown as Access;
  expect(named(a, 1, 2)).toEqual({ to: "kri_msvc_default_z_ns_b_http", from: "spiffe://d/y" });
  expect(placed(a, named(a, 1, 2))).toEqual({ row: 1, column: 2 });
  expect(placed(later, named(a, 1, 2))).toEqual({ row: 2, column: 3 });
  expect(placed(later, named(a, 0, 1)), "a caller without an identity").toEqual({ row: 1, column: 2 });
  expect(placed(a, named(later, 0, 0)), "what is not there").toEqual({ row: -1, column: -1 });
  expect([placed(a, {}), named(a, 9, 0)]).toEqual([{ row: -1, column: -1 }, {}]);
});

test("a cell that an answer lacks is looked for, until there is nowhere else to look", () => {
  const callers = [{ spiffeId: "spiffe://d/x", proxies: 1 }];
  const answer = (total: number, totalCallers = 1) => ({ services: [service], callers, total, totalCallers }) as unknown as Access;
  const asked = { to: "kri_msvc_default_z_ns_gone_http", from: "spiffe://d/y" };
  const look = { service: "gone", namespace: "ns", caller: "spiffe://d/y" };
  const missing = ["msvc z/ns/gone:http", "spiffe://d/y"];
  expect(sought(answer(1), asked), "all of a mesh, without it").toEqual({ missing });
  expect(sought(answer(2), asked), "there are more services").toEqual({ missing, look });
  expect(sought(answer(1, 2), asked), "there are more callers").toEqual({ missing, look });
  for (const narrow of [{ zone: "other" }, { service: "s" }, { caller: "x" }, { namespace: "other" }, { offset: "500" }, { callersOffset: "500" }]) {
    expect(sought(answer(1), { ...asked, ...narrow }), JSON.stringify(narrow)).toEqual({ missing, look });
  }
  expect(sought(answer(1), { ...asked, ...look }), "it was looked for").toEqual({ missing });
  expect(sought(answer(1), { to: service.kri, from: "none" })).toEqual({ missing: ["A caller without an identity"] });
});
