'use strict';

// Try it: a text, its prediction, and what its words and topics do to it.

const MOST_TOPICS = 6;
const POINT = 'Point at a topic to see its words in the text.';
// Beside the strongest, what has so little of it is nothing to look at.
const FAINT = 0.02;

const outputName = (output) =>
  (task === 'regression' && outputs[output] === 'prediction' ? 'the prediction' : outputs[output]);
const unitOf = (output) => (task === 'regression' ? `on ${outputName(output)}` : `on the log odds of ${outputName(output)}`);
// Words of a text without a stance stay pale.
const faintest = (output) => {
  const row = Math.min(output, effects.length - 1);
  return FAINT * largestOf([effects, ...(ranges ?? [])].flatMap((rows) => rows[row] ?? []));
};

const probabilityRows = (probabilities, names, order, chosen) =>
  h('ul', { class: 'bars' }, ...order.slice(0, MOST_ROWS).map((i) =>
    h('li', {},
      h('span', { class: i === chosen ? 'named chosen' : 'named', title: names[i] }, names[i]),
      bar(probabilities[i], task === 'multilabel' ? 0.5 : null),
      h('span', { class: 'number' }, percent(probabilities[i])))),
  order.length > MOST_ROWS
    ? h('li', { class: 'share-row note' },
      `${order.length - MOST_ROWS} more, each at most ${percent(probabilities[order[MOST_ROWS]])}`)
    : null);

const predictedNumber = (value, i) => {
  const truths = evaluation?.curves.scatter?.[i]?.truth ?? [];
  const error = outputs.length === 1 ? evaluation?.measures.RMSE?.value : undefined;
  const name = outputs[i] === 'prediction' ? '' : outputs[i];
  return h('div', {},
    h('p', { class: outputs.length > 1 ? 'big several' : 'big', id: i ? null : 'prediction' },
      fixed(value, decimalsFor(largestOf(truths.length ? truths : [value]))), ' ', h('small', {}, name)),
    ...(truths.length ? [
      responsive(charts.scaleLine({ seen: truths, value, error, name: name || 'prediction' })),
      h('p', { class: 'note' }, 'Columns: true values of the evaluated documents.',
        error ? ` Band: the usual error, \u00b1\u00a0${number(error, 2)}.` : ''),
    ] : []));
};

const versus = ([first, second]) =>
  h('div', {},
    h('p', { class: 'big', id: 'prediction' },
      percent(Math.max(first, second)), ' ', h('small', {}, outputs[second >= first ? 1 : 0])),
    h('div', { class: 'versus', 'aria-hidden': 'true' },
      h('i', { class: 'first', style: { 'flex-basis': onPercent(first) } }),
      h('i', { class: 'second', style: { 'flex-basis': onPercent(second) } })),
    h('p', { class: 'ends number' },
      h('span', {}, `${outputs[0]} ${percent(first)}`), h('span', {}, `${percent(second)} ${outputs[1]}`)));

const prediction = ({ values, probabilities, output }) => {
  if (!hasEffects) return [];
  if (values) {
    const levels = data.model.response.levels.map((level) => level.toLocaleString('en'));
    return present(
      values.map(predictedNumber), probabilities && probabilityRows(probabilities, levels, range(levels.length), null));
  }
  if (isBinary) return [versus(probabilities)];
  const order = range(outputs.length).sort((a, b) => probabilities[b] - probabilities[a]);
  const likely = outputs.filter((_, i) => probabilities[i] > 0.5);
  const big = task === 'multilabel'
    ? [h('small', {}, likely.length ? likely.join(', ') : 'no label above 50\u00a0%')]
    : [percent(probabilities[order[0]]), ' ', h('small', {}, outputs[order[0]])];
  return [h('p', { class: 'big', id: 'prediction' }, ...big), probabilityRows(probabilities, outputs, order, output)];
};

const sharesOf = (analysis) => {
  const shown = range(nTopics).sort((a, b) => analysis.theta[b] - analysis.theta[a])
    .filter((topic, i) => i === 0 || (i < MOST_TOPICS && analysis.theta[topic] >= 0.01));
  return [h('h3', {}, 'Topics of this text'), h('p', { class: 'note' }, POINT), h('ul', { class: 'bars' }, ...shown.map((topic) =>
    h('li', { class: 'share-row', 'data-of': topic },
      h('span', { class: 'line' }, topicLink(topic), h('span', { class: 'number' }, percent(analysis.theta[topic]))),
      bar(analysis.theta[topic]),
      h('span', { class: 'words' }, inLine(firstWords(topic, 6))))))];
};

