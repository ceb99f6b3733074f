/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The probe of InfiniBand and RoCE ports. Output: samples of port states and counters. Invariant:
 * if a counter cannot be read, it makes no sample.
 */
#include "probes/port_watch.h"

#include "probes/look_thread.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORTS_EVERY HF_SECOND
/* Interval of the counters. A rate needs a span: a rise by one within a second means nothing
 * yet. */
#define COUNTERS_EVERY (10 * HF_SECOND)
#define PORT_ACTIVE 4
#define COUNTERS 7

/* A port that was up at least once. A port that was never up may have no cable and is not
 * watched. */
struct known_port {
	/* id: the port's first name in this boot, which the brain uses; name: its present name. */
	char id[HF_HEALTH_DEVICE_MAX], name[HF_HEALTH_DEVICE_MAX];
	char address[HF_HEALTH_DEVICE_MAX];
	char above[HF_HEALTH_ABOVE_MAX];
	/* driver of the port's function; "": only an earlier agent saw the port */
	char driver[HF_SYSFS_NAME_MAX];
	/* bits of the counters that could be read in the first look; other counters stay 0 */
	unsigned counters;
	bool counted; /* the first look at the counters has taken place */
	bool up, seen;
	struct hf_health_sample last;
	bool sampled;
};

struct hf_port_watch {
	struct hf_intake *intake;
	struct hf_sysfs_options options;
	struct hf_timer *timer;
	hf_time counters_at;
	struct known_port known[HF_HEALTH_PORTS_MAX];
	size_t known_len;
	struct hf_look_thread *thread;
	struct port_bench *bench;
	bool primed;
};

/* Memory that the thread fills. */
struct port_bench {
	char *sys_root;
	bool counters; /* read the counters too */
	struct hf_sysfs_ports ports;
};

static struct hf_health_sample make_port_sample(enum hf_health_detector detector,
						const char *device)
{
	return hf_intake_sample_of(HF_HEALTH_BY_SYSFS, detector, device);
}

static void copy_counters(const struct hf_sysfs_port *port, uint64_t ret_counters[COUNTERS])
{
	const uint64_t counters[COUNTERS] = {
		port->link_downed,   port->overruns,   port->integrity,     port->retries,
		port->symbol_errors, port->recoveries, port->slow_restarts,
	};

	memcpy(ret_counters, counters, sizeof(counters));
}

static struct known_port *add_port(struct hf_port_watch *w, const char *id, const char *address)
{
	struct known_port *known;

	if (w->known_len == HF_HEALTH_PORTS_MAX) {
		hf_intake_refuse(w->intake, id);
		return NULL;
	}
	known = &w->known[w->known_len++];
	memset(known, 0, sizeof(*known));
	snprintf(known->id, sizeof(known->id), "%s", id);
	snprintf(known->name, sizeof(known->name), "%s", id);
	snprintf(known->address, sizeof(known->address), "%s", address);
	return known;
}

/* Takes the ports that an earlier agent of this boot saw up: if such a port is down or gone now,
 * the probe reports it. */
static void prime_ports(struct hf_port_watch *w)
{
	const char *id, *address;

	for (size_t i = 0; !w->primed && hf_intake_remembers(w->intake, i, &id, &address); i++)
		if (strchr(id, '/') != NULL)
			(void)add_port(w, id, address);
	w->primed = true;
}

/* ---- finding the known port --------------------------------------------------------------------------- */

static const char *find_port_number(const char *id)
{
	const char *slash = strrchr(id, '/');

	return slash ? slash : "";
}

/* The port has the name that the known port had in the last look, and not another PCI function:
 * another port may have that name by now. */
static bool is_by_name(const struct known_port *known, const struct hf_sysfs_port *port)
{
	return hf_streq(known->name, port->id) &&
	       (known->address[0] == '\0' || port->address[0] == '\0' ||
		hf_streq(known->address, port->address));
}

static bool is_by_function(const struct known_port *known, const struct hf_sysfs_port *port)
{
	return known->address[0] != '\0' && hf_streq(known->address, port->address) &&
	       hf_streq(find_port_number(known->name), find_port_number(port->id));
}

static bool is_listed(const struct hf_sysfs_ports *ports, const struct known_port *known)
{
	for (size_t i = 0; i < ports->len; i++)
		if (is_by_name(known, &ports->items[i]))
			return true;
	return false;
}

/* Finds a known port by its name or else by its PCI function: the order of probing, udev or a
 * person may change the name. */
