// Starts `nkic lsp`, and adds the commands of package.json.
const { execFile } = require("node:child_process");
const { readFileSync } = require("node:fs");
const { fileURLToPath } = require("node:url");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;
// Time and memory of the kernels in each document, as the server tells them.
const statuses = new Map();
let item;

function showStatus() {
  const status = statuses.get(vscode.window.activeTextEditor?.document.uri.toString());
  if (!status?.text) return item.hide();
  [item.text, item.tooltip] = [status.text, status.tooltip];
  item.show();
}

const setting = (name) => vscode.workspace.getConfiguration("nkic").get(name);

// Shows a report. A browser on another machine than the kernel's has no such file.
async function showDocument(params, next) {
  if (!params.external || vscode.env.remoteName === undefined) return next(params);
  const panel = vscode.window.createWebviewPanel("nkic.report", "nkic report", vscode.ViewColumn.Beside, {
    enableScripts: true,
  });
  panel.webview.html = readFileSync(fileURLToPath(params.uri), "utf8");
  return { success: true };
}

async function start() {
  const run = { command: setting("command"), args: ["lsp"] };
  client = new LanguageClient("nkic", "nkic", run, {
    documentSelector: [{ language: "python" }],
    initializationOptions: vscode.workspace.getConfiguration("nkic"),
    synchronize: { configurationSection: "nkic" },
    middleware: { window: { showDocument } },
  });
  statuses.clear();
  showStatus();
  client.onNotification("$/nkic/status", (status) => {
    statuses.set(status.uri, status);
    showStatus();
  });
  try {
    await client.start();
  } catch (error) {
    const help = "Set nkic.command to the command nkic of an environment that has pygls.";
    vscode.window.showErrorMessage(`\`${run.command} lsp\` did not start: ${error.message ?? error}. ${help}`);
  }
}

// A client whose server did not start cannot be stopped.
const stop = () => (client?.isRunning() ? client.stop() : undefined);

// One after the other: a client that is still starting would keep its server.
let last = Promise.resolve();
const restart = () => (last = last.then(stop).catch(() => undefined).then(start));

async function saved() {
  const document = vscode.window.activeTextEditor?.document;
  return document && (await document.save()) !== false ? document.fileName : undefined;
}

async function compile() {
  const path = await saved();
  if (!path) return;
  const run = new vscode.ProcessExecution(setting("command"), [path]);
  const kind = { type: "process" };
  await vscode.tasks.executeTask(
    new vscode.Task(kind, vscode.TaskScope.Workspace, "compile", "nkic", run),
  );
}

// Has the server carry out one of its own commands.
async function ask(command) {
  if (!(await saved())) return;
  if (!client.isRunning()) return vscode.window.showErrorMessage("nkic's server is not running.");
  const uri = client.code2ProtocolConverter.asUri(vscode.window.activeTextEditor.document.uri);
  await vscode.commands.executeCommand(command, uri);
}

async function show(form) {
  const path = await saved();
  if (!path) return;
  const args = [path, "--emit", `${form}=-`, "--color", "never"];
  execFile(setting("command"), args, { maxBuffer: 1 << 28 }, async (error, stdout, stderr) => {
    // A message's first line is complete; the file's diagnostics have the rest.
    if (error) return vscode.window.showErrorMessage(stderr.split("\n", 1)[0] || error.message);
    const document = await vscode.workspace.openTextDocument({ content: stdout });
    return vscode.window.showTextDocument(document, vscode.ViewColumn.Beside, true);
  });
}

async function activate(context) {
  const commands = {
    "nkic.restart": restart,
    "nkic.compile": compile,
    "nkic.runKernel": () => ask("nkic.run"),
    "nkic.openReport": () => ask("nkic.report"),
    "nkic.schedule": () => show("sched"),
    "nkic.assembly": () => show("asm"),
  };
  for (const [name, act] of Object.entries(commands))
    context.subscriptions.push(vscode.commands.registerCommand(name, act));
  item = vscode.window.createStatusBarItem(vscode.StatusBarAlignment.Right);
  item.command = "nkic.runKernel";
  context.subscriptions.push(item, vscode.window.onDidChangeActiveTextEditor(showStatus));
  await restart();
}

module.exports = { activate, deactivate: () => last.then(stop) };
