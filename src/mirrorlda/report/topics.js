'use strict';

// The topics: their words, shares, effects, and a map of them.

const several = effects.length > 1;
const STRONGEST = -1;
// `row`: whose effect is shown, or that which each topic has most of. Units of targets differ: none of them is the strongest.
const view = {
  relevance: DEFAULT_RELEVANCE,
  sort: effects.length ? 'effect' : 'share',
  row: several && task !== 'regression' ? STRONGEST : 0,
  word: -1,
  chosen: -1,
};
// Of many topics even the larger ones have little: a third of an equal share.
const SMALL_PERCENT = Number(Math.min(1.5, 30 / nTopics).toPrecision(2));
const isSmall = (topic) => 100 * shares[topic] < SMALL_PERCENT;
const rowOf = (topic) => (view.row === STRONGEST ? argmax(effects.map((row) => row[topic])) : view.row);
const effectOf = (topic) => (effects.length ? effects[rowOf(topic)][topic] : 0);
const probabilityIn = (topic, word) => model.themes[word * nTopics + topic];
const timesCorpus = (topic, word) => probabilityIn(topic, word) / model.frequencies[word];
const isFound = (topic) => view.word >= 0 && timesCorpus(topic, view.word) > 1;
const effectUnit = (row) => {
  const name = effectNames[row];
  if (task === 'regression') return name === 'prediction' ? 'on the prediction' : name;
  if (task === 'multilabel' || isBinary) return `log odds of ${name}`;
  return view.row === STRONGEST ? `for ${name}` : `log probability of ${name}`;
};

const topicOrder = () => {
  if (view.sort === 'share') return range(nTopics).sort((a, b) => shares[b] - shares[a]);
  const group = (topic) => (view.row === STRONGEST ? rowOf(topic) : 0);
  return range(nTopics).sort((a, b) => group(a) - group(b) || effectOf(b) - effectOf(a));
};
const titleOf = (topic) => {
  const words = `Topic ${topic}: ${firstWords(topic, 3).join(', ')}; ${percent(shares[topic])} of the corpus`;
  return effects.length ? `${words}; effect ${signed(effectOf(topic))} ${effectUnit(rowOf(topic))}` : words;
};
// What topics speak for most has a colour each, of as many as people can tell apart.
const isByRow = () => view.row === STRONGEST && effects.length <= MOST_COLOURS;
const colourOf = (topic, largest) => {
  if (!effects.length) return 'color-mix(in oklab, var(--bar) 55%, var(--neutral))';
  return isByRow() ? hue(rowOf(topic), effects.length) : tint(effectOf(topic), largest);
};
const swatch = (row) => h('i', { class: 'swatch', 'aria-hidden': 'true', style: { background: hue(row, effects.length) } });
const swatchOf = (row) => (isByRow() ? swatch(row) : null);
const stateOfTopic = (topic) => (topic === view.chosen ? 'chosen' : isFound(topic) ? 'searched' : null);

const wordItems = (topic) => {
  const words = wordsOf(topic, view.relevance, WORDS_OF_A_TOPIC);
  const top = words[0]?.relevance || 1;
  const size = (w) => Math.max(0, Math.min(1, w.relevance / top)).toFixed(3);
  const kind = (w) => (w.word === model.words[view.word] ? 'found' : null);
  return words.map((w) => h('li', { class: kind(w), style: { '--size': size(w) } }, w.word));
};

// Words that move the prediction are known for one value: the first target, or that which the topic has most effect for.
const movedRow = (topic) => (task === 'regression' ? 0 : argmax(effects.map((row) => row[topic])));
const movingNodes = (topic) => {
  if (!effects.length || rowOf(topic) !== movedRow(topic)) return [];
  const line = (kind, label, words) => (words.length
    ? h('p', { class: 'moving' }, h('span', { class: kind }, label), ' ', inLine(words)) : null);
  return present(line('up', 'raise', topics.raising[topic]), line('down', 'lower', topics.lowering[topic]));
};

const effectNodes = (topic, axis, largest) => {
  const row = rowOf(topic);
  const ends = rangeOf(row, topic);
  const value = effects[row][topic];
  const lowest = range(effects.length).sort((a, b) => effects[a][topic] - effects[b][topic]).slice(0, 2);
  const against = view.row === STRONGEST && task === 'classification' ? lowest.filter((r) => effects[r][topic] < 0) : [];
  return present(
    h('p', { class: `effect ${side(value, largest)}` },
      signed(value, largest), ' ', h('small', {}, swatchOf(row), effectUnit(row))),
    sidedBar(value, axis, ends),
    ends && h('p', { class: 'range-text number' }, `8 of 10 texts: ${rangeText(ends, largestOf(axis))}`),
    against.length ? h('p', { class: 'against' }, `against ${listed(against.map((r) => effectNames[r]))}`) : null);
};

