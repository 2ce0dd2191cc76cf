import type { Schema } from "./api";
import { shortKRI } from "./text";

export type Access = Schema["Access"];
export type Service = Access["services"][number];
export type Cell = Service["cells"][number];

export type Kind = "all" | "allow" | "depends" | "shadow" | "unused" | "tried";

/** kinds are what a person can look for. Those that are seen need reports of proxies. */
export const kinds: { kind: Kind; title: string; seen: boolean; has: (c: Cell) => boolean }[] = [
  { kind: "all", title: "All", seen: false, has: () => true },
  { kind: "allow", title: "Allowed", seen: false, has: (c) => c.verdict === "allow" },
  { kind: "depends", title: "Depends", seen: false, has: (c) => c.verdict === "depends" },
  { kind: "shadow", title: "Shadow differs", seen: false, has: (c) => c.shadow !== undefined },
  { kind: "unused", title: "Allowed, not seen", seen: true, has: (c) => c.verdict !== "deny" && c.allowed === undefined },
  { kind: "tried", title: "Denied and tried", seen: true, has: (c) => c.denied !== undefined },
];

export function has(kind: Kind, cell: Cell): boolean {
  return kinds.find((k) => k.kind === kind)?.has(cell) ?? true;
}

export function countOf(a: Access, kind: Kind): number {
  return a.services.reduce((n, s) => n + s.cells.filter((c) => has(kind, c)).length, 0);
}

/** Edge is a line of the graph, from a caller to a service. */
export interface Edge {
  id: string;
  source: string;
  target: string;
  row: number;
  column: number;
  verdict: string;
  /** weight is how thick the line is: those that were seen are thick. */
  weight: number;
}

/** edgesOf draws who may call, or tried to: a caller that nothing allows and that was not seen has no line. */
export function edgesOf(a: Access, only: Kind): Edge[] {
  return a.services.flatMap((s, row) =>
    s.cells
      .filter((c) => a.callers[c.caller] !== undefined && has(only, c) && (only !== "all" || c.verdict !== "deny" || c.denied !== undefined))
      .map((c) => ({
        id: `${row}-${c.caller}`, source: `c${c.caller}`, target: `s${row}`, row, column: c.caller, verdict: c.verdict,
        weight: c.allowed !== undefined || c.denied !== undefined ? 3 : 1,
      })),
  );
}

/** callerName is a caller as a person knows it: zone, namespace and service account. What only its SPIFFE ID tells is read from that. */
export function callerName(c: Access["callers"][number]): string {
  const [domain = "", ...path] = c.spiffeId.replace(/^spiffe:\/\//, "").split("/");
  const parts = domain.split(".");
  const zone = c.zone ?? (domain.endsWith(".mesh.local") && parts.length > 3 ? parts.slice(1, -2).join(".") : undefined);
  const name = path.join("/").replace(/^ns\/(.*)\/sa\//, "$1/") || c.spiffeId || "(none verified)";
  return zone === undefined || zone === "" ? name : `${zone}/${name}`;
}

// A caller that proves no identity has this name in a URL. A SPIFFE ID is a URI, and never this.
const nobody = "none";

/** named is a cell as a URL names it: by its service and its caller. Their places change with the mesh and with what is asked. */
export function named(a: Access, row: number, column: number): { to?: string; from?: string } {
  const [service, caller] = [a.services[row], a.callers[column]];
  return service === undefined || caller === undefined ? {} : { to: service.kri, from: caller.spiffeId || nobody };
}

/** placed returns where the cell that a URL names is, -1 where its service or its caller is not in the answer. */
export function placed(a: Access, asked: { to?: string; from?: string }): { row: number; column: number } {
  const id = asked.from === nobody ? "" : asked.from;
  return { row: a.services.findIndex((s) => s.kri === asked.to), column: a.callers.findIndex((c) => c.spiffeId === id) };
}

/** Question is the part of what a URL asks that decides which services and callers an answer has. */
export type Question = Partial<Record<"service" | "caller" | "zone" | "namespace" | "offset" | "callersOffset" | "to" | "from", string>>;

/**
 * sought returns what an answer lacks of the cell that a URL names, and the question that would have it; none where that
 * was asked, and the answer is whole: then it is gone.
 */
export function sought(a: Access, asked: Question): { missing: string[]; look?: Question } {
  const { row, column } = placed(a, asked);
  const missing = [...(row < 0 ? [shortKRI(asked.to ?? "")] : []), ...(column < 0 ? [asked.from === nobody ? "A caller without an identity" : (asked.from ?? "")] : [])];
  const parts = asked.to?.split("_") ?? [];
  const look: Question = { service: parts[5], namespace: parts[4], caller: asked.from === nobody ? undefined : asked.from };
  const keys = ["service", "caller", "zone", "namespace", "offset", "callersOffset"] as const;
  const whole = a.services.length >= a.total && a.callers.length >= a.totalCallers;
  const widest = keys.every((k) => (asked[k] ?? "") === "" || asked[k] === look[k]);
  return whole && widest ? { missing } : { missing, look };
}

/** cellText is a cell in words. Without a cell, nothing allows the caller. seen says whether it is known who called. */
export function cellText(service: Service, cell: Cell | undefined, seen: boolean): string {
  if (service.proxies === 0) return "Nobody answers for this service";
  if (cell === undefined) return seen ? "Denied, and not seen" : "Denied";
  const verdict =
    cell.verdict === "depends" ? `Depends on ${(cell.dependsOn ?? []).join(", ")}` : cell.verdict === "allow" ? "Allowed" : "Denied";
  if (!seen) return verdict;
  const done = [
    cell.allowed === undefined ? "" : `${cell.allowed} allowed`,
    cell.denied === undefined ? "" : `${cell.denied} denied`,
    cell.shadowDenied === undefined ? "" : `${cell.shadowDenied} shadow-denied`,
  ].filter((t) => t !== "");
  return `${verdict}; ${done.length === 0 ? "not seen" : done.join(", ")}`;
}

/** mark is a cell in one sign, so that colour is not all that tells. */
export function mark(cell: Cell | undefined): string {
  if (cell === undefined) return "";
  return cell.verdict === "allow" ? "✓" : cell.verdict === "depends" ? "◐" : "✕";
}

/** windowOf returns which of count things of a size are between two positions, with one more at each side. */
export function windowOf(from: number, length: number, size: number, count: number): [number, number] {
  const first = Math.max(0, Math.min(count, Math.floor(from / size) - 1));
  return [first, Math.max(first, Math.min(count, Math.ceil((from + length) / size) + 1))];
}
