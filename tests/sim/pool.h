/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_POOL_H
#define HF_TESTS_SIM_POOL_H

/*
 * Memory for the JSON trees of thousands of worlds, one after the other. A world has some twenty
 * thousand blocks of a few sizes, which live until it ends. With malloc they become scattered over
 * memory, and most of the time goes into cache misses. Here a page holds blocks of one size side by
 * side, and is filled from its beginning again when all of them are free.
 *
 * For one thread. Call this before the first tree is made. Under AddressSanitizer it does nothing.
 */
void sim_pool_use(void);

#endif
