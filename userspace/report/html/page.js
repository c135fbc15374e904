// SPDX-License-Identifier: GPL-2.0-only
// The page of `whyidle report --html`. All text from the recorded program goes into text nodes only.
"use strict";
(() => {

const held = name => {
	const element = document.getElementById(name);
	return element ? JSON.parse(element.textContent) : null;
};
const page = document.getElementById("page");
// What is said across several inputs, null if there is one; and the input that is shown now: its report, what is not in
// that, kinds of stretches and threads, and what ends the ids of its data.
const across = held("across");
let report, extra, kinds, threads, codes, suffix;

// ---- words and figures ----

function duration(ns) {
	const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
	for (const [scale, unit] of units) {
		if (ns >= scale * 0.9995) {
			const value = ns / scale;
			return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0) + " " + unit;
		}
	}
	return Math.round(ns) + " ns";
}

function percent(part, whole) {
	const value = whole > 0 ? 100 * part / whole : 0;
	return value > 0 && value < 0.1 ? "<0.1 %" : value.toFixed(1) + " %";
}

function count(number) {
	return number.toLocaleString("en-US");
}

function bytes(number) {
	for (const [scale, unit] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]])
		if (number >= scale)
			return (number / scale).toFixed(1) + " " + unit;
	return Math.round(number) + " B";
}

// An element; children are elements or text, which stays text.
function make(tag, attributes, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes || {})) {
		if (name.startsWith("on"))
			element.addEventListener(name.slice(2), value);
		else if (name === "style")
			Object.assign(element.style, value);
		else if (value !== null && value !== undefined)
			element.setAttribute(name, value);
	}
	element.append(...children.filter(child => child !== null && child !== undefined));
	return element;
}

// ---- colours: a hue for each class of causes, lightness for each cause in it ----

const HUES = {device: [185, 235], host: [14, 62], sched: [262, 300], wait: [325, 375], memory: [90, 160],
	external: [66, 80], tool: [308, 316]};
function colour(code) {
	const kind = code.split(".")[0];
	const place = codes.filter(other => other.startsWith(kind + ".")).indexOf(code);
	if (kind === "unknown")
		return `hsl(0 0% ${[62, 54, 70, 46, 76, 50][Math.max(0, place) % 6]}%)`;
	const [low, high] = HUES[kind] ?? [0, 360], all = codes.filter(other => other.startsWith(kind + ".")).length;
	const hue = Math.round(low + (high - low) * (place * 2 % all) / Math.max(1, all - 1)) % 360;
	return `hsl(${hue} ${[82, 66, 74][place % 3]}% ${[64, 52, 60, 70][place % 4]}%)`;
}

function load(part) {
	suffix = part ? "@" + part : "";
	report = held("report" + suffix);
	extra = held("extra" + suffix);
	codes = Object.keys(extra.meanings);
	kinds = extra.kinds.map(([code, role, state]) => ({code, role, state, colour: colour(code)}));
	threads = extra.threads.map(([pid, tid, comm]) => ({pid, tid, comm}));
}

function threadName(thread) {
	return thread.tid ? `${thread.comm || "?"} (${thread.tid})` : "GPU";
}

// ---- the gaps of a device ----

function decode(index) {
	const text = atob(document.getElementById("gaps-" + index + suffix).textContent);
	let at = 0;
	const number = () => {
		let value = 0, scale = 1, byte;
		do {
			byte = text.charCodeAt(at++);
			value += (byte & 127) * scale;
			scale *= 128;
		} while (byte & 128);
		return value;
	};
	const gaps = extra.gpus[index].gaps.drawn;
	const start = new Float64Array(gaps), end = new Float64Array(gaps), first = new Uint32Array(gaps + 1);
	const length = [], kind = [], thread = [];
	let now = 0;
	for (let gap = 0; gap < gaps; gap++) {
		now += number();
		start[gap] = now;
		first[gap] = length.length;
		for (let leaves = number(); leaves > 0; leaves--) {
			const part = number();
			length.push(part);
			kind.push(number());
			thread.push(number());
			now += part;
		}
		end[gap] = now;
	}
	first[gaps] = length.length;
	return {count: gaps, start, end, first, length: Float64Array.from(length), kind: Uint16Array.from(kind),
		thread: Uint32Array.from(thread)};
}

