// SPDX-License-Identifier: Apache-2.0
// Copyright The Holdfast authors
//
// The frame around the screens: addresses, the session, the connection's state, keys and focus. A screen is
// {title, node, renewMs?, load(signal), event?(one)}; its module knows what it shows.

import {button, clock, el, icon, now, refreshAges, setFlag, setNote, setServerTime, setText, stateBadge} from './dom.js';
import {get, post, Live, ApiError} from './live.js';
import {jobsScreen, jobScreen} from './jobs.js';
import {nodesScreen, nodeScreen, recoveryScreen} from './fleet.js';

const ROUTES = [
	[/^\/$/, 'jobs', jobsScreen],
	[/^\/j\/([^/]+)\/([^/]+)\/([^/]+)$/, 'jobs', jobScreen],
	[/^\/nodes$/, 'nodes', nodesScreen],
	[/^\/n\/([^/]+)$/, 'nodes', nodeScreen],
	[/^\/recovery$/, 'recovery', recoveryScreen],
];
const AGE_MS = 5000; // how often ages are renewed
const SAFETY_MS = 60000; // a screen is fetched so often although no change came
const SWAP_MS = 150; // the old screen stays so long while the new one loads

const byId = id => document.getElementById(id);
const main = byId('main');
let session = null;
let screen = null;
let path = null; // of the screen
let loading = null; // AbortController of the running load
let due = null; // timer of the next refresh
let loadedAt = 0;
const opened = new Map(); // path of a list -> the address that was opened from it

// ---- what a screen may use

const page = {
	get session() {
		return session;
	},
	params: new URLSearchParams(),

	// Changes filters in the address and loads. replace: without an entry in the history, for letters of a search.
	setParams(changes, {replace = false, pages} = {}) {
		const params = new URLSearchParams(location.search);
		for (const [name, value] of Object.entries(changes)) {
			if (value == null || value === '')
				params.delete(name);
			else
				params.set(name, value);
		}
		history[replace ? 'replaceState' : 'pushState']({inner: history.state?.inner, pages}, '', location.pathname + (params.size ? '?' + params : ''));
		page.params = params;
		return load();
	},

	// Loads once within the time, however often it is called.
	refresh(ms) {
		due ??= setTimeout(load, ms);
	},

	summary: text => setText(byId('summary'), text),
};

// ---- loading

function note(error, again = load) {
	return el('div.note.bad', {id: 'problem', role: 'alert'}, icon('fail'), el('p', error.message), button('Try again', again));
}

async function load() {
	clearTimeout(due);
	due = null;
	loading?.abort();
	const mine = loading = new AbortController();
	const shown = screen;
	try {
		await shown.load(mine.signal);
		loadedAt = now();
		byId('problem')?.remove();
	} catch (error) {
		if (error.name === 'AbortError' || shown !== screen)
			return;
		if (error.status === 401)
			showLogin('Your session has ended.');
		else {
			byId('problem')?.remove();
			shown.node.prepend(note(error));
			if (!(error instanceof ApiError))
				console.error(error);
		}
	}
	if (shown === screen)
		document.title = shown.title + ' · Holdfast';
}

// ---- screens and addresses

function show(next) {
	if (!main.contains(next.node))
		main.replaceChildren(next.node);
}

function giveFocus(next, back) {
	const wanted = back && opened.get(path);
	const open = wanted && [...main.querySelectorAll('a.open')].find(one => one.getAttribute('href') === wanted);
	const target = open || next.node.querySelector('h1');
	target?.focus();
}

async function route({first = false, back = false} = {}) {
	page.params = new URLSearchParams(location.search);
	if (screen && path === location.pathname && screen.kind !== 'login') {
		await load();
		return;
	}
	const [match, kind, make] = ROUTES.map(([pattern, ...rest]) => [location.pathname.match(pattern), ...rest])
		.find(([found]) => found) || [[null], 'jobs', jobsScreen];
	page.summary('');
	path = location.pathname;
	const next = screen = make(page, ...match.slice(1).map(decodeURIComponent));
	for (const anchor of document.querySelectorAll('nav a[data-screen]'))
		setFlag(anchor, 'aria-current', anchor.dataset.screen === kind && 'page');
	const swap = setTimeout(() => show(next), first ? 1000 : SWAP_MS);
	await load();
	clearTimeout(swap);
	if (screen !== next)
		return;
	show(next);
	if (!first) {
		if (!back)
			scrollTo(0, 0);
		giveFocus(next, back);
	}
}

function navigate(href) {
	const url = new URL(href, location.href);
	if (url.pathname !== location.pathname)
		opened.set(location.pathname, href);
	history.pushState({inner: true}, '', url.pathname + url.search);
	route();
}