const rangeText = (ends, largest) => ends.map((end) => fixed(end, decimalsFor(largest))).join(' to ');

const quoted = (document) => {
  const about = present(
    `${percent(document.share)} of it is this topic`,
    document.truth === null ? null : `truth ${document.truth}`,
    document.prediction === null ? null : `predicted ${document.prediction}`);
  return h('blockquote', {}, document.text, h('footer', {}, about.join(' \u00b7 ')));
};

const detailNodes = (topic) => {
  const words = wordsOf(topic, view.relevance, WORDS_IN_DETAIL);
  const top = Math.max(...words.map((w) => w.probability));
  const tick = (w) => (w.probability / w.lift <= top ? w.probability / w.lift / top : null);
  const documents = data.documents?.[topic] ?? [];
  const rows = range(effects.length).sort((a, b) => effects[b][topic] - effects[a][topic]);
  return present(
    h('h4', {}, 'How often its words occur; the mark is the whole corpus'),
    h('ul', { class: 'bars' }, ...words.map((w) =>
      h('li', {}, h('span', { class: 'named' }, w.word), bar(w.probability / top, tick(w)),
        h('span', { class: 'number' }, rate(w.probability))))),
    several ? h('h4', {}, `Effect on each ${noun}`) : null,
    several ? sidedRows(rows.map((row) => (
      { name: effectNames[row], effect: effects[row][topic], ends: rangeOf(row, topic) }))) : null,
    documents.length ? h('h4', {}, 'Documents that show it best') : null,
    documents.map(quoted));
};

const makeCard = (topic) => {
  const summaryText = data.documents?.[topic].length ? 'Details and documents' : 'Details';
  const card = {
    words: h('ul', { class: model.definition?.bigrams ? 'words phrases' : 'words', 'aria-label': `Words of topic ${topic}` }),
    effect: h('div'),
    moving: h('div'),
    here: h('p', { class: 'here' }),
    details: h('div'),
  };
  card.fillDetails = () => {
    if (card.more.open) card.details.replaceChildren(...detailNodes(topic));
  };
  card.more = h('details', { class: 'more', toggle: card.fillDetails },
    h('summary', {}, summaryText, h('span', { class: 'unseen' }, ` of topic ${topic}`)), card.details);
  card.node = h('article', { class: 'topic', id: `topic-${topic}`, tabindex: -1, 'aria-labelledby': `topic-${topic}-title` },
    h('header', {},
      h('div', { class: 'title' },
        h('h3', { id: `topic-${topic}-title` }, `Topic ${topic}`),
        h('span', { class: 'share number' }, `${percent(shares[topic])} of the corpus`)),
      effects.length ? card.effect : bar(shares[topic] / Math.max(...shares))),
    h('div', {}, card.words, card.moving, card.here),
    card.more);
  return card;
};

const whereFound = (word) => {
  const all = range(nTopics).sort((a, b) => probabilityIn(b, word) - probabilityIn(a, word));
  const [top, overall] = [probabilityIn(all[0], word), model.frequencies[word]];
  const row = (topic) =>
    h('li', {}, topicLink(topic), bar(probabilityIn(topic, word) / top, overall / top),
      h('span', { class: 'number' },
        `${rate(probabilityIn(topic, word))} \u00b7 ${number(timesCorpus(topic, word), 2)}\u00d7`));
  return present(
    h('p', {}, h('strong', {}, model.words[word]), ` is ${rate(overall)} of all words (the mark). In the topics:`),
    h('ul', { class: 'bars' }, ...all.slice(0, MOST_ROWS).map(row)),
    all.length > MOST_ROWS
      ? h('p', { class: 'note' },
        `In the other ${all.length - MOST_ROWS} topics at most ${rate(probabilityIn(all[MOST_ROWS], word))}.`)
      : null);
};

const frequencyText = (topic) => {
  const { word } = view;
  const times = number(timesCorpus(topic, word), 2);
  return `${model.words[word]}: ${rate(probabilityIn(topic, word))} of this topic\u2019s words, ${times} times the corpus`;
};

const likeWord = (typed) => {
  const begin = model.words.filter((word) => word.startsWith(typed));
  return [...begin, ...model.words.filter((word) => !word.startsWith(typed) && word.includes(typed))].slice(0, 6);
};

