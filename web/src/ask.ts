import { useCallback, useEffect, useState } from "react";
import { Refusal } from "./api";

/** Answer is what is known of a question: the last answer, when it came, and why there is no newer one. */
export interface Answer<T> {
  data?: T;
  at?: Date;
  refusal?: Refusal;
  asking: boolean;
  again: () => void;
}

/**
 * useAnswer asks at once, when the key changes, and when the person returns to the page. Nothing is asked by a clock. An
 * older answer stays, with its time, while a newer one is on its way or is refused.
 */
export function useAnswer<T>(key: string, ask: (signal: AbortSignal) => Promise<T>): Answer<T> {
  const [state, setState] = useState<{ key: string; data?: T; at?: Date; refusal?: Refusal; asking: boolean }>({
    key,
    asking: true,
  });
  const [round, setRound] = useState(0);
  const again = useCallback(() => setRound((r) => r + 1), []);

  useEffect(() => {
    const control = new AbortController();
    setState((old) => (old.key === key ? { ...old, asking: true } : { key, asking: true }));
    ask(control.signal).then(
      (data) => {
        if (!control.signal.aborted) setState({ key, data, at: new Date(), asking: false });
      },
      (failure: unknown) => {
        if (control.signal.aborted) return;
        const refusal = failure instanceof Refusal ? failure : new Refusal(0, String(failure));
        setState((old) => ({ ...old, refusal, asking: false }));
      },
    );
    return () => control.abort();
    // The key stands for everything that ask reads.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key, round]);

  useEffect(() => {
    const seen = () => {
      if (document.visibilityState === "visible") again();
    };
    document.addEventListener("visibilitychange", seen);
    return () => document.removeEventListener("visibilitychange", seen);
  }, [again]);

  const shown = state.key === key ? state : { asking: true };
  return { ...shown, again };
}
