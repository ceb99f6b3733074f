// SPDX-License-Identifier: Apache-2.0
// Copyright The Holdfast authors
//
// Elements, formats, a keyed table and plots. Text from the server becomes text nodes; nothing here parses HTML. The content
// security policy forbids style attributes in markup: sizes are set by the CSS object model, colours by classes.

const SVG = 'http://www.w3.org/2000/svg';
export const CAUSES = ['application', 'infrastructure', 'device', 'planned'];
export const STAGES = [['detect', 'detect'], ['decide', 'decide'], ['down', 'stop pods'], ['start', 'start pods'], ['firstStep', 'first step']];

// ---- elements

function fill(node, classes, args) {
	const props = args[0]?.constructor === Object ? args.shift() : {};
	if (classes.length)
		node.setAttribute('class', classes.join(' '));
	for (const [name, value] of Object.entries(props)) {
		if (value == null || value === false)
			continue;
		if (name === 'css')
			Object.assign(node.style, value);
		else if (name.startsWith('on'))
			node.addEventListener(name.slice(2), value);
		else
			node.setAttribute(name, value === true ? '' : value);
	}
	node.append(...args.flat().filter(child => child != null && child !== false));
	return node;
}

// el('tag.class', {attribute: value, onclick: function, css: {width: '3%'}}, ...children): strings become text nodes.
export function el(spec, ...args) {
	const [tag, ...classes] = spec.split('.');
	return fill(document.createElement(tag), classes, args);
}

export function svg(spec, ...args) {
	const [tag, ...classes] = spec.split('.');
	return fill(document.createElementNS(SVG, tag), classes, args);
}

// Writes only a text that differs, so that an unchanged cell costs no layout and no announcement.
export function setText(node, text) {
	text = text == null ? '' : String(text);
	if (node.textContent !== text)
		node.textContent = text;
}

// Shows a paragraph that has a text, and hides one without.
export function setNote(node, text) {
	setText(node, text);
	node.hidden = !text;
}

export function setFlag(node, name, value) {
	if (value)
		node.setAttribute(name, value);
	else
		node.removeAttribute(name);
}

export const link = (href, text, spec = 'a') => el(spec, {href}, text);
export const button = (text, onclick, spec = 'button') => el(spec, {type: 'button', onclick}, text);
export const jobPath = job => '/j/' + [job.namespace, job.kind, job.name].map(encodeURIComponent).join('/');
export const nodePath = name => '/n/' + encodeURIComponent(name);

// A section with a heading that names it.
let sections = 0;

export function section(title, ...children) {
	const id = 'section-' + ++sections;
	return el('section', {'aria-labelledby': id}, el('h2', {id}, title), ...children);
}

// ---- time

let skew = 0; // milliseconds that the server's clock is ahead of this one

export function setServerTime(text) {
	skew = Date.parse(text) - Date.now() || 0;
}

export const now = () => Date.now() + skew;

// ---- formats: null is shown as a dash

export const NONE = '–';
const format = options => new Intl.NumberFormat('en', options);
const whole = format({maximumFractionDigits: 0});
const tenths = format({maximumFractionDigits: 1});
const fine = format({maximumSignificantDigits: 3});

