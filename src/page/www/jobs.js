// SPDX-License-Identifier: Apache-2.0
// Copyright The Holdfast authors
//
// The screens Jobs (/) and Job (/j/NAMESPACE/KIND/NAME), and what their lists share with the other screens.

import {CAUSES, NONE, STAGES, Table, age, badge, button, causeBadge, causeLegend, clockNode, count, decimal, el, icon, jobPath, legend, link,
	nodePath, now, plural, seconds, section, setAge, setFlag, setNote, setState, setText, share, spark, stageLegend,
	stageStrip, stateBadge, sum, svg, timeAxis, when} from './dom.js';
import {get, post, query} from './live.js';

const PAGE = 50;             // rows
const RELOAD_MS = 2000;      // at most one fetch of a screen in this time, however many changes come
const TYPING_MS = 250;       // a search begins this long after the last key
const STEPS_MS = 10000;      // between two fetches of the list
const RANKS_MS = 5000;       // between two fetches of a job and its ranks
const RANKS_MANY_MS = 15000; // with more than RANKS_PAGE ranks
const RANKS_PAGE = 500;      // the most that the server sends at once
const RANKS_MAX = 10000;
const MAP_MIN = 9;           // fewer ranks need no map
const MAP_MAX = 2000;
const SLOW = 1.2;            // score of a rank that delays its peers, as the server counts them
const LOG_MS = 2000;
const LOG_LINES = 200;
const ORDER = ['Failed', 'Unhealthy', 'holdfast.dev/Held', 'Restarting', 'Quarantined', 'Remediating', 'Degraded', 'Suspect', 'Created', 'Suspended'];

// [['Failed', 1], ['Running', 3]]: trouble first, and no state without an object.
const stateCounts = states => Object.entries(states || {}).filter(([, number]) => number)
	.sort(([a], [b]) => (ORDER.indexOf(a) + 99) % 99 - (ORDER.indexOf(b) + 99) % 99);

// "3 jobs: 1 Failed, 2 Running"
export const stateSummary = (states, total, word) => [plural(total, word),
	stateCounts(states).map(([state, number]) => `${count(number)} ${state.replace('holdfast.dev/', '')}`).join(', ')].filter(Boolean).join(': ');

// ---- cells

// The server's sentence without "Running for 8s: ", which other columns show.
function sentenceOf({sentence, state, ready, ranks}) {
	return (sentence || '').replace(new RegExp(`^${state}( for \\w+)?(: |$)`), '') || (state === 'Running' ? `${ready} of ${plural(ranks, 'rank')} ready` : '');
}

const restartsKey = job => CAUSES.map(cause => job.restarts?.[cause] || 0).join(' ');
const readyText = job => job.ranks == null ? NONE : `${job.ready ?? 0}/${job.ranks}`;

function drawRestarts(cell, value, job) {
	const parts = CAUSES.filter(cause => job.restarts?.[cause]).map(cause =>
		causeBadge(cause, [count(job.restarts[cause]), el('span.aside', ' ' + cause)]));
	cell.replaceChildren(...parts.length ? parts : ['0']);
}

function drawStep(cell, value, job) {
	if (job.step == null) {
		cell.replaceChildren(NONE);
		return;
	}
	if (!cell.querySelector('progress'))
		cell.replaceChildren(el('span'), el('span.soft.small'), el('progress', {'aria-hidden': 'true'}));
	const [step, rate, bar] = cell.children;
	setText(step, count(job.step));
	setText(rate, (job.totalSteps ? ' of ' + count(job.totalSteps) : '') + (job.stepsPerSecond ? ` · ${decimal(job.stepsPerSecond)}/s` : ''));
	bar.hidden = !job.totalSteps;
	bar.max = job.totalSteps || 1;
	bar.value = job.step;
}

// The name, what is smaller below it, and the sentence for narrow screens, which show no column for it.
export function drawName(cell, item, path, more) {
	if (!cell.firstChild)
		cell.append(link(path, item.name, 'a.open'), el('span.soft.small', more), el('span.sentence'));
	setText(cell.lastChild, sentenceOf(item));
}

