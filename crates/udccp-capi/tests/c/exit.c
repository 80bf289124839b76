/* At the end of a process, sent messages still leave, and the peer notices the end.
 *
 * Usage: exit return|exit|kill. A child sends 100 messages and ends that way. */
#define _POSIX_C_SOURCE 200809L

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define MESSAGES 100

static void send_all(const char *address)
{
    udccp_socket *client;
    GIVES(0, udccp_connect(&client, address, SERVICE, NULL, LONG_MS));
    for (int i = 0; i < MESSAGES; i++)
        GIVES(0, udccp_send(client, &i, sizeof i, LONG_MS));
}

int main(int argc, char **argv)
{
    const uint32_t service = SERVICE;
    const char *way = argc == 2 ? argv[1] : "";
    int ports[2];
    char address[64];
    udccp_socket *server;
    udccp_listener *listener;
    /* Fork before the first call of the library, which registers its exit handler. */
    GIVES(0, pipe(ports));
    pid_t child = fork();
    if (child == 0) {
        unsigned port;
        if (read(ports[0], &port, sizeof port) != sizeof port)
            return 1;
        snprintf(address, sizeof address, "127.0.0.1:%u", port);
        send_all(address);
        if (strcmp(way, "kill") == 0)
            kill(getpid(), SIGKILL);
        if (strcmp(way, "exit") == 0)
            exit(wrong != 0);
        return wrong != 0;
    }
    udccp_options *options = udccp_options_new();
    if (strcmp(way, "kill") == 0) {
        /* A killed process does not close its connection: only its silence shows the end. */
        GIVES(0, udccp_options_set_keep_alive_ms(options, 300));
        GIVES(0, udccp_options_set_idle_limit_ms(options, 1500));
    }
    GIVES(0, udccp_listen(&listener, "127.0.0.1:0", &service, 1, options));
    unsigned port = udccp_listener_port(listener);
    GIVES(sizeof port, write(ports[1], &port, sizeof port));
    GIVES(0, udccp_accept(listener, &server, LONG_MS));
    int message, n = 0;
    ssize_t len;
    while ((len = udccp_recv(server, &message, sizeof message, LONG_MS)) == sizeof message)
        n++;
    if (strcmp(way, "kill") == 0) {
        GIVES(1, len < 0 && len != UDCCP_EOF && len != -EAGAIN);
    } else {
        GIVES(UDCCP_EOF, len);
        GIVES(MESSAGES, n);
    }
    GIVES(child, waitpid(child, NULL, 0));
    udccp_socket_free(server);
    udccp_listener_free(listener);
    udccp_options_free(options);
    return wrong != 0;
}
