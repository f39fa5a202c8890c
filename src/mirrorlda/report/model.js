'use strict';

// The model of the page: text to words, MAP inference by mirror descent, prediction, and what words and topics do to it. It computes in
// double what the core computes in double (forward.hpp and reverse.hpp of core/method/kernels), with the same names; tests/test_page_model.py
// compares them.
//
//   mirrorlda.decode(data) -> model, with
//     words, phi, themes (both n_words x n_topics, row by row), nTopics, outputs,
//     analyse(text, output = null) -> {tokens: [{begin, end, effect, topic}], nWords, nKnown, theta, scores, value, empty,
//       average, output, values, probabilities, words: [{word, count, effect, topic}], topics: [{topic, share, effect}],
//       overlap, leaveOut},
//     relevantWords(topic, relevance, n) -> [{word, probability, lift, relevance}].
//
// phi infers the proportions theta, and does nothing else. What people read of topics, and which words are a topic's, comes from
// the themes; a model that has none of its own reads phi.
//
// nWords counts the words of the text that are no stop words, nKnown those of them that the model has. `value` is what is
// explained: the predicted number of `output`, or log odds; `empty` is that of a text without words, `average` that of the average
// document. The effect of a token is its word's effect over the word's occurrences, and half of that of a bigram that it is part
// of, so that all add up to the words' effects. `topic` is the topic that a word most probably comes from, in this text.
//
// The effect of a topic is the value less that of the text with each count reduced by the topic's part of it. Each takes an
// inference, so they are not there at once: `leaveOut` has a function for each topic, which fills in its effect. After the last of
// them, `overlap` is what is missing from the sum of the effects to value - empty.
//
// A model without outputs, or with a response that the page does not know, has null for value, empty, average, output, values,
// probabilities, overlap and effects, and nothing to leave out. `lift` is p(word | topic) / p(word).
const mirrorlda = (() => {
  const FLOOR = 1e-12, LOG_FLOOR = Math.log(FLOOR);
  const ETA = 0.5, MAX_STEPS = 40, SLACK = 1e-9;
  // Up to NEAR, t - ln(1 + t) is a series; where t falls below DROP, r + r_change loses digits.
  const NEAR = 0.41, DROP = -0.75;
  const LARGEST_MEAN = 1e13;
  const TINY = 2.2250738585072014e-308;
  // So many words are looked at for each one that is shown: many overlap with one that is shown already.
  const CANDIDATES = 8;

  // Text to words

  const WORD = /[\p{L}\p{M}\p{N}]+/gu;
  // A character and those that normalisation may join with it: marks, Hangul vowels and finals, Kirat Rai vowels.
  const PIECE = /[^][\p{M}\u1161-\u1175\u11a8-\u11c2\u{16d63}\u{16d67}]*/gu;
  // Nothing before an ASCII character depends on it.
  const COARSE_PIECE = /[^][\u0080-\u{10ffff}]*/gu;

  // The text in normalisation form C and, if wanted, lower case, with the places in the text that each of its units came from.
  function prepared(text, lowercase) {
    const normal = text.normalize('NFC');
    const letters = lowercase ? normal.toLowerCase() : normal;
    if (normal === text && letters.length === text.length) return {letters, begins: null, ends: null};
    let pieces = text.match(PIECE) ?? [];
    if (pieces.map((piece) => piece.normalize('NFC')).join('') !== normal) pieces = text.match(COARSE_PIECE);
    const begins = new Int32Array(letters.length), ends = new Int32Array(letters.length);
    let place = 0, filled = 0;
    for (const piece of pieces) {
      const normalPiece = piece.normalize('NFC'), isSame = normalPiece === piece;
      let offset = 0;
      for (const character of normalPiece) {
        // The length does not depend on the surroundings; the final sigma does, and is in `letters`.
        const size = lowercase ? character.toLowerCase().length : character.length;
        begins.fill(isSame ? place + offset : place, filled, filled + size);
        offset += character.length;
        ends.fill(isSame ? place + offset : place + piece.length, filled, filled + size);
        filled += size;
      }
      place += piece.length;
    }
    return {letters, begins, ends};
  }

  // Words of a text with their places in it.
  function wordsOf(text, lowercase) {
    const {letters, begins, ends} = prepared(text, lowercase);
    return Array.from(letters.matchAll(WORD), (match) => {
      const begin = match.index, end = begin + match[0].length;
      return {word: match[0], begin: begins ? begins[begin] : begin, end: ends ? ends[end - 1] : end};
    });
  }

  // Words that count, in order: single ones, and with bigrams pairs of neighbours. A word that the model does not have is number -1.
  function tokenised(model, text) {
    const {lowercase, bigrams} = model.definition;
    const singles = [], pairs = [];
    for (const {word, begin, end} of wordsOf(text, lowercase)) {
      if (model.stopWords.has(word)) continue;
      if (bigrams && singles.length) pairs.push(model.numbers.get(singles.at(-1).word + ' ' + word) ?? -1);
      singles.push({word, begin, end, number: model.numbers.get(word) ?? -1});
    }
    return {singles, pairs};
  }

  function counted({singles, pairs}) {
    const counts = new Map();
    for (const number of [...singles.map((single) => single.number), ...pairs])
      if (number >= 0) counts.set(number, (counts.get(number) ?? 0) + 1);
    return counts;
  }

  // Inference

  // t - ln(1 + t) without cancellation: with s = t / (2 + t), ln(1 + t) = 2 atanh(s) and t - 2 s = t s.
  function log1pGap(t) {
    if (!(Math.abs(t) < NEAR)) return t - Math.log(Math.max(1 + t, 1e-30));
    const s = t / (t + 2), square = s * s;
    let tail = 0;
    for (let power = 25; power > 1; power -= 2) tail = (tail + 1 / power) * square;
    return t * s - 2 * s * tail;
  }

  function product(P, K, vector, out) {
    for (let i = 0, at = 0; i < out.length; ++i) {
      let sum = 0;
      for (let k = 0; k < K; ++k, ++at) sum += P[at] * vector[k];
      out[i] = sum;
    }
  }

  function transposedProduct(P, K, weights, out) {
    out.fill(0);
    for (let i = 0, at = 0; i < weights.length; ++i) {
      const weight = weights[i];
      for (let k = 0; k < K; ++k, ++at) out[k] += P[at] * weight;
    }
  }

  // r = P theta and 1 / r, and the objective.
  function setR(P, x, alphaMinus1, state) {
    product(P, alphaMinus1.length, state.theta, state.r);
    let objective = 0;
    for (let i = 0; i < x.length; ++i) {
      state.rInverse[i] = 1 / state.r[i];
      objective -= x[i] * Math.log(state.r[i]);
    }
    for (let k = 0; k < alphaMinus1.length; ++k) objective -= alphaMinus1[k] * state.logTheta[k];
    state.objective = objective;
  }

  // The trial of a step: raw = theta exp(T (g - g_max)) / C, then the floor, and r_change = P change.
  function tried(P, g, gMax, state, step) {
    const K = g.length, raw = new Float64Array(K), theta = new Float64Array(K), logTheta = new Float64Array(K);
    const change = new Float64Array(K), rChange = new Float64Array(state.r.length);
    let normaliser = 0, distance = 0;
    for (let k = 0; k < K; ++k) normaliser += raw[k] = state.theta[k] * Math.exp((g[k] - gMax) * step);
    const logNormaliser = Math.log(normaliser);
    for (let k = 0; k < K; ++k) {
      raw[k] /= normaliser;
      theta[k] = Math.max(raw[k], FLOOR);
      logTheta[k] = Math.max(state.logTheta[k] + ((g[k] - gMax) * step - logNormaliser), LOG_FLOOR);
      change[k] = theta[k] - state.theta[k];
      distance += Math.abs(change[k]);
    }
    product(P, K, change, rChange);
    return {step, raw, theta, logTheta, change, rChange, distance, overshoot: 0, decrease: 0, gain: 0, drops: false, tells: true};
  }

  function klDistance(state, trial) {
    let total = 0;
    for (let k = 0; k < trial.theta.length; ++k) {
      const t = -trial.change[k] / trial.theta[k];
      const gap = Math.abs(t) < NEAR ? log1pGap(t) : t + trial.logTheta[k] - state.logTheta[k];
      total += trial.theta[k] * gap;
    }
    return total;
  }

  // Whether the trial is accepted: its Bregman divergence of f is at most Psi / T. Most are decided by
  // 1 <= (t - ln(1 + t)) / (t^2 / (2 + 4 t / 3)) <= 4 / 3, which holds for t >= DROP.
  function accepted(rule, x, alphaMinus1, state, trial) {
    let lowest = 0, linear = 0, wordGap = 0, priorGap = 0, priorDecrease = 0;
    for (let i = 0; i < x.length; ++i) {
      const t = trial.rChange[i] * state.rInverse[i];
      lowest = Math.min(lowest, t);
      linear += x[i] * t;
      wordGap += x[i] * t * (t / (t * (4 / 3) + 2));
    }
    for (let k = 0; k < alphaMinus1.length; ++k) {
      const logs = trial.logTheta[k] - state.logTheta[k];
      priorDecrease += alphaMinus1[k] * logs;
      priorGap += alphaMinus1[k] * (trial.change[k] / state.theta[k] - logs);
    }
    trial.drops = !(lowest > DROP);
    trial.gain = linear - wordGap + priorDecrease;
    if (rule === 'l1' || rule === 'kl') {
      const distance = rule === 'l1' ? 0.5 * trial.distance * trial.distance : klDistance(state, trial);
      const slack = SLACK * Math.abs(state.objective), allowed = distance / trial.step + slack;
      trial.tells = distance / trial.step > slack;
      trial.overshoot = (wordGap + priorGap) / allowed;
      if (!(wordGap <= allowed - priorGap)) return false;
      if (trial.drops || !(wordGap * (4 / 3) <= allowed - priorGap)) {
        wordGap = 0;
        for (let i = 0; i < x.length; ++i) wordGap += x[i] * log1pGap(trial.rChange[i] * state.rInverse[i]);
        if (!(wordGap <= allowed - priorGap)) return false;
      }
    }
    trial.decrease = linear - wordGap + priorDecrease;
    return true;
  }

  // The first accepted trial of step ETA^i, i < MAX_STEPS, past those that would fail as well; without one, the last, which is rejected.
  function searched(rule, P, x, alphaMinus1, g, gMax, state, step) {
    for (let nSteps = 1;;) {
      const trial = tried(P, g, gMax, state, step);
      if (accepted(rule, x, alphaMinus1, state, trial)) return {trial, moves: true};
      if (nSteps === MAX_STEPS) return {trial, moves: false};
      let overshoot = trial.overshoot;
      do {
        step *= ETA;
        overshoot *= ETA;
        ++nSteps;
      } while (overshoot > 1 && nSteps < MAX_STEPS);
    }
  }

  function advance(P, x, alphaMinus1, state, trial) {
    state.theta = trial.theta;
    state.logTheta = trial.logTheta;
    state.rInverse = new Float64Array(x.length);
    if (trial.drops) return setR(P, x, alphaMinus1, state);
    for (let i = 0; i < x.length; ++i) {
      state.r[i] += trial.rChange[i];
      state.rInverse[i] = 1 / state.r[i];
    }
    state.objective -= trial.decrease;
  }

  // theta, and what each layer leaves for `reverse`. P: rows of phi of the document's words; x: their counts.
  function forward({nLayers, rule, tol, alphaMinus1}, P, x) {
    const K = alphaMinus1.length, g = new Float64Array(K), weights = new Float64Array(x.length);
    const state = {
      theta: new Float64Array(K).fill(1 / K), logTheta: new Float64Array(K).fill(-Math.log(K)),
      r: new Float64Array(x.length), rInverse: new Float64Array(x.length), objective: 0,
    };
    setR(P, x, alphaMinus1, state);
    let total = 0;
    for (const count of x) total += count;
    for (const value of alphaMinus1) total += Math.abs(value);
    let first = (total > 0 ? 1 / total : 1) / ETA;
    const layers = [];
    let gained = 0, gainBefore = 0;
    for (let layer = 0; layer < nLayers; ++layer) {
      for (let i = 0; i < x.length; ++i) weights[i] = x[i] * state.rInverse[i];
      transposedProduct(P, K, weights, g);
      let gMax = -Infinity;
      for (let k = 0; k < K; ++k) gMax = Math.max(gMax, g[k] += alphaMinus1[k] / state.theta[k]);
      let trial, moves;
      if (typeof rule === 'number') {
        if (rule === 0) continue;
        trial = tried(P, g, gMax, state, rule);
        moves = accepted(rule, x, alphaMinus1, state, trial);
      } else {
        ({trial, moves} = searched(rule, P, x, alphaMinus1, g, gMax, state, first));
        // Where the change was so small that any step would have passed, nothing speaks for a larger one.
        first = !moves || trial.tells ? trial.step / ETA : trial.step;
      }
      if (moves) {
        layers.push({step: trial.step, theta: state.theta, rInverse: state.rInverse, raw: trial.raw});
        advance(P, x, alphaMinus1, state, trial);
      }
      const gain = moves ? trial.gain : 0;
      gained += gain;
      if (typeof rule !== 'number' && tol > 0 && !(gainBefore + gain > tol * gained)) break;
      gainBefore = gain;
    }
    return {theta: state.theta, layers};
  }

  // The gradient of the counts, given h, that of theta; step sizes are constants, and a component on the floor has derivative zero.
  function reverse({alphaMinus1}, P, x, layers, h) {
    const K = alphaMinus1.length, gradient = new Float64Array(x.length), left = new Float64Array(x.length);
    const u = new Float64Array(x.length), v = new Float64Array(K);
    h = Float64Array.from(h);
    for (const {step, theta, rInverse, raw} of layers.slice().reverse()) {
      let mean = 0;
      for (let k = 0; k < K; ++k) if (raw[k] > FLOOR) mean += raw[k] * h[k];
      for (let k = 0; k < K; ++k) v[k] = raw[k] * ((raw[k] > FLOOR ? h[k] : 0) - mean);
      product(P, K, v, u);
      for (let i = 0; i < x.length; ++i) {
        const relative = u[i] * rInverse[i];
        gradient[i] += step * relative;
        left[i] = -x[i] * rInverse[i] * step * relative;
      }
      transposedProduct(P, K, left, h);
      for (let k = 0; k < K; ++k) h[k] += v[k] / theta[k] * (1 - step * alphaMinus1[k] / theta[k]);
    }
    return gradient;
  }

  // Responses: what the scores U theta predict, and the explained value with its gradient with respect to the scores

  // ln(1 + exp(x))
  function softplus(x) {
    return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
  }

  function sigmoid(x) {
    return Math.exp(-softplus(-x));
  }

  function logSumExp(values) {
    const top = values[largest(values)];
    return top + Math.log(values.reduce((sum, value) => sum + Math.exp(value - top), 0));
  }

  function largest(values) {
    return values.reduce((best, value, at) => (value > values[best] ? at : best), 0);
  }

  // The probability that a level is reached, from the first one on.
  function reached(gamma, scores) {
    const probabilities = [1];
    for (const score of scores) probabilities.push(probabilities.at(-1) * sigmoid(gamma * score));
    return probabilities;
  }

  const identity = {
    predicted: ({mean, scale}, scores) => ({values: scores.map((score, at) => score * scale[at] + mean[at])}),
    defaultOutput: () => 0,
    explained({mean, scale}, scores, output) {
      const slopes = scores.map((_, at) => (at === output ? scale[at] : 0));
      return {value: scores[output] * scale[output] + mean[output], slopes};
    },
  };

  const bounded = (score) => Math.exp(Math.min(score, Math.log(LARGEST_MEAN)));
  const poisson = {
    predicted: ({mean, scale}, scores) => ({values: scores.map((score, at) => bounded(score) * scale[at] + mean[at])}),
    defaultOutput: () => 0,
    explained({mean, scale}, scores, output) {
      const rises = scores[output] < Math.log(LARGEST_MEAN), value = bounded(scores[output]) * scale[output];
      return {value: value + mean[output], slopes: scores.map((_, at) => (at === output && rises ? value : 0))};
    },
  };

  const ordinal = {
    predicted(response, scores) {
      const reach = reached(response.gamma, scores);
      // 1 - sigmoid, without cancellation.
      const probabilities = reach.map((p, at) => (at < scores.length ? p * sigmoid(-response.gamma * scores[at]) : p));
      return {values: [this.explained(response, scores).value], probabilities};
    },
    defaultOutput: () => 0,
    explained({gamma, levels}, scores) {
      const reach = reached(gamma, scores), slopes = new Array(scores.length);
      // levels[0] + sum over j of (levels[j] - levels[j - 1]) P(y >= j): score i is a factor of all terms beyond it.
      let beyond = 0;
      for (let at = scores.length - 1; at >= 0; --at) {
        beyond += (levels[at + 1] - levels[at]) * reach[at + 1];
        slopes[at] = beyond * gamma * sigmoid(-gamma * scores[at]);
      }
      return {value: levels[0] + beyond, slopes};
    },
  };

  const softmax = {
    predicted({gamma}, scores) {
      const scaled = scores.map((score) => gamma * score), total = logSumExp(scaled);
      return {probabilities: scaled.map((score) => Math.exp(score - total))};
    },
    // Of two classes the second.
    defaultOutput: (scores) => (scores.length === 2 ? 1 : largest(scores)),
    // Log odds against all other classes.
    explained({gamma}, scores, output) {
      const scaled = scores.map((score) => gamma * score);
      const others = logSumExp(scaled.filter((_, at) => at !== output));
      const slopes = scaled.map((score, at) => (at === output ? gamma : -gamma * Math.exp(score - others)));
      return {value: scaled[output] - others, slopes};
    },
  };

  const sigmoids = {
    predicted: ({gamma}, scores) => ({probabilities: scores.map((score) => sigmoid(gamma * score))}),
    defaultOutput: (scores) => largest(scores),
    explained: ({gamma}, scores, output) => ({
      value: gamma * scores[output],
      slopes: scores.map((_, at) => (at === output ? gamma : 0)),
    }),
  };

  const RESPONSES = {identity, poisson, ordinal, softmax, sigmoid: sigmoids};

  // Explanations

  const NOTHING = {value: null, empty: null, average: null, output: null, values: null, probabilities: null};

  function scoresOf(U, theta) {
    return U.map((row) => row.reduce((sum, weight, k) => sum + weight * theta[k], 0));
  }

  function valueAt(model, theta, output) {
    return RESPONSES[model.response.kind].explained(model.response, scoresOf(model.U, theta), output).value;
  }

  // The prediction and the explained value, and h, the gradient of that with respect to theta.
  function explained(model, theta, output) {
    const scores = scoresOf(model.U, theta), kind = RESPONSES[model.response.kind];
    if (!kind) return {...NOTHING, scores, h: null};
    const chosen = output ?? kind.defaultOutput(scores);
    if (!(Number.isInteger(chosen) && chosen >= 0 && chosen < model.outputs.length))
      throw new RangeError(`output must be a number from 0 to ${model.outputs.length - 1}, got ${chosen}`);
    const {value, slopes} = kind.explained(model.response, scores, chosen);
    return {
      ...NOTHING, ...kind.predicted(model.response, scores), scores, value, output: chosen,
      empty: valueAt(model, model.emptyTheta, chosen), average: valueAt(model, model.shares, chosen),
      h: Float64Array.from(theta, (_, k) => slopes.reduce((sum, slope, at) => sum + slope * model.U[at][k], 0)),
    };
  }

  // Which part of each word is each topic's: themes theta over its sum. T: rows of the themes of the document's words.
  function partsOf(T, theta) {
    const K = theta.length, parts = new Float64Array(T.length);
    for (let at = 0; at < T.length; at += K) {
      let sum = 0;
      for (let k = 0; k < K; ++k) sum += parts[at + k] = T[at + k] * theta[k];
      for (let k = 0; k < K; ++k) parts[at + k] /= Math.max(sum, TINY);
    }
    return parts;
  }

  function withoutTopic(x, parts, K, topic) {
    return x.map((count, i) => Math.max(count * (1 - parts[i * K + topic]), 0));
  }

  function rowsOf(matrix, K, numbers) {
    const rows = new Float64Array(numbers.length * K);
    numbers.forEach((number, i) => rows.set(matrix.subarray(number * K, (number + 1) * K), i * K));
    return rows;
  }

  function tokenEffects({singles, pairs}, effects) {
    const tokens = singles.map(({begin, end, number}) => ({begin, end, of: effects.get(number), effect: effects.get(number)?.single ?? 0}));
    pairs.forEach((number, at) => {
      const pair = effects.get(number);
      if (!pair) return;
      for (const token of [tokens[at], tokens[at + 1]]) {
        token.of ??= pair;
        token.effect += pair.single / 2;
      }
    });
    return tokens.filter((token) => token.of)
      .map(({begin, end, of, effect}) => ({begin, end, effect: of.effect === null ? null : effect, topic: of.topic}));
  }

  function analyse(model, text, output) {
    if (!model.definition) throw new Error('this model cannot read text: how its words were counted is not known');
    const K = model.nTopics, tokens = tokenised(model, text), counts = counted(tokens);
    const numbers = Int32Array.from(counts.keys()).sort();
    const P = rowsOf(model.phi, K, numbers), x = new Float64Array(numbers.length);
    numbers.forEach((number, i) => {
      const count = counts.get(number);
      x[i] = (model.isLogarithmic ? Math.log2(1 + count) : count) * (model.wordWeights ? model.wordWeights[number] : 1);
    });
    const {theta, layers} = forward(model, P, x);
    const {h, ...prediction} = explained(model, theta, output);
    const gradient = h && reverse(model, P, x, layers, h);
    const parts = partsOf(rowsOf(model.themes, K, numbers), theta);
    const effects = new Map(), words = [];
    numbers.forEach((number, i) => {
      const count = counts.get(number), effect = gradient ? gradient[i] * x[i] : null;
      const topic = largest(parts.subarray(i * K, (i + 1) * K));
      effects.set(number, {effect, topic, single: effect / count});
      words.push({word: model.words[number], count, effect, topic});
    });
    words.sort((a, b) => (gradient ? Math.abs(b.effect) - Math.abs(a.effect) : b.count - a.count));
    const {value, empty} = prediction, topics = Array.from(theta, (share, topic) => ({topic, share, effect: null}));
    const analysis = {
      tokens: tokenEffects(tokens, effects), nWords: tokens.singles.length,
      nKnown: tokens.singles.filter((single) => single.number >= 0).length,
      theta: Array.from(theta), ...prediction, words, topics, overlap: h ? value - empty : null,
    };
    analysis.leaveOut = !h ? [] : topics.map((left) => () => {
      const without = forward(model, P, withoutTopic(x, parts, K, left.topic)).theta;
      left.effect = value - valueAt(model, without, prediction.output);
      analysis.overlap -= left.effect;
    });
    return analysis;
  }

  // The first n words, without those that overlap with an earlier one, as a phrase does with its words.
  function apart(model, words, n) {
    const found = [], seen = new Set();
    for (const each of words) {
      const parts = [each.word, ...each.word.split(' ').filter((part) => model.numbers.has(part))];
      if (found.length === n) break;
      if (parts.some((part) => seen.has(part))) continue;
      found.push(each);
      parts.forEach((part) => seen.add(part));
    }
    return found;
  }

  // p(w|t)^relevance ln(p(w|t) / p(w)), as in mirrorlda.topics.relevant_words; from a relevance of 0.5 to 1 the logarithm's power falls.
  function relevantWords(model, topic, relevance, nWords) {
    const n = CANDIDATES * nWords;
    const K = model.nTopics, power = Math.min(1, 2 - 2 * relevance), best = [];
    for (let word = 0; word < model.words.length; ++word) {
      const p = Math.max(model.themes[word * K + topic], TINY), lift = p / model.frequencies[word], log = Math.log(lift);
      const value = p ** relevance * (power === 0 ? 1 : log > 0 ? log ** power : log);
      if (best.length === n && !(value > best[n - 1].relevance)) continue;
      let at = best.length;
      while (at > 0 && best[at - 1].relevance < value) --at;
      best.splice(at, 0, {word: model.words[word], probability: p, lift, relevance: value});
      if (best.length > n) best.pop();
    }
    return apart(model, best, nWords);
  }

  // exp(low (1 - q / 65535)), q of 16 bits.
  function decoded(encoded, low) {
    const values = new Float64Array(65536), bytes = atob(encoded), numbers = new Float64Array(bytes.length / 2);
    for (let q = 0; q < 65536; ++q) values[q] = Math.max(Math.exp(low * (1 - q / 65535)), FLOOR);
    for (let i = 0; i < numbers.length; ++i) numbers[i] = values[bytes.charCodeAt(2 * i) | bytes.charCodeAt(2 * i + 1) << 8];
    return numbers;
  }

  // The largest entry of each word times exp(-deepest (q / 255)^2), q of 8 bits.
  function decodedThemes({largest, low, depth, deepest}, K) {
    const tops = decoded(largest, low), bytes = atob(depth), themes = new Float64Array(bytes.length);
    const parts = Float64Array.from({length: 256}, (_, q) => Math.exp(-deepest * (q / 255) ** 2));
    for (let i = 0; i < themes.length; ++i) themes[i] = Math.max(tops[Math.floor(i / K)] * parts[bytes.charCodeAt(i)], FLOOR);
    return themes;
  }

  function decode(data) {
    const {words, definition, n_topics: nTopics} = data.model;
    const phi = decoded(data.model.phi, data.model.phi_low);
    const themes = data.model.themes ? decodedThemes(data.model.themes, nTopics) : phi;
    const total = data.topics.shares.reduce((sum, share) => sum + share, 0);
    const shares = data.topics.shares.map((share) => share / total);
    const frequencies = new Float64Array(words.length);
    product(themes, nTopics, shares, frequencies);
    const model = {
      words, phi, themes, nTopics, shares, frequencies, definition, outputs: data.outputs,
      numbers: new Map(words.map((word, number) => [word, number])),
      // A stop word is itself read as text.
      stopWords: new Set((definition?.stop_words ?? []).flatMap((text) => wordsOf(text, definition.lowercase).map(({word}) => word))),
      nLayers: data.model.n_layers, rule: data.model.step_size, tol: data.model.tol,
      alphaMinus1: Float64Array.from(data.model.alpha, (alpha) => alpha - 1),
      wordWeights: data.model.word_weights, isLogarithmic: data.model.count_scale === 'log',
      U: data.model.U, response: data.model.response,
    };
    model.emptyTheta = forward(model, new Float64Array(0), new Float64Array(0)).theta;
    model.analyse = (text, output = null) => analyse(model, text, output);
    model.relevantWords = (topic, relevance, n) => relevantWords(model, topic, relevance, n);
    return model;
  }

  return {decode, wordsOf};
})();