const nodeLink = (cell, name) => cell.replaceChildren(name ? link(nodePath(name), name) : NONE);

export const jobTable = (caption, empty) => new Table(caption, 'jobs', jobPath, [
	['State', '', 'state', setState],
	['Job', 'row name', sentenceOf, (cell, value, job) => drawName(cell, job, jobPath(job), `${job.namespace} · ${job.kind}`)],
	['What happens', 'wide text', sentenceOf],
	['Ready', 'num', readyText],
	['Step', 'num mid', job => [job.step, job.totalSteps, job.stepsPerSecond].join(' '), drawStep],
	['ETTR', 'num mid', job => share(job.ettr)],
	['Restarts', 'mid', restartsKey, drawRestarts],
	['Age', 'num mid', 'created', setAge],
], empty);

// ---- filters

const field = (label, input, spec = 'label.field') => el(spec, el('span', label), input);

function choice(label, name, page) {
	const select = el('select', {name, onchange: () => page.setParams({[name]: select.value, continue: null})});
	let known;
	return {
		node: field(label, select),
		// options: [[value, text]]. The value in the address stays although no item has it.
		update(options) {
			const chosen = page.params.get(name) || '';
			if (!options.some(([value]) => value === chosen))
				options.push([chosen, chosen]);
			const text = JSON.stringify(options);
			if (text !== known)
				select.replaceChildren(...options.map(([value, shown]) => el('option', {value}, shown)));
			known = text;
			select.value = chosen;
		},
	};
}

export function searchBox(page) {
	let timer;
	const input = el('input', {type: 'search', name: 'q', placeholder: 'press / to search', autocomplete: 'off', spellcheck: 'false', maxlength: 200, oninput() {
		clearTimeout(timer);
		timer = setTimeout(() => page.setParams({q: input.value.trim(), continue: null}, {replace: true}), TYPING_MS);
	}});
	return {
		node: field('Search', input, 'label.field.search'),
		update: () => document.activeElement === input || (input.value = page.params.get('q') || ''),
	};
}

// Links "All 12", "Failed 1", …: each sets the filter state.
export function stateChips(page, label) {
	const list = el('ul.chips', {'aria-label': label});
	const chips = new Map();
	const chipOf = state => {
		if (!chips.has(state))
			chips.set(state, el('li', el('a.chip', state ? stateBadge(state) : 'All', ' ', el('b'))));
		return chips.get(state);
	};
	return {
		node: list,
		update(states, total) {
			const chosen = page.params.get('state') || '';
			const entries = [['', total], ...stateCounts(states)];
			if (!entries.some(([state]) => state === chosen))
				entries.push([chosen, 0]);
			const items = entries.map(([state, number]) => {
				const item = chipOf(state);
				const chip = item.firstChild;
				const params = new URLSearchParams(page.params);
				params.delete('continue');
				params.delete('state');
				if (state && state !== chosen)
					params.set('state', state);
				chip.setAttribute('href', location.pathname + (params.size ? '?' + params : ''));
				setFlag(chip, 'aria-current', state === chosen && 'true');
				setText(chip.lastChild, count(number));
				return item;
			});
			if (items.length === list.childElementCount && items.every((item, at) => item === list.children[at]))
				return;
			const focused = document.activeElement;
			list.replaceChildren(...items);
			if (list.contains(focused))
				focused.focus();
		},
	};
}

// "51 to 100 of 10,000" with buttons.
function turner(back, on) {
	const text = el('span.soft');
	const buttons = [button('← Back', back), button('Next →', on)];
	const node = el('nav.pager', {'aria-label': 'Pages', hidden: true}, text, buttons);
	return {node, update(start, shown, total, hasBack, hasNext) {
		setText(text, shown ? `${count(start + 1)} to ${count(start + shown)} of ${count(total)}` : '');
		buttons[0].hidden = !hasBack;
		buttons[1].hidden = !hasNext;
		node.hidden = !hasBack && !hasNext;
	}};
}

