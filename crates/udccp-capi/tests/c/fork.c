/* A forked child does not disturb the connections of its parent, and opens its own. */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void in_child(udccp_socket *client, udccp_listener *listener, const char *address)
{
    char room[8];
    udccp_socket *other;
    udccp_stats stats;
    GIVES(-EBADF, udccp_send(client, "x", 1, LONG_MS));
    SAYS("forked child");
    GIVES(-EBADF, udccp_recv(client, room, sizeof room, LONG_MS));
    GIVES(-EBADF, udccp_socket_stats(client, &stats, sizeof stats));
    GIVES(-EBADF, udccp_close(client, LONG_MS));
    GIVES(-EBADF, udccp_accept(listener, &other, LONG_MS));
    udccp_socket_free(client);
    udccp_listener_free(listener);
    /* One of its own, to the parent. */
    GIVES(0, udccp_connect(&other, address, SERVICE, NULL, LONG_MS));
    GIVES(0, udccp_send(other, "child", 5, LONG_MS));
    GIVES(0, udccp_close(other, LONG_MS));
    udccp_socket_free(other);
}

int main(void)
{
    char address[64], room[8];
    udccp_socket *client, *server, *of_child;
    udccp_listener *listener = a_listener(address, NULL);
    GIVES(0, udccp_connect(&client, address, SERVICE, NULL, LONG_MS));
    GIVES(0, udccp_accept(listener, &server, LONG_MS));
    pid_t child = fork();
    if (child == 0) {
        forked();
        in_child(client, listener, address);
        exit(wrong != 0);
    }
    GIVES(0, udccp_accept(listener, &of_child, LONG_MS));
    GIVES(5, udccp_recv(of_child, room, sizeof room, LONG_MS));
    GIVES(UDCCP_EOF, udccp_recv(of_child, room, sizeof room, LONG_MS));
    int status = 0;
    GIVES(child, waitpid(child, &status, 0));
    GIVES(0, status);
    /* The parent's connection has come through. */
    GIVES(0, udccp_send(client, "parent", 6, LONG_MS));
    GIVES(6, udccp_recv(server, room, sizeof room, LONG_MS));
    GIVES(0, udccp_close(client, LONG_MS));
    udccp_socket_free(client);
    udccp_socket_free(server);
    udccp_socket_free(of_child);
    udccp_listener_free(listener);
    return wrong != 0;
}