const topicsIntroduction = () => {
  const strip = 'The strip is the corpus: each topic as wide as its share of it';
  if (task === 'topics') return `A topic is a set of words that go together. ${strip}.`;
  const coloured = several && task !== 'regression' && effects.length <= MOST_COLOURS
    ? `the ${noun} that it speaks for most` : 'its effect';
  const what = task === 'regression' ? 'the prediction'
    : isBinary ? `the log odds of ${outputs[1]}`
      : task === 'multilabel' ? 'the log odds of a label' : 'the log probability of a class';
  const does = ranges
    ? `Its effect is how far its words move ${what} of a text: a bar is the mean over texts, `
      + 'a thin line reaches over 8 of 10 texts. Some of its words raise it, others lower it.'
    : `Its effect is how far ${what} of a text of this topic alone is from that of the average text.`;
  return `A topic is a set of words that go together. ${does} ${strip}, coloured by ${coloured}.`;
};

const stripEnds = () => {
  if (view.sort === 'share') return ['large share', 'small share'];
  if (view.row === STRONGEST) return [`by ${noun}, strongest first`, ''];
  return isBinary ? [`\u25c0 for ${outputs[1]}`, `for ${outputs[0]} \u25b6`] : ['\u25c0 raises', 'lowers \u25b6'];
};

// Set by the section of topics; links to topics are made before and after it.
let chooseTopic = () => {};

