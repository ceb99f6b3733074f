/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads dumps of a processor or a task that is stuck.  A dump becomes evidence of detector mlx5 if the first module
 * in the dump is one of mlx5.
 *
 * The kernel prints first which processor or task is stuck, then its registers, its work queue and its stack.
 * Records of other processors and tasks may come between.  Each dump begins with the processor and the task that
 * print it, or with a line of marks.
 *
 * Sources: kernel/watchdog.c, kernel/hung_task.c, kernel/rcu/tree_stall.h and lib/dump_stack.c of Linux.
 */
#include "health/line_internal.h"

#include <string.h>

/* Whether the name is that of a worker of the kernel's queues; only workers have a line "Workqueue: ". */
static bool is_worker(const struct hf_scan *name)
{
	struct hf_scan p = *name;

	return hf_scan_text(&p, "kworker/");
}

/* Reads "NAME:PID" up to the end; a process may choose its name, of at most 15 bytes, also with colons. */
static bool read_task(struct hf_scan s, struct hf_health_stuck *stuck)
{
	const char *colon = memrchr(s.at, ':', hf_scan_left(&s));
	struct hf_scan pid;

	if (!colon)
		return false;
	pid = (struct hf_scan){colon + 1, s.end};
	stuck->worker = is_worker(&s);
	return hf_scan_decimal(&pid, 10, &stuck->pid) && pid.at == pid.end;
}

/* Reads "BUG: soft lockup - CPU#3 stuck for 22s! [NAME:PID]". */
static bool read_soft_lockup(struct hf_scan s, struct hf_health_stuck *stuck)
{
	uint64_t number;

	if (!hf_scan_text(&s, "BUG: soft lockup - CPU#") || !hf_scan_decimal(&s, 5, &stuck->cpu) ||
	    !hf_scan_text(&s, " stuck for ") || !hf_scan_decimal(&s, 6, &number) ||
	    !hf_scan_text(&s, "s!"))
		return false;
	stuck->has_cpu = true;
	if (s.at < s.end && s.end[-1] == ']')
		s.end--;
	stuck->has_pid = hf_scan_text(&s, " [") && read_task(s, stuck);
	return true;
}

/* Reads "[CPU7: ]Watchdog detected hard LOCKUP on cpu 7". */
static bool read_hard_lockup(struct hf_scan s, struct hf_health_stuck *stuck)
{
	uint64_t number;

	if (hf_scan_text(&s, "CPU") &&
	    (!hf_scan_decimal(&s, 5, &number) || !hf_scan_text(&s, ": ")))
		return false;
	stuck->has_cpu = hf_scan_text(&s, "Watchdog detected hard LOCKUP on cpu ") &&
			 hf_scan_decimal(&s, 5, &stuck->cpu);
	return stuck->has_cpu;
}

/* Whether the line is "INFO: rcu_sched self-detected stall on CPU" or the like; the next dump of a processor tells
 * which processor. */
static bool is_stall(struct hf_scan s)
{
	struct hf_scan name;

	return hf_scan_text(&s, "INFO: rcu_") && hf_scan_word(&s, "_", &name) &&
	       (hf_scan_text(&s, " self-detected stall on CPU") ||
		hf_scan_text(&s, " detected stalls on CPUs/tasks:"));
}

/* Reads "INFO: task NAME:PID blocked for more than 122 seconds." */
static bool read_hung_task(struct hf_scan s, struct hf_health_stuck *stuck)
{
	struct hf_scan task;
	uint64_t number;

	if (!hf_scan_text(&s, "INFO: task ") ||
	    !hf_scan_until(&s, " blocked for more than ", &task) ||
	    !hf_scan_decimal(&s, 6, &number) || !hf_scan_text(&s, " seconds.") || s.at != s.end)
		return false;
	stuck->has_pid = read_task(task, stuck);
	return stuck->has_pid;
}

/* Reads the line that tells which processor or task is stuck. */
static bool read_stuck_head(struct hf_scan s, struct hf_health_stuck *stuck)
{
	if (s.at == s.end || strchr("BINWrw", *s.at) == NULL)
		return false;
	hf_scan_text(&s, "NMI ");
	hf_scan_text(&s, "watchdog: ");
	hf_scan_text(&s, "rcu: ");
	return read_soft_lockup(s, stuck) || read_hard_lockup(s, stuck) || is_stall(s) ||
	       read_hung_task(s, stuck);
}

/* Reads "CPU: 9 PID: 1514 Comm: kworker/u1664:6 Tainted: …" (with "UID: 0 " since Linux 6.12): the dump of this
 * processor and task follows. */
static bool read_dump_head(struct hf_scan s, struct hf_health_stuck *of)
{
	uint64_t number;

	if (!hf_scan_text(&s, "CPU: ") || !hf_scan_decimal(&s, 5, &of->cpu))
		return false;
	if (hf_scan_text(&s, " UID: ") && !hf_scan_decimal(&s, 10, &number))
		return false;
	if (!hf_scan_text(&s, " PID: ") || !hf_scan_decimal(&s, 10, &of->pid) ||
	    !hf_scan_text(&s, " Comm: "))
		return false;
	of->worker = is_worker(&s);
	return true;
}

/* Whether the dump is of the processor or task that is stuck.  If so, *stuck takes both numbers from the dump. */
static bool is_same_stuck(struct hf_health_stuck *stuck, const struct hf_health_stuck *dump)
{
	if ((stuck->has_cpu && stuck->cpu != dump->cpu) ||
	    (stuck->has_pid && !stuck->has_cpu && stuck->pid != dump->pid))
		return false;
	*stuck = *dump;
	stuck->has_cpu = stuck->has_pid = true;
	return true;
}

