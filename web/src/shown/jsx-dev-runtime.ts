import { Fragment, jsxDEV as made } from "react/jsx-dev-runtime";
import { shown } from "./shown";

export type { JSX } from "react/jsx-dev-runtime";
export { Fragment };

// The same as in jsx-runtime.ts, for `make ui-dev`.
export const jsxDEV: typeof made = (type, props, ...rest) => made(type, shown(props), ...rest);
