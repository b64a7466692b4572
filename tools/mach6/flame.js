// flame.js - what the flame graph does in a browser: zoom, search, details. export_flame.c puts it into the picture that it draws,
// which can be read without it. Nothing is fetched.
//
// A frame is a group of a title (its name is the first line), a rectangle and a text. Its x and width in the file are shares of BASE;
// its y says how deep it is, and never changes. The first frame is all of it.
(function () {
  'use strict';
  var BASE = 1200, NEAR = 0.001, LETTER = 6.7;
  var details = document.getElementById('details'), found = document.getElementById('found');
  var find = document.getElementById('find'), reset = document.getElementById('reset');
  var frames = Array.prototype.map.call(document.querySelectorAll('#frames > g'), function (g) {
    var rect = g.querySelector('rect'), title = g.querySelector('title').textContent, lines = title.split('\n');
    // Of a function without a name ("module+0x12") the place says more than the module, where there is no room for both.
    var module = lines[1].split('  ')[0], nameless = lines[0].indexOf(module + '+0x') === 0;
    return {
      g: g, short: nameless ? lines[0].slice(module.length) : lines[0], rect: rect, text: g.querySelector('text'), title: title, name: lines[0], fill: rect.getAttribute('fill'),
      x: +rect.getAttribute('x'), y: +rect.getAttribute('y'), w: +rect.getAttribute('width')
    };
  });
  var zoomed = frames[0];

  function lay() {
    var width = Math.max(600, window.innerWidth || BASE), z = zoomed, scale = width / z.w;
    document.documentElement.setAttribute('width', width);
    document.documentElement.setAttribute('viewBox', '0 0 ' + width + ' ' + document.documentElement.getAttribute('height'));
    frames.forEach(function (f) {
      var inside = f.y >= z.y && f.x >= z.x - NEAR && f.x + f.w <= z.x + z.w + NEAR;
      var above = f.y < z.y && f.x <= z.x + NEAR && f.x + f.w >= z.x + z.w - NEAR;
      var x = above ? 0 : (f.x - z.x) * scale, w = above ? width : f.w * scale;
      f.g.style.display = inside || above ? '' : 'none';
      f.g.style.opacity = above ? 0.6 : 1;
      if (!inside && !above) return;
      f.rect.setAttribute('x', x);
      f.rect.setAttribute('width', w);
      f.text.setAttribute('x', x + 3);
      var letters = Math.floor((w - 6) / LETTER);
      var label = f.name.length <= letters ? f.name : f.short;
      f.text.textContent = letters < 3 ? '' : label.length <= letters ? label : label.slice(0, letters - 1) + '\u2026';
    });
    reset.style.display = z === frames[0] ? 'none' : '';
    document.getElementById('search').setAttribute('x', width - 260);
    reset.setAttribute('x', width - 360);
    found.setAttribute('x', width - 10);
  }

  // Frames come parents first: what lies within one that was found adds nothing to the share.
  function search() {
    var word = find.value.toLowerCase(), sum = 0, end = -1, count = 0;
    frames.forEach(function (f) {
      var hit = word !== '' && f !== frames[0] && f.title.toLowerCase().indexOf(word) >= 0;
      f.rect.setAttribute('fill', hit ? '#e600e6' : f.fill);
      if (!hit) return;
      count++;
      if (f.x + NEAR < end && f.x + f.w <= end + NEAR) return;
      sum += f.w;
      end = f.x + f.w;
    });
    found.textContent = word === '' ? '' : count + ' found, ' + (100 * sum / BASE).toFixed(1) + ' %';
  }

  function frame_of(target) {
    var g = target.closest ? target.closest('#frames > g') : null;
    return g ? frames[Array.prototype.indexOf.call(g.parentNode.children, g)] : null;
  }
  function zoom(f) {
    zoomed = f;
    lay();
  }

  document.getElementById('frames').addEventListener('click', function (e) {
    var f = frame_of(e.target);
    if (f) zoom(f);
  });
  document.getElementById('frames').addEventListener('mouseover', function (e) {
    var f = frame_of(e.target);
    if (f) details.textContent = f.title.replace(/\n/g, '   ');
  });
  reset.addEventListener('click', function () { zoom(frames[0]); });
  find.addEventListener('input', search);
  window.addEventListener('keydown', function (e) {
    if (e.key === 'Escape') {
      find.value = '';
      search();
      zoom(frames[0]);
    } else if (e.key === '/' && document.activeElement !== find) {
      find.focus();
      e.preventDefault();
    }
  });
  window.addEventListener('resize', lay);
  document.getElementById('search').style.display = '';
  lay();
})();
