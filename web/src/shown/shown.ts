import { visible } from "../text";

// The attributes that a person reads, or hears.
const read = ["title", "aria-label", "placeholder", "label", "alt"];

type Props = Record<string, unknown>;

/** shown returns the properties of an element with every text in it made visible. Values of fields stay as they are. */
export function shown<P>(properties: P): P {
  const props = properties as Props;
  let changed: Props | undefined;
  const set = (name: string, value: unknown) => {
    if (value !== props[name]) (changed ??= { ...props })[name] = value;
  };
  set("children", children(props["children"]));
  for (const name of read) if (typeof props[name] === "string") set(name, visible(props[name]));
  return (changed ?? props) as P;
}

/** children returns the same list if all its texts are visible already: React compares by identity. */
function children(all: unknown): unknown {
  if (typeof all === "string") return visible(all);
  if (!Array.isArray(all)) return all;
  const made = all.map(children);
  return made.some((one, i) => one !== all[i]) ? made : all;
}