// What topics do to the prediction, the strongest first; with what they do together, all adds up.
const topicEffects = ({ topics: found, overlap, value, empty, output }) => {
  const order = [...found].sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect));
  const least = FAINT * Math.max(Math.abs(order[0].effect), Math.abs(overlap));
  const isShown = ({ effect }, i) => i === 0 || (i < MOST_TOPICS && Math.abs(effect) >= least);
  const [shown, others] = [order.filter(isShown), order.filter((topic, i) => !isShown(topic, i))];
  const rest = others.reduce((sum, { effect }) => sum + effect, 0);
  const values = [...shown.map(({ effect }) => effect), rest, overlap];
  const [axis, largest] = [withZero(values), largestOf(values)];
  const row = (name, effect, words, topic = null) =>
    h('li', { class: 'share-row', 'data-of': topic },
      h('span', { class: 'line' }, name, signedText(effect, largest)),
      sidedBar(effect, axis),
      words ? h('span', { class: 'words' }, words) : null);
  const said = (v) => fixed(v, decimalsFor(largestOf([value, empty])));
  return [
    h('h3', {}, `Effects of topics ${unitOf(output)}`),
    h('p', { class: 'note' }, `What changes when a topic\u2019s part of the words is left out. ${POINT}`),
    h('ul', { class: 'bars' },
      ...shown.map(({ topic, share, effect }) => row(
        h('span', {}, topicLink(topic), h('span', { class: 'note' }, ` ${percent(share)} of the text`)),
        effect, inLine(firstWords(topic, 6)), topic)),
      others.length ? row(h('span', {}, count(others.length, 'other topic')), rest) : null,
      row(h('span', {}, 'Overlap'), overlap, 'what topics do together, and none alone')),
    h('p', { class: 'sum number' }, h('strong', {}, signed(value - empty, largest)),
      ` in all: from ${said(empty)} without words to ${said(value)}`),
  ];
};

const legend = (output) => {
  const name = outputName(output);
  const [raises, lowers] = task === 'regression' ? [`raises ${name}`, 'lowers it']
    : [`speaks for ${name}`, isBinary ? `for ${outputs[0]}` : 'against it'];
  return [h('span', { class: 'key positive' }, raises), h('span', { class: 'key negative' }, lowers)];
};

// The text with its known words as spans; the last line break shows only before something else.
const painted = (text, tokens, largest) => {
  let end = 0;
  const pieces = tokens.flatMap((token, i) => {
    const before = text.slice(end, token.begin);
    end = token.end;
    const kind = !hasEffects ? 'known' : token.effect < 0 ? 'negative' : 'positive';
    const strength = Math.min(1, Math.sqrt(Math.abs(token.effect ?? 0) / largest));
    const word = text.slice(token.begin, token.end);
    return [before, h('span', { class: kind, 'data-token': i, 'data-of': token.topic, style: { '--strength': strength.toFixed(3) } }, word)];
  });
  return [...pieces, `${text.slice(end)}\u200b`];
};

const summary = (analysis) => {
  const strongest = hasEffects ? analysis.words.slice(0, 3).map((w) => `${w.word} ${signed(w.effect)}`) : [];
  const top = argmax(analysis.theta);
  const shown = place('prediction')?.textContent.trim();
  return [
    shown ? `Prediction: ${shown}.` : `Topic ${top}: ${percent(analysis.theta[top])}.`,
    strongest.length ? `Strongest words: ${strongest.join(', ')}.` : '',
  ].join(' ');
};

const stateOf = ({ nWords, nKnown }) => {
  if (nKnown) return null;
  if (!hasEffects) return 'Without known words all topics are alike.';
  if (!nWords) return 'No text yet. Without words the model says:';
  return 'No word of this text is known to the model. Without known words it says:';
};

// From both ends of the topics and their middle.
const exampleTexts = () => {
  if (!data.documents) return [];
  const order = topics.order.filter((topic) => data.documents[topic].length && shares[topic] > 0.01);
  const chosen = [order[0], order.at(-1), order[Math.floor(order.length / 2)]];
  return [...new Set(chosen.map((topic) => data.documents[topic]?.[0].text).filter((text) => text))];
};

