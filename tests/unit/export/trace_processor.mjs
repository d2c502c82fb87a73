// Runs Perfetto's trace processor as its page does, outside of a browser.
// node trace_processor.mjs FOLDER_OF_THE_PAGE FILE_OF_REQUESTS FILE_OF_REPLIES
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

const [page, requests, replies] = process.argv.slice(2);
const exit = process.exit;
const read = (name) => fs.readFileSync(path.join(page, path.basename(String(name))));

// what the page's worker finds around it
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = Object;
globalThis.location = {href: `file://${page}/engine_bundle.js`};
globalThis.process = undefined;
globalThis.XMLHttpRequest = class {
  open(method, name) { this.name = name; }
  send() { this.response = new Uint8Array(read(this.name)).buffer; this.status = 200; }
};
console.warn = () => {};

vm.runInThisContext(read("engine_bundle.js").toString());
const out = fs.openSync(replies, "w");
const port = {postMessage: (reply) => fs.writeSync(out, reply)};
globalThis.onmessage({data: port});
await new Promise((resolve) => setTimeout(resolve)); // the page's own promises come first
port.onmessage({data: new Uint8Array(fs.readFileSync(requests))});
exit(0);