// Pages of a list of the server. The tokens of earlier pages are in the history's state.
export function pager(page) {
	let next = null;
	const turn = (token, pages) => page.setParams({continue: token}, {pages}).then(() => scrollTo(0, 0));
	const pages = () => (history.state?.pages || []).slice();
	const view = turner(() => {
		const stack = pages();
		turn(stack.pop() || null, stack);
	}, () => turn(next, [...pages(), page.params.get('continue')]));
	return {
		node: view.node,
		update(list) {
			next = list.continue;
			view.update(pages().length * PAGE, list.items.length, list.total, page.params.get('continue'), next);
		},
	};
}

export const pickFilters = (page, ...names) => ({...Object.fromEntries(names.map(name => [name, page.params.get(name)])), limit: PAGE});

// Renews the row of a change, and fetches the list if a row's state or the number of objects in a state has changed.
export function listEvents(page, table, kind, counts) {
	let known = '';
	return ({event, data}) => {
		const row = table.rows.get(table.key(data));
		const state = row?.values[0];
		if (event === kind && row)
			table.set(data);
		if (event === 'gone' && row || event === kind && row && state !== data.state || event === 'summary' && known !== (known = JSON.stringify(data[counts])))
			page.refresh(RELOAD_MS);
	};
}

// ---- Jobs

export function jobsScreen(page) {
	const table = jobTable('Jobs');
	const chips = stateChips(page, 'Jobs by state');
	const choices = [['Namespace', 'namespace'], ['Kind', 'kind'], ['Last cause', 'cause'], ['Sort by', 'sort']].map(([label, name]) => choice(label, name, page));
	const box = searchBox(page);
	const pages = pager(page);
	const options = (first, names) => [['', first], ...(names || []).map(name => [name, name])];
	const screen = {
		title: 'Jobs',
		renewMs: STEPS_MS, // the stream does not tell each step
		node: el('div', el('h1', {tabindex: -1}, 'Jobs'), chips.node, el('div.filters', {role: 'search'}, box.node, choices.map(one => one.node)),
			table.node, pages.node),

		async load(signal) {
			const filters = pickFilters(page, 'namespace', 'kind', 'state', 'cause', 'q', 'sort', 'continue');
			const list = await get('jobs' + query({...filters, sort: filters.sort || 'state'}), signal);
			screen.version = list.resourceVersion;
			table.update(list.items);
			setText(table.empty, list.hint || 'No jobs.');
			pages.update(list);
			[['all', list.namespaces], ['all', list.kinds], ['all', CAUSES], ['state', ['name', 'age', 'restarts']]]
				.forEach((names, at) => choices[at].update(options(...names)));
			box.update();
			const total = sum(Object.values(list.states || {})) || list.total;
			chips.update(list.states, total);
			page.summary(stateSummary(list.states, total, 'job'));
		},

		event: listEvents(page, table, 'job', 'states'),
	};
	return screen;
}

// ---- Job: the time bar

function causeText(one) {
	return (one.cause === 'planned' ? 'a planned restart' : `a fault of class ${one.cause}`) + (one.inPlace ? ', restarted in place' : '');
}

// Generations as plain lengths, and after each one the time until the next, in the pattern of the cause that ended it.
function timeBar() {
	const bar = el('div.timebar', {role: 'img'});
	const axis = timeAxis();
	const list = el('ol.aside');
	const part = (spec, ms, title, text) => el(spec, {title, css: {flexGrow: Math.max(1, ms)}}, text);
	return {
		node: el('div', bar, axis.node, list),
		update(generations, ended) {
			const last = ended ? Date.parse(ended) : now();
			const known = generations.filter(one => one.start || one.end)
				.map(one => ({...one, from: Date.parse(one.start || one.end), to: one.end ? Date.parse(one.end) : last}));
			const texts = [];
			const parts = known.flatMap((one, at) => {
				const text = `Generation ${one.number}: ${one.start ? `from ${when(one.start)} for ${seconds((one.to - one.from) / 1000)}` : 'start not kept'}` +
					(one.cause ? `, ended by ${causeText(one)}` : one.end ? '' : ', still running');
				const next = known[at + 1]?.from ?? last;
				texts.push(text);
				return [part('i.run', one.to - one.from, text, String(one.number)),
					one.cause && part('i.down.' + one.cause, next - one.to, `${causeText(one)}: ${seconds((next - one.to) / 1000)} until all ranks ran`)];
			});
			bar.replaceChildren(...parts.filter(Boolean));
			bar.setAttribute('aria-label', `${plural(known.length, 'generation')}, listed below`);
			list.replaceChildren(...texts.map(text => el('li', text)));
			axis.update(known[0]?.from ?? last, last, !ended && 'now');
		},
	};
}