// Index of the first gap that ends after a time.
function firstAfter(gaps, time) {
	let low = 0, high = gaps.count;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (gaps.end[middle] > time)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

// ---- the timeline ----

// Adds what a stretch covers of each column.
function addSpan(row, left, right) {
	const first = left | 0, last = right | 0;
	if (first === last) {
		row[first] += right - left;
		return;
	}
	row[first] += first + 1 - left;
	for (let x = first + 1; x < last; x++)
		row[x] += 1;
	row[last] += right - last;
}

function paint(canvas, gaps, from, to) {
	const scale = window.devicePixelRatio || 1, context = canvas.getContext("2d");
	const width = Math.max(1, Math.round(canvas.clientWidth * scale));
	const height = Math.max(1, Math.round(canvas.clientHeight * scale));
	canvas.width = width;
	canvas.height = height;
	context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--busy");
	context.fillRect(0, 0, width, height);
	// Each column shows how its time was spent, from the bottom: idle time by kind; the rest was busy.
	const perNs = width / (to - from), shares = new Map(), {start, first, length, kind} = gaps;
	for (let gap = firstAfter(gaps, from); gap < gaps.count && start[gap] < to; gap++) {
		let now = start[gap];
		for (let leaf = first[gap]; leaf < first[gap + 1]; leaf++) {
			const left = (Math.max(now, from) - from) * perNs;
			now += length[leaf];
			const right = (Math.min(now, to) - from) * perNs;
			if (right <= left)
				continue;
			let row = shares.get(kind[leaf]);
			if (!row)
				shares.set(kind[leaf], row = new Float32Array(width + 1));
			addSpan(row, left, right);
		}
	}
	const base = new Float32Array(width);
	for (const [kind, row] of [...shares].sort((a, b) => a[0] - b[0])) {
		context.fillStyle = kinds[kind].colour;
		for (let x = 0; x < width; x++) {
			if (!row[x])
				continue;
			const tall = Math.max(row[x] * height, row[x] > 0.001 ? 1 : 0);
			context.fillRect(x, height - base[x] - tall, 1, tall);
			base[x] += row[x] * height;
		}
	}
	return context;
}

class Timeline {
	constructor(index, gpu) {
		this.index = index;
		this.gpu = gpu;
		this.gaps = decode(index);
		this.from = 0;
		this.to = this.whole = Math.max(1, gpu.window_ns);
		this.strip = make("canvas", {class: "strip", tabindex: 0, role: "application", "aria-describedby": `help-${index}`,
			"aria-label": `Timeline of GPU ${gpu.device}: plus and minus zoom, arrows move, Home shows all, ` +
				"Enter explains the gap in the middle"});
		this.map = make("canvas", {class: "whole", "aria-hidden": "true"});
		this.status = make("p", {role: "status", "aria-live": "polite", id: `status-${index}`, class: "soft"});
		this.left = make("span");
		this.right = make("span");
		this.chosen = make("div", {class: "panel", id: `gap-${index}`, "aria-live": "polite"},
			make("p", {class: "soft"}, "Click a gap, or one of the worst gaps below, to see what it waited for."));
		this.listen();
	}

	element() {
		const tool = (name, label, action) => make("button", {type: "button", "data-action": name, onclick: action}, label);
		return make("div", {},
			make("div", {class: "tools", role: "group", "aria-label": "Zoom"},
				tool("in", "+ closer", () => this.zoom(0.5)), tool("out", "− wider", () => this.zoom(2)),
				tool("left", "◀ earlier", () => this.move(-0.5)), tool("right", "later ▶", () => this.move(0.5)),
				tool("all", "all of it", () => this.show(0, this.whole)),
				tool("previous", "previous gap", () => this.step(-1)), tool("next", "next gap", () => this.step(1))),
			this.strip, make("div", {class: "axis"}, this.left, this.right), this.map, this.status,
			make("p", {class: "hidden", id: `help-${this.index}`},
				"The same is in the tables below: causes, worst gaps and their chains."),
			this.chosen);
	}

	listen() {
		const time = event => {
			const box = this.strip.getBoundingClientRect();
			return this.from + (event.clientX - box.left) / box.width * (this.to - this.from);
		};
		let held = null;
		this.strip.addEventListener("wheel", event => {
			event.preventDefault();
			this.zoom(event.deltaY > 0 ? 1.3 : 1 / 1.3, time(event));
		}, {passive: false});
		this.strip.addEventListener("pointerdown", event => {
			held = {x: event.clientX, from: this.from, to: this.to, moved: false};
			this.strip.setPointerCapture(event.pointerId);
		});
		this.strip.addEventListener("pointermove", event => {
			const shift = held ? event.clientX - held.x : 0;
			if (held && (held.moved || Math.abs(shift) > 4)) {
				const span = held.to - held.from, box = this.strip.getBoundingClientRect();
				held.moved = true;
				this.show(held.from - shift / box.width * span, held.to - shift / box.width * span);
			}
		});
		this.strip.addEventListener("pointerup", event => {
			if (held && !held.moved)
				this.pick(time(event));
			held = null;
		});
		this.strip.addEventListener("dblclick", event => this.zoom(0.25, time(event)));
		this.strip.addEventListener("keydown", event => this.key(event));
		this.map.addEventListener("click", event => {
			const box = this.map.getBoundingClientRect(), span = this.to - this.from;
			const middle = (event.clientX - box.left) / box.width * this.whole;
			this.show(middle - span / 2, middle + span / 2);
		});
	}

	key(event) {
		const actions = {"+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
			ArrowLeft: () => this.move(-0.25), ArrowRight: () => this.move(0.25), Home: () => this.show(0, this.whole),
			Enter: () => this.pick((this.from + this.to) / 2), n: () => this.step(1), p: () => this.step(-1)};
		if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey)
			return;
		event.preventDefault();
		actions[event.key]();
	}

	zoom(factor, around = (this.from + this.to) / 2) {
		this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
	}

	move(part) {
		const shift = (this.to - this.from) * part;
		this.show(this.from + shift, this.to + shift);
	}

	show(from, to) {
		const span = Math.min(this.whole, Math.max(100, to - from));
		this.from = Math.max(0, Math.min(from, this.whole - span));
		this.to = this.from + span;
		this.draw();
	}

	draw() {
		const begun = performance.now(), gaps = this.gaps;
		let idle = 0, shown = 0;
		paint(this.strip, gaps, this.from, this.to);
		for (let gap = firstAfter(gaps, this.from); gap < gaps.count && gaps.start[gap] < this.to; gap++) {
			idle += Math.min(gaps.end[gap], this.to) - Math.max(gaps.start[gap], this.from);
			shown++;
		}
		if (!this.picture || this.picture.width !== this.map.clientWidth) {
			paint(this.map, gaps, 0, this.whole);
			this.picture = {width: this.map.clientWidth, image: this.map.getContext("2d").getImageData(0, 0,
				this.map.width, this.map.height)};
		}
		const context = this.map.getContext("2d"), scale = this.map.width / this.whole;
		context.putImageData(this.picture.image, 0, 0);
		context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--mark");
		context.lineWidth = 3;
		context.strokeRect(this.from * scale + 1, 1, Math.max(3, (this.to - this.from) * scale - 2), this.map.height - 2);
		Object.assign(this.status.dataset, {from: this.from, to: this.to, idle, gaps: shown,
			drawMs: performance.now() - begun});
		this.left.textContent = duration(this.from);
		this.right.textContent = duration(this.to);
		this.status.textContent = `${duration(this.to - this.from)} from ${duration(this.from)} on: idle ` +
			`${percent(idle, this.to - this.from)} (${duration(idle)} in ${count(shown)} gaps).`;
	}

	// The gap at a time, or the next one within a hundredth of what is shown.
	pick(time) {
		const gaps = this.gaps, slack = (this.to - this.from) / 100;
		let gap = firstAfter(gaps, time - slack), best = -1, most = -1;
		for (; gap < gaps.count && gaps.start[gap] <= time + slack; gap++) {
			const length = gaps.end[gap] - gaps.start[gap];
			if (gaps.start[gap] <= time && gaps.end[gap] >= time) {
				best = gap;
				break;
			}
			if (length > most) {
				most = length;
				best = gap;
			}
		}
		if (best >= 0)
			this.choose(best);
	}

	step(direction) {
		const at = this.gap === undefined ? firstAfter(this.gaps, this.from) - (direction > 0 ? 1 : 0) : this.gap;
		const next = at + direction;
		if (next < 0 || next >= this.gaps.count)
			return;
		this.focusOn(next);
	}

	focusOn(gap) {
		const length = this.gaps.end[gap] - this.gaps.start[gap];
		this.show(this.gaps.start[gap] - length / 4, this.gaps.end[gap] + length / 4);
		this.choose(gap);
	}

	choose(gap) {
		this.gap = gap;
		this.chosen.replaceChildren(...explain(this, gap));
		Object.assign(this.chosen.dataset, {start: this.gaps.start[gap], end: this.gaps.end[gap]});
	}
}

