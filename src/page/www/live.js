// SPDX-License-Identifier: Apache-2.0
// Copyright The Holdfast authors
//
// Requests to the page's API, and the one stream of changes. A browser allows six connections to a host, so the tabs of one
// browser share one stream: the leading tab reads it and passes each change on by BroadcastChannel. A hidden tab neither leads
// nor listens; when it is shown again, it fetches its screen anew.

const API = '/api/v1/';

export class ApiError extends Error {
	constructor(status, message) {
		super(message);
		this.status = status;
	}
}

async function send(path, options) {
	let reply, text;
	try {
		reply = await fetch(API + path, options);
		text = await reply.text();
	} catch (error) {
		if (error.name === 'AbortError')
			throw error;
		throw new ApiError(0, 'The server does not answer.');
	}
	const json = (reply.headers.get('Content-Type') || '').includes('json');
	let body = text;
	try {
		if (json)
			body = JSON.parse(text);
	} catch {
		throw new ApiError(reply.status, `The server's reply to ${path} is not JSON.`);
	}
	if (!reply.ok)
		throw new ApiError(reply.status, (json && body.error) || `The server answered ${reply.status} to ${path}.`);
	return body;
}

export const get = (path, signal) => send(path, {signal});

export const post = (path, body) => send(path, {method: 'POST', headers: {'Content-Type': 'application/json'},
	body: JSON.stringify(body)});

// query({a: 1, b: ''}) is "?a=1": empty values are left out.
export function query(values) {
	const kept = Object.entries(values).filter(([, value]) => value != null && value !== '');
	return kept.length ? '?' + new URLSearchParams(kept) : '';
}

// ---- the stream

const BEAT_MS = 2000;      // how often the leader says that it leads
const SILENCE_MS = 6000;   // without a beat for so long, another tab leads
const ANSWER_MS = 250;    // a leader answers within this time
const PING_MS = 40000;     // the server sends a comment each 15 s
const RETRY_MS = [500, 1000, 2000, 4000, 8000];
const EVENT_MAX = 1 << 20; // characters

// {id, event, data} of the text of one event; the data is one line of JSON.
function parseEvent(text) {
	const read = name => text.match(new RegExp(`^${name}: ?(.*)$`, 'm'))?.[1];
	try {
		return {id: read('id'), event: read('event'), data: JSON.parse(read('data') || 'null')};
	} catch {
		return {event: 'reset'}; // a damaged event: fetch again
	}
}

// Calls onEvents([{event, id, data}]) for changes, and onState with Connecting, Live, Reconnecting or Paused.
export class Live {
	constructor(onEvents, onState) {
		this.onEvents = onEvents;
		this.onState = onState;
		this.me = Math.random().toString(36).slice(2);
		this.lastId = null;   // of the last event that this tab has seen
		this.leads = false;
		this.running = false;
		this.heard = 0;       // when the last beat of another tab came
		this.tries = 0;
		this.channel = new BroadcastChannel('holdfast-page');
		this.channel.onmessage = message => this.running && this.hear(message.data);
	}

	// since: the resourceVersion of what the tab shows, if it is known.
	start(since) {
		if (this.running)
			return;
		this.running = true;
		this.lastId = since || this.lastId;
		this.heard = 0;
		this.setState('Connecting');
		this.say('ask');
		this.timer = setInterval(() => this.beat(), BEAT_MS);
		this.first = setTimeout(() => this.heard || this.lead(), ANSWER_MS);
	}

	stop() {
		if (!this.running)
			return;
		this.running = false;
		clearInterval(this.timer);
		clearTimeout(this.first);
		clearTimeout(this.retry);
		if (this.leads)
			this.say('bye');
		this.leads = false;
		this.abort?.abort();
		this.setState('Paused');
	}

	setState(state) {
		if (state === this.state)
			return;
		this.state = state;
		this.onState(state);
		if (this.leads)
			this.say('lead');
	}

	say(type, more) {
		this.channel.postMessage({type, from: this.me, state: this.state, ...more});
	}

	hear(message) {
		if (message.type === 'ask' && this.leads)
			this.say('lead');
		else if (message.type === 'bye' && !this.leads)
			this.first = setTimeout(() => this.lead(), Math.random() * 150);
		else if (message.type === 'lead')
			this.follow(message);
		else if (message.type === 'events' && !this.leads)
			this.take(message.events);
	}

	follow(message) {
		if (this.leads && message.from > this.me) {
			this.say('lead'); // of two leaders the one with the smaller name stays
			return;
		}
		clearTimeout(this.first);
		clearTimeout(this.retry);
		if (this.leads)
			this.abort?.abort();
		this.leads = false;
		this.heard = Date.now();
		this.setState(message.state);
	}

	beat() {
		if (this.leads)
			this.say('lead');
		else if (Date.now() - this.heard > SILENCE_MS)
			this.lead();
	}

	lead() {
		if (this.leads || !this.running)
			return;
		this.leads = true;
		this.say('lead');
		this.connect();
	}

	take(events) {
		for (const one of events)
			if (one.id)
				this.lastId = one.id;
		this.onEvents(events);
	}

	// Reads the stream until it ends, then tries again from the last event.
	async connect() {
		const abort = this.abort = new AbortController();
		const known = this.lastId;
		const watch = setTimeout(() => abort.abort(), PING_MS);
		let status = 0;
		try {
			const reply = await fetch(API + 'events' + query({since: known}), {signal: abort.signal});
			clearTimeout(watch);
			status = reply.status;
			if (reply.ok) {
				// Without a known version, changes between the screen's fetch and this moment are unknown.
				if (!known)
					this.pass([{event: 'reset'}]);
				this.tries = 0;
				this.setState('Live');
				await this.read(reply.body.getReader(), abort);
			}
		} catch {
			// An aborted, refused or broken stream ends here like one that the server closed.
		}
		clearTimeout(watch);
		if (!this.leads || this.abort !== abort)
			return;
		if (status === 401) {
			this.pass([{event: 'login'}]);
			return;
		}
		this.setState('Reconnecting');
		const pause = RETRY_MS[Math.min(this.tries++, RETRY_MS.length - 1)];
		this.retry = setTimeout(() => this.connect(), pause * (0.75 + Math.random() / 2));
	}

	async read(reader, abort) {
		const decoder = new TextDecoder();
		let rest = '';
		for (;;) {
			const watch = setTimeout(() => abort.abort(), PING_MS);
			const {done, value} = await reader.read().finally(() => clearTimeout(watch));
			if (done)
				return;
			const parts = (rest + decoder.decode(value, {stream: true})).split('\n\n');
			rest = parts.pop();
			if (rest.length > EVENT_MAX)
				throw new Error('an event is too long');
			const events = parts.map(parseEvent).filter(one => one.event);
			if (events.length)
				this.pass(events);
		}
	}

	pass(events) {
		this.say('events', {events});
		this.take(events);
	}
}
