import { autocompletion, completionKeymap, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { keysAt, place, valuesAt, type Schemas } from "../completion";
import { namesLike } from "../names";
import written from "../schemas.json";

const schemas = written as unknown as Schemas;

// The colours of the page, which are for dark and light.
const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--link)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.comment, tags.lineComment, tags.meta], color: "var(--soft)" },
]);

/** Editor is a text of YAML documents, with what may stand at the cursor. Tab leaves it, as it leaves any field. */
export default function Editor({ value, onChange, label }: { value: string; onChange: (text: string) => void; label: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const tell = useRef(onChange);
  tell.current = onChange;

  useEffect(() => {
    if (frame.current === null) return;
    const made = new EditorView({ parent: frame.current, state: EditorState.create({ doc: value, extensions: extensions(label, (text) => tell.current(text)) }) });
    view.current = made;
    return () => made.destroy();
    // The text is the editor's own from here on: see below.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [label]);

  useEffect(() => {
    const shown = view.current?.state.doc.toString();
    if (shown !== undefined && shown !== value) view.current?.dispatch({ changes: { from: 0, to: shown.length, insert: value } });
  }, [value]);

  return <div className="code" ref={frame} />;
}

function extensions(label: string, changed: (text: string) => void) {
  return [
    EditorView.cspNonce.of(document.querySelector<HTMLMetaElement>("meta[property='csp-nonce']")?.nonce ?? ""),
    lineNumbers(),
    highlightSpecialChars({ addSpecialChars: /(?![\n\t])[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu }),
    history(),
    yaml(),
    indentOnInput(),
    bracketMatching(),
    syntaxHighlighting(colours),
    autocompletion({ override: [complete], icons: false }),
    keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", autocapitalize: "off", autocorrect: "off" }),
    EditorView.updateListener.of((u) => {
      if (u.docChanged) changed(u.state.doc.toString());
    }),
  ];
}

/** complete offers keys and values by the schemas, and names by what the server has. */
async function complete(context: CompletionContext): Promise<CompletionResult | null> {
  const at = place(context.state.doc.toString(), context.pos);
  if (at === undefined || (at.typed === "" && !context.explicit && !at.value)) return null;
  if (!at.value) {
    const options = keysAt(schemas, at).map(([name, about]): Completion => ({ label: name, info: about, apply: `${name}: ` }));
    return options.length === 0 ? null : { from: at.from, options, validFor: /^[\w.\/-]*$/ };
  }
  const { values, names } = valuesAt(schemas, at);
  if (names === undefined) return values.length === 0 ? null : { from: at.from, options: values.map((label) => ({ label })), validFor: /^[\w.\/-]*$/ };
  const control = new AbortController();
  context.addEventListener("abort", () => control.abort());
  const found = await namesLike(schemas, names, at.typed, control.signal).catch(() => []); // what cannot be asked is not offered
  return found.length === 0 ? null : { from: at.from, options: found.map((label) => ({ label })), filter: false };
}
