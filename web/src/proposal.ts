import type { Schema } from "./api";

type Answer = Schema["Answer"];

// Each proxy that denies needs a policy of its own. More than these are for one that selects them by labels.
const most = 20;

/** Proposed is the smallest policies that allow a request, or why there are none. */
export interface Proposed {
  text?: string;
  none?: string;
}

/**
 * propose returns the smallest policies that allow a denied request: one identity, one method, one path, at each proxy that
 * denies it. None can allow what an entry denies, and only a zone takes those of its services' owners.
 */
export function propose(a: Answer, zone: boolean): Proposed {
  if (a.verdict === "allow") return {};
  const proxies = (a.proxies ?? []).length > 0 ? (a.proxies ?? []) : [{ inbound: a.inbound, verdict: a.verdict, policy: a.policy }];
  const denying = proxies.filter((p) => p.verdict !== "allow");
  if (denying.some((p) => p.policy !== "default")) return { none: "No added policy can allow it: what decides is above." };
  if (!zone) return { none: "The policy that would allow it belongs to the zone of the service: ask there." };
  if (denying.length > most) return { none: `${denying.length} proxies deny it, and each would need a policy of its own: write one that selects them by labels.` };
  return { text: denying.map((p) => policy(p.inbound, a.request)).join("---\n") };
}

/** policy is as YAML; each text is written as JSON writes it, which YAML reads as the same text. */
function policy(inbound: string, request: Answer["request"]): string {
  const [, , mesh = "", , namespace = "", name = "", section = ""] = inbound.split("_");
  const place = namespace === "" ? "" : `namespace: ${JSON.stringify(namespace)}\n`;
  const target = [`name: ${JSON.stringify(name)}`, ...(namespace === "" ? [] : [`namespace: ${JSON.stringify(namespace)}`]), `sectionName: ${JSON.stringify(section)}`];
  const path = (request.path ?? "").split("?")[0] ?? "";
  const what = request.method === undefined ? "" : `
            method: [${JSON.stringify(request.method)}]
            path: {type: Exact, value: ${JSON.stringify(path)}}`;
  return `type: MeshTrafficPermission
mesh: ${JSON.stringify(mesh)}
${place}name: ${JSON.stringify(nameOf(request.from, name, `${section} ${request.method ?? ""} ${path}`))}
spec:
  targetRef: {kind: Dataplane, ${target.join(", ")}}
  rules:
    - default:
        allow:
          - spiffeId: {type: Exact, value: ${JSON.stringify(request.from)}}${what}
`;
}

/** nameOf tells what the policy is for. Another request has another name. */
function nameOf(from: string, to: string, what: string): string {
  const words = `${from.slice(from.lastIndexOf("/") + 1)}-to-${to}`.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 40).replace(/^-+|-+$/g, "");
  let sum = 0;
  for (const c of `${from} ${to} ${what}`) sum = (Math.imul(sum, 31) + (c.codePointAt(0) ?? 0)) >>> 0;
  return `allow-${words}-${sum.toString(16).padStart(8, "0")}`;
}
