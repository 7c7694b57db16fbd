// The editor of one function. It lives in a shadow root, where its styles need no permission to be inline.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { pythonLanguage } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword, tags.definitionKeyword, tags.moduleKeyword], color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.docString], color: "var(--fine)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--plus)", fontWeight: "600" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], fontWeight: "600" },
  { tag: tags.meta, color: "var(--quiet)" },
]);
const look = EditorView.theme({
  "&": { fontSize: "0.875rem", backgroundColor: "var(--paper)", color: "var(--ink)", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)", borderLeftWidth: "2px" },
  ".cm-gutters": { backgroundColor: "var(--card)", color: "var(--quiet)", border: "none" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent) 7%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 14%, var(--card))" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "color-mix(in srgb, var(--accent) 25%, transparent)" },
  ".cm-faulty": { backgroundColor: "var(--warning-bg)", boxShadow: "inset 3px 0 var(--warning)" },
});

// The line at which a fault was met.
const setFault = StateEffect.define(), faultyLine = Decoration.line({ class: "cm-faulty" });
const faults = StateField.define({
  create: () => Decoration.none,
  update(marks, change) {
    for (const effect of change.effects) if (effect.is(setFault)) return effect.value === null ? Decoration.none : Decoration.set([faultyLine.range(effect.value)]);
    return marks.map(change.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

// `onChange(text)` after every change by the user, `onSave()` on Ctrl+S.
export function makeEditor(host, { onChange, onSave, onLeave, label }) {
  const root = host.attachShadow({ mode: "open" });
  let quiet = false;
  const extensions = [
    lineNumbers(), highlightActiveLine(), highlightActiveLineGutter(), history(), drawSelection(), indentOnInput(), bracketMatching(), faults,
    indentUnit.of("    "), EditorState.tabSize.of(4), pythonLanguage, syntaxHighlighting(colours), look, EditorView.contentAttributes.of({ "aria-label": label }),
    keymap.of([
      { key: "Mod-s", preventDefault: true, run: () => { onSave(); return true; } },
      { key: "Escape", run: () => { onLeave(); return true; } },
      indentWithTab, ...historyKeymap, ...defaultKeymap,
    ]),
    EditorView.updateListener.of((update) => { if (update.docChanged && !quiet) onChange(update.state.doc.toString()); }),
  ];
  const view = new EditorView({ parent: root, root, state: EditorState.create({ doc: "", extensions }) });
  return {
    view,
    text: () => view.state.doc.toString(),
    // A text from elsewhere, with a history of its own.
    load(text) {
      quiet = true;
      view.setState(EditorState.create({ doc: text, extensions }));
      quiet = false;
    },
    // A fault at a line of the text (counted from 1), or none.
    mark(line) {
      const doc = view.state.doc;
      view.dispatch({ effects: setFault.of(line ? doc.line(Math.min(Math.max(line, 1), doc.lines)).from : null) });
    },
    destroy: () => view.destroy(),
  };
}