// ---- one gap ----

function laneBar(from, to, start, end, background, label, state, title) {
	const left = Math.max(0, (start - from) / (to - from) * 100), right = Math.min(100, (end - from) / (to - from) * 100);
	return make("i", {class: state || "", title, style: {left: left + "%", width: Math.max(0.1, right - left) + "%",
		backgroundColor: background}}, label);
}

// What is blamed: a stretch with code, role, state, thread and times from the gap's beginning.
function stretches(timeline, gap) {
	const gaps = timeline.gaps, list = [];
	let now = 0;
	for (let leaf = gaps.first[gap]; leaf < gaps.first[gap + 1]; leaf++) {
		const kind = kinds[gaps.kind[leaf]], thread = threads[gaps.thread[leaf]];
		list.push({...kind, thread, start: now, end: now += gaps.length[leaf]});
	}
	return list;
}

function explain(timeline, gap) {
	const start = timeline.gaps.start[gap], length = timeline.gaps.end[gap] - start;
	const place = timeline.gpu.top.findIndex(top => top.start === start && top.end === start + length);
	const known = timeline.gpu.top[place];
	const parts = stretches(timeline, gap);
	const margin = known ? length / 4 : 0, from = -margin, to = length + margin;
	const lanes = new Map(), rows = [];
	const lane = name => {
		if (!lanes.has(name))
			lanes.set(name, make("div", {class: "lane"}, make("span", {class: "shade", style: {
				left: margin / (to - from) * 100 + "%", width: length / (to - from) * 100 + "%"}})));
		return lanes.get(name);
	};
	if (known) {
		for (const [stream, name, opStart, opEnd] of known.ops)
			lane(`GPU, stream ${stream}`).append(laneBar(from, to, opStart, opEnd, "#9fb3c8", name, "", `${name}, ` +
				duration(opEnd - opStart)));
		for (const [name, callStart, callEnd] of known.calls)
			lane(`CUDA calls of ${known.comm || "?"} (${known.tid})`).append(laneBar(from, to, callStart, callEnd, "#d9c27a",
				name, "", `${name}, ${duration(callEnd - callStart)}`));
	}
	parts.forEach((part, i) => {
		const name = threadName(part.thread), link = known && known.chain[i];
		const frames = link ? report.gpus[timeline.index].top_gaps[place].chain[i].detail.stack || [] : [];
		lane(name).append(laneBar(from, to, part.start, part.end, part.colour, part.code, part.state,
			[`${part.code}@${part.role}, ${part.state}, ${duration(part.end - part.start)}`, ...frames].join("\n")));
		rows.push(make("tr", {}, make("td", {class: "n"}, duration(part.start)),
			make("td", {class: "n"}, duration(part.end - part.start)), make("td", {}, name),
			make("td", {class: "w"}, part.state), make("td", {class: "w"}, make("span", {class: "swatch", style: {background: part.colour}}),
				`${part.code}@${part.role}`),
			make("td", {}, link ? [link.detail, link.via].filter(text => text).join(" · ") : "", frames.length
				? make("details", {class: "stack-of"}, make("summary", {}, `stack of ${frames.length}`),
					make("ol", {}, ...frames.map(frame => make("li", {}, frame)))) : null)));
	});
	const ended = known && (known.kernel || known.launch) ? ` It ended with ${known.kernel || "an operation"}` +
		(known.launch ? `, launched by ${known.comm || "?"} (${known.tid}) in ${known.launch}` : "") + "." : "";
	return [make("h3", {}, `Gap of ${duration(length)}, ${duration(start)} after the beginning`),
		make("p", {}, `GPU ${timeline.gpu.device} was idle from ${duration(start)} to ${duration(start + length)}.${ended}`),
		make("div", {class: "lanes", role: "img", "aria-label": "The same as lanes; the table below says it in words"},
			...[...lanes].flatMap(([name, element]) => [make("span", {}, name), element])),
		make("div", {class: "long", tabindex: 0, role: "region", "aria-label": "Chain of the gap"},
			table(["after|n", "for|n", "thread", "state", "cause", "what"], rows))];
}

// ---- tables ----

