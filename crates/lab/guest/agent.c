/* The guest agent: process 1 of a lab guest.
 *
 * One worker serves each virtio-serial port named "lab.N"; a port carries one shell command at a
 * time, so several ports give several commands side by side.
 *
 *   host to guest:  8-byte magic, 8-byte token, u32 length, command text,
 *                   then standard input as frames: u32 length, bytes (length 0 is end of file)
 *   guest to host:  the same token, then frames: u8 type, u32 length, bytes
 *                   type 'o' standard output, 'e' standard error, 'x' exit status (4 bytes, ends it)
 *
 * Numbers are little-endian.  A frame of length 0xffffffff kills the command's process group, and so
 * does a new request, and a port that the host has closed for LONG_MS.
 * Run on the host as "agent --tsc-khz", it prints the rate of the time-stamp counter instead. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { MAX_PORTS = 32, CHUNK = 16384, MAX_COMMAND = 1 << 20, SHORT_MS = 200, LONG_MS = 20000 };
static const uint32_t KILL = 0xffffffff;
static const char MAGIC[8] = "MLAB\x01\x02\r\n";
static int port;
static char window[8]; /* the last bytes read while looking for the magic */

/* Whether the host has closed the port for patience_ms.  The kernel learns of closing and opening later
 * than of data, and much later on a busy machine, so in the middle of a request or a command this is
 * believed after LONG_MS only. */
static int host_left(int patience_ms)
{
	struct pollfd p = { port, 0, 0 };
	for (int waited = 0; waited < patience_ms;) {
		if (poll(&p, 1, 0) >= 0 && !(p.revents & POLLHUP))
			return 0;
		int step = waited < SHORT_MS ? 10 : 100;
		usleep(step * 1000);
		waited += step;
	}
	return 1;
}

/* Reads up to n bytes; waits for data; returns 0 once the host has closed the port. */
static ssize_t port_read(void *buf, size_t n, int patience_ms)
{
	for (;;) {
		ssize_t r = read(port, buf, n);
		if (r > 0)
			return r;
		struct pollfd p = { port, POLLIN, 0 };
		if (r < 0)
			poll(&p, 1, -1);
		if ((r == 0 || p.revents & POLLHUP) && host_left(patience_ms))
			return 0;
	}
}

static int port_read_all(void *buf, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t r = port_read((char *)buf + got, n - got, LONG_MS);
		if (r <= 0)
			return -1;
		got += r;
	}
	return 0;
}

static int port_write(const void *buf, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t r = write(port, (const char *)buf + done, n - done);
		if (r > 0) {
			done += r;
			continue;
		}
		struct pollfd p = { port, POLLOUT, 0 };
		poll(&p, 1, -1);
		if ((p.revents & POLLHUP) && host_left(LONG_MS))
			return -1;
	}
	return 0;
}

static int send_frame(char type, const void *data, uint32_t n)
{
	char buf[5 + CHUNK];
	buf[0] = type;
	memcpy(buf + 1, &n, 4);
	memcpy(buf + 5, data, n);
	return port_write(buf, 5 + n);
}

/* Waits for a request; returns its command, or NULL when there is none yet. */
static char *next_request(char token[8])
{
	while (memcmp(window, MAGIC, 8)) {
		char c;
		if (port_read(&c, 1, SHORT_MS) <= 0) { /* no host: sleep until it opens the port */
			sigset_t set;
			sigemptyset(&set);
			sigaddset(&set, SIGIO);
			sigtimedwait(&set, NULL, &(struct timespec){ 5, 0 });
			return NULL;
		}
		memmove(window, window + 1, 7);
		window[7] = c;
	}
	memset(window, 0, 8);
	uint32_t n;
	if (port_read_all(token, 8) || port_read_all(&n, 4) || n > MAX_COMMAND)
		return NULL;
	char *command = calloc(1, n + 1);
	if (command && port_read_all(command, n)) {
		free(command);
		return NULL;
	}
	return command;
}

/* Passes on what the pipe holds; returns 1 while it may hold more later, 0 at its end, -1 if the host left. */
static int forward(int fd, char type)
{
	for (;;) {
		char buf[CHUNK];
		ssize_t r = read(fd, buf, sizeof buf);
		if (r < 0)
			return errno == EAGAIN || errno == EINTR;
		if (r == 0)
			return 0;
		if (send_frame(type, buf, r))
			return -1;
	}
}

enum end { RUNS, HOST_LEFT, KILLED };

