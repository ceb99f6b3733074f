// SPDX-License-Identifier: Apache-2.0
// Copyright The Holdfast authors
//
// The screens Nodes (/nodes), Node (/n/NAME) and Recovery (/recovery).

import {CAUSES, NONE, STAGES, Table, bars, causeLegend, clockNode, count, dataTable, decimal, el, jobPath, line, link, nodePath,
	plural, seconds, section, setAge, setFlag, setNote, setState, setText, share, stageLegend, stageStrip, sum, timeAxis, when} from './dom.js';
import {drawName, figures, jobTable, listEvents, pager, pickFilters, searchBox, stateChips, stateSummary} from './jobs.js';
import {get, query} from './live.js';

const RELOAD_MS = 2000;
const PLOTS_MS = 10000; // how often plots are renewed at most
const WINDOWS = {'1h': 'the last hour', '24h': '24 hours', '7d': '7 days'};
const JOBS_MAX = 3;     // jobs that the row of a node names

function drawJobs(cell, value, {jobs = []}) {
	cell.replaceChildren(...jobs.slice(0, JOBS_MAX).flatMap((job, at) => [at ? ', ' : '', link(jobPath(job), job.name)]),
		jobs.length > JOBS_MAX ? ` and ${jobs.length - JOBS_MAX} more` : jobs.length ? '' : NONE);
}

const devicesText = ({devices}) => devices?.total ? `${devices.well}/${devices.total}` : NONE;
const agentOf = node => node.agent || 'none';

// ---- Nodes

export function nodesScreen(page) {
	const table = new Table('Nodes', 'nodes', node => node.name, [
		['State', '', 'state', setState],
		['Node', 'row name', 'sentence', (cell, value, node) => drawName(cell, node, nodePath(node.name), '')],
		['What happens', 'wide text', 'sentence'],
		['Class', 'mid', 'class'],
		['Devices well', 'num', devicesText],
		['Agent', 'mid', agentOf, setState],
		['Jobs', 'mid', node => JSON.stringify(node.jobs), drawJobs],
		['Action', 'wide', 'action'],
		['Since', 'num mid', 'since', setAge],
	], 'No node matches.');
	const chips = stateChips(page, 'Nodes by state');
	const box = searchBox(page);
	const pages = pager(page);
	const breaker = el('p.note.bad');
	const budgets = el('ul.budgets', {'aria-label': 'Budgets'});
	return {
		title: 'Nodes',
		node: el('div', el('h1', {tabindex: -1}, 'Nodes'), breaker, budgets, chips.node, el('div.filters', {role: 'search'}, box.node), table.node, pages.node),
		async load(signal) {
			const list = await get('nodes' + query(pickFilters(page, 'state', 'q', 'continue')), signal);
			const total = sum(Object.values(list.states || {})) || list.total;
			setNote(breaker, list.breaker?.open && list.breaker.sentence);
			budgets.replaceChildren(...(list.budgets || []).map(one => el('li', el('b', one.policy),
				one.limit ? el('meter', {max: one.limit, value: one.used, high: one.limit * 0.75, 'aria-hidden': 'true'}) : '', one.sentence)));
			chips.update(list.states, total);
			box.update();
			table.update(list.items);
			pages.update(list);
			page.summary(stateSummary(list.states, total, 'node'));
		},
		event: listEvents(page, table, 'node', 'nodeStates'),
	};
}

// ---- Node

function drawEvidence(cell, value, {evidence}) {
	cell.replaceChildren(evidence?.length ? el('ul.evidence', evidence.map(fact =>
		el('li', clockNode(fact.at), ' ' + [fact.source, fact.code].filter(part => part != null).join(' ') + ': ' + fact.text))) : NONE);
}

export function nodeScreen(page, name) {
	const state = el('span');
	const sentence = el('p.lead');
	const {node: facts, values} = figures('Devices well', 'Class', 'Agent', 'Action', 'Since');
	const jobs = el('p');
	const devices = new Table('Devices', 'plain', one => one.uuid || one.pci || String(one.index), [
		['State', '', 'state', setState],
		['Device', 'row', one => [one.kind, one.model, one.pci, one.uuid].filter(Boolean).join(' · ')],
		['Class', 'mid', 'class'],
		['Evidence', 'text', one => JSON.stringify(one.evidence), drawEvidence],
	], 'No device is known.');
	const acts = new Table('Remediations', 'plain', one => one.name, [
		['Remediation', 'row', 'name'],
		['Step', '', 'rung'],
		['State', '', 'state', setState],
		['What happens', 'text', 'sentence'],
		['Since', 'num mid', 'at', setAge],
	], 'No remediation is recorded.');
	return {
		title: name,
		node: el('div', el('nav.crumbs', {'aria-label': 'Path'}, link('/nodes', 'Nodes')), el('div.head', el('h1', {tabindex: -1}, name), state), sentence, facts,
			section('Jobs on this node', jobs), section('Devices and evidence', devices.node), section('Remediations', acts.node)),
		async load(signal) {
			const node = await get('nodes/' + encodeURIComponent(name), signal);
			setState(state, node.state);
			setText(sentence, node.sentence);
			setText(values['Devices well'], devicesText({devices: node.deviceCounts}));
			setText(values.Class, node.class ?? NONE);
			setState(values.Agent, agentOf(node));
			setText(values.Action, node.action ?? NONE);
			setAge(values.Since, node.since);
			jobs.replaceChildren(...node.jobs?.length ? node.jobs.flatMap((job, at) => [at ? ', ' : '', link(jobPath(job), `${job.namespace}/${job.name}`)])
				: ['No job has a rank here.']);
			devices.update(node.devices || []);
			acts.update(node.remediations || []);
			page.summary(`${name}: ${node.state}`);
		},
		event: ({data}) => data?.name === name && page.refresh(RELOAD_MS),
	};
}