// ---- Job: restarts

const exitText = one => one.code == null ? one.signal && `signal ${one.signal}` : one.code + (one.signal ? ` (signal ${one.signal})` : '');

const restartTable = () => new Table('Restarts, the last one first', 'restarts', one => [one.at, one.rank, one.cause].join(' '), [
	['When', 'row nowrap', 'at', (cell, at) => cell.replaceChildren(clockNode(at))],
	['Cause', 'name', 'cause', (cell, cause, one) => cell.replaceChildren(el('span', causeBadge(cause, cause)), el('span.sentence', one.sentence))],
	['What happened', 'wide text', 'sentence'],
	['Rank', 'nowrap mid', 'rank'],
	['Node', 'wide', 'node', nodeLink],
	['Device', 'wide', 'device'],
	['Exit', 'nowrap wide', exitText],
	['Steps lost', 'num mid', one => count(one.stepsLost)],
	['Until all ranks ran', 'stages', one => JSON.stringify([one.seconds, one.scale]), (cell, value, one) =>
		cell.replaceChildren(seconds(one.seconds?.total), ...stageStrip(one.seconds || {}, one.scale))],
], 'No restart is recorded.');

// ---- Job: ranks

function rankTone({phase, score}) {
	if (phase === 'Running')
		return score >= SLOW ? 'slow' : 'ok';
	return {Failed: 'bad', Succeeded: 'ended'}[phase] || 'off';
}

const RING = 'm0 4a4 4 0 1 0 8 0a4 4 0 1 0-8 0';
// What a rank is, trouble first: word, icon, and the path of its mark.
const TONES = {bad: ['failed', 'fail', 'm2.5 0h3l2.5 2.5v3l-2.5 2.5h-3l-2.5-2.5v-3z'], slow: ['slow', 'turn', 'm4 0 4 8h-8z'], off: ['not running', 'wait', RING],
	ok: ['running', 'run', RING], ended: ['succeeded', 'done', 'm0 4 3 3 5-6']};

const rankTable = openLog => new Table('Ranks', 'ranks', rank => rank.name, [
	['Rank', 'row nowrap', 'name', (cell, name) => cell.replaceChildren(button(name, () => openLog(name), 'button.open.quiet'))],
	['State', '', 'phase', setState],
	['Step', 'num mid', rank => count(rank.step)],
	['Score', 'num', 'score', (cell, score) => cell.replaceChildren(score >= SLOW ? badge([decimal(score), el('span.aside', ' slow')], 'turn', 'warn') : decimal(score))],
	['Step time', 'num wide', rank => seconds(rank.stepSeconds)],
	['Own', 'num mid', rank => seconds(rank.ownSeconds)],
	['Wait', 'num mid', rank => seconds(rank.waitSeconds)],
	['Last steps', 'mid', rank => (rank.spark || []).join(' '), (cell, value, {spark: values}) =>
		cell.replaceChildren(value ? spark(values, `seconds of the last ${plural(values.length, 'step')}, now ${decimal(values.at(-1))}`) : NONE)],
	['Node', 'wide', 'node', nodeLink],
	['Restarts', 'num wide', rank => count(rank.restarts)],
	['Reported', 'num wide', 'reportedAt', setAge],
], 'No rank has a pod.');

