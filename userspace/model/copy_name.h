/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_MODEL_COPY_NAME_H
#define WHYIDLE_MODEL_COPY_NAME_H

#include "model/model.h"

#define COPY_NAME_SIZE 64

/* "Memcpy HtoD (Pageable -> Device)", "Memset (Device)": as Kineto names copies. Returns `buffer`. */
const char *copy_name(char buffer[COPY_NAME_SIZE], const struct gpu_op *op);

#endif