const makeTry = () => {
  const state = { output: null, analysis: null, largest: 1 };
  const nodes = {
    input: h('textarea', {
      id: 'text', rows: 1, spellcheck: 'false', autocapitalize: 'off',
      placeholder: 'Type or paste a text \u2026', 'aria-describedby': 'counts',
    }),
    mirror: h('div', { class: 'mirror', 'aria-hidden': 'true' }),
    counts: h('span', { id: 'counts' }),
    word: h('span', { id: 'word' }),
    keys: h('p', { class: 'readout keys' }),
    prediction: h('div', { class: 'prediction' }),
    mixture: h('div', { class: 'mixture' }),
    strongest: h('div', { class: 'strongest' }),
    strongestTitle: h('h3'),
    strongestRows: h('div'),
    spoken: h('p', { class: 'unseen', role: 'status', id: 'spoken' }),
  };
  const work = slices();
  let speaking = 0;
  // Once the typing pauses.
  const speak = (text) => {
    clearTimeout(speaking);
    speaking = setTimeout(() => nodes.spoken.replaceChildren(text), 700);
  };

  const showEffects = (analysis) => {
    nodes.keys.replaceChildren(...legend(analysis.output));
    nodes.strongestTitle.textContent = `Words with the largest effect ${unitOf(analysis.output)}`;
    nodes.strongestRows.replaceChildren(
      sidedRows(analysis.words.slice(0, MOST_ROWS).map((w) => ({ name: w.word, times: w.count, effect: w.effect }))));
  };

  const update = () => {
    const text = nodes.input.value;
    const analysis = model.analyse(text, state.output);
    const message = stateOf(analysis);
    state.analysis = analysis;
    state.largest = hasEffects
      ? Math.max(faintest(analysis.output), largestOf(analysis.tokens.map((token) => token.effect))) : 1;
    nodes.mirror.replaceChildren(...painted(text, analysis.tokens, state.largest));
    nodes.word.replaceChildren();
    nodes.counts.textContent = analysis.nWords
      ? `${count(analysis.nWords, 'word')}, ${analysis.nKnown} known to the model` : '';
    nodes.prediction.replaceChildren(...present(message && h('p', { class: 'state' }, message), prediction(analysis)));
    work([...analysis.leaveOut,
      () => nodes.mixture.replaceChildren(...(hasEffects ? topicEffects : sharesOf)(analysis))]);
    nodes.mixture.hidden = message !== null;
    nodes.strongest.hidden = nodes.keys.hidden = message !== null || !hasEffects;
    if (hasEffects) showEffects(analysis);
    speak(analysis.nWords ? summary(analysis) : '');
  };

  const pointAt = (index) => {
    nodes.mirror.querySelector('.at')?.classList.remove('at');
    nodes.word.replaceChildren();
    const token = state.analysis.tokens[index];
    if (!token || !hasEffects) return;
    nodes.mirror.querySelector(`[data-token="${index}"]`)?.classList.add('at');
    nodes.word.append(h('strong', {}, nodes.input.value.slice(token.begin, token.end)), ' ',
      signedText(token.effect, state.largest), ` ${unitOf(state.analysis.output)}, in topic ${token.topic} `,
      h('span', { class: 'note' }, firstWords(token.topic, 3).join(' ')));
  };
  const markTopic = (topic) => nodes.mirror.querySelectorAll('span')
    .forEach((span) => span.classList.toggle('of', span.dataset.of === topic));
  const use = (text) => {
    nodes.input.value = text;
    update();
  };

  nodes.input.addEventListener('input', onceAFrame(update));
  nodes.input.addEventListener('pointerleave', () => pointAt(-1));
  nodes.input.addEventListener('pointermove', (event) => {
    const under = document.elementsFromPoint(event.clientX, event.clientY)
      .find((node) => nodes.mirror.contains(node) && node.dataset.token);
    pointAt(under ? +under.dataset.token : -1);
  });
  ['pointerover', 'focusin'].forEach((name) => nodes.mixture.addEventListener(name, (event) =>
    markTopic(event.target.closest('[data-of]')?.dataset.of)));
  ['pointerleave', 'focusout'].forEach((name) => nodes.mixture.addEventListener(name, () => markTopic()));
  document.addEventListener('selectionchange', () => {
    if (document.activeElement !== nodes.input) return;
    const at = nodes.input.selectionStart;
    pointAt(state.analysis.tokens.findIndex((token) => token.begin <= at && at <= token.end));
  });

  const examples = exampleTexts();
  const exampleButton = (text) =>
    h('button', { type: 'button', class: 'quiet', title: text.slice(0, 200), click: () => use(text) }, text.slice(0, 60));
  const explained = [...(task === 'regression' ? [] : [['', 'the most probable']]), ...outputs.map((name, i) => [i, name])];
  const explain = (value) => {
    state.output = value === '' ? null : +value;
    update();
  };
  const choice = outputs.length > 1 && !isBinary
    ? field('explained', `Explain the ${noun}`, select('explained', explained, explain)) : null;
  nodes.strongest.append(...present(nodes.strongestTitle, choice, nodes.strongestRows));

  place('try').append(heading('try', 'Try it'),
    h('p', { class: 'note' }, 'The model runs in this page: nothing you type leaves it.',
      hasEffects ? ' Point at a word, or move the cursor into it, for its effect.' : ''),
    h('div', { class: 'try' },
      h('div', {},
        h('div', { class: 'entry' },
          h('label', { for: 'text' }, 'Your text'),
          h('div', { class: 'box' }, h('div', { class: 'layers' }, nodes.mirror, nodes.input)),
          h('p', { class: 'readout' }, nodes.counts, nodes.word),
          nodes.keys,
          h('div', { class: 'examples', hidden: !examples.length },
            h('span', { class: 'label' }, 'Examples'), ...examples.map(exampleButton))),
        nodes.strongest),
      h('div', {}, nodes.prediction, nodes.mixture)),
    nodes.spoken);
  place('try').hidden = false;
  use(examples[0] ?? '');
};
