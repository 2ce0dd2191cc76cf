import { useEffect, useState } from "react";
import { ago } from "../text";

/** Time says how long ago something was, or how far off what is coming is; UTC and the viewer's own time are in its title. */
export function Time({ at, coming }: { at: Date | undefined; coming?: boolean }) {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), 10_000);
    return () => clearInterval(timer);
  }, []);
  if (at === undefined) return <>at an unknown time</>;
  const later = now < at && coming !== true ? at : now; // what was just answered is not in the future
  return <time dateTime={at.toISOString()} title={`${at.toISOString()} · ${at.toLocaleString()}`}>{ago(at, later)}</time>;
}