// ---- Recovery

// A plot with its data table; without data, a sentence is in the plot's place.
function chart(title, heads, ...extra) {
	const field = el('div');
	const data = dataTable(title, heads);
	const node = section(title, field, ...extra, data.node);
	node.classList.add('chart');
	return {node, update(drawn, rows, empty = 'No data from this time.') {
		field.replaceChildren(drawn || el('p.empty', empty));
		for (const part of extra)
			part.hidden = !drawn;
		data.node.hidden = !drawn;
		data.update(rows);
	}};
}

export function recoveryScreen(page) {
	const tabs = Object.entries(WINDOWS).map(([key, text]) => link('/recovery?window=' + key, text, 'a.chip'));
	const {node: facts, values} = figures('Restarts', 'ETTR', 'Median time to recover', 'Lost device hours');
	const since = el('p.soft');
	const axes = [timeAxis(), timeAxis(), timeAxis()];
	const causes = chart('Restarts by cause', ['From', ...CAUSES], axes[0].node, causeLegend());
	const ettr = chart('ETTR: share of the active time in which all ranks ran', ['From', 'ETTR'], axes[1].node);
	const mttr = chart('Time to recover by stage', ['Stage', 'Median', '90 % are below'], stageLegend());
	const lost = chart('Lost device hours', ['From', 'Device hours'], axes[2].node);
	const worst = jobTable('Jobs that lost most', 'No job lost time.');

	function showStages(parts) {
		const of = part => Object.fromEntries(STAGES.map(([key]) => [key, parts[key]?.[part]]));
		const whole = Math.max(sum(Object.values(of('p50'))), sum(Object.values(of('p90'))));
		const row = (text, part) => [el('dt', text), el('dd', stageStrip(of(part), whole))];
		mttr.update(whole ? el('dl.stagebars', row('Median', 'p50'), row('90 %', 'p90')) : null,
			[...STAGES, ['total', 'total']].filter(([key]) => parts[key]).map(([key, stage]) => [stage, seconds(parts[key].p50), seconds(parts[key].p90)]));
	}

	return {
		title: 'Recovery',
		node: el('div', el('h1', {tabindex: -1}, 'Recovery'), el('ul.chips', {'aria-label': 'Time'}, tabs.map(tab => el('li', tab))), facts, since,
			el('div.charts', causes.node, ettr.node, mttr.node, lost.node), section('Jobs that lost most', worst.node)),
		async load(signal) {
			const chosen = page.params.get('window') || '24h';
			const data = await get('recovery' + query({window: chosen}), signal);
			Object.keys(WINDOWS).forEach((key, at) => setFlag(tabs[at], 'aria-current', key === chosen && 'true'));
			const from = Date.parse(data.from);
			const startOf = at => when(new Date(from + at * data.bucketSeconds * 1000).toISOString());
			for (const axis of axes)
				axis.update(from, Date.parse(data.to));

			const series = CAUSES.map(cause => [cause, data.restarts?.[cause] || []]);
			const textOf = numberOf => series.map(([cause, numbers]) => `${numberOf(numbers)} ${cause}`).join(', ');
			const restarts = sum(series.map(([, numbers]) => sum(numbers)));
			causes.update(restarts ? bars('Restarts by cause: ' + textOf(sum), series, at => `${startOf(at)}: ${textOf(numbers => numbers[at])}`, count) : null,
				series[0][1].map((_, at) => [startOf(at), ...series.map(([, numbers]) => numbers[at])]).filter(row => sum(row.slice(1))), 'No job restarted.');

			const shares = data.ettr || [];
			const known = shares.filter(value => value != null);
			ettr.update(known.length ? line(`ETTR between ${share(Math.min(...known))} and ${share(Math.max(...known))}`, shares, value => value * 100 + '%') : null,
				shares.map((value, at) => [startOf(at), share(value)]).filter((_, at) => shares[at] != null));

			const hours = data.lostDeviceHours || [];
			const measured = hours.some(value => value != null);
			lost.update(sum(hours) ? bars(`${decimal(sum(hours))} lost device hours`, [['lost', hours]], at => `${startOf(at)}: ${decimal(hours[at])} device hours`, decimal) : null,
				hours.map((value, at) => [startOf(at), decimal(value)]).filter((_, at) => hours[at]), measured ? 'No device hour was lost.' : undefined);
			showStages(data.mttr || {});

			setText(values.Restarts, count(restarts));
			setText(values.ETTR, share(known.length ? sum(known) / known.length : null));
			setText(values['Median time to recover'], seconds(data.mttr?.total?.p50));
			setText(values['Lost device hours'], measured ? decimal(sum(hours)) : NONE);
			setNote(since, Date.parse(data.since) > from && `The server has collected since ${when(data.since)}.`);
			worst.update(data.worst || []);
			page.summary(`${plural(restarts, 'restart')} in ${WINDOWS[chosen] || chosen}`);
		},
		event: ({event}) => event !== 'node' && page.refresh(PLOTS_MS),
	};
}
