/* More clients than the server of echo.c serves at once: they stay until standard input ends. */
#include <stdio.h>
#include <udccp.h>

#define CLIENTS 66

int main(int argc, char **argv)
{
    uint32_t service;
    udccp_socket *clients[CLIENTS];
    if (argc != 2 || udccp_service_code("SC:echo", &service) < 0)
        return 2;
    for (int i = 0; i < CLIENTS; i++) {
        if (udccp_connect(&clients[i], argv[1], service, NULL, 10000) < 0) {
            fprintf(stderr, "client %d: %s\n", i, udccp_last_error());
            return 1;
        }
    }
    puts("connected");
    fflush(stdout);
    while (getchar() != EOF)
        continue;
    for (int i = 0; i < CLIENTS; i++)
        udccp_socket_free(clients[i]);
    return 0;
}
