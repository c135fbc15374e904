/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where libcupti is looked for beside a CUDA library that a program has mapped (the same folder, or the one
 * that the toolkit or NVIDIA's wheels keep it in), and else: initialisers, all but "" with a slash at the
 * end. Shared by the bridge, which opens it there, and whyidle doctor, which tells.
 */
#ifndef WHYIDLE_CUPTI_PLACES_H
#define WHYIDLE_CUPTI_PLACES_H

/* clang-format off */
#define CUPTI_PLACES_BESIDE {"", "../../cuda_cupti/lib/", "../extras/CUPTI/lib64/", "../../../extras/CUPTI/lib64/"}
/* "": as the loader finds it. */
#define CUPTI_PLACES_ELSE {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/extras/CUPTI/lib64/"}
/* clang-format on */

#define CUPTI_MAJOR_OLDEST 11 /* of CUDA */

#endif