function table(heads, rows, caption) {
	const cells = heads.map(head => {
		const [name, kind] = head.split("|");
		return make("th", {scope: "col", class: kind || null}, name);
	});
	return make("table", {}, caption ? make("caption", {class: "hidden"}, caption) : null,
		make("thead", {}, make("tr", {}, ...cells)), make("tbody", {}, ...rows));
}

function causes(gpu) {
	const rows = gpu.causes.map(cause => {
		const [low, high] = cause.gain_ns, gain = low > 0 || high < cause.ns;
		return make("tr", {"data-cause": `${cause.code}@${cause.role}`, "data-ns": cause.ns},
			make("td", {class: "w"}, make("span", {class: "swatch", style: {background: colour(cause.code)}}),
				`${cause.code}@${cause.role}`),
			make("td", {}, extra.meanings[cause.code] || ""), make("td", {class: "n"}, duration(cause.ns)),
			make("td", {class: "n"}, percent(cause.ns, gpu.idle_ns)), make("td", {class: "n"}, count(cause.gap_count)),
			make("td", {class: "w"}, cause.confidence),
			make("td", {class: "n"}, gain ? `${duration(low)} to ${duration(high)}` : "not known"),
			make("td", {}, cause.threads.slice(0, 4).map(thread => `${thread.comm || "?"} (${thread.tid})`).join(", ") +
				(cause.threads.length > 4 ? ` and ${cause.threads.length - 4} more` : "")));
	});
	return table(["cause", "meaning", "idle|n", "of idle|n", "gaps|n", "confidence", "to gain|n", "threads"], rows,
		"Causes of idle time");
}

function worst(timeline) {
	const rows = timeline.gpu.top.map(top => {
		const main = [...top.chain].sort((a, b) => b.end - b.start - (a.end - a.start))[0];
		return make("tr", {}, make("td", {}, make("button", {type: "button", "data-start": top.start, "data-end": top.end,
			onclick: () => {
				const gap = firstAfter(timeline.gaps, top.start);
				if (gap < timeline.gaps.count) {
					timeline.focusOn(gap);
					timeline.strip.scrollIntoView({block: "center"});
				}
			}}, `show ${duration(top.end - top.start)}`)),
			make("td", {class: "n"}, duration(top.start)), make("td", {}, main ? `${main.code}@${main.role}` : ""),
			make("td", {}, main && main.tid ? `${main.comm} (${main.tid})` : "GPU"),
			make("td", {}, main ? main.via || "" : ""), make("td", {}, top.kernel || "nothing"));
	});
	return table(["gap", "begins|n", "largest part", "thread", "by way of", "ended by"], rows, "Worst gaps");
}

// One of the tables that `report --tables` prints.
function activity(data) {
	const shown = {text: value => value ?? "?", count: value => count(Math.round(value * 10) / 10), ns: duration, bytes,
		share: value => percent(value, 1)};
	const last = data.columns[data.columns.length - 1], columns = [last, ...data.columns.slice(0, -1)];
	const rows = data.rows.map(row => make("tr", {"data-count": row.count, "data-ns": row.total_ns,
		"data-bytes": row.total_bytes}, ...columns.map(({key, unit}) =>
		make("td", {class: unit === "text" ? null : "n"}, shown[unit](row[key])))));
	const heads = columns.map(({label, unit}) => unit === "text" ? label : label + "|n");
	const more = data.row_count - data.rows.length;
	return make("details", {"data-table": data.name}, make("summary", {}, `${data.title} (${count(data.row_count)})`),
		rows.length ? table(heads, rows, data.title) : make("p", {class: "soft"}, "none"),
		more ? make("p", {class: "soft"}, `${count(more)} smaller ones are not shown; report --tables has them.`) : null);
}

// ---- steps ----

// Each step as a bar as high as it was long; the table says what slow ones were longer for.
function steps(timeline, gpu, report) {
	if (!report)
		return [];
	const bars = make("canvas", {class: "steps", role: "img", "aria-label":
		`Length of ${count(gpu.steps.length)} steps; the slow ones are in the table below`});
	// Times are the page's own: those of the report may need more digits than numbers have here.
	const codes = new Map(report.slow.map((slow, i) => [gpu.slow[i][0], slow.causes.length ? slow.causes[0].code : null]));
	const draw = () => {
		const scale = globalThis.devicePixelRatio || 1, context = bars.getContext("2d");
		const style = getComputedStyle(document.documentElement);
		const width = bars.width = Math.max(1, Math.round(bars.clientWidth * scale));
		const height = bars.height = Math.max(1, Math.round(bars.clientHeight * scale));
		const most = gpu.steps.reduce((most, step) => Math.max(most, step[1]), 1), wide = width / gpu.steps.length;
		gpu.steps.forEach(([start, length, kind], i) => {
			const code = kind === 1 ? codes.get(start) : null, tall = Math.max(1, length / most * height);
			context.fillStyle = kind === 1 ? code ? colour(code) : style.getPropertyValue("--mark")
				: style.getPropertyValue(kind === 2 ? "--line" : "--soft");
			context.fillRect(i * wide, height - tall, Math.max(1, wide - (wide > 3 ? 1 : 0)), tall);
		});
	};
	const show = (start, length) => {
		timeline.show(start, start + length);
		timeline.strip.scrollIntoView({block: "center"});
	};
	bars.addEventListener("click", event => {
		const box = bars.getBoundingClientRect();
		const step = gpu.steps[Math.floor((event.clientX - box.left) / box.width * gpu.steps.length)];
		if (step)
			show(step[0], step[1]);
	});
	drawings.push(draw);
	const reason = slow => [slow.busy_more_ns > slow.more_ns / 10 ? `the GPU's own work +${duration(slow.busy_more_ns)}` : "",
		...slow.causes.slice(0, 3).map(cause => `${cause.code}@${cause.role} +${duration(cause.more_ns)}` +
			(cause.tid ? ` (${cause.comm || "?"} ${cause.tid})` : ""))].filter(text => text).join(", ");
	const rows = report.slow.map((slow, i) => {
		const [start, length] = gpu.slow[i];
		return make("tr", {"data-step": slow.number, "data-more": slow.more_ns},
			make("td", {}, make("button", {type: "button", onclick: () => show(start, length)}, `step ${slow.number}`)),
			make("td", {class: "n"}, duration(start)), make("td", {class: "n"}, duration(length)),
			make("td", {class: "n"}, duration(slow.more_ns)), make("td", {class: "n"}, duration(slow.idle_ns)),
			make("td", {}, reason(slow)));
	});
	const left = report.count - gpu.steps.length, hidden = report.slow_count - report.slow.length;
	return [make("h3", {}, "Steps"), make("p", {}, `${count(report.count)} steps ` + (report.origin === "named"
		? `named ${report.name} by the program` : `by the rhythm of ${count(report.period_ops)} operations`) +
		`: median ${duration(report.median_ns)}, ${duration(report.least_ns)} to ${duration(report.most_ns)}` +
		(report.warm_up ? ` without ${report.warm_up} for warm-up. ` : ". ") + (report.slow_count
		? `${count(report.slow_count)} slow ones took ${duration(report.slow_more_ns)} more than normal ones.`
		: "None is slow against the others.")), bars,
		left ? make("p", {class: "soft"}, `The last ${count(left)} are not drawn.`) : null,
		rows.length ? table(["slow step", "begins|n", "took|n", "longer|n", "idle|n", "because of"], rows, "Slow steps") : null,
		hidden ? make("p", {class: "soft"}, `${count(hidden)} more are slow, each by less.`) : null];
}

