// Plays a session of the extension of VS Code: node vscode.js MODULES NKIC KERNEL
// The module `vscode` is a stand-in; the extension, its protocol library (in MODULES) and the server
// are the real ones. Prints what the user would see, as JSON.
const { execFileSync } = require("node:child_process");
const Module = require("node:module");
const fs = require("node:fs");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const [modules, nkic, kernel] = process.argv.slice(2);
const extension = path.join(__dirname, "../../editors/vscode/extension.js");
const { contributes } = JSON.parse(fs.readFileSync(path.join(path.dirname(extension), "package.json")));
const settings = { command: nkic, debounce: 20, seconds: 60, memory: 2048, shapes: true };
const seen = { commands: contributes.commands.map((command) => command.command), said: [], tasks: [], status: [], opened: [] };
const registered = new Map(), providers = {}, waiting = [], listeners = {};
let diagnostics;

const disposable = { dispose() {} };
// What the stand-in has no own part for: a class or an enumeration, a function, or an event.
const rest = (known, make) =>
  new Proxy(known, { get: (own, name) => (name in own ? own[name] : (own[name] = make(String(name)))) });
const anyClass = (name) => rest(class { constructor(...given) { this.given = given; } static n = name; }, () => 1);
class Kind { constructor(value) { this.value = value; } append(more) { return new Kind(this.value ? `${this.value}.${more}` : more); } }
for (const name of ["Empty", "QuickFix", "Refactor", "RefactorExtract", "RefactorInline", "RefactorRewrite", "Source", "SourceOrganizeImports"])
  Kind[name] = new Kind(name === "Empty" ? "" : name.replace(/(?<!^)([A-Z])/g, ".$1").toLowerCase());
const event = (name) => (listener) => ((listeners[name] ??= []).push(listener), disposable);
const member = (name) => (/^on(Did|Will)/.test(name) ? event(name) : () => disposable);
const say = (kind) => async (text) => void seen.said.push([kind, text]);
class Position { constructor(line, character) { Object.assign(this, { line, character }); } }
class Range { constructor(...at) { [this.start, this.end] = [new Position(at[0], at[1]), new Position(at[2], at[3])]; } }
class Diagnostic { constructor(range, message) { Object.assign(this, { range, message }); } }

const uri = { scheme: "file", fsPath: kernel, path: kernel, toString: () => pathToFileURL(kernel).href };
const document = {
  uri, fileName: kernel, languageId: "python", version: 1, isDirty: false, isClosed: false,
  getText: () => fs.readFileSync(kernel, "utf-8"), save: async () => true,
};
const configuration = (section) => ({
  ...(section === "nkic" ? settings : {}),
  get: (name, other) => (section === "nkic" ? settings[name] : undefined) ?? other,
  has: (name) => name in settings, inspect: () => undefined,
});
const vscode = rest(
  {
    version: "1.82.0", Position, Range, Diagnostic, CodeActionKind: Kind,
    Uri: { parse: (text) => (text === uri.toString() ? uri : { toString: () => text }), file: () => uri },
    CancellationTokenSource: class { token = { isCancellationRequested: false, onCancellationRequested: event("cancel") }; cancel() {} dispose() {} },
    EventEmitter: class { event = event("own"); fire() {} dispose() {} },
    Disposable: class { dispose() {} },
    ProcessExecution: class { constructor(command, args) { Object.assign(this, { command, args }); } },
    Task: class { constructor(kind, scope, name, source, execution) { Object.assign(this, { execution }); } },
    env: { language: "en", appName: "stand-in", openExternal: async (page) => !!seen.opened.push(path.basename(page.toString())) },
    extensions: { getExtension: () => undefined },
    tasks: rest({ executeTask: async (task) => seen.tasks.push(task.execution.args.map((a) => path.basename(a))) }, member),
    commands: rest({
      registerCommand: (name, act) => (registered.set(name, act), disposable),
      executeCommand: (name, ...given) => registered.get(name)(...given),
    }, member),
    languages: new Proxy({
      match: () => 10,
      createDiagnosticCollection: () => rest({ set(_, found) { diagnostics = found; waiting.shift()?.(); } }, member),
    }, {
      get: (own, name) => own[name] ?? (/^register/.test(name) ? (...given) => ((providers[name] = given.at(-1)), disposable) : member(String(name))),
    }),
    window: rest({
      activeTextEditor: { document }, visibleTextEditors: [], tabGroups: rest({ all: [] }, member),
      createStatusBarItem: () => ({ show() { seen.status.push([this.text, this.tooltip]); }, hide() {}, ...disposable }),
      createOutputChannel: () => rest({ append() {}, appendLine() {} }, member),
      showInformationMessage: say("information"), showWarningMessage: say("warning"), showErrorMessage: say("error"),
      showTextDocument: async (shown) => void (seen.shown = shown.content),
      createWebviewPanel: () => ({ webview: { set html(text) { seen.panel = text.slice(0, 2000); } } }),
    }, member),
    workspace: rest({
      textDocuments: [document], notebookDocuments: [], workspaceFolders: undefined, isTrusted: true,
      getConfiguration: configuration, openTextDocument: async (given) => given,
      createFileSystemWatcher: () => rest({}, member),
    }, member),
  },
  anyClass,
);

const load = Module._load;
Module._load = (name, ...others) => (name === "vscode" ? vscode : load(name, ...others));
process.env.NODE_PATH = modules;
Module._initPaths();

async function main() {
  const published = () => new Promise((resolve) => waiting.push(resolve));
  const { activate, deactivate } = require(extension);
  let next = published();
  await activate({ subscriptions: [] });
  if (!seen.said.length) await next;
  const told = () => (diagnostics ?? []).map((found) => [found.range.start.line + 1, found.message]);
  seen.diagnostics = told();
  seen.registered = [...registered.keys()].sort();
  seen.providers = Object.keys(providers).sort();
  for (const name of seen.commands) {
    next = published();
    const said = seen.said.length;
    await registered.get(name)();
    if (name === "nkic.restart" && !seen.said.length) await next; // the new server has checked the open file
    for (let i = 0; i < 600 && /schedule|assembly/.test(name) && !seen.shown && seen.said.length === said; i++)
      await new Promise((resolve) => setTimeout(resolve, 50));
    if (seen.shown) seen[name] = seen.shown.slice(0, 200);
    seen.shown = undefined;
  }
  seen.again = told();
  if (seen.opened.length) {
    vscode.env.remoteName = "another machine";
    await registered.get("nkic.openReport")();
  }
  await Promise.all([1, 2, 3].map(() => registered.get("nkic.restart")()));
  const processes = execFileSync("ps", ["-o", "args=", "--ppid", process.pid], { encoding: "utf-8" });
  seen.servers = processes.split("\n").filter((line) => line.endsWith(" lsp")).length;
  await deactivate();
  console.log(JSON.stringify(seen));
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
