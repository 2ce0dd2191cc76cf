import type { Schema } from "./api";
import { date } from "./text";

type Sync = Schema["SyncStatus"];
type TypeSync = Sync["types"][number];
type Over = NonNullable<Sync["over"]>[number];

/** over says which limit the other side has met, and how often. */
export function over(o: Over): string {
  switch (o.limit) {
    case "resources":
    case "bytes":
    case "refusals":
      return `More ${o.type === undefined ? "" : `${o.type} `}${o.limit} than the ${o.most} that are kept: ${o.count}`;
    case "changes":
      return `More changes than the ${o.most} a second that are taken for long: what it sent had to wait, ${o.count} times`;
    default:
      return `It met the limit of ${o.limit}, ${o.most}, ${o.count} times`;
  }
}

/**
 * doubts says what a server does not know of a sync, or what the other side holds, beyond what its table by type says.
 * global is whether a global was asked.
 */
export function doubts(s: Sync, global: boolean): string[] {
  const all: string[] = [];
  if (s.outdatedSince !== undefined) {
    all.push(`What others wrote since ${s.outdatedSince} is unknown: ${s.whyOutdated ?? "the store does not answer"}. The zone may lack what is not known here.`);
  }
  if (global && s.connected === true && !reported(s)) {
    all.push("The zone has not reported in this session: what it refuses or holds is unknown.");
  }
  if (s.newStore !== undefined) {
    all.push("The global's store is not the one that the zone knew: it was restored, rolled back or recreated. The zone deletes nothing that it lacks until an operator agrees.");
  }
  if (s.newZoneStore !== undefined) {
    all.push("The zone's store is not the one that the global knew: it was restored, rolled back or recreated. The global deletes nothing that it lacks until an operator agrees.");
  }
  for (const [type, count] of Object.entries(s.heldByZone ?? {})) {
    all.push(`The zone holds ${count} removals of ${type}: the page of the zone names them.`);
  }
  if (s.replaced !== undefined) {
    all.push(`Since ${s.replaced.since} another store of the global has replaced ${s.replaced.count} resources in the zone: it may be older.`);
  }
  return all;
}

/** reported is whether the zone has told of itself since its session began. */
function reported(s: Sync): boolean {
  const told = date(s.reported);
  const begun = date(s.since);
  return told !== undefined && (begun === undefined || told >= begun);
}

/** behind says how far the receiver of a type is behind. That it is not is said only where the sender's newest is known. */
export function behind(t: TypeSync, s: Sync): string {
  if (t.lagUnknown === true) return "unknown";
  if (t.lagRevisions > 0 || t.lagSeconds > 0) return `${t.lagRevisions} revisions, ${Math.round(t.lagSeconds)} s`;
  return s.outdatedSince === undefined ? "no" : "unknown";
}

/** ofItsGlobal says what a zone does not know of its global; undefined if it has all, or runs alone. */
export function ofItsGlobal(s: Sync): string | undefined {
  if (s.connected === true) {
    const waiting = s.types.filter((t) => t.direction === "toZone" && t.lagSeconds > 0).map((t) => t.type);
    return waiting.length === 0 ? undefined : `Changes of ${waiting.join(", ")} that the global sent wait for the store here: what is below is older.`;
  }
  const since = date(s.since) === undefined ? s.started : s.since;
  if (date(since) === undefined) return undefined;
  return `The global is away since ${since}, or longer: whether it has newer ones is unknown.`;
}

/** ofItsStore says what a replica of the global does not know of its store; undefined if it hears it. */
export function ofItsStore(replicas: Schema["Replicas"]["items"]): string | undefined {
  const store = replicas.find((r) => r.asked)?.store;
  if (store === undefined) return "Whether what is below is the newest is unknown: the server does not say how its store is.";
  if (store.kind === "bolt" || store.reachable === true) return undefined;
  return `What others wrote is unknown: the store does not answer this replica${store.error === undefined ? "" : ` (${store.error})`}. What is below may be older.`;
}
