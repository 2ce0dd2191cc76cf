import type { Resource, Schema } from "./api";

/** PastChange is what one entry of the audit log tells of one resource. */
export interface PastChange {
  seq: number;
  time: string;
  user?: string;
  outcome: string;
  reason?: string;
  change: Schema["AuditChange"];
}

/** Past is what is known of a resource's changes, oldest first. */
export interface Past {
  changes: PastChange[];
  /** more reports whether there are older changes than these. */
  more: boolean;
  /** read is how many entries of the log were read, and next where its reading goes on. */
  read: number;
  next: number;
}

/** changesOf selects what entries tell of one resource: the log may have others of that name. */
export function changesOf(entries: Schema["AuditEntry"][], r: Resource): PastChange[] {
  return entries.flatMap(({ seq, time, user, outcome, reason, changes }) =>
    (changes ?? [])
      .filter((c) => c.type === r.type && c.name === r.name && (c.mesh ?? "") === (r.mesh ?? "") && (c.namespace ?? "") === (r.namespace ?? ""))
      .map((change) => ({ seq, time, outcome, change, ...(user === undefined ? {} : { user }), ...(reason === undefined ? {} : { reason }) })),
  );
}

/** longer adds newer changes to those that are known, and keeps the newest of both, at most so many. */
export function longer(known: Past | undefined, newer: Past, most: number): Past {
  const all = [...(known?.changes ?? []), ...newer.changes];
  return {
    changes: all.slice(-most), more: known?.more === true || newer.more || all.length > most,
    read: (known?.read ?? 0) + newer.read, next: newer.next,
  };
}
