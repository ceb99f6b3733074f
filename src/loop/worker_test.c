/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of hf_worker: work runs on the thread, done on the loop, and a hanging thread is left
 * behind. Semaphores order the two threads. */
#include "harness/real_loop.h"
#include "loop/worker.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>

/* A piece of work that can wait for a signal of the test, and counters of its callbacks. */
struct piece {
	struct hf_test_loop *t;
	struct hf_worker *worker;
	sem_t began, may_go_on, dropped;
	bool waits, posts_again;
	int runs, dones;
	pthread_t ran_on, done_on;
	bool blocks_signals;
};

static void run_piece(void *arg)
{
	struct piece *p = arg;
	sigset_t mask;

	p->ran_on = pthread_self();
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
	p->blocks_signals = sigismember(&mask, SIGTERM) == 1;
	sem_post(&p->began);
	while (p->waits && sem_wait(&p->may_go_on) != 0)
		assert_int_equal(errno, EINTR);
	p->runs++;
}

static struct hf_work work_of(struct piece *p);

static void finish_piece(void *arg)
{
	struct piece *p = arg;
	const struct hf_work again = work_of(p);

	p->dones++;
	p->done_on = pthread_self();
	assert_false(hf_worker_is_busy(p->worker));
	if (p->posts_again && p->dones == 1)
		assert_true(hf_worker_post(p->worker, &again));
	else if (p->t)
		hf_loop_stop(p->t->loop);
}

static void drop_piece(void *arg)
{
	struct piece *p = arg;

	sem_post(&p->dropped);
}

static struct hf_work work_of(struct piece *p)
{
	return (struct hf_work){
		.run = run_piece, .done = finish_piece, .drop = drop_piece, .arg = p};
}

static void piece_init(struct piece *p, struct hf_test_loop *t, struct hf_loop *loop)
{
	memset(p, 0, sizeof(*p));
	p->t = t;
	assert_int_equal(sem_init(&p->began, 0, 0), 0);
	assert_int_equal(sem_init(&p->may_go_on, 0, 0), 0);
	assert_int_equal(sem_init(&p->dropped, 0, 0), 0);
	p->worker = hf_worker_create(loop);
}

static void post_piece(struct piece *p)
{
	const struct hf_work work = work_of(p);

	assert_true(hf_worker_post(p->worker, &work));
	assert_true(hf_worker_is_busy(p->worker));
}

static void wait_for(sem_t *sign)
{
	while (sem_wait(sign) != 0)
		assert_int_equal(errno, EINTR);
}

static void work_runs_on_the_thread_and_done_on_the_loop(void **state)
{
	struct hf_test_loop t;
	struct piece p;

	(void)state;
	hf_test_loop_init(&t);
	piece_init(&p, &t, t.loop);
	p.posts_again = true;
	post_piece(&p);
	hf_test_loop_run(&t);
	assert_int_equal(p.runs, 2);
	assert_int_equal(p.dones, 2);
	assert_true(p.blocks_signals);
	assert_false(pthread_equal(p.ran_on, pthread_self()));
	assert_true(pthread_equal(p.done_on, pthread_self()));
	hf_worker_destroy(p.worker);
	hf_test_loop_release(&t);
}

static void one_piece_at_a_time_and_the_loop_goes_on_meanwhile(void **state)
{
	struct hf_test_loop t;
	struct piece p;
	struct hf_work other;

	(void)state;
	hf_test_loop_init(&t);
	piece_init(&p, &t, t.loop);
	p.waits = true;
	post_piece(&p);
	other = work_of(&p);
	assert_false(hf_worker_post(p.worker, &other));
	assert_false(hf_worker_settle(p.worker, 10 * HF_MS));
	assert_int_equal(p.dones, 0);
	sem_post(&p.may_go_on);
	hf_test_loop_run(&t);
	assert_int_equal(p.dones, 1);
	hf_worker_destroy(p.worker);
	hf_test_loop_release(&t);
}

static void settle_waits_for_the_end_and_calls_done(void **state)
{
	struct hf_test_loop t;
	struct piece p;

	(void)state;
	hf_test_loop_init(&t);
	piece_init(&p, &t, t.loop);
	assert_true(hf_worker_settle(p.worker, 0));
	post_piece(&p);
	assert_true(hf_worker_settle(p.worker, HF_MINUTE));
	assert_int_equal(p.dones, 1);
	hf_worker_destroy(p.worker);
	hf_test_loop_release(&t);
}

static void a_hanging_thread_is_left_behind_and_drops_its_work_later(void **state)
{
	struct hf_test_loop t;
	struct piece p;

	(void)state;
	hf_test_loop_init(&t);
	piece_init(&p, &t, t.loop);
	p.waits = true;
	post_piece(&p);
	wait_for(&p.began);
	/* destroy does not wait for the running work */
	hf_worker_destroy(p.worker);
	assert_int_equal(p.runs, 0);
	sem_post(&p.may_go_on);
	wait_for(&p.dropped);
	assert_int_equal(p.runs, 1);
	assert_int_equal(p.dones, 0);
	t.guard = hf_timer_destroy(t.guard);
	hf_loop_destroy(t.loop);
}

static void finished_work_without_a_done_call_is_dropped(void **state)
{
	struct hf_test_loop t;
	struct piece p;

	(void)state;
	hf_test_loop_init(&t);
	piece_init(&p, &t, t.loop);
	post_piece(&p);
	hf_worker_destroy(p.worker);
	wait_for(&p.dropped);
	assert_int_equal(p.dones, 0);
	t.guard = hf_timer_destroy(t.guard);
	hf_loop_destroy(t.loop);
}

static void on_a_virtual_loop_work_runs_at_once_and_done_from_the_loop(void **state)
{
	struct hf_loop *loop = hf_loop_create_virtual(0);
	struct piece p;

	(void)state;
	piece_init(&p, NULL, loop);
	post_piece(&p);
	assert_int_equal(p.runs, 1);
	assert_int_equal(p.dones, 0);
	hf_loop_run(loop);
	assert_int_equal(p.dones, 1);
	post_piece(&p);
	assert_true(hf_worker_settle(p.worker, 0));
	assert_int_equal(p.dones, 2);
	post_piece(&p);
	hf_worker_destroy(p.worker);
	wait_for(&p.dropped);
	assert_int_equal(p.dones, 2);
	hf_loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_runs_on_the_thread_and_done_on_the_loop),
		cmocka_unit_test(one_piece_at_a_time_and_the_loop_goes_on_meanwhile),
		cmocka_unit_test(settle_waits_for_the_end_and_calls_done),
		cmocka_unit_test(a_hanging_thread_is_left_behind_and_drops_its_work_later),
		cmocka_unit_test(finished_work_without_a_done_call_is_dropped),
		cmocka_unit_test(on_a_virtual_loop_work_runs_at_once_and_done_from_the_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
