// SPDX-License-Identifier: GPL-2.0-only
#include "compare/noise.h"

#include <math.h>

#define FRACTION_STEPS   300
#define FRACTION_TINY    1e-300
#define FRACTION_CLOSE   1e-14
#define CORRELATION_MOST 0.8

/* ---- Student's t ---- */

static double away_from_zero(double value)
{
	return fabs(value) < FRACTION_TINY ? FRACTION_TINY : value;
}

/* The continued fraction of the incomplete beta function, by Lentz' method. */
static double beta_fraction(double x, double a, double b)
{
	double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), sum = d;

	for (int m = 1; m <= FRACTION_STEPS; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double factor;

		d = 1 / away_from_zero(1 + even * d);
		c = away_from_zero(1 + even / c);
		sum *= d * c;
		d = 1 / away_from_zero(1 + odd * d);
		c = away_from_zero(1 + odd / c);
		factor = d * c;
		sum *= factor;
		if (fabs(factor - 1) < FRACTION_CLOSE)
			break;
	}
	return sum;
}

/* Regularised incomplete beta function. */
static double beta_part(double x, double a, double b)
{
	double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));

	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(x, a, b) / a;
	return 1 - front * beta_fraction(1 - x, b, a) / b;
}

/* P(|T| > t) */
static double student_tail(double t, double df)
{
	return t > 0 ? beta_part(df / (df + t * t), df / 2, 0.5) : 1;
}

double student_quantile(double p, double df)
{
	double tail = 2 * (1 - p), low = 0, high = 1;

	while (student_tail(high, df) > tail && high < 1e9)
		high *= 2;
	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;

		if (student_tail(middle, df) > tail)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

/* ---- estimates ---- */

/* Correlation of each batch's deviation with the next one's. */
static double neighbour_correlation(const double *deviations, unsigned count, double squares)
{
	double products = 0;

	for (unsigned i = 0; i + 1 < count; i++)
		products += deviations[i] * deviations[i + 1];
	return squares > 0 ? products / squares : 0;
}

struct estimate estimate_ratio(const double *parts, const double *wholes, unsigned count)
{
	double part = 0, whole = 0, squares = 0, correlation;
	double deviations[NOISE_BATCHES_MOST];
	struct estimate estimate = {0};

	count = count > NOISE_BATCHES_MOST ? NOISE_BATCHES_MOST : count;
	for (unsigned i = 0; i < count; i++) {
		part += parts[i];
		whole += wholes[i];
	}
	if (!(whole > 0))
		return estimate;
	estimate.value = part / whole;
	if (count < NOISE_BATCHES_LEAST)
		return estimate;
	/* Of a ratio of sums, to first order: each batch counts by how far it is off the common ratio. */
	for (unsigned i = 0; i < count; i++) {
		deviations[i] = (parts[i] - estimate.value * wholes[i]) / (whole / count);
		squares += deviations[i] * deviations[i];
	}
	correlation = neighbour_correlation(deviations, count, squares);
	correlation = correlation < 0 ? 0 : correlation > CORRELATION_MOST ? CORRELATION_MOST : correlation;
	estimate.batches = count;
	estimate.error = sqrt(squares / (count * (count - 1.0)) * (1 + correlation) / (1 - correlation));
	return estimate;
}

struct figure figure_make(struct estimate before, struct estimate after, double risk, double floor)
{
	struct figure figure = {.before = before, .after = after, .change = after.value - before.value};
	double x, y, error;

	if (!before.batches || !after.batches)
		return figure;
	figure.known = true;
	x = before.error * before.error;
	y = after.error * after.error;
	error = sqrt(x + y);
	if (error > 0) {
		/* Welch and Satterthwaite: the runs need not spread alike. */
		double df = (x + y) * (x + y) / (x * x / (before.batches - 1) + y * y / (after.batches - 1));

		figure.noise = student_quantile(1 - risk / 2, df) * error;
	}
	figure.beyond = fabs(figure.change) > figure.noise && fabs(figure.change) > floor;
	return figure;
}
