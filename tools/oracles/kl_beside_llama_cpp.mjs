// Rounding beside llama.cpp's: KL divergence of each engine's next-token distributions on a quantised GGUF from float32 ones, on the
// same tokens of the same windows. Fails (1) where Muster's mean or median is worse than llama.cpp's by more than chance explains.
//
//   node kl_beside_llama_cpp.mjs MUSTER TEXT MODEL.gguf ... [--reference F32.gguf] [--bytes 6000] [--window 256] [--stride 128]
//        [--threads 2] [--package FOLDER] [--python python3]
//
// FOLDER holds node_modules with node-llama-cpp 3.21.1 (npm i -E node-llama-cpp@3.21.1 --ignore-scripts). With no --reference each
// model is compared with its own weights as float32 (float32_gguf.py; the Python needs `gguf`), so that only the engines' rounding of
// activations shows; with one, with that model, such as the unquantised weights. Exits 77 where a package is missing.
import {createRequire} from "node:module";
import {execFileSync, spawnSync} from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import {fileURLToPath, pathToFileURL} from "node:url";
import {parseArgs} from "node:util";

const SKIPPED = 77;
const {values: options, positionals} = parseArgs({
  allowPositionals: true,
  options: {
    reference: {type: "string"},
    bytes: {type: "string", default: "6000"},
    window: {type: "string", default: "256"},
    stride: {type: "string", default: "128"},
    threads: {type: "string", default: "2"},
    package: {type: "string", default: "."},
    python: {type: "string", default: "python3"},
  },
});
const [muster, text, ...models] = positionals;
if (models.length === 0) {
  console.error("usage: kl_beside_llama_cpp.mjs MUSTER TEXT MODEL.gguf ... [--reference F32.gguf] [--package FOLDER] ...");
  process.exit(2);
}

function skip(why) {
  console.error(`skipped: ${why}`);
  process.exit(SKIPPED);
}

async function importLlama() {
  try {
    const entry = createRequire(path.resolve(options.package) + "/").resolve("node-llama-cpp");
    return (await import(pathToFileURL(entry))).getLlama;
  } catch (error) {
    if (error.code !== "MODULE_NOT_FOUND") throw error;
    return skip(`no node-llama-cpp in ${path.resolve(options.package)}`);
  }
}

const getLlama = await importLlama();
if (!options.reference && spawnSync(options.python, ["-c", "import gguf"]).status !== 0) skip(`${options.python} has no gguf`);

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kl-"));
process.on("exit", () => fs.rmSync(folder, {recursive: true}));

// The first --bytes of the text, cut between lines.
const sample = path.join(folder, "text.txt");
const whole = fs.readFileSync(text).subarray(0, +options.bytes).toString();
fs.writeFileSync(sample, whole.slice(0, whole.lastIndexOf("\n") + 1));

const runMuster = (...args) => execFileSync(muster, args, {encoding: "utf8", maxBuffer: 1 << 28});

function measureMuster(model, reference) {
  const flags = ["--window", options.window, "--stride", options.stride, "-t", options.threads, "--kv", "f32"];
  const result = JSON.parse(runMuster("eval", model, "-f", sample, "--reference", reference, "--json", "-q", ...flags));
  const {mean, median, p95, max} = result.reference.divergence_nats;
  return {mean, median, p95, max, sameBest: result.reference.same_best_token, count: result.scored_tokens};
}

// The windows of `muster eval`: [begin, end) are run, the tokens from firstScored on are scored by the logits before them.
function windows(numTokens) {
  const cut = [];
  let scoredUntil = 1;
  for (let begin = 0; scoredUntil < numTokens; begin += +options.stride) {
    const end = Math.min(begin + +options.window, numTokens);
    cut.push({begin, firstScored: scoredUntil, end});
    scoredUntil = end;
  }
  return cut;
}

// llama.cpp's probabilities, renormalised in double: it sums them in float32.
function toLogProbabilities(found) {
  const logs = new Float64Array(found.size);  // all tokens are in it
  let sum = 0;
  for (const [id, probability] of found) {
    logs[id] = probability;
    sum += probability;
  }
  // Below float32's range nothing is known but that it is tiny; it weighs nothing in the sum either way.
  const least = 1e-45;
  return logs.map((probability) => Math.log(Math.max(probability, least) / sum));
}

