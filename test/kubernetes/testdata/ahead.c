/* A library that is loaded before others, by which a program's wall clock is 40 days ahead. Timers keep theirs. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const time_t ahead = 40L * 24 * 3600;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int status = syscall(SYS_clock_gettime, clock, now);
	if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += ahead;
	return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	int status = syscall(SYS_gettimeofday, now, zone);
	if (status == 0)
		now->tv_sec += ahead;
	return status;
}

time_t time(time_t *to)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (to)
		*to = now.tv_sec;
	return now.tv_sec;
}
