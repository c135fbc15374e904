// SPDX-License-Identifier: GPL-2.0-only
#include "ranks/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define ERROR_LEAST_NS 1000 /* imported traces may count in whole microseconds */
#define FEW_PAIRS      5    /* fewer do not show their own spread: */
#define FEW_ERROR_NS   100000
#define DRIFT_PAIRS    20
#define DRIFT_SPAN_NS  100000000
#define TIGHT_NS       200000
#define TOLERANCE_NS   200000   /* ends of one collective differ by less, unless it is long */
#define CLIP_NS        10000000 /* a pair that does not fit counts this much, however far it is off */
#define SHIFTS_MOST    8192     /* how far the beginnings of two traces may be apart, in collectives */
#define SCREEN_PAIRS   64
#define SCREEN_KEPT    64
#define JUDGE_PAIRS    512
#define JUDGE_KEPT     8
#define STRETCH_HALF   128
#define STRETCH_LEAST  32
#define GOOD_COST      (TIGHT_NS + 0.01 * CLIP_NS) /* tight, and hardly anything is left unpaired */
#define ALIKE_SHARE    0.9
#define SIGMA_OF_MAD   1.4826

/* Differences of ends with the time of each. */
struct differences {
	int64_t *value, *scratch;
	uint64_t *time;
	size_t count;
};

static int differences_make(struct differences *differences, size_t capacity)
{
	*differences = (struct differences){
	    .value = calloc(capacity, sizeof(int64_t)),
	    .scratch = calloc(capacity, sizeof(int64_t)),
	    .time = calloc(capacity, sizeof(uint64_t)),
	};
	return differences->value && differences->scratch && differences->time ? 0 : -ENOMEM;
}

static void differences_free(struct differences *differences)
{
	free(differences->value);
	free(differences->scratch);
	free(differences->time);
}

static void differences_add(struct differences *differences, const struct clock_mark *a,
                            const struct clock_mark *b)
{
	differences->value[differences->count] = (int64_t)(b->end_ns - a->end_ns);
	differences->time[differences->count++] = b->end_ns;
}

