// SPDX-License-Identifier: GPL-2.0-only
#include "export/api_name.h"

#include <ctype.h>
#include <string.h>

#define VERSION_DIGITS_MIN 4 /* "_v3020"; "_v2" is part of a driver function's name */

bool api_is_driver(const char *function)
{
	return function[0] == 'c' && function[1] == 'u' && isupper((unsigned char)function[2]);
}

const char *api_plain_name(char buffer[API_NAME_SIZE], const char *function)
{
	size_t length = strlen(function), digits = 0;

	while (digits < length && isdigit((unsigned char)function[length - digits - 1]))
		digits++;
	if (strncmp(function, "cuda", 4) || digits < VERSION_DIGITS_MIN || length < digits + 2)
		return function;
	length -= digits + 2;
	if (memcmp(function + length, "_v", 2) || length >= API_NAME_SIZE)
		return function;
	memcpy(buffer, function, length);
	buffer[length] = '\0';
	return buffer;
}
