import { useEffect, useState } from "react";
import { ago, lasting } from "../text";

/** Time says how long ago something was, how far off what is coming is, or for how long something lasts; the time in the viewer's own zone and in UTC are in its title. */
export function Time({ at, coming, lasts }: { at: Date | undefined; coming?: boolean; lasts?: boolean }) {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), 10_000);
    return () => clearInterval(timer);
  }, []);
  if (at === undefined) return <>{lasts === true ? "for an unknown time" : "at an unknown time"}</>;
  const later = now < at && coming !== true ? at : now; // what was just answered is not in the future
  return <time dateTime={at.toISOString()} title={`${at.toLocaleString()} · ${at.toISOString().replace(/\.\d+Z$/, "Z")} (UTC)`}>{lasts === true ? lasting(at, later) : ago(at, later)}</time>;
}