// A mark for each rank in the order of ranks; its shape tells the state, too. One path for each state keeps 1,000 marks cheap.
function rankMap() {
	const title = svg('title');
	const paths = Object.keys(TONES).map(tone => svg('path.rank-' + tone));
	const map = svg('svg.map', {role: 'img', onpointermove(event) {
		const {left, top, width} = map.getBoundingClientRect();
		const at = length => Math.floor(length * columns / width);
		const rank = shown[at(event.clientY - top) * columns + at(event.clientX - left)];
		setText(title, rank && `${rank.name}: ${rank.phase}`);
	}}, title, paths);
	const node = el('div', map, legend(Object.entries(TONES).map(([tone, [word, shape]]) => [icon(shape, '.rank-' + tone), word])));
	let shown, columns;
	return {
		node,
		update(ranks) {
			shown = ranks.slice(0, MAP_MAX);
			columns = Math.min(64, Math.max(16, Math.ceil(Math.sqrt(shown.length * 3))));
			node.hidden = shown.length < MAP_MIN;
			map.setAttribute('viewBox', `0 0 ${columns * 10} ${Math.ceil(shown.length / columns) * 10}`);
			map.style.maxWidth = columns * 18 + 'px';
			const counts = Object.entries(TONES).map(([tone, [word, , mark]], i) => {
				const marks = shown.map((rank, at) => rankTone(rank) === tone && `M${at % columns * 10 + 1} ${Math.floor(at / columns) * 10 + 1}${mark}`).filter(Boolean);
				paths[i].setAttribute('d', marks.join(''));
				return marks.length && `${marks.length} ${word}`;
			});
			map.setAttribute('aria-label', `Map of ${plural(shown.length, 'rank')}: ${counts.filter(Boolean).join(', ')}`);
		},
	};
}

function ranksPart(path, openLog) {
	const table = rankTable(openLog);
	const map = rankMap();
	const text = el('p.soft');
	const pages = turner(() => turn(-PAGE), () => turn(PAGE));
	const sort = el('select', {onchange: () => turn(-start)}, el('option', {value: ''}, 'trouble'), el('option', {value: 'rank'}, 'rank'));
	const place = rank => Object.keys(TONES).indexOf(rankTone(rank));
	let troubled = [];
	let ranks = [];
	let start = 0;

	function turn(by) {
		const list = sort.value ? ranks : troubled;
		start = Math.max(0, Math.min(start + by, Math.floor((list.length - 1) / PAGE) * PAGE));
		const rows = list.slice(start, start + PAGE);
		table.update(rows);
		pages.update(start, rows.length, list.length, start > 0, start + PAGE < list.length);
	}

	return {
		node: section('Ranks', text, map.node, el('div.filters', field('Sort by', sort)), table.node, pages.node),
		async load(signal) {
			const all = [];
			let reply;
			do {
				reply = await get(path + '/ranks' + query({limit: RANKS_PAGE, sort: 'rank', continue: reply?.continue}), signal);
				all.push(...reply.items);
			} while (reply.continue && all.length < RANKS_MAX);
			ranks = all;
			troubled = all.toSorted((a, b) => place(a) - place(b) || (b.score || 0) - (a.score || 0));
			setText(text, plural(reply.total, 'rank') + (reply.ranksBehind ? `, ${count(reply.ranksBehind)} slower than the others` : '') +
				(reply.total > all.length ? `; ${count(all.length)} are shown` : ''));
			map.update(ranks);
			turn(0);
			return all.length;
		},
	};
}

// ---- Job: log

function logPart(path, restart) {
	const text = el('pre.log', {tabindex: 0, role: 'region', 'aria-label': 'Log'});
	const follow = el('input', {type: 'checkbox', onchange: () => load()});
	const again = button('Restart this rank…', () => restart(rank));
	const node = section('', el('div.filters', button('Renew', () => load()), el('label.check', follow, 'Renew each 2 s'), again), text);
	const title = node.firstChild;
	let timer, rank;
	node.hidden = true;
	title.tabIndex = -1;

	async function load() {
		clearTimeout(timer);
		const asked = rank;
		let log, early;
		try {
			log = await get(path + '/log' + query({rank, tail: LOG_LINES}));
			early = !log;
		} catch (error) {
			log = error.message;
			early = error.status === 400; // not started
		}
		if (rank !== asked)
			return;
		const atEnd = text.scrollHeight - text.scrollTop - text.clientHeight < 30;
		setText(text, log || 'The log is empty.');
		if (atEnd)
			text.scrollTop = text.scrollHeight;
		if ((follow.checked || early) && node.isConnected && !document.hidden)
			timer = setTimeout(load, LOG_MS);
	}

	return {
		node,
		again,
		open(name) {
			rank = name;
			setText(title, 'Log of ' + rank);
			text.textContent = '';
			node.hidden = false;
			title.focus();
			load();
		},
	};
}