// One row of ln probabilities for each scored token, in order.
async function logProbabilities(llama, modelPath, ids) {
  const model = await llama.loadModel({modelPath});
  const context = await model.createContext({
    contextSize: +options.window, batchSize: +options.window, threads: +options.threads, flashAttention: false,
    experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32"});
  const sequence = context.getSequence();
  const generateNext = {probabilities: true, options: {temperature: 1, topK: 0, topP: 1, minP: 0}};
  const rows = [];
  for (const {begin, firstScored, end} of windows(ids.length)) {
    await sequence.clearHistory();
    const input = ids.slice(begin, end - 1).map((id, i) => begin + i + 1 < firstScored ? id : [id, {generateNext}]);
    for (const output of await sequence.controlledEvaluate(input)) {
      if (output) rows.push(toLogProbabilities(output.next.probabilities));
    }
  }
  await context.dispose();
  await model.dispose();
  return rows;
}

function divergence(p, q) {
  let sum = 0;
  for (let i = 0; i < p.length; ++i) sum += Math.exp(p[i]) * (p[i] - q[i]);
  return Math.max(0, sum);
}

const largest = (row) => row.reduce((best, x, i) => x > row[best] ? i : best, 0);

async function measureLlama(llama, model, reference, ids) {
  const q = await logProbabilities(llama, model, ids);
  const p = await logProbabilities(llama, reference, ids);
  const each = p.map((row, i) => divergence(row, q[i]));
  const sorted = each.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.ceil(share * sorted.length) - 1];
  const mean = each.reduce((a, b) => a + b) / each.length;
  const variance = each.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (each.length - 1);
  // Two samples of independent roundings differ by chance: by sqrt(2) standard errors of one, and by twice that in one case of
  // forty. A mean's is sigma / sqrt(n), and few tokens with another expert decide it; a median's rank errs by sqrt(n) / 2.
  const chance = 2 * Math.SQRT2 / Math.sqrt(each.length);
  return {
    mean, median: at(0.5), p95: at(0.95), max: at(1), count: each.length,
    allowedMean: mean + chance * Math.sqrt(variance), allowedMedian: at(0.5 + chance / 2),
    sameBest: p.filter((row, i) => largest(row) === largest(q[i])).length / p.length};
}

function print(model, engine, found) {
  const nats = ["mean", "median", "p95", "max"].map((name) => `${name} ${found[name].toExponential(2)}`).join("  ");
  console.log(`${path.basename(model)}  ${engine.padEnd(9)}  ${nats}  same likeliest ${(100 * found.sameBest).toFixed(2)} %`);
}

const llama = await getLlama({gpu: false, build: "never", maxThreads: +options.threads, logLevel: "error"});
let worse = false;
for (const model of models) {
  const reference = options.reference ?? path.join(folder, "float32.gguf");
  if (!options.reference) {
    const script = fileURLToPath(new URL("float32_gguf.py", import.meta.url));
    execFileSync(options.python, [script, model, reference], {stdio: ["ignore", "ignore", "inherit"]});
  }
  const ids = runMuster("tokenize", model, "--ids", "-f", sample).trim().split(" ").map(Number);
  const ours = measureMuster(model, reference);
  const theirs = await measureLlama(llama, model, reference, ids);
  if (ours.count !== theirs.count) throw new Error(`${ours.count} tokens scored by Muster, ${theirs.count} by llama.cpp`);
  print(model, "Muster", ours);
  print(model, "llama.cpp", theirs);
  const allowed = `mean ${theirs.allowedMean.toExponential(2)}, median ${theirs.allowedMedian.toExponential(2)}`;
  console.log(`${path.basename(model)}  ${ours.count} tokens; allowed: ${allowed}`);
  worse ||= ours.mean > theirs.allowedMean || ours.median > theirs.allowedMedian;
}
process.exit(worse ? 1 : 0);
