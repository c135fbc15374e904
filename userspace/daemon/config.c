// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/config.h"

#define SECOND_NS 1000000000ULL

void daemon_config_init(struct daemon_config *config)
{
	*config = (struct daemon_config){
	    .budget_ppm = 5000,
	    .interval_ns = 10 * SECOND_NS,
	    .window_ns = SECOND_NS,
	    .listen = "127.0.0.1:9837",
	    .control = "/run/whyidle/control",
	    .history = "/var/lib/whyidle",
	    .history_bytes = 256ULL << 20,
	    .history_age_ns = 3600 * SECOND_NS,
	    .kept_bytes = 1ULL << 30,
	    .kept_age_ns = 7ULL * 24 * 3600 * SECOND_NS,
	    .trigger =
	        {
	            .idle_ppm = 500000,
	            .idle_time_ns = 30 * SECOND_NS,
	            .gap_ns = SECOND_NS / 2,
	            .step_percent = 300,
	            .rate_ppm = 500000,
	            .pause_ns = 300 * SECOND_NS,
	        },
	};
}
