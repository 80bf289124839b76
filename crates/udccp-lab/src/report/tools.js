// Beside each table and figure: copy its numbers as CSV, save its drawing as SVG. Without it a page
// still shows all of both.
(() => {
  const button = (label, act) => {
    const node = document.createElement('button');
    node.type = 'button';
    node.textContent = label;
    node.addEventListener('click', async () => {
      let outcome = label;
      try {
        outcome = await act();
      } catch {
        outcome = 'did not work';
      }
      node.textContent = outcome;
      setTimeout(() => { node.textContent = label; }, 1500);
    });
    return node;
  };
  const byHand = (text) => {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    if (!done) throw new Error('no clipboard');
  };
  const copy = async (text) => {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text).catch(() => byHand(text));
    } else {
      byHand(text);
    }
    return 'copied';
  };
  // What style sheets say of a drawing goes into the drawing: alone it has no style sheet.
  const KEPT = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity',
    'font-family', 'font-size', 'font-weight', 'text-anchor'];
  const alone = (svg) => {
    const out = svg.cloneNode(true);
    out.querySelectorAll('.rule').forEach((node) => node.remove());
    const from = [...svg.querySelectorAll('*')].filter((node) => !node.matches('.rule'));
    const into = [...out.querySelectorAll('*')];
    from.forEach((node, i) => {
      const style = getComputedStyle(node);
      for (const name of KEPT) into[i].style.setProperty(name, style.getPropertyValue(name));
    });
    const [, , width, height] = svg.getAttribute('viewBox').split(' ');
    out.setAttribute('width', width);
    out.setAttribute('height', height);
    out.style.background = getComputedStyle(document.body).backgroundColor;
    return new XMLSerializer().serializeToString(out);
  };
  const save = (figure, name) => {
    const shown = [...figure.querySelectorAll('svg.chart')].filter((svg) => svg.clientWidth > 0);
    shown.forEach((svg, i) => {
      const link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([alone(svg)], { type: 'image/svg+xml' }));
      link.download = shown.length > 1 ? `${name}-${i + 1}.svg` : `${name}.svg`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    return 'saved';
  };
  for (const part of document.querySelectorAll('[data-csv]')) {
    const numbers = part.querySelector('pre.csv');
    const heading = part.querySelector('h3');
    if (!numbers || !heading) continue;
    const tools = document.createElement('span');
    tools.className = 'tools';
    tools.append(button('copy as CSV', () => copy(numbers.textContent)));
    if (part.querySelector('svg.chart')) {
      tools.append(button('save SVG', async () => save(part, part.dataset.csv)));
    }
    heading.append(tools);
  }
})();