static void run_command(char *command)
{
	int in[2], out[2], err[2];
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		exit(1);
	pid_t pid = fork();
	if (pid == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		setsid();
		dup2(in[0], 0), dup2(out[1], 1), dup2(err[1], 2);
		execl("/bin/bash", "bash", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(in[0]), close(out[1]), close(err[1]);
	for (int i = 0; i < 3; i++)
		fcntl((int[]){ in[1], out[0], err[0] }[i], F_SETFL, O_NONBLOCK);

	int child = syscall(SYS_pidfd_open, pid, 0), input = in[1];
	enum end end = RUNS;
	char *data = NULL; /* one frame of standard input on its way to the command */
	uint32_t have = 0, sent = 0;
	struct pollfd p[5] = { { child, POLLIN, 0 }, { out[0], POLLIN, 0 }, { err[0], POLLIN, 0 } };
	while (end == RUNS && !(p[0].revents & POLLIN)) {
		p[3] = (struct pollfd){ sent < have ? input : -1, POLLOUT, 0 };
		p[4] = (struct pollfd){ port, sent < have ? 0 : POLLIN, 0 };
		if (poll(p, 5, -1) < 0)
			continue;
		for (int i = 1; i <= 2; i++) {
			int more = p[i].revents ? forward(p[i].fd, i == 1 ? 'o' : 'e') : 1;
			if (more == 0)
				p[i].fd = -1;
			if (more < 0)
				end = HOST_LEFT;
		}
		if (p[3].revents) {
			ssize_t r = write(input, data + sent, have - sent);
			sent += r > 0 ? r : errno == EAGAIN ? 0 : have - sent;
		}
		if (p[4].revents & POLLIN) {
			uint32_t n;
			free(data);
			data = NULL, have = sent = 0;
			if (port_read_all(&n, 4)) {
				end = HOST_LEFT;
			} else if (!memcmp(&n, MAGIC, 4)) { /* no frame but a new request: that host has left */
				memcpy(window + 4, MAGIC, 4);
				end = HOST_LEFT;
			} else if (n == KILL) {
				end = KILLED;
			} else if (n > MAX_COMMAND || !(data = malloc(n + 1)) || port_read_all(data, n)) {
				end = HOST_LEFT;
			} else if (n == 0 || input < 0) {
				if (input >= 0)
					close(input);
				input = -1;
			} else {
				have = n;
			}
		}
		if (end == RUNS && (p[4].revents & POLLHUP) && host_left(LONG_MS))
			end = HOST_LEFT;
	}
	if (end != RUNS) {
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL); /* it may not have made its group yet */
		uint32_t code = 128 + SIGKILL;
		if (end == KILLED)
			send_frame('x', &code, 4);
	} else {
		int status = 0;
		waitpid(pid, &status, 0);
		uint32_t code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		if (forward(out[0], 'o') >= 0 && forward(err[0], 'e') >= 0)
			send_frame('x', &code, 4);
	}
	free(data);
	if (input >= 0)
		close(input);
	close(out[0]), close(err[0]), close(child);
}

static void serve(const char *path)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	if ((port = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)) < 0)
		exit(1);
	fcntl(port, F_SETOWN, getpid());
	fcntl(port, F_SETFL, O_NONBLOCK | O_ASYNC);
	for (;;) {
		char token[8];
		char *command = next_request(token);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (command && !port_write(token, 8))
			run_command(command);
		free(command);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--tsc-khz")) {
		struct timespec a, b;
		clock_gettime(CLOCK_MONOTONIC, &a);
		uint64_t start = __rdtsc();
		nanosleep(&(struct timespec){ 0, 300000000 }, NULL);
		clock_gettime(CLOCK_MONOTONIC, &b);
		double ms = (b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) / 1e6;
		return printf("%.0f\n", (__rdtsc() - start) / ms) < 0;
	}
	static struct { char path[300]; pid_t pid; } workers[MAX_PORTS];
	int n = 0;
	DIR *dir = opendir("/dev/virtio-ports");
	for (struct dirent *e; dir && (e = readdir(dir)) && n < MAX_PORTS;)
		if (!strncmp(e->d_name, "lab.", 4))
			snprintf(workers[n++].path, sizeof workers->path, "/dev/virtio-ports/%s", e->d_name);
	for (;;) { /* as process 1: keep the workers alive, reap everybody's orphans */
		for (int i = 0; i < n; i++)
			if (workers[i].pid <= 0 && (workers[i].pid = fork()) == 0)
				serve(workers[i].path);
		pid_t dead = wait(NULL);
		for (int i = 0; i < n; i++)
			if (workers[i].pid == dead)
				workers[i].pid = 0;
		if (dead < 0)
			sleep(1);
	}
}
