'use strict';

// Elements and charts: pure functions from values to nodes. Text always goes in as text, never as markup; colours come from
// the style sheet's variables, so that charts follow the theme.
const charts = (() => {
  const SVG = 'http://www.w3.org/2000/svg';
  // As many distinct values are shown one by one.
  const FEW_LEVELS = 20;

  const filled = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name === 'style') Object.entries(value).forEach(([key, v]) => node.style.setProperty(key, v));
      else if (typeof value === 'function') node.addEventListener(name, value);
      else node.setAttribute(name, value === true ? '' : value);
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return node;
  };
  const element = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
  const shape = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

  // Numbers for people: a true minus sign, and as many digits as the largest of a set needs.

  const minus = (text) => (/[1-9]/.test(text) ? text.replace('-', '\u2212') : text.replace('-', ''));
  const decimalsFor = (largest, digits = 3) =>
    largest > 1e-6 ? Math.min(6, Math.max(0, digits - 1 - Math.floor(Math.log10(largest)))) : digits - 1;
  const fixed = (value, decimals) =>
    minus(value.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals }));
  const number = (value, digits = 3) => fixed(value, decimalsFor(Math.abs(value), digits));
  const signed = (value, largest = Math.abs(value)) => {
    const text = fixed(Math.abs(value), decimalsFor(largest));
    return (/[1-9]/.test(text) ? (value < 0 ? '\u2212' : '+') : '\u00b1') + text;
  };
  // What a printed number says of its sign: nothing, where it is zero.
  const side = (value, largest = Math.abs(value)) => ({ '+': 'up', '\u2212': 'down', '\u00b1': 'even' }[signed(value, largest)[0]]);
  const percent = (value) => {
    if (value > 0 && value < 0.0005) return '< 0.1\u00a0%';
    return `${fixed(100 * value, value < 0.0995 ? 1 : 0)}\u00a0%`;
  };

  const linear = ([low, high], [from, to]) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);

  const ticks = (low, high, n) => {
    const rough = (high - low) / Math.max(1, n) || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
    const first = Math.ceil(low / step - 1e-9);
    const last = Math.floor(high / step + 1e-9);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step);
  };

  const tickText = (value, all) => fixed(value, decimalsFor(Math.abs(all[1] - all[0]) || 1, 1));

  const extent = (values) =>
    values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);

  // From neutral at zero to the colour of the sign at the largest effect.
  const tint = (value, largest) => {
    const strength = Math.round(100 * Math.min(1, Math.sqrt(Math.abs(value) / (largest || 1))));
    return `color-mix(in oklab, var(${value < 0 ? '--down' : '--up'}) ${strength}%, var(--neutral))`;
  };

  // One of n colours for things without an order: those that follow each other are far apart on the wheel, those near each
  // other there differ in lightness, which the style sheet sets for each theme.
  const hue = (i, n) => {
    const step = Array.from({ length: n }, (_, k) => Math.round(0.38 * n) + k).find((k) => k > 0 && gcd(k, n) === 1) ?? 1;
    const place = (i * step) % n;
    return `oklch(var(--tone-${place % 3}) ${((360 * place) / n + 25).toFixed(1)})`;
  };
  const gcd = (a, b) => (b ? gcd(b, a % b) : a);

  // `draw` is called with the width there is, and again when that changes.
  const responsive = (draw, attributes = {}) => {
    const place = element('div', { class: 'chart', ...attributes });
    let width = 0;
    const redraw = () => {
      const found = Math.floor(place.clientWidth);
      if (found < 40 || found === width) return;
      width = found;
      place.replaceChildren(draw(width));
    };
    new ResizeObserver(redraw).observe(place);
    return place;
  };

  const canvas = (width, height, label, ...children) =>
    shape('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label }, ...children);

  // Axes with light grid lines; what is drawn goes over them.
  const frame = (width, height, { x, y, label, left = 44, top = 22 }, paint) => {
    const [right, bottom] = [20, 38];
    const toX = linear(x.domain, [left, width - right]);
    const toY = linear(y.domain, [height - bottom, top]);
    const axis = shape('g', { class: 'axis' });
    const marks = (side, n) => side.ticks ?? ticks(...side.domain, n);
    const text = (side, value, all) => (side.format ? side.format(value) : tickText(value, all));
    const across = marks(x, Math.max(2, Math.min(8, width / 70)));
    for (const value of across) {
      axis.append(
        shape('line', { x1: toX(value), x2: toX(value), y1: top, y2: height - bottom }),
        shape('text', { x: toX(value), y: height - bottom + 15, 'text-anchor': 'middle' }, text(x, value, across)),
      );
    }
    const up = marks(y, Math.max(2, Math.min(6, height / 55)));
    for (const value of up) {
      axis.append(
        shape('line', { x1: left, x2: width - right, y1: toY(value), y2: toY(value) }),
        shape('text', { x: left - 7, y: toY(value) + 4, 'text-anchor': 'end' }, text(y, value, up)),
      );
    }
    axis.append(
      shape('text', { x: width - right, y: height - 5, 'text-anchor': 'end', class: 'name' }, x.name ?? ''),
      shape('text', { x: 0, y: 11, class: 'name' }, y.name ?? ''),
    );
    return canvas(width, height, label, axis, ...paint(toX, toY));
  };

  const path = (xs, ys, toX, toY) =>
    xs.map((x, i) => `${i ? 'L' : 'M'}${toX(x).toFixed(1)},${toY(ys[i]).toFixed(1)}`).join('');

  const padded = ([low, high], part = 0.04) => {
    const room = (high - low || Math.abs(high) || 1) * part;
    return [low - room, high + room];
  };

  // The fractional parts of multiples of the golden ratio: spread, and the same every time.
  const spread = (i) => ((i * 0.6180339887) % 1) - 0.5;

  const scatter = ({ truth, predicted, name }) => (width) => {
    const levels = [...new Set(truth)].sort((a, b) => a - b);
    const gap = levels.length > 1 ? Math.min(...levels.slice(1).map((v, i) => v - levels[i])) : 1;
    const jitter = levels.length <= FEW_LEVELS ? 0.6 * gap : 0;
    const all = padded(extent([...truth, ...predicted]));
    const domain = [Math.min(all[0], levels[0] - jitter), Math.max(all[1], levels.at(-1) + jitter)];
    const label = `Predicted ${name} against the true value for ${truth.length} documents; on the diagonal both are equal.`;
    const sides = { x: { domain, name: 'true' }, y: { domain, name: 'predicted' }, label };
    return frame(width, Math.min(width, 420), sides, (toX, toY) => [
      shape('path', { class: 'diagonal', d: path(domain, domain, toX, toY) }),
      shape('g', { class: 'points' }, ...truth.map((value, i) =>
        shape('circle', { r: 2.6, cx: toX(value + jitter * spread(i)).toFixed(1), cy: toY(predicted[i]).toFixed(1) }))),
    ]);
  };

  const histogram = ({ edges, counts, name }) => (width) => {
    const height = Math.min(width, 420);
    const label = `Errors of the predicted ${name}: how many documents lie how far from the truth.`;
    const sides = {
      x: { domain: [edges[0], edges.at(-1)], name: 'predicted minus true' },
      y: { domain: [0, Math.max(...counts) * 1.05 || 1], name: 'documents' },
      label,
    };
    return frame(width, height, sides, (toX, toY) => [
      shape('g', { class: 'columns' }, ...counts.map((count, i) =>
        shape('rect', {
          x: toX(edges[i]) + 0.5,
          width: Math.max(0.5, toX(edges[i + 1]) - toX(edges[i]) - 1),
          y: toY(count),
          height: toY(0) - toY(count),
        }))),
      edges[0] < 0 && edges.at(-1) > 0
        ? shape('line', { class: 'zero', x1: toX(0), x2: toX(0), y1: toY(0), y2: toY(sides.y.domain[1]) })
        : null,
    ]);
  };

  // Lines over a unit square: ROC and calibration. The chosen one stands out; without a choice all do.
  const square = ({ lines, chosen, x, y, label }) => (width) => {
    const unit = { domain: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 1], format: (v) => `${Math.round(100 * v)} %` };
    const style = (line) => {
      if (lines.length === 1 || line.name === chosen) return 'line chosen';
      return chosen === null ? 'line' : 'line faint';
    };
    const inOrder = [...lines].sort((a, b) => (a.name === chosen) - (b.name === chosen));
    const sides = { x: { ...unit, name: x }, y: { ...unit, name: y }, label, left: 48 };
    return frame(width, Math.min(width, 420), sides, (toX, toY) => [
      shape('path', { class: 'diagonal', d: path([0, 1], [0, 1], toX, toY) }),
      ...inOrder.map((line) => {
        const largest = Math.max(1, ...(line.counts ?? []));
        const radius = (n) => 2 + 4 * Math.sqrt(n / largest);
        const dot = (value, i) => shape('circle', { class: 'dot', cx: toX(value), cy: toY(line.ys[i]), r: radius(line.counts[i]) });
        const dots = line.counts && style(line) === 'line chosen' ? line.xs.map(dot) : [];
        const curve = shape('path', { class: style(line), d: path(line.xs, line.ys, toX, toY) }, shape('title', {}, line.name));
        return shape('g', {}, curve, ...dots);
      }),
    ]);
  };

  const epochs = ({ series, label }) => (width) => {
    const domain = padded(extent(series.flatMap((s) => s.values.filter(Number.isFinite))), 0.08);
    const longest = Math.max(...series.map((s) => s.values.length));
    const last = Math.max(2, longest);
    const x = { domain: [1, last], name: 'epoch', format: (v) => fixed(v, 0) };
    x.ticks = ticks(1, last, Math.min(8, width / 60)).filter(Number.isInteger);
    const sides = { x, y: { domain }, label, left: 52 };
    return frame(width, Math.min(width * 0.75, 260), sides, (toX, toY) =>
      series.map((s, i) => {
        const known = s.values.map((v, e) => [e + 1, v]).filter(([, v]) => Number.isFinite(v));
        const [epoch, value] = known.at(-1);
        return shape('g', { class: i ? 'second' : 'first' },
          shape('path', { class: 'line chosen', d: path(known.map((p) => p[0]), known.map((p) => p[1]), toX, toY) }),
          shape('circle', { class: 'dot', r: 3.5, cx: toX(epoch), cy: toY(value) }));
      }));
  };

  // Values with intervals on one axis, a row each.
  const intervals = ({ rows, label }) => (width) => {
    const domain = padded(extent(rows.flatMap((row) => [row.low, row.high, row.value])), 0.08);
    const top = 4;
    const step = 44;
    const height = top + rows.length * step + 26;
    const toX = linear(domain, [6, width - 6]);
    const marks = ticks(...domain, Math.min(6, width / 80));
    const axis = shape('g', { class: 'axis' }, ...marks.flatMap((value) => [
      shape('line', { x1: toX(value), x2: toX(value), y1: top, y2: height - 24 }),
      shape('text', { x: toX(value), y: height - 8, 'text-anchor': 'middle' }, tickText(value, marks)),
    ]));
    return canvas(width, height, label, axis, ...rows.map((row, i) => {
      const y = top + i * step + 30;
      const isRight = toX(row.value) > width / 2;
      return shape('g', { class: row.isMain ? 'interval main' : 'interval' },
        shape('line', { x1: toX(row.low), x2: toX(row.high), y1: y, y2: y }),
        // Caps higher than the dot, which covers a short interval.
        ...[row.low, row.high].map((end) => shape('line', { class: 'cap', x1: toX(end), x2: toX(end), y1: y - 8, y2: y + 8 })),
        shape('circle', { cx: toX(row.value), cy: y, r: row.isMain ? 5 : 4 }),
        shape('text', { x: isRight ? width - 6 : 6, y: y - 13, 'text-anchor': isRight ? 'end' : 'start' }, row.name));
    }));
  };

  // Where a number lies: what was seen as bars above the axis, the usual error as a band, the value as a marker.
  const scaleLine = ({ seen, value, error, name }) => (width) => {
    const [low, high] = padded(extent([...seen, value]), 0.03);
    const levels = new Set(seen);
    const n = levels.size <= FEW_LEVELS ? 0 : 32;
    const toX = linear([low, high], [8, width - 8]);
    const [base, height] = [52, 74];
    const counts = new Map();
    for (const v of seen) {
      const at = n ? low + (Math.floor(((v - low) / (high - low)) * n) + 0.5) * ((high - low) / n) : v;
      counts.set(at, (counts.get(at) ?? 0) + 1);
    }
    const largest = Math.max(1, ...counts.values());
    const thick = n ? (width - 16) / n - 1 : Math.min(26, (0.5 * width) / levels.size);
    const marks = ticks(low, high, Math.min(8, width / 60));
    const [from, to] = [value - error, value + error].map((v) => toX(Math.max(low, Math.min(high, v))));
    return canvas(width, height, `${name}: ${number(value)} on a scale from ${number(low)} to ${number(high)}.`,
      shape('g', { class: 'columns soft' }, ...[...counts].map(([at, count]) => {
        const tall = 30 * (count / largest);
        return shape('rect', { x: toX(at) - thick / 2, width: thick, y: base - tall, height: tall, rx: 1 });
      })),
      error ? shape('rect', { class: 'band', x: from, width: to - from, y: base - 3, height: 6, rx: 3 }) : null,
      shape('g', { class: 'axis' },
        shape('line', { class: 'base', x1: 8, x2: width - 8, y1: base, y2: base }),
        ...marks.map((v) => shape('text', { x: toX(v), y: base + 18, 'text-anchor': 'middle' }, tickText(v, marks)))),
      shape('line', { class: 'marker', x1: toX(value), x2: toX(value), y1: 8, y2: base }),
      shape('circle', { class: 'marker', cx: toX(value), cy: base, r: 6 }));
  };

  // Circles pushed apart until they overlap by a tenth at most, and held inside the frame; the same every time.
  const apart = (circles, width, height) => {
    const inside = (v, r, size) => Math.max(r + 4, Math.min(size - r - 16, v));
    for (let turn = 0; turn < 120; turn += 1) {
      for (const [i, a] of circles.entries()) {
        for (const [j, b] of circles.entries()) {
          if (j <= i) continue;
          const [dx, dy] = [b.x - a.x || 0.01 * (j - i), b.y - a.y || 0.01];
          const distance = Math.hypot(dx, dy);
          const push = (0.9 * (a.r + b.r) + 2 - distance) / 2;
          if (push <= 0) continue;
          const part = b.r / (a.r + b.r);
          [a.x, a.y] = [a.x - 2 * part * push * (dx / distance), a.y - 2 * part * push * (dy / distance)];
          [b.x, b.y] = [b.x + 2 * (1 - part) * push * (dx / distance), b.y + 2 * (1 - part) * push * (dy / distance)];
        }
      }
      for (const c of circles) [c.x, c.y] = [inside(c.x, c.r, width), inside(c.y, c.r, height)];
    }
    return circles;
  };

  // Circles whose area is the share; names of the largest, where they have room.
  const topicMap = ({ topics, label, select }) => (width) => {
    const [left, right] = extent(topics.map((t) => t.at[0]));
    const [bottom, top] = extent(topics.map((t) => t.at[1]));
    const height = Math.round(width * Math.max(0.62, Math.min(1, (top - bottom) / (right - left || 1))));
    const scale = Math.min((width - 60) / (right - left || 1), (height - 60) / (top - bottom || 1));
    const circles = apart([...topics].sort((a, b) => a.topic - b.topic).map((t) => ({
      x: width / 2 + scale * (t.at[0] - (left + right) / 2),
      y: height / 2 - scale * (t.at[1] - (bottom + top) / 2),
      r: Math.max(5, Math.sqrt((0.24 * t.share * width * height) / Math.PI)),
      ...t,
    })), width, height).sort((a, b) => b.r - a.r);
    const taken = [];
    const nodes = circles.map((c) => {
      const circle = shape('circle', { cx: c.x, cy: c.y, r: c.r, style: { fill: c.colour } });
      const half = c.name.length * 3.5 + 3;
      const x = Math.max(half, Math.min(width - half, c.x));
      const isFree = (y) =>
        y > 10 && y < height - 2 && taken.every((t) => Math.abs(t.x - x) > t.half + half || Math.abs(t.y - y) > 13);
      const isOn = (o, y) =>
        Math.hypot(o.x - Math.max(x - half, Math.min(x + half, o.x)), o.y - Math.max(y - 9, Math.min(y, o.y))) < o.r - 2;
      const outside = [c.y + c.r + 12, c.y - c.r - 4].filter((y) => !circles.some((o) => o !== c && isOn(o, y)));
      // Better over its neighbours than without a name, unless the name would hide the circle.
      const inside = (most) => (half < most * c.r ? [c.y + 4] : []);
      const y = [...inside(1.15), ...outside, ...inside(2.5)].find(isFree);
      if (y !== undefined) taken.push({ x, y, half });
      const text = y === undefined ? null : shape('text', { x, y, 'text-anchor': 'middle' }, c.name);
      return { topic: c.topic, title: c.title, state: c.state(), circle, text };
    });
    const links = new Map(nodes.map((n) => [n.topic, shape('a', {
      href: `#topic-${n.topic}`, class: n.state, 'data-topic': n.topic, tabindex: -1, 'aria-label': n.title,
      click: (event) => {
        event.preventDefault();
        select(n.topic);
      },
    }, n.circle, shape('title', {}, n.title))]));
    const size = { width, height, viewBox: `0 0 ${width} ${height}` };
    const map = shape('svg', { ...size, role: 'group', 'aria-label': label, class: 'map' },
      ...links.values(), shape('g', { class: 'names', 'aria-hidden': 'true' }, ...nodes.map((n) => n.text)));
    roving(map, topics.map((t) => links.get(t.topic)));
    return map;
  };

  // One stop for Tab, arrow keys between the items.
  const roving = (group, items) => {
    const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const enter = (item) => items.forEach((other) => other.setAttribute('tabindex', other === item ? 0 : -1));
    if (items.length) enter(items[0]);
    group.addEventListener('keydown', (event) => {
      const at = items.indexOf(document.activeElement);
      if (at < 0 || !(event.key in moves)) return;
      event.preventDefault();
      const next = items[(at + moves[event.key] + items.length) % items.length];
      enter(next);
      next.focus();
    });
  };

  return {
    FEW_LEVELS, element, number, signed, fixed, decimalsFor, percent, extent, side, tint, hue, responsive, roving,
    scatter, histogram, square, epochs, intervals, scaleLine, topicMap,
  };
})();
