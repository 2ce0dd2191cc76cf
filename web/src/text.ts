/** ago says how long ago a time was, as a person would. */
export function ago(time: Date, now: Date): string {
  const s = Math.round((now.getTime() - time.getTime()) / 1000);
  if (Number.isNaN(s)) return "at an unknown time";
  if (s < 0) return `in ${span(-s)}`;
  return s < 2 ? "just now" : `${span(s)} ago`;
}

function span(s: number): string {
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} days`;
}

/** Zone's state as its overview tells it. */
export type Presence =
  | { state: "online"; since?: Date }
  | { state: "offline"; since?: Date }
  | { state: "never" }
  | { state: "unknown"; since?: Date; reason: string };

interface Overview {
  leftOut?: number;
  unknown?: { since?: string; reason: string };
  zoneInsight?: unknown;
  dataplaneInsight?: unknown;
}

interface Subscription {
  connectTime?: string;
  disconnectTime?: string;
}

/**
 * presence reads who is connected. Unknown comes first: what is not known is neither online nor offline. A session that
 * has no end is a connection.
 */
export function presence(o: Overview): Presence {
  if (o.unknown !== undefined) return { state: "unknown", since: date(o.unknown.since), reason: o.unknown.reason };
  if (o.leftOut !== undefined) return { state: "unknown", reason: "you may not read its insight" };
  const insight = (o.zoneInsight ?? o.dataplaneInsight) as { subscriptions?: Subscription[] } | undefined;
  const last = insight?.subscriptions?.at(-1);
  if (last === undefined) return { state: "never" };
  return last.disconnectTime === undefined || last.disconnectTime === ""
    ? { state: "online", since: date(last.connectTime) }
    : { state: "offline", since: date(last.disconnectTime) };
}

export function date(text: string | undefined): Date | undefined {
  if (text === undefined || text === "" || text.startsWith("0001-")) return undefined;
  const d = new Date(text);
  return Number.isNaN(d.getTime()) ? undefined : d;
}

/** shortKRI drops the fixed beginning of a KRI: people read the names. */
export function shortKRI(kri: string): string {
  const parts = kri.split("_");
  if (parts[0] !== "kri" || parts.length < 6) return kri;
  const [, type, , zone, namespace, name, section] = parts;
  const place = [zone, namespace].filter((p) => p !== undefined && p !== "").join("/");
  return `${type} ${place === "" ? "" : `${place}/`}${name}${section === undefined || section === "" ? "" : `:${section}`}`;
}
