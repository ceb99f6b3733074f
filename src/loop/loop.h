/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOOP_LOOP_H
#define HF_LOOP_LOOP_H

#include "base/error.h"
#include "base/time.h"

#include <stdbool.h>

/* The event loop: one loop and one thread per process. Two back ends share this interface:
 *
 *   real      libuv; the clocks of the kernel
 *   virtual   a clock that jumps to the next timer when no task is left to run. No fds,
 *             signals or processes: those calls return HF_E_UNSUPPORTED. The simulator
 *             and most unit tests run on this back end.
 *
 * A callback must not block. A callback may create, arm, disarm and destroy any object, including
 * its own. After destroy returns, no callback of the destroyed object runs.
 *
 * The order of callbacks is defined. Posted tasks run in the order of posting, before timers.
 * Timers run by due time; timers with equal due times run in the order of arming. The virtual loop
 * keeps this order exactly. The real loop also serves due timers and fds while tasks keep posting
 * tasks.
 *
 * The virtual clock starts at 0 and does not move during a callback. An assert fails if callbacks
 * run without end and the clock never moves. */
struct hf_loop;

/* Creates a real loop. From this call on the process ignores SIGPIPE, so that a write to a
 * closed connection returns an error and does not end the process. Children get the default
 * action back. */
int hf_loop_create(struct hf_loop **ret_loop, struct hf_error *err) HF_MUST_CHECK;
struct hf_loop *hf_loop_create_virtual(hf_time wall_start);
/* Every object created on the loop must be destroyed first; an assert checks this. */
struct hf_loop *hf_loop_destroy(struct hf_loop *loop); /* accepts NULL; returns NULL */

bool hf_loop_is_real(const struct hf_loop *loop);

/* Runs until hf_loop_stop, or until nothing is posted, armed or watched any more. */
void hf_loop_run(struct hf_loop *loop);
/* The current run returns before its next callback. If no run is active, the next run returns at
 * once. */
void hf_loop_stop(struct hf_loop *loop);
/* Virtual loop only: runs everything due up to and including `until` (monotonic time), then sets
 * the clock to `until`. Returns false if hf_loop_stop was called. */
bool hf_loop_run_until(struct hf_loop *loop, hf_time until);
/* Virtual loop only: runs the tasks and timers due now; the clock does not move. Returns true if a
 * callback ran. */
bool hf_loop_run_ready(struct hf_loop *loop);

/* Time since an arbitrary start; never steps back. */
hf_time hf_loop_mono(const struct hf_loop *loop);
hf_time hf_loop_wall(const struct hf_loop *loop); /* since 1970; may step */
/* Virtual loop only: steps the wall clock by `by`, as an administrator of a machine might do. */
void hf_loop_step_wall(struct hf_loop *loop, hf_time by);
/* Due time of the next timer; HF_TIME_NEVER: no timer is armed. */
hf_time hf_loop_next_due(const struct hf_loop *loop);
/* Virtual loop only: moves the clock and runs no callback, as if SIGSTOP had stopped the
 * process. */
void hf_loop_freeze(struct hf_loop *loop, hf_time span);

/* --- tasks: callbacks that the loop runs soon, never from inside the posting call --- */
struct hf_task;
typedef void (*hf_task_fn)(void *arg);
struct hf_task *hf_task_create(struct hf_loop *loop, hf_task_fn fn, void *arg);
struct hf_task *hf_task_destroy(struct hf_task *task); /* accepts NULL; returns NULL */
/* makes the loop call fn soon; no effect if the task is posted already */
void hf_task_post(struct hf_task *task);
void hf_task_cancel(struct hf_task *task);
bool hf_task_posted(const struct hf_task *task);

/* --- timers: one shot, on the monotonic clock --- */
struct hf_timer;
struct hf_timer *hf_timer_create(struct hf_loop *loop, hf_task_fn fn, void *arg);
struct hf_timer *hf_timer_destroy(struct hf_timer *timer); /* accepts NULL; returns NULL */
/* Due after `after`; with `after` ≤ 0 the timer runs as soon as the loop gets to it. Arming an
 * armed timer moves it. A due time of HF_TIME_NEVER disarms the timer. */
void hf_timer_arm(struct hf_timer *timer, hf_time after);
void hf_timer_disarm(struct hf_timer *timer);
bool hf_timer_armed(const struct hf_timer *timer);
hf_time hf_timer_due(const struct hf_timer *timer); /* HF_TIME_NEVER: not armed */

/* --- fds: level-triggered. The caller still owns the fd, which becomes non-blocking. Pipes and
 * sockets work; regular files do not (HF_E_IO). At most one hf_io may watch an fd. --- */
struct hf_io;
enum hf_io_event { HF_IO_READ = 1, HF_IO_WRITE = 2, HF_IO_HANGUP = 4 };
typedef void (*hf_io_fn)(void *arg, unsigned events); /* errors arrive as HF_IO_HANGUP */
int hf_io_create(struct hf_loop *loop, int fd, hf_io_fn fn, void *arg, struct hf_io **ret_io,
		 struct hf_error *err) HF_MUST_CHECK;
/* call this before close(fd); accepts NULL, returns NULL */
struct hf_io *hf_io_destroy(struct hf_io *io);
/* sets which events to watch; 0: none, as after hf_io_create */
void hf_io_want(struct hf_io *io, unsigned events);

/* --- signals --- */
struct hf_signal;
typedef void (*hf_signal_fn)(void *arg, int signum);
int hf_signal_create(struct hf_loop *loop, int signum, hf_signal_fn fn, void *arg,
		     struct hf_signal **ret_signal, struct hf_error *err) HF_MUST_CHECK;
struct hf_signal *hf_signal_destroy(struct hf_signal *signal); /* accepts NULL; returns NULL */
/* True if this process ignores the signal, for instance SIGHUP under nohup. */
bool hf_signal_is_ignored(int signum);

#endif
