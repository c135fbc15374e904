// SPDX-License-Identifier: GPL-2.0-only
#include "export/api_name.h"

#include <ctype.h>

bool api_is_driver(const char *function)
{
	return function[0] == 'c' && function[1] == 'u' && isupper((unsigned char)function[2]);
}
