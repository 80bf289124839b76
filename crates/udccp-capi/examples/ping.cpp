// Round-trip times to an echo server (echo.c), in C++: handles that free themselves, and errors as
// exceptions.
//
//     ping 127.0.0.1:5004 10
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <udccp.h>

namespace {

struct Free {
    void operator()(udccp_socket *socket) const { udccp_socket_free(socket); }
    void operator()(udccp_options *options) const { udccp_options_free(options); }
};

using Socket = std::unique_ptr<udccp_socket, Free>;
using Options = std::unique_ptr<udccp_options, Free>;

// Lets what is no error through.
template <typename T> T checked(T result, const std::string &what)
{
    if (result < 0)
        throw std::runtime_error(what + ": " + udccp_last_error());
    return result;
}

Socket connect(const std::string &address)
{
    std::uint32_t service = 0;
    checked(udccp_service_code("SC:echo", &service), "service");
    Options options(udccp_options_new());
    checked(udccp_options_set_linger_ms(options.get(), 2000), "linger");
    udccp_socket *socket = nullptr;
    checked(udccp_connect(&socket, address.c_str(), service, options.get(), 10000), "connect");
    return Socket(socket);
}

double round_trip_ms(const Socket &socket, int number)
{
    const auto text = "ping " + std::to_string(number);
    const auto begun = std::chrono::steady_clock::now();
    checked(udccp_send(socket.get(), text.data(), text.size(), -1), "send");
    std::vector<char> answer(udccp_socket_max_message_size(socket.get()));
    const auto len = checked(udccp_recv(socket.get(), answer.data(), answer.size(), 5000), "recv");
    if (std::string(answer.data(), static_cast<std::size_t>(len)) != text)
        throw std::runtime_error("another answer than the question");
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
    return took.count();
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 3) {
        std::fprintf(stderr, "usage: ping ADDRESS TIMES\n");
        return 2;
    }
    try {
        const auto socket = connect(argv[1]);
        std::vector<double> times;
        for (int i = 0; i < std::atoi(argv[2]); i++)
            times.push_back(round_trip_ms(socket, i));
        std::sort(times.begin(), times.end());
        if (!times.empty())
            std::printf("%zu answers, median %.3f ms\n", times.size(), times[times.size() / 2]);
        checked(udccp_close(socket.get(), 5000), "close");
    } catch (const std::exception &e) {
        std::fprintf(stderr, "ping: %s\n", e.what());
        return 1;
    }
    return 0;
}
