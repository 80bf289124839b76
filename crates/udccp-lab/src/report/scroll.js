// Says of a table that is wider than the page that it goes on, and fades its edge while it does.
// Without it the table still scrolls, and the cut column shows that there is more.
(() => {
  const look = (box, hint) => {
    const right = box.scrollWidth - box.clientWidth - box.scrollLeft;
    box.classList.toggle('more', right > 4);
    hint.hidden = box.scrollWidth <= box.clientWidth + 4;
  };
  const boxes = [...document.querySelectorAll('.scroll')].map((box) => {
    const hint = document.createElement('p');
    hint.className = 'hint';
    hint.textContent = 'This table goes on to the right: scroll it sideways \u2192';
    box.before(hint);
    box.addEventListener('scroll', () => look(box, hint), { passive: true });
    return [box, hint];
  });
  const all = () => boxes.forEach(([box, hint]) => look(box, hint));
  addEventListener('resize', all);
  // A box that can be scrolled can be reached with the keyboard.
  boxes.forEach(([box]) => { box.tabIndex = box.scrollWidth > box.clientWidth + 4 ? 0 : -1; });
  all();
})();
