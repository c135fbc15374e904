/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of the C library that --trace=osrt records and that wait, with the system call that they wait in.
 * (This program's own exports have the system calls themselves.)
 *
 * Functions that mostly work in the kernel instead of waiting there (open, mmap, ioctl …) are left out: how
 * long they took does not say that the thread was blocked.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "import/nsys_loader.h"

/* Newer architectures have only the general form of some calls. */
#ifndef SYS_poll
#define SYS_poll SYS_ppoll
#endif
#ifndef SYS_select
#define SYS_select SYS_pselect6
#endif
#ifndef SYS_epoll_wait
#define SYS_epoll_wait SYS_epoll_pwait
#endif
#ifndef SYS_pause
#define SYS_pause SYS_ppoll
#endif

/* By name. */
static const struct nsys_os_call os_calls[] = {
    {"accept", SYS_accept, false},
    {"accept4", SYS_accept4, false},
    {"clock_nanosleep", SYS_clock_nanosleep, false},
    {"connect", SYS_connect, false},
    {"epoll_pwait", SYS_epoll_pwait, false},
    {"epoll_wait", SYS_epoll_wait, false},
    {"fdatasync", SYS_fdatasync, false},
    {"fgetc", SYS_read, false},
    {"fgets", SYS_read, false},
    {"fgets_unlocked", SYS_read, false},
    {"flock", SYS_flock, false},
    {"fread", SYS_read, false},
    {"fread_unlocked", SYS_read, false},
    {"fsync", SYS_fsync, false},
    {"futex", SYS_futex, false},
    {"getdelim", SYS_read, false},
    {"getline", SYS_read, false},
    {"lockf", SYS_fcntl, false},
    {"msync", SYS_msync, false},
    {"nanosleep", SYS_nanosleep, false},
    {"pause", SYS_pause, false},
    {"pclose", SYS_wait4, false},
    {"poll", SYS_poll, false},
    {"ppoll", SYS_ppoll, false},
    {"pread", SYS_pread64, false},
    {"pread64", SYS_pread64, false},
    {"preadv", SYS_preadv, false},
    {"pselect", SYS_pselect6, false},
    {"pselect6", SYS_pselect6, false},
    {"pthread_barrier_wait", SYS_futex, false},
    {"pthread_cond_clockwait", SYS_futex, false},
    {"pthread_cond_timedwait", SYS_futex, false},
    {"pthread_cond_wait", SYS_futex, false},
    {"pthread_join", SYS_futex, false},
    {"pthread_mutex_clocklock", SYS_futex, true},
    {"pthread_mutex_lock", SYS_futex, true},
    {"pthread_mutex_timedlock", SYS_futex, true},
    {"pthread_rwlock_clockrdlock", SYS_futex, true},
    {"pthread_rwlock_clockwrlock", SYS_futex, true},
    {"pthread_rwlock_rdlock", SYS_futex, true},
    {"pthread_rwlock_timedrdlock", SYS_futex, true},
    {"pthread_rwlock_timedwrlock", SYS_futex, true},
    {"pthread_rwlock_wrlock", SYS_futex, true},
    {"pthread_timedjoin_np", SYS_futex, false},
    {"pwrite", SYS_pwrite64, false},
    {"pwrite64", SYS_pwrite64, false},
    {"read", SYS_read, false},
    {"readv", SYS_readv, false},
    {"recv", SYS_recvfrom, false},
    {"recvfrom", SYS_recvfrom, false},
    {"recvmmsg", SYS_recvmmsg, false},
    {"recvmsg", SYS_recvmsg, false},
    {"rt_sigsuspend", SYS_rt_sigsuspend, false},
    {"rt_sigtimedwait", SYS_rt_sigtimedwait, false},
    {"select", SYS_select, false},
    {"sem_clockwait", SYS_futex, false},
    {"sem_timedwait", SYS_futex, false},
    {"sem_wait", SYS_futex, false},
    {"send", SYS_sendto, false},
    {"sendmsg", SYS_sendmsg, false},
    {"sendto", SYS_sendto, false},
    {"sigsuspend", SYS_rt_sigsuspend, false},
    {"sigtimedwait", SYS_rt_sigtimedwait, false},
    {"sigwait", SYS_rt_sigtimedwait, false},
    {"sigwaitinfo", SYS_rt_sigtimedwait, false},
    {"sleep", SYS_clock_nanosleep, false},
    {"sync", SYS_sync, false},
    {"syncfs", SYS_syncfs, false},
    {"system", SYS_wait4, false},
    {"usleep", SYS_clock_nanosleep, false},
    {"wait", SYS_wait4, false},
    {"wait3", SYS_wait4, false},
    {"wait4", SYS_wait4, false},
    {"waitid", SYS_waitid, false},
    {"waitpid", SYS_wait4, false},
    {"write", SYS_write, false},
    {"writev", SYS_writev, false},
};

static int compare_name(const void *key, const void *item)
{
	return strcmp(key, ((const struct nsys_os_call *)item)->name);
}

const struct nsys_os_call *nsys_os_call_find(const char *name)
{
	return bsearch(name, os_calls, sizeof(os_calls) / sizeof(*os_calls), sizeof(*os_calls), compare_name);
}
