import { useEffect, useRef, useState } from "react";
import { api } from "./api";

// A burst of changes is one question. A server that is away is asked more and more seldom.
const pause = 200;
const longest = 30_000;

/** Live says whether changes arrive by themselves, and if not, why. */
export interface Live {
  live: boolean;
  why?: string;
}

/**
 * useChanges calls changed when a resource of a type has changed, by the list that waits (`?watch=REVISION`). A page that
 * nobody looks at waits for nothing. An empty plural watches nothing.
 */
export function useChanges(plural: string, changed: () => void): Live {
  const [state, setState] = useState<Live>({ live: false });
  const tell = useRef(changed);
  tell.current = changed;

  useEffect(() => {
    if (plural === "") return;
    const control = new AbortController();
    void follow(plural, control.signal, () => tell.current(), setState);
    return () => control.abort();
  }, [plural]);

  return state;
}

async function follow(plural: string, signal: AbortSignal, changed: () => void, say: (l: Live) => void) {
  let revision = 0;
  let wait = 1000;
  while (!signal.aborted) {
    await seen(signal);
    const step = await next(plural, revision, signal);
    if (signal.aborted) return;
    if (step.final) {
      say({ live: false, why: step.why });
      return;
    }
    if (step.why !== undefined) {
      say({ live: false, why: step.why });
      await sleep(wait, signal);
      wait = Math.min(longest, 2 * wait);
      continue;
    }
    wait = 1000;
    say({ live: true });
    if (step.revision === undefined) continue; // nothing has changed
    if (revision !== 0) changed();
    // A revision that does not move on is not asked for again at once.
    await sleep(step.revision > revision ? pause : 1000, signal);
    revision = step.revision;
  }
}

interface Step {
  revision?: number;
  why?: string;
  final?: boolean;
}

/** next waits for one change. What is refused stays refused, but for a server that is away or busy. */
async function next(plural: string, revision: number, signal: AbortSignal): Promise<Step> {
  try {
    const { data, error, response } = await api.GET("/{plural}", { params: { path: { plural }, query: { watch: revision, size: 1 } }, signal });
    if (response.status === 204) return {};
    if (response.ok) return { revision: (data as { revision?: number } | undefined)?.revision ?? 0 };
    const busy = response.status === 429 || response.status >= 500;
    return { why: (error as { detail?: string } | undefined)?.detail ?? `the server answers ${response.status}`, final: !busy };
  } catch {
    return { why: "the server does not answer" };
  }
}

/** seen waits until somebody looks at the page. */
export function seen(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (document.visibilityState !== "visible" && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
    look();
  });
}

/** sleep waits, or until the signal is aborted. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

// When a rollout that is not complete is asked for again, in ms after a change. Then it is left to the person.
const steps = [300, 700, 1500, 3000, 6000, 12_000, 24_000];

// A change that is older than this is not followed: the person who opens its view has the answer of now.
const recent = 60_000;

/**
 * useFollowed asks again a few times after a change that was made just now, until complete: how far a change has come has
 * no revision to wait for.
 */
export function useFollowed(change: string, at: Date | undefined, complete: boolean, again: () => void): void {
  const old = at === undefined || Date.now() - at.getTime() > recent;
  useEffect(() => {
    if (complete || old) return;
    const timers = steps.map((ms) => setTimeout(() => document.visibilityState === "visible" && again(), ms));
    return () => timers.forEach(clearTimeout);
  }, [change, old, complete, again]);
}
