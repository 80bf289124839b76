/* A server that answers, and its clients in processes of their own, as the tutorials for DCCP on
 * Linux have it: a process for each client, and poll on the side of the clients. */
#include "common.h"

enum { CLIENTS = 3, MESSAGES = 50 };

static const uint32_t SERVICE = 42;

static void answer(int fd)
{
    char message[2000];
    ssize_t len;
    while ((len = recv(fd, message, sizeof message, 0)) > 0)
        must(send(fd, message, len, 0) == len);
    must(len == 0);
    exit(0);
}

static void ask(const struct sockaddr_in *at)
{
    int fd = dccp_socket(), unsent;
    must(set_services(fd, &SERVICE, 1) == 0);
    must(connect(fd, (const void *)at, sizeof *at) == 0);
    int most = get(fd, DCCP_SOCKOPT_GET_CUR_MPS);
    char *message = malloc(most + 1), *back = malloc(most + 1);
    must_fail(send(fd, message, most + 1, 0), EMSGSIZE);
    for (int n = 0; n < MESSAGES; n++) {
        int len = 1 + n * (most - 1) / (MESSAGES - 1);
        struct pollfd waits = {.fd = fd, .events = POLLIN};
        memset(message, n, len);
        must(send(fd, message, len, 0) == len);
        must(ioctl(fd, TIOCOUTQ, &unsent) == 0 && unsent >= 0);
        must(poll(&waits, 1, 10000) == 1 && waits.revents == POLLIN);
        must(recv(fd, back, most + 1, 0) == len && memcmp(message, back, len) == 0);
    }
    must(shutdown(fd, SHUT_RDWR) == 0 && close(fd) == 0);
    exit(0);
}

int main(void)
{
    int server = dccp_socket(), status;
    must(set_services(server, &SERVICE, 1) == 0);
    struct sockaddr_in at = listen_at(server), from;
    for (int n = 0; n < CLIENTS; n++) {
        if (fork() == 0)
            ask(&at);
    }
    for (int n = 0; n < CLIENTS; n++) {
        socklen_t len = sizeof from;
        int fd = accept(server, (void *)&from, &len);
        must(fd >= 0 && len == sizeof from && from.sin_addr.s_addr == at.sin_addr.s_addr);
        if (fork() == 0)
            answer(fd);
        close(fd);
    }
    for (int n = 0; n < 2 * CLIENTS; n++)
        must(wait(&status) > 0 && status == 0);
    return 0;
}
