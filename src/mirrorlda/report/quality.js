'use strict';

// How good the model is: one sentence at the top of the page; measures beside simpler models, and curves.

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
    baseline ? `, where ${inSentence(baseline[0])} has ${measureText(baseline[1][evaluation.main].value)}.` : '.',
    evaluation.verdict ? ` ${evaluation.verdict}` : '');
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

// The section

const systems = () => [['this model', evaluation.measures], ...Object.entries(evaluation.baselines)];

const bestMark = () => [h('span', { class: 'star', 'aria-hidden': 'true' }, ' \u2605'), h('span', { class: 'unseen' }, ' best')];
const measureCell = (m, isBest) => {
  if (!m) return h('td', {}, '\u2013');
  return h('td', { class: isBest ? 'best' : null }, measureText(m.value), ...(isBest ? bestMark() : []),
    h('small', {}, `${measureText(m.low)} to ${measureText(m.high)}`));
};
const measuresTable = () => {
  const all = systems();
  const learned = all.filter(([name]) => !KNOWS_NO_WORD.test(name));
  const row = (name) => {
    const top = best(learned.map(([, measures]) => measures[name]), name);
    const isBest = (system) => learned.length > 1 && learned.includes(system) && system[1][name]?.value === top;
    return h('tr', {},
      h('th', { scope: 'row' }, printed(name),
        h('small', {}, SMALLER_IS_BETTER.test(name) ? 'less is better' : 'more is better')),
      ...all.map((system) => measureCell(system[1][name], isBest(system))));
  };
  return scrolling('Measures', h('table', { class: all.length > 1 ? 'measures' : 'measures alone' },
    h('caption', { class: 'unseen' }, 'Measures with 95\u00a0% intervals'),
    h('thead', {}, h('tr', {}, h('td', {}), ...all.map(([name]) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, ...Object.keys(evaluation.measures).map(row))));
};

const comparison = () => {
  const rows = systems().filter(([, measures]) => measures[evaluation.main]).map(([name, measures], i) => {
    const main = measures[evaluation.main];
    return { ...main, name: `${name}: ${measureText(main.value)}`, isMain: i === 0 };
  });
  const label = `${evaluation.main}: ${rows.map((row) => row.name).join('; ')}`;
  return figure(`${printed(evaluation.main)}, beside simple models`, 'Lines are 95\u00a0% intervals over documents.',
    responsive(charts.intervals({ rows, label })));
};

const confusionTable = ({ labels, counts }) => {
  const isSmall = labels.length <= 4;
  const cell = (n, total, i, j) => {
    const part = total ? n / total : 0;
    // No shade between those that dark and light text can be read on.
    const shade = part > 0.5 ? 0.8 + 0.2 * part : 0.85 * Math.sqrt(part);
    const kinds = present(part > 0.5 && 'dark', !n && 'none', i === j && 'right');
    const title = `${labels[i]} taken for ${labels[j]}: ${n} of ${total}`;
    return h('td', { class: kinds.join(' '), title, style: { '--shade': shade.toFixed(3) } },
      n ? n.toLocaleString('en') : '\u00b7');
  };
  const row = (values, i) => {
    const total = values.reduce((a, b) => a + b, 0);
    return h('tr', {}, h('th', { scope: 'row', title: labels[i] }, labels[i]), ...values.map((n, j) => cell(n, total, i, j)));
  };
  return scrolling('Confusion matrix', h('table', { class: isSmall ? 'confusion few' : 'confusion' },
    h('thead', {}, h('tr', {}, h('td', {}),
      ...labels.map((name) => h('th', { scope: 'col' }, h('div', { class: isSmall ? null : 'turned' }, name))))),
    h('tbody', {}, ...counts.map(row))));
};

const worstConfusions = ({ labels, counts }) => {
  const pairs = counts.flatMap((row, i) => row.map((n, j) => ({ i, j, n, total: row.reduce((a, b) => a + b, 0) })));
  return pairs.filter((p) => p.i !== p.j && p.n).sort((a, b) => b.n - a.n).slice(0, 3)
    .map((p) => `${labels[p.i]} for ${labels[p.j]} (${p.n} of ${p.total})`);
};
const confusion = (matrix) => {
  const worst = outputs.length > 2 ? worstConfusions(matrix) : [];
  const note = 'A row is a true class, a column what the model says.';
  const often = worst.length ? ` Most often confused: ${worst.join('; ')}.` : '';
  return figure('What is taken for what', note + often, confusionTable(matrix));
};

const rocFigure = (roc, chosen) => {
  const areas = roc.filter((r) => r.auc !== null).map((r) => r.auc);
  const one = roc.length === 1 ? roc[0] : roc.find((r) => r.name === chosen);
  const [low, high] = extent(areas).map((area) => (areas.length ? measureText(area) : ''));
  const area = one ? (one.auc === null ? '' : `${one.name}: area under the curve ${measureText(one.auc)}.`)
    : areas.length ? `Area under the curve from ${low} to ${high}.` : '';
  const named = roc.map((r) => (r.auc === null ? r.name : `${r.name} (area ${measureText(r.auc)})`));
  const label = `ROC curves: ${named.join('; ')}`;
  const lines = roc.map((r) => ({ name: r.name, xs: r.fpr, ys: r.tpr }));
  return figure('ROC', `How many of a ${noun} are found, against false alarms. ${area}`,
    responsive(charts.square({ lines, chosen, x: 'false alarms', y: 'found', label })));
};
const calibrationFigure = (calibration, chosen) => {
  const one = calibration.find((c) => c.name === chosen) ?? calibration[0];
  const points = one.predicted.map((p, i) => `predicted ${percent(p)}, observed ${percent(one.observed[i])}`);
  const label = `Calibration of ${one.name}: ${points.join('; ')}`;
  const lines = calibration.map((c) => ({ name: c.name, xs: c.predicted, ys: c.observed, counts: c.counts }));
  const note = `Of documents to which the model gives a probability, how many are of the ${noun}? `
    + 'On the diagonal it is as sure as it is right.';
  return figure('Calibration', note,
    responsive(charts.square({ lines, chosen, x: 'predicted probability', y: 'observed', label })));
};
// Nodes before the curves stand beside them.
const curves = (...before) => {
  const { roc = [], calibration = [] } = evaluation.curves;
  const figures = h('div', { class: 'figures' });
  const draw = (chosen) => figures.replaceChildren(...present(
    before, roc.length && rocFigure(roc, chosen), calibration.length && calibrationFigure(calibration, chosen)));
  draw(null);
  if (roc.length < 2) return [figures];
  const options = [['', 'all'], ...roc.map((r, i) => [i, r.name])];
  const choose = (value) => draw(value === '' ? null : roc[+value].name);
  return [h('div', { class: 'choice' }, field('curve', `Curves of the ${noun}`, select('curve', options, choose))), figures];
};

const labelsTable = (labels) => {
  const value = (v) => h('td', {}, v === null ? '\u2013' : fixed(v, 2));
  const row = (l) =>
    h('tr', {}, h('th', { scope: 'row' }, l.name), h('td', {}, l.n_docs.toLocaleString('en')),
      value(l.precision), value(l.recall),
      h('td', {}, h('span', { class: 'in-cell' }, l.F1 === null ? '\u2013' : fixed(l.F1, 2), bar(l.F1 ?? 0))));
  return scrolling('Labels', h('table', { class: 'measures labels' },
    h('caption', { class: 'unseen' }, 'Precision, recall and F1 of each label'),
    h('thead', {}, h('tr', {},
      ...['label', 'documents', 'precision', 'recall', 'F1'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, ...labels.map(row))));
};

const numberFigures = ({ scatter = [], residuals = [] }) => scatter.flatMap((s, i) => {
  const of = s.name === 'prediction' ? '' : ` of ${s.name}`;
  const isSpread = new Set(s.truth).size <= charts.FEW_LEVELS;
  const note = `${count(s.truth.length, 'document')}${isSpread ? ', spread sideways where true values repeat' : ''}.`;
  return present(
    figure(`Predictions${of}`, note, responsive(charts.scatter(s))),
    residuals[i]
      && figure(`Errors${of}`, 'Left of the line the prediction is too low.', responsive(charts.histogram(residuals[i]))));
});

const taskFigures = () => {
  const found = evaluation.curves;
  if (task === 'regression') return [h('div', { class: 'figures' }, ...numberFigures(found))];
  if (task === 'multilabel') {
    return present(found.labels?.length && figure('Labels', null, labelsTable(found.labels)), curves());
  }
  if (task !== 'classification') return [];
  const matrix = found.confusion ? confusion(found.confusion) : null;
  return outputs.length > 2 ? present(matrix, curves()) : curves(matrix);
};

const learning = () => {
  const score = data.model.response.score;
  const scoreTitle = score ? `Score while learning: ${score}` : 'Score while learning';
  const chart = (title, names) => {
    const series = names.filter((name) => data.history[name]?.filter((v) => v !== null).length > 1)
      .map((name) => ({ name: name.replace('validation_', 'held-out '), values: data.history[name].map((v) => v ?? NaN) }));
    if (!series.length) return null;
    const last = series.map((s) => `${s.name} ${number(s.values.at(-1))}`).join(', ');
    return figure(title, null,
      series.length > 1 ? h('p', { class: 'legend' }, h('span', {}, 'training'), h('span', {}, 'held-out')) : null,
      responsive(charts.epochs({ series, label: `${title}; at the end ${last}` })));
  };
  return present(
    chart('Loss while learning', ['loss', 'validation_loss']), chart(scoreTitle, ['score', 'validation_score']));
};

const makeQuality = () => {
  const learned = learning();
  if (!evaluation && !learned.length) return;
  const measured = () => {
    const text = `Measured on ${count(evaluation.n_docs, 'document')} that the model was not trained on.`;
    const notes = [text, 'Beneath each value its 95\u00a0% interval.', ...(evaluation.notes ?? []).map(asSentence)];
    return [h('p', { class: 'note' }, notes.join(' ')),
      h('div', { class: 'figures' }, measuresTable(), Object.keys(evaluation.baselines).length ? comparison() : null),
      ...taskFigures()];
  };
  place('quality').append(heading('quality', evaluation ? 'How good it is' : 'How it learned'),
    ...(evaluation ? measured() : []),
    ...(learned.length ? [h('div', { class: 'figures' }, ...learned)] : []));
  place('quality').hidden = false;
};