static int compare_signed(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t median_of(int64_t *values, size_t count)
{
	if (!count)
		return 0;
	qsort(values, count, sizeof(*values), compare_signed);
	return count % 2 ? values[count / 2]
	                 : values[count / 2 - 1] + (values[count / 2] - values[count / 2 - 1]) / 2;
}

static int64_t median_in(const struct differences *differences, size_t from, size_t to)
{
	memcpy(differences->scratch, differences->value + from, (to - from) * sizeof(int64_t));
	return median_of(differences->scratch, to - from);
}

static int64_t residual(const struct clock_fit *fit, const struct differences *differences, size_t i)
{
	double drifted = fit->drift * (double)(int64_t)(differences->time[i] - fit->reference_ns);

	return differences->value[i] - fit->offset_ns - (int64_t)drifted;
}

/* Median distance of the differences from the fit. */
static int64_t spread(const struct clock_fit *fit, const struct differences *differences)
{
	for (size_t i = 0; i < differences->count; i++)
		differences->scratch[i] = llabs(residual(fit, differences, i));
	return median_of(differences->scratch, differences->count);
}

/*
 * The drift is the slope between the medians of the first and the last third: a few wrong pairs do not move
 * it. It is taken only where it stands out of the noise of those medians.
 */
static void fit_line(struct clock_fit *fit, const struct differences *differences, bool drifts)
{
	size_t count = differences->count, third = count / 3, middle;
	int64_t first, last;
	double span, noise;

	fit->drift = 0;
	fit->reference_ns = count ? differences->time[count / 2] : 0;
	fit->offset_ns = median_in(differences, 0, count);
	if (!drifts || count < DRIFT_PAIRS ||
	    differences->time[count - 1] - differences->time[0] < DRIFT_SPAN_NS)
		return;
	first = median_in(differences, 0, third);
	last = median_in(differences, count - third, count);
	middle = third / 2;
	span = (double)(differences->time[count - 1 - middle] - differences->time[middle]);
	if (span <= 0)
		return;
	fit->drift = (double)(last - first) / span;
	for (size_t i = 0; i < count; i++)
		differences->scratch[i] = residual(fit, differences, i);
	fit->offset_ns += median_of(differences->scratch, count);
	noise = SIGMA_OF_MAD * (double)spread(fit, differences) * 1.25 / sqrt((double)third);
	if (fabs((double)(last - first)) > 5 * noise + ERROR_LEAST_NS)
		return;
	fit->drift = 0;
	fit->offset_ns = median_in(differences, 0, count);
}

static void fit_error(struct clock_fit *fit, const struct differences *differences)
{
	double sigma = SIGMA_OF_MAD * (double)spread(fit, differences);

	fit->pairs = differences->count;
	fit->error_ns = (uint64_t)(3 * sigma);
	if (fit->error_ns < ERROR_LEAST_NS)
		fit->error_ns = ERROR_LEAST_NS;
	if (fit->pairs < FEW_PAIRS && fit->error_ns < FEW_ERROR_NS)
		fit->error_ns = FEW_ERROR_NS;
}

uint64_t clock_fit_apply(const struct clock_fit *fit, uint64_t ns)
{
	double drifted = fit->drift * (double)(int64_t)(ns - fit->reference_ns);

	return ns - (uint64_t)(fit->offset_ns + (int64_t)drifted);
}

int clock_fit_measure(struct clock_fit *fit, const struct clock_mark *a, const struct clock_mark *b,
                      size_t b_count, const size_t *pair)
{
	struct differences differences;
	int rc = differences_make(&differences, b_count ? b_count : 1);

	for (size_t j = 0; !rc && j < b_count; j++) {
		if (pair[j] != SIZE_MAX)
			differences_add(&differences, &a[pair[j]], &b[j]);
	}
	if (!rc) {
		fit_line(fit, &differences, true);
		fit_error(fit, &differences);
	}
	differences_free(&differences);
	return rc;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

size_t clock_pair(const struct clock_fit *fit, const struct clock_mark *a, size_t a_count,
                  const struct clock_mark *b, size_t b_count, uint64_t tolerance_ns, size_t *pair)
{
	size_t next = 0, paired = 0;

	for (size_t j = 0; j < b_count; j++) {
		uint64_t end = clock_fit_apply(fit, b[j].end_ns);
		size_t best = SIZE_MAX;

		while (next < a_count && a[next].end_ns < end && end - a[next].end_ns > tolerance_ns)
			next++;
		for (size_t i = next; i < a_count; i++) {
			if (a[i].end_ns > end && a[i].end_ns - end > tolerance_ns)
				break;
			if (clock_mark_alike(&a[i], &b[j]) &&
			    (best == SIZE_MAX || distance(a[i].end_ns, end) < distance(a[best].end_ns, end)))
				best = i;
		}
		pair[j] = best;
		if (best != SIZE_MAX) {
			next = best + 1;
			paired++;
		}
	}
	return paired;
}

static uint64_t median_length(const struct clock_mark *marks, size_t count)
{
	uint64_t lengths[JUDGE_PAIRS];
	size_t used = 0, stride = count / JUDGE_PAIRS + 1;

	for (size_t i = 0; i < count; i += stride)
		lengths[used++] = marks[i].end_ns - marks[i].start_ns;
	qsort(lengths, used, sizeof(lengths[0]), compare_unsigned);
	return used ? lengths[used / 2] : 0;
}

bool clock_fit_is_tight(const struct clock_fit *fit, const struct clock_mark *a, size_t a_count)
{
	uint64_t quarter = median_length(a, a_count) / 4;

	return fit->pairs && fit->error_ns <= (quarter > TIGHT_NS ? quarter : TIGHT_NS);
}

/* ---- the search ---- */

/* How well a trial explains the two sequences: lower is better. */
struct trial {
	struct clock_fit fit;
	long shift;
	double cost;
};

struct trials {
	struct trial items[SCREEN_KEPT];
	size_t count, most;
};

/* Keeps the best ones, best first. */
static void trials_offer(struct trials *trials, const struct trial *trial)
{
	size_t at = trials->count;

	if (trials->count == trials->most && trial->cost >= trials->items[trials->count - 1].cost)
		return;
	if (trials->count < trials->most)
		trials->count++;
	else
		at--;
	for (; at && trials->items[at - 1].cost > trial->cost; at--)
		trials->items[at] = trials->items[at - 1];
	trials->items[at] = *trial;
}

struct search {
	const struct clock_mark *a, *b;
	size_t a_count, b_count;
	struct differences differences;
	size_t *pair;
};

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* A run of b: all of it, or a part in which hopefully no record is missing. */
struct stretch {
	size_t from, to;
};

/* b[j] belongs to a[j + shift]: judged in a stretch of b by at most `most` pairs, spread evenly. False: not
 * that shift. */
static bool judge_shift(struct search *search, const struct stretch *stretch, long shift, size_t most,
                        struct trial *trial)
{
	long first = shift < -(long)stretch->from ? -shift : (long)stretch->from;
	long last = (long)search->a_count - shift;
	size_t least = smaller(search->a_count, stretch->to - stretch->from);
	size_t overlap, stride, alike = 0, tried = 0;
	double sum = 0;

	last = last < (long)stretch->to ? last : (long)stretch->to;
	if (last <= first)
		return false;
	overlap = (size_t)(last - first);
	if (overlap * 2 < least)
		return false;
	stride = (overlap + most - 1) / most;
	search->differences.count = 0;
	for (long j = first; j < last; j += (long)stride) {
		const struct clock_mark *a = &search->a[j + shift], *b = &search->b[j];

		tried++;
		if (!clock_mark_alike(a, b))
			continue;
		alike++;
		differences_add(&search->differences, a, b);
	}
	if ((double)alike < ALIKE_SHARE * (double)tried)
		return false;
	*trial = (struct trial){.shift = shift};
	/* In a short stretch a missing record would pass for drift. */
	fit_line(&trial->fit, &search->differences, stretch->to - stretch->from == search->b_count);
	for (size_t i = 0; i < alike; i++) {
		int64_t off = llabs(residual(&trial->fit, &search->differences, i));

		sum += off < CLIP_NS ? (double)off : CLIP_NS;
	}
	/* Of two that fit equally well the one with more in common is right. */
	trial->cost = (sum / (double)alike + ERROR_LEAST_NS) * pow((double)least / (double)overlap, 2);
	return true;
}

/* Marks of b without a pair although a reaches over their time. */
static double unpaired_share(const struct search *search, const struct clock_fit *fit)
{
	uint64_t from = search->a[0].end_ns, to = search->a[search->a_count - 1].end_ns;
	size_t within = 0, unpaired = 0;

	for (size_t j = 0; j < search->b_count; j++) {
		uint64_t end = clock_fit_apply(fit, search->b[j].end_ns);

		if (end < from || end > to)
			continue;
		within++;
		unpaired += search->pair[j] == SIZE_MAX;
	}
	return within ? (double)unpaired / (double)within : 1;
}

/* Pairs by time and fits, until both agree. */
static int settle(struct search *search, struct trial *trial)
{
	uint64_t length = median_length(search->a, search->a_count);
	uint64_t tolerance = length / 2 > TOLERANCE_NS ? length / 2 : TOLERANCE_NS;
	size_t least = smaller(search->a_count, search->b_count), pairs = 0;
	int rc = 0;

	for (int round = 0; !rc && round < 3; round++) {
		size_t now = clock_pair(&trial->fit, search->a, search->a_count, search->b, search->b_count,
		                        tolerance, search->pair);

		if (!now)
			break;
		if (now == pairs)
			break;
		pairs = now;
		rc = clock_fit_measure(&trial->fit, search->a, search->b, search->b_count, search->pair);
	}
	trial->fit.pairs = pairs;
	trial->cost = HUGE_VAL;
	if (!rc && pairs * 2 >= least)
		trial->cost = (double)trial->fit.error_ns + unpaired_share(search, &trial->fit) * CLIP_NS;
	return rc;
}

static bool is_better(const struct trial *trial, const struct trial *best)
{
	if (trial->cost != best->cost)
		return trial->cost < best->cost;
	return llabs(trial->fit.offset_ns) < llabs(best->fit.offset_ns);
}

/* Tries all shifts on a stretch of b; the best ones are then judged on everything. */
static int search_stretch(struct search *search, const struct stretch *stretch, struct trial *best)
{
	struct trials screened = {.most = SCREEN_KEPT}, judged = {.most = JUDGE_KEPT};
	long from = -(long)smaller(search->b_count - 1, SHIFTS_MOST);
	long to = (long)smaller(search->a_count - 1, SHIFTS_MOST);
	struct trial trial;
	int rc = 0;

	for (long shift = from; shift <= to; shift++) {
		if (judge_shift(search, stretch, shift, SCREEN_PAIRS, &trial))
			trials_offer(&screened, &trial);
	}
	for (size_t i = 0; i < screened.count; i++) {
		if (judge_shift(search, stretch, screened.items[i].shift, JUDGE_PAIRS, &trial))
			trials_offer(&judged, &trial);
	}
	for (size_t i = 0; !rc && i < judged.count; i++) {
		rc = settle(search, &judged.items[i]);
		if (!rc && is_better(&judged.items[i], best))
			*best = judged.items[i];
	}
	return rc;
}

/*
 * Where records are missing in the middle no shift holds for all of the sequence: then a shorter stretch
 * tells the offset, and pairing by time does the rest.
 */
static int search_shifts(struct search *search, struct trial *best)
{
	size_t count = search->b_count, quarter = count / 4;
	const struct stretch stretches[] = {
	    {0, count},
	    {2 * quarter - smaller(quarter, STRETCH_HALF), 2 * quarter + smaller(quarter, STRETCH_HALF)},
	    {quarter - smaller(quarter, STRETCH_HALF), quarter + smaller(quarter, STRETCH_HALF)},
	    {3 * quarter - smaller(quarter, STRETCH_HALF), 3 * quarter + smaller(quarter, STRETCH_HALF)},
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(stretches) / sizeof(stretches[0]); i++) {
		if (i && (stretches[i].to - stretches[i].from < STRETCH_LEAST || best->cost < GOOD_COST))
			break;
		rc = search_stretch(search, &stretches[i], best);
	}
	return rc;
}

int clock_align(struct clock_fit *fit, const struct clock_mark *a, size_t a_count, const struct clock_mark *b,
                size_t b_count)
{
	struct search search = {.a = a, .b = b, .a_count = a_count, .b_count = b_count};
	struct trial best = {0};
	int rc;

	if (!a_count || !b_count)
		return 0;
	search.pair = calloc(b_count, sizeof(*search.pair));
	rc = differences_make(&search.differences, JUDGE_PAIRS + 1);
	if (!search.pair)
		rc = -ENOMEM;
	/* Most clocks agree already: then nothing needs to be searched for. */
	if (!rc)
		rc = settle(&search, &best);
	if (!rc && (best.fit.pairs < smaller(a_count, b_count) || !clock_fit_is_tight(&best.fit, a, a_count)))
		rc = search_shifts(&search, &best);
	differences_free(&search.differences);
	free(search.pair);
	*fit = best.fit;
	return rc ? rc : best.cost < HUGE_VAL && clock_fit_is_tight(fit, a, a_count);
}