static struct known_port *find_port(struct hf_port_watch *w, const struct hf_sysfs_port *port)
{
	for (size_t i = 0; i < w->known_len; i++)
		if (is_by_name(&w->known[i], port))
			return &w->known[i];
	for (size_t i = 0; i < w->known_len; i++) {
		struct known_port *known = &w->known[i];

		if (!is_by_function(known, port) || is_listed(&w->bench->ports, known))
			continue;
		memcpy(known->name, port->id, sizeof(known->name));
		return known;
	}
	return NULL;
}

static bool is_taken(const struct hf_port_watch *w, const char *id)
{
	for (size_t i = 0; i < w->known_len; i++)
		if (hf_streq(w->known[i].id, id))
			return true;
	return false;
}

/* Adds a port under its name. If that name is the id of another port, the id is made of the PCI
 * function's address. */
static struct known_port *new_port(struct hf_port_watch *w, const struct hf_sysfs_port *port)
{
	char id[HF_HEALTH_DEVICE_MAX];
	struct known_port *known;

	snprintf(id, sizeof(id), "%s", port->id);
	if (is_taken(w, id) && (size_t)snprintf(id, sizeof(id), "%s%s", port->address,
						find_port_number(port->id)) >= sizeof(id))
		return NULL;
	if (is_taken(w, id))
		return NULL;
	known = add_port(w, id, port->address);
	if (known != NULL)
		memcpy(known->name, port->id, sizeof(known->name));
	return known;
}

static struct known_port *know_port(struct hf_port_watch *w, const struct hf_sysfs_port *port,
				    bool counted)
{
	struct known_port *known = find_port(w, port);
	uint64_t counters[COUNTERS];

	if (known == NULL && counted && port->state == PORT_ACTIVE)
		known = new_port(w, port);
	if (known == NULL || known->counted || !counted)
		return known;
	known->counted = true;
	if (port->address[0] != '\0')
		memcpy(known->address, port->address, sizeof(known->address));
	copy_counters(port, counters);
	for (int i = 0; i < COUNTERS; i++)
		known->counters |= (unsigned)(counters[i] != HF_SYSFS_NOT_KNOWN) << i;
	return known;
}

/* ---- samples ------------------------------------------------------------------------------------------ */

/* Fills in the counters. False: a counter that was readable before is not now; as 0 it would seem
 * to rise when it can be read again. */
static bool put_counters(const struct known_port *known, const struct hf_sysfs_port *port,
			 struct hf_health_sample *s)
{
	uint64_t counters[COUNTERS];

	copy_counters(port, counters);
	for (int i = 0; i < COUNTERS; i++) {
		if ((known->counters >> i & 1) == 0)
			counters[i] = 0;
		else if (counters[i] == HF_SYSFS_NOT_KNOWN)
			return false;
	}
	s->ib.link_downed = counters[0];
	s->ib.fatal_errors = counters[1] + counters[2] + counters[3];
	s->ib.symbol_errors = counters[4];
	s->ib.recoveries = counters[5];
	s->ib.slow_restarts = counters[6];
	return true;
}

static void report_port(struct hf_port_watch *w, struct known_port *known,
			struct hf_health_sample *s)
{
	struct hf_health_presence there;

	memset(&there, 0, sizeof(there));
	there.kind = HF_HEALTH_PORT;
	memcpy(there.id, known->id, sizeof(there.id));
	memcpy(there.alias, known->address, sizeof(there.alias));
	memcpy(there.above, known->above, sizeof(there.above));
	hf_intake_device(w->intake, &there);
	known->last = *s;
	known->sampled = true;
	(void)hf_intake_sample(w->intake, s);
}

/* Makes the sample of a port. A changed state is reported at once, with the counters of the last
 * look. */
static bool look_port(struct hf_port_watch *w, const struct hf_sysfs_port *port, bool counters)
{
	struct known_port *known = know_port(w, port, counters);
	struct hf_health_sample s;
	bool up = port->state == PORT_ACTIVE, changed;

	if (!known)
		return false;
	s = make_port_sample(HF_HEALTH_IB, known->id);
	known->seen = true;
	if (port->driver[0] != '\0')
		memcpy(known->driver, port->driver, sizeof(known->driver));
	if (port->above[0] != '\0')
		memcpy(known->above, port->above, sizeof(known->above));
	/* An unknown state is neither up nor down: make no sample. */
	if (port->state < 0 || !known->counted)
		return false;
	changed = known->sampled && up != known->up;
	if (!changed && !counters && known->sampled)
		return false;
	if (changed && !counters)
		s.ib = known->last.ib;
	else if (!put_counters(known, port, &s))
		return false;
	s.ib.missing = false;
	s.ib.up = up;
	known->up = up;
	report_port(w, known, &s);
	return changed;
}

