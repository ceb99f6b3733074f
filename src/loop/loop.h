/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOOP_LOOP_H
#define HF_LOOP_LOOP_H

#include "base/error.h"
#include "base/time.h"

#include <stdbool.h>

/*
 * The event loop: one per process, one thread.  Two back ends behind one face:
 *
 *   real      libuv; clocks of the kernel
 *   virtual   a clock of its own that jumps to the next timer once nothing is left
 *             to run; no fds, signals or processes (those calls give
 *             HF_E_UNSUPPORTED).  What the simulator and most unit tests run on.
 *
 * Nothing that the loop calls may block.  A callback may create, arm, disarm and
 * destroy anything, itself included; after destroy returns no callback of that
 * object runs any more.
 *
 * Order is defined, for the virtual loop exactly and for the real one per kind:
 * posted tasks in the order posted, before timers; timers by due time, equal ones
 * in the order armed.  The real one lets due timers and fds through where tasks go
 * on posting tasks.  The virtual clock starts at 0 and stands still while a
 * callback runs; one that never lets it move on is caught by an assert.
 */
struct hf_loop;

/* The real one; from then on this process ignores SIGPIPE, as writing to a client that has
 * gone must be an error and not the end (children get the default back). */
int hf_loop_create(struct hf_loop **ret_loop, struct hf_error *err) HF_MUST_CHECK;
struct hf_loop *hf_loop_create_virtual(hf_time wall_start);
/* Every object made on the loop must be destroyed before; asserts that it is so. */
struct hf_loop *hf_loop_destroy(struct hf_loop *loop); /* NULL is fine; returns NULL */

bool hf_loop_is_real(const struct hf_loop *loop);

/* Run until hf_loop_stop, or until nothing is armed, posted or watched any more. */
void hf_loop_run(struct hf_loop *loop);
/* The run that is under way, or else the next one, returns before another callback. */
void hf_loop_stop(struct hf_loop *loop);
/* Virtual only: run everything due up to and including `until` (monotonic), then set the clock
 * there.  Returns false where stop was called. */
bool hf_loop_run_until(struct hf_loop *loop, hf_time until);
/* Virtual only: run the tasks and timers due now, without moving the clock; true if any ran. */
bool hf_loop_run_ready(struct hf_loop *loop);

hf_time hf_loop_mono(const struct hf_loop *loop); /* since some start; never steps back */
hf_time hf_loop_wall(const struct hf_loop *loop); /* since 1970; may step */
/* Virtual only: move the wall clock, as an operator of a machine might. */
void hf_loop_step_wall(struct hf_loop *loop, hf_time by);
/* When the next timer is due; HF_TIME_NEVER: none is armed. */
hf_time hf_loop_next_due(const struct hf_loop *loop);
/* Virtual only: time passes and nothing runs, as while a process is stopped (SIGSTOP). */
void hf_loop_freeze(struct hf_loop *loop, hf_time span);

/* --- tasks: run soon, from the loop and never from inside the caller --- */
struct hf_task;
typedef void (*hf_task_fn)(void *arg);
struct hf_task *hf_task_create(struct hf_loop *loop, hf_task_fn fn, void *arg);
struct hf_task *hf_task_destroy(struct hf_task *task); /* NULL is fine; returns NULL */
void hf_task_post(struct hf_task *task);               /* posting twice runs it once */
void hf_task_cancel(struct hf_task *task);
bool hf_task_posted(const struct hf_task *task);

/* --- timers: one shot, on the monotonic clock --- */
struct hf_timer;
struct hf_timer *hf_timer_create(struct hf_loop *loop, hf_task_fn fn, void *arg);
struct hf_timer *hf_timer_destroy(struct hf_timer *timer); /* NULL is fine; returns NULL */
/* Due in `after` (≤ 0: as soon as the loop comes round); arming again moves it.  A due
 * time of HF_TIME_NEVER disarms. */
void hf_timer_arm(struct hf_timer *timer, hf_time after);
void hf_timer_disarm(struct hf_timer *timer);
bool hf_timer_armed(const struct hf_timer *timer);
hf_time hf_timer_due(const struct hf_timer *timer); /* HF_TIME_NEVER when not armed */

/* --- fds: level-triggered; the fd stays the caller's and becomes non-blocking; pipes,
 * sockets and the like but no files (HF_E_IO), and one hf_io per fd at a time --- */
struct hf_io;
enum hf_io_event { HF_IO_READ = 1, HF_IO_WRITE = 2, HF_IO_HANGUP = 4 };
typedef void (*hf_io_fn)(void *arg, unsigned events); /* errors arrive as HF_IO_HANGUP */
int hf_io_create(struct hf_loop *loop, int fd, hf_io_fn fn, void *arg, struct hf_io **ret_io,
		 struct hf_error *err) HF_MUST_CHECK;
struct hf_io *hf_io_destroy(struct hf_io *io); /* NULL is fine; returns NULL; before close(fd) */
void hf_io_want(struct hf_io *io, unsigned events); /* 0: watch nothing, as after create */

/* --- signals --- */
struct hf_signal;
typedef void (*hf_signal_fn)(void *arg, int signum);
int hf_signal_create(struct hf_loop *loop, int signum, hf_signal_fn fn, void *arg,
		     struct hf_signal **ret_signal, struct hf_error *err) HF_MUST_CHECK;
struct hf_signal *hf_signal_destroy(struct hf_signal *signal); /* NULL is fine; returns NULL */

#endif
