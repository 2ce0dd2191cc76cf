/**
 * shared returns an answer with the parts of an earlier one that say the same, and the earlier one where all of it does.
 * What is drawn of a part is drawn again only if the part is another one, and nothing is held twice. It writes into now,
 * which nobody else has yet. Both are JSON; other values are compared by identity.
 */
export function shared<T>(old: unknown, now: T): T {
  return part(old, now) as T;
}

function part(old: unknown, now: unknown): unknown {
  if (!comparable(old) || !comparable(now) || Array.isArray(old) !== Array.isArray(now)) return now;
  const keys = Object.keys(now);
  let same = keys.length === Object.keys(old).length;
  for (const key of keys) {
    const [before, after] = [old[key], now[key]];
    if (before === after) {
      same &&= after !== undefined || key in old;
      continue;
    }
    const kept = part(before, after);
    if (kept === before) now[key] = kept;
    else same = false;
  }
  return same ? old : now;
}

/** comparable reports whether a value is an object or a list of JSON: an element of React is not. */
function comparable(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || "$$typeof" in value) return false;
  const made = Object.getPrototypeOf(value) as unknown;
  return made === Object.prototype || made === Array.prototype;
}