/* The port is missing, but its PCI function is on the bus with its driver: for example, a pod took
 * the port into its network namespace. If a virtual machine has the function (driver vfio), the port is
 * not hidden but missing. */
static bool is_hidden(const struct hf_port_watch *w, const struct known_port *known)
{
	char driver[HF_SYSFS_NAME_MAX];

	if (known->address[0] == '\0')
		return false;
	hf_sysfs_driver_of(w->options.sys_root, known->address, driver);
	if (known->driver[0] != '\0')
		return hf_streq(driver, known->driver);
	return driver[0] != '\0' && !hf_str_has_prefix(driver, "vfio");
}

static void report_missing(struct hf_port_watch *w, bool counters)
{
	for (size_t i = 0; i < w->known_len; i++) {
		struct known_port *known = &w->known[i];
		struct hf_health_sample s = make_port_sample(HF_HEALTH_IB, known->id);

		if (!known->seen && counters) {
			s.ib.hidden = is_hidden(w, known);
			s.ib.missing = !s.ib.hidden;
			(void)hf_intake_sample(w->intake, &s);
		}
		known->seen = false;
	}
}

static void read_ports(void *arg)
{
	struct port_bench *bench = arg;

	hf_sysfs_ports(bench->sys_root, bench->counters, &bench->ports);
}

static void release_ports(void *arg)
{
	struct port_bench *bench = arg;

	free(bench->sys_root);
	free(bench);
}

/* Looks at the states each second. Counters and the detector's report follow every tenth second,
 * because they cause a step of the brain. */
static void look_ports(void *arg)
{
	struct hf_port_watch *w = arg;
	hf_time now = hf_intake_now(w->intake);

	hf_timer_arm(w->timer, w->options.ports_every);
	if (!hf_look_thread_is_free(w->thread))
		return;
	w->bench->counters =
		w->counters_at == HF_TIME_NONE || now - w->counters_at >= COUNTERS_EVERY;
	(void)hf_look_thread_look(w->thread);
}

static void late_ports(void *arg)
{
	struct hf_port_watch *w = arg;

	hf_intake_off(w->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_IB, "sysfs does not answer");
}

static void looked_ports(void *arg)
{
	struct hf_port_watch *w = arg;
	const struct hf_sysfs_ports *ports = &w->bench->ports;
	bool counters = w->bench->counters, changed = false;

	prime_ports(w);
	for (size_t i = 0; i < ports->len; i++)
		changed = look_port(w, &ports->items[i], counters) || changed;
	report_missing(w, counters);
	/* After a changed state, the next look at the counters comes a whole interval later. */
	if (counters || changed)
		w->counters_at = hf_intake_now(w->intake);
	if (ports->len == 0 && w->known_len == 0) {
		hf_intake_off(w->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_IB,
			      ports->known ? "no InfiniBand port" : "sysfs shows no InfiniBand");
		/* When the first port appears, the look starts with its counters. */
		w->counters_at = HF_TIME_NONE;
		hf_timer_arm(w->timer, w->options.devices_every);
	} else if (counters || changed) {
		hf_intake_heard(w->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_IB);
	}
}

struct hf_port_watch *hf_port_watch_create(struct hf_intake *intake,
					   const struct hf_sysfs_options *options)
{
	struct hf_port_watch *w = hf_xcalloc(1, sizeof(*w));

	w->intake = intake;
	w->options = *options;
	if (w->options.ports_every == 0)
		w->options.ports_every = PORTS_EVERY;
	w->counters_at = HF_TIME_NONE;
	w->bench = hf_xcalloc(1, sizeof(*w->bench));
	w->bench->sys_root = hf_xstrdup(w->options.sys_root);
	w->thread = hf_look_thread_create(&(struct hf_look_thread_options){
		.intake = intake,
		.probe = HF_PROBE_PORTS,
		.deadline = options->deadline,
		.bench = w->bench,
		.look = read_ports,
		.release = release_ports,
		.looked = looked_ports,
		.late = late_ports,
		.arg = w,
	});
	w->timer = hf_timer_create(hf_intake_loop(intake), look_ports, w);
	hf_timer_arm(w->timer, 0);
	return w;
}

struct hf_port_watch *hf_port_watch_destroy(struct hf_port_watch *watch)
{
	if (watch == NULL)
		return NULL;
	hf_look_thread_destroy(watch->thread);
	hf_timer_destroy(watch->timer);
	free(watch);
	return NULL;
}
