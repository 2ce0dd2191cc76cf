import { Fragment, jsx as made, jsxs as madeOfMany } from "react/jsx-runtime";
import { shown } from "./shown";

export type { JSX } from "react/jsx-runtime";
export { Fragment };

// The compiler makes each element of the page by these. So every text passes here, and none is forgotten.
export const jsx: typeof made = (type, props, key) => made(type, shown(props), key);
export const jsxs: typeof madeOfMany = (type, props, key) => madeOfMany(type, shown(props), key);