// ---- flame graph and histogram ----

// The gaps that hold most of what a box of the flame graph is about: a cause, and a thread if the box lies in one.
function gapsOf(gaps, cause, pid, tid) {
	const wanted = kinds.map(kind => `${kind.code}@${kind.role}` === cause);
	const among = threads.map(thread => (!pid || thread.pid === pid) && (!tid || thread.tid === tid)), best = [];
	for (let gap = 0; gap < gaps.count; gap++) {
		let ns = 0;
		for (let leaf = gaps.first[gap]; leaf < gaps.first[gap + 1]; leaf++)
			if (wanted[gaps.kind[leaf]] && among[gaps.thread[leaf]])
				ns += gaps.length[leaf];
		if (!ns || best.length === FLAME_GAPS && ns <= best[FLAME_GAPS - 1].ns)
			continue;
		best.push({gap, ns});
		best.sort((a, b) => b.ns - a.ns);
		best.length = Math.min(best.length, FLAME_GAPS);
	}
	return best;
}

const FLAME_GAPS = 8;

function flame(timeline, gpu) {
	const index = timeline.index;
	const nodes = gpu.gaps.flame.map(([parent, name, own]) => ({parent, name: name || "?", own, total: own, children: []}));
	const root = {name: "idle time", total: 0, children: [], parent: null};
	// Children stand behind their parents.
	for (let i = nodes.length - 1; i >= 0; i--)
		if (nodes[i].parent >= 0)
			nodes[nodes[i].parent].total += nodes[i].total;
	for (const node of nodes) {
		const parent = node.parent < 0 ? root : nodes[node.parent];
		parent.children.push(node);
		node.parent = parent;
		if (parent === root)
			root.total += node.total;
	}
	const box = make("div", {class: "flame", role: "group", "aria-label": "Idle time by cause, process, thread and place"});
	const say = make("p", {class: "soft", role: "status", id: `flame-${index}`});
	const worst = make("p", {class: "tools", id: `flame-gaps-${index}`});
	const number = (node, kind) => +(node ? node.name.match(new RegExp(`\\(${kind} (\\d+)\\)$`)) || [0, 0] : [0, 0])[1];
	// Names of processes and threads are the program's own, but they end in what the page says of them.
	const link = path => {
		const cause = path[1], process = number(path[2], "process"), thread = number(path[3], "thread");
		worst.replaceChildren(...!cause ? [] : ["Worst gaps of it: ", ...gapsOf(timeline.gaps, cause.name, process, thread).map(
			({gap, ns}) => make("button", {type: "button", "data-gap": gap, "data-ns": ns, onclick: () => {
				timeline.focusOn(gap);
				timeline.strip.scrollIntoView({block: "center"});
			}}, duration(ns)))]);
	};
	const draw = focus => {
		const path = [];
		let depth = 0;
		for (let node = focus; node; node = node.parent)
			path.unshift(node);
		const put = (node, level, left, width, background) => {
			depth = Math.max(depth, level + 1);
			box.append(make("button", {type: "button", title: `${node.name}: ${duration(node.total)}`, "data-ns": node.total,
				"aria-label": `${node.name}, ${duration(node.total)}, ${percent(node.total, root.total)} of idle time`,
				onclick: () => draw(node),
				style: {left: left + "%", width: width + "%", top: level * 21 + "px", background}}, node.name));
		};
		const fill = (node, level, left, width, background) => {
			put(node, level, left, width, background);
			let at = left;
			for (const child of [...node.children].sort((a, b) => b.total - a.total)) {
				const part = node.total ? width * child.total / node.total : 0;
				if (part > 0.15)
					fill(child, level + 1, at, part, node === root ? colour(child.name.split("@")[0]) : background);
				at += part;
			}
		};
		const tint = node => {
			while (node.parent && node.parent !== root)
				node = node.parent;
			return node === root ? "#b8c2ce" : colour(node.name.split("@")[0]);
		};
		const used = box.contains(document.activeElement); // by keyboard: goes on from the same box
		box.replaceChildren();
		path.slice(0, -1).forEach((node, level) => put(node, level, 0, 100, tint(node)));
		fill(focus, path.length - 1, 0, 100, tint(focus));
		box.style.height = depth * 21 + "px";
		if (used)
			box.children[path.length - 1].focus();
		say.textContent = `${path.map(node => node.name).join(" › ")}: ${duration(focus.total)}, ` +
			`${percent(focus.total, root.total)} of the idle time. Click a box to look into it, one above it to come back.`;
		say.dataset.ns = focus.total;
		link(path);
	};
	draw(root);
	return make("div", {}, box, say, worst);
}

