import { useCallback, useEffect, useRef, useState } from "react";
import { Refusal } from "./api";
import { Kept } from "./kept";
import { shared } from "./shared";

/** Answer is what is known of a question: the last answer, when it came, and why there is no newer one. */
export interface Answer<T> {
  data?: T;
  at?: Date;
  refusal?: Refusal;
  asking: boolean;
  again: () => void;
}

/** Question is what a view asks, and the name of what it asks. */
export interface Question<T> {
  name: string;
  ask: (signal: AbortSignal) => Promise<T>;
}

const kept = new Kept(32);

// What was asked before its view was there, by name, and when.
const begun = new Map<string, { asked: Promise<{ data: unknown; at: Date }>; since: number }>();
// A view that comes later than this, in ms, asks itself.
const early = 5000;
// What views have asked: its answer does not wait for their next question, which it would be too old for.
const viewed = new Set<string>();

/** begin asks before there is a view that asks. That view takes the answer, or the refusal. */
export function begin<T>({ name, ask }: Question<T>): Promise<T> {
  const asked = ask(new AbortController().signal).then((data) => ({ data, at: new Date() }));
  if (!viewed.has(name)) begun.set(name, { asked, since: Date.now() });
  const answer = asked.then(({ data, at }) => {
    if (begun.get(name)?.asked === asked) kept.keep(name, "", data, at);
    return data;
  });
  answer.catch(() => undefined); // the view says why
  return answer;
}

/** taken returns what was begun just now, once, and before a view has asked. */
export function taken<T>(name: string): Promise<{ data: T; at: Date }> | undefined {
  const one = begun.get(name);
  viewed.add(name);
  begun.delete(name);
  return one === undefined || Date.now() - one.since > early ? undefined : (one.asked as Promise<{ data: T; at: Date }>);
}

/** forget drops all answers: another person may not read them. */
export function forget(): void {
  kept.clear();
  begun.clear();
  viewed.clear();
}

/** useQuestion is useAnswer for a question that may have begun. */
export function useQuestion<T>({ name, ask }: Question<T>): Answer<T> {
  return useAnswer(name, ask);
}

/**
 * useAnswer asks at once, when the question changes, and when the person returns to the page. Nothing is asked by a clock.
 * An older answer stays, with its time, while a newer one is on its way or is refused. What the newer one says again is not
 * another object. A question about something that changes has a version, which says what of it the answer is about.
 */
export function useAnswer<T>(question: string, ask: (signal: AbortSignal) => Promise<T>, version = ""): Answer<T> {
  const key = `${question} ${version}`;
  const begin = () => ({ ...(kept.get(question, version) as { data: T; at: Date } | undefined), key, asking: true });
  const [state, setState] = useState<{ key: string; data?: T; at?: Date; refusal?: Refusal; asking: boolean }>(begin);
  const [round, setRound] = useState(0);
  // What is asked again while an answer is under way is asked after it: changes may follow each other faster than answers.
  const doing = useRef<"nothing" | "asking" | "asking, then again">("nothing");
  const again = useCallback(() => {
    if (doing.current === "nothing") setRound((r) => r + 1);
    else doing.current = "asking, then again";
  }, []);

  useEffect(() => {
    const control = new AbortController();
    doing.current = "asking";
    const ended = () => {
      const more = doing.current === "asking, then again";
      doing.current = "nothing";
      if (more && document.visibilityState === "visible") again();
    };
    setState((old) => (old.key !== key ? begin() : old.asking ? old : { ...old, asking: true }));
    const asked = (version === "" ? taken<T>(question) : undefined) ?? ask(control.signal).then((data) => ({ data, at: new Date() }));
    asked.then(
      ({ data: now, at }) => {
        if (control.signal.aborted) return;
        const data = shared(kept.get(question, version)?.data, now);
        kept.keep(question, version, data, at);
        setState({ key, data, at, asking: false });
        ended();
      },
      (failure: unknown) => {
        if (control.signal.aborted) return;
        ended();
        const refusal = failure instanceof Refusal ? failure : new Refusal(0, String(failure));
        if (refusal.status !== 401 && refusal.status !== 403) return setState((old) => ({ ...old, refusal, asking: false }));
        // What a person may read no longer goes.
        kept.drop(question);
        setState({ key, refusal, asking: false });
      },
    );
    return () => control.abort();
    // The question and its version stand for everything that ask reads.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key, round]);

  useEffect(() => {
    const seen = () => {
      if (document.visibilityState === "visible") setRound((r) => r + 1); // what was under way may never come
    };
    document.addEventListener("visibilitychange", seen);
    return () => document.removeEventListener("visibilitychange", seen);
  }, []);

  const shown = state.key === key ? state : begin();
  return { ...shown, again };
}

/** useAgain asks again at each turn but the first: what an answer tells has changed, and it has no revision of its own. */
export function useAgain({ again }: Answer<unknown>, turn: number): void {
  const first = useRef(turn);
  useEffect(() => {
    if (turn !== first.current) again();
  }, [turn, again]);
}

/** useLate reports whether two seconds have passed: what is below waits no longer. */
export function useLate(): boolean {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 2000);
    return () => clearTimeout(timer);
  }, []);
  return late;
}
