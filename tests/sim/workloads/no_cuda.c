/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program that never maps a CUDA library: computes and sleeps in turn for --seconds N (default 1).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv)
{
	double seconds = argc == 3 && !strcmp(argv[1], "--seconds") ? atof(argv[2]) : 1;
	const struct timespec pause = {0, 5000000};
	volatile uint64_t value = 1;

	for (int i = 0; i < (int)(seconds * 100); i++) {
		clock_t start = clock();

		while (clock() - start < CLOCKS_PER_SEC / 200)
			value = value * 6364136223846793005ULL + 1442695040888963407ULL;
		nanosleep(&pause, NULL);
	}
	puts("no_cuda: done");
	return 0;
}
