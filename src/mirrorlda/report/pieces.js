'use strict';

// What all sections are made from: the page's data and small nodes. The files of the page share one scope, in the order of report/__init__.py.

const { element: h, number, signed, percent, fixed, decimalsFor, extent, side, tint, hue, responsive } = charts;
const data = JSON.parse(document.getElementById('data').textContent);
const model = mirrorlda.decode(data);
const { task, outputs, topics, evaluation } = data;
const { nTopics } = model;
const { shares, effect_names: effectNames } = topics;
const effects = topics.effects.map((row) => row.map((value) => value ?? 0));
// Quantiles of 10 % and 90 % over texts; files of earlier versions have none.
const ranges = topics.ranges && topics.ranges.map((rows) => rows.map((row) => row.map((value) => value ?? 0)));
const rangeOf = (row, topic) => ranges && ranges.map((rows) => rows[row][topic]);
const isBinary = task === 'classification' && outputs.length === 2;
const noun = { regression: 'target', classification: 'class', multilabel: 'label' }[task];
// A response of the user's own is not known to the page: it shows topics only.
const hasEffects = task !== 'topics' && data.model.response.kind !== 'other';

const DEFAULT_RELEVANCE = 0.5;
const WORDS_OF_A_TOPIC = 12;
const WORDS_IN_DETAIL = 20;
const MOST_ROWS = 8;
const MOST_COLOURS = 24;
const SLICE = 8; // milliseconds of a frame

// Small things

const place = (id) => document.getElementById(id);
const range = (n) => Array.from({ length: n }, (_, i) => i);
const present = (...items) => items.flat().filter((item) => item);
const count = (n, singular) => `${n.toLocaleString('en')} ${singular}${n === 1 ? '' : 's'}`;
const listed = (names) => (names.length < 3 ? names.join(' and ') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`);
const asSentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
const rate = (probability) => `${number(100 * probability, 2)}\u00a0%`;
const largestOf = (values) => Math.max(1e-12, ...values.map(Math.abs));
const argmax = (values) => values.indexOf(Math.max(...values));
const withZero = (values) => extent([0, ...values]);
const isCalm = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

const cached = (compute) => {
  const known = new Map();
  return (...key) => {
    const name = key.join(' ');
    if (!known.has(name)) known.set(name, compute(...key));
    return known.get(name);
  };
};
const wordsOf = cached((topic, relevance, n) => model.relevantWords(topic, relevance, n));
const firstWords = (topic, n) =>
  wordsOf(topic, DEFAULT_RELEVANCE, WORDS_OF_A_TOPIC).slice(0, n).map((w) => w.word);

const inLine = (words) => words.join(model.definition?.bigrams ? ', ' : ' ');

// One word for each topic, where there is room for no more: its first one that no larger topic has.
const names = (() => {
  const found = [];
  for (const topic of range(nTopics).sort((a, b) => shares[b] - shares[a])) {
    const words = firstWords(topic, WORDS_OF_A_TOPIC);
    found[topic] = words.find((word) => !found.includes(word)) ?? words[0] ?? '';
  }
  return found;
})();

const onceAFrame = (run) => {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      run();
    });
  };
};

// Work in slices of a frame, so that nothing that moves stops; a later list of tasks takes the place of an earlier one.
const slices = () => {
  let turn = 0;
  return (tasks) => {
    turn += 1;
    const mine = turn;
    const step = () => {
      if (mine !== turn) return;
      const until = performance.now() + SLICE;
      while (tasks.length && performance.now() < until) tasks.shift()();
      if (tasks.length) requestAnimationFrame(step);
    };
    step();
  };
};

// Pieces

const heading = (id, text) => h('h2', { id: `${id}-title` }, text);
const field = (id, label, control) => h('div', { class: 'field' }, h('label', { for: id }, label), control);
const select = (id, options, change) =>
  h('select', { id, change: (event) => change(event.target.value) },
    ...options.map(([value, text]) => h('option', { value }, text)));
const figure = (title, note, ...content) =>
  h('figure', {}, h('figcaption', {}, h('h3', {}, title), note ? h('p', { class: 'note' }, note) : null), ...content);
const scrolling = (label, table) => h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, table);
const topicLink = (topic) =>
  h('a', {
    href: `#topic-${topic}`,
    click: (event) => {
      event.preventDefault();
      chooseTopic(topic);
    },
  }, `Topic ${topic}`);

const onPercent = (value) => `${(100 * Math.max(0, Math.min(1, value))).toFixed(2)}%`;
const bar = (value, tick = null) =>
  h('span', { class: 'track', 'aria-hidden': 'true' },
    h('i', { style: { left: '0', width: onPercent(value) } }),
    tick === null ? null : h('i', { class: 'tick', style: { left: onPercent(tick) } }));
const barKind = (value, largest) => ({ up: 'positive', down: 'negative' }[side(value, largest)] ?? null);
// A bar from zero to the value, on an axis that all bars of a group share.
// A range over texts is a thin line on it.
const sidedBar = (value, [low, high], ends = null) => {
  const at = (v) => (v - low) / (high - low || 1);
  const [from, to] = [at(Math.min(0, value)), at(Math.max(0, value))];
  return h('span', { class: 'track', 'aria-hidden': 'true' },
    h('i', { class: barKind(value, largestOf([low, high])), style: { left: onPercent(from), width: onPercent(to - from) } }),
    ends && h('i', { class: 'range', style: { left: onPercent(at(ends[0])), width: onPercent(at(ends[1]) - at(ends[0])) } }),
    h('i', { class: 'zero', style: { left: onPercent(at(0)) } }));
};
const signedText = (value, largest) =>
  h('span', { class: `number ${side(value, largest)}` }, signed(value, largest));
const sidedRows = (items) => {
  const values = items.map((item) => item.effect);
  const axis = withZero([...values, ...items.flatMap((item) => item.ends ?? [])]);
  const largest = largestOf(values);
  return h('ul', { class: 'bars' }, ...items.map(({ name, times, effect, ends = null }) =>
    h('li', {},
      h('span', { class: 'named', title: name }, name, times > 1 ? ` \u00d7\u2009${times}` : ''),
      sidedBar(effect, axis, ends),
      signedText(effect, largest))));
};
