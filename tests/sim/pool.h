/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_POOL_H
#define HF_TESTS_SIM_POOL_H

/*
 * Memory of the trees of worlds that come and go by the thousand.  A world has some twenty thousand
 * blocks of a few sizes, alive until it ends: malloc leaves them scattered for the next one, and most
 * of the time goes into waiting for them.  Here a page has blocks of one size without anything between
 * them, filled from its beginning again whenever all of them are free.
 *
 * One thread.  Call it before the first tree is made.  Under AddressSanitizer it does nothing.
 */
void sim_pool_use(void);

#endif