// ---- Job: actions

const ACTIONS = {
	suspend: ['Suspend', 'All pods of the job end. Ranks that can save do so before. Resume starts the job again.'],
	resume: ['Resume', 'The operator creates the pods of the job again.'],
	restart: ['Restart', 'All ranks end and start again as a new generation. This counts as a planned restart.'],
};

// Buttons, each with a dialog that asks for a reason and a confirmation.
function actionsPart(path, name, done) {
	const title = el('h2', {id: 'act-title'});
	const effect = el('p');
	const reason = el('input', {type: 'text', maxlength: 200, autocomplete: 'off'});
	const problem = el('p.note.bad', {role: 'alert'});
	const confirm = el('button.main', {type: 'submit'});
	const form = el('form', {onsubmit: send}, title, effect, field('Reason, for the job\'s events', reason), problem,
		el('p.end', button('Cancel', () => dialog.close()), confirm));
	const dialog = el('dialog', {'aria-labelledby': 'act-title'}, form);
	const result = el('p.soft', {role: 'status'});
	const buttons = Object.entries(ACTIONS).map(([action, [word]]) => button(word + '…', () => ask(action)));
	let asked;

	function ask(action, rank = null) {
		asked = {action, rank};
		setText(title, `${ACTIONS[action][0]} ${rank ? rank + ' of ' : ''}${name}?`);
		setText(effect, rank ? 'The rank ends and starts again. This counts as a planned restart.' : ACTIONS[action][1]);
		setText(confirm, ACTIONS[action][0]);
		reason.value = '';
		setNote(problem, '');
		dialog.showModal();
	}

	async function send(event) {
		event.preventDefault();
		confirm.disabled = true;
		try {
			const reply = await post(path + '/action', {...asked, reason: reason.value.trim()});
			dialog.close();
			setText(result, reply.message);
			done();
		} catch (error) {
			setNote(problem, error.message);
		}
		confirm.disabled = false;
	}

	return {
		node: el('div.actions', buttons, result, dialog),
		ask,
		update(job, mayAct, again) {
			const open = mayAct && !job.ended && !['Succeeded', 'Failed'].includes(job.state);
			const suspended = job.state === 'Suspended';
			buttons[1].hidden = !open || !suspended;
			buttons[0].hidden = buttons[2].hidden = again.hidden = !open || suspended;
		},
	};
}

// ---- Job

function copyLine() {
	const code = el('code');
	const copy = button('Copy', async () => {
		try {
			await navigator.clipboard.writeText(code.textContent);
			setText(copy, 'Copied');
		} catch {
			getSelection().selectAllChildren(code); // no right to the clipboard: Ctrl-C copies the selection
			setText(copy, 'Selected');
		}
	}, 'button.quiet');
	return {node: el('p.command', code, copy), update: text => setText(code, text)};
}

// Figures with names: each has a value that is changed in place.
export function figures(...names) {
	const values = Object.fromEntries(names.map(name => [name, el('dd')]));
	return {node: el('dl.figures', names.map(name => el('div', el('dt', name), values[name]))), values};
}

