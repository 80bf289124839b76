// What stands under the pointer, the finger or the arrow keys, for every line of a chart at once.
// Without it a page still shows everything but the numbers between the marks.
(() => {
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  tip.setAttribute('role', 'status');
  document.body.append(tip);
  const NS = 'http' + '://www.w3.org/2000/svg';
  const scale = (text) => {
    const [min, max, from, to, log] = text.split(' ').map(Number);
    return {
      from, to,
      value: (px) => {
        const part = (px - from) / (to - from);
        return log ? min * Math.pow(max / min, part) : min + part * (max - min);
      },
    };
  };
  const number = (v, digits) => v.toFixed(digits).replace('-', '\u2212');
  const addText = (node, text, colour) => {
    const row = document.createElement('div');
    if (colour) {
      const dot = document.createElement('span');
      dot.className = 'dot';
      dot.style.background = colour;
      row.append(dot);
    }
    row.append(text);
    node.append(row);
  };
  const nearest = (points, px) =>
    points.reduce((a, b) => (Math.abs(b[0] - px) < Math.abs(a[0] - px) ? b : a));

  for (const chart of document.querySelectorAll('svg.chart')) {
    const x = scale(chart.dataset.x);
    const y = scale(chart.dataset.y);
    const lines = [...chart.querySelectorAll('g.line')].map((group) => {
      const path = group.querySelector('polyline');
      const points = (path.getAttribute('points') || '').trim().split(/\s+/)
        .filter(Boolean).map((p) => p.split(',').map(Number));
      return { label: group.dataset.l, colour: path.getAttribute('stroke'), points };
    }).filter((line) => line.points.length);
    const marks = [...chart.querySelectorAll('g.p')].map((mark) => {
      const title = mark.querySelector('title');
      const text = title ? title.textContent : '';
      if (title) title.remove();
      const colour = (mark.querySelector('[stroke]') || mark).getAttribute('stroke');
      return { px: Number(mark.dataset.x), text, colour };
    }).filter((mark) => mark.text);
    const points = marks.length ? marks.map((m) => [m.px]) : lines.flatMap((l) => l.points);
    const stops = [...new Set(points.map((p) => p[0]))].sort((a, b) => a - b);
    if (!stops.length) continue;
    const rule = document.createElementNS(NS, 'path');
    rule.setAttribute('class', 'rule');
    chart.append(rule);
    let at = -1;

    const show = (px, left, top) => {
      tip.replaceChildren();
      if (marks.length) {
        const here = marks.filter((m) => Math.abs(m.px - px) < 14);
        for (const mark of here) addText(tip, mark.text, mark.colour);
      } else {
        addText(tip, `${chart.dataset.xn.split(',')[0]} ${number(x.value(px), px > 1e3 ? 0 : 1)}`);
        for (const line of lines) {
          const point = nearest(line.points, px);
          if (Math.abs(point[0] - px) > 12) continue;
          const value = number(y.value(point[1]), Number(chart.dataset.d));
          addText(tip, `${line.label}: ${value} ${chart.dataset.u}`.trim(), line.colour);
        }
      }
      if (!tip.childElementCount) return hide();
      rule.setAttribute('d', `M${px} ${y.to}V${y.from}`);
      tip.hidden = false;
      const wide = document.documentElement.clientWidth;
      tip.style.left = `${Math.max(4, Math.min(left + 14, wide - tip.offsetWidth - 4))}px`;
      tip.style.top = `${Math.max(window.scrollY + 4, top - tip.offsetHeight - 12)}px`;
    };
    const hide = () => {
      tip.hidden = true;
      rule.removeAttribute('d');
    };
    const place = (px) => {
      const box = chart.getBoundingClientRect();
      const ratio = box.width / chart.viewBox.baseVal.width;
      return [px, box.left + px * ratio + window.scrollX, box.top + y.to * ratio + window.scrollY];
    };
    const point = (event) => {
      const box = chart.getBoundingClientRect();
      const px = (event.clientX - box.left) * chart.viewBox.baseVal.width / box.width;
      if (px < x.from - 10 || px > x.to + 10) return hide();
      const stop = stops.reduce((a, b) => Math.abs(b - px) < Math.abs(a - px) ? b : a);
      at = stops.indexOf(stop);
      show(stop, event.pageX, event.pageY);
    };
    chart.addEventListener('pointermove', point);
    chart.addEventListener('pointerdown', point);
    chart.addEventListener('pointerleave', hide);
    chart.addEventListener('blur', hide);
    chart.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === 'Escape') return hide();
      if (!step) return;
      event.preventDefault();
      const far = step * Math.max(1, Math.round(stops.length / 120));
      at = Math.max(0, Math.min(stops.length - 1, at + far));
      show(...place(stops[at]));
    });
  }
})();
