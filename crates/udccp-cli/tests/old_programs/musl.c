/* A program linked to musl: connects to itself and sends a message. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static int failed(const char *what)
{
    perror(what);
    return 1;
}

int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct iovec piece = {"message", 7};
    struct msghdr message;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(4)];
    } priority = {.header = {.cmsg_len = CMSG_LEN(4), .cmsg_level = 269, .cmsg_type = 1}};
    int by_priority = 1;
    socklen_t len = sizeof at;
    char room[20];
    int server = socket(AF_INET, 6, 33), client = socket(AF_INET, 6, 33), accepted;
    if (server < 0 || client < 0)
        return failed("socket");
    /* The padding next to lengths that are ints in musl may contain anything. */
    memset(&message, 0xff, sizeof message);
    message.msg_name = NULL;
    message.msg_namelen = 0;
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = &priority;
    message.msg_controllen = sizeof priority;
    if (setsockopt(client, 269, 16, &by_priority, sizeof by_priority))
        return failed("setsockopt");
    if (bind(server, (void *)&at, len) || listen(server, 1) ||
        getsockname(server, (void *)&at, &len))
        return failed("listen");
    if (connect(client, (void *)&at, len))
        return failed("connect");
    accepted = accept(server, NULL, NULL);
    if (sendmsg(client, &message, 0) != 7)
        return failed("sendmsg");
    if (recv(accepted, room, sizeof room, 0) != 7 || memcmp(room, "message", 7))
        return failed("recv");
    return 0;
}