const makeTopics = () => {
  const cards = range(nTopics).map(makeCard);
  const list = h('div', { class: 'list' });
  const rest = h('details', { class: 'small-topics' });
  const strip = h('div', {
    class: 'strip', role: 'group', 'aria-label': 'The corpus: each topic as wide as its share',
    // Gaps take a fifth of the strip at most.
    style: { '--gap': `${(20 / nTopics).toFixed(3)}%` },
  });
  const ends = h('p', { class: 'strip-ends' });
  const colours = h('ul', { class: 'colours', 'aria-label': 'Colours of the strip and the map' });
  const map = h('div');
  const mapNote = h('p', { class: 'note map-note' });
  const found = h('div', { class: 'found-in', role: 'status', hidden: true });
  const work = slices();
  const onStripOrMap = (topic) => present([strip, map].map((group) => group.querySelector(`[data-topic="${topic}"]`)));

  const fillWords = (topic) => {
    cards[topic].words.replaceChildren(...wordItems(topic));
    cards[topic].fillDetails();
  };
  // Topics on the screen first.
  const refill = () => {
    const isVisible = cards.map(({ node }) => {
      const box = node.getBoundingClientRect();
      return box.height > 0 && box.bottom > 0 && box.top < innerHeight;
    });
    const order = topicOrder().sort((a, b) => isVisible[b] - isVisible[a] || isSmall(a) - isSmall(b));
    work(order.map((topic) => () => fillWords(topic)));
  };

  // Names that do not fit are left out.
  const fitNames = () => {
    const room = strip.clientWidth;
    for (const part of strip.children) {
      part.firstChild.classList.toggle('unseen', part.textContent.length * 8 + 16 > shares[part.dataset.topic] * room);
    }
  };
  const stripPart = (topic, largest) =>
    h('button', {
      type: 'button', 'data-topic': topic, tabindex: -1, title: titleOf(topic), 'aria-label': titleOf(topic),
      style: { width: onPercent(shares[topic]), 'flex-grow': shares[topic], background: colourOf(topic, largest) },
      click: () => chooseTopic(topic),
    }, h('span', { class: 'unseen' }, names[topic]));
  const drawStrip = (shown, largest) => {
    strip.replaceChildren(...shown.map((topic) => stripPart(topic, largest)));
    fitNames();
    charts.roving(strip, [...strip.children]);
    ends.replaceChildren(...stripEnds().map((text) => h('span', {}, text)));
    const spokenFor = isByRow() ? [...new Set(shown.map(rowOf))].sort((a, b) => a - b) : [];
    colours.replaceChildren(...spokenFor.map((row) => h('li', {}, swatch(row), effectNames[row])));
    colours.hidden = !spokenFor.length;
  };
  const drawMap = (shown, largest) => {
    const coloured = !effects.length ? '' : isByRow() ? `, the colour the ${noun} that a topic speaks for most`
      : ', the colour the effect';
    mapNote.textContent = 'Near topics have words in common; they are moved apart where they would hide each other. '
      + `The area is the share${coloured}.`;
    const circles = shown.map((topic) => ({
      topic, at: topics.map[topic], share: shares[topic], colour: colourOf(topic, largest),
      name: names[topic], title: titleOf(topic), state: () => stateOfTopic(topic),
    }));
    const label = 'Map of topics: near ones have words in common; the area is the share. Arrow keys move, Enter selects.';
    map.replaceChildren(responsive(charts.topicMap({ topics: circles, label, select: (topic) => chooseTopic(topic) })));
  };

  const arrange = () => {
    const order = topicOrder();
    const values = order.map(effectOf);
    const axis = withZero([...values, ...order.flatMap((topic) => rangeOf(rowOf(topic), topic) ?? [])]);
    const largest = largestOf(values);
    const [large, small] = [order.filter((topic) => !isSmall(topic)), order.filter(isSmall)];
    if (effects.length) {
      order.forEach((topic) => {
        cards[topic].effect.replaceChildren(...effectNodes(topic, axis, largest));
        cards[topic].moving.replaceChildren(...movingNodes(topic));
      });
    }
    list.replaceChildren(...large.map((topic) => cards[topic].node));
    if (small.length) {
      const [has, each] = small.length === 1 ? ['has', ''] : ['have', ' each'];
      const text = `${count(small.length, 'topic')} ${has} less than ${SMALL_PERCENT}\u00a0% of the corpus${each}`;
      rest.replaceChildren(h('summary', {}, text), ...small.map((topic) => cards[topic].node));
      list.append(rest);
    }
    drawStrip(order, largest);
    drawMap(order, largest);
    refill();
  };

  chooseTopic = (topic) => {
    onStripOrMap(view.chosen).forEach((node) => node.classList.remove('chosen'));
    cards[view.chosen]?.node.classList.remove('chosen');
    view.chosen = topic;
    if (isSmall(topic)) rest.open = true;
    [cards[topic].node, ...onStripOrMap(topic)].forEach((node) => node.classList.add('chosen'));
    cards[topic].node.scrollIntoView({ block: 'center', behavior: isCalm() ? 'auto' : 'smooth' });
    cards[topic].node.focus({ preventScroll: true });
    history.replaceState(null, '', `#topic-${topic}`);
  };

  const suggestion = (word) => h('button', {
    type: 'button', class: 'quiet',
    click: () => {
      searchBox.value = word;
      search();
      searchBox.focus();
    },
  }, word);
  const suggestions = (typed) => {
    const near = likeWord(typed);
    const text = `The page has no word ${near.length ? '' : 'like '}\u201c${typed}\u201d.${near.length ? ' It has:' : ''}`;
    return [h('p', {}, text), ...near.map(suggestion)];
  };
  const search = () => {
    const given = searchBox.value.trim();
    const typed = data.model.definition?.lowercase === false ? given : given.toLowerCase();
    view.word = model.numbers.get(typed) ?? -1;
    cards.forEach(({ node, here }, topic) => {
      [node, ...onStripOrMap(topic)].forEach((part) => part.classList.toggle('searched', isFound(topic)));
      here.textContent = isFound(topic) ? frequencyText(topic) : '';
    });
    refill();
    found.hidden = typed === '';
    found.replaceChildren(...(typed === '' ? [] : view.word >= 0 ? whereFound(view.word) : suggestions(typed)));
  };

  const searchBox = h('input', {
    type: 'search', id: 'search', autocomplete: 'off', spellcheck: 'false', placeholder: names[topics.order[0]],
    input: search,
  });
  const slide = onceAFrame(refill);
  const slider = h('input', {
    type: 'range', id: 'relevance', min: 0, max: 1, step: 0.05, value: DEFAULT_RELEVANCE, 'aria-describedby': 'relevance-ends',
    input: () => {
      view.relevance = +slider.value;
      slide();
    },
  });
  const sorts = [['effect', 'effect'], ['share', 'share of the corpus']];
  const rows = effectNames.map((name, i) => [i, name]);
  if (task !== 'regression') rows.unshift([STRONGEST, 'what it speaks for most']);
  const tools = present(
    effects.length ? field('sort', 'Order by', select('sort', sorts, (value) => { view.sort = value; arrange(); })) : null,
    several ? field('row', 'Effect on', select('row', rows, (value) => { view.row = +value; arrange(); })) : null,
    h('div', { class: 'field' }, h('label', { for: 'relevance' }, 'Words by'), slider,
      h('div', { class: 'slider-ends', id: 'relevance-ends' },
        h('span', {}, 'only in this topic'), h('span', {}, 'most frequent'))),
    field('search', 'Find a word', searchBox));

  place('topics').append(heading('topics', 'Topics'), h('p', { class: 'note' }, topicsIntroduction()), strip, ends, colours,
    h('div', { class: 'tools' }, ...tools),
    h('div', { class: 'columns-2' },
      h('div', { class: 'side' }, found, map, mapNote), list));
  const hover = (isOver) => (event) => {
    const topic = event.target.closest?.('.topic')?.id.slice('topic-'.length);
    map.querySelector(`[data-topic="${topic}"]`)?.classList.toggle('hovered', isOver);
  };
  list.addEventListener('pointerover', hover(true));
  list.addEventListener('pointerout', hover(false));
  new ResizeObserver(fitNames).observe(strip);
  arrange();
  const linked = /^#topic-(\d+)$/.exec(location.hash);
  if (linked && linked[1] < nTopics) requestAnimationFrame(() => chooseTopic(+linked[1]));
};
