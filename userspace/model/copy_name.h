/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_MODEL_COPY_NAME_H
#define WHYIDLE_MODEL_COPY_NAME_H

#include "model/model.h"

#define COPY_NAME_SIZE 64

/* "Memcpy HtoD (Pageable -> Device)", "Memset (Device)": as Kineto names copies. Returns `buffer`. */
const char *copy_name(char buffer[COPY_NAME_SIZE], const struct gpu_op *op);

/* What an operation is called: its own name where it has one. Returns that, `buffer` or a constant. */
const char *op_title(char buffer[COPY_NAME_SIZE], const struct model *model, const struct gpu_op *op);

#endif
