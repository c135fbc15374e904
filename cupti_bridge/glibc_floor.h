/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included before everything else in the bridge: it is loaded into programs whose C library may be older than
 * the one it was built with (a container, another machine). glibc 2.32 to 2.34 gave some functions a new
 * symbol version, mostly by moving them into libc.so; the old ones are still there and all that is needed.
 * With these the bridge asks for nothing newer than GLIBC_2.17 (a test checks that).
 */
#ifndef WHYIDLE_CUPTI_GLIBC_FLOOR_H
#define WHYIDLE_CUPTI_GLIBC_FLOOR_H

#include <features.h>

#define GLIBC_FLOOR(name, version) __asm__(".symver " #name "," #name "@GLIBC_" version)

#if defined(__GLIBC__) && defined(__x86_64__)
GLIBC_FLOOR(dlclose, "2.2.5");
GLIBC_FLOOR(dlerror, "2.2.5");
GLIBC_FLOOR(dlinfo, "2.3.3");
GLIBC_FLOOR(dlopen, "2.2.5");
GLIBC_FLOOR(dlsym, "2.2.5");
GLIBC_FLOOR(pthread_attr_setstacksize, "2.2.5");
GLIBC_FLOOR(pthread_condattr_setclock, "2.3.3");
GLIBC_FLOOR(pthread_create, "2.2.5");
GLIBC_FLOOR(pthread_sigmask, "2.2.5");
#elif defined(__GLIBC__) && defined(__aarch64__)
GLIBC_FLOOR(dlclose, "2.17");
GLIBC_FLOOR(dlerror, "2.17");
GLIBC_FLOOR(dlinfo, "2.17");
GLIBC_FLOOR(dlopen, "2.17");
GLIBC_FLOOR(dlsym, "2.17");
GLIBC_FLOOR(pthread_attr_setstacksize, "2.17");
GLIBC_FLOOR(pthread_condattr_setclock, "2.17");
GLIBC_FLOOR(pthread_create, "2.17");
GLIBC_FLOOR(pthread_sigmask, "2.17");
#endif

#endif
