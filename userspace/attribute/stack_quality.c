// SPDX-License-Identifier: GPL-2.0-only
#include "attribute/stack_quality.h"

#include <errno.h>

#define LONG_WAIT_NS 1000000

/* A frame without a name; NULL: nothing is known of it. */
static int count_unnamed(const struct model *model, struct index_map *by_file, const struct symbol *symbol,
                         struct stack_report *report)
{
	uint32_t count = 0, file = symbol ? symbol->module : 0;

	index_map_get(by_file, file, &count);
	if (index_map_put(by_file, file, ++count))
		return -ENOMEM;
	if (file && count > report->unnamed_in_file) {
		report->unnamed_in_file = count;
		report->unnamed_file = model_string(model, file);
		report->unnamed_build_id = symbol->build_id ? model_string(model, symbol->build_id) : NULL;
	}
	return 0;
}

static int count_sample(const struct model *model, const struct sample *sample, struct index_map *by_file,
                        struct stack_report *report)
{
	const struct stack *stack;
	int err = 0;

	if (sample->ustack == MODEL_NONE)
		return 0;
	stack = &model->stacks.items[sample->ustack];
	report->frames += stack->count;
	for (uint32_t i = 0; i < stack->count && !err; i++) {
		const struct symbol *symbol = model_frame(model, stack, i);

		if (symbol && symbol->name)
			report->frames_named++;
		else
			err = count_unnamed(model, by_file, symbol, report);
	}
	return err;
}

static void count_wait(const struct model *model, const struct offcpu *offcpu, struct stack_report *report)
{
	if (offcpu->preempted || offcpu->wake_ns - offcpu->out_ns <= LONG_WAIT_NS)
		return;
	report->long_waits++;
	report->long_waits_complete +=
	    offcpu->ustack != MODEL_NONE && !model->stacks.items[offcpu->ustack].cut;
}

int stack_quality(const struct model *model, struct stack_report *report)
{
	struct index_map by_file = {0};
	const struct offcpu *offcpu;
	const struct sample *sample;
	const struct thread *thread;
	int err = 0;

	*report = (struct stack_report){.cost = model->stack_cost};
	array_for_each (thread, &model->threads) {
		if (thread->guest)
			continue;
		array_for_each (sample, &thread->samples)
			err = err ? err : count_sample(model, sample, &by_file, report);
		array_for_each (offcpu, &thread->offcpu)
			count_wait(model, offcpu, report);
	}
	index_map_free(&by_file);
	return err;
}
