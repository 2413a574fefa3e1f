// Times llama.cpp on a GGUF through the npm package node-llama-cpp (prebuilt, CPU) and prints the figures as JSON.
//
//   node llama_cpp_node.mjs MODEL.gguf --package FOLDER [-p 512] [-n 64] [-d 0,4096] [-t 2] [-r 3] [--kv f16] [--batch 512]
//
// FOLDER holds node_modules with node-llama-cpp. The model must have a vocabulary (tools/oracles/with_vocabulary.py adds one).
// A prompt of fixed ids is evaluated up to its first sampled token; then N tokens are generated greedily, one by one. For each
// depth the context is filled once and cut back after each run.
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";
import fs from "node:fs";
import path from "node:path";
import {parseArgs} from "node:util";

const {values: options, positionals} = parseArgs({
  allowPositionals: true,
  options: {
    package: {type: "string", default: "."},
    prompt: {type: "string", short: "p", default: "512"},
    generate: {type: "string", short: "n", default: "64"},
    depth: {type: "string", short: "d", default: "0"},
    threads: {type: "string", short: "t", default: "1"},
    repetitions: {type: "string", short: "r", default: "3"},
    kv: {type: "string", default: "f16"},
    batch: {type: "string", default: "512"},
  },
});
if (positionals.length !== 1) {
  console.error("usage: llama_cpp_node.mjs MODEL.gguf [--package FOLDER] [-p N] [-n N] [-d N,..] [-t N] [-r N] [--kv TYPE]");
  process.exit(2);
}
const list = (text) => text.split(",").map(Number).filter((n, i, all) => all.indexOf(n) === i);
const prompts = list(options.prompt).filter((n) => n > 0);
const generated = list(options.generate).filter((n) => n > 0);
const depths = list(options.depth).sort((a, b) => a - b);
const kvTypes = {f32: "F32", f16: "F16", q8: "Q8_0"};

const require = createRequire(path.resolve(options.package) + "/");
const entry = require.resolve("node-llama-cpp");
const {getLlama} = await import(pathToFileURL(entry));

function version() {
  const folder = entry.slice(0, entry.lastIndexOf("node-llama-cpp") + "node-llama-cpp".length);
  return JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8")).version;
}

// The shared object with the kernels that llama.cpp chose for this processor.
function kernels() {
  const maps = fs.readFileSync("/proc/self/maps", "utf8");
  const names = new Set([...maps.matchAll(/libggml-cpu-([a-z0-9]+)\.so/g)].map((match) => match[1]));
  return [...names].join(" ") || "unknown";
}

// The id at each position: the same in every run.
const idAt = (position) => ((position * 7919 + 13) % 1000) + 100;
const ids = (begin, end) => Array.from({length: end - begin}, (_, i) => idAt(begin + i));

const largest = Math.max(...prompts, ...generated, 0);
const loadStart = performance.now();
const llama = await getLlama({gpu: false, build: "never", maxThreads: +options.threads, logLevel: "error"});
const model = await llama.loadModel({modelPath: positionals[0]});
const loadSeconds = (performance.now() - loadStart) / 1000;
const context = await model.createContext({
  contextSize: depths.at(-1) + largest + 16, threads: +options.threads, batchSize: +options.batch,
  experimentalKvCacheKeyType: kvTypes[options.kv], experimentalKvCacheValueType: kvTypes[options.kv]});
const sequence = context.getSequence();

async function rewind(depth) {
  if (sequence.nextTokenIndex > depth) {
    await sequence.eraseContextTokenRanges([{start: depth, end: sequence.nextTokenIndex}]);
  }
  const begin = sequence.nextTokenIndex;
  if (begin < depth) await sequence.evaluateWithoutGeneratingNewTokens(ids(begin, depth));
}

// Seconds from handing over `input` to its first token, and from there to the last of `count` more.
async function evaluate(input, count) {
  const start = performance.now();
  let first = 0;
  let seen = 0;
  for await (const _ of sequence.evaluate(input, {temperature: 0, yieldEogToken: true})) {
    if (seen === 0) first = performance.now();
    if (seen === count) break;
    ++seen;
  }
  if (seen !== count) throw new Error(`generation ended after ${seen} tokens of ${count}`);
  return {prefill: (first - start) / 1000, decode: (performance.now() - first) / 1000};
}

const tests = [];
for (const depth of depths) {
  const lines = [
    ...prompts.map((count) => ({kind: "prefill", num_tokens: count, depth, seconds: []})),
    ...generated.map((count) => ({kind: "decode", num_tokens: count, depth, seconds: []}))];
  for (let repetition = 0; repetition < +options.repetitions; ++repetition) {
    for (const line of lines) {
      await rewind(depth);
      if (line.kind === "prefill") {
        line.seconds.push((await evaluate(ids(depth, depth + line.num_tokens), 0)).prefill);
      } else {
        line.seconds.push((await evaluate(ids(depth, depth + 1), line.num_tokens)).decode);
      }
    }
  }
  tests.push(...lines);
}
fs.writeSync(1, JSON.stringify({
  version: `node-llama-cpp ${version()}, llama.cpp ${llama.llamaCppRelease?.release ?? "?"}, kernels: ${kernels()}`,
  load_seconds: loadSeconds, tests}) + "\n");
process.exit(0);
