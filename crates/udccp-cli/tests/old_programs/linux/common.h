/* What the programs share that use DCCP as Linux's own documentation describes it
 * (Documentation/networking/dccp.rst). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/dccp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define must(good)                                                                       \
    do {                                                                                 \
        if (!(good)) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #good, strerror(errno)); \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

#define must_fail(call, number) must((call) == -1 && errno == (number))

static inline int dccp_socket(void)
{
    int fd = socket(AF_INET, SOCK_DCCP, IPPROTO_DCCP);
    must(fd >= 0);
    return fd;
}

static inline int set(int fd, int name, int value)
{
    return setsockopt(fd, SOL_DCCP, name, &value, sizeof value);
}

static inline int get(int fd, int name)
{
    int value = -1;
    socklen_t len = sizeof value;
    must(getsockopt(fd, SOL_DCCP, name, &value, &len) == 0 && len == sizeof value);
    return value;
}

/* Service codes are in the network's byte order. */
static inline int set_services(int fd, const uint32_t *codes, int count)
{
    uint32_t wire[32];
    for (int i = 0; i < count; i++)
        wire[i] = htonl(codes[i]);
    return setsockopt(fd, SOL_DCCP, DCCP_SOCKOPT_SERVICE, wire, count * sizeof *wire);
}

/* Listens at a free port of the loopback interface. */
static inline struct sockaddr_in listen_at(int server)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    must(bind(server, (void *)&at, sizeof at) == 0);
    must(listen(server, 5) == 0);
    must(getsockname(server, (void *)&at, &len) == 0 && len == sizeof at);
    return at;
}