function histogram(gpu) {
	const most = Math.max(1, ...gpu.gaps.histogram.map(bin => bin[2]));
	return make("div", {class: "bars", role: "table", "aria-label": "Idle time by length of the gap"},
		...gpu.gaps.histogram.flatMap(([bin, gaps, ns]) => [
			make("span", {role: "cell"}, `${duration(2 ** bin)} to ${duration(2 ** (bin + 1))}`),
			make("span", {class: "bar", role: "cell", "aria-hidden": "true", style: {width: 100 * ns / most + "%"}}),
			make("span", {role: "cell", "data-count": gaps, "data-ns": ns}, `${duration(ns)} in ${count(gaps)} gaps`)]));
}

// ---- parts of the page ----

function findings() {
	return report.findings.length ? make("ol", {}, ...report.findings.map(finding => {
		const [low, high] = finding.gain_ns;
		const gain = low > 0 ? `To gain: ${duration(low)} to ${duration(high)}.`
			: `To gain: at most ${duration(high)}, an upper bound: another cause may take its place.`;
		return make("li", {class: "panel"}, make("b", {}, finding.title), make("p", {}, `Do this: ${finding.advice} ` +
			(finding.hint || "")), make("p", {}, gain), make("ul", {}, ...finding.evidence.map(line => make("li", {}, line))));
	})) : make("p", {}, "Nothing stands out that could be acted on.");
}

function recorded() {
	const source = report.source, lost = Object.entries(report.losses).filter(entry => entry[1] > 0);
	const seconds = (report.session.end_ns - report.session.start_ns) / 1e9;
	const rows = [["command", source.command || "not known"], ["source", `${source.kind}, tier ${source.tier || "not known"}`],
		["GPU timeline", source.gpu_timeline], ["length", `${seconds.toFixed(3)} s`],
		["lost records", lost.map(([where, number]) => `${count(number)} (${where})`).join(", ") || "none"],
		["not recorded", report.degraded.join("; ") || "nothing is missing"], ["whyidle", report.tool.version]];
	return table(["what", "value"], rows.map(([name, value]) => make("tr", {}, make("th", {scope: "row"}, name),
		make("td", {}, value))), "How it was recorded");
}

function notes() {
	const list = [];
	if (report.source.simulated)
		list.push("The GPU was simulated: its times are those of a stand-in, not of a real GPU.");
	if (report.source.incomplete)
		list.push("The recording is incomplete: it was cut off before its end. This is what was saved.");
	if (Object.entries(report.losses).some(([where, number]) => number && where !== "stacks"))
		list.push("Records were lost; idle time over them counts as unknown.lost.");
	return list.map(text => make("p", {class: "warn"}, text));
}

function device(index) {
	const gpu = extra.gpus[index], full = report.gpus[index];
	const heading = make("h2", {id: `gpu-${index}`}, `GPU ${gpu.device}: ${gpu.name}`);
	if (!gpu.window_ns)
		return [make("section", {}, heading, make("p", {}, "No operations."))];
	const timeline = new Timeline(index, gpu), used = new Set(full.causes.map(cause => cause.code));
	timelines.push(timeline);
	const figure = (value, label) => make("span", {}, make("b", {}, value), label);
	const left = gpu.gaps.left_out ? make("p", {class: "warn"}, `${count(gpu.gaps.left_out)} gaps up to ` +
		`${duration(gpu.gaps.threshold_ns)} (${duration(gpu.gaps.left_out_ns)} together) are not drawn in the timeline; ` +
		"all figures and tables have them.") : null;
	return [make("section", {"aria-labelledby": `gpu-${index}`}, heading,
		make("div", {class: "figures", id: `figures-${index}`, "data-idle": gpu.idle_ns, "data-busy": gpu.busy_ns},
			figure(percent(gpu.idle_ns, gpu.window_ns), "idle"), figure(duration(gpu.idle_ns), "of " + duration(gpu.window_ns)),
			figure(count(gpu.gap_count), "gaps"), figure(count(full.op_count), "operations")),
		left, timeline.element(),
		make("ul", {class: "legend", "aria-label": "Colours"}, make("li", {},
			make("span", {class: "swatch", style: {background: "var(--busy)"}}), "busy"),
		...[...used].map(code => make("li", {}, make("span", {class: "swatch", style: {background: colour(code)}}), code))),
		make("h3", {}, "Causes"), causes(full),
		...steps(timeline, gpu, full.steps), make("h3", {}, "Where the idle time went"), flame(timeline, gpu),
		make("h3", {}, "Worst gaps"), worst(timeline), make("h3", {}, "How long the gaps are"), histogram(gpu),
		...gpu.tables.map(activity))];
}

let timelines = [], drawings = [];

// ---- several inputs ----

function list(title, advice, evidence) {
	return make("li", {class: "panel"}, make("b", {}, title), make("p", {}, "Do this: " + advice),
		make("ul", {}, ...evidence.map(line => make("li", {}, line))));
}

// A bar of parts, each [share of the whole, colour, label].
function stack(label, parts) {
	return make("div", {class: "stack", role: "img", "aria-label": label + ": " + parts.map(([share, , name]) =>
		`${name} ${percent(share, 1)}`).join(", ")}, ...parts.map(([share, background, name]) =>
		make("i", {title: `${name} ${percent(share, 1)}`, style: {width: 100 * Math.max(0, share) + "%", background}})));
}

