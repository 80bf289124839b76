/* A server and its clients in one thread that waits only with epoll, level- or edge-triggered: both
 * directions at once, queues of random lengths, closes during transfers. The next call must do what
 * the descriptor shows, and nothing may hang. Arguments: a first seed, and the number of seeds. */
#include <sys/epoll.h>
#include <unistd.h>

#include "check.h"

#define CLIENTS 6
#define MOST_MESSAGES 200
#define MOST_BYTES 1300

static unsigned long long state;

static unsigned random_below(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 11) % n;
}

struct end {
    udccp_socket *socket;
    uint32_t sent, goal, next;
    int fd;
    bool is_connected, is_closed, is_over;
};

static struct end ends[2 * CLIENTS];
static int poller, is_edge;

static void watch(int fd, uint32_t events, struct end *end, int how)
{
    struct epoll_event event = {.events = events | (is_edge ? EPOLLET : 0u), .data.ptr = end};
    GIVES(0, epoll_ctl(poller, how, fd, &event));
}

static uint32_t wanted(const struct end *end)
{
    bool sends = is_edge || !end->is_connected || end->sent < end->goal;
    return EPOLLIN | EPOLLRDHUP | (sends ? EPOLLOUT : 0u);
}

static void begin(struct end *end)
{
    end->goal = random_below(MOST_MESSAGES);
    end->fd = udccp_socket_fd(end->socket);
    watch(end->fd, wanted(end), end, EPOLL_CTL_ADD);
}

/* Receives some messages; all of them if edge-triggered. */
static void receive_some(struct end *end)
{
    unsigned char room[MOST_BYTES];
    unsigned most = is_edge ? ~0u : 1 + random_below(5);
    for (unsigned i = 0; i < most; i++) {
        udccp_buffer buffer = {.data = room, .capacity = sizeof room};
        ssize_t n = random_below(2) ? udccp_recv(end->socket, room, sizeof room, 0)
                                    : udccp_recv_batch(end->socket, &buffer, 1, 0);
        if (n == -EAGAIN) {
            GIVES(true, is_edge || i > 0);
            return;
        }
        if (n < 0) {
            GIVES(UDCCP_EOF, n);
            end->is_over = true;
            GIVES(0, epoll_ctl(poller, EPOLL_CTL_DEL, end->fd, NULL));
            return;
        }
        uint32_t number;
        memcpy(&number, room, sizeof number);
        GIVES(true, number >= end->next && number < MOST_MESSAGES);
        end->next = number + 1;
    }
}

static int send_one(struct end *end, const void *data, size_t len)
{
    udccp_message message = {.data = data, .len = len};
    if (random_below(2))
        return udccp_send(end->socket, data, len, 0);
    ssize_t n = udccp_send_batch(end->socket, &message, 1, 0);
    return n == 1 ? 0 : (int)n;
}

static void send_some(struct end *end)
{
    unsigned char data[MOST_BYTES] = {0};
    unsigned most = is_edge ? ~0u : 1 + random_below(5);
    for (unsigned i = 0; i < most && end->sent < end->goal; i++) {
        size_t len = sizeof end->sent + random_below(MOST_BYTES - sizeof end->sent);
        memcpy(data, &end->sent, sizeof end->sent);
        int n = send_one(end, data, len);
        if (n == -EAGAIN) {
            GIVES(true, is_edge || i > 0);
            return;
        }
        if (n < 0) {
            /* The peer has closed. */
            GIVES(-EPIPE, n);
            end->goal = end->sent;
            return;
        }
        end->sent++;
    }
}

/* Each client closes when it has sent everything; servers do so at random. */
static void close_in_time(struct end *end)
{
    bool is_client = end < ends + CLIENTS;
    if (end->is_closed || end->sent < end->goal || !(is_client || random_below(2)))
        return;
    end->is_closed = true;
    /* The connection may have ended already, before everything was sent. */
    int result = udccp_close(end->socket, 0);
    GIVES(true, result == 0 || result == -EAGAIN || result == -ETIMEDOUT);
}

static void handle(struct end *end, uint32_t events)
{
    if (end->is_over)
        return;
    if (!end->is_connected && events & EPOLLOUT) {
        GIVES(0, udccp_connect_finish(end->socket, 0));
        end->is_connected = true;
    }
    if (events & EPOLLOUT)
        send_some(end);
    if (events & EPOLLIN)
        receive_some(end);
    GIVES(0, events & EPOLLERR);
    GIVES(true, !(events & EPOLLHUP) || events & EPOLLIN);
    if (end->is_over)
        return;
    if (end->is_connected)
        close_in_time(end);
    if (!is_edge)
        watch(end->fd, wanted(end), end, EPOLL_CTL_MOD);
}

/* Accepts the next connection; all of them if edge-triggered. */
static int accept_some(udccp_listener *listener, int accepted)
{
    int before = accepted;
    for (;;) {
        struct end *end = &ends[CLIENTS + accepted];
        int result = accepted < CLIENTS ? udccp_accept(listener, &end->socket, 0) : -EAGAIN;
        if (result != 0) {
            GIVES(-EAGAIN, result);
            GIVES(true, accepted > before);
            return accepted;
        }
        end->is_connected = true;
        begin(end);
        accepted++;
        if (!is_edge)
            return accepted;
    }
}

static bool is_done(void)
{
    for (int i = 0; i < 2 * CLIENTS; i++)
        if (!ends[i].is_over)
            return false;
    return true;
}

static udccp_options *random_options(void)
{
    udccp_options *options = udccp_options_new();
    GIVES(0, udccp_options_set_ccid(options, (uint8_t)(2 + random_below(3))));
    GIVES(0, udccp_options_set_recv_queue(options, 20000, 1 + random_below(30)));
    GIVES(0, udccp_options_set_send_queue(options, 1 + random_below(20000), 1 + random_below(20)));
    GIVES(0, udccp_options_set_queue_policy(options, random_below(4) == 0));
    return options;
}

static void a_life(unsigned seed)
{
    char address[64];
    state = seed * 0x9e3779b97f4a7c15ull + 1;
    memset(ends, 0, sizeof ends);
    udccp_options *options = random_options();
    udccp_listener *listener = a_listener(address, options);
    poller = epoll_create1(0);
    watch(udccp_listener_fd(listener), EPOLLIN, NULL, EPOLL_CTL_ADD);
    for (int i = 0; i < CLIENTS; i++) {
        GIVES(0, udccp_connect_start(&ends[i].socket, address, SERVICE, options));
        begin(&ends[i]);
    }
    for (int accepted = 0; !is_done() && wrong == 0;) {
        struct epoll_event event;
        int told;
        do
            told = epoll_wait(poller, &event, 1, LONG_MS);
        while (told < 0 && errno == EINTR); /* after the process was stopped and continued */
        GIVES(1, told);
        if (wrong)
            break;
        if (event.data.ptr == NULL)
            accepted = accept_some(listener, accepted);
        else
            handle(event.data.ptr, event.events);
    }
    for (int i = 0; i < 2 * CLIENTS; i++)
        udccp_socket_free(ends[i].socket);
    udccp_listener_free(listener);
    udccp_options_free(options);
    close(poller);
}

int main(int argc, char **argv)
{
    unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 8;
    for (unsigned seed = first; seed < first + count && wrong == 0; seed++) {
        is_edge = seed % 2;
        a_life(seed);
        if (wrong)
            fprintf(stderr, "repeat with the arguments %u 1\n", seed);
    }
    return wrong != 0;
}
