// SPDX-License-Identifier: GPL-2.0-only
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle.h"

static void check_short(const char *name, const char *wanted)
{
	char *got = symbol_short(name);

	cr_assert_str_eq(got, wanted, "%s gave %s, not %s", name, got, wanted);
	free(got);
}

Test(demangle, whole_name)
{
	char *name = symbol_demangle("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
	                             "11FillFunctorIlEENS0_3arrIPcLm1EEEEEviT0_T1_");

	cr_assert_str_eq(name,
	                 "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<long>, "
	                 "at::native::arr<char*, 1ul> >(int, at::native::FillFunctor<long>, "
	                 "at::native::arr<char*, 1ul>)");
	free(name);
}

Test(demangle, no_mangled_names)
{
	cr_assert_null(symbol_demangle("main"));
	cr_assert_null(symbol_demangle("_Z"));
	cr_assert_null(symbol_demangle("_ZN99nowhere"));
	cr_assert_null(symbol_demangle(""));
}

Test(demangle, short_names)
{
	check_short("main", "main");
	check_short("_Z15ampere_sgemm_tnPKfS0_Pfiii", "ampere_sgemm_tn");
	check_short("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIlEENS0_"
	            "3arrIPcLm1EEEEEviT0_T1_",
	            "at::native::vectorized_elementwise_kernel<…>");
	check_short("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<…>::push_back");
	check_short("_ZN12_GLOBAL__N_14fillILi4EEEvPf", "(anonymous namespace)::fill<4>");
	check_short("_ZlsRSoRK3foo", "operator<<");
	check_short("_ZNK3fooclEi", "foo::operator()");
	check_short("_ZNK3foocvbEv", "foo::operator bool");
	check_short("void f<int>(int)", "f<int>");
	check_short("f(int)::g(char)", "f::g");
	check_short("_Z99999999999999999999999x", "_Z99999999999999999999999x");
	check_short("(", "(");
	check_short(")>(", ")>");
	check_short("a<b", "a<b");
	check_short("_ZN99nowhere", "_ZN99nowhere");
}

/* Doubles with each substitution: 2^40 letters if it were written out. */
Test(demangle, name_that_explodes, .timeout = 20)
{
	char name[1024] = "_Z1fI", *end = name + strlen(name);
	char *text;

	end += sprintf(end, "1aIiiE");
	for (int i = 0; i < 40; i++)
		end += sprintf(end, "1aIS%c_S%c_E", i < 10 ? '0' + i : 'A' + i - 10,
		               i < 10 ? '0' + i : 'A' + i - 10);
	sprintf(end, "Evv");
	text = symbol_demangle(name);
	cr_assert(!text || strlen(text) < 64 * 1024);
	free(text);
	text = symbol_short(name);
	cr_assert_not_null(text);
	free(text);
}

Test(demangle, long_names)
{
	char *name = malloc(100001), *text;

	memset(name, 'I', 100000);
	memcpy(name, "_Z", 2);
	name[100000] = '\0';
	cr_assert_null(symbol_demangle(name));
	memset(name, '<', 100000);
	text = symbol_short(name);
	cr_assert_not_null(text);
	free(text);
	free(name);
}
