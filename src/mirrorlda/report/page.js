'use strict';

// How the model was made; and all sections put into their places.

const glossary = () => {
  const isOfMany = task === 'classification' && !isBinary;
  const unit = task === 'regression' ? 'In the unit of the target.'
    : isOfMany ? 'On a text in log odds; in general in the logarithm of a class\u2019s probability, over the mean of all classes.'
      : 'In log odds.';
  const ofTopic = ranges
    ? 'Of a topic on a text: the prediction less that for the same text without the topic\u2019s part of each word. '
      + 'Of a topic in general: the mean of that over texts; one text in ten is below the first of the two ends, one above the second.'
    : 'Of a topic: how far the prediction for a text of this topic alone is from that for the average text.';
  const effect = `${ofTopic} Of a word: how much its occurrences move the prediction for this text. ${unit}`;
  const overlap = 'What two topics do together is not the sum of what each does alone: where one is left out, the other may stand in '
    + 'for it. The overlap is what is missing from the sum of the topics\u2019 effects to the effect of the whole text.';
  const relevance = 'What orders the words of a topic: '
    + 'between how frequent a word is in the topic and how much more frequent than elsewhere.';
  const logOdds = 'The logarithm of p / (1 \u2212 p): '
    + '0 is 50\u00a0%, +1 is 73\u00a0%, +2 is 88\u00a0%, +3 is 95\u00a0%; \u22121 is 27\u00a0%.';
  return present(
    [['Topic', 'A probability for every word. A text is a mixture of topics.']],
    [['Share', 'The part of a text, or of the corpus, that a topic makes up. Shares add up to 100\u00a0%.']],
    task === 'topics' ? null : [['Effect', effect]],
    hasEffects && data.model.definition ? [['Overlap', overlap]] : null,
    [['Relevance', relevance]],
    task === 'topics' || task === 'regression' ? null : [['Log odds', logOdds]]);
};

const duration = (seconds) => {
  const [minutes, hours] = [Math.floor(seconds / 60), Math.floor(seconds / 3600)];
  if (minutes < 2) return `${number(seconds, 2)} seconds`;
  return hours < 2 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${hours} h ${minutes % 60} min`;
};
const settingName = (name) => name.replace(/^n[-_]/, '').replace(/[-_]/g, ' ');
const settingText = (value) => (value === null ? '\u2013' : value === true ? 'yes' : value === false ? 'no' : String(value));
const settings = (values) => Object.entries(values).map(([name, value]) => [settingName(name), settingText(value)]);
const rowsTable = (label, rows) =>
  scrolling(label, h('table', { class: 'rows' }, h('tbody', {}, ...rows.map(([name, value]) =>
    h('tr', {}, h('th', { scope: 'row' }, name), h('td', {}, value))))));

const makeMaking = () => {
  const size = (n) => n.toLocaleString('en');
  const rows = present(
    [['package', `mirrorlda ${data.version}`]], [['topics', size(nTopics)]], [['words', size(data.n_words)]],
    data.n_words > model.words.length ? [['words in this page', size(model.words.length)]] : null,
    data.n_docs === null ? null : [['documents learned from', size(data.n_docs)]],
    data.seconds === null ? null : [['time to learn', duration(data.seconds)]],
    settings(data.configuration));
  const others = settings(data.other_settings);
  const more = others.length
    ? h('details', { class: 'settings' }, h('summary', {}, 'All other settings'), rowsTable('All other settings', others)) : null;
  const terms = h('dl', { class: 'glossary' },
    ...glossary().map(([term, text]) => h('div', {}, h('dt', {}, term), h('dd', {}, text))));
  place('making').append(heading('making', 'How it was made'), h('div', { class: 'figures' },
    h('div', {}, h('h3', {}, 'Configuration'), rowsTable('Configuration', rows), more),
    h('div', {}, h('h3', {}, 'What the words mean'), terms)));
  place('footer').append(`Made with mirrorlda ${data.version}. This page is one file: it loads nothing and sends nothing.`);
};

// Navigation and theme

const makeNavigation = () => {
  const names = { try: 'Try it', topics: 'Topics', quality: 'Quality', making: 'Making' };
  const shown = Object.keys(names).filter((id) => !place(id).hidden);
  const links = new Map(shown.map((id) => [id, h('a', { href: `#${id}` }, names[id])]));
  const mark = (current) => links.forEach((link, id) => link.setAttribute('aria-current', id === current));
  place('sections').append(...links.values());
  const watch = new IntersectionObserver((entries) => {
    entries.filter((entry) => entry.isIntersecting).forEach((entry) => mark(entry.target.id));
  }, { rootMargin: '-30% 0px -65% 0px' });
  shown.forEach((id) => watch.observe(place(id)));
};

const makeTheme = () => {
  const root = document.documentElement;
  const button = place('theme');
  const system = matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : system.matches);
  const label = () => {
    button.textContent = isDark() ? 'Light' : 'Dark';
    button.setAttribute('aria-label', `Change to ${isDark() ? 'light' : 'dark'} colours`);
  };
  button.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    label();
  });
  system.addEventListener('change', label);
  label();
};

makeTheme();
makeHeader();
makeTopics();
if (data.model.definition) makeTry();
makeQuality();
makeMaking();
makeNavigation();
