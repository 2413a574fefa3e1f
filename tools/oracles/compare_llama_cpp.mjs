// What llama.cpp computes for a GGUF and a prompt given as token ids: greedy tokens and their probabilities, as JSON on stdout.
//
//   npm i -E node-llama-cpp@3.21.1 --ignore-scripts        (in the folder that you run this from; prebuilt for CPU)
//   node compare_llama_cpp.mjs MODEL.gguf 5,17,99 [--tokens 64] [--threads 1] [--top 16] > out.json
//   node compare_llama_cpp.mjs MODEL.gguf --golden golden.json     runs every prompt of a golden.json and compares with it
//
// The model must have a vocabulary (with_vocabulary.py adds one). Probabilities are softmax at temperature 1 over all tokens.
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";
import fs from "node:fs";
import {parseArgs} from "node:util";

const require = createRequire(process.cwd() + "/");
const {getLlama} = await import(pathToFileURL(require.resolve("node-llama-cpp")));

const {values: options, positionals} = parseArgs({
  allowPositionals: true,
  options: {
    tokens: {type: "string", default: "64"},
    threads: {type: "string", default: "1"},
    top: {type: "string", default: "16"},
    golden: {type: "string"},
  },
});
const [path, list] = positionals;
if (!path || (!list && !options.golden)) {
  console.error("usage: compare_llama_cpp.mjs MODEL.gguf IDS|--golden FILE [--tokens N] [--threads N] [--top N]");
  process.exit(2);
}

async function open() {
  const llama = await getLlama({gpu: false, build: "never", maxThreads: +options.threads, logLevel: "error"});
  return llama.loadModel({modelPath: path});
}

// Greedy by hand: the sampler reports probabilities at its own temperature, and at 1 it would draw. So each step asks for the
// distribution after the last token, takes the largest (lowest id on ties) and feeds that back.
async function generate(model, prompt, numTokens) {
  const context = await model.createContext({
    contextSize: Math.max(256, prompt.length + numTokens + 8), threads: +options.threads, batchSize: 512,
    flashAttention: false,
    experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32"});
  const sequence = context.getSequence();
  const steps = [];
  let pending = prompt;
  while (steps.length < numTokens) {
    const input = pending.map((id, i) =>
      i + 1 < pending.length ? id : [id, {generateNext: {probabilities: true, options: {temperature: 1, topK: 0, topP: 1, minP: 0}}}]);
    const output = await sequence.controlledEvaluate(input);
    const ranked = [...output.at(-1).next.probabilities].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    steps.push({token: ranked[0][0], ranked});
    pending = [ranked[0][0]];
  }
  await context.dispose();
  return steps;
}

function report(prompt, steps) {
  return {
    prompt,
    greedy: steps.map((step) => step.token),
    top: steps.map((step) => step.ranked.slice(0, +options.top)),  // [id, probability], descending
  };
}

function softmax(logits) {
  const largest = Math.max(...logits);
  const powers = logits.map((x) => Math.exp(x - largest));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((x) => x / sum);
}

// The first step's distribution against the golden's last position, and the greedy tokens against its own.
function compare(prompt, steps) {
  const expected = softmax(prompt.logits.at(-1).values);
  const found = new Map(steps[0].ranked);
  const difference = Math.max(...expected.map((p, id) => Math.abs(p - (found.get(id) ?? 0))));
  const greedy = steps.map((step) => step.token);
  return {
    prompt_tokens: prompt.tokens.length,
    max_probability_difference: difference,
    same_greedy: greedy.every((id, i) => id === prompt.greedy[i]),
    greedy,
  };
}

const model = await open();
if (options.golden) {
  const golden = JSON.parse(fs.readFileSync(options.golden, "utf8"));
  for (const prompt of golden.prompts) {
    const steps = await generate(model, prompt.tokens, prompt.greedy.length);
    console.log(JSON.stringify(compare(prompt, steps)));
  }
} else {
  const prompt = list.split(",").map(Number);
  console.log(JSON.stringify(report(prompt, await generate(model, prompt, +options.tokens))));
}
process.exit(0);
