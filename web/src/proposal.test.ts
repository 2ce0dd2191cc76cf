import { expect, test } from "vitest";
import { propose } from "./proposal";
import type { Schema } from "./api";

const inbound = "kri_dp_default_zone-1_backend-ns_backend_http-port";
const denied: Schema["Answer"] = {
  verdict: "deny", policy: "default", rule: 0, reason: "nothing allows it", inbound, protocol: "http", matched: [],
  request: { from: "spiffe://a.b/ns/x/sa/Shop", method: "GET", path: "/orders?id=1" },
};

test("the smallest policy allows one identity, one method and one path at one inbound", () => {
  const { text } = propose(denied, true);
  expect(text).toContain(`targetRef: {kind: Dataplane, name: "backend", namespace: "backend-ns", sectionName: "http-port"}`);
  expect(text).toContain(`- spiffeId: {type: Exact, value: "spiffe://a.b/ns/x/sa/Shop"}`);
  expect(text).toContain(`method: ["GET"]`);
  expect(text).toContain(`path: {type: Exact, value: "/orders"}`);
  expect(text).toMatch(/name: "allow-shop-to-backend-[0-9a-f]{8}"/);
});

test("each proxy that denies gets its own, and those that allow none", () => {
  const proxies = [1, 2, 3].map((n) => ({ inbound: `kri_dp_default_zone-1__b-${n}_http`, verdict: n === 2 ? ("allow" as const) : ("deny" as const), policy: n === 2 ? "kri_mtp_default___a_" : "default" }));
  const { text } = propose({ ...denied, proxies }, true);
  expect(text?.split("---\n").length).toBe(2);
  expect(text).not.toContain("b-2");
  expect(text).not.toContain("namespace");
});

test("there is none for what is allowed, what an entry denies, and what another server decides", () => {
  expect(propose({ ...denied, verdict: "allow" }, true)).toEqual({});
  expect(propose({ ...denied, policy: "kri_mtp_default___no_" }, true).none).toContain("No added policy");
  expect(propose(denied, false).none).toContain("zone of the service");
});

test("what a client chose is text, and not more of the policy", () => {
  const { text } = propose({ ...denied, request: { ...denied.request, path: `/"}\n    - default: {allow: [{}]}` } }, true);
  expect(text).toContain(String.raw`value: "/\"}\n    - default: {allow: [{}]}"`);
});
