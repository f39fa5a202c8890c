'use strict';

// What the model predicts, and how well, in one sentence.

const SMALLER_IS_BETTER = /^(RMSE|MAE|log loss|calibration error|perplexity)( |$)/;
const best = (measures, name) => {
  const values = measures.filter((m) => m).map((m) => m.value);
  return SMALLER_IS_BETTER.test(name) ? Math.min(...values) : Math.max(...values);
};
// What knows no word is there for comparison: it can be the best calibrated of all, and useless.
const KNOWS_NO_WORD = /^(mean|most frequent class|label frequencies|word frequencies)( \(|$)/;
const measureText = (value) => fixed(value, Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 10 ? 2 : 3);
const printed = (measure) => measure.replace(/^R2/, 'R\u00b2');
const inSentence = (baseline) => baseline.replace(/^tf-idf, /, 'tf\u2011idf with ');

const targetsInWords = () => {
  if (outputs.length === 1 && outputs[0] === 'prediction') return 'a number';
  return outputs.length > 4 ? `${outputs.length} numbers` : listed(outputs);
};
const purpose = () => {
  if (task === 'topics') return `Describes texts by ${count(nTopics, 'topic')}`;
  if (task === 'multilabel') return `Chooses among ${count(outputs.length, 'label')} for a text`;
  if (isBinary) return `Tells ${outputs[1]} from ${outputs[0]} by the text`;
  if (task === 'classification') return `Tells ${outputs.length} classes apart by the text`;
  return `Predicts ${targetsInWords()} from text`;
};
const bestBaseline = (name) => {
  const found = Object.entries(evaluation.baselines).filter(([, measures]) => measures[name]);
  const value = best(found.map(([, measures]) => measures[name]), name);
  return found.find(([, measures]) => measures[name].value === value);
};
const lead = () => {
  const main = evaluation?.measures[evaluation.main];
  if (!main) return h('p', { class: 'lead' }, purpose(), task === 'topics' ? '.' : `, with ${count(nTopics, 'topic')}.`);
  const baseline = bestBaseline(evaluation.main);
  return h('p', { class: 'lead' }, purpose(), ': ',
    h('strong', {}, `${printed(evaluation.main)} ${measureText(main.value)}`),
    ` on ${count(evaluation.n_docs, 'held-out document')}`,
    ` (95\u00a0% interval ${measureText(main.low)} to ${measureText(main.high)})`,
    baseline ? `, where ${inSentence(baseline[0])} has ${measureText(baseline[1][evaluation.main].value)}.` : '.');
};
const makeHeader = () => {
  const facts = present(
    [['topics', nTopics]], [['words', data.n_words]],
    data.n_docs === null ? null : [['documents', data.n_docs]],
    task === 'classification' && !isBinary ? [['classes', outputs.length]] : null,
    task === 'multilabel' ? [['labels', outputs.length]] : null);
  place('header').append(h('h1', {}, data.title), lead(),
    h('dl', { class: 'facts' }, ...facts.map(([name, value]) =>
      h('div', {}, h('dt', {}, name), h('dd', {}, value.toLocaleString('en'))))));
};
