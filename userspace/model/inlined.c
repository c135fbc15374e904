// SPDX-License-Identifier: GPL-2.0-only
/* Functions that the compiler put in the place of their calls, as frames of the stacks that they are in. */
#include <errno.h>

#include "model/model.h"
#include "symbols/source_places.h"

/* Addresses of the symbols of what was inlined at a frame, outermost first; returns how many. */
static size_t inlined_at(const struct model *model, const struct stack *stack, uint32_t index,
                         uint64_t inner[SOURCE_PLACES_MAX])
{
	const struct symbol *symbol = model_frame(model, stack, index);
	size_t count = 0;

	while (symbol && symbol->inner && count < SOURCE_PLACES_MAX) {
		inner[count++] = symbol->inner;
		symbol = model_find_symbol(model, 0, symbol->inner);
	}
	return count;
}

static bool is_expanded(const struct model *model, const struct stack *stack, uint32_t index)
{
	const uint64_t *frame = &model->frames.items[stack->first + index];

	return *frame & RECORD_FRAME_INLINED || (index && frame[-1] & RECORD_FRAME_INLINED);
}

static bool needs_more(const struct model *model, const struct stack *stack)
{
	uint64_t inner[SOURCE_PLACES_MAX];

	for (uint32_t i = 0; i < stack->count; i++) {
		if (!is_expanded(model, stack, i) && inlined_at(model, stack, i, inner))
			return true;
	}
	return false;
}

static int add_frame(struct model *model, uint64_t address)
{
	uint64_t *slot = array_add(&model->frames);

	if (!slot)
		return -ENOMEM;
	*slot = address;
	return 0;
}

/* The frames get a new place, at the end. */
static int expand(struct model *model, struct stack *stack)
{
	uint32_t first = model->frames.count;
	uint64_t inner[SOURCE_PLACES_MAX];
	int err = 0;

	for (uint32_t i = 0; i < stack->count && !err; i++) {
		size_t count = is_expanded(model, stack, i) ? 0 : inlined_at(model, stack, i, inner);

		while (count && !err)
			err = add_frame(model, inner[--count]);
		err = err ?: add_frame(model, model->frames.items[stack->first + i]);
	}
	stack->first = first;
	stack->count = model->frames.count - first;
	return err;
}

int model_expand_inlined(struct model *model)
{
	struct stack *stack;
	int err = 0;

	array_for_each (stack, &model->stacks) {
		if (!err && stack->kind == RECORD_STACK_USER && needs_more(model, stack))
			err = expand(model, stack);
	}
	return err;
}