/* "NMI backtrace for cpu 7" */
static bool read_backtrace_head(struct hf_scan s, uint64_t *ret_cpu)
{
	return hf_scan_text(&s, "NMI backtrace for cpu ") && hf_scan_decimal(&s, 5, ret_cpu);
}

/* Whether the record begins something else than the dump of the stuck processor or task. */
static bool begins_another(struct hf_scan s, struct hf_health_stuck *stuck)
{
	struct hf_health_stuck dump = {0};
	uint64_t cpu;

	if (read_dump_head(s, &dump))
		return !is_same_stuck(stuck, &dump);
	if (read_backtrace_head(s, &cpu))
		return stuck->has_cpu ? stuck->cpu != cpu : stuck->has_pid;
	return hf_scan_text(&s, "------------[ cut here ]------------");
}

enum place { IN_KERNEL, IN_MLX5, IN_ANOTHER_MODULE };

/* Reads the module at the end of a place in the kernel's code: " [mlx5_core]", or with the build of the module "
 * [mlx5_core 5f1a…]".  On Arm a mark such as " (P)" follows. */
static enum place read_module(struct hf_scan s)
{
	struct hf_scan name, more;

	if (!hf_scan_text(&s, " [") || !hf_scan_word(&s, "_-", &name))
		return IN_KERNEL;
	if (hf_scan_char(&s, ' ') && !hf_scan_word(&s, "", &more))
		return IN_KERNEL;
	if (!hf_scan_char(&s, ']'))
		return IN_KERNEL;
	if (hf_scan_text(&s, " (") && (!hf_scan_word(&s, "", &more) || !hf_scan_char(&s, ')')))
		return IN_KERNEL;
	if (s.at != s.end)
		return IN_KERNEL;
	return (hf_scan_text(&name, "mlx5_core") || hf_scan_text(&name, "mlx5_ib")) &&
			       name.at == name.end
		       ? IN_MLX5
		       : IN_ANOTHER_MODULE;
}

/* Finds the adapter in the name of a work queue: "mlx5_health0000:41:00.0" is the queue of the adapter at
 * 0000:41:00.0.  Other queues have no address. */
static void find_queue_device(struct hf_scan name, char ret_device[HF_HEALTH_DEVICE_MAX])
{
	if (!hf_scan_text(&name, "mlx5_health") ||
	    !hf_health_scan_address(&name, true, ret_device) || name.at != name.end)
		memset(ret_device, 0, HF_HEALTH_DEVICE_MAX);
}

/* "Workqueue: mlx5e mlx5e_tx_timeout_work [mlx5_core]" */
static enum place read_work(struct hf_scan s, char ret_device[HF_HEALTH_DEVICE_MAX])
{
	struct hf_scan queue, function;

	if (!hf_scan_text(&s, "Workqueue: ") || !hf_scan_word(&s, "_-:.#/", &queue) ||
	    !hf_scan_char(&s, ' ') || !hf_scan_word(&s, "_.", &function) ||
	    read_module(s) != IN_MLX5)
		return IN_KERNEL;
	find_queue_device(queue, ret_device);
	return IN_MLX5;
}

/* Skips "[<ffffffffc0a1b2c3>] " of older kernels, which comes once or twice. */
static void skip_code_addresses(struct hf_scan *s)
{
	struct hf_scan p = *s, number;

	while (hf_scan_text(&p, "[<") && hf_scan_word(&p, "", &number) && hf_scan_text(&p, ">] ")) {
		hf_scan_blanks(&p);
		*s = p;
	}
}

/* Reads a place in the kernel's code, in a register or on the stack: "RIP: 0010:mlx5_cmd_exec+0x12/0x340
 * [mlx5_core]", "pc : mlx5_cmd_exec+0x12/0x340 [mlx5_core]" or " mlx5_cmd_exec+0x12/0x340 [mlx5_core]".  A
 * program's address begins with "RIP: 0033:"; "? " stands before a function that may not have been called. */
static enum place read_code(struct hf_scan s)
{
	struct hf_scan function;
	uint32_t number;

	if (!hf_scan_text(&s, "RIP: 0010:") && !hf_scan_text(&s, "pc : ") && !hf_scan_char(&s, ' '))
		return IN_KERNEL;
	hf_scan_blanks(&s);
	skip_code_addresses(&s);
	if (!hf_scan_word(&s, "_.", &function) || !hf_scan_char(&s, '+') ||
	    !hf_scan_hex32(&s, &number) || !hf_scan_char(&s, '/') || !hf_scan_hex32(&s, &number))
		return IN_KERNEL;
	return read_module(s);
}

/* Reads a record.  The processor or task is stuck in the first module that its dump names. */
bool hf_health_read_stuck(struct hf_health_line_reader *reader, struct hf_scan s,
			  struct hf_health_evidence *e)
{
	char device[HF_HEALTH_DEVICE_MAX] = "";
	struct hf_health_stuck stuck = {0};
	enum place place = IN_KERNEL;

	if (read_stuck_head(s, &stuck)) {
		hf_health_mark_set(&reader->stuck, NULL);
		reader->stuck_is = stuck;
		return false;
	}
	if (!reader->stuck.set)
		return false;
	if (begins_another(s, &reader->stuck_is)) {
		hf_health_mark_clear(&reader->stuck);
		return false;
	}
	if (reader->stuck_is.worker)
		place = read_work(s, device);
	if (place == IN_KERNEL)
		place = read_code(s);
	if (place != IN_KERNEL)
		hf_health_mark_clear(&reader->stuck);
	if (place != IN_MLX5)
		return false;
	*e = hf_health_evidence_none();
	memcpy(e->device, device, sizeof(e->device));
	e->detector = HF_HEALTH_MLX5;
	e->code = HF_HEALTH_CODE_MLX5_LOCKUP;
	return true;
}