// How each rank spent its time, and whom it waited for.
function ranks(data) {
	const member = rank => data.members.find(other => other.rank === rank);
	const colours = {work: "var(--busy)", alone: colour("device.peer"), idle: colour("host.user_code")};
	const bars = data.members.map(rank => {
		const whole = Math.max(1, rank.window_ns), alone = rank.collective_alone_ns;
		return make("tr", {"data-rank": rank.rank, "data-idle": rank.idle_ns, "data-wait": rank.wait_ns,
			"data-caused": rank.caused_ns}, make("th", {scope: "row", class: "w"}, `rank ${rank.rank}`),
			make("td", {class: "wide"}, stack(`rank ${rank.rank}`, [[(rank.busy_ns - alone) / whole, colours.work, "working"],
				[alone / whole, colours.alone, "in collectives, nothing else running"],
				[rank.idle_ns / whole, colours.idle, "idle"]])),
			make("td", {class: "n"}, percent(rank.idle_ns, whole)), make("td", {class: "n"}, duration(rank.wait_ns)),
			make("td", {class: "n"}, duration(rank.caused_ns)), make("td", {class: "n"}, count(rank.last_count)),
			make("td", {class: "n"}, count(rank.slowest_steps)), make("td", {}, rank.path || ""));
	});
	const what = cause => (cause.code ? `${cause.code}@${cause.role}` : extra.reasons[cause.reason]) + (cause.root_rank !== null &&
		cause.root_rank !== undefined && cause.root_rank !== cause.rank && "rank" in cause ? ` of rank ${cause.root_rank}` : "");
	const why = cause => [cause.thread, cause.detail, cause.via].filter(text => text).join(", ");
	const late = data.causes.slice(0, 20).map(cause => make("tr", {"data-late": cause.rank, "data-wait": cause.wait_ns},
		make("th", {scope: "row"}, cause.rank === null ? "" : `rank ${cause.rank}`), make("td", {}, what(cause)),
		make("td", {class: "n"}, duration(cause.wait_ns)), make("td", {class: "n"}, percent(cause.wait_ns, data.wait_ns)),
		make("td", {class: "n"}, duration(cause.delay_ns)), make("td", {}, why(cause))));
	const path = data.path, went = [["kernels", path.compute_ns], ["copies", path.copy_ns],
		["collectives, without waiting", path.transfer_ns]].filter(entry => entry[1]).map(([name, ns]) => [name, "", ns])
		.concat(path.causes.map(cause => [`rank ${cause.root_rank}: ${what(cause)}`, why(cause), cause.ns]))
		.sort((a, b) => b[2] - a[2]).slice(0, 15).map(([name, detail, ns]) => make("tr", {}, make("td", {}, name),
			make("td", {class: "n"}, duration(ns)), make("td", {class: "n"}, percent(ns, path.span_ns)), make("td", {}, detail)));
	const key = (name, background) => make("li", {}, make("span", {class: "swatch", style: {background}}), name);
	return make("section", {id: "ranks"}, make("h2", {}, "Ranks"),
		make("p", {class: "soft"}, `${count(data.members.length)} ranks, ${count(data.matched)} collectives compared.`),
		...data.notes.map(note => make("p", {class: "warn"}, note)),
		data.missing.length ? make("p", {class: "warn"}, `Not there: rank ${data.missing.join(", ")}.`) : null,
		make("ul", {class: "legend", "aria-label": "Colours"}, key("working", colours.work),
			key("in collectives, nothing else running", colours.alone), key("idle", colours.idle)),
		table(["rank", "its time", "idle|n", "waited|n", "made others wait|n", "came last|n", "slowest steps|n", "input"], bars,
			"Ranks"),
		...late.length ? [make("h3", {}, "Why they came late"), table(["rank", "reason", "waits|n", "of all|n", "to gain|n",
			"what"], late, "Why they came late")] : [],
		...went.length ? [make("h3", {}, "What the job's time went to, on the rank that came last each time"),
			table(["what", "time|n", "of all|n", "who"], went, "The job's time")] : [],
		...data.findings.length ? [make("h3", {}, "Findings across ranks"), make("ol", {}, ...data.findings.map(finding =>
			list(finding.title, finding.advice, finding.evidence)))] : [],
		member(data.slowest) ? make("p", {class: "soft"}, `Rank ${data.slowest} was the slowest.`) : null);
}

