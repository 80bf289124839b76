/* Sends and receives messages like an old program, and prints the cost. All processes run on core
 * 0, like those of the other benchmarks.
 *
 *     messages udp|dccp one|many|ping COUNT
 *
 * one: one message per call. many: 32 messages per call (sendmmsg, recvmmsg), with a transmit
 * queue of that length. ping: 100 bytes sent and returned, one at a time.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 1200, PING_BYTES = 100, BATCH = 32, SOL_DCCP_ = 269, QPOLICY_TXQLEN = 17 };

static char room[BATCH][2048];
static struct iovec pieces[BATCH];
static struct mmsghdr batch[BATCH];

static void must(int is_good, const char *what)
{
    if (!is_good) {
        perror(what);
        exit(1);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* A connected pair: 0 sends, 1 receives. */
static void open_pair(int is_dccp, int is_many, int pair[2])
{
    int kind = is_dccp ? 6 : SOCK_DGRAM, protocol = is_dccp ? 33 : 0;
    int server = socket(AF_INET, kind, protocol), queue = BATCH;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    must(server >= 0, "socket");
    must(bind(server, (void *)&at, sizeof at) == 0, "bind");
    must(getsockname(server, (void *)&at, &len) == 0, "getsockname");
    pair[0] = socket(AF_INET, kind, protocol);
    if (!is_dccp) {
        struct timeval quiet = {.tv_usec = 200000};
        int bytes = 4 << 20;
        setsockopt(server, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
        must(connect(pair[0], (void *)&at, sizeof at) == 0, "connect");
        must(getsockname(pair[0], (void *)&at, &len) == 0, "getsockname");
        must(connect(server, (void *)&at, sizeof at) == 0, "connect");
        setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &quiet, sizeof quiet);
        pair[1] = server;
        return;
    }
    must(listen(server, 1) == 0, "listen");
    if (is_many)
        must(!setsockopt(pair[0], SOL_DCCP_, QPOLICY_TXQLEN, &queue, sizeof queue), "queue");
    must(connect(pair[0], (void *)&at, sizeof at) == 0, "connect");
    pair[1] = accept(server, NULL, NULL);
    must(pair[1] >= 0, "accept");
    close(server);
}

/* Only this limits UDP's rate to that of the receiver. */
static void give_way(int is_dccp, long sent)
{
    if (!is_dccp && sent % BATCH == 0)
        sched_yield();
}

static long send_all(int fd, int is_dccp, int is_many, long count)
{
    long sent = 0;
    while (sent < count) {
        long n = is_many ? sendmmsg(fd, batch, BATCH, 0) : send(fd, room[0], BYTES, 0) == BYTES;
        must(n > 0, "send");
        sent += n;
        give_way(is_dccp, sent);
    }
    return sent;
}

/* Counts messages until the sender closes or, for UDP, pauses. Returns the time of the last one. */
static long receive_all(int fd, int is_many, double *last)
{
    long got = 0;
    for (;;) {
        long n = is_many ? recvmmsg(fd, batch, BATCH, MSG_WAITFORONE, NULL)
                         : recv(fd, room[0], sizeof room[0], 0) > 0;
        if (n <= 0 || (is_many && batch[n - 1].msg_len == 0))
            return got + (n > 0 ? n - 1 : 0);
        got += n;
        if (got % 64 < n)
            *last = now();
    }
}

static void stream(int is_dccp, int is_many, long count)
{
    double *times = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    long *got = (long *)(times + 2);
    int pair[2];
    open_pair(is_dccp, is_many, pair);
    for (int i = 0; i < BATCH; i++) {
        pieces[i] = (struct iovec){room[i], BYTES};
        batch[i].msg_hdr = (struct msghdr){.msg_iov = &pieces[i], .msg_iovlen = 1};
    }
    times[0] = now();
    if (fork() == 0) {
        close(pair[0]);
        *got = receive_all(pair[1], is_many, &times[1]);
        _exit(0);
    }
    close(pair[1]);
    send_all(pair[0], is_dccp, is_many, count);
    close(pair[0]);
    wait(NULL);
    printf("messages_per_s %.0f lost %ld\n", *got / (times[1] - times[0]), count - *got);
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void ping(int is_dccp, long count)
{
    double *times = calloc(count, sizeof *times);
    int pair[2];
    open_pair(is_dccp, 0, pair);
    if (fork() == 0) {
        ssize_t n;
        close(pair[0]);
        while ((n = recv(pair[1], room[1], sizeof room[1], 0)) > 0)
            send(pair[1], room[1], n, 0);
        _exit(0);
    }
    close(pair[1]);
    for (long i = 0; i < count; i++) {
        double began = now();
        must(send(pair[0], room[0], PING_BYTES, 0) == PING_BYTES, "send");
        must(recv(pair[0], room[0], sizeof room[0], 0) == PING_BYTES, "recv");
        times[i] = now() - began;
    }
    close(pair[0]);
    wait(NULL);
    qsort(times, count, sizeof *times, by_time);
    printf("p50_us %.1f p99_us %.1f\n", times[count / 2] * 1e6, times[count * 99 / 100] * 1e6);
}

int main(int argc, char **argv)
{
    cpu_set_t core;
    if (argc != 4)
        return 2;
    CPU_ZERO(&core);
    CPU_SET(0, &core);
    sched_setaffinity(0, sizeof core, &core);
    int is_dccp = strcmp(argv[1], "dccp") == 0;
    if (strcmp(argv[2], "ping") == 0)
        ping(is_dccp, atol(argv[3]));
    else
        stream(is_dccp, strcmp(argv[2], "many") == 0, atol(argv[3]));
    return 0;
}
