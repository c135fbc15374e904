// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/allowance.h"

static void limit(struct allowance *allowance)
{
	int64_t most = (int64_t)(allowance->share * ALLOWANCE_KEPT_NS);

	if (allowance->credit_ns > most)
		allowance->credit_ns = most;
}

void allowance_configure(struct allowance *allowance, double share)
{
	allowance->share = share;
	limit(allowance);
}

void allowance_init(struct allowance *allowance, double share, uint64_t now_ns)
{
	*allowance = (struct allowance){.credit_ns = INT64_MAX, .now_ns = now_ns};
	allowance_configure(allowance, share);
}

void allowance_spend(struct allowance *allowance, uint64_t ns)
{
	allowance->credit_ns -= (int64_t)ns;
}

uint64_t allowance_wait_ns(struct allowance *allowance, uint64_t now_ns)
{
	double wait;

	if (now_ns > allowance->now_ns) {
		double due = allowance->share * (double)(now_ns - allowance->now_ns);

		allowance->credit_ns += due < 1e18 ? (int64_t)due : (int64_t)1e18;
		allowance->now_ns = now_ns;
		limit(allowance);
	}
	if (allowance->credit_ns >= 0)
		return 0;
	wait = allowance->share > 0 ? (double)-allowance->credit_ns / allowance->share : 1e19;
	return wait < 1e18 ? (uint64_t)wait + 1 : UINT64_MAX;
}
