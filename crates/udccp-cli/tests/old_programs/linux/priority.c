/* The queuing policy "prio": a priority beside each message, and the highest leave first. */
#include "common.h"

enum { MESSAGES = 12000, EVERY = 1200, QUEUE = 16 };

static ssize_t send_with(int fd, uint32_t number, uint32_t priority)
{
    char message[1000] = {0}, control[CMSG_SPACE(sizeof priority)] = {0};
    struct iovec piece = {message, sizeof message};
    struct msghdr header = {.msg_iov = &piece, .msg_iovlen = 1};
    memcpy(message, &number, sizeof number);
    memcpy(message + 4, &priority, sizeof priority);
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    struct cmsghdr *beside = CMSG_FIRSTHDR(&header);
    beside->cmsg_level = SOL_DCCP;
    beside->cmsg_type = DCCP_SCM_PRIORITY;
    beside->cmsg_len = CMSG_LEN(sizeof priority);
    memcpy(CMSG_DATA(beside), &priority, sizeof priority);
    return sendmsg(fd, &header, 0);
}

/* Counts the received messages, and the urgent ones among them. */
static void receive(int fd, int *all, int *urgent)
{
    uint32_t message[250], before = 0;
    ssize_t len;
    while ((len = recv(fd, message, sizeof message, 0)) > 0) {
        must(len == 1000);
        must(message[1] == 0 || message[0] >= before);
        before = message[1] ? message[0] : before;
        *all += 1;
        *urgent += message[1] == 9;
    }
    must(len == 0);
}

int main(void)
{
    int server = dccp_socket(), client = dccp_socket(), plain = dccp_socket(), accepted;
    int all = 0, urgent = 0, small = 8192;
    struct linger time = {1, 20};
    struct sockaddr_in at = listen_at(server);
    must_fail(set(client, DCCP_SOCKOPT_QPOLICY_ID, DCCPQ_POLICY_MAX), EINVAL);
    must(set(client, DCCP_SOCKOPT_QPOLICY_ID, DCCPQ_POLICY_PRIO) == 0);
    must(set(client, DCCP_SOCKOPT_QPOLICY_TXQLEN, QUEUE) == 0);
    must(get(client, DCCP_SOCKOPT_QPOLICY_TXQLEN) == QUEUE);
    must(setsockopt(client, SOL_SOCKET, SO_LINGER, &time, sizeof time) == 0);
    must(connect(client, (void *)&at, sizeof at) == 0);
    must((accepted = accept(server, NULL, NULL)) >= 0);
    must(setsockopt(accepted, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
    /* Nobody reads yet, and this is more than all buffers on the way hold: the queue fills, and
       drops others for an urgent message. */
    for (uint32_t n = 0; n < MESSAGES; n++)
        must(send_with(client, n, n % EVERY == EVERY - 1 ? 9 : 0) == 1000);
    must(close(client) == 0);
    receive(accepted, &all, &urgent);
    printf("%d of %d messages, %d of %d urgent\n", all, MESSAGES, urgent, MESSAGES / EVERY);
    must(all < MESSAGES && urgent == MESSAGES / EVERY);
    /* Under the policy "simple" a priority is refused. */
    must(connect(plain, (void *)&at, sizeof at) == 0);
    must_fail(send_with(plain, 0, 1), EINVAL);
    return 0;
}