export function jobScreen(page, namespace, kind, name) {
	const path = 'jobs/' + [namespace, kind, name].map(encodeURIComponent).join('/');
	const state = el('span');
	const sentence = el('p.lead');
	const next = el('p.soft');
	const advice = el('p.note');
	const why = el('ol.why');
	const command = copyLine();
	const {node: facts, values} = figures('Ready', 'Step', 'ETTR', 'Restarts', 'Generation', 'Last save', 'Age');
	const bar = timeBar();
	const restarts = restartTable();
	const stages = stageLegend();
	const kept = el('p.soft');
	const actions = actionsPart(path, name, () => page.refresh(500));
	const log = logPart(path, rank => actions.ask('restart', rank));
	const ranks = ranksPart(path, log.open);
	const conditions = new Table('Conditions', 'plain', one => one.type, [['Condition', 'row', 'type'], ['Status', '', 'status'],
		['Reason', 'mid', 'reason'], ['Message', 'text', 'message'], ['Since', 'num', 'since', setAge]], 'The job has no conditions.');
	const events = new Table('Events', 'plain', one => [one.at, one.reason, one.message].join(' '), [['Last seen', 'row num', 'at', setAge], ['Type', '', 'type', setState],
		['Reason', 'mid', 'reason'], ['Message', 'text', 'message'], ['Count', 'num mid', one => count(one.count)]], 'No event is kept.');
	const yaml = el('pre.log', {tabindex: 0, role: 'region', 'aria-label': 'YAML of the job'});
	const source = el('details.data', {ontoggle: () => source.open && get(path + '/yaml').then(text => setText(yaml, text), error => setText(yaml, error.message))},
		el('summary', 'YAML'), yaml);
	let ranksAt = 0;
	let many = false;

	function show(job) {
		setState(state, job.state);
		setText(sentence, sentenceOf(job));
		setText(values.Ready, readyText(job));
		drawStep(values.Step, null, job);
		setText(values.ETTR, share(job.ettr));
		drawRestarts(values.Restarts, null, job);
		setText(values.Generation, count(job.generation));
		setAge(values.Age, job.created);
		page.summary(`${name}: ${job.state}, ${readyText(job)} ready`);
	}

	async function loadRanks(signal) {
		if (now() - ranksAt < (many ? RANKS_MANY_MS : RANKS_MS) - 100)
			return;
		many = await ranks.load(signal) > RANKS_PAGE;
		ranksAt = now();
	}

	return {
		title: name,
		renewMs: RANKS_MS,
		node: el('div', el('nav.crumbs', {'aria-label': 'Path'}, link('/', 'Jobs'), link('/' + query({namespace}), namespace), el('span', kind)),
			el('div.head', el('h1', {tabindex: -1}, name), state, actions.node), sentence, next, command.node, facts, advice, section('Why', why),
			section('Generations and restarts', bar.node, causeLegend(), restarts.node, stages, kept), ranks.node, log.node,
			el('div.columns', section('Conditions', conditions.node), section('Events', events.node)), source),

		async load(signal) {
			const job = await get(path, signal);
			show(job);
			const records = (job.restartRecords || []).toSorted((a, b) => a.at < b.at ? 1 : -1);
			setNote(next, sentence.textContent === job.next ? '' : job.next || records[0] && (records[0].scope ? `Last restart ${age(records[0].at)} ago: ` : '') + records[0].sentence);
			setNote(advice, job.advice);
			why.replaceChildren(...(job.why || []).map(one => el('li', one.at ? clockNode(one.at) : el('span'), el('span.soft', one.topic), el('span', one.text))));
			why.parentNode.hidden = !job.why?.length;
			command.update(job.command);
			setText(values['Last save'], job.lastStepSaved == null ? NONE : 'step ' + count(job.lastStepSaved));
			bar.update(job.generations || [], job.ended);
			const scale = Math.max(...records.map(one => sum(STAGES.map(([key]) => one.seconds?.[key]))), 0);
			restarts.update(records.map(one => ({...one, scale})));
			const total = sum(CAUSES.map(cause => job.restarts?.[cause]));
			stages.hidden = !records.length;
			setNote(kept, total > records.length && records.length && `Of ${plural(total, 'restart')}, the last ${count(records.length)} are recorded.`);
			conditions.update(job.conditions || []);
			events.update(job.events || []);
			actions.update(job, page.session?.mayAct, log.again);
			await loadRanks(signal);
		},

		event({event, data}) {
			if (data?.namespace !== namespace || data.kind !== kind || data.name !== name)
				return;
			if (event === 'job')
				show(data);
			page.refresh(RELOAD_MS);
		},
	};
}