export const count = value => value == null ? NONE : whole.format(value);
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? '' : 's'}`;
export const share = value => value == null ? NONE : (value * 100).toFixed(1) + '%';
export const sum = values => (values || []).reduce((total, value) => total + (value || 0), 0);

export function decimal(value) {
	if (value == null)
		return NONE;
	return (Math.abs(value) < 10 ? fine : Math.abs(value) < 100 ? tenths : whole).format(value);
}

const UNITS = [['d', 86400], ['h', 3600], ['m', 60], ['s', 1]];

// 3.2 s, 45 s, 4m12s, 2d4h
export function seconds(value) {
	if (value == null)
		return NONE;
	if (value < 60)
		return decimal(Math.max(0, value)) + ' s';
	const at = UNITS.findIndex(unit => value >= unit[1]);
	const [name, size] = UNITS[at];
	const [low, lowSize] = UNITS[at + 1];
	const rest = Math.floor(value % size / lowSize);
	return Math.floor(value / size) + name + (rest ? rest + low : '');
}

const times = options => new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit', ...options});
const day = {day: '2-digit', month: 'short'};
const full = times({year: 'numeric', ...day, second: '2-digit'});
const days = times(day);
const hours = times();
const clockTime = times({second: '2-digit'});
const DAY_MS = 72e6; // a time further back is shown with its day

export const when = text => text ? full.format(Date.parse(text)) : NONE;
export const age = text => text ? seconds(Math.max(0, Math.floor((now() - Date.parse(text)) / 1000))).replace(' ', '') : NONE;

// The clock of a moment, and the day if it is not today.
export function clock(text) {
	const at = Date.parse(text);
	return text ? (now() - at < DAY_MS ? clockTime : days).format(at) : NONE;
}

export const clockNode = text => el('time', {datetime: text, title: when(text)}, clock(text));

// Puts a <time> with an age into a cell; refreshAges renews it.
export function setAge(cell, text) {
	let time = cell.querySelector('time');
	if (!time)
		cell.replaceChildren(time = el('time.age'));
	time.dateTime = text || '';
	time.title = when(text);
	setText(time, age(text));
}

export function refreshAges(root) {
	for (const time of root.querySelectorAll('.age'))
		setText(time, age(time.dateTime));
}

// ---- states and causes: a word, a shape and a colour

const STATES = {};
for (const [shape, tone, words] of [
	['run', 'ok', 'Running Healthy Active Ready ok Live'],
	['done', 'ok', 'Succeeded Released Done Completed'],
	['turn', 'warn', 'Restarting Suspect Degraded silent Remediating Draining Held Warning Terminating Reconnecting'],
	['part', 'warn', 'Probation'],
	['stop', 'warn', 'Quarantined Cordoned'],
	['fail', 'bad', 'Failed Unhealthy Lost NotReady'],
	['stop', 'off', 'Suspended Paused'],
	['wait', 'off', 'Created Pending Waiting Unknown Connecting'],
	['none', 'off', 'none Normal'],
])
	for (const word of words.split(' '))
		STATES[word] = [shape, tone];

export const icon = (name, tone = '') => svg('svg.icon' + tone, {'aria-hidden': 'true', viewBox: '0 0 16 16'}, svg('use', {href: '#i-' + name}));

export function badge(word, shape, tone) {
	return el('span.state.' + tone, icon(shape), word);
}

export function stateBadge(state) {
	const word = (state || 'Unknown').replace('holdfast.dev/', '');
	return badge(word, ...STATES[word] || ['odd', 'off']);
}

export const setState = (cell, state) => cell.replaceChildren(stateBadge(state));

const box = name => el('i.swatch.' + name, {'aria-hidden': 'true'});
export const causeBadge = (cause, text) => el('span.cause', {title: cause}, box(cause), text);
export const legend = items => el('ul.legend', items.map(([mark, text]) => el('li', mark, text)));
export const causeLegend = () => legend(CAUSES.map(cause => [box(cause), cause]));
export const stageLegend = () => legend(STAGES.map(([, name], at) => [box('stage' + at), name]));

// ---- a table that keeps its rows: each item has a key, and a cell is drawn only when its value has changed

// column: [head, classes, value, draw]. value is a field's name or a function of the item; draw(cell, value, item) changes the
// cell, and without it the value is the cell's text. The class "row" makes the cell the row's header.
export class Table {
	constructor(caption, name, key, columns, empty) {
		this.columns = columns.map(([, classes, value, draw]) => ({classes, draw,
			value: typeof value === 'string' ? item => item[value] : value}));
		this.key = key;
		this.rows = new Map();
		this.body = el('tbody');
		this.table = el('table.' + name, {hidden: true}, el('caption.aside', caption), el('thead', el('tr', columns.map(([head, classes]) =>
			el('th', {scope: 'col', class: classes}, head)))), this.body);
		this.empty = el('p.empty', {hidden: true}, empty);
		this.node = el('div.sheet', {tabindex: -1}, this.table, this.empty);
		// A click beside a link opens the row.
		this.body.addEventListener('click', event => event.target.closest('a, button') || String(getSelection()) ||
			event.target.closest('tr').querySelector('.open')?.click());
	}

	make() {
		const cells = this.columns.map(({classes}) => classes?.includes('row') ? el('th', {scope: 'row', class: classes}) : el('td', {class: classes}));
		return {tr: el('tr', cells), cells, values: []};
	}

	draw(row, item) {
		this.columns.forEach((column, at) => {
			const value = column.value(item) ?? null;
			if (value === row.values[at])
				return;
			row.values[at] = value;
			if (column.draw)
				column.draw(row.cells[at], value, item);
			else
				setText(row.cells[at], value ?? NONE);
		});
	}

	// Redraws the row of an item if there is one. Returns the row.
	set(item) {
		const row = this.rows.get(this.key(item));
		if (row)
			this.draw(row, item);
		return row;
	}

	update(items) {
		const focused = this.body.contains(document.activeElement) ? document.activeElement : null;
		const place = focused && focused.closest('tr').sectionRowIndex;
		const keep = new Set(items.map(this.key));
		for (const [key, row] of this.rows)
			if (!keep.has(key)) {
				row.tr.remove();
				this.rows.delete(key);
			}
		let at = this.body.firstChild;
		for (const item of items) {
			const row = this.rows.get(this.key(item)) || this.make();
			this.rows.set(this.key(item), row);
			this.draw(row, item);
			if (row.tr === at)
				at = at.nextSibling;
			else
				this.body.insertBefore(row.tr, at);
		}
		this.table.hidden = !items.length;
		this.empty.hidden = items.length > 0;
		if (!focused || document.activeElement === focused)
			return;
		// A moved row loses the focus; if its row is gone, the row in its place gets the focus.
		const rows = this.body.rows;
		const next = focused.isConnected ? focused : rows[Math.min(place, rows.length - 1)]?.querySelector('.open');
		(next || this.node).focus({preventScroll: true});
	}
}

// A table that is the alternative of a plot, behind a disclosure. Its rows are arrays of texts.
export function dataTable(label, heads) {
	const table = new Table(label, 'plain', row => row[0], heads.map((head, at) => [head, at ? 'num' : 'row nowrap', row => row[at]]), '');
	return {node: el('details.data', el('summary', 'Data of: ' + label), table.node), update: rows => table.update(rows)};
}

// ---- plots

const percent = value => value.toFixed(3) + '%';
const image = (spec, label, ...children) => el(spec, {role: 'img', 'aria-label': label}, ...children);

// A small line of the last values from 0. The median is in the middle unless a value is more than twice as high.
export function spark(values, label) {
	const top = Math.max(...values, 2 * values.toSorted((a, b) => a - b)[values.length >> 1], 1e-9);
	const step = 96 / Math.max(1, values.length - 1);
	return svg('svg.spark', {viewBox: '0 0 100 24', preserveAspectRatio: 'none', role: 'img', 'aria-label': label},
		svg('polyline', {points: values.map((value, at) => `${(2 + at * step).toFixed(1)},${(22 - 20 * value / top).toFixed(1)}`).join(' ')}));
}

// The stages of a restart in a row, and their seconds; whole is the number of seconds of the full width.
export function stageStrip(parts, whole) {
	const has = STAGES.map(([key, name], at) => [at, name, parts[key]]).filter(one => one[2] > 0);
	return [el('div.strip', has.map(([at,, part]) => el('i.stage' + at, {css: {width: percent(part / whole * 100)}}))),
		el('small', has.map(([, name, part]) => `${name} ${seconds(part)}`).join(', '))];
}

// The smallest of 1, 2, 5 times a power of ten that is at least the value.
function roundUp(value) {
	if (!(value > 0))
		return 1;
	const power = 10 ** Math.floor(Math.log10(value));
	return [1, 2, 5, 10].find(step => step * power >= value) * power;
}

// The times below a bar or a plot: from, middle, to.
export function timeAxis() {
	const texts = [el('span'), el('span'), el('span')];
	return {node: el('div.axis', {'aria-hidden': 'true'}, texts), update: (from, to, last) =>
		[from, (from + to) / 2, to].forEach((time, at) => setText(texts[at], at === 2 && last || (to - from > DAY_MS ? days : hours).format(time)))};
}

const plot = (label, top, unit, field) => el('div.plot', el('div.scale', {'aria-hidden': 'true'}, el('span', unit(top)), el('span', unit(0))),
	image('div.area', label, field));

// Columns of stacked parts: series = [[class, values]], nameOf(at) is the tooltip of a column.
export function bars(label, series, nameOf, unit) {
	const sums = series[0][1].map((_, at) => sum(series.map(([, values]) => values[at])));
	const top = roundUp(Math.max(...sums));
	return plot(label, top, unit, sums.map((height, at) => el('div.column', {title: height ? nameOf(at) : null},
		series.map(([name, values]) => values[at] ? el('i.' + name, {css: {height: percent(values[at] / top * 100)}}) : null))));
}

// A line over equal steps from 0 to 1; null breaks it.
export function line(label, values, unit) {
	const step = 100 / values.length;
	let path = '';
	values.forEach((value, at) => {
		if (value != null)
			path += `${at && values[at - 1] != null ? 'L' : 'M'}${(at * step).toFixed(2)} ${(100 - 100 * value).toFixed(2)}h${step.toFixed(2)}`;
	});
	return plot(label, 1, unit, svg('svg', {viewBox: '0 0 100 100', preserveAspectRatio: 'none'}, svg('path.curve', {d: path})));
}