// Two runs: what changed, with the noise, and the idle time of both as bars of causes.
function comparison(data) {
	const signed = (value, text) => (value > 0 ? "+" : value < 0 ? "−" : "") + text(Math.abs(value));
	const row = (name, figure, text, whole, extraCell) => make("tr", {"data-figure": name, "data-before": figure.before,
		"data-after": figure.after, "data-beyond": figure.beyond_noise}, make("th", {scope: "row"}, name),
		make("td", {class: "wide"}, whole ? make("div", {"aria-hidden": "true"}, ...[["before", "var(--soft)"],
			["after", "var(--mark)"]].map(([side, background]) => make("i", {class: "meter", style: {background,
			width: Math.max(0.3, 100 * figure[side] / whole) + "%"}}))) : null),
		make("td", {class: "n"}, text(figure.before)), make("td", {class: "n"}, text(figure.after)),
		make("td", {class: "n"}, signed(figure.change, text)),
		make("td", {class: "n"}, figure.noise === null ? "not known" : "±" + text(figure.noise)),
		make("td", {}, figure.beyond_noise ? figure.change < 0 ? "less" : "more" : "within noise"),
		extraCell ? make("td", {}, extraCell) : null);
	const share = value => percent(value, 1), heads = ["", "before (grey), after (blue)", "before|n", "after|n", "change|n", "noise|n", ""];
	const run = (label, side) => make("li", {}, `${label}: ${side.path}, GPU ${side.device} (${side.name}), ` + (side.step_median_ns
		? `${count(side.steps)} steps, median ${duration(side.step_median_ns)}` : `no steps, ${duration(side.window_ns)}`));
	return make("section", {id: "comparison", "data-verdict": data.verdict},
		...data.gpus.flatMap((pair, index) => {
			const text = pair.basis === "step" ? duration : share, per = pair.basis === "step" ? " per step" : " of the time";
			const sides = ["before", "after"].map(side => {
				const all = pair.basis === "step" ? pair.step_ns[side] : 1;
				const whole = pair.basis === "step" ? Math.max(1, pair.step_ns.before, pair.step_ns.after) : 1;
				const parts = pair.causes.filter(cause => cause.figure[side] > 0).sort((a, b) => codes.indexOf(a.code) -
					codes.indexOf(b.code)).map(cause => [cause.figure[side] / whole, colour(cause.code), `${cause.code}@${cause.role}`]);
				const idle = parts.reduce((sum, part) => sum + part[0], 0);
				return make("tr", {}, make("th", {scope: "row", class: "w"}, side), make("td", {style: {width: "80%"}}, stack(side,
					[...parts, [all / whole - idle, "var(--busy)", "busy"]])), make("td", {class: "n"}, text(all)));
			});
			const most = list => list.reduce((most, {figure}) => Math.max(most, figure.before, figure.after), 0);
			const used = [...new Set(pair.causes.filter(cause => cause.figure.before + cause.figure.after > 0).map(cause => cause.code))];
			return [make("h2", {}, `GPU ${index}: ${pair.after.name}`), make("ul", {}, run("before", pair.before), run("after", pair.after)),
				table(["", pair.basis === "step" ? "a step: idle time by cause, grey is busy" : "the time: idle by cause, grey is busy", "|n"],
					sides, "Both runs"),
				make("ul", {class: "legend", "aria-label": "Colours"}, ...used.map(code => make("li", {},
					make("span", {class: "swatch", style: {background: colour(code)}}), code))),
				table(heads, [pair.step_ns ? row("time per step", pair.step_ns, duration, most([{figure: pair.step_ns}])) : null,
					pair.basis === "step" ? row("idle per step", pair.idle, duration, most([{figure: pair.step_ns}])) : null,
					row("idle share of the time", pair.idle_share, share, 1)].filter(entry => entry), "What changed"),
				make("h3", {}, "Idle time" + per + " by cause"), table(heads, pair.causes.map(cause =>
					row(`${cause.code}@${cause.role}`, cause.figure, text, most(pair.causes))), "Causes"),
				make("h3", {}, "GPU time" + per + " by operation"), table([...heads, "calls"], pair.kernels.slice(0, 100).map(kernel =>
					row(kernel.name, kernel.figure, text, most(pair.kernels), kernel.count.beyond_noise
						? `${kernel.count.before.toFixed(1)} → ${kernel.count.after.toFixed(1)}` : "the same")), "Operations"),
				pair.kernels.length > 100 ? make("p", {class: "soft"}, `${count(pair.kernels.length - 100)} more changed less.`) : null];
		}), make("p", {class: "soft"}, "Noise is what chance explains with a probability of 99 %, from the spread inside each run."));
}

// ---- the page ----

// One input, as the page or below what is said across all of them.
function view(part) {
	load(part);
	timelines = [];
	drawings = [];
	const answer = extra.answer.split("\n").filter(line => line);
	const parts = [make("header", {}, make(across ? "h2" : "h1", {}, answer[0] || "No GPU operation was recorded."),
		...answer.slice(1).map(line => make("p", {class: "lead"}, line)), ...notes())];
	if (report.ranks && !across)
		parts.push(ranks(report.ranks));
	parts.push(...extra.gpus.flatMap((gpu, index) => device(index)));
	parts.push(make("section", {}, make("h2", {}, "Findings"), findings()),
		make("section", {}, make("h2", {}, "Host threads"), ...extra.tables.map(activity)),
		make("section", {}, make("h2", {}, "How it was recorded"), recorded()));
	return parts;
}

const redraw = () => {
	timelines.forEach(timeline => {
		timeline.picture = null;
		timeline.draw();
	});
	drawings.forEach(draw => draw());
};

// Buttons choose the input that is shown.
function several() {
	const shown = make("div", {id: "input", "aria-live": "polite"});
	const buttons = across.parts.map((label, part) => {
		const names = across.ranks ? across.ranks.members.filter(member => member.input === part).map(member => member.rank) : [];
		return make("button", {type: "button", "data-part": part, title: label, onclick: () => {
			buttons.forEach((button, other) => button.setAttribute("aria-pressed", other === part));
			shown.replaceChildren(...view(part));
			redraw();
		}}, names.length ? `rank ${names.join(", ")}` : label);
	});
	const answer = across.answer.split("\n").filter(line => line);
	load(0); // for the colours
	page.append(make("header", {}, make("h1", {}, answer[0] || "Nothing to compare."),
		...answer.slice(1).map(line => make("p", {class: "lead"}, line))),
		...across.ranks ? [ranks(across.ranks)] : [], ...across.comparison ? [comparison(across.comparison)] : [],
		make("nav", {class: "inputs", "aria-label": "Inputs"}, make("h2", {}, across.ranks ? "Each rank" : "Each run"),
			make("div", {class: "tools", role: "group"}, ...buttons)), shown);
	const slowest = across.ranks ? across.ranks.members.find(member => member.rank === across.ranks.slowest) : null;
	buttons[slowest ? slowest.input : across.parts.length - 1].click();
}

if (across) {
	several();
} else {
	page.append(...view(0));
	redraw();
}
window.addEventListener("resize", redraw);
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(part => part.open = true));
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
document.documentElement.dataset.ready = String(Math.round(performance.now()));

})();