document.addEventListener('click', event => {
	const anchor = event.target.closest?.('a[href^="/"]');
	if (!anchor || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
		return;
	event.preventDefault();
	navigate(anchor.getAttribute('href'));
});

addEventListener('popstate', () => route({back: true}));

function goBack() {
	const parent = path?.startsWith('/n/') ? '/nodes' : path?.startsWith('/j/') ? '/' : null;
	if (!parent)
		return;
	if (history.state?.inner)
		history.back();
	else
		navigate(parent);
}

// ---- session

function loginScreen(message) {
	const problem = el('p.note.bad', {role: 'alert'});
	setNote(problem, message);
	const token = el('input', {type: 'password', id: 'token', autocomplete: 'off', required: true,
		'aria-describedby': 'token-hint'});
	const submit = el('button', {type: 'submit', class: 'main'}, 'Log in');
	const form = el('form.login', el('h1', {tabindex: -1}, 'Log in'), problem, el('label', {for: 'token'}, 'Token'), token,
		el('p.soft', {id: 'token-hint'}, 'On a cluster, a token of an account: ', el('code', 'kubectl create token NAME -n NAMESPACE'),
			'. The page shows what the account may see. On one machine, open the address that holdfast printed: it works once, in one browser.'), submit);
	form.addEventListener('submit', async event => {
		event.preventDefault();
		submit.disabled = true;
		try {
			await post('login', {token: token.value});
			screen = null;
			await begin();
		} catch (error) {
			setNote(problem, error.message);
			token.focus();
		}
		submit.disabled = false;
	});
	return {kind: 'login', title: 'Log in', node: form, load: async () => {}};
}

function showLogin(message) {
	if (screen?.kind === 'login')
		return;
	live.stop();
	session = null;
	showSession();
	screen = loginScreen(message);
	document.title = 'Log in · Holdfast';
	page.summary('');
	byId('live').replaceChildren();
	show(screen);
	byId('token').focus();
}

function showSession() {
	setText(byId('user'), session?.world === 'cluster' ? session.user : '');
	byId('logout').hidden = session?.world !== 'cluster';
}

async function begin() {
	try {
		session = await get('session');
	} catch (error) {
		// The browser has no session yet: that is no error.
		if (error.status === 401)
			showLogin('');
		else {
			byId('problem')?.remove();
			main.prepend(note(error, begin));
			live.setState('Reconnecting');
			setTimeout(begin, 3000);
		}
		return;
	}
	byId('problem')?.remove();
	setServerTime(session.now);
	showSession();
	const first = !main.querySelector('.login');
	await route({first});
	if (session && !document.hidden)
		live.start(screen.version);
}

byId('logout').addEventListener('click', async () => {
	try {
		await post('logout', {});
	} finally {
		showLogin('');
	}
});

// ---- the stream

let waiting = [];

function flush() {
	const events = waiting;
	waiting = [];
	if (!screen || screen.kind === 'login')
		return;
	if (events.some(one => one.event === 'login'))
		showLogin('Your session has ended.');
	else if (events.some(one => one.event === 'reset'))
		load();
	else {
		// Only the last change of an object counts.
		const last = new Map();
		for (const one of events)
			last.set([one.data?.namespace, one.data?.kind, one.data?.name, one.event === 'summary'].join('/'), one);
		for (const one of last.values())
			screen.event?.(one);
	}
}

function showLive(state) {
	const stale = state === 'Reconnecting';
	if (state === 'Live' && document.documentElement.classList.contains('stale'))
		load();
	byId('live').replaceChildren(stateBadge(state), stale && loadedAt ? ` (shown: ${clock(new Date(loadedAt).toISOString())})` : '');
	document.documentElement.classList.toggle('stale', stale);
}

const live = new Live(events => {
	if (!waiting.length)
		requestAnimationFrame(flush);
	waiting.push(...events);
}, showLive);

document.addEventListener('visibilitychange', () => {
	if (document.hidden)
		live.stop();
	else if (session) {
		live.start();
		load();
	}
});
addEventListener('pagehide', () => live.stop());
addEventListener('pageshow', event => event.persisted && session && live.start());

setInterval(() => {
	if (document.hidden)
		return;
	refreshAges(main);
	if (session && live.state === 'Live' && now() - loadedAt > (screen.renewMs || SAFETY_MS) - 500)
		load();
}, AGE_MS);

// ---- keys

const help = byId('help');
const keysOn = byId('keys-on');
keysOn.checked = localStorage.getItem('keys') !== 'off';
keysOn.addEventListener('change', () => localStorage.setItem('keys', keysOn.checked ? 'on' : 'off'));
byId('help-button').addEventListener('click', () => help.showModal());
byId('help-close').addEventListener('click', () => help.close());

function moveRow(by) {
	const rows = [...main.querySelectorAll('.open')].filter(one => one.offsetParent);
	if (!rows.length)
		return;
	const row = document.activeElement?.closest('tr');
	const at = row ? rows.findIndex(one => row.contains(one)) : -1;
	rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, at + by))].focus();
}

function search() {
	const box = main.querySelector('input[type=search]');
	if (box)
		box.select();
	box?.focus();
}

const KEYS = {
	'/': search,
	j: () => moveRow(1),
	k: () => moveRow(-1),
	'?': () => help.showModal(),
	1: () => navigate('/'),
	2: () => navigate('/nodes'),
	3: () => navigate('/recovery'),
};

document.addEventListener('keydown', event => {
	if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]'))
		return;
	const typing = event.target.closest?.('input:not([type=checkbox]), textarea, select');
	if (event.key === 'Escape') {
		if (typing)
			main.querySelector('.open, h1')?.focus();
		else
			goBack();
	} else if (!typing && keysOn.checked && session && KEYS[event.key]) {
		event.preventDefault();
		KEYS[event.key]();
	}
});

showLive('Connecting');
if (location.pathname !== '/')
	main.replaceChildren(); // the table of jobs that the server has written
begin();
